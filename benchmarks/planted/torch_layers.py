"""Shapes and layers of small transformers: attention, MLP, mixture of experts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from benchmarks.planted.torch_parts import (
    Add,
    Attend,
    Combine,
    Kernels,
    KVCache,
    Linear,
    Mul,
    RMSNorm,
    RotaryEmbedding,
    Router,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes and kind of a transformer."""

    vocabulary: int = 112
    hidden: int = 64
    intermediate: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 4
    norm: Literal["rms", "layer"] = "rms"
    position: Literal["rope", "learned", "bias"] = "rope"
    activation: Literal["silu", "gelu", "relu"] = "silu"
    gated: bool = True
    causal: bool = True
    bias: bool = False
    experts: int = 0
    eps: float = 1e-6
    rope_base: float = 1e4
    tokens: int = 64  # most that learned positions serve

    @property
    def head_dim(self) -> int:
        """Channels of one head."""
        return self.hidden // self.heads


ACTIVATIONS = {"silu": nn.SiLU, "gelu": nn.GELU, "relu": nn.ReLU}


def norm_of(shape: Shape, kernels: Kernels) -> nn.Module:
    """The norm of this kind of model."""
    if shape.norm == "layer":
        return nn.LayerNorm(shape.hidden, shape.eps)
    return RMSNorm(shape.hidden, shape.eps, kernels)


class Attention(nn.Module):
    """Attention of tokens to each other, or to those of an encoder."""

    def __init__(self, shape: Shape, kernels: Kernels) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = Linear(shape.hidden, wide, bias=shape.bias)
        self.k_proj = Linear(shape.hidden, narrow, bias=shape.bias)
        self.v_proj = Linear(shape.hidden, narrow, bias=shape.bias)
        if shape.position == "rope":
            self.rotary_emb = RotaryEmbedding(shape.head_dim, shape.rope_base)
        self.kv_cache = KVCache()
        self.attn = Attend(1.0 if shape.position == "bias" else shape.head_dim**-0.5, kernels)
        self.o_proj = Linear(wide, shape.hidden, bias=shape.bias)
        self.caches = False

    def forward(self, x: Tensor, source: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """(batch, tokens, hidden) of both; mask broadcast to (batch, heads, tokens, keys)."""
        q = self._heads(self.q_proj(x))
        k, v = self._heads(self.k_proj(source)), self._heads(self.v_proj(source))
        if hasattr(self, "rotary_emb"):
            q, k = self.rotary_emb(q, k, positions)
        if self.caches:
            k, v = self.kv_cache(k, v)
        return self.o_proj(self.attn(q, k, v, mask))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class MLP(nn.Module):
    """down(act(gate(x)) · up(x)), or down(act(up(x)))."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gated = shape.gated
        if shape.gated:
            self.gate_proj = Linear(shape.hidden, shape.intermediate, bias=shape.bias)
            self.mul = Mul()
        self.up_proj = Linear(shape.hidden, shape.intermediate, bias=shape.bias)
        self.act_fn = ACTIVATIONS[shape.activation]()
        self.down_proj = Linear(shape.intermediate, shape.hidden, bias=shape.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) to the same."""
        up = self.up_proj(x)
        wide = self.mul(self.act_fn(self.gate_proj(x)), up) if self.gated else self.act_fn(up)
        return self.down_proj(wide)


class Experts(nn.Module):
    """A mixture of MLPs; each token goes to two of them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = Linear(shape.hidden, shape.experts, bias=False)
        self.router = Router(2)
        small = replace(shape, intermediate=shape.intermediate // 2)
        self.experts = nn.ModuleList(MLP(small) for _ in range(shape.experts))
        self.combine = Combine()

    def forward(self, x: Tensor) -> Tensor:
        """(batch, tokens, hidden) to the same."""
        flat = x.flatten(0, 1)
        weights, ids = self.router(self.gate(flat))
        answers = flat.new_zeros(*ids.shape, flat.shape[-1])
        for n, expert in enumerate(self.experts):
            token, place = torch.nonzero(ids == n, as_tuple=True)
            answers[token, place] = expert(flat[token]).to(answers.dtype)
        return self.combine(answers, weights).view_as(x)


class Layer(nn.Module):
    """Attention, attention to an encoder where there is one, MLP; each behind a norm."""

    def __init__(self, shape: Shape, kernels: Kernels, *, crossed: bool = False) -> None:
        super().__init__()
        self.input_layernorm = norm_of(shape, kernels)
        self.self_attn = Attention(shape, kernels)
        self.attn_residual = Add()
        if crossed:
            self.cross_layernorm = norm_of(shape, kernels)
            self.cross_attn = Attention(replace(shape, position="learned"), kernels)
            self.cross_residual = Add()
        self.post_attention_layernorm = norm_of(shape, kernels)
        self.mlp = Experts(shape) if shape.experts else MLP(shape)
        self.mlp_residual = Add()

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        mask: Tensor,
        source: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        """(batch, tokens, hidden) to the same."""
        h = self.input_layernorm(x)
        x = self.attn_residual(x, self.self_attn(h, h, positions, mask))
        if source is not None:
            h = self.cross_attn(self.cross_layernorm(x), source, positions, source_mask)
            x = self.cross_residual(x, h)
        return self.mlp_residual(x, self.mlp(self.post_attention_layernorm(x)))
