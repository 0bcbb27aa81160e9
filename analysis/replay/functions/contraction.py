"""What the functions share: a matrix product with the energy of its terms, and its floor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.replay.registry import Answer
from core.runs import Array

# Mean squared relative error of one rounding in units of u², for a significand spread evenly in
# log2: E[(delta/u)²] = 0.1803 (measured 0.4246² to 0.4253² on bf16, fp16, e4m3).
ROUNDING = 0.1803


@dataclass(frozen=True, slots=True)
class Product:
    """x @ w, and `energy` = sum over k of x² w²: what its rounding errors are relative to.

    Never |y|: where terms cancel, the errors of the terms stay (Higham & Mary 2019).
    """

    value: Array
    energy: Array
    length: int

    @property
    def compute(self) -> Array:
        """Accumulation in order: 0.18 (K + 1)(energy / 2 + y² / 3), the sequential worst case."""
        return ROUNDING * (self.length + 1) * (self.energy / 2 + self.value**2 / 3)

    @property
    def operands(self) -> Array:
        """Both operands rounded once to a declared narrower format."""
        return 2 * ROUNDING * self.energy

    @property
    def accumulators(self) -> Array:
        """Alignment and truncation inside matrix engines, relative to the sum and its terms."""
        return self.value**2 + self.energy / 4


def product(x: Array, w: Array) -> Product:
    """X @ w with broadcasting, float64."""
    return Product(x @ w, (x * x) @ (w * w), x.shape[-1])


def answer(made: Product, *, value: Array | None = None, storage: Array | float = 0.0) -> Answer:
    """The answer of an operator that is one matrix product, perhaps with something added."""
    return Answer(
        value=made.value if value is None else value,
        compute=made.compute,
        storage=storage,
        operands=made.operands,
        accumulators=made.accumulators,
    )


def repeated_heads(x: Array, heads: int, *, tiled: bool = False) -> Array:
    """(B, groups, …) with every group's head given to its query heads, in order or tiled."""
    groups = x.shape[1]
    if groups == heads:
        return x
    index = np.arange(heads) % groups if tiled else np.arange(heads) * groups // heads
    return x[:, index]


def as_shaped(x: Array, shape: tuple[int, ...]) -> Array:
    """(B, H, S, D) in the layout of the dumped output: itself, (B, S, H, D) or (B, S, H·D)."""
    if x.ndim != 4 or x.shape == shape:
        return x
    turned = x.transpose(0, 2, 1, 3)
    return turned.reshape(shape) if turned.size == int(np.prod(shape)) else turned
