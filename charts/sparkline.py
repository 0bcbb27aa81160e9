"""The path as a thumbnail: a small SVG, floor band included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.verdict import LIMIT
from charts.tokens import Theme

_LOW, _HIGH = 0.1, 1e3  # times floor at the lower and upper edge


def sparkline(values: Sequence[float], theme: Theme, *, width: int = 400, height: int = 36) -> str:
    """`values` are times floor in execution order; NaN is left out, at most one point a pixel."""
    kept = np.asarray([value for value in values if not np.isnan(value)], dtype=float)
    if kept.size > width:
        starts = np.linspace(0, kept.size, width, endpoint=False).astype(int)
        kept = np.maximum.reduceat(kept, starts)
    ys = height - 1 - (height - 2) * _share(kept)
    xs = np.linspace(0, width, kept.size) if kept.size > 1 else np.zeros(kept.size)
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    band = height - 1 - (height - 2) * float(_share(np.array([LIMIT]))[0])
    colour = theme.text if kept.size and kept.max() > LIMIT else theme.reference
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'preserveAspectRatio="none"><rect y="{band:.1f}" width="{width}" '
        f'height="{height - band:.1f}" fill="{theme.surface_2}"/>'
        + (
            f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5" '
            'vector-effect="non-scaling-stroke"/>'
            if line
            else ""
        )
        + "</svg>"
    )


def _share(values: np.ndarray) -> np.ndarray:
    """Position in [0, 1] between the edges on a log scale."""
    share: np.ndarray = np.log10(np.clip(values, _LOW, _HIGH) / _LOW) / np.log10(_HIGH / _LOW)
    return share
