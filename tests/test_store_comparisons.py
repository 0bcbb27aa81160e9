"""Comparisons on disk: exact, whole or absent."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from store_samples import extreme_comparison

from core.comparison import Comparison
from core.errors import NotHereError
from core.stats import PairStats
from store import comparisons, tables
from store.comparisons import Kept
from store.kept_pairs import KeptPairs
from store.records import ComparisonRecord, now

HERE = Path(__file__).parent


def bits(value: object) -> object:
    """A value with floats as their bits, so that equality means identity; -0.0 and NaN too."""
    if is_dataclass(value):
        kind = PairStats if isinstance(value, PairStats) else type(value)  # decoded lazily or not
        return [kind.__name__, *(bits(getattr(value, f.name)) for f in fields(value))]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tobytes()]
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, tuple | list | KeptPairs):
        kind = tuple if isinstance(value, KeptPairs) else type(value)
        return [kind.__name__, *map(bits, value)]
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return [type(value).__name__, value]


def kept(comparison: Comparison) -> Kept:
    record = ComparisonRecord(
        id=comparison.id,
        label_reference="a",
        label_candidate="b",
        verdict="watch",
        first_divergence="layers.0",
        worst_added=float("nan"),
        compared=1,
        total=2,
        created=now(),
    )
    return Kept(record, "run-a", "run-b", 1)


def keep(folder: Path, comparison: Comparison) -> None:
    comparisons.write(folder, comparison, kept(comparison), owner="me")


def test_a_comparison_comes_back_bit_for_bit(tmp_path: Path) -> None:
    comparison = extreme_comparison(pairs=3)
    keep(tmp_path, comparison)
    assert bits(comparisons.read(tmp_path, comparison.id)) == bits(comparison)


def test_a_comparison_without_pairs_comes_back(tmp_path: Path) -> None:
    comparison = replace(extreme_comparison(), pairs=())
    keep(tmp_path, comparison)
    assert bits(comparisons.read(tmp_path, comparison.id)) == bits(comparison)


@dataclass(frozen=True)
class Older:
    name: str
    gone: int


@dataclass(frozen=True)
class Newer:
    name: str
    added: float = 0.5


def test_a_file_of_an_older_version_takes_the_defaults_of_new_fields(tmp_path: Path) -> None:
    tables.write(tmp_path / "x", [Older("a", 1)], Older)
    assert tables.read(tmp_path / "x", Newer) == (Newer("a"),)


def test_a_file_without_a_field_that_has_no_default_is_refused(tmp_path: Path) -> None:
    tables.write(tmp_path / "x", [Newer("a")], Newer)
    with pytest.raises(KeyError, match="gone"):
        tables.read(tmp_path / "x", Older)


@pytest.mark.parametrize("name", ["nothing", "../comparisons/abc123", "", ".", "a/b", "%2e%2e"])
def test_an_unknown_id_is_not_here(tmp_path: Path, name: str) -> None:
    keep(tmp_path, extreme_comparison())
    with pytest.raises(NotHereError, match="no comparison"):
        comparisons.read(tmp_path, name)


@pytest.mark.parametrize(
    "part", ["meta.json", "pairs.parquet", "stats.ledger", "unmatched_reference.parquet"]
)
def test_a_damaged_comparison_says_so_and_is_replaced_when_made_again(
    tmp_path: Path, part: str
) -> None:
    keep(tmp_path, extreme_comparison())
    (tmp_path / "abc123" / part).write_bytes(b"PAR1{nonsense")
    with pytest.raises(NotHereError, match="cannot be read") as caught:
        comparisons.read(tmp_path, "abc123")
    assert "compare the two runs again" in caught.value.hint
    keep(tmp_path, extreme_comparison())
    assert bits(comparisons.read(tmp_path, "abc123")) == bits(extreme_comparison())


def test_writing_a_comparison_again_keeps_the_first(tmp_path: Path) -> None:
    keep(tmp_path, extreme_comparison())
    before = (tmp_path / "abc123" / "meta.json").read_bytes()
    keep(tmp_path, extreme_comparison())
    assert (tmp_path / "abc123" / "meta.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["abc123"]


def test_what_the_catalogue_needs_is_kept_with_the_comparison(tmp_path: Path) -> None:
    keep(tmp_path, extreme_comparison())
    (found,) = comparisons.kept(tmp_path)
    assert (found.record.verdict, found.reference_run) == ("watch", "run-a")
    assert np.isnan(found.record.worst_added)
    assert not list(comparisons.kept(tmp_path, known=frozenset({"abc123"})))


WRITER = """
import sys
from pathlib import Path
from test_store_comparisons import keep
from store_samples import extreme_comparison
comparison = extreme_comparison(pairs=400)
print("go", flush=True)
keep(Path(sys.argv[1]), comparison)
print("done", flush=True)
"""


@pytest.mark.parametrize("wait_s", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_writer_killed_in_the_middle_leaves_no_half_comparison(
    tmp_path: Path, wait_s: float
) -> None:
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{HERE.parent}"}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "go\n"
        time.sleep(wait_s)
        writer.send_signal(signal.SIGKILL)
    comparisons.sweep(tmp_path, lambda _: False)
    left = [path.name for path in tmp_path.iterdir()]
    assert left in ([], ["abc123"])
    if left:
        assert len(comparisons.read(tmp_path, "abc123").pairs) == 401


def test_the_draft_of_a_live_writer_is_not_swept(tmp_path: Path) -> None:
    (tmp_path / ".draft-alive-1").mkdir()
    (tmp_path / ".draft-dead-1").mkdir()
    comparisons.sweep(tmp_path, lambda owner: owner == "alive")
    assert [path.name for path in tmp_path.iterdir()] == [".draft-alive-1"]


def test_the_small_part_is_json_anybody_can_read(tmp_path: Path) -> None:
    keep(tmp_path, extreme_comparison())
    meta = json.loads((tmp_path / "abc123" / "meta.json").read_text())
    assert meta["comparison"]["reference"]["label"] == "GPU « bf16 »"
