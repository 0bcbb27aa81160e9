"""The mapping file: which tensors belong together, to be downloaded, edited and used again.

CSV with a header, or JSON with a list of objects under `pairs`; docs/matching.md describes both.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from analysis.adapt.text import adaptation_text
from core.comparison import Comparison, MappingRow, Pair
from core.errors import CompareError
from core.tensors import TensorInfo
from language import say

Form = Literal["csv", "json"]

COLUMNS = ("reference", "candidate", "accept", "adaptation", "method", "confidence", "note")
_PARTS = " + "
_MOST_ROWS = 1_000_000
_HINT = say("Write a mapping with --write-mapping to see one that is understood.")


def mapping_from_text(text: str) -> tuple[MappingRow, ...]:
    """The rows of a mapping file that say something; CompareError names the line that does not fit.

    Rows with accept `?` are suggestions nobody decided on, and rows without a side that are not
    refusals say nothing: both are left out. The columns of methods and notes are not read.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    rows = _from_json(stripped) if stripped[:1] in ("{", "[") else _from_csv(stripped)
    found = (_row(number, row) for number, row in enumerate(rows, start=1))
    return tuple(row for row in found if row is not None)


def mapping_text(comparison: Comparison, form: Form = "csv") -> str:
    """All pairs of a comparison, and what has no partner, as a mapping file.

    Suggested pairs have accept `?`: set it to yes or no.
    """
    rows = list(mapping_rows(comparison))
    if form == "json":
        return json.dumps({"pairs": rows}, indent=1, ensure_ascii=False) + "\n"
    written = io.StringIO()
    table = csv.DictWriter(written, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return written.getvalue()


def mapping_rows(
    comparison: Comparison, pairs: Sequence[int] | None = None
) -> Iterator[dict[str, str]]:
    """The rows of the mapping file by column, for a table that can be edited.

    Those of some `pairs` only, where they are named, and of what is in one run only.
    """
    chosen = comparison.pairs if pairs is None else (comparison.pairs[n] for n in pairs)
    yield from map(_of_pair, chosen)
    for tensor in comparison.unmatched_reference:
        yield _alone(tensor, "reference")
    for tensor in comparison.unmatched_candidate:
        yield _alone(tensor, "candidate")


def _of_pair(pair: Pair) -> dict[str, str]:
    match = pair.match
    return {
        "reference": pair.reference.id,
        "candidate": _PARTS.join(t.id for t in pair.members("candidate")),
        "accept": "?" if match.is_suggested else "yes",
        "adaptation": adaptation_text(match.adaptation),
        "method": match.method,
        "confidence": f"{match.confidence:.2f}",
        "note": match.note,
    }


def _alone(tensor: TensorInfo, side: str) -> dict[str, str]:
    return dict.fromkeys(COLUMNS, "") | {side: tensor.id}


def _from_csv(text: str) -> Sequence[Mapping[str, Any]]:
    table = csv.DictReader(io.StringIO(text))
    missing = {"reference", "candidate"} - set(table.fieldnames or ())
    if missing:
        raise CompareError(
            say("The mapping has no column {missing}.", missing=", ".join(sorted(missing))), _HINT
        )
    try:
        return [row for row, _ in zip(table, range(_MOST_ROWS), strict=False)]
    except csv.Error as error:
        raise CompareError(say("The mapping is not CSV: {error}.", error=error), _HINT) from error


def _from_json(text: str) -> Sequence[Mapping[str, Any]]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise CompareError(say("The mapping is not JSON: {error}.", error=error), _HINT) from error
    rows = value.get("pairs") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CompareError(say("The mapping holds no list of pairs."), _HINT)
    return rows[:_MOST_ROWS]


def _row(number: int, row: Mapping[str, Any]) -> MappingRow | None:
    reference = str(row.get("reference") or "").strip()
    given = row.get("candidate") or ""
    names = given if isinstance(given, list) else str(given).split(_PARTS)
    candidates = tuple(name for name in (str(n).strip() for n in names) if name)
    accept = str(row.get("accept") or "yes").strip().lower()
    if accept not in ("yes", "no", "?"):
        hint = say("Write yes, no, or ? for what is not decided.")
        raise CompareError(
            say("Row {number} of the mapping has accept {accept!r}.", number=number, accept=accept),
            hint,
        )
    decided = bool(reference and candidates) or (accept == "no" and bool(reference or candidates))
    if accept == "?" or not decided:
        return None
    adaptation = str(row.get("adaptation") or "").strip()
    return MappingRow(reference, candidates, "no" if accept == "no" else "yes", adaptation)
