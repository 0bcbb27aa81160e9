"""Small transformers: decoders, encoders, encoder-decoders, mixtures of experts."""

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


UNSEEN = -30_000.0  # fits float16, and leaves no weight to a key
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


class Mask(nn.Module):
    """What each token may see: real tokens, and none after itself in a causal model."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, real: Tensor, queries: Tensor) -> Tensor:
        """(batch, keys) of real tokens, (tokens,) of positions to (batch, 1, tokens, keys)."""
        seen = real.bool()[:, None, None, :].expand(-1, 1, len(queries), -1)
        if self.causal:
            seen = seen & (queries[:, None] >= torch.arange(real.shape[1]))
        return seen


class PositionBias(nn.Module):
    """A learned number for each head and distance, added to the scores; unseen keys lose theirs."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.reach = 16
        self.relative = nn.Embedding(2 * self.reach + 1, shape.heads)

    def forward(self, mask: Tensor, queries: Tensor) -> Tensor:
        """Boolean (batch, 1, tokens, keys) to (batch, heads, tokens, keys)."""
        distance = queries[:, None] - torch.arange(mask.shape[-1])
        near = distance.clamp(-self.reach, self.reach) + self.reach
        bias = self.relative(near).permute(2, 0, 1)[None].float()
        return bias.masked_fill(~mask, UNSEEN)


class Stack(nn.Module):
    """Embedding, layers, norm."""

    def __init__(self, shape: Shape, kernels: Kernels, *, crossed: bool = False) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        if shape.position == "learned":
            self.embed_positions = nn.Embedding(shape.tokens, shape.hidden)
            self.add_positions = Add()
        self.causal_mask = Mask(shape.causal)
        if shape.position == "bias":
            self.position_bias = PositionBias(shape)
        self.layers = nn.ModuleList(
            Layer(shape, kernels, crossed=crossed) for _ in range(shape.layers)
        )
        self.norm = norm_of(shape, kernels)

    def forward(
        self,
        tokens: Tensor,
        real: Tensor,
        source: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        """(batch, tokens) of ids, (batch, all tokens so far) of real ones; hidden states."""
        positions = torch.arange(real.shape[1] - tokens.shape[1], real.shape[1])
        x = self.embed_tokens(tokens)
        if hasattr(self, "embed_positions"):
            x = self.add_positions(x, self.embed_positions(positions))
        mask = self.causal_mask(real, positions)
        if hasattr(self, "position_bias"):
            mask = self.position_bias(mask, positions)
        for layer in self.layers:
            x = layer(x, positions, mask, source, source_mask)
        return self.norm(x)


class LanguageModel(nn.Module):
    """A stack with a head over the vocabulary."""

    def __init__(self, shape: Shape, kernels: Kernels) -> None:
        super().__init__()
        self.model = Stack(shape, kernels)
        self.lm_head = Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to logits."""
        return self.lm_head(self.model(tokens, real))


class EncoderDecoder(nn.Module):
    """An encoder, and a decoder that attends to it; both read the same tokens here."""

    def __init__(self, shape: Shape, kernels: Kernels) -> None:
        super().__init__()
        self.encoder = Stack(replace(shape, causal=False), kernels)
        self.decoder = Stack(shape, kernels, crossed=True)
        self.lm_head = Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to logits."""
        source = self.encoder(tokens, real)
        seen = real.bool()[:, None, None, :].expand(-1, 1, tokens.shape[1], -1)
        return self.lm_head(self.decoder(tokens, real, source, seen))
