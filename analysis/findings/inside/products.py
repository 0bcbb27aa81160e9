"""Matrix products opened up: operands as they are multiplied, and partial sums over K."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.findings.rounding import round_to
from analysis.findings.scene import Scene
from core.runs import Array

KINDS = frozenset({"linear", "row_linear", "lora_linear", "int4_linear", "quant_linear"})
LARGEST = 1 << 31  # multiplications that one variation may cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """y = x wᵀ + rest: x (…, K), w (O, K), `rest` what is added besides (bias, adapter)."""

    x: Array
    w: Array
    rest: Array

    @property
    def length(self) -> int:
        """K."""
        return int(self.x.shape[-1])

    def output(self, x: Array | None = None, w: Array | None = None) -> Array:
        """The product, with other operands of the same shape if given."""
        left, right = (self.x if x is None else x), (self.w if w is None else w)
        return np.asarray(left @ right.T + self.rest)

    def part(self, start: int, stop: int) -> Array:
        """The sum over K from start to stop, without the rest."""
        return np.asarray(self.x[..., start:stop] @ self.w[:, start:stop].T)

    def parts(self, count: int) -> list[Array]:
        """The sums of `count` equal pieces of K; none when K does not divide."""
        if self.length % count:
            return []
        size = self.length // count
        return [self.part(i * size, (i + 1) * size) for i in range(count)]

    def accumulated(self, dtype: str, block: int) -> Array:
        """The product with its running sum rounded every `block` terms, in order of K."""
        total = np.zeros((*self.x.shape[:-1], self.w.shape[0]))
        for start in range(0, self.length, block):
            total = round_to(total + self.part(start, start + block), dtype)
        return np.asarray(total + self.rest)

    def energy(self) -> Array:
        """Sum over K of x²w², the scale of a product's rounding errors."""
        return np.asarray((self.x**2) @ (self.w**2).T)


def product_of(scene: Scene) -> Product | None:
    """Effective operands of a linear operator, confirmed by the replayed output; None without."""
    if scene.kind not in KINDS:
        return None
    for x, w, rest in _operands(scene):
        if w.ndim != 2 or x.shape[-1] != w.shape[1] or x.size * w.shape[0] > LARGEST:
            continue
        model = Product(x=x, w=w, rest=rest)
        found, expected = model.output(), scene.error.expected
        if found.shape == expected.shape and _near(found, expected):
            return model
    return None


def _near(found: Array, expected: Array) -> bool:
    finite = np.isfinite(expected)
    size = float(np.sqrt(np.mean(expected[finite] ** 2))) if finite.any() else 0.0
    # Weights that the operator rounds itself (int4) leave a small difference.
    return float(np.sqrt(np.mean((found - expected)[finite] ** 2))) <= 1e-2 * size


def _operands(scene: Scene) -> Iterator[tuple[Array, Array, Array]]:
    given = scene.given
    weight = given.parameter("weight")
    if weight is None:
        return
    bias = given.parameter("bias")
    rest = np.zeros(1) if bias is None else bias.astype(np.float64)
    w = weight.astype(np.float64)
    x = next(iter(given.inputs.values()), np.zeros(1)).astype(np.float64)
    if scene.kind == "quant_linear":
        w = w * _scale(given.parameter("weight_scale"))
        x = x * _scale(given.floats[-1] if len(given.inputs) > 1 else None)
    elif scene.kind == "int4_linear":
        w = dequantised(w, given.parameter("weight_scale"), given.parameter("weight_zero"))
    elif scene.kind == "lora_linear":
        down, up = given.parameter("lora_A"), given.parameter("lora_B")
        if down is not None and up is not None:
            rest = scene.error.expected - x @ w.T
    yield x, w, rest


def _scale(scale: Array | None) -> Array | float:
    return 1.0 if scale is None else scale.astype(np.float64)


def dequantised(codes: Array, scale: Array | None, zero: Array | None) -> Array:
    """Group-quantised weight (O, K) in float64; scale and zero point (O, K / group)."""
    if scale is None:
        return codes
    groups = scale.shape[-1]
    split = codes.reshape(codes.shape[0], groups, -1)
    shift = 0.0 if zero is None else zero.astype(np.float64)[..., None]
    return np.asarray(((split - shift) * scale.astype(np.float64)[..., None]).reshape(codes.shape))
