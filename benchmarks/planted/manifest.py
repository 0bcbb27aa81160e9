"""The list of the pairs in a folder, in the casebook's form, and how hard each is to see."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FILE = "manifest.json"
# Relative L2 error of one rounding, as in the casebook's own measure of difficulty.
ROUNDING = {"float32": 3e-7, "float16": 2.1e-4, "bfloat16": 1.7e-3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One pair and its answer; `module` and `slot` are None for an honest pair.

    `accepted` are the mechanisms that the dump cannot tell from the planted one. `more` lists the
    further faults of a pair with several, each as a mapping with `module`, `slot`, `step` and
    `accepted`. `problems` say why the pair is not what it should be; such a pair is not scored.
    """

    id: str
    mechanism: str
    family: str
    verdict: str
    module: str | None
    slot: str | None
    step: str
    ref_dtype: str
    cand_dtype: str
    quant: str | None
    accepted: list[str]
    seed: int
    layer: int
    cause: str
    difficulty: str
    source: str
    model: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    more: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def difficulty(effect: float, dtype: str, verdict: str) -> str:
    """The casebook's word for the relative L2 change that a fault alone makes in its tensor.

    benign, setup, glaring above 0.1 (or not finite), clear above 10 roundings, else subtle.
    """
    if verdict != "fault":
        return "benign" if verdict == "rounding" else verdict
    if not effect <= 0.1:
        return "glaring"
    return "clear" if effect > 10 * ROUNDING[dtype] else "subtle"


def write(folder: Path, entries: Iterable[Entry]) -> None:
    """Write the manifest of the sound entries; those with problems stand in `unsound.json`."""
    every = list(entries)
    folder.mkdir(parents=True, exist_ok=True)
    _dump(folder / FILE, [asdict(entry) for entry in every if not entry.problems])
    _dump(folder / "unsound.json", [asdict(entry) for entry in every if entry.problems])


def read(folder: Path) -> list[dict[str, Any]]:
    """Entries of a folder's manifest, of this package or of the casebook."""
    entries: list[dict[str, Any]] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return entries


def copy(folder: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a manifest of entries that were read from another."""
    _dump(folder / FILE, list(entries))


def plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as JSON holds them: numbers that are not finite as words."""
    return {
        name: value if isinstance(value, str) or math.isfinite(value) else str(value)
        for name, value in ((name, _unwrapped(value)) for name, value in facts.items())
    }


def _unwrapped(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)


def _dump(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    text = json.dumps(entries, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
