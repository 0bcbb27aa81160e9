"""What the product says of a pair of dumps, in the casebook's words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PROCESSES = 2
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Place:
    """A finding: where, and the mechanisms best first."""

    verdict: str
    module: str
    slot: str
    step: str
    mechanisms: tuple[str, ...]
    zone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """The verdict fault, setup or rounding, and the findings in the product's order.

    `error` is the traceback of a crash, which counts as a wrong answer. Time in seconds.
    """

    id: str
    verdict: str
    places: tuple[Place, ...] = ()
    seconds: float = 0.0
    error: str = ""

    @property
    def first(self) -> Place | None:
        """The finding that is scored."""
        return self.places[0] if self.places else None


def predict(folder: Path) -> Prediction:
    """Open both runs, compare them and diagnose, as a user of the Python API does."""
    start = time.perf_counter()
    try:
        verdict, places = _diagnosed(folder)
    except Exception:  # a crash is an answer to be counted, and shown with the errors
        return Prediction(folder.name, "crash", error=traceback.format_exc(limit=-4))
    return Prediction(folder.name, verdict, places, time.perf_counter() - start)


def _diagnosed(folder: Path) -> tuple[str, tuple[Place, ...]]:
    from analysis.compare import compare
    from analysis.diagnose import diagnose
    from analysis.findings import explain
    from loaders import open_run

    reference, candidate = open_run(folder / "reference"), open_run(folder / "candidate")
    diagnosis = diagnose(reference, candidate, compare(reference, candidate), explain=explain)
    verdict = "rounding" if diagnosis.verdict == "watch" else diagnosis.verdict
    return verdict, tuple(_place(finding) for finding in diagnosis.findings)


def _place(finding: Any) -> Place:
    return Place(
        finding.verdict,
        finding.module,
        finding.slot,
        str(finding.step or 0),
        tuple(hypothesis.mechanism for hypothesis in finding.hypotheses),
        finding.zone,
    )


def predict_all(folders: Iterable[Path]) -> Iterator[Prediction]:
    """Predictions of many pairs, in order, on two processes of one thread each."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        yield from pool.map(predict, folders, chunksize=4)


def as_casebook(predictions: Iterable[Prediction]) -> dict[str, dict[str, Any]]:
    """What the casebook's own scorer reads."""
    answers = {}
    for prediction in predictions:
        first = asdict(prediction.first) if prediction.first else {}
        names = ("module", "slot", "step", "mechanisms")
        answers[prediction.id] = {"verdict": prediction.verdict} | {
            name: first.get(name) for name in names
        }
    return answers


def score_by_casebook(folder: Path, predictions: Iterable[Prediction], scorer: Path) -> str:
    """Last line of the casebook's own scorer, to check ours against."""
    answers = folder / "predictions.json"
    answers.write_text(json.dumps(as_casebook(predictions), indent=1), encoding="utf-8")
    command = [sys.executable, str(scorer), str(answers), str(folder / "manifest.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip().rpartition("\n")[2]
