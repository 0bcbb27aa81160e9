"""The statistics through PyTorch, on its CPU: those of the compiled engine, sums to 1e-12."""

import itertools
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import FLOATS, TensorPair, numpy_dtype, tensor_pairs
from test_engine import (
    COMPLEX_PAIRS,
    FLOAT_PAIRS,
    INTEGER_PAIRS,
    about,
    flat,
    layouts,
    random_pair,
)
from test_metric_merging import assert_same

from core.comparison import Tolerance
from core.errors import CompareError
from core.stats import PairStats
from metrics import accumulator, pair_stats
from metrics.torch_engine.device import TORCH_CPU, device_of

pytest.importorskip("torch", reason="PyTorch is an option of this engine alone")

ROOT = Path(__file__).parent.parent
TOLERANCE = Tolerance(1e-3, 1e-2)


def gathered(
    a: NDArray[Any], b: NDArray[Any], known: dict[str, Any], cuts: tuple[int, ...] = ()
) -> PairStats:
    gathering = accumulator(TOLERANCE, **known, device=TORCH_CPU)
    for first, last in itertools.pairwise([0, *sorted(cuts), a.size]):
        gathering.add(a[first:last], b[first:last])
    return gathering.stats()


def check(pair: TensorPair) -> None:
    known = about(pair)
    with np.errstate(all="ignore"):
        ours = pair_stats(pair.reference, pair.candidate, TOLERANCE, **known)
    assert_same(gathered(pair.reference, pair.candidate, known), ours, 1e-12)


@given(pair=tensor_pairs())
def test_counts_and_histograms_are_exact_and_sums_close(pair: TensorPair) -> None:
    check(pair)


@pytest.mark.parametrize("kind", ["ordinary", "special", "bits"])
@pytest.mark.parametrize("dtypes", FLOAT_PAIRS + INTEGER_PAIRS + COMPLEX_PAIRS, ids="-".join)
def test_any_two_types(dtypes: tuple[str, str], kind: str) -> None:
    if kind == "bits" and any(dtype.startswith("complex") for dtype in dtypes):
        pytest.skip("random bits are the same test for their parts")
    with np.errstate(all="ignore"):
        check(random_pair(dtypes, (3, 7, 11, 31), kind))


def test_64_bit_integers_are_told_apart_beyond_what_float64_holds() -> None:
    top = np.array([2**64 - 1, 2**63, 2**63 + 1, 5, 0, 2**53 + 1], np.uint64)
    low = np.array([2**64 - 2, 2**63 - 1, 3, 2**64 - 1, 1, 2**53], np.uint64)
    signed = np.array([-1, 2**63 - 1, -(2**63), 7, 0, -(2**53)], np.int64)
    for pair in ((top, low), (top, signed), (signed, low), (signed, signed[::-1].copy())):
        check(TensorPair(*pair, (6,)))


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-320])
def test_float64_at_both_ends(scale: float) -> None:
    rng = np.random.default_rng(2)
    a = rng.standard_normal(5000) * scale
    check(TensorPair(a, a * (1 + 1e-3 * rng.standard_normal(a.size)), (50, 100)))
    check(TensorPair(a, -a[::-1].copy(), (5, 1000)))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_all_pairs_of_8_bit_floats(dtype: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
    a, b = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(every, every))
    check(TensorPair(a, b, (256, 256)))


def test_logical_formats_other_than_the_container() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, 3000)).astype(np.float32) * 300
    for name in ("tf32", "int8", "bool"):
        known = {"dtype": name, "dtypes": (name, name), "shape": (30, 100)}
        assert_same(gathered(a, b, known), pair_stats(a, b, TOLERANCE, **known), 1e-12)


def test_axes_longer_than_are_kept_and_stretches_within_a_row() -> None:
    rng = np.random.default_rng(5)
    for shape in ((2, 70_001), (70_001, 2), (3, 1, 33_333)):
        a, b = rng.standard_normal((2, math.prod(shape)))
        check(TensorPair(a, b, shape))


@pytest.mark.parametrize("dtypes", [("float32", "bfloat16"), ("complex64",) * 2, ("int64",) * 2])
@given(data=st.data())
def test_cuts_change_no_bit(dtypes: tuple[str, str], data: st.DataObject) -> None:
    pair = random_pair(dtypes, (13, 5, 70), "special")
    cuts = data.draw(st.lists(st.integers(0, pair.reference.size), max_size=6))
    known = about(pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metrics.torch_engine.accumulator.STRETCH", 1024)
        whole = flat(gathered(pair.reference, pair.candidate, known))
        assert flat(gathered(pair.reference, pair.candidate, known, tuple(cuts))) == whole
        exact = pair_stats(pair.reference, pair.candidate, TOLERANCE, **known)
        assert_same(gathered(pair.reference, pair.candidate, known), exact, 1e-12)


@pytest.mark.parametrize("layout", ["unaligned", "strided", "backwards", "read-only", "big-endian"])
@pytest.mark.parametrize("dtype", [*FLOATS[:3], "int32", "complex64"])
def test_how_memory_holds_the_values_does_not_matter(dtype: str, layout: str) -> None:
    pair = random_pair((dtype, dtype), (40, 13), "ordinary")
    a, b = layouts(pair.reference)[layout], layouts(pair.candidate)[layout]
    known = about(pair)
    assert flat(gathered(a, b, known)) == flat(gathered(pair.reference, pair.candidate, known))


def test_chunks_beyond_the_tensor_are_refused() -> None:
    ones = np.ones(3, np.complex64)
    known = {"dtype": "complex64", "dtypes": ("complex64", "complex64"), "shape": (5,)}
    gathering = accumulator(TOLERANCE, **known, device=TORCH_CPU)
    gathering.add(ones, ones)
    with pytest.raises(ValueError, match="do not fit"):
        gathering.add(ones, ones)
    with pytest.raises(ValueError, match="of one length"):
        gathering.add(ones, ones[:2])


@pytest.mark.parametrize("name", ["cuda:63", "tpu", "cuda:x"])
def test_a_device_that_is_not_there_is_a_clear_error(name: str) -> None:
    with pytest.raises(CompareError, match=f"There is no device '{name}'"):
        device_of(name)


def test_a_missing_pytorch_is_named_when_a_device_is_asked_for() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from metrics.torch_engine.device import device_of\n"
        "from core.errors import CompareError\n"
        "try: device_of('cuda')\n"
        "except CompareError as error: print(error.message)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "The device cuda needs PyTorch.\n"


@pytest.mark.skipif("not __import__('torch').cuda.is_available()", reason="no CUDA device here")
def test_a_gpu_counts_as_the_engine_does() -> None:
    pair = random_pair(("float32", "bfloat16"), (5, 1000, 1000), "special")
    known = about(pair)
    gathering = accumulator(TOLERANCE, **known, device="cuda")
    gathering.add(pair.reference, pair.candidate)
    ours = pair_stats(pair.reference, pair.candidate, TOLERANCE, **known)
    assert_same(gathering.stats(), ours, 1e-12)
