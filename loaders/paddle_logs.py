"""Logs of Paddle without values: the tensor checker's statistics, and checksums of tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from core.tensors import TensorSummary
from language import say
from loaders.absent import Told, told
from loaders.dtypes import canonical
from loaders.names import last_known, rank_of, shown
from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader
from loaders.text_lines import lines_of

_CHECKED = re.compile(
    r"\[PRECISION\] \[(?P<level>\w+)\] in \[device=(?P<device>[^,]+), op=(?P<op>[^,]+), "
    r"tensor=(?P<tensor>[^,]*), dtype=(?P<dtype>\w+)\], numel=(?P<numel>\d{1,15}), "
    r"num_nan=(?P<nan>\d+), num_inf=(?P<inf>\d+), num_zero=(?P<zero>\d+), "
    r"max=(?P<max>\S+), min=(?P<min>\S+), mean=(?P<mean>\S+)"
)
_SUMMED = re.compile(r"(?P<name>\S[^:\uff1a]{0,500}?)\s*[:\uff1a]\s*(?P<md5>[0-9a-f]{32})\s*")
_WORKER = re.compile(r"worker_[a-z_]+[.:]?(\d{1,6})(?:$|\.)")
_DIGITS = 5e-7  # printed with six decimals
_BACKWARD = "_grad"


def has_statistics(head: bytes, path: Path) -> bool:
    """Whether a text begins with a line of the checker, or is a worker's log with one nearby."""
    text = head.decode("utf-8", "replace")
    return "[PRECISION]" in text and _CHECKED.search(text) is not None and path.suffix != ".py"


def has_checksums(head: bytes, _: Path) -> bool:
    """Whether the first whole lines of a text are names with an MD5 each."""
    lines = head.decode("utf-8", "replace").split("\n")[:-1][:8]
    return bool(lines) and all(_SUMMED.fullmatch(line) for line in lines)


def open_statistics(file: DumpFile) -> Part:
    """A tensor a line, in order: operators by name and occurrence, whose gradients end in `_grad`.

    The log says how many elements there are, not their shape: all have one axis.
    """
    rank = _rank(file)
    gathering = Gathering(file, recorded=True)
    seen: Counter[tuple[str, str]] = Counter()
    for line in lines_of(file):
        if match := _CHECKED.search(line):
            tensor = shown(match["tensor"])
            number = seen[match["op"], tensor]
            seen[match["op"], tensor] += 1
            naming = _operator(shown(match["op"]), tensor, number, rank, match)
            gathering.tell(naming, partial(_checked, match, f"{file.name}: {naming.name}"))
    return gathering.part({"format": "Paddle tensor checker", "framework": "paddle"})


def open_checksums(file: DumpFile) -> Part:
    """A checksum a line; values are rounded to some decimals before, so equal ones may differ."""
    gathering = Gathering(file, recorded=True)
    seen: Counter[str] = Counter()
    for line in lines_of(file):
        if match := _SUMMED.fullmatch(line):
            name = shown(match["name"])
            number = seen[name]
            seen[name] += 1
            naming = Naming(
                name=f"{name}@{number}" if number else name,
                module="",
                argument="",
                op=name,
                call=number,
                rank=_rank(file),
            )
            summary = TensorSummary(checksum=f"paddle-md5:{match['md5']}")
            gathering.tell(naming, partial(Told, (), "float32", summary, inferred=True))
    return gathering.part({"format": "Paddle checksums", "framework": "paddle"})


def _operator(
    op: str, tensor: str, number: int, rank: int | None, match: Mapping[str, str] | re.Match[str]
) -> Naming:
    backward = op.endswith(_BACKWARD)
    bare = op.removesuffix(_BACKWARD) if backward else op
    at = f"{bare}_{number}" if number else bare
    return Naming(
        name=f"{at}{_BACKWARD if backward else ''}/{tensor or 'output'}",
        module="",
        argument=tensor or "0",
        op=at,
        pass_="backward" if backward else "forward",
        slot="output",
        rank=rank,
        attrs={key: int(match[key]) for key in ("nan", "inf", "zero") if len(match[key]) < 16},
    )


def _checked(match: re.Match[str], where: str) -> Told:
    dtype = canonical(match["dtype"])
    if dtype is None:
        raise RefusedError(
            "dtype", where, say("its dtype {dtype} is not known here.", dtype=match["dtype"][:40])
        )
    low, high, mean = (told(match[key]) for key in ("min", "max", "mean"))
    return Told((int(match["numel"]),), dtype, TensorSummary(low, high, mean, resolution=_DIGITS))


def _rank(file: DumpFile) -> int | None:
    worker = _WORKER.fullmatch(file.path.name) or _WORKER.match(file.path.name)
    return int(worker[1]) if worker else last_known(map(rank_of, file.name.split("/")))


LOADERS.register(Loader("paddle_checker", "Paddle tensor checker", has_statistics, open_statistics))
LOADERS.register(Loader("paddle_md5", "Paddle checksums", has_checksums, open_checksums))
