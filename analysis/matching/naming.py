"""Names of modules, operators and arguments in one spelling; the rules are in naming.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Segments = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """A module that does the work of several, by the last segments of their paths."""

    whole: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The table of names. `paths` are rewritten from top to bottom."""

    wrappers: frozenset[str]
    paths: tuple[tuple[Segments, Segments], ...]
    arguments: Mapping[str, str]
    operators: Mapping[str, str]
    fused: tuple[Fused, ...]


@cache
def rules() -> Rules:
    """The rules that come with the product."""
    table = tomllib.loads((Path(__file__).parent / "naming.toml").read_text(encoding="utf-8"))
    return Rules(
        wrappers=frozenset(table["wrappers"]),
        paths=tuple(
            (tuple(rule["from"].split(".")), tuple(rule["to"].split(".")))
            for rule in table["paths"]
        ),
        arguments=_inverse(table["arguments"]),
        operators=_inverse(table["operators"]),
        fused=tuple(Fused(rule["whole"], tuple(rule["parts"])) for rule in table["fused"]),
    )


@cache
def normalised(path: str) -> Segments:
    """Segments of a module path with `/` read as `.` and wrapper modules left out."""
    wrappers = rules().wrappers
    return tuple(s for s in path.replace("/", ".").split(".") if s and s not in wrappers)


@cache
def common_path(path: str) -> Segments:
    """A module path in the common spelling: normalised, then rewritten by the rules."""
    segments = normalised(path)
    for old, new in rules().paths:
        if old[0] in segments:  # no rule begins with a star
            segments = _rewritten(segments, old, new)
    return segments


def common_argument(argument: str) -> str:
    """Name of an argument or parameter in the common spelling."""
    return rules().arguments.get(argument, argument)


def common_operator(op: str) -> str:
    """Name of a functional call without its counter, in the common spelling."""
    base = base_operator(op)
    return rules().operators.get(base, base)


def base_operator(op: str) -> str:
    """Name of a functional call without its counter: `add` for `add_2`."""
    base, _, number = op.rpartition("_")
    return base if base and number.isdecimal() else op


def counter_of(op: str) -> int:
    """Which of the equally named calls of its module a functional call is, from 0."""
    number = op.removeprefix(base_operator(op)).removeprefix("_")
    return int(number) if number else 0


def _rewritten(segments: Segments, old: Segments, new: Segments) -> Segments:
    for start in range(len(segments) - len(old) + 1):
        here = segments[start : start + len(old)]
        if all(a in ("*", b) for a, b in zip(old, here, strict=True)):
            kept = iter([b for a, b in zip(old, here, strict=True) if a == "*"])
            changed = tuple(next(kept) if s == "*" else s for s in new)
            return (*segments[:start], *changed, *segments[start + len(old) :])
    return segments


def _inverse(table: Mapping[str, Any]) -> dict[str, str]:
    return {other: common for common, others in table.items() for other in others}
