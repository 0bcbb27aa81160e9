"""Reference functions: what an operator of a kind computes, in float64, and what rounding may do.

One family a module of `analysis.replay.functions`; a plugin of the user's registers the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from core.errors import CompareError, ExplorerError
from core.findings import Fact
from core.runs import Array
from language import say

Attributes = Mapping[str, Fact]
Rows = Literal["leading", "query", "token", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """Values one call was handed: floats in float64, integers and booleans as they are.

    `inputs` and `parameters` are in the order of the arguments. `shapes` and `dtypes` are those of
    the outputs as dumped (the shape reduced to the sampled rows). `earlier` are this module's
    outputs of the step before, for operators that keep a state. `positions` are the indices of the
    sampled rows along the token axis, None when every row is there. `ranks` holds the first input
    of every rank in order, for collectives.
    """

    inputs: Mapping[str, Array]
    parameters: Mapping[str, Array] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    earlier: Mapping[str, Array] = field(default_factory=dict)
    positions: Array | None = None
    ranks: tuple[Array, ...] = ()

    @property
    def floats(self) -> list[Array]:
        """The float inputs in order."""
        return [v for v in self.inputs.values() if v.dtype.kind == "f"]

    @property
    def whole(self) -> list[Array]:
        """The integer inputs in order."""
        return [v for v in self.inputs.values() if v.dtype.kind in "iu"]

    @property
    def masks(self) -> list[Array]:
        """The boolean inputs in order."""
        return [v for v in self.inputs.values() if v.dtype.kind == "b"]

    def parameter(self, *names: str) -> Array | None:
        """The first parameter of one of these names (last segment of a dotted one)."""
        for name, value in self.parameters.items():
            if name in names or name.rpartition(".")[2] in names:
                return value
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One output as float64 gives it, and how far an honest kernel may be from it.

    Every term is a variance coefficient, elementwise or scalar: `compute` in units of the squared
    unit roundoff of the arithmetic, `storage` of the dumped format (eager code rounds between the
    parts of an operator), `operands` of the format that matrix operands are rounded to where one
    is declared (TF32), `accumulators` of the squared relative error of a matrix engine's own
    accumulators, `steps` absolute. The rounding of the result itself is added to all of them.
    `common_compute` and `common_storage` are relative variances, in the same units, of an error
    that all elements of a row may share (the scale of a norm, a rounded probability): already in
    the other terms, and known apart because they do not average out along the row. With
    `fixed_weights` the weights themselves may have been rounded: an error that repeats row by row.
    `free` marks elements that rounding may decide (ties); `exact` outputs must be equal elsewhere.
    """

    value: Array
    compute: Array | float = 0.0
    storage: Array | float = 0.0
    operands: Array | float = 0.0
    accumulators: Array | float = 0.0
    steps: Array | float = 0.0
    common_compute: float = 0.0
    common_storage: float = 0.0
    fixed_weights: bool = False
    free: Array | None = None
    exact: bool = False


Answers = Mapping[str, Answer]
Compute = Callable[[Operands, Attributes], Answers]
Directions = Callable[[Operands, Attributes], Mapping[str, Mapping[str, Array]]]
Estimate = Callable[[Operands, Mapping[str, Array]], Mapping[str, Fact]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A registered reference function.

    `options` lists the values each attribute may take, the default first (`"auto"`: from the
    shapes); `continuous` gives attributes that may take any value, with the factor by which to
    nudge them. `rows` says along which axis it may be computed in part, `columns` that each output
    channel depends on its own row of every parameter alone. `directions` gives patterns
    in which a known small fault moves each output, by name and output. `estimate` solves for
    attributes that no list can hold, from operands and outputs.
    """

    kind: str
    compute: Compute
    options: Mapping[str, tuple[Fact, ...]]
    continuous: Mapping[str, float]
    rows: Rows
    columns: bool = False
    directions: Directions | None = None
    estimate: Estimate | None = None

    @property
    def defaults(self) -> dict[str, Fact]:
        """Each attribute at its default."""
        return {name: values[0] for name, values in self.options.items()}

    def __call__(self, given: Operands, attributes: Attributes) -> Answers:
        """Outputs by argument; attributes the call does not name are at their default.

        Raises CompareError where the operands are not those of such an operator; NumPy's errors
        where their shapes do not fit together (`analysis.replay.fit.UNFIT`).
        """
        if not given.inputs:
            raise CompareError(say("No input was captured."))
        with np.errstate(all="ignore"):
            return self.compute(given, {**self.defaults, **attributes})


FUNCTIONS: dict[str, Function] = {}
CLASSES: dict[str, str] = {}


def function(
    kind: str,
    *,
    classes: tuple[str, ...] = (),
    rows: Rows = "all",
    columns: bool = False,
    continuous: Mapping[str, float] | None = None,
    directions: Directions | None = None,
    estimate: Estimate | None = None,
    **options: tuple[Any, ...],
) -> Callable[[Compute], Compute]:
    """Register a reference function for a kind and for class or functional names.

    Raises ExplorerError when the kind is taken: two meanings of one word would judge at random.
    """

    def register(compute: Compute) -> Compute:
        if kind in FUNCTIONS:
            raise ExplorerError(
                say("There is already a reference function for {kind!r}.", kind=kind)
            )
        FUNCTIONS[kind] = Function(
            kind=kind,
            compute=compute,
            options=options,
            continuous=continuous or {},
            rows=rows,
            columns=columns,
            directions=directions,
            estimate=estimate,
        )
        CLASSES.update(dict.fromkeys(classes, kind))
        return compute

    return register
