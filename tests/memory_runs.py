"""Runs made of arrays in memory, for tests of everything above the loaders."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from core.errors import LoadError
from core.runs import Array, Run, Selection
from core.tensors import Pass, Slot, TensorInfo

_KINDS: Mapping[str, tuple[Pass, Slot]] = {
    "forward_input": ("forward", "input"),
    "forward_output": ("forward", "output"),
    "forward_params": ("parameter", "parameter"),
    "backward_input": ("backward", "input"),
    "backward_output": ("backward", "output"),
    "backward_params": ("gradient", "parameter"),
}


@dataclass(frozen=True)
class MemoryValues:
    arrays: Mapping[str, Array]
    unreadable: frozenset[str] = frozenset()

    def chunks(self, tensor: TensorInfo, elements: int, start: int = 0) -> Iterator[Array]:
        if tensor.id in self.unreadable:
            raise LoadError(f"{tensor.id} is damaged.")
        flat = np.ravel(self.arrays[tensor.id])
        for at in range(start, flat.size, elements):
            yield flat[at : at + elements]

    def read(self, tensor: TensorInfo, selection: Selection) -> Array:
        return self.arrays[tensor.id][selection]

    def is_seekable(self, tensor: TensorInfo) -> bool:
        return tensor.size > 0

    def only(self, tensors: Collection[str]) -> "MemoryValues":
        return MemoryValues({name: self.arrays[name] for name in tensors}, self.unreadable)


def described(name: str, array: Array, order: int, /, **facts: object) -> TensorInfo:
    """`layers.0.mlp/softmax:forward_output.0` is an operator's; without `/op`, a module's."""
    where, _, label = name.rpartition(":")
    module, _, op = where.partition("/")
    kind, _, argument = label.partition(".")
    pass_, slot = _KINDS[kind]
    info = TensorInfo(
        id=name,
        name=name,
        module=module,
        op=op,
        argument=argument,
        pass_=pass_,
        slot=slot,
        shape=array.shape,
        storage_dtype=array.dtype.name,
        dtype=array.dtype.name,
        order=order,
        order_recorded=True,
    )
    return replace(info, **facts)  # type: ignore[arg-type]


def run_of(
    arrays: Mapping[str, Array],
    *,
    label: str = "run",
    facts: Mapping[str, Mapping[str, object]] | None = None,
    unreadable: frozenset[str] = frozenset(),
) -> Run:
    """A run in the order of `arrays`; `facts` override single descriptions."""
    facts = facts or {}
    infos = [
        described(name, array, n, **facts.get(name, {}))
        for n, (name, array) in enumerate(arrays.items())
    ]
    values = {info.id: array for info, array in zip(infos, arrays.values(), strict=True)}
    return Run(
        label=label,
        fingerprint=f"fingerprint of {label}",
        tensors={info.id: info for info in infos},
        values=MemoryValues(values, unreadable),
    )
