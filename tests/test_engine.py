"""The compiled engine against plain NumPy, and against itself however the work is cut."""

import itertools
import math
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import FLOATS, INTEGERS, TensorPair, numpy_dtype, tensor_pairs
from test_metric_merging import assert_same

from core.comparison import Tolerance
from core.stats import PairStats
from metrics import accumulator, pair_stats
from metrics.formats import coarser_of

TOLERANCE = Tolerance(1e-3, 1e-2)
COMPLEX = ("complex64", "complex128")
ROOT = Path(__file__).parent.parent


def about(pair: TensorPair) -> dict[str, Any]:
    names = pair.reference.dtype.name, pair.candidate.dtype.name
    return {"dtype": coarser_of(*names), "dtypes": names, "shape": pair.shape}


def check(pair: TensorPair, tolerance: Tolerance = TOLERANCE) -> None:
    sides = pair.reference, pair.candidate
    ours = pair_stats(*sides, tolerance, **about(pair))
    assert_same(ours, oracle.pair_stats(*sides, tolerance, **about(pair)), 1e-12)


def flat(value: Any) -> list[Any]:
    """Every number of a result, bit by bit."""
    if isinstance(value, np.ndarray):
        return [value.tobytes()]
    if is_dataclass(value):
        return [x for f in fields(value) for x in flat(getattr(value, f.name))]
    if isinstance(value, tuple):
        return [x for item in value for x in flat(item)]
    return [value.hex() if isinstance(value, float) else value]


def random_side(rng: np.random.Generator, dtype: str, size: int, kind: str) -> NDArray[Any]:
    """Ordinary values over six decades, bare bits, or values strewn with what is special."""
    numpy_type = numpy_dtype(dtype)
    if kind == "bits" and dtype != "bool":
        return rng.integers(0, 256, size * numpy_type.itemsize, np.uint8).view(numpy_type)
    values = rng.standard_normal(size) * 10 ** rng.uniform(-3, 3, size)
    if kind == "special" and dtype in FLOATS:
        at = rng.integers(0, size, size // 4 + 1)
        odd = [0, -0.0, math.nan, math.inf, -math.inf, 1e-45, -3e-40, 6e-8, 3e38, 5e-324, 1e300]
        values[at] = rng.choice(odd, at.size)
    with np.errstate(all="ignore"):
        if dtype in INTEGERS or dtype.startswith(("int", "uint")):
            return (np.clip(values, -100, 100) % 128).astype(numpy_type)
        return values.astype(numpy_type)


def random_pair(dtypes: tuple[str, str], shape: tuple[int, ...], kind: str) -> TensorPair:
    rng = np.random.default_rng([len(dtypes[0]), len(dtypes[1]), *shape])
    sides = [random_side(rng, dtype, math.prod(shape), kind) for dtype in dtypes]
    if dtypes[0] == dtypes[1]:
        same = rng.random(sides[0].size) < 0.3
        sides[1][same] = sides[0][same]
    return TensorPair(sides[0], sides[1], shape)


FLOAT_PAIRS = tuple(itertools.product(FLOATS, FLOATS))
INTEGER_NAMES = (*INTEGERS, "int16", "uint16", "uint32", "uint64")
INTEGER_PAIRS = (
    *((name, name) for name in INTEGER_NAMES),
    ("uint64", "int64"),
    ("int8", "int64"),
    ("bool", "uint8"),
    ("float32", "int64"),
    ("int8", "bfloat16"),
)
COMPLEX_PAIRS = (*itertools.product(COMPLEX, COMPLEX), ("float32", "complex64"))


@given(pair=tensor_pairs())
def test_the_engine_counts_and_sums_as_numpy_does(pair: TensorPair) -> None:
    check(pair)


@pytest.mark.parametrize("kind", ["ordinary", "special", "bits"])
@pytest.mark.parametrize("dtypes", FLOAT_PAIRS + INTEGER_PAIRS + COMPLEX_PAIRS, ids="-".join)
def test_any_two_types_over_several_blocks(dtypes: tuple[str, str], kind: str) -> None:
    if kind == "bits" and any(dtype.startswith("complex") for dtype in dtypes):
        pytest.skip("random bits are the same test for their parts")
    for shape in ((3, 7, 11, 31), (5, 1000), (4096,)):
        with np.errstate(all="ignore"):
            check(random_pair(dtypes, shape, kind))


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 1023, 2047, 2048, 2049, 4095, 6145])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("bfloat16", "float16")])
def test_every_tail_of_a_block(dtypes: tuple[str, str], size: int) -> None:
    check(random_pair(dtypes, (size,), "special"))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_all_pairs_of_8_bit_floats(dtype: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
    a, b = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(every, every))
    check(TensorPair(a, b, (256, 256)))


