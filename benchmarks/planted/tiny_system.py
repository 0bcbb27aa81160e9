"""Faults of the tiny model in quantisation, parallelism, gradients, execution and setup."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.planted.tiny_registry import F4, mechanism, one, plant, rounded, site


@mechanism("int8_wrap")
def int8_wrap(_c: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj", mul: float = 0.8) -> Any:
    """Codes beyond ±127 wrap around; the scale is a little too small so that there are some."""

    def fault(_model: Any, base: Any, x: Any) -> Any:
        return base(x, mul=mul, code=lambda q: (q.astype(np.int32) + 128) % 256 - 128)

    return one(site(layer, mod) + ".input_quantizer", fault, "int8 codes wrap around")


@mechanism("nibble_order")
def nibble_order(_c: Any, layer: int, _rng: Any, mod: str = "mlp.up_proj") -> Any:
    """The two int4 codes of a byte are unpacked in the wrong order."""

    def fault(_model: Any, base: Any, x: Any, weight: Any, **parameters: Any) -> Any:
        swapped = weight.reshape(weight.shape[0], -1, 2)[..., ::-1].reshape(weight.shape)
        return base(x, weight=swapped, **parameters)

    return one(site(layer, mod), fault, f"nibbles of {mod} swapped")


@mechanism("fp8_fnuz")
def fp8_fnuz(_c: Any, layer: int, _rng: Any, mod: str = "mlp.up_proj", factor: float = 0.5) -> Any:
    """Bits of one e4m3 encoding read as the other: half or twice the value."""

    def fault(_model: Any, base: Any, *inputs: Any, weight: Any, **parameters: Any) -> Any:
        return base(*inputs, weight=weight * F4(factor), **parameters)

    return one(site(layer, mod), fault, f"e4m3 weights of {mod} read as the other encoding")


@mechanism("stale_scale")
def stale_scale(_c: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj", at: int = 1) -> Any:
    """From step `at` on activations are quantised with the scale of the step before."""
    scales: dict[int, Any] = {}

    def fault(model: Any, base: Any, x: Any) -> Any:
        codes, scale = base(x)
        scales[model.step] = scale
        if model.step < at:
            return codes, scale
        old = scales[model.step - 1]
        if model.c.quant == "int8":
            return np.clip(np.rint(x / old), -127, 127).astype(np.int8), old
        return rounded(np.clip(x / old, -448, 448), "float8_e4m3fn"), old

    where = site(layer, mod) + ".input_quantizer"
    return one(where, fault, "scale of the step before", step=str(at))


@mechanism("missing_reduce")
def missing_reduce(
    config: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj", lost: int = 1
) -> Any:
    """The partial sum of one rank is not in the result."""

    def fault(_model: Any, base: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        x = x.copy()
        width = x.shape[-1] // config.tp
        x[..., lost * width : (lost + 1) * width] = 0
        return base(x, weight=weight, bias=bias)

    cause = f"partial sum of rank {lost} of {mod} missing"
    return one(site(layer, mod), fault, cause, alt=("tile_tail",))


@mechanism("bias_times_tp")
def bias_times_tp(config: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj") -> Any:
    """Every rank adds the bias."""

    def fault(_model: Any, base: Any, x: Any, weight: Any, bias: Any) -> Any:
        return base(x, weight=weight, bias=bias * F4(config.tp))

    return one(site(layer, mod), fault, f"bias of {mod} added {config.tp} times")


@mechanism("zero_grad_missing")
def zero_grad_missing(
    _c: Any, layer: int, _rng: Any, mod: str = "self_attn.o_proj", at: int = 1
) -> Any:
    """From step `at` on the gradient holds that of the step before."""
    kept: dict[str, Any] = {}

    def fault(model: Any, base: Any, *gradients: Any) -> Any:
        out, parameters = base(*gradients)
        for name, value in parameters.items():
            kept[name] = model.num.r(kept[name] + value) if model.step >= at else value
        return out, dict(kept)

    where = site(layer, mod)
    slot = "backward_params.weight"
    cause = f"gradient of {mod} not reset"
    return plant(site=where, slot=slot, ops={f"{where}:bwd": fault}, step=str(at), cause=cause)


@mechanism("attn_backward")
def attn_backward(_c: Any, layer: int, _rng: Any, kind: str = "dropped") -> Any:
    """The row sum of dP·P is dropped or scaled: gradients of queries and keys are wrong."""
    factor = F4({"dropped": 0.0, "half": 0.5, "double": 2.0}[kind])

    def fault(_model: Any, base: Any, *gradients: Any) -> Any:
        return base(*gradients, delta_fix=lambda delta: delta * factor)

    where = site(layer, "self_attn.attn")
    cause = f"row term of the attention gradient {kind}"
    return plant(site=where, slot="backward_output.0", ops={f"{where}:bwd": fault}, cause=cause)


@mechanism("stale_buffer")
def stale_buffer(_c: Any, layer: int, _rng: Any, mod: str = "mlp.down_proj", at: int = 1) -> Any:
    """At step `at` an operator returns its output of the step before."""
    kept: dict[int, Any] = {}

    def fault(model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        kept[model.step] = base(*inputs, **parameters)
        return kept[model.step - (model.step == at)]

    return one(site(layer, mod), fault, f"{mod} returns the output of step {at - 1}", step=str(at))


@mechanism("bit_flip")
def bit_flip(_c: Any, layer: int, rng: Any, mod: str = "mlp.up_proj", bit: int = 29) -> Any:
    """One bit of one element of the output; bit 23 is the lowest of the exponent, 31 the sign."""

    def fault(_model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        out = np.ascontiguousarray(base(*inputs, **parameters), F4).copy()
        real = np.flatnonzero(np.abs(out) > np.abs(out).mean())
        out.reshape(-1).view(np.uint32)[rng.choice(real)] ^= np.uint32(1 << bit)
        return out

    return one(site(layer, mod), fault, f"bit {bit} of one element of {mod} flipped")


@mechanism("router_bias_missing")
def router_bias_missing(_c: Any, layer: int, _rng: Any) -> Any:
    """Experts are chosen without the correction bias."""

    def fault(_model: Any, base: Any, logits: Any, bias: Any) -> Any:  # noqa: ARG001
        return base(logits, bias=None)

    return one(site(layer, "mlp.router"), fault, "correction bias left out")


@mechanism("different_weights")
def different_weights(_c: Any, _layer: int, rng: Any, size: float = 0.02, which: str = "") -> Any:
    """All weights, or those whose name holds `which`, are another checkpoint's."""
    first = {"": "model.embed_tokens", "proj": "model.layers.0.self_attn.q_proj"}[which]

    def edit(parameters: Any) -> None:
        for name, value in parameters.items():
            if which in name:
                noise = rng.standard_normal(value.shape) * size * value.std()
                parameters[name] = rounded(value + noise.astype(F4), "bfloat16")

    slot, cause = "forward_params.weight", "weights of another checkpoint"
    return plant(site=first, slot=slot, params=edit, verdict="setup", cause=cause)


@mechanism("different_mask")
def different_mask(config: Any, _layer: int, _rng: Any, kind: str = "all") -> Any:
    """The candidate is given a mask without padding, or with a token more of it."""

    def edit(mask: Any) -> Any:
        if kind == "all":
            mask[:] = 1
        elif config.pad == "right":
            mask[1, config.seq - config.n_pad - 1] = 0
        else:
            mask[1, config.n_pad] = 0
        return mask

    where, slot = "model.causal_mask", "forward_input.0"
    return plant(site=where, slot=slot, amask=edit, verdict="setup", cause=f"another mask ({kind})")
