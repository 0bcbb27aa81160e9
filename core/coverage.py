"""How much of two runs a comparison looked at, and what about the dumps themselves is odd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Check = Literal[
    "outputs_without_inputs",
    "layers_missing",
    "identical_layers",
    "broken_chain",
    "duplicated_names",
    "only_nan",
    "constant",
    "replicas_differ",
]
CheckedSide = Literal["reference", "candidate"]


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many of the reference; no share is known where there are none."""

    compared: int
    total: int

    @property
    def fraction(self) -> float:
        """In [0, 1]; 1 where there is nothing to compare."""
        return self.compared / self.total if self.total else 1.0


@dataclass(frozen=True, slots=True)
class Oddity:
    """One thing about one dump that makes its numbers less trustworthy than they look.

    `count` says how often it was seen, `places` names the first few modules or tensors.
    """

    check: Check
    side: CheckedSide
    count: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModuleCount:
    """Tensors of one module that are in one run only."""

    side: CheckedSide
    module: str
    tensors: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a comparison covers of its reference, and what it cannot vouch for.

    `suggested` pairs wait for the user's word. `unmatched` lists the modules with the most
    tensors in one run only, most first.
    """

    tensors: Share
    nbytes: Share
    modules: Share
    suggested: int = 0
    oddities: tuple[Oddity, ...] = ()
    unmatched: tuple[ModuleCount, ...] = ()
