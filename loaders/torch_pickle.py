"""The description in a `.pt` archive, read by a small machine that can call nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from language import say
from loaders.dtypes import canonical
from loaders.part import RefusedError
from loaders.pickle_machine import Machine, Name

LONGEST = 16 << 20  # bytes of a description; a tensor takes about 160
_STORAGES: Mapping[str, str] = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A storage: the member `data/<key>` with `count` elements of `dtype` ("": bytes)."""

    key: str
    dtype: str
    count: int


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor: a view of a storage. Offset and strides in elements."""

    storage: Stored
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def described(program: bytes, where: str) -> Any:
    """What a `data.pkl` describes: a `Described` or a dict, list or plain value around some.

    What would be the result of any other call is an `Opaque`; nothing is ever called. RefusedError
    code `pickle` for opcodes that PyTorch does not write.
    """
    if len(program) > LONGEST:
        raise RefusedError("pickle", where, say("its description is too long."))
    return _Tensors(where, _BUILDERS).followed(program)


class _Tensors(Machine):
    """The machine, with the storages that tensors lie in."""

    def storage(self) -> None:
        """The storage that a persistent id names."""
        kind, storage, key, _, count = self.stack.pop()
        name = storage.text.rpartition(".")[2] if isinstance(storage, Name) else ""
        if kind != "storage" or name not in _STORAGES or not _is_count(count):
            raise self.refusal(say("a storage of an unknown kind"))
        self.stack.append(Stored(str(key), _STORAGES[name], count))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _counts(values: Any) -> tuple[int, ...]:
    if not isinstance(values, tuple) or len(values) > 64 or not all(map(_is_count, values)):
        raise TypeError
    return values


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> Described:
    """`_rebuild_tensor_v2`; what follows the strides concerns training only, or is refused."""
    if not isinstance(storage, Stored) or not _is_count(offset) or any(rest[2:]):
        raise TypeError  # the last one: a lazy conjugate or negation
    return Described(storage, storage.dtype, offset, _counts(shape), _counts(strides))


def _no_items() -> dict[Any, Any]:
    return {}


def _size(values: Any) -> tuple[int, ...]:
    return _counts(tuple(values))


def _tensor_of_dtype(*arguments: Any) -> Described:
    """`_rebuild_tensor_v3`: bytes, with the format by name."""
    storage, offset, shape, strides, _, _, dtype, *rest = arguments
    name = canonical(dtype.text) if isinstance(dtype, Name) else None
    if not isinstance(storage, Stored) or not _is_count(offset) or name is None or any(rest):
        raise TypeError
    return Described(storage, name, offset, _counts(shape), _counts(strides))


def _parameter(tensor: Any, *_: Any) -> Described:
    if not isinstance(tensor, Described):
        raise TypeError
    return tensor


_BUILDERS: Mapping[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_of_dtype,
    "torch._utils._rebuild_parameter": _parameter,
    "torch.Size": _size,
    "torch.device": lambda *named: Name(":".join(map(str, named))),
    "collections.OrderedDict": _no_items,
}
