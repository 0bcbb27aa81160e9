"""Dumps without values: what they say of their tensors is compared, and never called a fault."""

from __future__ import annotations

import csv
import math
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msprobe_dumps import Dump

from analysis.compare import compare
from analysis.export import comparison_json
from analysis.summaries import summary_of, times_floor
from analysis.verdict import judge
from core.comparison import Comparison, Match, Pair, SummaryPair, Tolerance
from core.errors import NotHereError
from core.runs import Run
from core.tensors import TensorInfo, TensorSummary
from loaders import open_run
from store import tables

REAL = Path(__file__).parents[2] / "shared" / "foreign_dumps" / "msprobe"
STATED = {"minimum": "min", "maximum": "max", "mean": "mean", "norm": "l2norm"}


def _info(dtype: str = "float32", **facts: Any) -> TensorInfo:
    return TensorInfo(
        id="x",
        name="x",
        module="x",
        argument="0",
        pass_="forward",
        slot="output",
        shape=(4,),
        storage_dtype=dtype,
        dtype=dtype,
        order=0,
        **facts,
    )


def _pair(a: TensorSummary, b: TensorSummary, dtype: str = "float32") -> Pair:
    tensor = _info(dtype, summary=a)
    return Pair(tensor, tensor, Match("exact"), Tolerance(0, 0), summary=SummaryPair(a, b))


# --- what is known from statistics alone


@given(st.data())
def test_norm_and_mean_never_claim_more_error_than_there_is(data: st.DataObject) -> None:
    numbers = st.lists(st.integers(-(10**6), 10**6), min_size=4, max_size=4).map(
        lambda values: np.array(values) / 997
    )
    x, y = data.draw(numbers.filter(np.any)), data.draw(numbers)
    a, b = (summary_of([v]) for v in (x, y))
    a, b = (TensorSummary(mean=s.mean, norm=s.norm) for s in (a, b))
    bound = times_floor(_pair(a, b), 1.0)
    assert bound <= np.linalg.norm(y - x) / np.linalg.norm(x) * (1 + 1e-9) + 1e-12


def test_a_summary_of_values_is_what_numpy_says() -> None:
    values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    found = summary_of(np.split(values, [7, 500]))
    assert found.minimum == values.min()
    assert found.maximum == values.max()
    assert found.mean == pytest.approx(values.astype(float).mean(), rel=1e-12)
    assert found.norm == pytest.approx(np.linalg.norm(values.astype(float)), rel=1e-12)
    assert summary_of([np.full(3, 1e300)]).norm == pytest.approx(1e300 * math.sqrt(3))
    assert math.isnan(summary_of([np.array([1.0, np.nan])]).maximum or 0)
    assert summary_of([]) == TensorSummary()


@pytest.mark.parametrize(
    ("a", "b", "floors"),
    [
        (TensorSummary(maximum=2.0), TensorSummary(maximum=2.5), 0.25),
        (TensorSummary(maximum=2.0), TensorSummary(maximum=math.nan), math.inf),
        (TensorSummary(maximum=math.inf), TensorSummary(maximum=math.inf), 0.0),
        (TensorSummary(0, 0, 0, 0), TensorSummary(0, 0, 0, 1), math.inf),
        (TensorSummary(norm=1.0), TensorSummary(norm=1.0), 0.0),
        # A norm that overflows over finite values says nothing.
        (TensorSummary(-1, 1, norm=math.inf), TensorSummary(-1, 1, norm=5), 0.0),
        (TensorSummary(norm=1.0, checksum="a:1"), TensorSummary(norm=9.0, checksum="a:1"), 0.0),
        (TensorSummary(norm=1.0, checksum="a:1"), TensorSummary(norm=2.0, checksum="b:1"), 1.0),
        (TensorSummary(norm=1.0, resolution=1.0), TensorSummary(norm=2.0), 1 / math.sqrt(2)),
    ],
)
def test_the_difference_of_two_summaries(a: TensorSummary, b: TensorSummary, floors: float) -> None:
    assert times_floor(_pair(a, b), 1.0) == pytest.approx(floors)


def test_a_pair_without_values_is_kept_whole() -> None:
    pair = _pair(TensorSummary(1.5, None, math.inf, 2, checksum="a:1"), TensorSummary(norm=-0.0))
    kept = tables.values_of(tables.column([pair, pair], Pair), Pair)
    assert kept == [pair, pair]


# --- msprobe


def _dump(folder: Path, leaves: list[Mapping[str, Any]], dtype: str = "torch.float32") -> Run:
    dump = Dump(folder / "step0" / "rank0")
    for n, said in enumerate(leaves):
        leaf = {"type": "torch.Tensor", "dtype": dtype, "shape": [4, 8], **said}
        dump.data[f"Module.layers.{n}.Linear.forward.0"] = {"output": [leaf]}
    dump.close(task="statistics")
    return open_run(folder)


def _stats(scale: float = 1.0) -> dict[str, float]:
    return {"Max": 2.0 * scale, "Min": -1.0 * scale, "Mean": 0.1 * scale, "Norm": 4.0 * scale}


def _compared(tmp_path: Path, ours: Any, theirs: Any, **facts: Any) -> Comparison:
    return compare(_dump(tmp_path / "a", ours), _dump(tmp_path / "b", theirs, **facts))


