"""A small LLaMA-like decoder in plain torch: RMSNorm, RoPE, grouped-query attention, SwiGLU.

Each set of kernels has a counterpart, `STEPWISE` and `STEPWISE_ELSEWHERE`, `FUSED` and
`FUSED_ELSEWHERE`, that is equally right and rounds at other places, as another
vendor's library does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of a decoder."""

    vocabulary: int = 128
    hidden: int = 64
    intermediate: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    eps: float = 1e-6
    rope_base: float = 10_000.0

    @property
    def head_dim(self) -> int:
        """Channels of one head."""
        return self.hidden // self.heads


@dataclass(frozen=True, slots=True)
class Kernels:
    """How the operators that libraries fuse are computed."""

    rms_norm: Callable[[Tensor, Tensor, float], Tensor]
    rotate: Callable[[Tensor, Tensor], Tensor]
    attend: Callable[[Tensor, Tensor, Tensor, float], Tensor]
    swiglu: Callable[[Tensor, Tensor], Tensor]


class RMSNorm(nn.Module):
    """x / rms(x) · weight."""

    def __init__(self, hidden: int, eps: float, kernels: Kernels) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        self.kernel = kernels.rms_norm

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) to (…, hidden)."""
        return self.kernel(x, self.weight, self.eps)


class RotaryEmbedding(nn.Module):
    """Turns each pair of channels of queries and keys by an angle that grows with the position."""

    def __init__(self, head_dim: int, base: float, kernels: Kernels) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.base = base
        self.kernel = kernels.rotate

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, heads, tokens, head_dim) of both, turned."""
        angles = self.angles(positions)
        return self.kernel(q, angles), self.kernel(k, angles)

    def angles(self, positions: Tensor) -> Tensor:
        """(tokens, head_dim / 2) in radians, float32."""
        channels = torch.arange(0, self.head_dim, 2, dtype=torch.float32)
        return positions.float()[:, None] * self.base ** (-channels / self.head_dim)


class Attention(nn.Module):
    """Causal attention whose query heads share key and value heads in groups."""

    def __init__(self, config: Config, kernels: Kernels) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads = config.heads, config.kv_heads
        self.head_dim = config.head_dim
        self.scale = config.head_dim**-0.5
        wide, narrow = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden, wide, bias=False)
        self.k_proj = nn.Linear(config.hidden, narrow, bias=False)
        self.v_proj = nn.Linear(config.hidden, narrow, bias=False)
        self.o_proj = nn.Linear(wide, config.hidden, bias=False)
        self.rotary_emb = RotaryEmbedding(config.head_dim, config.rope_base, kernels)
        self.kernel = kernels.attend

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """(batch, tokens, hidden) to the same."""
        q = self._heads(self.q_proj(x))
        k, v = self._heads(self.k_proj(x)), self._heads(self.v_proj(x))
        q, k = self.rotary_emb(q, k, positions)
        group = self.num_heads // self.num_kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        mixed = self.kernel(q, k, v, self.scale)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class MLP(nn.Module):
    """down(silu(gate(x)) · up(x))."""

    def __init__(self, config: Config, kernels: Kernels) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=False)
        self.kernel = kernels.swiglu

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) to the same."""
        return self.down_proj(self.kernel(self.gate_proj(x), self.up_proj(x)))


class DecoderLayer(nn.Module):
    """Attention and MLP, each behind a norm and added to the residual stream."""

    def __init__(self, config: Config, kernels: Kernels) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden, config.eps, kernels)
        self.self_attn = Attention(config, kernels)
        self.post_attention_layernorm = RMSNorm(config.hidden, config.eps, kernels)
        self.mlp = MLP(config, kernels)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """(batch, tokens, hidden) to the same."""
        x = x + self.self_attn(self.input_layernorm(x), positions)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, layers, norm."""

    def __init__(self, config: Config, kernels: Kernels) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocabulary, config.hidden)
        self.layers = nn.ModuleList(DecoderLayer(config, kernels) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden, config.eps, kernels)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, tokens) of ids to (batch, tokens, hidden)."""
        positions = torch.arange(tokens.shape[1])
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, positions)
        return self.norm(x)


class CausalLM(nn.Module):
    """A decoder with its head."""

    def __init__(self, config: Config, kernels: Kernels) -> None:
        super().__init__()
        self.model = Decoder(config, kernels)
        self.lm_head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, tokens) of ids to (batch, tokens, vocabulary) of logits."""
        return self.lm_head(self.model(tokens))


def decoder(config: Config, kernels: Kernels, *, seed: int, dtype: torch.dtype) -> CausalLM:
    """A decoder with random weights like those of a trained one: uneven norms, loud channels."""
    generator = torch.Generator().manual_seed(seed)
    model = CausalLM(config, kernels)
    loud = torch.randperm(config.hidden, generator=generator)[:3]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                parameter.copy_(1 + 0.2 * noise)
            elif "embed" in name:
                parameter.copy_(0.5 * noise)
                parameter[:, loud] *= 8
            else:  # branches are quieter than the residual stream
                gain = 0.35 if "o_proj" in name or "down_proj" in name else 1.0
                parameter.copy_(gain * noise * parameter.shape[1] ** -0.5)
    return model.to(dtype)


# ---- kernels ------------------------------------------------------------------------------------
def _fused_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)


def _unfused_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * (wide * scale).to(x.dtype)  # rounds twice


def _rotation(x: Tensor, angles: Tensor) -> Tensor:
    a, b = x.float().chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def _fused_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)


def _unfused_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    scores = torch.matmul(q, k.transpose(-1, -2)) * scale
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    scores = scores.float().masked_fill(future, float("-inf"))
    return torch.matmul(torch.softmax(scores, -1).to(v.dtype), v)


def _stepwise_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return functional.silu(gate) * up


def _fused_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return (functional.silu(gate.float()) * up.float()).to(gate.dtype)


# Attention in steps on both sides, so that its operators can be told apart.
STEPWISE = Kernels(_fused_norm, _rotation, _unfused_attention, _stepwise_swiglu)
STEPWISE_ELSEWHERE = Kernels(_unfused_norm, _rotation, _unfused_attention, _stepwise_swiglu)
FUSED = Kernels(_fused_norm, _rotation, _fused_attention, _stepwise_swiglu)
FUSED_ELSEWHERE = Kernels(_unfused_norm, _rotation, _fused_attention, _fused_swiglu)
