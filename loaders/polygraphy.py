"""Results that Polygraphy saved: JSON with an array of NumPy as base64 for each output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from language import say
from loaders.documents import parsed_json
from loaders.file_bytes import FileBytes, bytes_at
from loaders.names import shown
from loaders.naming import Gathering, Naming, Stored
from loaders.npy_header import LONGEST, header_of
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader
from loaders.streamed import Base64, streamed

# The arrays, which are cut out before the rest is parsed.
_ARRAY = re.compile(rb'"(array|tensor)"\s*:\s*"([A-Za-z0-9+/=]*)"')
_OURS = re.compile(rb'\s*[{\[].{0,3000}?"(?:lst|polygraphy_class|array)"\s*:', re.DOTALL)
_DEEPEST = 12


def sniff(head: bytes, path: Path) -> bool:
    """Whether a JSON file begins as results or inputs of Polygraphy do."""
    begins = path.suffix == ".json" and _OURS.match(head) is not None
    return begins and (b"polygraphy" in head or b'"lst"' in head or _ARRAY.search(head) is not None)


def open_file(file: DumpFile) -> Part:
    """Outputs in the order in which they were saved, an iteration a step.

    Several runners of one file are told apart by name; one alone is not named, since both sides
    of a comparison call theirs otherwise. Tensors that PyTorch pickled are refused.
    """
    bytes_, text = _text(file)
    arrays: list[tuple[str, int, int]] = []

    def cut(match: re.Match[bytes]) -> bytes:
        arrays.append((match[1].decode(), match.start(2), match.end(2) - match.start(2)))
        return b'"px_array": %d' % (len(arrays) - 1)

    document = parsed_json(_ARRAY.sub(cut, text), file)
    gathering = Gathering(file, recorded=True)
    found = [each for each in _results(document) if 0 <= each.number < len(arrays)]
    several = len({each.runner for each in found}) > 1
    for each in found:
        name = "/".join([*([each.runner] if several else []), *each.keys])
        module, _, op = name.replace("/", ".").rpartition(".")
        naming = Naming(name=name, module=module, op=op, argument="", step=each.step)
        kind, offset, length = arrays[each.number]
        where = f"{file.name}: {name[:200]}"
        gathering.add(naming, partial(_array, bytes_, kind, Base64(bytes_, offset, length), where))
    return gathering.part({"format": "Polygraphy"})


def _text(file: DumpFile) -> tuple[FileBytes, bytes]:
    bytes_ = FileBytes.of(file)
    if bytes_.size > file.limits.storage_chunk:
        raise RefusedError(
            "objects", file.name, say("it is a JSON text of {size} bytes.", size=bytes_.size)
        )
    with bytes_.opened() as descriptor:
        return bytes_, bytes_at(descriptor, 0, bytes_.size, bytes_)


@dataclass(frozen=True, slots=True)
class _Found:
    """An array: which runner made it in which iteration, its name, its number in the text."""

    runner: str
    step: int | None
    keys: tuple[str, ...]
    number: int


def _results(document: Any) -> Iterator[_Found]:
    """The arrays of results, of a list of inputs, or of one table."""
    runs = document.get("lst") if isinstance(document, dict) else None
    if isinstance(runs, list):
        for run in runs:
            if isinstance(run, list) and len(run) == 2 and isinstance(run[1], list):
                yield from _iterations(shown(str(run[0])[:200]), run[1])
    elif isinstance(document, list):
        yield from _iterations("", document)
    else:
        yield from _arrays("", None, document, ())


def _iterations(runner: str, results: list[Any]) -> Iterator[_Found]:
    for step, result in enumerate(results):
        outputs = result.get("outputs", result) if isinstance(result, dict) else result
        yield from _arrays(runner, step, outputs, ())


def _arrays(runner: str, step: int | None, value: Any, keys: tuple[str, ...]) -> Iterator[_Found]:
    if not isinstance(value, dict) or len(keys) > _DEEPEST:
        return
    number = value.get("px_array")
    if type(number) is int:
        kept = tuple(key for key in keys if key != "values")
        yield _Found(runner, step, kept or ("value",), number)
        return
    for key, each in value.items():
        yield from _arrays(runner, step, each, (*keys, shown(key[:200])))


def _array(bytes_: FileBytes, kind: str, stream: Base64, where: str) -> Stored:
    if kind != "array":
        hint = say("Save the outputs as NumPy arrays.")
        raise RefusedError("pickle", where, say("it is a pickle of PyTorch in text."), hint)
    size = stream.length // 4 * 3 - _padding(bytes_, stream)
    head = b"".join(_few(stream.pieces()))
    header = header_of(head[:LONGEST], None, where)
    source = streamed(stream, header, size, bytes_.file, where)
    return Stored(header.shape, header.encoding, source, header.inferred)


def _few(pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield from [next(pieces, b"")]


def _padding(bytes_: FileBytes, stream: Base64) -> int:
    with bytes_.opened() as descriptor:
        end = bytes_at(descriptor, stream.offset + max(0, stream.length - 2), 2, bytes_)
    return end.count(b"=")


LOADERS.register(Loader("polygraphy", "Polygraphy", sniff, open_file))
