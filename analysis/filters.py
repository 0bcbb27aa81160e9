"""Which rows of the table of pairs are looked at: each condition applies itself and names itself.

A filter is what an address says: values as text, so that a link made on one comparison is valid on
any other. What a condition asks for and no row has leaves nothing, and is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from analysis.views_rows import matching
from core.errors import SelectionError

# Parameter of the address -> columns of the table; a row counts when any of them has the value.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "verdict": ("verdict",),
    "class": ("module_class",),
    "op": ("op",),
    "pass": ("pass",),
    "dtype": ("dtype_reference", "dtype_candidate"),
    "match": ("match",),
}
MODULE_ITSELF = "–"  # stands for the empty op: a tensor of the module's own


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all hold. `pattern` is a regular expression in RE2's syntax, found anywhere
    in the operator's path or the tensor's name; `chosen` maps a key of `CHOICES` to the values of
    which a row must have one.
    """

    words: str = ""
    pattern: str = ""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def conditions(self) -> int:
        """How many conditions there are."""
        return bool(self.words.strip()) + bool(self.pattern) + len(self.chosen)

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows that meet every condition; SelectionError for a pattern that is none."""
        keep = np.ones(len(table), bool)
        if self.pattern:
            keep &= _fits(table["operator"], self.pattern) | _fits(table["tensor"], self.pattern)
        for name, values in self.chosen.items():
            keep &= _has(table, name, values)
        found = table if keep.all() else table[keep]
        return matching(found, self.words) if self.words.strip() else found


def options(table: pd.DataFrame, name: str) -> list[str]:
    """The values a condition may ask for, as far as rows have them, in alphabetical order."""
    found: set[str] = set()
    for column in CHOICES[name]:
        found.update(map(str, table[column].dropna().unique()))
    return sorted(value or MODULE_ITSELF for value in found if value or name == "op")


def to_text(values: Iterable[str]) -> str:
    """Values as one parameter of an address: commas between them, other characters escaped."""
    return ",".join(quote(value, safe="") for value in values)


def from_text(text: str) -> tuple[str, ...]:
    """The values that `to_text` wrote."""
    return tuple(unquote(part) for part in text.split(",") if part)


def _has(table: pd.DataFrame, name: str, values: tuple[str, ...]) -> NDArray[np.bool_]:
    wanted = ["" if value == MODULE_ITSELF else value for value in values]
    found = [table[column].isin(wanted).to_numpy(bool) for column in CHOICES[name]]
    held: NDArray[np.bool_] = np.any(found, axis=0)
    return held


def _fits(texts: pd.Series, pattern: str) -> NDArray[np.bool_]:
    """Whether the pattern is found in each text; RE2 takes linear time, whatever the pattern."""
    codes, distinct = pd.factorize(texts)
    try:
        found = pc.match_substring_regex(pa.array(distinct, pa.string()), pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).rpartition("Invalid regular expression: ")[2]
        raise SelectionError(
            f"{pattern!r} is no regular expression: {reason}.",
            "Write for example layers\\.(1|2)\\..*proj; for words as they stand use the filter.",
        ) from error
    return np.asarray(found.to_numpy(zero_copy_only=False)[codes], bool)
