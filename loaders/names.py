"""Names out of files: shown safely, sorted naturally, and searched for steps and ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPE = re.compile(r"\\(\\|n|r|t|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_SIMPLE = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_DIGITS = re.compile(r"(\d+)")
_STEP = re.compile(
    r"(?:^|[_.\-])(?:step|iter|iteration)[_\-=]?(\d{1,9})(?=$|[_.\-])", re.IGNORECASE
)
_RANK = re.compile(r"(?:^|[_.\-])(?:global)?rank[_\-=]?(\d{1,9})(?=$|[_.\-])", re.IGNORECASE)


def escaped(name: bytes) -> str:
    r"""One link or file name as printable text.

    Control, bidirectional and other invisible characters, bytes that are not UTF-8, `.`, `..` and
    the backslash come out as `\n`, `\u202e`, …; `unescaped` gives the bytes back.
    """
    text = name.decode("utf-8", "surrogateescape")
    if text in (".", ".."):
        return r"\x2e" * len(text)
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text
    )


def shown(path: str) -> str:
    """A path of names out of a JSON text or an archive, each of its parts `escaped`."""
    return "/".join(escaped(part.encode("utf-8", "surrogatepass")) for part in path.split("/"))


def unescaped(text: str) -> bytes:
    """The bytes of the name that `escaped` shows as this text."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        return _SIMPLE.get(code) or chr(int(code[1:], 16))

    return _ESCAPE.sub(character, text).encode("utf-8", "surrogateescape")


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which `layers.2` stands before `layers.10`."""
    return tuple(
        (0, int(part), part) if part.isdecimal() and len(part) < 20 else (1, 0, part)
        for part in _DIGITS.split(name)
        if part
    )


def step_of(name: str) -> int | None:
    """The step a file or group name speaks of (`step3`, `dump_step-3_rank0`), if any."""
    return _number(_STEP, name)


def rank_of(name: str) -> int | None:
    """The rank a file or group name speaks of (`rank0`, `globalrank-1_localrank-1`), if any."""
    return _number(_RANK, name)


def only_counts(name: str) -> bool:
    """Whether a group's name is a step or rank and nothing more (`step3`, not `step3_block`)."""
    bare = name.rstrip("0123456789").rstrip("_-=").lower()
    return bare in ("step", "iter", "iteration", "rank", "globalrank") and bare != name.lower()


def last_known(numbers: Iterable[int | None]) -> int | None:
    """The last number that is known: of folders within folders, the innermost one's."""
    return next((n for n in reversed(list(numbers)) if n is not None), None)


def _number(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.search(name)
    return int(match[1]) if match else None
