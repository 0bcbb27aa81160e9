"""What a dump says about one tensor, and the place in the file that follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Pass = Literal["forward", "backward", "parameter", "gradient", "update"]
Slot = Literal["input", "output", "parameter"]

_LABELS: Mapping[tuple[str, str], str] = {
    ("parameter", "parameter"): "forward_params",
    ("gradient", "parameter"): "backward_params",
    ("update", "parameter"): "update_params",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tensor of a run without its values; docs/dump-format.md defines every field.

    `module` is the dotted path (`""` is the model itself), `op` the functional call inside it,
    `argument` the path into the call's arguments or results, or the name of the parameter.
    `attrs` holds scalars only. `stride` counts elements, of the tensor as it lay in memory.
    """

    module: str
    argument: str
    pass_: Pass
    slot: Slot
    module_class: str = ""
    op: str = ""
    call: int = 0
    parameter: str = ""
    dims: tuple[str, ...] = ()
    stride: tuple[int, ...] | None = None
    contiguous: bool = True
    same_as: str = ""
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slot_label(self) -> str:
        """Slot in torch_xray's words: `forward_output.0`, `forward_params.weight`."""
        kind = _LABELS.get((self.pass_, self.slot)) or f"{self.pass_}_{self.slot}"
        return f"{kind}.{self.argument}"

    @property
    def group(self) -> str:
        """HDF5 path of the group of this call."""
        group = f"/{escaped(self.module)}@{self.call}"
        return f"{group}/{escaped(self.op)}" if self.op else group

    @property
    def path(self) -> str:
        """HDF5 path of the dataset."""
        return f"{self.group}/{escaped(self.slot_label)}"


def escaped(name: str) -> str:
    """The name as one component of an HDF5 path: `/`, `%` and control characters as `%XX`."""
    return re.sub(r"[/%\x00-\x1f\x7f]", lambda found: f"%{ord(found[0]):02X}", name)
