"""The planted faults: drop-in modules of the right name that compute the wrong thing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sample_dumps import decoder
from sample_dumps.decoder import CausalLM, Kernels


class RotaryEmbedding(decoder.RotaryEmbedding):
    """Counts the positions of queries from 1 and those of keys from 0."""

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, heads, tokens, head_dim) of both, the queries turned one position too far."""
        return (
            self.kernel(q, self.angles(positions + 1)),
            self.kernel(k, self.angles(positions)),
        )


def shift_query_positions(model: CausalLM, layer: int, kernels: Kernels) -> None:
    """Give one layer the rotary embedding above."""
    attention = model.model.layers[layer].self_attn
    good = attention.rotary_emb
    attention.rotary_emb = RotaryEmbedding(good.head_dim, good.base, kernels)


class _NormWithOwnBackward(torch.autograd.Function):
    """RMSNorm whose gradient is written by hand; without `projects` it forgets a term.

    y = w·x̂ with x̂ = x / rms(x), so dx = (g - x̂·mean(g·x̂)) / rms(x) with g = w·dy. The forgotten
    term is the one with the mean.
    """

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, eps: float, projects: bool) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        context.save_for_backward(wide * scale, weight, scale)
        context.projects = projects
        return (wide * scale * weight.float()).to(x.dtype)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        unit, weight, scale = context.saved_tensors
        wide = gradient.float()
        inner = wide * weight.float()
        if context.projects:
            inner = inner - unit * (inner * unit).mean(-1, keepdim=True)
        of_weight = (wide * unit).flatten(0, -2).sum(0)
        return (inner * scale).to(gradient.dtype), of_weight.to(weight.dtype), None, None


def norm_with_own_backward(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm with a hand-written gradient that is right."""
    return _NormWithOwnBackward.apply(x, weight, eps, True)


def norm_with_wrong_backward(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The same forward; the gradient lacks the term with the mean."""
    return _NormWithOwnBackward.apply(x, weight, eps, False)
