"""The format lab: losses against formulas, range and recommendations."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from memory_runs import run_of

from analysis.lab import IDEAL, SCHEMES, lab, recommended, steps
from analysis.lab.grids import grid_fit
from analysis.lab.losses import loss, sample

RNG = np.random.default_rng(3)
GAUSS = RNG.standard_normal((128, 1024))


@pytest.mark.parametrize("name", SCHEMES)
def test_gaussian_data_reaches_the_limit_of_every_format(name: str) -> None:
    found = loss("x", GAUSS, SCHEMES[name], float(np.abs(GAUSS).max()))
    assert found.sqnr_db == pytest.approx(SCHEMES[name].ideal_db, abs=1.0)
    assert found.fits
    assert found.saturated == 0


@pytest.mark.parametrize("name", SCHEMES)
def test_what_a_format_kept_it_keeps_again(name: str) -> None:
    scheme, peak = SCHEMES[name], float(np.abs(GAUSS).max())
    once = scheme.quantise(GAUSS, peak)
    if name == "nvfp4":  # its block scale is itself rounded from the data that it scales
        return
    again = scheme.quantise(once, float(np.abs(once).max()))
    np.testing.assert_allclose(again, once, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 129), (5, 16)])
def test_tails_zeros_and_signs(name: str, shape: tuple[int, int]) -> None:
    values = RNG.standard_normal(shape)
    values[0, 0] = 0.0
    kept = SCHEMES[name].quantise(values, float(np.abs(values).max()))
    assert kept.shape == shape
    assert kept[0, 0] == 0.0
    assert (np.sign(kept) * np.sign(values) >= 0).all()
    zeros = SCHEMES[name].quantise(np.zeros(shape), 0.0)
    assert not zeros.any()


def test_casts_agree_with_the_formats_themselves() -> None:
    for name, dtype in (("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16)):
        expected = GAUSS.astype(np.float32).astype(dtype).astype(np.float64)
        np.testing.assert_array_equal(SCHEMES[name].quantise(GAUSS, 9.0), expected)


def test_values_beyond_the_range_are_counted_and_do_not_fit() -> None:
    values = GAUSS.copy()
    values[0, :8] = 1e5
    found = loss("x", values, SCHEMES["float16"], 1e5)
    assert found.saturated == pytest.approx(8 / values.size)
    assert not found.fits
    assert loss("x", values, SCHEMES["bfloat16"], 1e5).fits


def test_small_values_that_vanish_are_counted() -> None:
    values = np.full((4, 64), 1e-9)
    values[:, 0] = 1.0
    assert loss("x", values, SCHEMES["float16"], 1.0).underflow == pytest.approx(63 / 64)


def test_zeros_have_no_level() -> None:
    assert math.isnan(loss("x", np.zeros((2, 8)), SCHEMES["bfloat16"], 0.0).sqnr_db)


def test_outlier_channels_ask_for_a_finer_scale() -> None:
    values = GAUSS.copy()
    values[3] *= 200  # one row needs a scale of its own
    losses = [loss("x", values, s, float(np.abs(values).max())) for s in SCHEMES.values()]
    by_name = {found.scheme: found for found in losses}
    assert by_name["int8_row"].fits
    quiet = loss("x", values[:3], SCHEMES["int8_tensor"], float(np.abs(values).max()))
    assert not quiet.fits
    assert recommended([by_name["bfloat16"], by_name["int8_row"]], 30) == "int8_row"
    assert recommended([by_name["bfloat16"], by_name["int8_row"]], 50) == "bfloat16"
    assert recommended([quiet], 30) == ""


def test_a_run_is_tried_side_by_side_and_only_where_it_holds_floats() -> None:
    a = {"model.w:forward_params.weight": GAUSS.astype(np.float32),
         "model.ids:forward_input.0": np.arange(12).reshape(3, 4)}  # fmt: skip
    run = run_of(a, label="a")
    found = lab(run, run, side="candidate", tensors=tuple(run.tensors), peaks={})
    assert {each.tensor for each in found} == {"model.w:forward_params.weight"}
    assert len(found) == len(SCHEMES)


def test_a_sample_is_whole_rows_and_nonfinite_values_count_as_nothing() -> None:
    values = GAUSS.astype(np.float32)
    values[0, 0] = np.nan
    run = run_of({"model.w:forward_params.weight": values}, label="a")
    tensor = next(iter(run.tensors.values()))
    rows = sample(run, tensor, 4 * 1024)
    assert rows.shape == (4, 1024)
    assert rows[0, 0] == 0.0
    np.testing.assert_array_equal(rows[-1], values[-1])


def test_a_quantised_candidate_shows_its_step_and_its_rounding() -> None:
    step = np.abs(GAUSS).max(axis=1, keepdims=True) / 127
    nearest = np.rint(GAUSS / step) * step
    cut = np.trunc(GAUSS / step) * step
    good, bad = grid_fit(GAUSS, nearest), grid_fit(GAUSS, cut)
    assert good is not None
    assert bad is not None
    assert good.rmse_steps == pytest.approx(IDEAL, rel=0.02)
    assert bad.rmse_steps == pytest.approx(2 * IDEAL, rel=0.05)
    assert grid_fit(GAUSS, GAUSS) is None


def test_quantised_tensors_are_found_by_their_pair() -> None:
    step = np.abs(GAUSS).max(axis=1, keepdims=True) / 127
    name = "model.w:forward_params.weight"
    ours = run_of({name: GAUSS.astype(np.float32)}, label="a")
    theirs = run_of({name: (np.rint(GAUSS / step) * step).astype(np.float32)}, label="b")
    assert set(steps(ours, theirs, pairs=((name, name),))) == {name}
    assert not steps(ours, ours, pairs=((name, name),))
