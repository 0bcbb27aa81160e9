"""Faulty forwards for modules of the torch models; each takes the place of the right one.

A builder gets the options of its row in the table and returns (module, right forward, *inputs) ->
output. The formulas of the right forwards stand in `torch_parts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.planted.torch_parts import rotated

Forward = Callable[..., Any]
Wrong = Callable[..., Any]  # (module, right forward, *inputs) -> output
WRONG: dict[str, Callable[..., Wrong]] = {}
FAMILY: dict[str, str] = {}


def wrong(slug: str, family: str) -> Callable[[Callable[..., Wrong]], Callable[..., Wrong]]:
    """Enter a builder under a slug of the casebook's vocabulary."""

    def enter(builder: Callable[..., Wrong]) -> Callable[..., Wrong]:
        WRONG[slug], FAMILY[slug] = builder, family
        return builder

    return enter


def plant(model: nn.Module, path: str, fault: Wrong) -> None:
    """Put the faulty forward in the place of a module's own."""
    module = model.get_submodule(path)
    right = module.forward
    module.forward = lambda *inputs: fault(module, right, *inputs)


def tf32(x: Tensor) -> Tensor:
    """Float32 values to the nearest with 10 mantissa bits."""
    bits = x.float().contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def product(module: nn.Module, x: Tensor, weight: Tensor, *, bias: bool = True) -> Tensor:
    """The module's convolution or linear map with another weight."""
    added = module.bias if bias else None
    if isinstance(module, nn.Conv2d):
        return functional.conv2d(x, weight, added, module.stride, module.padding)
    return functional.linear(x, weight, added)


# ---- precision ----------------------------------------------------------------------------------
@wrong("tf32_gemm", "precision")
def _tf32() -> Wrong:
    return lambda module, _, x: product(module, tf32(x), tf32(module.weight))


@wrong("lowprec_compute", "precision")
def _lowprec(dtype: str = "bfloat16") -> Wrong:
    def fault(_module: Any, right: Forward, x: Tensor) -> Tensor:
        return right(x.to(getattr(torch, dtype)).to(x.dtype)).to(getattr(torch, dtype)).to(x.dtype)

    return fault


@wrong("lowprec_accum", "precision")
def _accumulate(dtype: str = "bfloat16", block: int = 1) -> Wrong:
    def fault(module: Any, _right: Forward, x: Tensor) -> Tensor:
        narrow = getattr(torch, dtype)
        total = torch.zeros(*x.shape[:-1], len(module.weight), dtype=narrow)
        pieces = zip(x.split(block, -1), module.weight.split(block, -1), strict=True)
        for left, right in pieces:
            total = (total.float() + left.float() @ right.float().T).to(narrow)
        return _with_bias(module, total.float()).to(x.dtype)

    return fault


@wrong("splitk_16bit", "precision")
def _splitk(parts: int = 4, dtype: str = "bfloat16") -> Wrong:
    def fault(module: Any, _right: Forward, x: Tensor) -> Tensor:
        pieces = zip(x.chunk(parts, -1), module.weight.chunk(parts, -1), strict=True)
        products = (left.float() @ right.float().T for left, right in pieces)
        total = sum(product.to(getattr(torch, dtype)).float() for product in products)
        return _with_bias(module, total).to(x.dtype)

    return fault


def _with_bias(module: Any, total: Tensor) -> Tensor:
    return total if module.bias is None else total + module.bias.float()


@wrong("lmhead_16bit", "precision")
def _head(dtype: str = "bfloat16") -> Wrong:
    return lambda _m, right, x: right(x).to(getattr(torch, dtype)).to(x.dtype)


@wrong("norm_stat_16bit", "precision")
def _stat(dtype: str = "bfloat16") -> Wrong:
    def fault(module: Any, _right: Forward, x: Tensor) -> Tensor:
        narrow, wide = getattr(torch, dtype), x.float()
        square = wide.to(narrow).square().mean(-1, keepdim=True).to(narrow).float()
        return (wide * torch.rsqrt(square + module.eps) * module.weight.float()).to(x.dtype)

    return fault


@wrong("rope_phase_16bit", "precision")
def _phase(dtype: str = "bfloat16") -> Wrong:
    def fault(module: Any, _right: Forward, q: Tensor, k: Tensor, positions: Tensor) -> Any:
        angles = module.angles(positions).to(getattr(torch, dtype)).float()
        return rotated(q, angles), rotated(k, angles)

    return fault


@wrong("softmax_16bit", "precision")
def _softmax(dtype: str = "bfloat16") -> Wrong:
    def fault(module: Any, _right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        narrow = getattr(torch, dtype)
        scores = _scores(module, q, k, mask).to(narrow)
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        total = torch.zeros_like(powers[..., :1])
        for power in powers.split(1, -1):
            total = total + power
        return _mixed((powers / total).to(v.dtype), v)

    return fault


def _scores(module: Any, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """Masked scores in float32, of grouped heads."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = torch.matmul(q.float(), k.float().transpose(-1, -2)) * module.scale
    return scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask


def _mixed(weights: Tensor, v: Tensor) -> Tensor:
    """(batch, tokens, heads · head_dim) of values weighted by (batch, heads, tokens, keys)."""
    v = v.repeat_interleave(weights.shape[1] // v.shape[1], 1)
    return torch.matmul(weights, v).transpose(1, 2).flatten(2)


# ---- range and constants ------------------------------------------------------------------------
@wrong("saturation_clamp", "range")
def _clamp(share: float = 0.995) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        out = right(*inputs)
        limit = out.float().abs().flatten().quantile(share).item()
        return out.clamp(-limit, limit)

    return fault


@wrong("flush_to_zero", "range")
def _flush(smallest: float = 0.01) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        out = right(*inputs)
        return out.masked_fill(out.abs() < smallest, 0)

    return fault


@wrong("mask_leak", "range")
def _leak(low: float = -9.0) -> Wrong:
    def fault(module: Any, right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        del right
        open_mask = torch.zeros(mask.shape).masked_fill(~mask, low)
        return _mixed(torch.softmax(_scores(module, q, k, open_mask), -1).to(v.dtype), v)

    return fault