@pytest.mark.parametrize("dtypes", [("float16", "bfloat16"), ("float16", "float16")])
def test_every_half_precision_value(dtypes: tuple[str, str]) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    a, b = bits.view(numpy_dtype(dtypes[0])), bits[::-1].copy().view(numpy_dtype(dtypes[1]))
    check(TensorPair(a, b, (256, 256)))


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-320])
def test_float64_at_both_ends(scale: float) -> None:
    rng = np.random.default_rng(2)
    a = rng.standard_normal(5000) * scale
    check(TensorPair(a, a * (1 + 1e-3 * rng.standard_normal(a.size)), (50, 100)))
    mixed = a.copy()
    mixed[::7] = rng.standard_normal(mixed[::7].size)
    check(TensorPair(mixed, a, (5, 1000)))


def test_blocks_of_very_different_scale_meet_in_one_sum() -> None:
    scale = np.repeat([1e-300, 1.0, 1e300, 0.0, 1e-200], 2048)
    a = np.random.default_rng(3).standard_normal(scale.size) * scale
    check(TensorPair(a, a * 1.5, (10, 1024)))


def test_logical_formats_other_than_the_container() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, 3000)).astype(np.float32) * 300
    for dtypes in (("bfloat16", "float32"), ("tf32", "tf32"), ("int8", "int8"), ("bool", "bool")):
        known = {"dtype": coarser_of(*dtypes), "dtypes": dtypes, "shape": (30, 100)}
        ours, theirs = (f(a, b, TOLERANCE, **known) for f in (pair_stats, oracle.pair_stats))
        assert_same(ours, theirs, 1e-12)


