"""Numbers are written as the design says, and undefined is never 0 nor blank."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from core import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.186, "0.186"), (2.1e-5, "2.10e−5"), (-3.28, "−3.28"), (0.0, "0"), (12345.6, "12,346"),
        (0.00099999, "0.00100"), (9.994e-4, "9.99e−4"), (99999.0, "1.00e5"), (1e5, "1.00e5"),
        (999.6, "1,000"), (math.nan, "–"), (math.inf, "∞"), (-math.inf, "−∞"),
    ],
)  # fmt: skip
def test_an_error_has_three_digits(value: float, text: str) -> None:
    assert numbers.error(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9, "0.9×"), (3.4, "3.4×"), (113, "113×"), (6874, "6,874×"), (9.96, "10×"), (0, "0×"),
        (0.01, "< 0.1×"), (1e12, "1.00e12×"), (math.nan, "–"), (math.inf, "∞×"),
    ],
)  # fmt: skip
def test_times_floor_carries_its_sign(value: float, text: str) -> None:
    assert numbers.times_floor(value) == text


@pytest.mark.parametrize(
    ("distance", "text"),
    [(0.01728, "0.98272"), (3.1e-7, "1−cos 3.1e−7"), (0, "1"), (2.0, "−1.00000"), (math.nan, "–"),
     (1e-5, "1−cos 1.0e−5")],
)  # fmt: skip
def test_a_cosine_near_one_is_written_as_its_distance(distance: float, text: str) -> None:
    assert numbers.cosine(distance) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (-8.875, "bfloat16", "−8.875"), (0.1, "float32", "0.1"), (1e-10, "float32", "1e−10"),
        (0.0999755859375, "float16", "0.1"), (448.0, "float8_e4m3fn", "448"), (3, "int32", "3"),
        (True, "bool", "True"), (math.nan, "float32", "NaN"), (-math.inf, "float16", "−inf"),
        (complex(1, -2), "complex64", "1 − 2i"), (1 / 3, "float64", "0.3333333333333333"),
    ],
)  # fmt: skip
def test_a_value_has_the_digits_that_identify_it(value: float, dtype: str, text: str) -> None:
    assert numbers.element(value, dtype) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(3.04e9, "3.04 GB"), (104e6, "104 MB"), (999, "999 B"), (999_999, "1.00 MB"), (0, "0 B"),
     (12_345, "12.3 kB"), (5e18, "5000 PB")],
)  # fmt: skip
def test_bytes_are_si_with_three_digits(nbytes: float, text: str) -> None:
    assert numbers.size(nbytes) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(467, 1000, "47 %"), (2, 1000, "0.2 %"), (1, 10_000, "< 0.1 %"), (0, 9, "0 %"),
     (9, 9, "100 %"),
     (9999, 10_000, "> 99.9 %"), (997, 1000, "99.7 %"), (1, 0, "–")],
)  # fmt: skip
def test_a_share_is_0_or_100_only_when_exact(part: float, whole: float, text: str) -> None:
    assert numbers.share(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.42, "0.4 s"), (11, "11 s"), (125, "2 min 5 s"), (11_520, "3 h 12 min")]
)
def test_a_duration_names_two_units_at_most(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("passed", "text"),
    [(timedelta(seconds=5), "just now"), (timedelta(minutes=2), "2 min ago"),
     (timedelta(hours=3), "3 h ago"), (timedelta(hours=30), "yesterday"),
     (timedelta(days=4), "27 Nov"), (timedelta(days=400), "27 Oct 2024")],
)  # fmt: skip
def test_time_is_relative_below_two_days(passed: timedelta, text: str) -> None:
    now = datetime(2025, 12, 1, 12, tzinfo=UTC)
    assert numbers.ago(now - passed, now) == text


def test_counts_are_grouped_and_shapes_spelled() -> None:
    assert numbers.count(3145728) == "3,145,728"
    assert numbers.shape((1, 8, 384)) == "1 × 8 × 384"
    assert numbers.shape(()) == "scalar"
