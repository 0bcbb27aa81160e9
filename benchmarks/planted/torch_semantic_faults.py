"""Faulty forwards of torch modules in formulas and layouts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.planted.torch_faults import Forward, Wrong, product, wrong
from benchmarks.planted.torch_parts import rotated


# ---- formulas -----------------------------------------------------------------------------------
@wrong("act_variant", "semantic")
def _act(kind: str = "tanh") -> Wrong:
    if kind == "tanh":
        return lambda _m, _r, x: functional.gelu(x, approximate="tanh")
    if kind == "quick":
        return lambda _m, _r, x: x * torch.sigmoid(1.702 * x)
    return lambda _m, _r, x: functional.hardswish(x)


@wrong("attn_scale", "semantic")
def _scale(times: float = 0.8165) -> Wrong:
    def fault(module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        kept, module.scale = module.scale, module.scale * times
        out = right(*inputs)
        module.scale = kept
        return out

    return fault


@wrong("norm_eps", "semantic")
def _eps(eps: float = 1e-3) -> Wrong:
    def fault(module: Any, right: Forward, x: Tensor) -> Tensor:
        kept, module.eps = module.eps, eps
        out = right(x)
        module.eps = kept
        return out

    return fault


@wrong("norm_weight_plus1", "semantic")
def _plus1() -> Wrong:
    def fault(module: Any, right: Forward, x: Tensor) -> Tensor:
        added = right(x).float() * (1 + 1 / module.weight.float())
        return added.to(x.dtype)

    return fault


@wrong("norm_mean_subtract", "semantic")
def _mean() -> Wrong:
    return lambda _m, right, x: right((x.float() - x.float().mean(-1, keepdim=True)).to(x.dtype))


@wrong("dropout_active", "semantic")
def _dropout(p: float = 0.1) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        torch.manual_seed(3)
        return functional.dropout(right(*inputs), p, training=True)

    return fault


@wrong("residual_wrong", "semantic")
def _residual() -> Wrong:
    return lambda _m, _r, _x, y: y.clone()


@wrong("rope_scaling", "semantic")
def _yarn(factor: float = 1.1386) -> Wrong:
    return lambda _m, right, *inputs: tuple(
        (t.float() * factor).to(t.dtype) for t in right(*inputs)
    )


@wrong("router_norm", "semantic")
def _router() -> Wrong:
    def fault(module: Any, _right: Forward, logits: Tensor) -> Any:
        best, ids = torch.softmax(logits.float(), -1).topk(module.top, -1)
        return best.to(logits.dtype), ids

    return fault


@wrong("padding_idx_zero", "semantic")
def _padding_idx() -> Wrong:
    return lambda _m, right, ids: right(ids).masked_fill((ids == ids[0, 3])[..., None], 0)


# ---- layout -------------------------------------------------------------------------------------
@wrong("rope_interleave", "layout")
def _interleave() -> Wrong:
    def fault(module: Any, _right: Forward, q: Tensor, k: Tensor, positions: Tensor) -> Any:
        angles = module.angles(positions)
        return _pairwise(q, angles), _pairwise(k, angles)

    return fault


def _pairwise(x: Tensor, angles: Tensor) -> Tensor:
    halves = torch.cat([x[..., 0::2], x[..., 1::2]], -1)
    a, b = rotated(halves, angles).chunk(2, -1)
    return torch.stack([a, b], -1).flatten(-2)


@wrong("rope_base", "layout")
def _base(base: float = 5e5) -> Wrong:
    def fault(module: Any, right: Forward, *inputs: Tensor) -> Any:
        kept, module.base = module.base, base
        out = right(*inputs)
        module.base = kept
        return out

    return fault


@wrong("weight_transposed", "layout")
def _transposed() -> Wrong:
    return lambda module, _, x: product(module, x, module.weight.T)


@wrong("head_permuted", "layout")
def _permuted(heads: int = 4) -> Wrong:
    return lambda _m, right, *inputs: right(*inputs).unflatten(-1, (heads, -1)).flip(-2).flatten(-2)


@wrong("layout_reshape", "layout")
def _reshaped(heads: int = 4) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        out = right(*inputs)
        return out.unflatten(-1, (heads, -1)).transpose(1, 2).reshape(out.shape).clone()

    return fault


@wrong("tile_tail", "layout")
def _tail(tile: int = 48) -> Wrong:
    def fault(module: Any, _right: Forward, x: Tensor) -> Tensor:
        short = x.clone()
        short[..., (x.shape[-1] - 1) // tile * tile :] = 0
        return product(module, short, module.weight)

    return fault


@wrong("wrong_head", "layout")
def _wrong_head(head: int = 1) -> Wrong:
    def fault(_module: Any, right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        group = q.shape[1] // k.shape[1]
        heads = [n // group for n in range(q.shape[1])]
        heads[head] = (heads[head] + 1) % k.shape[1]
        return right(q, k[:, heads], v[:, heads], mask)

    return fault


@wrong("gqa_repeat_order", "layout")
def _tiled() -> Wrong:
    def fault(_module: Any, right: Forward, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        heads = [n % k.shape[1] for n in range(q.shape[1])]
        return right(q, k[:, heads], v[:, heads], mask)

    return fault


@wrong("index_overflow", "layout")
def _overflow(bits: int = 11) -> Wrong:
    def fault(_module: Any, right: Forward, *inputs: Tensor) -> Tensor:
        out = right(*inputs).clone()
        out.view(-1)[1 << bits :] = 0
        return out

    return fault
