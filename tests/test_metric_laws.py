"""Laws that hold for every registered metric; a new metric enrols itself."""

import math
import pickle
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import TensorPair, of, ordinary_floats, tensor_pairs

from core.comparison import Tolerance
from core.stats import PairStats
from metrics import METRICS, Metric

# The sums cannot tell a residual below 1e-7 of the error from their own rounding.
RESOLUTION = {"best_fit_residual": 1e-6}
# A signed mean falls when a negative error is added to positive ones.
NOT_MONOTONE = {"bias"}
ERRORS = [m for m in METRICS.values() if m.family == "error" and m.name not in NOT_MONOTONE]
DRIFT = [m for m in METRICS.values() if m.family == "drift"]
RATIOS = [m for m in METRICS.values() if m.unit in ("1", "dB", "bits", "ulp")]

more = settings(max_examples=3 * settings().max_examples)  # one example tries all metrics
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=lambda m: m.name)


def same(metric: Metric, a: PairStats, b: PairStats) -> bool:
    """Equal up to the rounding of sums: relative to the value, or to the size of the data."""
    x, y = metric(a), metric(b)
    if x == y or (math.isnan(x) and math.isnan(y)):
        return True
    if metric.unit == "data":
        sizes = (s.max_abs for s in (a.reference, a.candidate) if s.finite)
        return math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12 * max(sizes, default=0.0))
    slack = RESOLUTION.get(metric.name, 1e-12)
    if metric.name.startswith("best_fit"):  # Σa·e / Σa² cancels to eps of |e| / |a|
        slack *= max(1.0, METRICS["relative_l2"](a))
    return math.isclose(x, y, rel_tol=1e-9, abs_tol=slack)


def broken(a: PairStats, b: PairStats, metrics: Iterable[Metric] = METRICS.values()) -> list[str]:
    """Metrics that differ between two statistics that should give the same."""
    return [f"{m.name}: {m(a)} != {m(b)}" for m in metrics if not same(m, a, b)]


@more
@given(pair=tensor_pairs())
def test_equal_tensors_score_ideal_or_are_undefined(pair: TensorPair) -> None:
    stats = pair._replace(candidate=pair.reference).stats()
    scores = {m.name: (m(stats), m.ideal) for m in METRICS.values() if m.ideal is not None}
    assert not {k: v for k, v in scores.items() if v[0] != v[1] and not math.isnan(v[0])}


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.ideal is not None], ids=lambda m: m.name
)
def test_an_ordinary_tensor_against_itself_scores_ideal(metric: Metric) -> None:
    values = np.linspace(-3, 5, 1001)
    assert metric(of(values, values).stats()) == metric.ideal


@more
@given(pair=tensor_pairs(), data=st.data())
def test_splitting_a_tensor_changes_nothing(pair: TensorPair, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, pair.reference.size))
    assert not broken(pair.stats(), pair.stats(0, at) + pair.stats(at))


@more
@given(pair=tensor_pairs(), data=st.data())
def test_permuting_both_sides_alike_changes_nothing(pair: TensorPair, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(pair.reference.size))), np.intp)
    moved = TensorPair(pair.reference[order], pair.candidate[order], pair.shape)
    assert not broken(pair.stats(), moved.stats())


@more
@given(data=st.data(), size=st.integers(0, 12), power=st.integers(-300, 300))
def test_scaling_both_sides_by_a_power_of_two_changes_no_ratio(
    data: st.DataObject, size: int, power: int
) -> None:
    a, b = data.draw(ordinary_floats(size)), data.draw(ordinary_floats(size))
    relative = Tolerance(0.0, 1e-2)
    before = of(a, b).stats(tolerance=relative)
    after = of(np.ldexp(a, power), np.ldexp(b, power)).stats(tolerance=relative)
    # Between zero and a value, and across zero, lie the more numbers the larger the value.
    crossing = bool((a * b <= 0).any())
    ratios = [m for m in RATIOS if not (crossing and m.name.startswith("ulp"))]
    assert not broken(before, after, ratios)


@more
@given(pair=tensor_pairs(), data=st.data())
def test_drift_ignores_the_order_of_one_side(pair: TensorPair, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(pair.reference.size))), np.intp)
    moved = pair._replace(candidate=pair.candidate[order])
    assert not broken(pair.stats(), moved.stats(), DRIFT)


@pytest.mark.parametrize("metric", ERRORS, ids=lambda m: m.name)
def test_errors_see_the_order_of_one_side(metric: Metric) -> None:
    values = np.arange(1.0, 9.0)
    assert metric(of(values, values).stats()) == 0
    assert metric(of(values, values[::-1]).stats()) > 0


@more
@given(
    pair=tensor_pairs(dtypes=("float32", "float16"), nonfinite=False, min_size=1), data=st.data()
)
def test_an_error_metric_never_falls_when_an_error_grows(
    pair: TensorPair, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, pair.reference.size - 1))
    factor = data.draw(st.floats(1, 1e6))
    a, b = pair.reference.astype(np.float64), pair.candidate.astype(np.float64)
    farther = b.copy()
    farther[at] = a[at] + (b[at] - a[at]) * factor
    assume(abs(farther[at] - a[at]) >= abs(b[at] - a[at]))  # the sum above rounds
    before, after = of(a, b).stats(), of(a, farther).stats()
    scores = {m.name: (m(before), m(after)) for m in ERRORS}
    assert not {k: v for k, v in scores.items() if not v[1] >= v[0] * (1 - 1e-12)}


@each_metric
def test_no_metric_raises_on_an_empty_or_wholly_undefined_tensor(metric: Metric) -> None:
    for pair in (of([], [], np.float32), of([math.nan] * 3, [math.inf] * 3, np.float32)):
        assert isinstance(metric(pair.stats()), float)
    if metric.unit != "elements":
        assert math.isnan(metric(of([], [], np.float32).stats()))


@each_metric
def test_every_metric_says_formula_range_undefined_blind_spot_and_source(metric: Metric) -> None:
    first, _, rest = metric.help.partition("\n\n")
    assert first.endswith(".")
    assert len(first) <= 100
    labels = [line.partition(":")[0] for line in rest.splitlines()]
    wanted = ["Formula", "Range", "NaN", "Blind to", "Source"]
    assert [label for label in labels if label in wanted] == wanted


@each_metric
def test_a_metric_crosses_a_process_boundary_as_itself(metric: Metric) -> None:
    assert pickle.loads(pickle.dumps(metric)) is metric
