"""Selections as text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SelectionError
from core.selection import axes_of, selection_from_text, text_from_selection


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("", ()),
        ("0, 2:5", (0, slice(2, 5))),
        ("[:, ::4, -1]", (slice(None), slice(None, None, 4), -1)),
        (" 1 , : , ", (1, slice(None))),
        ("-3:, 7:2:-1", (slice(-3, None), slice(7, 2, -1))),
    ],
)
def test_text_is_read_as_numpy_would(text: str, selection: object) -> None:
    assert selection_from_text(text) == selection


@pytest.mark.parametrize("text", ["a", "0 1", "1.5", "::0", "...", "0,,1", "1:2:3:4", "x" * 500])
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SelectionError):
        selection_from_text(text)


def test_a_selection_must_fit_the_shape() -> None:
    with pytest.raises(SelectionError, match="axis 1, which has 3"):
        selection_from_text("0, 3", shape=(2, 3))
    with pytest.raises(SelectionError, match="has 3 axes, the tensor 2"):
        selection_from_text(":, :, :", shape=(2, 3))
    with pytest.raises(SelectionError, match="has 0 elements"):
        selection_from_text("0", shape=(0,))


bound = st.none() | st.integers(-9, 9)
part = st.integers(-4, 3) | st.builds(slice, bound, bound, bound.filter(lambda step: step != 0))


@given(st.lists(part, max_size=3).map(tuple))
def test_axes_pick_what_numpy_picks_and_the_text_comes_back(
    selection: tuple[int | slice, ...],
) -> None:
    assert selection_from_text(text_from_selection(selection)) == selection
    shape = (4, 5, 6)
    grid = np.arange(120).reshape(shape)
    axes = axes_of(selection, shape)
    kept = [[axis] if isinstance(axis, int) else list(axis) for axis in axes]
    lengths = [len(axis) for axis in axes if isinstance(axis, range)]
    assert np.array_equal(grid[np.ix_(*kept)].reshape(lengths), grid[selection])
