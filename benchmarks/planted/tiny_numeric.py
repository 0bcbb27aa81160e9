"""Faults of the tiny model in precision, constants and range."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.planted.tiny_registry import F4, attention, mechanism, one, rounded, site


@mechanism("splitk_16bit")
def splitk_16bit(
    _c: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj", parts: int = 8, dtype: str = ""
) -> Any:
    """Partial sums over parts of K pass through a 16-bit workspace; their sum is float32."""

    def fault(model: Any, _base: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        store = dtype or (model.num.dtype if model.num.dtype != "float32" else "bfloat16")

        def product(a: Any, b: Any) -> Any:
            total = F4(0)
            for left, right in zip(np.split(a, parts, -1), np.split(b, parts, 0), strict=True):
                total = total + rounded(left @ right, store)
            return total

        return model.linear(x, weight, bias, mm=product)

    cause = f"{parts} partial sums of {mod} stored in 16 bits"
    return one(site(layer, mod), fault, cause, alt=("lowprec_accum",))


@mechanism("norm_stat_16bit")
def norm_stat_16bit(
    _c: Any, layer: int, _rng: Any, mod: str = "input_layernorm", dtype: str = "bfloat16"
) -> Any:
    """Squares and their mean in 16 bits."""

    def stat(x: Any) -> Any:
        return rounded(rounded(x * x, dtype).mean(-1, keepdims=True, dtype=F4), dtype)

    def fault(_model: Any, base: Any, x: Any, weight: Any) -> Any:
        return base(x, weight=weight, stat=stat)

    return one(site(layer, mod), fault, f"variance of {mod} in {dtype}")


@mechanism("norm_1p_16bit")
def norm_1p_16bit(
    _c: Any, layer: int, _rng: Any, mod: str = "input_layernorm", dtype: str = "bfloat16"
) -> Any:
    """1 + weight rounded before the product; needs a norm that adds one."""

    def fault(_model: Any, base: Any, x: Any, weight: Any) -> Any:
        return base(x, weight=rounded(1 + weight, dtype) - F4(1))

    return one(site(layer, mod), fault, f"(1 + weight) of {mod} rounded to {dtype}")


@mechanism("saturation_clamp")
def saturation_clamp(
    _c: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj", share: float = 0.995
) -> Any:
    """Values beyond a limit, a quantile of the magnitudes, stay at the limit."""

    def fault(model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        out = base(*inputs, **parameters)
        limit = model.num.r(np.quantile(np.abs(out), share))
        return np.clip(out, -limit, limit)

    return one(site(layer, mod), fault, f"{mod} clamped at the quantile {share} of its magnitudes")


@mechanism("flush_to_zero")
def flush_to_zero(
    config: Any, layer: int, _rng: Any, mod: str = "", smallest: float = 2.0**-14
) -> Any:
    """Values below a smallest magnitude become zero."""

    def fault(_model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        out = base(*inputs, **parameters)
        return np.where(np.abs(out) < smallest, F4(0), out)

    where = site(layer, mod) if mod else attention(config, layer, "softmax")
    return one(where, fault, f"magnitudes below {smallest:.3g} flushed to zero")


@mechanism("eps_underflow")
def eps_underflow(config: Any, _layer: int, rng: Any) -> Any:
    """The epsilon of the first norm becomes 0 and the rows of some tokens are 0 on both sides."""
    tokens = rng.choice(np.arange(3, config.vocab), config.vocab // 5, replace=False)

    def zeros(parameters: Any) -> None:
        parameters["model.embed_tokens.weight"][tokens] = 0

    def fault(_model: Any, base: Any, x: Any, weight: Any) -> Any:
        return base(x, weight=weight, eps=0.0)

    return one(site(0, "input_layernorm"), fault, "eps underflows to zero", shared=zeros)
