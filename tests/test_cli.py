"""The shell commands as a script uses them: exit codes, JSON, errors.

`UPDATE_GOLDEN=1 pytest tests/test_cli.py` writes the golden files anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import cli
from metrics import METRICS

ROOT = Path(__file__).parent.parent
SAMPLES = json.loads((ROOT / "sample_dumps" / "index.json").read_text())
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[Path, Path]:
    """Two small honest dumps of three layers."""
    paths = tmp_path / "reference", tmp_path / "candidate"
    for n, path in enumerate(paths):
        path.mkdir()
        with h5py.File(path / "dump.h5", "w") as file:
            for layer in range(3):
                values = np.random.default_rng(layer).standard_normal((4, 8)).astype(np.float32)
                file[f"layers.{layer}.mlp"] = values * np.float32(1 + n * 2**-23)
    return paths


def spoil(dump: Path, factor: float = 2.0) -> None:
    with h5py.File(dump / "dump.h5", "a") as file:
        file["layers.1.mlp"][...] = file["layers.1.mlp"][...] * factor


def run(*arguments: object) -> int:
    return cli.main([str(a) for a in arguments])


def essence(document: dict) -> dict:
    """What must not change unnoticed, small enough to read in a diff."""
    first = document["first_divergence"]
    return {
        "id": document["id"],
        "verdict": document["verdict"],
        "sentence": document["sentence"],
        "counts": document["counts"],
        "first_divergence": first and {k: first[k] for k in ("module", "slot", "tensor", "step")},
        "pairs": {
            p["name"]: [
                p["module"],
                p["slot"],
                p["verdict"],
                p["match"]["method"],
                p["times_floor"],
            ]
            for p in document["pairs"]
        },
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s["id"])
def test_each_sample_tells_its_story(
    sample: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    folders = (ROOT / "sample_dumps" / sample[side] for side in ("reference", "candidate"))
    code = run("compare", *folders, "--json", out)
    document = json.loads(out.read_text())
    expected = sample["expect"]
    assert document["verdict"] == expected["verdict"]
    assert code == (0 if expected["verdict"] == "rounding" else 1)
    if "module" in expected:
        found = document["first_divergence"]
        assert (found["module"], found["slot"]) == (expected["module"], expected["slot"])
        assert expected["module"] in capsys.readouterr().out

    golden = GOLDEN / f"{sample['id']}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(json.dumps(essence(document), indent=1) + "\n")
    kept = json.loads(golden.read_text())
    times = {name: row.pop() for name, row in kept["pairs"].items()}
    now = essence(document)
    assert {n: row.pop() for n, row in now["pairs"].items()} == pytest.approx(times, rel=1e-6)
    assert now == kept


def test_the_json_is_the_documented_contract(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert run("compare", *dumps, "--json", out) == 0
    document = json.loads(out.read_text(), parse_constant=pytest.fail)  # no NaN or Infinity
    page = (ROOT / "docs" / "cli-json.md").read_text()
    assert [key for key in document if f"`{key}`" not in page] == []
    (pair, *_) = document["pairs"]
    assert [key for key in pair if f"`{key}`" not in page] == []
    assert set(pair["metrics"]) == set(METRICS)
    assert document["counts"] == {
        "pairs": 3,
        "compared": 3,
        "problems": 0,
        "unmatched_reference": 0,
        "unmatched_candidate": 0,
    }


def test_a_fault_gives_exit_code_1_and_names_the_tensor(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(dumps[1])
    assert run("compare", *dumps) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAULT")
    assert "first divergence: layers.1.mlp" in said


def test_a_tolerance_decides_the_exit_code(dumps: tuple[Path, Path]) -> None:
    spoil(dumps[1], 1.01)
    assert run("compare", *dumps, "--rtol", 0.1) == 0
    assert run("compare", *dumps, "--rtol", 1e-4) == 1


@pytest.mark.parametrize("side", [0, 1])
def test_a_dump_that_is_not_there_gives_exit_code_2_and_says_so(
    dumps: tuple[Path, Path], side: int, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = list(dumps)
    paths[side] = paths[side].with_name("nowhere")
    assert run("compare", *paths) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "nowhere" in said


def test_nothing_in_common_gives_exit_code_2(dumps: tuple[Path, Path]) -> None:
    (dumps[1] / "dump.h5").unlink()
    with h5py.File(dumps[1] / "dump.h5", "w") as file:
        file["something.else"] = np.ones(3)
    assert run("compare", *dumps) == 2


def test_inspect_lists_tensors_and_prints_a_slice(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", dumps[0]) == 0
    listing = capsys.readouterr().out
    assert "3 tensors" in listing
    assert "layers.2.mlp  float32  4 × 8" in listing
    assert run("inspect", dumps[0], "layers.2.mlp", "--slice", "0, 2:4") == 0
    with h5py.File(dumps[0] / "dump.h5") as file:
        expected = str(file["layers.2.mlp"][0, 2:4])
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("selection", ["9, :", "0, 0, 0", "abc"])
def test_a_selection_that_does_not_fit_is_explained(
    dumps: tuple[Path, Path], selection: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", dumps[0], "layers.2.mlp", "--slice", selection) == 2
    assert "error: " in capsys.readouterr().err


def test_an_unknown_tensor_suggests_the_nearest(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", dumps[0], "layers.2.mpl") == 2
    assert "layers.2.mlp" in capsys.readouterr().err


def test_pairs_are_sorted_and_filtered_as_asked(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(dumps[1])
    run("compare", *dumps, "--top", 1)
    assert capsys.readouterr().out.rstrip().endswith("layers.1.mlp")
    run("compare", *dumps, "--under", "layers.0", "--sort", "order")
    table = capsys.readouterr().out.split("\n\n")[1]
    assert "layers.0.mlp" in table
    assert "layers.2.mlp" not in table


def test_one_tensor_shows_every_metric(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run("compare", *dumps, "--tensor", "layers.1.mlp")
    said = capsys.readouterr().out
    assert [name for name in METRICS if name not in said] == []


def test_an_unknown_comparison_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PX_WORKSPACE", str(tmp_path / "workspace"))
    assert run("show", "0123456789abcdef0123") == 2
    assert "0123456789abcdef0123" in capsys.readouterr().err


def test_a_device_changes_neither_the_id_nor_the_verdict(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(dumps[1])
    answers = []
    for device in ("cpu", "torch-cpu"):
        assert run("compare", *dumps, "--device", device) == cli.FAIL
        answers.append(capsys.readouterr().out.split("\n\n")[0])  # the table's sums may differ
    assert answers[0] == answers[1]
    assert run("compare", *dumps, "--device", "cuda:63") == cli.COULD_NOT_COMPARE
    assert "There is no device 'cuda:63'" in capsys.readouterr().err


def test_comparing_imports_nothing_slow_that_it_does_not_need(dumps: tuple[Path, Path]) -> None:
    code = (
        "import sys, cli\n"
        "cli.main(['compare', *sys.argv[1:]])\n"
        "slow = {'torch', 'streamlit', 'pandas', 'pyarrow', 'plotly', 'ml_dtypes', 'sqlalchemy'}\n"
        "print(sorted(slow & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *map(str, dumps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