def test_statistics_load_and_values_are_asked_for_in_vain(tmp_path: Path) -> None:
    run = _dump(tmp_path, [_stats(), {"Max": 3, "Min": None, "md5": "4799de0f"}])
    assert run.problems == ()
    assert run.provenance["values"] == "statistics only for 2 tensors"
    first, second = run.tensors.values()
    assert first.shape == (4, 8)
    assert second.summary is not None
    assert (second.summary.maximum, second.summary.minimum) == (3.0, None)
    assert second.summary.checksum == "md5:4799de0f"
    with pytest.raises(NotHereError, match="no values"):
        run.read(first.id)
    with pytest.raises(NotHereError, match="Dump again with values"):
        list(run.chunks(first.id))


def test_a_fault_in_the_statistics_is_something_to_watch(tmp_path: Path) -> None:
    ours = [_stats()] * 4
    judged = judge(_compared(tmp_path, ours, [_stats(), _stats(1.05), _stats(1.05), _stats()]))
    assert judged.verdicts == ("rounding", "watch", "inherited", "rounding")
    assert "4 pairs compared by statistics only" in judged.detail
    assert judged.verdict == "watch"


def test_nan_on_one_side_alone_is_something_to_watch(tmp_path: Path) -> None:
    theirs = {**_stats(), "Max": math.nan, "Norm": math.nan}
    judged = judge(_compared(tmp_path, [_stats()], [theirs]))
    assert judged.verdicts == ("watch",)
    assert math.isinf(judged.times_floor[0])


def test_checksums_alone_tell_equal_from_different(tmp_path: Path) -> None:
    ours = [{"md5": text} for text in ("aa", "bb", "cc")]
    comparison = _compared(tmp_path, ours, [{"md5": text} for text in ("aa", "b0", "c0")])
    judged = judge(comparison)
    assert judged.verdicts == ("rounding", "watch", "inherited")
    assert "the checksums differ" in judged.sentence
    pairs = comparison_json(comparison, judged)["pairs"]
    assert pairs[1]["summary"]["candidate"]["checksum"] == "md5:b0"
    assert pairs[1]["metrics"] is None


def test_checksums_of_different_formats_say_nothing(tmp_path: Path) -> None:
    same = [{"md5": "aa"}]
    comparison = _compared(tmp_path, same, [{"md5": "ab"}], dtype="torch.bfloat16")
    assert judge(comparison).verdict == "uncompared"
    assert "nothing in common" in str(comparison.pairs[0].problem)


def test_equal_statistics_are_not_called_equal_values(tmp_path: Path) -> None:
    judged = judge(_compared(tmp_path, [_stats()], [_stats()]))
    assert judged.verdict == "rounding"
    assert judged.sentence == "The two runs agree to rounding."


def test_statistics_change_the_id_of_a_comparison(tmp_path: Path) -> None:
    first = _compared(tmp_path / "1", [_stats()], [_stats()])
    second = _compared(tmp_path / "2", [_stats()], [_stats(1.01)])
    assert first.id != second.id


# --- real dumps


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    if not REAL.exists():
        pytest.skip("the real msprobe dumps are not on this machine")
    folder = tmp_path_factory.mktemp("msprobe")
    names = ("fp32_stats", "bf16_stats", "bf16_fault")
    for name in names:
        with tarfile.open(REAL / f"{name}.tar.xz") as archive:
            archive.extractall(folder / name, filter="data")
    return {name: open_run(folder / name) for name in names}


def test_all_that_msprobe_pairs_is_compared_by_statistics(real: dict[str, Run]) -> None:
    comparison = compare(real["fp32_stats"], real["bf16_stats"])
    table = csv.DictReader((REAL / "msprobe_stats_vs_fp32.csv").read_text().splitlines())
    rows = {row["NPU Name"]: row for row in table if row["NPU Dtype"].startswith("torch")}
    named = {_as_told(pair.reference): pair for pair in comparison.pairs}
    assert named.keys() == rows.keys()
    for name, row in rows.items():
        summary = named[name].summary
        assert summary is not None
        for ours, theirs in STATED.items():
            for side, said in (("Bench", summary.reference), ("NPU", summary.candidate)):
                _agrees(getattr(said, ours), row[f"{side} {theirs}"])


def _as_told(tensor: TensorInfo) -> str:
    """As the table calls it: msprobe's name, which for statistics has no word for keywords."""
    return str(tensor.attrs.get("dump_name", tensor.name)).replace(".kwargs.", ".input.")


def _agrees(ours: float | None, theirs: str) -> None:
    if theirs in ("None", "N/A", ""):
        assert ours is None
    elif theirs in ("True", "False"):
        assert ours == (theirs == "True")
    else:
        assert ours == pytest.approx(float(theirs), rel=1e-12, nan_ok=True)


def test_statistics_of_fp32_against_bf16_are_rounding(real: dict[str, Run]) -> None:
    judged = judge(compare(real["fp32_stats"], real["bf16_stats"]))
    assert judged.verdict == "rounding"
    assert set(judged.verdicts) == {"rounding"}


def test_values_against_statistics_show_the_planted_fault(real: dict[str, Run]) -> None:
    comparison = compare(real["fp32_stats"], real["bf16_fault"])
    judged = judge(comparison)
    assert judged.verdict == "watch"
    assert judged.first_divergence is not None
    first = comparison.pairs[judged.first_divergence].reference
    assert (first.operator, first.slot) == ("model.layers.1.mlp.gate_proj", "output")
