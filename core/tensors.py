"""One named array of a run, described without its values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Pass = Literal["forward", "backward", "parameter", "gradient", "update", "unknown"]
Slot = Literal["input", "output", "parameter", "value"]

_SLOT_LABELS: Mapping[tuple[str, str], str] = {
    ("parameter", "parameter"): "forward_params",
    ("gradient", "parameter"): "backward_params",
    ("update", "parameter"): "update_params",
}


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """What a dump says of a tensor whose values it does not hold; None where it says nothing.

    Extremes, mean, L2 norm and mean magnitude are over all elements, non-finite ones included, as
    the writer of the dump computed them. `resolution` is the relative error with which it wrote
    them down. `checksum` is equal for equal bytes (`crc32:4799de0f`), "" where there is none; those
    of different kinds say nothing together.
    """

    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    norm: float | None = None
    magnitude: float | None = None
    resolution: float = 0.0
    checksum: str = ""

    @property
    def has_statistics(self) -> bool:
        """Whether it says anything but a checksum."""
        numbers = (self.minimum, self.maximum, self.mean, self.norm, self.magnitude)
        return any(number is not None for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """Where a tensor stands in its run and how it is stored; no data.

    `id` is unique in the run and what links carry: `step0/rank0/` (only when the dump knows steps
    or ranks) followed by `name`, the name the dump itself uses. `module` is the dotted module path
    (`""` is the model itself), `op` the functional call inside it (`"softmax"`, `"add_1"`), empty
    for the module's own tensors. `call` counts the calls of a module within one step, from 0.

    `pass_` and `slot` together say what the tensor is: forward input or output; backward input
    (gradient of an output, handed in) or output (gradient of an input, handed on); parameter;
    gradient of a parameter; update (the parameter after the optimiser's step).

    `order` is the position in execution order within the run; `order_recorded` is False when it was
    inferred from names or file layout. `storage_dtype` is how the bytes lie in the file, `dtype`
    the logical format (`bfloat16` inside a `float32` or `uint16` dataset); `dtype_inferred` says
    that the latter was guessed from the former. Shapes are in elements, row-major.
    """

    id: str
    name: str
    module: str
    argument: str
    pass_: Pass
    slot: Slot
    shape: tuple[int, ...]
    storage_dtype: str
    dtype: str
    order: int
    module_class: str = ""
    op: str = ""
    call: int = 0
    step: int | None = None
    rank: int | None = None
    order_recorded: bool = False
    dtype_inferred: bool = False
    dims: tuple[str, ...] = ()
    summary: TensorSummary | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """Dotted path of the operator: the module, and inside it the functional call."""
        return f"{self.module}.{self.op}" if self.module and self.op else self.module or self.op

    @property
    def slot_label(self) -> str:
        """Slot as the field writes it: `forward_output.0`, `forward_params.weight` and so on."""
        kind = _SLOT_LABELS.get((self.pass_, self.slot))
        if kind is None:
            kind = self.slot if self.pass_ == "unknown" else f"{self.pass_}_{self.slot}"
        return f"{kind}.{self.argument}" if self.argument else kind

    @property
    def has_values(self) -> bool:
        """Whether the dump holds the values, so that they can be read."""
        return self.summary is None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)
