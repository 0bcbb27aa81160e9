"""The images of a slice against plain NumPy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from memory_runs import run_of

from analysis.elementwise import difference, float_values, ulps_apart
from analysis.selection import default, parse
from analysis.views import (
    ABSENT,
    CANDIDATE_NONFINITE,
    REFERENCE_NONFINITE,
    UNSHARED_NONFINITE,
    slice_view,
)
from core.errors import ExplorerError

T = "layer:forward_output.0"


def view(a, b, selection=None, *, dtype="float32", rms=1.0, **size):
    part = selection if selection is not None else default(a.shape).text(a.shape)
    return slice_view(
        run_of({T: a}),
        run_of({T: b}),
        reference_id=T,
        candidate_id=T,
        selection=part,
        dtype=dtype,
        rms=rms,
        **size,
    )


def noisy(shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape).astype(dtype)
    return a, (a + 0.01 * rng.standard_normal(shape).astype(dtype)).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (2, 3, 4, 5), (2, 2, 3, 4, 5)])
def test_a_small_slice_shows_every_element_as_it_is(shape):
    a, b = noisy(shape)
    seen = view(a, b)
    corner = (0,) * (len(shape) - 2)
    assert seen.block == (1, 1)
    assert np.array_equal(seen.images.reference, a[corner])
    assert np.array_equal(seen.images.candidate, b[corner])
    want = b[corner].astype(np.float64) - a[corner]
    assert np.allclose(seen.images.error, want, rtol=1e-6)
    assert not seen.images.flags.any()


@pytest.mark.parametrize(
    ("selection", "want"),
    [
        ("1, :, 2, :", lambda a: a[1, :, 2, :]),
        (":, 0, 1, :", lambda a: a[:, 0, 1, :]),
        ("x:, 0, 1, y:", lambda a: a[:, 0, 1, :].T),
        ("-1, 1:3, 0, 2:4", lambda a: a[-1, 1:3, 0, 2:4]),
    ],
)
def test_any_two_axes_and_windows_can_be_shown(selection, want):
    a, b = noisy((3, 4, 5, 6))
    seen = view(a, b, selection)
    assert np.array_equal(seen.images.reference, want(a))
    assert np.array_equal(seen.images.candidate, want(b))


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (64, 64), (256, 512)])
@pytest.mark.parametrize("place", [(0, 0), (299, 1199), (150, 601)])
def test_a_single_bad_element_shows_at_any_reduction(size, place):
    a = np.ones((300, 1200), np.float32)
    b = a.copy()
    b[place] = -3.0
    seen = view(a, b, height=size[0], width=size[1])
    pixel = tuple(i // n for i, n in zip(place, seen.block, strict=True))
    assert seen.images.error[pixel] == -4.0
    assert np.count_nonzero(seen.images.error) == 1
    assert np.count_nonzero(seen.images.relative) == np.count_nonzero(seen.images.ulps) == 1
    assert seen.worst == place
    assert seen.error_limit > 0
    assert seen.images.error.shape[0] <= size[0]
    assert seen.images.error.shape[1] <= size[1]


def test_blocks_hold_means_of_values_and_peaks_of_errors():
    a, b = noisy((10, 9))
    seen = view(a, b, height=4, width=3, rms=1.0)
    assert seen.block == (3, 3)
    for row in range(4):
        for column in range(3):
            at = np.s_[3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
            x, y = a[at].astype(float), b[at].astype(float)
            e = y - x
            assert seen.images.reference[row, column] == pytest.approx(x.mean(), rel=1e-6)
            assert seen.images.error[row, column] == pytest.approx(
                e.flat[np.abs(e).argmax()], rel=1e-6
            )
            scale = np.maximum(np.maximum(np.abs(x), np.abs(y)), 0.01)
            assert seen.images.relative[row, column] == pytest.approx(
                (np.abs(e) / scale).max(), rel=1e-6
            )


def test_bands_and_tiles_change_nothing(monkeypatch):
    a, b = noisy((50, 70))
    whole = view(a, b, height=9, width=8)
    monkeypatch.setattr("analysis.views_cut.BAND", 40)
    banded = view(a, b, height=9, width=8)
    for name in ("reference", "candidate", "error", "relative", "ulps"):
        assert np.array_equal(getattr(whole.images, name), getattr(banded.images, name)), name
    assert whole.worst == banded.worst


def test_non_finite_values_are_flagged_and_counted_and_spoil_no_block():
    a, b = noisy((4, 8))
    a[0, 0], b[0, 0] = np.nan, np.nan  # shared
    a[1, 1], b[1, 1] = -np.inf, -np.inf  # shared
    b[2, 2] = np.inf
    a[3, 3] = np.nan
    seen = view(a, b)
    assert seen.nonfinite == (3, 3, 2)
    assert seen.images.flags[0, 0] == REFERENCE_NONFINITE | CANDIDATE_NONFINITE
    assert seen.images.flags[2, 2] == CANDIDATE_NONFINITE | UNSHARED_NONFINITE
    assert seen.images.flags[3, 3] == REFERENCE_NONFINITE | UNSHARED_NONFINITE
    assert seen.worst in {(2, 2), (3, 3)}
    reduced = view(a, b, height=1, width=1)
    finite = np.isfinite(a)
    assert reduced.images.reference[0, 0] == pytest.approx(a[finite].mean(dtype=float), rel=1e-5)
    assert reduced.images.flags[0, 0] == 7
    assert math.isfinite(reduced.limits[0])


def test_values_beyond_float32_and_huge_float64_stay_finite():
    a = np.full((2, 4), 1.7e308)
    b = np.full((2, 4), 1.6e308)
    seen = view(a, b, height=1, width=1, dtype="float64")
    assert np.isfinite(seen.images.reference).all()
    assert np.isfinite(seen.images.error).all()
    assert seen.nonfinite == (0, 0, 0)


@pytest.mark.parametrize("length", [1, 2, 16, 17, 100, 385])
def test_a_vector_is_folded_into_rows_and_its_ragged_end_is_absent(length):
    a, b = noisy((length,))
    seen = view(a, b)
    flat = seen.images.reference.ravel()[:length]
    assert np.array_equal(flat, a)
    flags = seen.images.flags.ravel()
    assert not flags[:length].any()
    assert (flags[length:] == ABSENT).all()
    assert seen.columns >= seen.rows or length == 1


def test_a_scalar_is_one_pixel():
    seen = view(np.array(2.0), np.array(2.5), "")
    assert seen.images.reference.shape == (1, 1)
    assert seen.images.error[0, 0] == 0.5
    assert seen.elements == 1


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (2, 0, 3)])
def test_an_empty_tensor_has_no_elements_and_no_worst(shape):
    a = np.zeros(shape, np.float32)
    seen = view(a, a)
    assert seen.elements == 0
    assert seen.worst is None
    assert seen.nonfinite == (0, 0, 0)
    assert math.isnan(seen.limits[0])


def test_huge_strides_are_read_no_wider_than_the_slice():
    base = np.arange(6 * 5 * 4, dtype=np.float32).reshape(6, 5, 4)
    a = np.lib.stride_tricks.as_strided(base, (6, 4), (base.strides[0], base.strides[2]))
    seen = view(a, a + 1)
    assert np.array_equal(seen.images.reference, a)
    assert (seen.images.error == 1).all()


@pytest.mark.parametrize(
    ("dtype", "a", "b", "ulps"),
    [
        ("bfloat16", 1.0, 1.0 + 2**-7, 1),
        ("float16", 1.0, 1.0 - 2**-11, 1),
        ("float32", 0.0, -0.0, 0),
        ("float32", float(np.float32(1e-45)), -float(np.float32(1e-45)), 2),
        ("float8_e4m3fn", 448.0, 416.0, 1),
        ("int32", 7, 4, 3),
        ("bool", True, False, 1),
    ],
)
def test_ulps_count_the_numbers_of_the_format_in_between(dtype, a, b, ulps):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    assert ulps_apart(np.array([a], kind), np.array([b], kind), dtype) == [ulps]


def test_ulps_of_the_far_ends_of_float64_do_not_overflow():
    big = np.array([np.finfo(np.float64).max])
    assert ulps_apart(big, -big, "float64")[0] == pytest.approx(2 * 0x7FEFFFFFFFFFFFFF)


def test_integers_beyond_float64_keep_their_difference():
    a = np.array([[2**60, 2**62]], np.int64)
    seen = view(a, a + 2, dtype="int64")
    assert (seen.images.error == 2).all()


FORMATS_HELD = (
    *("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"),
)


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("dtype", FORMATS_HELD)
def test_every_format_gives_the_errors_of_its_elements(dtype, block):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(4)
    whole = rng.integers(-9, 9, (12, 30)) if kind.kind != "u" else rng.integers(0, 99, (12, 30))
    spread = whole if kind.kind in "biu" else whole * np.exp2(rng.integers(-20, 6, (12, 30)))
    a = spread.astype(kind)
    b = np.where(rng.random((12, 30)) < 0.5, a, np.roll(a, 1)).astype(kind)
    if kind.kind not in "biu":
        a[1, 1], b[2, 2], b[3, 3] = np.nan, np.nan, np.inf
    if dtype in ("int64", "uint64"):
        a[0, 0], b[0, 0] = 2**62, 2**62 + 3
    seen = view(a, b, dtype=dtype, rms=1.0, height=12 // block, width=30 // block)
    error, x, y = difference(a, b), float_values(a), float_values(b)
    fine = np.isfinite(x) & np.isfinite(y)
    with np.errstate(all="ignore"):
        relative = np.abs(error) / np.maximum(np.maximum(np.abs(x), np.abs(y)), 0.01)
    apart = ulps_apart(a, b, dtype)
    for row, column in np.ndindex(seen.images.error.shape):
        at = np.s_[row * block : (row + 1) * block, column * block : (column + 1) * block]
        held = fine[at]
        if not held.any():
            assert np.isnan(seen.images.error[row, column])
            continue
        assert abs(seen.images.error[row, column]) == np.float32(np.abs(error[at][held]).max())
        assert seen.images.relative[row, column] == np.float32(relative[at][held].max())
        assert seen.images.ulps[row, column] == np.float32(apart[at][held].max())
        mean = x[at][np.isfinite(x[at])].mean()
        assert seen.images.reference[row, column] == pytest.approx(mean, rel=1e-5, abs=1e-9)


def test_complex_values_show_magnitudes():
    a = np.array([[3 + 4j, 1j]], np.complex64)
    b = np.array([[3 + 4j, -1j]], np.complex64)
    seen = view(a, b, dtype="complex64")
    assert seen.complex
    assert np.allclose(seen.images.reference, [[5, 1]])
    assert np.allclose(seen.images.error, [[0, 2]])


def test_shapes_that_differ_have_no_slice():
    with pytest.raises(ExplorerError):
        view(np.zeros((2, 3)), np.zeros((3, 2)), ":, :")


@pytest.mark.parametrize(
    "text", ["0, :", "0, 0, 0, 0, 0", "9, :, :", "a, :, :", ":, :, :", "0, 3:1, :", "0, x:, x:"]
)
def test_a_selection_that_does_not_fit_says_so(text):
    with pytest.raises(ExplorerError):
        parse(text, (2, 4, 5))


@pytest.mark.parametrize(
    "text", ["0, :, :", "1, x:, y:", "1, 2, :", "0, 1:3, 2:5", "1, 2, 3", "x1:2, 2, y:"]
)
def test_a_selection_reads_back_as_it_was_written(text):
    part = parse(text, (2, 4, 5))
    assert part.text((2, 4, 5)) == text
    assert parse(part.text((2, 4, 5)), (2, 4, 5)) == part


def test_the_default_slice_passes_through_the_element_it_is_asked_to_show():
    assert default((2, 3, 4, 5), (1, 2, 3, 4)).text((2, 3, 4, 5)) == "1, 2, :, :"
    assert default((1, 7, 1)).text((1, 7, 1)) == "0, :, 0"
    assert default(()).text(()) == ""
