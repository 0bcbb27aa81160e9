"""Tolerance and format without a new pass, against passes over the elements themselves."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from analysis.lab.schemes import SCHEMES
from analysis.views_lens import SHOWN, lenses
from analysis.views_tolerance import refused
from core.comparison import Tolerance
from core.stats import PairStats
from metrics import accumulator


def stats_of(a: np.ndarray, b: np.ndarray, dtype: str = "float32") -> PairStats:
    gathered = accumulator(Tolerance(0, 0), dtype=dtype, dtypes=(dtype, dtype), shape=a.shape)
    gathered.add(a.ravel(), b.ravel())
    return gathered.stats()


def pair(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = (rng.standard_normal(20000) * np.exp2(rng.integers(-6, 3, 20000))).astype(np.float32)
    a[:500] = 0
    b = (a * (1 + 1e-3 * rng.standard_normal(20000)) + 1e-4 * rng.standard_normal(20000)).astype(
        np.float32
    )
    b[::3] = a[::3]
    return a, b


@pytest.mark.parametrize(
    ("atol", "rtol"), [(0, 0), (1e-4, 0), (0, 1e-3), (3e-4, 7e-4), (1, 1), (1e-9, 1e-9)]
)
def test_the_elements_another_tolerance_refuses_lie_between_the_bounds(atol, rtol):
    a, b = pair()
    found = refused(stats_of(a, b), atol=atol, rtol=rtol)
    true = int((np.abs(b.astype(float) - a) > atol + rtol * np.abs(a.astype(float))).sum())
    assert found.surely <= true <= found.at_most
    assert found.likely == pytest.approx(true, abs=0.02 * a.size)
    assert found.total == a.size


def test_a_wider_tolerance_never_refuses_more():
    stats = stats_of(*pair())
    counts = [refused(stats, atol=t, rtol=t).likely for t in (0, 1e-6, 1e-4, 1e-3, 1e-2, 1)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_what_is_not_finite_on_one_side_is_always_refused():
    a, b = pair()
    b[7] = np.inf
    assert refused(stats_of(a, b), atol=1e9, rtol=1e9).surely == 1


@pytest.mark.parametrize("spread", [1.0, 1e-6, 1e5])
@pytest.mark.parametrize("scheme", SHOWN)
def test_the_lens_predicts_what_rounding_really_costs(scheme, spread):
    rng = np.random.default_rng(1)
    a = (spread * rng.standard_normal(1 << 16)).astype(np.float32)
    found = {lens.scheme.name: lens for lens in lenses(stats_of(a, a))}[scheme]
    exact = a.astype(np.float64)
    kept = SCHEMES[scheme].quantise(exact[None], np.abs(exact).max())[0]
    gone = ~np.isfinite(kept)
    error = np.where(gone, exact, kept - exact)
    assert found.relative_l2 == pytest.approx(
        np.sqrt((error**2).sum() / (exact**2).sum()), rel=0.05
    )
    assert found.saturated == pytest.approx(gone.mean(), abs=0.01)
    assert found.underflow == pytest.approx(((kept == 0) & (exact != 0)).mean(), abs=0.01)


@pytest.mark.parametrize("stored", ["bfloat16", "float8_e4m3fn", "float16"])
def test_values_that_a_format_holds_already_lose_nothing_in_it(stored):
    rng = np.random.default_rng(2)
    a = rng.standard_normal(4096).astype(getattr(ml_dtypes, stored, stored)).astype(np.float32)
    by_name = {lens.scheme.name: lens for lens in lenses(stats_of(a, a))}
    if stored in by_name:
        assert by_name[stored].relative_l2 == 0
    if stored == "float8_e4m3fn":
        assert by_name["bfloat16"].relative_l2 == by_name["float16"].relative_l2 == 0
    if stored == "float16":
        true = a.astype(ml_dtypes.bfloat16).astype(float) - a
        want = np.sqrt((true**2).sum() / (a.astype(float) ** 2).sum())
        assert by_name["bfloat16"].relative_l2 == pytest.approx(want, rel=0.05)


def test_a_tensor_of_zeros_or_of_nothing_finite_has_no_error_to_predict():
    zeros = np.zeros(8, np.float32)
    assert all(np.isnan(lens.relative_l2) for lens in lenses(stats_of(zeros, zeros)))
    none = np.full(8, np.nan, np.float32)
    assert lenses(stats_of(none, none)) == ()
