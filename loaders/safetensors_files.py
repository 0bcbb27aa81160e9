"""Files of safetensors: a JSON header, then the values in one piece each. A state of parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

import numpy as np

from core.runs import Problem
from core.tensors import TensorInfo
from language import say
from loaders.encoding import Encoding, meant
from loaders.file_bytes import FileBytes, bytes_at
from loaders.names import last_known, natural_key, rank_of, shown, step_of
from loaders.naming import Stored, bounded
from loaders.part import DumpFile, Part, RefusedError, Source
from loaders.registry import LOADERS, Loader
from loaders.strided import strided

# Format, and the type of its bytes.
_FORMATS: Mapping[str, tuple[str, str]] = {
    "F64": ("float64", "<f8"),
    "F32": ("float32", "<f4"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16", "<u2"),
    "F8_E4M3": ("float8_e4m3fn", "u1"),
    "F8_E5M2": ("float8_e5m2", "u1"),
    "C64": ("complex64", "<c8"),
    "I64": ("int64", "<i8"),
    "I32": ("int32", "<i4"),
    "I16": ("int16", "<i2"),
    "I8": ("int8", "i1"),
    "U64": ("uint64", "<u8"),
    "U32": ("uint32", "<u4"),
    "U16": ("uint16", "<u2"),
    "U8": ("uint8", "u1"),
    "BOOL": ("bool", "u1"),
}
_LENGTH = 8  # bytes that say how long the header is
_LONGEST = 1 << 48


def sniff(head: bytes, _: Path) -> bool:
    """Whether a file begins with a plausible length and the brace of a JSON header."""
    length = int.from_bytes(head[:_LENGTH], "little")
    return 2 <= length < _LONGEST and head[_LENGTH : _LENGTH + 2] in (b'{"', b"{}", b"{ ")


def open_file(file: DumpFile) -> Part:
    """Tensors by name in natural order: the format sorts its own way, execution order is lost."""
    bytes_ = FileBytes.of(file)
    header, start = _header(bytes_)
    metadata = header.pop("__metadata__", None)
    problems: list[Problem] = []
    items: list[tuple[TensorInfo, Source]] = []
    spans: list[tuple[int, int, str]] = []
    for key in sorted(header, key=natural_key):
        try:
            item, span = _tensor(bytes_, key, header[key], start, len(items))
        except RefusedError as refusal:
            problems.append(refusal.problem)
        else:
            items.append(item)
            spans.append((*span, shown(key)))
    overlapping, holes = _layout(spans, bytes_.size - start, bool(problems))
    problems += [
        Problem("overlap", f"{file.name}: {name}", say("it lies on top of another tensor."))
        for name in sorted(overlapping)
    ]
    if holes:
        problems.append(
            Problem("damaged", file.name, say("{holes} bytes belong to no tensor.", holes=holes))
        )
    kept = tuple(item for item in items if item[0].name not in overlapping)
    return Part(kept, _provenance(metadata), bounded(problems, file))


def safetensors_tensor(file: DumpFile, key: str) -> Stored:
    """The one tensor of that name in a file; RefusedError if it is not there or not readable."""
    bytes_ = FileBytes.of(file)
    header, start = _header(bytes_)
    if key not in header:
        raise RefusedError("gone", file.name, say("it has no tensor {key!r}.", key=key))
    (info, source), _ = _tensor(bytes_, key, header[key], start, 0)
    return Stored(info.shape, _checked(header[key], file.name)[0], source)


def _header(bytes_: FileBytes) -> tuple[dict[str, Any], int]:
    """The header, and where the values begin."""
    file = bytes_.file
    with bytes_.opened() as descriptor:
        length = int.from_bytes(bytes_at(descriptor, 0, _LENGTH, bytes_), "little")
        if length > bytes_.size - _LENGTH:
            raise RefusedError("truncated", file.name, say("it ends within its header."))
        if length > file.limits.document:
            raise RefusedError(
                "objects", file.name, say("its header is {length} bytes long.", length=length)
            )
        text = bytes_at(descriptor, _LENGTH, length, bytes_)
    try:
        header = json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError as error:
        raise RefusedError("depth", file.name, say("its header is nested too deep.")) from error
    except ValueError as error:
        raise RefusedError(
            "damaged", file.name, say("its header: {error}.", error=error)
        ) from error
    if not isinstance(header, dict):
        raise RefusedError("damaged", file.name, say("its header is no table of tensors."))
    if len(header) > file.limits.objects:
        raise RefusedError("objects", file.name, say("its header lists too many tensors."))
    return header, _LENGTH + length


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _tensor(
    bytes_: FileBytes, key: str, said: Any, start: int, order: int
) -> tuple[tuple[TensorInfo, Source], tuple[int, int]]:
    """A tensor with its source, and the bytes it takes, counted from the first value."""
    file = bytes_.file
    where = f"{file.name}: {shown(key)[:200]}"
    if len(key) > file.limits.name:
        raise RefusedError("name", where, say("its name is too long."))
    encoding, shape, (begin, end) = _checked(said, where)
    needed = math.prod(shape) * encoding.file.itemsize
    if end - begin != needed:
        raise RefusedError(
            "damaged",
            where,
            say("its shape needs {needed} bytes, not {stored}.", needed=needed, stored=end - begin),
        )
    if start + end > bytes_.size:
        raise RefusedError("truncated", where, say("its values lie beyond the end of the file."))
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    source = strided(
        bytes_,
        where,
        encoding,
        offset=start + begin,
        stored=needed,
        shape=shape,
        strides=strides,
    )
    return (_described(file, key, shape, encoding, order), source), (begin, end)


def _checked(said: Any, where: str) -> tuple[Encoding, tuple[int, ...], tuple[int, int]]:
    """Encoding, shape and offsets of an entry of the header."""
    entry = said if isinstance(said, dict) else {}
    shape, offsets, dtype = (entry.get(key) for key in ("shape", "data_offsets", "dtype"))
    if not _are_counts(shape):
        raise RefusedError("damaged", where, say("its entry has no shape."))
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise RefusedError("damaged", where, say("its entry does not say where its values lie."))
    found = _FORMATS.get(dtype) if isinstance(dtype, str) else None
    if found is None:
        declared = shown(str(dtype)[:40])
        raise RefusedError(
            "dtype", where, say("its dtype {declared!r} is not known here.", declared=declared)
        )
    encoding = meant(np.dtype(found[1]), found[0], None, where)
    return encoding, tuple(shape), (offsets[0], offsets[1])


def _are_counts(values: Any) -> TypeGuard[list[int]]:
    return (
        isinstance(values, list)
        and len(values) <= 64
        and all(type(each) is int and 0 <= each < 1 << 62 for each in values)
    )


def _described(
    file: DumpFile, key: str, shape: tuple[int, ...], encoding: Encoding, order: int
) -> TensorInfo:
    """What a name says: the last part is a parameter of the module before it."""
    module, _, parameter = shown(key).replace("/", ".").rpartition(".")
    around = PurePosixPath(file.name).parts
    return TensorInfo(
        id=shown(key),
        name=shown(key),
        module=module,
        argument=parameter,
        pass_="parameter",
        slot="parameter",
        shape=shape,
        storage_dtype=encoding.storage,
        dtype=encoding.logical,
        order=order,
        step=last_known(map(step_of, around)),
        rank=last_known(map(rank_of, around)),
    )


def _layout(spans: list[tuple[int, int, str]], size: int, refused: bool) -> tuple[set[str], int]:
    """Names that lie on top of others, and how many bytes no tensor claims.

    Where some were refused, their bytes are unclaimed for that reason alone.
    """
    overlapping, end, holes = set(), 0, 0
    for begin, stop, name in sorted(spans):
        if begin < end and stop > begin:
            overlapping.add(name)
        holes += max(0, begin - end)
        end = max(end, stop)
    return overlapping, 0 if refused else holes + max(0, size - end)


def _provenance(metadata: Any) -> dict[str, str]:
    """The free text some writers leave, such as the framework; bounded."""
    said = metadata if isinstance(metadata, dict) else {}
    texts = [(k, v) for k, v in said.items() if isinstance(v, str)][:16]
    kept = {f"safetensors.{shown(k[:40])}": shown(v[:80]) for k, v in texts}
    return {"format": "safetensors", **kept}


LOADERS.register(Loader("safetensors", "safetensors", sniff, open_file, bare=True))
