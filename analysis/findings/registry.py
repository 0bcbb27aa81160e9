"""The registry of detectors: a detector looks at one faulty operator for one mechanism."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from analysis.findings.scene import Scene
from analysis.findings.trials import Proposal

Detect = Callable[[Scene], Iterable[Proposal]]


@dataclass(frozen=True, slots=True)
class Detector:
    """`detect(scene)` yields trials and signs of the mechanisms named, nothing on an honest site.

    `kinds` are the operator kinds it understands, empty for all; `slots` the slot kinds it looks
    at (`output`, `input`, `parameter`, `gradient`).
    """

    name: str
    mechanisms: tuple[str, ...]
    kinds: frozenset[str]
    slots: frozenset[str]
    detect: Detect

    @property
    def help(self) -> str:
        """Definition of the mechanism and source of the test."""
        return inspect.getdoc(self.detect) or ""


_DETECTORS: dict[str, Detector] = {}

DETECTORS: Mapping[str, Detector] = MappingProxyType(_DETECTORS)


def detector(
    *mechanisms: str, kinds: Iterable[str] = (), slots: Iterable[str] = ("output",)
) -> Callable[[Detect], Detect]:
    """Register the decorated function for the mechanisms it may name."""

    def register(detect: Detect) -> Detect:
        name = detect.__name__
        if name in _DETECTORS:
            raise ValueError(f"Two detectors are called {name!r}.")
        _DETECTORS[name] = Detector(name, mechanisms, frozenset(kinds), frozenset(slots), detect)
        return detect

    return register