def layouts(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The same values as memory may hold them."""
    shifted = np.zeros(values.nbytes + 1, np.uint8)[1:]
    shifted[:] = values.view(np.uint8)
    wide = np.zeros(2 * values.size, values.dtype)
    wide[::2] = values
    fixed = values.copy()
    fixed.flags.writeable = False
    return {
        "unaligned": shifted.view(values.dtype),
        "strided": wide[::2],
        "backwards": values[::-1].copy()[::-1],
        "read-only": fixed,
        "big-endian": values.astype(values.dtype.newbyteorder(">")),
    }


@pytest.mark.parametrize("layout", ["unaligned", "strided", "backwards", "read-only", "big-endian"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "complex64"])
def test_how_memory_holds_the_values_does_not_matter(dtype: str, layout: str) -> None:
    pair = random_pair((dtype, dtype), (40, 130), "ordinary")
    known = about(pair)
    plain = pair_stats(pair.reference, pair.candidate, TOLERANCE, **known)
    a, b = layouts(pair.reference)[layout], layouts(pair.candidate)[layout]
    before = a.copy()
    assert flat(pair_stats(a, b, TOLERANCE, **known)) == flat(plain)
    assert np.array_equal(a, before)


def gathered(pair: TensorPair, cuts: list[int], threads: int) -> PairStats:
    gathering = accumulator(TOLERANCE, **about(pair), threads=threads)
    for first, last in itertools.pairwise([0, *sorted(cuts), pair.reference.size]):
        gathering.add(pair.reference[first:last], pair.candidate[first:last])
    return gathering.stats()


@pytest.mark.parametrize(
    "dtypes",
    [("float32", "float32"), ("bfloat16", "float32"), ("float64",) * 2, ("complex64",) * 2],
)
@given(data=st.data())
def test_neither_cuts_nor_threads_change_a_bit(
    dtypes: tuple[str, str], data: st.DataObject
) -> None:
    pair = random_pair(dtypes, (13, 5, 700), "special")
    cuts = data.draw(st.lists(st.integers(0, pair.reference.size), max_size=6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metrics.engine.accumulator.SEGMENT", 4096)
        whole = flat(gathered(pair, [], 1))
        assert flat(gathered(pair, cuts, data.draw(st.integers(1, 4)))) == whole


def test_a_long_pair_is_the_same_on_one_and_on_many_threads() -> None:
    rng = np.random.default_rng(5)
    a = rng.standard_normal(5_000_000).astype(np.float32)
    b = a * (1 + np.float32(1e-3) * rng.standard_normal(a.size).astype(np.float32))
    b[[77, 3_333_333]] = math.nan, 1e30
    pair = TensorPair(a, b, (5, 1000, 1000))
    one = gathered(pair, [], 1)
    for cuts, threads in (([], 2), ([4_194_304], 3), ([1, 2_097_153], 2)):
        assert flat(gathered(pair, cuts, threads)) == flat(one)
    assert_same(one, oracle.pair_stats(a, b, TOLERANCE, **about(pair)), 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_positions_beyond_2_to_the_31_are_exact(dtype: str) -> None:
    start = (1 << 31) + 12_345
    pair = random_pair((dtype, dtype), (9000,), "special")
    known = {**about(pair), "shape": (50_000, 60_000), "start": start}
    gathering = accumulator(TOLERANCE, **known)
    for cut in (slice(0, 5001), slice(5001, None)):
        gathering.add(pair.reference[cut], pair.candidate[cut])
    ours = gathering.stats()
    assert ours.max_abs_error.index > start
    assert_same(ours, oracle.pair_stats(pair.reference, pair.candidate, TOLERANCE, **known), 1e-12)


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float16", "bfloat16")])
def test_tables_that_are_emptied_on_the_way_count_the_same(dtypes: tuple[str, str]) -> None:
    pair = random_pair(dtypes, (40, 1000), "special")
    whole = flat(gathered(pair, [], 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metrics.engine.workspace._FULL", 5000)
        assert flat(gathered(pair, list(range(0, 40_000, 4096)), 1)) == whole


def file_of_zeros(path: Path, size: int, last: int) -> NDArray[Any]:
    """A sparse file of bytes, all 0 but the last."""
    with path.open("wb") as file:
        file.seek(size - 1)
        file.write(bytes([last]))
    return np.memmap(path, numpy_dtype("float8_e5m2"), "r")


@pytest.mark.slow
def test_a_sparse_file_of_more_than_2_to_the_31_elements(tmp_path: Path) -> None:
    size = (1 << 31) + (1 << 20) + 7
    a = file_of_zeros(tmp_path / "a", size, 0x3C)  # 1
    b = file_of_zeros(tmp_path / "b", size, 0x40)  # 2
    names = ("float8_e5m2",) * 2
    gathering = accumulator(TOLERANCE, dtype=names[0], dtypes=names, shape=(size,), threads=2)
    for first in range(0, size, 1 << 24):
        gathering.add(a[first : first + (1 << 24)], b[first : first + (1 << 24)])
    stats = gathering.stats()
    assert stats.max_abs_error.index == stats.max_ulp.index == size - 1
    assert (stats.equal, stats.reference.zero, stats.finite) == (size - 1, size - 1, size)
    assert stats.joint.total == stats.ulp.total == stats.candidate.significand.total == size
    assert stats.ulp.counts.tolist() == [size - 1, 1]


@pytest.mark.parametrize("mean", [1.0, 1e3, 1e6])
def test_a_mean_far_above_the_spread_costs_no_digits(mean: float) -> None:
    rng = np.random.default_rng(6)
    a = (mean + rng.standard_normal(6000)).astype(np.float32)
    b = (a + 1e-2 * mean * (1 + 0.1 * rng.standard_normal(a.size))).astype(np.float32)
    pair = TensorPair(a, b, (6000,))
    ours = pair_stats(a, b, TOLERANCE, **about(pair))
    x, y = a.astype(np.float64), b.astype(np.float64)
    for moments, values in (
        (ours.moments.reference, x), (ours.moments.candidate, y), (ours.moments.error, y - x)
    ):  # fmt: skip
        assert float(moments.m2) == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-11)


@pytest.mark.parametrize("candidate", ["constant", "zero", "minus the reference"])
def test_a_candidate_whose_squares_cancel_is_measured_by_itself(candidate: str) -> None:
    a = np.random.default_rng(7).standard_normal(5000).astype(np.float32)
    b = {"constant": np.full_like(a, 0.1), "zero": np.zeros_like(a)}.get(candidate, -a)
    ours = pair_stats(a, b, TOLERANCE, **about(TensorPair(a, b, (5000,))))
    y = b.astype(np.float64)
    spread = ((y - y.mean()) ** 2).sum() if candidate == "minus the reference" else 0.0
    assert float(ours.moments.candidate.m2) == pytest.approx(spread, rel=1e-12)
    dot = (a.astype(np.float64) * y).sum()
    assert float(ours.moments.dot_candidate) == pytest.approx(dot, rel=1e-9)


def test_adding_nothing_gives_statistics_of_nothing() -> None:
    about_it = {"dtype": "float32", "dtypes": ("float32", "float32"), "shape": (4,)}
    assert accumulator(TOLERANCE, **about_it).stats() == PairStats("float32")


def test_chunks_beyond_the_tensor_are_refused() -> None:
    ones = np.ones(3, np.float32)
    known = {"dtype": "float32", "dtypes": ("float32", "float32"), "shape": (5,)}
    gathering = accumulator(TOLERANCE, **known)
    gathering.add(ones, ones)
    with pytest.raises(ValueError, match="do not fit"):
        gathering.add(ones, ones)


def test_the_compiler_is_not_imported_before_a_kernel_runs() -> None:
    code = (
        "import sys, cli, analysis.compare, metrics.histograms\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_process_that_must_not_write_the_cache_still_computes(tmp_path: Path) -> None:
    closed = tmp_path / "file"
    closed.write_text("not a folder")
    code = "from metrics.compile import compile_kernels; compile_kernels()"
    environment = {"NUMBA_CACHE_DIR": str(closed / "inside"), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env=environment)
    assert closed.read_text() == "not a folder"


def test_kept_code_runs_without_what_compiles_it() -> None:
    code = (
        "import sys\n"
        "from metrics.compile import compile_kernels\n"
        "compile_kernels()\n"
        "print('numba.np.npyimpl' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    for _ in range(2):  # the first may have to compile
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
