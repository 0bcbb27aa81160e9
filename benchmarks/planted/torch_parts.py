"""Parts of small transformers in plain torch; every operator is a module that can be replaced.

`Kernels` chooses between equally right ways to compute a part, as two vendors' libraries would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Kernels:
    """How parts are computed: fused or in steps, and how many blocks a product is summed in."""

    attention: Literal["fused", "eager"] = "fused"
    norm: Literal["fused", "eager"] = "fused"
    blocks: int = 1


class Add(nn.Module):
    """x + y."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Both of one shape."""
        return x + y


class Mul(nn.Module):
    """x · y."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Both of one shape."""
        return x * y


class RMSNorm(nn.Module):
    """x / rms(x) · weight."""

    def __init__(self, hidden: int, eps: float, kernels: Kernels) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        self.fused = kernels.norm == "fused"

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) to the same."""
        if self.fused:
            return functional.rms_norm(x, (x.shape[-1],), self.weight, self.eps)
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide * scale).to(self.weight.dtype)  # rounds twice


class Linear(nn.Linear):
    """A linear layer that may sum in blocks, in float32, from the last to the first."""

    blocks = 1

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) to (…, out)."""
        if self.blocks == 1:
            return super().forward(x)
        parts = zip(x.chunk(self.blocks, -1), self.weight.chunk(self.blocks, -1), strict=True)
        products = [functional.linear(a.float(), w.float()) for a, w in parts]
        total = torch.stack(products[::-1]).sum(0)
        return (total if self.bias is None else total + self.bias.float()).to(x.dtype)


class RotaryEmbedding(nn.Module):
    """Turns pairs of channels, half a head apart, by angles that grow with the position."""

    def __init__(self, head_dim: int, base: float) -> None:
        super().__init__()
        self.head_dim, self.base = head_dim, base

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, heads, tokens, head_dim) of both and (tokens,) of integers."""
        angles = self.angles(positions)
        return rotated(q, angles), rotated(k, angles)

    def angles(self, positions: Tensor) -> Tensor:
        """(tokens, head_dim / 2) in radians, float32."""
        channels = torch.arange(0, self.head_dim, 2, dtype=torch.float32)
        return positions.float()[:, None] * self.base ** (-channels / self.head_dim)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Each pair (x[i], x[i + half]) turned by its angle, in float32, rounded to x's format."""
    a, b = x.float().chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


class KVCache(nn.Module):
    """Appends keys and values to those of the steps before."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: tuple[Tensor, Tensor] | None = None

    def forward(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, heads, new tokens, head_dim) to the same of all tokens so far."""
        if self.kept is not None:
            k, v = torch.cat([self.kept[0], k], 2), torch.cat([self.kept[1], v], 2)
        self.kept = (k, v)
        return k, v


class Attend(nn.Module):
    """softmax(q·kᵀ · scale + mask) · v for grouped heads; rows without any key give zeros."""

    def __init__(self, scale: float, kernels: Kernels) -> None:
        super().__init__()
        self.scale = scale
        self.fused = kernels.attention == "fused"

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Boolean mask (True: seen) or a bias; (batch, tokens, heads · head_dim)."""
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        mixed = self.fused_mix(q, k, v, mask) if self.fused else self.eager_mix(q, k, v, mask)
        return mixed.transpose(1, 2).flatten(2)

    def fused_mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """By torch's own kernel."""
        mask = mask if mask.dtype == torch.bool else mask.to(q.dtype)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)

    def eager_mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """In steps, with a softmax in float32."""
        scores = (torch.matmul(q, k.transpose(-1, -2)) * self.scale).float()
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, float("-inf"))
        else:
            scores = scores + mask
        return torch.matmul(torch.softmax(scores, -1).nan_to_num(0.0).to(v.dtype), v)


class Router(nn.Module):
    """The `top` best experts of each token and their weights, which sum to one."""

    def __init__(self, top: int) -> None:
        super().__init__()
        self.top = top

    def forward(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """(tokens, experts) to weights and ids (tokens, top)."""
        best, ids = torch.softmax(logits.float(), -1).topk(self.top, -1)
        return (best / best.sum(-1, keepdim=True)).to(logits.dtype), ids


class Combine(nn.Module):
    """Sum of the experts' answers, weighted."""

    def forward(self, answers: Tensor, weights: Tensor) -> Tensor:
        """(tokens, top, hidden) and (tokens, top) to (tokens, hidden)."""
        return (answers.float() * weights.float()[..., None]).sum(1).to(answers.dtype)
