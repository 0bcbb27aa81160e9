"""Harmless differences between two runs of the tiny model, each a kind of the honest pairs."""

from __future__ import annotations

from typing import Any

from benchmarks.planted.casebook import casebook


def register() -> None:
    """Add the kinds of this module to the casebook's own."""
    kinds = {"pad_mlp": _pad_mlp, "pad_ids": _pad_ids, "tied_experts": _tied_experts}
    casebook().faults.BENIGN.update(kinds, signed_zeros=_signed_zeros)


def _pad_mlp(config: Any, _layer: int, rng: Any) -> Any:
    """Garbage in padded rows of every down projection."""

    def scribble(model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        out = base(*inputs, **parameters).copy()
        padded = model.amask[:, -out.shape[1] :] == 0
        out[padded] = model.num.r(rng.standard_normal(out[padded].shape) * 5)
        return out

    sites = (f"model.layers.{layer}.mlp.down_proj" for layer in range(config.layers))
    return _plant(ops=dict.fromkeys(sites, scribble), cause="garbage in padded rows only")


def _pad_ids(_config: Any, _layer: int, _rng: Any) -> Any:
    """Another padding token."""

    def edit(ids: Any) -> Any:
        ids[ids == 0] = 2
        return ids

    return _plant(ids=edit, cause="another id for the padding token")


def _tied_experts(config: Any, _layer: int, _rng: Any) -> Any:
    """Two experts whose scores differ by less than a rounding, so that the choice may flip."""

    def edit(parameters: Any) -> None:
        for layer in range(config.layers):
            gate = parameters[f"model.layers.{layer}.mlp.gate.weight"]
            gate[1] = gate[0] * (1 + 2.0**-8)

    return _plant(shared=edit, cause="experts that tie are chosen by rounding")


def _signed_zeros(config: Any, layer: int, _rng: Any) -> Any:
    """Zeros of one activation come out as negative zeros."""

    def negate(_model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        out = base(*inputs, **parameters)
        out[out == 0] = -0.0
        return out

    site = f"model.layers.{min(layer, config.layers - 1)}.self_attn.attn"
    return _plant(ops={site: negate}, cause="zeros of the other sign")


def _plant(**options: Any) -> Any:
    return casebook().runner.Plant(verdict="rounding", **options)
