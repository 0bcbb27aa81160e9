"""Formats inferred from values: what a float32 container really holds."""

from __future__ import annotations

from pathlib import Path

import h5py
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.compare import compare
from analysis.verdict import judge
from loaders import open_run
from metrics.narrowest import narrowest

RNG = np.random.default_rng(5)
DATA = {
    "normal": RNG.standard_normal(4096),
    "heavy tails": RNG.standard_t(2, 4096),
    "small": RNG.standard_normal(4096) * 0.02,
    "few": RNG.standard_normal(100),
    "positive": np.abs(RNG.standard_normal(4096)) + 0.1,
    "with zeros": np.where(RNG.random(4096) < 0.5, 0, RNG.standard_normal(4096)),
}
FORMATS = ("float8_e5m2", "float8_e4m3fn", "bfloat16", "float16")


@pytest.mark.parametrize("container", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", DATA)
def test_the_format_before_a_cast_is_found(data: str, name: str, container: type) -> None:
    narrow = DATA[data].astype(getattr(ml_dtypes, name, name)).astype(container)
    assert narrowest(narrow) == name


def test_tf32_is_told_from_float16_by_its_range() -> None:
    bits = DATA["normal"].astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    assert narrowest(bits.view(np.float32) * np.float32(2.0**100)) == "tf32"


@pytest.mark.parametrize("data", DATA)
def test_values_of_their_own_format_stay_what_they_are(data: str) -> None:
    assert narrowest(DATA[data].astype(np.float32)) is None
    assert narrowest(DATA[data]) is None
    assert narrowest(DATA[data].astype(np.float32).astype(np.float64)) == "float32"


FLAT = {
    "ones": np.ones(4096),
    "zeros": np.zeros(4096),
    "a mask": (DATA["normal"] > 0) * 1.0,
    "a scaled mask": (DATA["normal"] > 0) / 0.9,
    "a mask of minus infinity": np.where(DATA["normal"] > 0, 0, -3.4028235e38),
    "counts": RNG.integers(0, 15, 4096) * 1.0,
    "ids": RNG.integers(0, 32000, 4096) * 1.0,
    "halves": RNG.integers(0, 15, 4096) / 2,
    "positions": np.arange(4096.0),
    "only NaN": np.full(4096, np.nan),
    "too few": DATA["normal"][:63].astype(ml_dtypes.bfloat16).astype(float),
}


@pytest.mark.parametrize("data", FLAT)
def test_values_that_fit_anything_tell_nothing(data: str) -> None:
    assert narrowest(FLAT[data].astype(np.float32)) is None


def test_one_value_in_a_thousand_may_be_another() -> None:
    values = DATA["normal"].astype(ml_dtypes.bfloat16).astype(np.float32)
    values[:4] = np.pi
    assert narrowest(values) == "bfloat16"
    values[:40] = np.pi
    assert narrowest(values) is None


@given(st.integers(0, 2**32 - 1), st.sampled_from(FORMATS), st.integers(-6, 6))
def test_a_scale_of_a_power_of_two_never_hides_bf16(seed: int, name: str, scale: int) -> None:
    values = np.random.default_rng(seed).standard_normal(2000)
    narrow = values.astype(getattr(ml_dtypes, name, name)).astype(np.float32)
    found = narrowest(narrow * np.float32(2.0**scale))
    assert found is not None
    assert found == "bfloat16" or name != "bfloat16"


def _dump(folder: Path, values: np.ndarray, declared: str | None = None) -> Path:
    folder.mkdir()
    with h5py.File(folder / "step0.h5", "w") as file:
        file["layers.0/output"] = values.astype(np.float32)
        if declared:
            file["layers.0/output"].attrs["dtype"] = declared
    return folder


def test_a_comparison_counts_in_the_format_the_values_show(tmp_path: Path) -> None:
    values = DATA["normal"]
    ours = open_run(_dump(tmp_path / "a", values))
    theirs = open_run(_dump(tmp_path / "b", values.astype(ml_dtypes.bfloat16)))
    comparison = compare(ours, theirs)
    [pair] = comparison.pairs
    assert (pair.reference.dtype, pair.reference.dtype_inferred) == ("float32", False)
    assert (pair.candidate.dtype, pair.candidate.dtype_inferred) == ("bfloat16", True)
    assert pair.candidate.storage_dtype == "float32"
    assert pair.stats is not None
    assert pair.stats.dtype == "bfloat16"
    assert judge(comparison).verdict == "rounding"
    assert next(iter(theirs.tensors.values())).dtype == "float32"  # reading it stays lazy


def test_a_declared_format_is_believed(tmp_path: Path) -> None:
    values = DATA["normal"].astype(ml_dtypes.bfloat16).astype(np.float32)
    run = open_run(_dump(tmp_path / "a", values, "float16"))
    [pair] = compare(run, run).pairs
    assert (pair.reference.dtype, pair.reference.dtype_inferred) == ("float16", False)
