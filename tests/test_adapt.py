"""Steps that make tensors comparable: read in parts, proposed by shape, checked by values."""

import pickle
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_runs import run_of

from analysis.adapt import reshaped
from analysis.adapt.lazy import Added, Joined, LazyArray, Permuted, Sliced, Stored
from analysis.adapt.proposals import Proposal, proposals
from analysis.adapt.reading import chunks, selected
from analysis.adapt.reshaped import Reshaped
from analysis.adapt.runs import adapted, extended, names_in_extended
from analysis.adapt.text import adaptation_text, step_in_words, steps_from_text
from core.comparison import Match, Pair, Tolerance
from core.errors import CompareError
from core.runs import Array, Run

GENERATOR = np.random.default_rng(3)
A, B = (GENERATOR.standard_normal((4, 6, 5)).astype(np.float32) for _ in range(2))
RUN = run_of({"a:forward_output.0": A, "b:forward_output.0": B})
STORED = [Stored(RUN.values, tensor) for tensor in RUN.tensors.values()]


def cases() -> list[tuple[LazyArray, Array]]:
    a, b = STORED
    joined = Permuted(Joined((a, b), 0), (1, 2, 0))
    return [
        (Permuted(a, (2, 0, 1)), A.transpose(2, 0, 1)),
        (Reshaped(a, (24, 5)), A.reshape(24, 5)),
        (Reshaped(a, (2, 2, 30)), A.reshape(2, 2, 30)),
        (Sliced(a, 1, 2, 5), A[:, 2:5]),
        (Joined((a, b), 1), np.concatenate([A, B], 1)),
        (Added((a, b)), A + B),
        (
            Reshaped(joined, (5, 6, 8)),
            np.concatenate([A, B]).transpose(1, 2, 0).reshape(5, 6, 8),
        ),
    ]


def parts(length: int) -> st.SearchStrategy[int | slice]:
    bound = st.none() | st.integers(-length, length)
    step = st.sampled_from([None, 1, 2, 3, -1, -2])
    return st.integers(-length, length - 1) | st.builds(slice, bound, bound, step)


@pytest.mark.parametrize("span", [1 << 22, 7])
@given(data=st.data())
def test_any_selection_reads_as_from_the_whole_array(span: int, data: st.DataObject) -> None:
    lazy, whole = data.draw(st.sampled_from(cases()))
    selection = tuple(data.draw(parts(length)) for length in whole.shape)
    selection = selection[: data.draw(st.integers(0, whole.ndim))]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reshaped, "_SPAN", span)
        read = selected(lazy, selection)
    assert lazy.shape == whole.shape
    assert read.shape == whole[selection].shape
    assert np.array_equal(read, whole[selection])


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize(("elements", "start"), [(1, 0), (7, 0), (50, 13), (1000, 59), (7, 49)])
def test_chunks_are_the_flat_array_in_equal_stretches(n: int, elements: int, start: int) -> None:
    lazy, whole = cases()[n]
    found = list(chunks(lazy, elements, start))
    assert np.array_equal(np.concatenate(found), whole.ravel()[start:])
    assert {c.size for c in found[:-1]} <= {elements}


def propose(
    ours: Mapping[str, Array], theirs: Mapping[str, Array], **facts: object
) -> tuple[Proposal, ...]:
    reference, candidate = (
        run_of(side, facts=dict.fromkeys(side, facts)) for side in (ours, theirs)
    )
    return proposals(
        reference, candidate, list(reference.tensors.values()), list(candidate.tensors.values())
    )


def done(ways: tuple[Proposal, ...]) -> list[str]:
    return [step.operation for step in ways[0].steps] if ways else ["none"]


def noisy(array: Array) -> Array:
    return (array * (1 + 1e-3 * GENERATOR.standard_normal(array.shape))).astype(np.float32)


WIDE = GENERATOR.standard_normal((32, 48)).astype(np.float32)
SQUARE = GENERATOR.standard_normal((32, 32)).astype(np.float32)
WEIGHT, OUTPUT = "a:forward_params.weight", "a:forward_output.0"


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "steps"),
    [
        (WEIGHT, WIDE, noisy(WIDE.T), ["transpose"]),
        (WEIGHT, SQUARE, noisy(SQUARE.T), ["transpose"]),
        (WEIGHT, SQUARE, noisy(SQUARE), []),
        (OUTPUT, A, noisy(A[None]), ["squeeze"]),
        (OUTPUT, A[None], noisy(A), ["unsqueeze"]),
        (OUTPUT, A, noisy(A).reshape(24, 5), ["unmerge"]),
        (OUTPUT, A.reshape(4, 30), noisy(A), ["merge"]),
        (OUTPUT, A, noisy(A.transpose(1, 0, 2)), ["transpose"]),
        (OUTPUT, WIDE[:, :40], noisy(WIDE), ["pad_slice"]),
        (OUTPUT, WIDE, noisy(WIDE[:, :40]), ["pad_slice"]),
    ],
)
def test_values_confirm_what_the_shapes_allow(
    name: str, ours: Array, theirs: Array, steps: list[str]
) -> None:
    assert done(propose({name: ours}, {name: theirs})) == steps


