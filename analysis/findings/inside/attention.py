"""Attention opened up: scores, mask, softmax and weighted sum, each of which may be varied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.findings.inside.softmax import masked_softmax
from analysis.findings.scene import Scene
from core.runs import Array

Mask = NDArray[np.bool_]
Softmax = Callable[[Array], Array]

KINDS = frozenset({"attention", "masked_softmax", "softmax", "matmul"})
# Every variation costs a whole attention; beyond this many scores only gross tests are worth it.
LARGEST = 1 << 24
_MASKED = -1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One attention call or one stage of an eager one.

    Axes: batch, head, query, key or width. `query`, `key`, `value` are None where the stage does
    not see them; `scores` is given where it starts from them and `weights` where it starts from
    probabilities. `groups` maps each query head to its key head. `cap` 0 is no soft cap, `bias` is
    added to capped scores. `layout` tells how the output lies: `merged` heads last, `last` or
    `first`; `scores` and `weights` are stages of their own.
    """

    query: Array | None = None
    key: Array | None = None
    value: Array | None = None
    mask: Mask | None = None
    bias: Array | None = None
    scores: Array | None = None
    weights: Array | None = None
    scale: float = 1.0
    cap: float = 0.0
    groups: tuple[int, ...] = ()
    layout: str = "merged"
    leak: float = -np.inf

    def logits(self) -> Array:
        """Scaled and capped scores before the mask."""
        if self.scores is not None:
            return self.scores
        if self.query is None or self.key is None:
            raise ValueError("This stage has no scores.")
        key = self.key[:, list(self.groups)]
        raw = np.matmul(self.query, key.swapaxes(-1, -2)) * self.scale
        capped = self.cap * np.tanh(raw / self.cap) if self.cap else raw
        return np.asarray(capped if self.bias is None else capped + self.bias)

    def probabilities(self, softmax: Softmax | None = None) -> Array:
        """Weights after mask and softmax."""
        if self.weights is not None:
            return self.weights
        return masked_softmax(self.logits(), self.mask, leak=self.leak, softmax=softmax)

    def output(self, weights: Array | None = None, softmax: Softmax | None = None) -> Array:
        """The stage's output in the shape it is dumped in; `weights` replace the probabilities."""
        if self.value is None:
            if self.layout == "scores":
                return self.logits()
            return self.probabilities(softmax) if weights is None else weights
        found = self.probabilities(softmax) if weights is None else weights
        return self.lay(np.matmul(found, self.value[:, list(self.groups)]))

    def lay(self, heads_first: Array) -> Array:
        """From (batch, head, query, width) to the dumped layout."""
        if self.layout == "first":
            return heads_first
        moved = heads_first.transpose(0, 2, 1, 3)
        return moved if self.layout == "last" else moved.reshape(*moved.shape[:2], -1)

    def by_head(self, laid: Array) -> Array:
        """From the dumped layout back to (batch, head, query, width)."""
        if self.layout in ("first", "scores", "weights"):
            return laid
        heads = len(self.groups)
        split = laid.reshape(*laid.shape[:2], heads, -1) if self.layout == "merged" else laid
        return np.asarray(split).transpose(0, 2, 1, 3)

    def scaled(self, scale: float) -> Attention:
        """The same with another scale of the scores."""
        return replace(self, scale=scale)

    def capped(self, cap: float) -> Attention:
        """The same with another soft cap; 0 is none."""
        return replace(self, cap=cap)

    def with_heads(self, groups: tuple[int, ...]) -> Attention:
        """The same with another map of query heads to key heads."""
        return replace(self, groups=groups)


def attention_of(scene: Scene) -> Attention | None:
    """The model that gives the replayed output from the call's operands; None where none does."""
    if scene.kind not in KINDS or scene.error.expected.size == 0:
        return None
    for model in _candidates(scene):
        if _agrees(model, scene.error.expected):
            return model
    return None


def _agrees(model: Attention, expected: Array) -> bool:
    try:
        with np.errstate(all="ignore"):
            found = model.output()
    except ValueError:
        return False
    if found.shape != expected.shape:
        return False
    finite = np.isfinite(found) & np.isfinite(expected)
    size = float(np.sqrt(np.mean(expected[finite] ** 2))) if finite.any() else 0.0
    return bool(finite.any()) and float(np.max(np.abs(found - expected)[finite])) <= 1e-6 * size


def _candidates(scene: Scene) -> Iterator[Attention]:
    floats = [v for v in scene.given.floats if v.ndim >= 3]
    if scene.kind == "attention" and len(floats) >= 3:
        yield from _fused(scene, floats[0], floats[1], floats[2])
    elif scene.kind in ("masked_softmax", "softmax") and floats:
        mask = next(iter(scene.given.masks), None)
        yield Attention(scores=floats[0], mask=mask, layout="weights")
    elif scene.kind == "matmul" and len(floats) >= 2 and floats[0].ndim == 4 == floats[1].ndim:
        yield from _stages(scene, floats[0], floats[1])


def _fused(scene: Scene, query: Array, key: Array, value: Array) -> Iterator[Attention]:
    if query.ndim != 4 or key.ndim != 4:
        return
    for order in ((0, 1, 2, 3), (0, 2, 1, 3)):
        q, k, v = (part.transpose(order) for part in (query, key, value))
        if q.shape[1] % k.shape[1]:
            continue
        for mask, bias in _masks(scene, q, k):
            for layout in ("merged", "first", "last"):
                yield Attention(
                    query=q,
                    key=k,
                    value=v,
                    mask=mask,
                    bias=bias,
                    scale=_number(scene, "scale", q.shape[-1] ** -0.5),
                    cap=_number(scene, "softcap", 0.0),
                    groups=_groups(q.shape[1], k.shape[1]),
                    layout=layout,
                )


def _stages(scene: Scene, left: Array, right: Array) -> Iterator[Attention]:
    if left.shape[1] % right.shape[1]:
        return
    groups = _groups(left.shape[1], right.shape[1])
    for default in (left.shape[-1] ** -0.5, 1.0):
        yield Attention(
            query=left,
            key=right,
            scale=_number(scene, "scale", default),
            cap=_number(scene, "softcap", 0.0),
            groups=groups,
            layout="scores",
        )
    for layout in ("merged", "first", "last"):
        yield Attention(weights=left, value=right, groups=groups, layout=layout)


def _masks(scene: Scene, query: Array, key: Array) -> Iterator[tuple[Mask | None, Array | None]]:
    rows, keys = query.shape[2], key.shape[2]
    for mask in scene.given.masks:
        if mask.shape[-1] == keys:
            yield mask.reshape((1,) * (4 - mask.ndim) + mask.shape), None
    for added in scene.given.floats[3:]:
        if added.shape[-1] == keys:
            bias = added.reshape((1,) * (4 - added.ndim) + added.shape)
            # Additive masks are minus infinity or a number nobody scores.
            allowed = bias > _MASKED
            yield None if allowed.all() else allowed, np.where(allowed, bias, 0.0)
    if not scene.given.masks:
        yield None, None
        place = scene.given.positions
        own = np.arange(rows) if place is None else place
        for start in (keys - rows if place is None else 0, 0):
            yield (np.arange(keys) <= (own + start)[:, None])[None, None], None


def _groups(heads: int, shared: int) -> tuple[int, ...]:
    return tuple(head * shared // heads for head in range(heads))


def _number(scene: Scene, name: str, default: float) -> float:
    value = scene.attribute(name)
    return float(value) if isinstance(value, int | float) and value is not True else default
