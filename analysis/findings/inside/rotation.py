"""Rotary embedding opened up: phases from positions, and the rotation of either layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from analysis.findings.scene import Scene
from core.runs import Array

Rounding = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Queries or keys (batch, head, token, width) turned by position.

    `heads_last`: tokens come before heads. `positions` (batch, token). `rounded` names the parts of
    the phase that a rounding is applied to: frequencies, positions, phase.
    """

    values: Array
    positions: Array
    base: float
    interleaved: bool
    heads_last: bool = False
    rounded: tuple[str, ...] = ()

    def output(self, rounding: Rounding | None = None) -> Array:
        """The rotated values; `rounding` is applied to the parts named by `rounded`."""
        return self.turn(self.phase(rounding))

    def phase(self, rounding: Rounding | None = None) -> Array:
        """Angles (batch, 1, token, width / 2)."""
        width = self.values.shape[-1]
        part = self._parts(rounding)
        frequency = part("frequencies", self.base ** (-np.arange(0, width, 2) / width))
        position = part("positions", self.positions.astype(np.float64))
        return part("phase", position[:, None, :, None] * frequency)

    def turn(self, phase: Array) -> Array:
        """The values turned by angles."""
        cos, sin = np.cos(phase), np.sin(phase)
        values = self.values.swapaxes(1, 2) if self.heads_last else self.values
        half = values.shape[-1] // 2
        turned = np.empty(np.broadcast_shapes(values.shape, (*phase.shape[:-1], 2 * half)))
        first, second = (
            (slice(0, None, 2), slice(1, None, 2))
            if self.interleaved
            else (slice(0, half), slice(half, None))
        )
        turned[..., first] = values[..., first] * cos - values[..., second] * sin
        turned[..., second] = values[..., first] * sin + values[..., second] * cos
        return turned.swapaxes(1, 2) if self.heads_last else turned

    def _parts(self, rounding: Rounding | None) -> Callable[[str, Array], Array]:
        if rounding is None:
            return lambda _, values: values
        keep = rounding
        return lambda name, values: keep(values) if name in self.rounded else values

    def laid(self, interleaved: bool) -> Rotation:
        """The same with pairs of neighbours, or of halves."""
        return replace(self, interleaved=interleaved)

    def based(self, base: float) -> Rotation:
        """The same with another base."""
        return replace(self, base=base)

    def at(self, positions: Array) -> Rotation:
        """The same at other positions."""
        return replace(self, positions=positions)


def rotation_of(scene: Scene) -> Rotation | None:
    """The model that gives the replayed output; None where none does."""
    if scene.kind != "rope":
        return None
    values = scene.given.inputs.get(scene.site.output)
    positions = next(iter(scene.given.whole), None)
    if values is None or positions is None or values.ndim != 4 or values.dtype.kind != "f":
        return None
    places = np.atleast_2d(positions)
    base = scene.attribute("base")
    for heads_last in (False, True):
        tokens = values.shape[1 if heads_last else 2]
        if places.shape[-1] != tokens or values.shape[0] % places.shape[0]:
            continue
        for interleaved in (False, True):
            model = Rotation(
                values=values,
                positions=np.broadcast_to(places, (values.shape[0], tokens)),
                base=float(base) if isinstance(base, int | float) else 1e4,
                interleaved=interleaved,
                heads_last=heads_last,
            )
            if _agrees(model, scene.error.expected):
                return model
    return None


def _agrees(model: Rotation, expected: Array) -> bool:
    found = model.output()
    if found.shape != expected.shape:
        return False
    size = float(np.sqrt(np.mean(expected**2)))
    return float(np.max(np.abs(found - expected))) <= 1e-5 * size
