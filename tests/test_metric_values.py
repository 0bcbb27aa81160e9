"""Each metric against its definition, written out anew in exact or extended arithmetic."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from strategies import INTEGERS, TensorPair, of, tensor_pairs

from core.comparison import Tolerance
from metrics import METRICS

Exact = list[Fraction]


def kept(pair: TensorPair) -> tuple[Exact, Exact]:
    """Both sides as fractions, where both are finite."""
    sides = [numbers(side) for side in (pair.reference, pair.candidate)]
    both = [(a, b) for a, b in zip(*sides, strict=True) if math.isfinite(a) and math.isfinite(b)]
    return [Fraction(a) for a, _ in both], [Fraction(b) for _, b in both]


def numbers(side: NDArray[Any]) -> list[Any]:
    """Python numbers, integers exact."""
    return side.tolist() if side.dtype.kind in "biu" else side.astype(np.float64).tolist()


def root(value: Fraction) -> float:
    """Square root by integers: 60 digits before the last rounding."""
    if not value:
        return 0.0
    shift = 400 + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    shift += shift % 2
    return float(
        Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << shift // 2)
    )


def against(part: Fraction, whole: Fraction) -> float:
    return 0.0 if not part else float(part / whole) if whole else math.inf


def dot(a: Exact, b: Exact) -> Fraction:
    return sum(x * y for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def minus(b: Exact, a: Exact) -> Exact:
    return [y - x for x, y in zip(a, b, strict=True)]


def centred(a: Exact) -> Exact:
    mean = Fraction(sum(a), len(a))
    return [x - mean for x in a]


def angle(a: Exact, b: Exact) -> float:
    """1 - cos by exact fractions, from sin² where cos > 0."""
    aa, bb, ab = dot(a, a), dot(b, b), dot(a, b)
    if not aa or not bb:
        return 0.0 if aa == bb else math.nan
    cos = root(Fraction(ab * ab, aa * bb)) * (1 if ab > 0 else -1)
    return 1 - cos if cos <= 0 else float(Fraction(aa * bb - ab * ab, aa * bb)) / (1 + cos)


def pearson(a: Exact, b: Exact) -> float:
    a, b = centred(a), centred(b)
    return angle(a, b) if any(a) and any(b) else math.nan


def relative_l2(a: Exact, b: Exact) -> float:
    e = minus(b, a)
    return 0.0 if not any(e) else root(dot(e, e) / dot(a, a)) if any(a) else math.inf


def decibels(a: Exact, b: Exact) -> float:
    ratio = relative_l2(a, b)
    return math.inf if not ratio else -20 * math.log10(ratio)


def scale(a: Exact, b: Exact) -> float:
    return float(dot(a, b) / dot(a, a)) if any(a) else math.nan


def residual(a: Exact, b: Exact) -> float:
    if not any(a):
        return math.nan if any(b) else 0.0
    alpha = dot(a, b) / dot(a, a)
    left = [y - alpha * x for x, y in zip(a, b, strict=True)]
    return root(dot(left, left) / dot(a, a))


def norms(a: Exact, b: Exact) -> float:
    if not any(a):
        return math.inf if any(b) else 1.0
    return root(dot(b, b) / dot(a, a))


def magnitude(a: Exact) -> Fraction:
    return sum(map(abs, a), Fraction(0))


DEFINITIONS: dict[str, Callable[[Exact, Exact], float]] = {
    "max_abs_error": lambda a, b: float(max(map(abs, minus(b, a)))),
    "mean_abs_error": lambda a, b: float(magnitude(minus(b, a)) / len(a)),
    "rmse": lambda a, b: root(dot(minus(b, a), minus(b, a)) / len(a)),
    "bias": lambda a, b: float(sum(minus(b, a)) / len(a)),
    "relative_l2": relative_l2,
    "relative_l1": lambda a, b: against(magnitude(minus(b, a)), magnitude(a)),
    "cosine_distance": angle,
    "pearson_distance": pearson,
    "sqnr_db": decibels,
    "best_fit_scale": scale,
    "best_fit_residual": residual,
    "norm_ratio": norms,
    "effective_bits": lambda a, b: -math.log2(relative_l2(a, b) / 0.4247) if a != b else math.inf,
    "sign_flips": lambda a, b: float(sum(x * y < 0 for x, y in zip(a, b, strict=True))),
}
OF_ONE_SIDE: dict[str, Callable[[Exact], float]] = {
    "min": lambda x: float(min(x)),
    "max": lambda x: float(max(x)),
    "mean": lambda x: float(sum(x) / len(x)),
    "std": lambda x: root(dot(centred(x), centred(x)) / len(x)),
}
ADVERSARIAL = {
    "NaN and both infinities": of(
        [1, math.nan, math.inf, -math.inf, 2], [1.5, 2, math.inf, 3, 2], "f4"
    ),
    "negative zeros": of([-0.0, 0.0, 1.0], [0.0, -0.0, -1.0], "f4"),
    "float32 subnormals": of([1e-45, -3e-42, 1e-38], [2e-45, 3e-42, 1e-38], "f4"),
    "float64 subnormals": of([5e-324, 1e-310], [1e-323, -1e-310], "f8"),
    "a constant": of([0.1] * 7, [0.3] * 7, "f8"),
    "a zero reference": of([0.0] * 4, [1.0, 0, 2, 0], "f4"),
    "zeros": of([0.0] * 4, [0.0] * 4, "f4"),
    "one element": of(3.0, 3.25, "f4"),
    "huge": of([1e300, -2e300, 3e299], [1.1e300, -2e300, 3e299], "f8"),
    "the ends of float64": of([1.7e308, -1.7e308], [-1.7e308, 1.7e308], "f8"),
    "tiny": of([1e-300, -2e-300, 3e-300], [1.1e-300, -2e-300, 3.3e-300], "f8"),
    "a tiny error on a huge reference": of([1e300, 1e-10], [1e300, 2e-10], "f8"),
    "a tiny candidate": of([1.0, -2, 3], [1e-9, 1e-9, 2e-9], "f8"),
    "a large offset": of([1e8 + 1, 1e8 + 2, 1e8 + 4], [1e8 + 1.5, 1e8 + 2, 1e8 + 3], "f8"),
    "booleans": of([True, False, True, True], [True, True, False, True]),
    "small integers": of([-128, 127, 0, 5], [127, -128, 1, 5], "i1"),
    "integers beyond 2^53": of([2**60, -(2**62), 7], [2**60 + 2, -(2**62) + 1, 7], "i8"),
    "the ends of int64": of([-(2**63), 2**63 - 1], [2**63 - 1, -(2**63)], "i8"),
    "the ends of uint64": of([2**64 - 1, 0, 5], [0, 2**64 - 1, 5], "u8"),
    "float32 against bfloat16": of([1.001, -2.003, 3.3], [1, -2, 3.3], "f4", ml_dtypes.bfloat16),
    "float16 against e4m3": of([1.05, -2.2, 500.0], [1, -2.25, 448], "f2", ml_dtypes.float8_e4m3fn),
}


def close(name: str, value: float, wanted: float, pair: TensorPair) -> bool:
    """Within rounding of float64 sums, which cancel at most to eps of the data or of the ratio."""
    if math.isnan(value) or math.isnan(wanted):
        return math.isnan(value) and math.isnan(wanted)
    size = max((abs(float(x)) for side in kept(pair) for x in side), default=0.0)
    slack = {"bias": 1e-14 * size, "mean": 1e-14 * size, "std": 1e-14 * size}
    slack |= {"best_fit_residual": 1e-6 * max(1, relative_l2(*kept(pair)))}
    slack |= {"sqnr_db": 1e-13, "effective_bits": 1e-13}
    slack |= {"cosine_distance": 1e-15, "pearson_distance": 1e-15}
    slack |= {"best_fit_scale": 1e-14 * (1 + relative_l2(*kept(pair)))}
    return math.isclose(value, wanted, rel_tol=1e-10, abs_tol=slack.get(name, 0.0))


def check(pair: TensorPair) -> None:
    stats = pair.stats()
    a, b = kept(pair)
    for name, definition in DEFINITIONS.items():
        score = METRICS[name](stats)
        if not a:
            assert math.isnan(score) or name == "sign_flips"
            continue
        try:
            wanted = definition(a, b)
        except OverflowError:
            wanted = math.inf
        assert close(name, score, wanted, pair), f"{name}: {score} is not {wanted}"


@pytest.mark.parametrize("pair", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_a_metric_is_its_definition_on_adversarial_tensors(pair: TensorPair) -> None:
    check(pair)


@given(pair=tensor_pairs(dtypes=("float32", "float16", "bfloat16", "float8_e5m2", *INTEGERS)))
def test_a_metric_is_its_definition_on_any_tensors(pair: TensorPair) -> None:
    check(pair)


@pytest.mark.parametrize("pair", ADVERSARIAL.values(), ids=ADVERSARIAL)
@pytest.mark.parametrize("side", ["reference", "candidate"])
def test_the_range_of_a_side_is_its_definition(side: str, pair: TensorPair) -> None:
    stats = pair.stats()
    values = [Fraction(x) for x in numbers(getattr(pair, side)) if math.isfinite(x)]
    for name, definition in OF_ONE_SIDE.items():
        score, wanted = METRICS[f"{name}_{side}"](stats), definition(values)
        assert close(name, score, wanted, pair), f"{name}: {score} is not {wanted}"
    assert METRICS[f"zero_fraction_{side}"](stats) * stats.count == pytest.approx(values.count(0))


@given(pair=tensor_pairs())
def test_the_counts_are_their_definitions(pair: TensorPair) -> None:
    tolerance = Tolerance(0.01, 0.25)
    stats = pair.stats(tolerance=tolerance)
    sides = list(zip(numbers(pair.reference), numbers(pair.candidate), strict=True))
    equal = [x == y or (x != x and y != y) for x, y in sides]
    finite = [math.isfinite(x) and math.isfinite(y) for x, y in sides]
    unmatched = [not f and not same for f, same in zip(finite, equal, strict=True)]
    assert METRICS["nonfinite_mismatch"](stats) == sum(unmatched)
    assert METRICS["nan_reference"](stats) == sum(math.isnan(x) for x, _ in sides)
    assert METRICS["inf_candidate"](stats) == sum(math.isinf(y) for _, y in sides)
    if not sides:
        return
    assert METRICS["equal_fraction"](stats) == sum(equal) / len(sides)
    if pair.reference.dtype == pair.candidate.dtype == np.bool_:
        outside = [x != y for x, y in sides]
    else:
        outside = [
            f and abs(float(Fraction(y) - Fraction(x)) if f else 0) > 0.01 + 0.25 * abs(x)
            for (x, y), f in zip(sides, finite, strict=True)
        ]
    assert METRICS["mismatch_fraction"](stats) * len(sides) == pytest.approx(
        sum(outside) + sum(unmatched)
    )


def test_int64_beyond_2_to_53_differs_where_float64_sees_no_difference() -> None:
    stats = of([2**60, 5], [2**60 + 2, 5], "i8").stats(tolerance=Tolerance(0, 0))
    assert (stats.equal, stats.mismatches) == (1, 1)
    assert stats.max_abs_error.value == stats.max_ulp.value == 2


def test_uint64_and_int64_meet_without_wrapping_around() -> None:
    stats = of([2**64 - 1, 7, 3], [-1, 7, -5], "u8", "i8").stats()
    assert stats.equal == 1
    assert stats.max_abs_error.value == pytest.approx(2.0**64)
    assert stats.max_abs_error.index == 0


def test_a_spread_of_a_few_ulps_about_a_large_mean_keeps_its_digits() -> None:
    values = 1e8 + np.ldexp(np.arange(10.0), -26)  # neighbours in float64
    values[9] = values[0]
    exact = [Fraction(x) for x in values]
    stats = of(values, values + 1.0).stats()
    assert stats.reference.std == pytest.approx(OF_ONE_SIDE["std"](exact), rel=1e-12)


def test_complex_numbers_count_as_pairs_of_real_ones_at_the_place_of_the_element() -> None:
    stats = of([[1 + 2j, 3], [0, 1j]], [[1 + 2j, 3 - 4j], [0, 1j]], np.complex64).stats()
    assert (stats.count, stats.equal) == (8, 7)
    assert (stats.max_abs_error.value, stats.max_abs_error.index) == (4, 1)
    assert [axis.max_abs_error.tolist() for axis in stats.axes] == [[4, 0], [0, 4]]
    assert METRICS["relative_l2"](stats) == pytest.approx(4 / math.sqrt(1 + 4 + 9 + 1))


@pytest.mark.parametrize("exponent", [-3, -5, -7, -9])
def test_the_cosine_distance_holds_its_digits_where_1_minus_cos_has_none(exponent: int) -> None:
    rng = np.random.default_rng(5)
    a = rng.standard_normal(1000)
    b = a * (1 + 10.0**exponent * rng.standard_normal(a.size))
    wanted = angle([Fraction(x) for x in a], [Fraction(x) for x in b])
    assert wanted < 1.1 * 10.0 ** (2 * exponent)
    assert METRICS["cosine_distance"](of(a, b).stats()) == pytest.approx(wanted, rel=1e-8)
    offset = METRICS["pearson_distance"](of(a + 64.0, b + 64.0).stats())
    shifted = [[Fraction(x) for x in side + 64.0] for side in (a, b)]
    assert offset == pytest.approx(pearson(*shifted), rel=1e-6)


def test_storage_rounding_costs_the_floor_of_the_format() -> None:
    values = np.random.default_rng(3).standard_normal(200_000)
    for dtype, bits in ((ml_dtypes.bfloat16, 8), (np.float16, 11), (ml_dtypes.float8_e4m3fn, 4)):
        rounded = values.astype(dtype).astype(np.float64)
        stats = of(values, rounded).stats()
        assert METRICS["effective_bits"](stats) == pytest.approx(bits, abs=0.02)
        assert METRICS["relative_l2"](stats) == pytest.approx(0.4247 * 2.0**-bits, rel=0.01)
