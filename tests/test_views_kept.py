"""Pictures of huge parts, made of blocks that were read once, against reading every element."""

from __future__ import annotations

import numpy as np
import pytest
from memory_runs import run_of

from analysis import views, views_cut
from analysis.selection import Part, parse
from analysis.views import slice_view
from analysis.views_kept import kept_blocks, picture_of_kept

T = "layer:forward_output.0"
NAMES = {"reference_id": T, "candidate_id": T}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of more than 500 elements count as huge, and are kept in blocks of eight."""
    monkeypatch.setattr(views_cut, "DIRECT", 500)
    monkeypatch.setattr(views_cut, "_LEAST", 8)
    monkeypatch.setattr(views_cut, "BAND", 200)


def pair(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a = rng.standard_normal(shape).astype(np.float32)
    b = a + (rng.random(shape) < 0.1) * np.float32(0.01) * rng.standard_normal(shape).astype(
        np.float32
    )
    return a, b


def both(a: np.ndarray, b: np.ndarray, text: str, size: tuple[int, int]) -> tuple[Part, object]:
    runs = run_of({T: a}), run_of({T: b})
    part = views_cut.widened(parse(text, a.shape), a.shape, views.HEIGHT, views.WIDTH)
    text = part.text(a.shape)
    whole = views_cut.whole(part, a.shape).text(a.shape)
    asked = {"dtype": "float32", "rms": 1.0, **NAMES}
    blocks = kept_blocks(*runs, selection=whole, **asked)
    how = {"height": size[0], "width": size[1]}
    made = picture_of_kept(*runs, blocks=blocks, selection=text, **NAMES, **how)
    return part, (made, slice_view(*runs, selection=text, **asked, **how))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((64, 96), ":, :"),
        ((64, 96), "x:, y:"),
        ((61, 83), ":, :"),
        ((61, 83), "3:57, 11:83"),
        ((61, 83), "x3:57, y11:83"),
        ((5, 40, 33), "2, :, :"),
        ((40, 5, 33), ":, 1, :"),
        ((3000,), ":"),
        ((3001,), "100:2900"),
        ((2, 3001), "1, :"),
    ],
)
@pytest.mark.parametrize("size", [(7, 9), (1, 1)])
def test_the_worst_of_every_pixel_is_that_of_its_elements(shape, text, size):
    a, b = pair(shape)
    place = tuple(n // 2 for n in shape) if len(shape) != 3 else None
    if place:
        b[place] = a[place] + 5
    part, (made, _) = both(a, b, text, size)
    error = (b.astype(np.float64) - a)[part.selection]
    error = error.T if part.transposed else error
    down, across = made.block
    flat = error.reshape(-1)
    rows, columns = made.rows, made.columns
    laid = np.zeros(rows * columns)
    laid[: flat.size] = flat
    laid = laid.reshape(rows, columns)
    for y in range(made.images.error.shape[0]):
        for x in range(made.images.error.shape[1]):
            of = laid[y * down : (y + 1) * down, x * across : (x + 1) * across]
            want = of.flat[np.abs(of).argmax()]
            assert abs(made.images.error[y, x]) == pytest.approx(abs(want), rel=1e-6)
    assert np.abs(laid[made.worst]) == np.abs(laid).max()
    assert made.seen == made.elements == flat.size


def test_without_rounding_to_blocks_the_picture_is_the_same():
    a, b = pair((64, 128))
    a[3, 4] = b[3, 4] = np.nan
    b[20, 30] = np.inf
    _, (made, direct) = both(a, b, ":, :", (8, 8))
    assert made.block == direct.block
    for name in ("error", "relative", "ulps", "flags"):
        assert np.array_equal(
            getattr(made.images, name), getattr(direct.images, name), equal_nan=True
        ), name
    assert np.allclose(made.images.reference, direct.images.reference, rtol=1e-5, atol=1e-6)
    assert made.nonfinite == direct.nonfinite == (1, 2, 1)
    assert made.worst == direct.worst == (20, 30)


def test_windows_grow_to_whole_blocks_and_small_ones_stay():
    shape = (64, 128)
    assert views_cut.widened(parse("1:9, 3:5", shape), shape, 224, 416).text(shape) == "1:9, 3:5"
    part = views_cut.widened(parse("1:63, 3:125", shape), shape, 224, 416)
    down, across = views_cut.kept(views_cut.whole(part, shape), 224, 416).block
    assert part.down.start % down == part.across.start % across == 0
    assert part.down.start <= 1
    assert part.across.stop >= 125


def test_a_glance_says_how_much_it_saw_and_never_more_than_is_true():
    a, b = pair((60, 50))
    runs = run_of({T: a}), run_of({T: b})
    asked = {"selection": ":, :", "dtype": "float32", "rms": 1.0, **NAMES}
    seen = slice_view(*runs, **asked, height=6, width=5, glance=True)
    full = slice_view(*runs, **asked, height=6, width=5)
    assert seen.seen == 6 * 50
    assert (np.abs(seen.images.error) <= np.abs(full.images.error)).all()


@pytest.mark.parametrize("elements", [1 << 24, 1 << 29, 1 << 34])
@pytest.mark.parametrize("columns", [1, 7, 4096, 1 << 20])
def test_what_is_kept_of_a_part_of_any_size_is_bounded(elements, columns, monkeypatch):
    monkeypatch.undo()
    shape = (elements // columns, columns)
    grid = views_cut.kept(parse(":, :", shape), 224, 416)
    down, across = grid.blocks
    assert down * across <= 2.1 * (1 << 21)
    for tile in views_cut.tiles(grid):
        assert (tile.bottom - tile.top) * (tile.right - tile.left) <= 2 * views_cut.BAND
        break
