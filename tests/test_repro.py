"""The repro bundle: complete, repeatable, and its script says what the analysis said."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from memory_runs import run_of

from analysis.compare import compare
from analysis.repro import bundle
from core.errors import CompareError
from core.runs import Array

OUT = "model.proj:forward_output.0"
FACTS = {
    f"model.proj:{slot}": {"module_class": "Linear"}
    for slot in ("forward_params.weight", "forward_input.0", "forward_output.0")
}


def linear(scale: float) -> dict[str, Array]:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((6, 32)).astype(np.float32)
    w = rng.standard_normal((16, 32)).astype(np.float32)
    y = (x.astype(np.float64) @ w.T.astype(np.float64) * scale).astype(np.float32)
    return {
        "model.proj:forward_params.weight": w,
        "model.proj:forward_input.0": x,
        OUT: y,
    }


def made(scale: float = 1.01) -> bytes:
    a = run_of(linear(1.0), label="a", facts=FACTS)
    b = run_of(linear(scale), label="b", facts=FACTS)
    return bundle(a, b, comparison=compare(a, b), tensor=OUT)


def test_a_bundle_holds_everything_and_is_repeatable() -> None:
    parcel = zipfile.ZipFile(io.BytesIO(made()))
    names = set(parcel.namelist())
    for side in ("reference", "candidate"):
        assert {
            f"{side}/{n}.npy" for n in ("output", "exact", "floor_variance", "counted")
        } <= names
    about = json.loads(parcel.read("about.json"))
    assert about["kind"] == "linear"
    assert about["sides"]["reference"]["ratio"] < 2 < about["sides"]["candidate"]["ratio"]
    assert made() == made()


def test_its_script_prints_the_ratios_and_reruns_the_operator(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(made())) as parcel:
        parcel.extractall(tmp_path)
    told = subprocess.run(
        [sys.executable, tmp_path / "rerun.py"], capture_output=True, text=True, check=True
    ).stdout
    found = [float(value) for value in re.findall(r"R = ([\d.e+-]+)", told)]
    about = json.loads((tmp_path / "about.json").read_text())
    assert found[0] == pytest.approx(about["sides"]["reference"]["ratio"], rel=0.02)
    assert found[1] == pytest.approx(about["sides"]["candidate"]["ratio"], rel=0.02)
    assert found[2] < 2


def test_a_tensor_that_no_call_made_is_refused() -> None:
    run = run_of(linear(1.0), label="a", facts=FACTS)
    with pytest.raises(CompareError, match="No operator call"):
        bundle(run, run, comparison=compare(run, run), tensor="nothing")
