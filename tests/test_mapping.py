"""The user's mapping: written, edited, read back, and obeyed."""

import csv
import io
import json

import numpy as np
import pytest
from memory_runs import run_of

from analysis.compare import compare
from analysis.matching import mapping_from_text, mapping_text, match
from core.comparison import Comparison, MappingRow, Settings
from core.errors import CompareError
from core.runs import Array


def values(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape or (4, 6)).astype(np.float32)


OURS = {"a:forward_output.0": values(1), "layers.0.b:forward_output.0": values(2)}
THEIRS = {
    "a:forward_output.0": values(1),
    "layers.0.c:forward_output.0": values(3),
    "layers.0.d:forward_output.0": values(4),
}


def compared(*rows: MappingRow) -> Comparison:
    return compare(run_of(OURS), run_of(THEIRS), Settings(mapping=rows))


def partners(comparison: Comparison) -> dict[str, str]:
    return {p.reference.id: p.candidate.id for p in comparison.pairs if not p.match.is_suggested}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_written_mapping_reads_back_as_the_same_pairs(form: str) -> None:
    first = compared()
    rows = mapping_from_text(mapping_text(first, form))  # type: ignore[arg-type]
    again = compared(*rows)
    assert partners(again) == partners(first)
    assert {p.match.method for p in again.pairs if not p.match.is_suggested} == {"mapping"}


def test_accepting_a_suggestion_compares_it() -> None:
    first = compared()
    assert [p.match.is_suggested for p in first.pairs] == [False, True]
    table = list(csv.DictReader(io.StringIO(mapping_text(first))))
    assert [row["accept"] for row in table if row["method"]] == ["yes", "?"]
    text = mapping_text(first).replace("?", "yes")
    accepted = compared(*mapping_from_text(text))
    assert [p.match.method for p in accepted.pairs] == ["mapping", "mapping"]
    assert accepted.pairs[1].stats is not None


def test_the_mapping_is_part_of_the_comparisons_id() -> None:
    row = MappingRow("layers.0.b:forward_output.0", ("layers.0.d:forward_output.0",))
    assert compared(row).id != compared().id
    assert compared(row).id == compared(row).id


def test_the_mapping_overrules_equal_names() -> None:
    row = MappingRow("a:forward_output.0", ("layers.0.d:forward_output.0",))
    assert partners(compared(row))["a:forward_output.0"] == "layers.0.d:forward_output.0"


def test_a_refused_pair_is_made_by_no_stage() -> None:
    refused = MappingRow("a:forward_output.0", ("a:forward_output.0",), "no")
    assert "a:forward_output.0" not in partners(compared(refused))
    alone = MappingRow("a:forward_output.0", (), "no")
    assert "a:forward_output.0" in [t.id for t in compared(alone).unmatched_reference]


def test_modules_are_mapped_with_stars_for_their_numbers() -> None:
    ours = {f"layers.{n}.attn.q:forward_output.0": values(n) for n in range(3)}
    theirs = {f"h.{n}.mixer.q:forward_output.0": values(n + 9) for n in range(3)}
    row = MappingRow("layers.*.attn", ("h.*.mixer",))
    found = match(run_of(ours), run_of(theirs), Settings(mapping=(row,)))
    assert {a.id: (b.id, how.method) for a, b, how in found.pairs} == {
        f"layers.{n}.attn.q:forward_output.0": (f"h.{n}.mixer.q:forward_output.0", "mapping")
        for n in range(3)
    }


def test_a_row_may_give_parts_and_steps() -> None:
    whole = values(1, 8, 6)
    theirs = {f"p{n}:forward_output.0": part for n, part in enumerate(np.split(whole.T, 2))}
    row = MappingRow(
        "w:forward_output.0",
        ("p0:forward_output.0", "p1:forward_output.0"),
        adaptation="candidate: concat(0, 2); candidate: transpose(1, 0)",
    )
    runs = run_of({"w:forward_output.0": whole}), run_of(theirs)
    comparison = compare(*runs, Settings(mapping=(row,)))
    (pair,) = comparison.pairs
    assert pair.stats is not None
    assert pair.stats.equal == whole.size
    again = mapping_from_text(mapping_text(comparison))
    assert again == (row,)


def test_parts_without_steps_get_them_proposed() -> None:
    whole = values(1, 8, 6)
    theirs = {f"p{n}:forward_output.0": part for n, part in enumerate(np.split(whole, 2))}
    row = MappingRow("w:forward_output.0", tuple(theirs))
    runs = run_of({"w:forward_output.0": whole}), run_of(theirs)
    (pair,) = compare(*runs, Settings(mapping=(row,))).pairs
    assert pair.adaptation is not None
    assert [s.operation for s in pair.adaptation.steps] == ["concat"]


def test_what_was_not_decided_says_nothing() -> None:
    text = "reference,candidate,accept\na,b,?\na,,\n,b,\n,,no\nx,y,\n"
    assert mapping_from_text(text) == (MappingRow("x", ("y",)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column candidate, reference"),
        ("reference,candidate,accept\na,b,maybe\n", "Row 1 .* accept 'maybe'"),
        ("{", "not JSON"),
        ("[1]", "no list of pairs"),
        (json.dumps({"rows": []}), "no list of pairs"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_is_no_mapping_says_why(text: str, message: str) -> None:
    with pytest.raises(CompareError, match=message):
        mapping_from_text(text)
