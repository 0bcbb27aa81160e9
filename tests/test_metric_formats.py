"""Facts about formats, against the libraries that define them."""

import math

import ml_dtypes
import numpy as np
import pytest
from strategies import of

from core.comparison import Tolerance
from core.errors import CompareError
from metrics import METRICS, pair_stats
from metrics.formats import FORMATS, coarser_of, format_of, kind, real_of

FLOATS = [f.name for f in FORMATS.values() if f.kind == "float" and f.name != "tf32"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_float_format_has_the_facts_of_its_definition(dtype: str) -> None:
    facts = ml_dtypes.finfo(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    known = format_of(dtype)
    assert known.largest == float(facts.max)
    assert known.lowest == float(facts.min)
    assert known.smallest_normal == float(facts.smallest_normal)
    assert known.unit_roundoff == float(facts.eps) / 2
    assert known.precision == facts.nmant + 1


@pytest.mark.parametrize("dtype", [f.name for f in FORMATS.values() if f.kind == "int"])
def test_an_integer_format_has_the_bounds_of_its_type(dtype: str) -> None:
    bounds = np.iinfo(dtype)
    assert (format_of(dtype).lowest, format_of(dtype).largest) == (bounds.min, bounds.max)
    assert format_of(dtype).unit_roundoff == 0


@pytest.mark.parametrize(
    ("dtype", "floor"),
    [
        ("float16", 2.07e-4),
        ("tf32", 2.07e-4),
        ("bfloat16", 1.66e-3),
        ("int8", 1.08e-2),
        ("float8_e4m3fn", 2.65e-2),
        ("float8_e5m2", 5.31e-2),
        ("int64", 0),
        ("bool", 0),
    ],
)
def test_storage_floors_are_those_measured(dtype: str, floor: float) -> None:
    assert format_of(dtype).storage_floor == pytest.approx(floor, rel=0.005)


@pytest.mark.parametrize(
    ("a", "b", "coarser"),
    [
        ("float32", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "bfloat16"),
        ("float32", "float64", "float32"),
        ("tf32", "float16", "float16"),
        ("int64", "int8", "int8"),
        ("int32", "float32", "float32"),
        ("bool", "int8", "int8"),
        ("bool", "bool", "bool"),
        ("complex128", "complex64", "complex64"),
        ("float8_e4m3fn", "float8_e5m2", "float8_e5m2"),
    ],
)
def test_the_coarser_format_counts_the_error(a: str, b: str, coarser: str) -> None:
    assert coarser_of(a, b) == coarser_of(b, a) == coarser


def test_a_name_not_known_is_an_error_that_names_those_known() -> None:
    with pytest.raises(CompareError, match=r"'posit16'.*bfloat16"):
        format_of("posit16")


def test_kinds_and_real_parts() -> None:
    assert [kind(d) for d in ("bfloat16", "int8", "bool", "complex64")] == [
        "float",
        "int",
        "bool",
        "complex",
    ]
    assert [real_of(d) for d in ("complex64", "complex128", "int8")] == [
        "float32",
        "float64",
        "int8",
    ]


def test_subnormal_and_saturated_follow_the_logical_dtype_not_the_container() -> None:
    values = np.array([448.0, -448, 500, 2**-6, 2**-7, -(2**-9), 0, math.inf], np.float32)
    stats = pair_stats(
        values,
        values,
        Tolerance(0, 0),
        dtype="float8_e4m3fn",
        dtypes=("float8_e4m3fn", "float32"),
        shape=(8,),
    )
    assert (stats.reference.saturated, stats.reference.subnormal) == (3, 2)
    assert (stats.candidate.saturated, stats.candidate.subnormal) == (0, 0)
    assert METRICS["saturated_fraction_reference"](stats) == 3 / 8
    assert METRICS["subnormal_fraction_reference"](stats) == 2 / 8


def test_integers_saturate_at_their_ends() -> None:
    stats = of([-128, 127, 0, 126], [127, 127, 1, 0], "i1").stats()
    assert (stats.reference.saturated, stats.candidate.saturated) == (2, 2)
    wide = of([2**63 - 1, 2**63 - 2, -(2**63)], [0, 0, 0], "i8").stats()
    assert (wide.reference.saturated, wide.candidate.saturated) == (2, 0)
    unsigned = of([255, 0, 254], [0, 0, 0], "u1").stats()
    assert (unsigned.reference.saturated, unsigned.candidate.saturated) == (1, 0)
    truth = of([True, False], [True, True]).stats()
    assert truth.reference.saturated == 0
