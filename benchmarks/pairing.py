"""What is paired of dumps that were not made to match, how it is judged, and what pairing costs.

Real msprobe dumps are looked for in `../shared/foreign_dumps/msprobe`; without them their rows say
so. Everything else is made here or lies in `sample_dumps`.
"""

from __future__ import annotations

import csv
import json
import math
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from analysis.compare import compare
from analysis.coverage_text import shares_in_words
from analysis.matching import match
from analysis.verdict import judge
from benchmarks.row import ROOT, Row, timed
from core.comparison import Comparison
from core.runs import Array, Run
from loaders import open_run
from sample_dumps import tensor_parallel

FOREIGN = ROOT.parent / "shared" / "foreign_dumps" / "msprobe"
SAMPLES = ROOT / "sample_dumps"


def measure() -> Iterator[Row]:
    """A row for each kind of dump: pairs, verdict, methods, coverage; then the cost of pairing."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        yield from _msprobe(folder)
        yield _row("torch_xray, renamed classes", *_sample("xray-renamed"))
        yield _row("fp32 against bf16, pretrained encoder", *_sample("minilm-fp32-bf16"))
        yield _row("Paddle's layout, transposed and unnamed", *_paddle(folder))
        tensor_parallel.whole(folder / "whole")
        tensor_parallel.sharded(folder / "sharded")
        runs = open_run(folder / "whole"), open_run(folder / "sharded")
        yield _row("one rank against tensor parallelism of two", *runs)
        yield _row("tensor parallelism of two against one rank", *reversed(runs))
        yield _cost(folder)


def _msprobe(folder: Path) -> Iterator[Row]:
    if not FOREIGN.is_dir():
        yield Row("msprobe, real dumps", "skipped: they are not beside this checkout")
        return
    for name in ("fp32", "bf16", "bf16_fault"):
        with tarfile.open(FOREIGN / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
    for name in ("bf16", "bf16_fault"):
        with (FOREIGN / f"msprobe_{name}_vs_fp32.csv").open(newline="") as text:
            rows = list(csv.DictReader(text))
        tensors = {r["NPU Name"] for r in rows if r["NPU Dtype"].startswith("torch")}
        comparison = compare(open_run(folder / "fp32"), open_run(folder / name))
        ours = {str(p.reference.attrs.get("dump_name", p.reference.name)) for p in comparison.pairs}
        red = Counter(r["Result"] for r in rows)["error"]
        theirs = f"msprobe pairs {len(tensors)} tensors in {len(rows)} rows, {red} of them red"
        share = len(ours & tensors) / len(tensors)
        yield Row(f"msprobe, fp32 against {name}", _told(comparison), theirs, f"{share:.0%}")


def _row(what: str, reference: Run, candidate: Run) -> Row:
    comparison = compare(reference, candidate)
    assert comparison.coverage is not None
    share = comparison.coverage.tensors.fraction
    return Row(what, _told(comparison), f"{len(reference.tensors)} tensors", f"{share:.0%}")


def _told(comparison: Comparison) -> str:
    judged = judge(comparison)
    methods = Counter(p.match.method for p in comparison.pairs)
    accused = sum(v in ("fault", "watch") for v in judged.verdicts)
    worst = max((t for t in judged.times_floor if not math.isnan(t)), default=math.nan)
    assert comparison.coverage is not None
    found = ", ".join(f"{n} {method}" for method, n in methods.items())
    return (
        f"{judged.verdict}; {accused} pairs accused, worst {worst:.1f}× floor; {found}; "
        f"{shares_in_words(comparison.coverage)}"
    )


def _sample(name: str) -> tuple[Run, Run]:
    return open_run(SAMPLES / name / "reference"), open_run(SAMPLES / name / "candidate")


def _paddle(folder: Path) -> tuple[Run, Run]:
    """The weights of a sample, and the same as Paddle keeps them: other names, linears turned."""
    dump = open_run(SAMPLES / "decoder-fault" / "reference")
    weights = [t for t in dump.tensors.values() if t.pass_ == "parameter"]
    ours, theirs, counts = {}, {}, Counter[str]()
    for tensor in weights:
        values = dump.read(tensor.id).astype(np.float32)
        kind = "embedding" if "embed" in tensor.module else f"linear{values.ndim}"
        ours[f"{tensor.module}.{tensor.argument}"] = values
        turned = values.T if kind == "linear2" else values
        theirs[f"{kind}_{counts[kind]}.w_0"] = np.ascontiguousarray(turned)
        counts[kind] += 1
    _safetensors(folder / "torch.safetensors", ours)
    _safetensors(folder / "paddle.safetensors", dict(sorted(theirs.items())))
    return open_run(folder / "torch.safetensors"), open_run(folder / "paddle.safetensors")


def _safetensors(path: Path, arrays: Mapping[str, Array]) -> None:
    header, at = {}, 0
    for name, array in arrays.items():
        offsets = [at, at + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
        at = offsets[1]
    text = json.dumps(header).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def _cost(folder: Path) -> Row:
    """Pairing of 20 000 tensors by rule, against opening both dumps."""
    value = np.zeros(4, np.float32)
    for side, root in (("a", "model"), ("b", "module.model")):
        names = (f"{root}.layers.{n // 100}.m{n % 100}.weight" for n in range(20_000))
        _safetensors(folder / f"{side}.safetensors", dict.fromkeys(names, value))
    runs: list[Run] = []
    paths = [folder / f"{side}.safetensors" for side in "ab"]
    opening = timed(lambda: runs.extend(map(open_run, paths)))
    pairing = timed(lambda: match(*runs))
    return Row(
        "pairing 20 000 tensors by rule",
        f"{20_000 / pairing:.0f} tensors/s",
        f"opening both dumps {opening:.2f} s",
        f"{pairing / opening:.2f}",
    )