@pytest.mark.parametrize("shape", [(48, 32), (1536,), (16, 96), (32, 24)])
def test_another_shape_with_other_values_is_never_forced_into_this_one(
    shape: tuple[int, ...],
) -> None:
    other = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    assert propose({OUTPUT: WIDE}, {OUTPUT: other}) == ()


def test_constants_confirm_no_transposition() -> None:
    assert propose({OUTPUT: np.zeros((4, 6))}, {OUTPUT: np.zeros((6, 4))}) == ()
    assert done(propose({WEIGHT: np.ones((4, 4))}, {WEIGHT: np.ones((4, 4))})) == []


def test_elements_are_not_reshaped_across_rows_even_when_they_agree() -> None:
    assert propose({OUTPUT: WIDE}, {OUTPUT: WIDE.reshape(64, 24)}) == ()


def shards(pieces: list[Array]) -> dict[str, Array]:
    return {f"r{n}:forward_output.0": piece for n, piece in enumerate(pieces)}


def test_shards_are_joined_along_the_axis_whose_lengths_add_up() -> None:
    (way,) = propose({OUTPUT: WIDE}, shards(np.split(WIDE, 2, axis=1)))
    assert [(s.operation, s.arguments, s.before, s.after) for s in way.steps] == [
        ("concat", (1, 2), ((32, 24), (32, 24)), ((32, 48),))
    ]


def test_partial_sums_are_told_from_replicas_by_their_values() -> None:
    half = 0.5 * WIDE + GENERATOR.standard_normal(WIDE.shape).astype(np.float32)
    assert done(propose({OUTPUT: WIDE}, shards([half, WIDE - half]))) == ["sum"]
    assert done(propose({OUTPUT: WIDE}, shards([WIDE, WIDE]))) == ["replicated"]
    assert done(propose({OUTPUT: WIDE}, shards([WIDE, noisy(WIDE)]))) == ["replicated"]


def test_shards_of_both_sides_are_joined_to_one_shape() -> None:
    ways = propose(shards(np.split(WIDE, 2)), shards(np.split(noisy(WIDE), 4)))
    assert done(ways) == ["concat", "concat"]


def pair_of(text: str, ours: list[Array], theirs: list[Array]) -> tuple[Run, Run, Pair]:
    reference, candidate = run_of(shards(ours)), run_of(shards(theirs))
    left, right = list(reference.tensors.values()), list(candidate.tensors.values())
    proposal = steps_from_text(text, reference, candidate, left, right)
    match = Match("mapping", adaptation=proposal.adaptation(left, right))
    return reference, candidate, Pair(left[0], right[0], match, Tolerance(0, 0))


TEXT = "candidate: concat(0, 2); candidate: transpose(1, 0)"


def test_steps_as_text_read_back_as_the_same_steps() -> None:
    *_, pair = pair_of(TEXT, [WIDE], list(np.split(WIDE.T, 2)))
    assert adaptation_text(pair.adaptation) == TEXT
    assert pair.adaptation is not None
    assert [step_in_words(step) for step in pair.adaptation.steps] == [
        "candidate: 2 parts joined along axis 0: 2 of 24 × 32 → 48 × 32",
        "candidate: axes in the order 1, 0: 48 × 32 → 32 × 48",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("candidate: fold(2)", "no step"),
        ("candidate: concat(5, 2)", "does not fit"),
        ("candidate: concat(0, 3)", "does not fit"),
        ("candidate: transpose(0, 1)", "several tensors"),
        ("candidate: concat(0, 2); candidate: split(0, 40, 60)", "do not lie within"),
    ],
)
def test_steps_that_do_not_fit_are_named(text: str, message: str) -> None:
    with pytest.raises(CompareError, match=message):
        pair_of(text, [WIDE], list(np.split(WIDE.T, 2)))


def test_an_adapted_pair_reads_as_one_tensor_of_its_shape() -> None:
    reference, candidate, pair = pair_of(TEXT, [WIDE], list(np.split(WIDE.T, 2)))
    ours, theirs = adapted(reference, candidate, pair)
    assert ours[pair.reference.id].shape == theirs[pair.candidate.id].shape == pair.shape
    assert np.array_equal(theirs.read(pair.candidate.id), WIDE)
    assert np.array_equal(theirs.read(pair.candidate.id, (slice(3, 9, 2), -1)), WIDE[3:9:2, -1])
    assert np.array_equal(theirs.read("r1:forward_output.0"), np.split(WIDE.T, 2)[1])


def test_a_worker_is_sent_only_the_tensors_an_adapted_one_is_made_of() -> None:
    whole = [*np.split(WIDE.T, 2)]
    reference, candidate, pair = pair_of(TEXT, [WIDE], whole)
    _, theirs = extended(reference, candidate, [pair])
    _, name = names_in_extended(pair)
    sent: Run = pickle.loads(pickle.dumps(theirs.only([name])))
    assert list(sent.tensors) == [name]
    assert np.array_equal(np.concatenate(list(sent.chunks(name, 100))), WIDE.ravel())
