"""Faulty forwards of torch modules in masks, parallelism, execution and gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.planted.torch_faults import Forward, Wrong, product, wrong


# ---- masks and positions ------------------------------------------------------------------------
@wrong("pads_attended", "mask")
def _pads() -> Wrong:
    def fault(_module: Any, right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        return right(q, k, v, torch.ones_like(mask))

    return fault


@wrong("causal_off_by_one", "mask")
def _off_by_one() -> Wrong:
    def fault(_module: Any, right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        rows = torch.arange(mask.shape[-2])[:, None]
        following = torch.arange(mask.shape[-1]) == rows + 1
        return right(q, k, v, mask | following)

    return fault


@wrong("position_offset", "mask")
def _offset(first: int = 1) -> Wrong:
    """Wrong in one-token calls, from the `first` of them on."""
    calls = [0]

    def fault(_module: Any, right: Forward, q: Tensor, k: Tensor, positions: Tensor) -> Any:
        calls[0] += q.shape[2] == 1
        return right(q, k, positions + (calls[0] >= first and q.shape[2] == 1))

    return fault


@wrong("causal_alignment", "mask")
def _alignment() -> Wrong:
    def fault(_module: Any, right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        if q.shape[2] != k.shape[2]:
            mask = mask & (torch.arange(k.shape[2]) <= torch.arange(q.shape[2])[:, None])
        return right(q, k, v, mask)

    return fault


@wrong("cache_block_reuse", "mask")
def _block(start: int = 4, size: int = 4) -> Wrong:
    def fault(_module: Any, right: Forward, k: Tensor, v: Tensor) -> Any:
        kept = tuple(t.clone() for t in right(k, v))
        if k.shape[2] == 1:
            for t in kept:
                t[0, :, start : start + size] = t[1, :, start : start + size]
        return kept

    return fault


# ---- parallelism, execution, gradients ----------------------------------------------------------
@wrong("bias_missing", "parallel")
def _bias() -> Wrong:
    return lambda module, _, x: product(module, x, module.weight, bias=False)


@wrong("same_shard", "parallel")
def _shard(shards: int = 2) -> Wrong:
    def fault(module: Any, _right: Forward, x: Tensor) -> Tensor:
        return product(module, x, torch.cat([module.weight.chunk(shards)[0]] * shards))

    return fault


@wrong("missing_reduce", "parallel")
def _reduce(shards: int = 2) -> Wrong:
    def fault(module: Any, _right: Forward, x: Tensor) -> Tensor:
        kept = x.clone()
        kept[..., x.shape[-1] // shards :] = 0
        return product(module, kept, module.weight)

    return fault


@wrong("uninitialised", "execution")
def _unwritten(rows: int = 4, columns: int = 16) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        out = right(*inputs).clone()
        part = out[0, 4 : 4 + rows, columns : 2 * columns]
        noise = torch.randn(part.shape, generator=torch.Generator().manual_seed(5))
        part.copy_(noise * 10 ** (4 * torch.rand(part.shape) - 3))
        return out

    return fault


@wrong("race_partial", "execution")
def _race(share: float = 0.5) -> Wrong:
    def fault(module: Any, right: Forward, x: Tensor) -> Tensor:
        out, early = right(x).clone(), x.clone()
        early[..., int(x.shape[-1] * share) :] = 0
        out[1, 8:16, 16:32] = product(module, early, module.weight)[1, 8:16, 16:32]
        return out

    return fault


@wrong("bit_flip", "execution")
def _flip(bit: int = 29) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        out = right(*inputs)
        wide = out.float().clone()
        place = int(wide.abs().flatten().argsort()[wide.numel() // 2])
        wide.view(torch.int32).view(-1)[place] ^= 1 << bit
        return wide.to(out.dtype)

    return fault


@wrong("stale_buffer", "execution")
def _stale(at: int = 2) -> Wrong:
    outputs: list[Tensor] = []

    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        outputs.append(right(*inputs))
        return outputs[-2] if len(outputs) == at + 1 else outputs[-1]

    return fault


class _Scaled(torch.autograd.Function):
    """The same values, with a gradient times a factor."""

    @staticmethod
    def forward(context: Any, x: Tensor, factor: float) -> Tensor:
        context.factor = factor
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * context.factor, None


@wrong("grad_scale", "backward")
def _gradient(times: float = 0.5) -> Wrong:
    return lambda module, _, x: product(module, x, _Scaled.apply(module.weight, times))


class _Accumulated(torch.autograd.Function):
    """The same values; the gradient is added to the one before and kept."""

    @staticmethod
    def forward(context: Any, x: Tensor, kept: list[Tensor]) -> Tensor:
        context.kept = kept
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient + context.kept[-1] if context.kept else gradient
        context.kept.append(total)
        return total, None


@wrong("zero_grad_missing", "backward")
def _not_reset() -> Wrong:
    kept: list[Tensor] = []
    return lambda module, _, x: product(module, x, _Accumulated.apply(module.weight, kept))
