"""The comparison as a value: its id, its coverage, its problems."""

import numpy as np
import pytest
from memory_runs import run_of

from analysis.compare import compare
from analysis.progress import Progress
from core.comparison import Settings, Tolerance
from core.errors import CompareError

ARRAYS = {
    f"layers.{n}:forward_output.0": np.random.default_rng(n).standard_normal((8, 16)).astype("f4")
    for n in range(3)
}


def test_equal_content_gives_one_id_whatever_the_label() -> None:
    one = compare(run_of(ARRAYS, label="here"), run_of(ARRAYS, label="there"))
    two = compare(run_of(ARRAYS, label="elsewhere"), run_of(ARRAYS, label="x"))
    assert one.id == two.id
    assert one.reference.content == one.candidate.content


def test_one_changed_bit_changes_the_id() -> None:
    changed = {name: array.copy() for name, array in ARRAYS.items()}
    changed["layers.2:forward_output.0"].view(np.uint32)[0, 0] ^= 1
    ids = {compare(run_of(ARRAYS), run_of(a)).id for a in (ARRAYS, changed)}
    assert len(ids) == 2


def test_swapping_the_sides_or_changing_the_tolerance_changes_the_id() -> None:
    other = {name: array + np.float32(1) for name, array in ARRAYS.items()}
    ids = {
        compare(run_of(ARRAYS), run_of(other)).id,
        compare(run_of(other), run_of(ARRAYS)).id,
        compare(run_of(ARRAYS), run_of(other), Settings(Tolerance(1e-3, 1e-3))).id,
    }
    assert len(ids) == 3


def test_a_tensor_that_cannot_be_read_is_a_pair_with_a_problem() -> None:
    bad = frozenset({"layers.1:forward_output.0"})
    comparison = compare(run_of(ARRAYS), run_of(ARRAYS, unreadable=bad))
    assert [p.problem is None for p in comparison.pairs] == [True, False, True]
    assert "is damaged" in (comparison.pairs[1].problem or "")


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (np.zeros((8, 15), np.float32), "shapes differ: 8 × 16 against 8 × 15"),
        (np.zeros((8, 16), np.int32), "kinds differ: float32 against int32"),
        (np.zeros((8, 16), bool), "kinds differ: float32 against bool"),
    ],
)
def test_what_cannot_be_compared_says_why(other: np.ndarray, problem: str) -> None:
    name = "layers.1:forward_output.0"
    comparison = compare(run_of(ARRAYS), run_of(ARRAYS | {name: other}))
    assert comparison.pairs[1].problem == problem
    assert comparison.pairs[1].stats is None


def test_empty_tensors_are_said_to_be_empty() -> None:
    empty = {"a:forward_output.0": np.zeros((0, 4), np.float32)}
    (pair,) = compare(run_of(empty), run_of(empty)).pairs
    assert pair.problem == "both sides are empty"


def test_an_empty_run_is_an_error_that_names_it() -> None:
    with pytest.raises(CompareError, match="nothing holds no tensor"):
        compare(run_of(ARRAYS), run_of({}, label="nothing"))


def test_progress_ends_at_the_total_and_can_stop_the_work() -> None:
    seen: list[Progress] = []
    compare(run_of(ARRAYS), run_of(ARRAYS), progress=seen.append)
    assert seen[-1].total_pairs == 3
    assert seen[-1].total_bytes == 2 * sum(a.nbytes for a in ARRAYS.values())
    assert [p.done_bytes for p in seen] == sorted(p.done_bytes for p in seen)

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(run_of(ARRAYS), run_of(ARRAYS), progress=stop)


def test_chunking_does_not_change_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(run_of(ARRAYS), run_of(ARRAYS))
    monkeypatch.setattr("analysis.measuring.CHUNK", 7)
    parts = compare(run_of(ARRAYS), run_of(ARRAYS))
    assert whole.id == parts.id


def test_a_damaged_reference_changes_no_digest_of_the_candidate() -> None:
    bad = frozenset({"layers.1:forward_output.0"})
    comparison = compare(run_of(ARRAYS, unreadable=bad), run_of(ARRAYS))
    assert "is damaged" in (comparison.pairs[1].problem or "")
    assert comparison.candidate.content == compare(run_of(ARRAYS), run_of(ARRAYS)).candidate.content
