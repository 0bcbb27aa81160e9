"""Names of planted faults and how a builder says what it plants in the tiny model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.planted.casebook import casebook

# (config, layer, generator, **options) -> Plant of the casebook
Builder = Callable[..., Any]
BUILDERS: dict[str, Builder] = {}
F4 = np.float32


def mechanism(slug: str) -> Callable[[Builder], Builder]:
    """Enter a builder under a slug of the casebook's vocabulary."""

    def enter(builder: Builder) -> Builder:
        BUILDERS[slug] = builder
        return builder

    return enter


def register() -> None:
    """Add the builders to the casebook's own; a slug it plants itself must not be taken."""
    known = casebook().runner.MECH
    for slug, builder in BUILDERS.items():
        if known.setdefault(slug, builder) is not builder:
            raise ValueError(f"{slug} is planted by the casebook already")


def site(layer: int, rest: str) -> str:
    """Path of a module in a layer."""
    return f"model.layers.{layer}.{rest}"


def attention(config: Any, layer: int, eager: str) -> str:
    """The fused attention of a layer, or the part of the eager one that is named."""
    return site(layer, "self_attn." + ("attn" if config.attn == "fused" else eager))


def plant(**options: Any) -> Any:
    """A Plant of the casebook."""
    return casebook().runner.Plant(**options)


def one(where: str, function: Callable[..., Any], cause: str, **options: Any) -> Any:
    """A fault in the one operator at `where`: (model, base, *inputs, **parameters) -> output."""
    return plant(site=where, ops={where: function}, cause=cause, **options)


def rounded(values: Any, dtype: str) -> Any:
    """Values rounded to a format, as float32."""
    return casebook().tinymodel.cast(values, dtype)
