"""How the tensors of two runs become comparable: steps as data, each with its shapes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from core.tensors import TensorInfo

RunSide = Literal["reference", "candidate"]
Operation = Literal[
    "transpose",
    "squeeze",
    "unsqueeze",
    "merge",
    "unmerge",
    "pad_slice",
    "split",
    "concat",
    "sum",
    "replicated",
]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an adaptation, applied to every tensor of one side, or to groups of them.

    `arguments` by operation: transpose: the old axes in their new order. squeeze, unsqueeze, merge,
    unmerge: the new shape, equal in elements and row-major order. pad_slice, split: an axis, then
    start and stop of one or more ranges of it, which are joined. concat: an axis and the number of
    tensors in a group. sum, replicated: the number of tensors in a group. `before` and `after` are
    the shapes of the side's tensors around the step.
    """

    side: RunSide
    operation: Operation
    arguments: tuple[int, ...]
    before: tuple[Shape, ...]
    after: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What is done to a pair before it is compared.

    `reference_parts` and `candidate_parts` are further tensors of each side, after the pair's own,
    in the order the steps expect (shards by rank, the residual after the hidden state). `error` is
    the relative L2 error of the sample on which the steps were checked, NaN where only the shapes
    decided.
    """

    steps: tuple[Step, ...]
    reference_parts: tuple[TensorInfo, ...] = ()
    candidate_parts: tuple[TensorInfo, ...] = ()
    error: float = math.nan

    def parts(self, side: RunSide) -> tuple[TensorInfo, ...]:
        """The further tensors of one side."""
        return self.reference_parts if side == "reference" else self.candidate_parts

    def shape(self, side: RunSide, own: Shape) -> Shape:
        """Shape of one side after all steps, given that of its own tensor."""
        shapes = [step.after[0] for step in self.steps if step.side == side]
        return shapes[-1] if shapes else own
