"""Numerics logs of torchtitan: `rank_0_activations.log`, a block of statistics per operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from core.tensors import TensorSummary
from language import say
from loaders.absent import Told, told, torch_size
from loaders.dtypes import canonical
from loaders.names import rank_of, shown
from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader
from loaders.text_lines import lines_of

_TOTAL = b"Total captured activations:"
_HEADER = re.compile(r"\[(?P<module>.+)/op_(?P<n>\d{1,9})_(?P<op>[^/\]]+)\]")
_FIELD = re.compile(r"\s+(?P<key>[A-Z][A-Za-z0-9 ]{1,30}):\s*(?P<value>.*)")
_DIGITS = 5e-7  # printed with six decimals
_NO_MODULE = "<none>"
Block = tuple[re.Match[str], dict[str, str]]


def sniff(head: bytes, _: Path) -> bool:
    """Whether a text begins with the number of captured activations."""
    return head.startswith(_TOTAL)


def open_file(file: DumpFile) -> Part:
    """Outputs of operations in the order of dispatch.

    Operations are numbered in their module over both passes; here each kind counts by itself, so
    that one more operation shifts no other kind. Operations in place have no statistics, only
    hashes of their inputs, and are left out.
    """
    gathering = Gathering(file, recorded=True)
    numbers: dict[tuple[str, str, bool], int] = {}
    for header, fields in _blocks(lines_of(file)):
        if "Shape" in fields:
            naming = _naming(header, fields, rank_of(file.path.name), numbers)
            gathering.tell(naming, partial(_told, fields, f"{file.name}: {naming.name}"))
    return gathering.part({"format": "torchtitan numerics log", "framework": "pytorch"})


def _blocks(lines: Iterator[str]) -> Iterator[Block]:
    block: Block | None = None
    for line in lines:
        if header := _HEADER.fullmatch(line.strip()):
            if block:
                yield block
            block = header, {}
        elif block and (said := _FIELD.fullmatch(line)):
            block[1].setdefault(said["key"], said["value"])
    if block:
        yield block


def _naming(
    header: re.Match[str],
    fields: dict[str, str],
    rank: int | None,
    numbers: dict[tuple[str, str, bool], int],
) -> Naming:
    module = "" if header["module"] == _NO_MODULE else shown(header["module"])
    backward = fields.get("Phase", "").strip() == "backward"
    op = shown(header["op"]).strip("_") or "op"
    number = numbers.get((module, op, backward), 0)
    numbers[module, op, backward] = number + 1
    at = f"{op}_{number}" if number else op
    location = fields.get("Location")
    return Naming(
        name=f"{module}/{at}{'.backward' if backward else ''}" if module else at,
        module=module,
        argument="0",
        op=at,
        pass_="backward" if backward else "forward",
        slot="output",
        rank=rank,
        attrs={"location": shown(location[:200])} if location else {},
    )


def _told(fields: dict[str, str], where: str) -> Told:
    """Statistics of a block. The hash is a sum of magnitudes, which rounding changes: left out."""
    size, _, name = fields["Shape"].partition(", Dtype: ")
    shape, dtype = torch_size(size), canonical(name)
    if shape is None or dtype is None:
        raise RefusedError("damaged", where, say("its shape or dtype cannot be understood."))
    summary = TensorSummary(
        minimum=told(fields.get("Min")),
        maximum=told(fields.get("Max")),
        mean=told(fields.get("Mean")),
        norm=told(fields.get("L2 norm")),
        resolution=_DIGITS,
    )
    return Told(shape, dtype, summary)


LOADERS.register(Loader("torchtitan", "torchtitan numerics log", sniff, open_file))
