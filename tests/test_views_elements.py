"""The worst elements against sorting by brute force, and single elements with their bits."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from memory_runs import run_of

from analysis.views_elements import bits_of, element, worst_elements
from core.errors import SelectionError

T = "layer:forward_output.0"


def worst(a, b, *, dtype="float32", count=20):
    return worst_elements(
        run_of({T: a}),
        run_of({T: b}),
        reference_id=T,
        candidate_id=T,
        dtype=dtype,
        count=count,
    )


def brute_force(a, b, count):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        size = np.abs(b - a)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    size = np.where(finite, size, np.where(same, 0, np.inf))
    order = np.argsort(-size, kind="stable")[:count]
    return [int(i) for i in order if size[i] > 0]


@pytest.mark.parametrize("shape", [(), (7,), (5, 6), (3, 4, 5), (2, 3, 4, 5), (2, 1, 3, 4, 5)])
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_worst_elements_are_those_of_a_full_sort(shape, count):
    rng = np.random.default_rng(len(shape))
    a = rng.integers(-3, 4, shape).astype(np.float32) * np.float32(0.5)  # many ties
    b = rng.integers(-3, 4, shape).astype(np.float32) * np.float32(0.5)
    found = worst(np.asarray(a), np.asarray(b), count=count)
    flat = [int(np.ravel_multi_index(e.index, shape)) if shape else 0 for e in found]
    assert flat == brute_force(np.asarray(a), np.asarray(b), count)


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 9, (2, 40, 30)).astype(np.float32)
    a[1, 1], b[2, 2] = np.nan, np.inf
    whole = [e.index for e in worst(a, b)]
    monkeypatch.setattr("analysis.views_elements.CHUNK", 7)
    assert [e.index for e in worst(a, b)] == whole
    assert whole[:2] == [(1, 1), (2, 2)]


def test_unshared_non_finite_values_come_first_and_shared_ones_never():
    a = np.array([np.nan, np.inf, 1.0, -np.inf, 5.0], np.float32)
    b = np.array([np.nan, np.inf, np.nan, np.inf, 0.0], np.float32)
    found = worst(a, b)
    assert [e.index for e in found] == [(2,), (3,), (4,)]
    assert math.isnan(found[0].error)
    assert math.isnan(found[0].ulps)
    assert found[2].error == -5.0


def test_equal_and_empty_tensors_have_no_worst_element():
    a = np.ones((3, 3), np.float32)
    assert worst(a, a.copy()) == ()
    assert worst(np.zeros((0, 3)), np.zeros((0, 3))) == ()


def test_an_element_carries_both_values_their_distance_and_their_bits():
    a = np.array([[1.0, -8.875]], ml_dtypes.bfloat16)
    b = np.array([[1.0, 8.375]], ml_dtypes.bfloat16)
    (found,) = worst(a, b, dtype="bfloat16")
    assert (found.reference, found.candidate, found.error) == (-8.875, 8.375, 17.25)
    assert found.bits[0].hexadecimal == "c10e"
    assert found.bits[0].fields == ("1", "10000010", "0001110")
    assert found.bits[1].fields == ("0", "10000010", "0000110")
    assert found.ulps == 0x410E + 0x4106


@pytest.mark.parametrize(
    ("dtype", "value", "fields"),
    [
        ("float16", 1.5, ("0", "01111", "1000000000")),
        ("float32", -2.0, ("1", "10000000", "0" * 23)),
        ("float64", 0.0, ("0", "0" * 11, "0" * 52)),
        ("float8_e4m3fn", 448.0, ("0", "1111", "110")),
        ("float8_e5m2", -1.0, ("1", "01111", "00")),
        ("int8", -1, ("11111111",)),
        ("bool", True, ("00000001",)),
    ],
)
def test_bits_follow_the_logical_format(dtype, value, fields):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    assert bits_of(np.array(value, kind), dtype).fields == fields


def test_bits_say_when_the_dump_holds_more_than_the_format():
    assert bits_of(np.array(1.0, np.float32), "bfloat16").exact
    assert not bits_of(np.array(1.001, np.float32), "bfloat16").exact
    assert bits_of(np.array(np.nan, np.float32), "bfloat16").exact
    assert bits_of(np.array(1j, np.complex64), "complex64") is None


def test_an_element_by_index_and_one_that_does_not_exist():
    a = np.arange(6.0).reshape(2, 3)
    runs = run_of({T: a}), run_of({T: a + 1})
    names = {"reference_id": T, "candidate_id": T, "dtype": "float64"}
    assert element(*runs, **names, index=(1, 2)).candidate == 6.0
    for index in [(2, 0), (0,), (0, -1)]:
        with pytest.raises(SelectionError):
            element(*runs, **names, index=index)


def test_complex_and_integer_elements_keep_their_kind():
    found = worst(np.array([1 + 1j]), np.array([1 - 1j]), dtype="complex128")
    assert found[0].reference == 1 + 1j
    assert found[0].error == 2.0
    found = worst(np.array([2**60]), np.array([2**60 + 2]), dtype="int64")
    assert found[0].error == 2.0
    assert isinstance(found[0].reference, int)
