"""A comparison as large as they come: over 100 000 pairs of a decoder of 80 layers.

Real dumps of tiny tensors of one step on one rank are compared, as they should be and with a fault;
the comparison in the workspace repeats these pairs over eight steps and four ranks. Every page has
something to read then, and elements can be read of the first step and rank.
`python -m benchmarks.many_pairs FOLDER` makes it.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from analysis.compare import ENGINE_VERSION, compare
from analysis.table import pair_table
from analysis.verdict import judge
from core.comparison import Comparison, Pair
from core.findings import Diagnosis
from core.tensors import TensorInfo
from loaders import open_run
from metrics import METRICS
from store import comparisons, diagnoses
from store.comparing import recorded
from store.comparisons import Kept
from store.derived import Derived, made_by
from store.ledger import FileLedger
from store.options import Options
from store.workspace import Workspace

BLOCK: Mapping[str, str] = {
    "input_layernorm": "RMSNorm",
    "self_attn.q_proj": "ColumnParallelLinear",
    "self_attn.k_proj": "ColumnParallelLinear",
    "self_attn.v_proj": "ColumnParallelLinear",
    "self_attn.rope": "RotaryEmbedding",
    "self_attn.attention": "FlashAttention",
    "self_attn.o_proj": "RowParallelLinear",
    "self_attn": "Attention",
    "post_attention_layernorm": "RMSNorm",
    "mlp.gate_proj": "ColumnParallelLinear",
    "mlp.up_proj": "ColumnParallelLinear",
    "mlp.act": "SiLU",
    "mlp.down_proj": "RowParallelLinear",
    "mlp": "GatedMLP",
    "": "DecoderLayer",
}
SHAPE = (4, 32)
FAULTY = (47, "self_attn.rope")  # layer, operator
FAULTY_RANK, FIRST_STEP = 2, 3  # where and from when on it is faulty; and in the first file
COMPARISON = "a100000pairs"
ADDED = 1200.0  # times the rounding of bf16 that the faulty operator adds
CREEP = 0.1  # rounding errors that a layer adds to the stream
_SLOTS = (("forward", "input"), ("forward", "output"), ("backward", "output"))
_SIDES = (("reference", "GPU"), ("candidate", "XPU"))


@dataclass(frozen=True, slots=True)
class Size:
    """How large the model and its recording are."""

    layers: int = 80
    steps: int = 8
    ranks: int = 4

    @property
    def places(self) -> Sequence[tuple[int, int]]:
        """Every step and rank, in order."""
        return [(step, rank) for step in range(self.steps) for rank in range(self.ranks)]


@dataclass(frozen=True, slots=True)
class _Operator:
    module: str
    kind: str
    layer: int


def comparison(folder: Path, size: Size | None = None) -> str:
    """Id of the comparison in `folder`/workspace; made if it is not there, or by other code."""
    root, mark = folder / "workspace", folder / "made_by"
    if not mark.exists() or mark.read_text() != made_by():
        shutil.rmtree(root, ignore_errors=True)
        size = size or Size()
        for name, faulty in (("right", False), ("wrong", True)):
            if not (folder / name / "whole").exists():
                dumps(folder / name, size, faulty=faulty)
                (folder / name / "whole").touch()
        _keep(root, folder / "wrong", repeated(folder, size))
        mark.write_text(made_by())
    return COMPARISON


def dumps(folder: Path, size: Size, *, faulty: bool) -> None:
    """Both dumps of one step on one rank, in the project's own format."""
    rng = np.random.default_rng(int(faulty))
    plan = list(_plan(size))
    values = [_values(rng, *entry, faulty=faulty) for entry in plan]
    for side, (name, device) in enumerate(_SIDES):
        (folder / name).mkdir(parents=True, exist_ok=True)
        with h5py.File(folder / name / "step0_rank0.h5", "w", track_order=True) as file:
            file.attrs["format"], file.attrs["format_version"] = "precision-dump", 1
            file.attrs["step"], file.attrs["rank"], file.attrs["complete"] = 0, 0, True
            file.attrs["provenance"] = json.dumps({"device": device, "framework": "torch"})
            for order, entry in enumerate(plan):
                _write(file, *entry, order=order, values=values[order][side])


def repeated(folder: Path, size: Size) -> tuple[Comparison, Derived]:
    """The comparison over all steps and ranks, and what follows from it."""
    made = [
        compare(*(open_run(folder / name / side, label=device) for side, device in _SIDES))
        for name in ("right", "wrong")
    ]
    numbers = np.array([[m(p.stats) for m in METRICS.values()] for c in made for p in c.pairs])  # type: ignore[arg-type]
    rows, pairs = [], []
    for step, rank in size.places:
        wrong = (rank == FAULTY_RANK and step >= FIRST_STEP) or (step, rank) == (0, 0)
        chosen = made[wrong].pairs
        rows.append(np.arange(len(chosen)) + wrong * len(chosen))
        pairs += [_moved(pair, step, rank) for pair in chosen]
    whole = replace(made[1], id=COMPARISON, pairs=tuple(pairs), coverage=None)
    judgement = judge(whole)
    values = dict(zip(METRICS, numbers[np.concatenate(rows)].T, strict=True))
    return whole, (judgement, pair_table(whole, judgement, values=values))


def _moved(pair: Pair, step: int, rank: int) -> Pair:
    """A pair as if another step on another rank had made it."""

    def moved(tensor: TensorInfo) -> TensorInfo:
        return replace(tensor, id=f"step{step}/rank{rank}/{tensor.name}", step=step, rank=rank)

    return replace(pair, reference=moved(pair.reference), candidate=moved(pair.candidate))


def _keep(root: Path, dumps: Path, made: tuple[Comparison, Derived]) -> None:
    """Enter the dumps and the comparison into a workspace; equal statistics are kept once."""
    whole, derived = made
    with Workspace(root, options=Options(folders=(dumps,))) as workspace:
        runs = [workspace.add_folder(dumps / side, label=device) for side, device in _SIDES]
        while any(workspace.run(run.id).status == "reading" for run in runs):
            time.sleep(0.2)
    folder = root / "comparisons"
    kept = Kept(recorded(whole, derived[0]), runs[0].id, runs[1].id, ENGINE_VERSION)
    with FileLedger(folder / ".pairs", key=COMPARISON) as ledger:
        distinct = list({id(p.stats): p.stats for p in whole.pairs if p.stats}.values())
        places = dict(zip(map(id, distinct), ledger.keep(distinct), strict=True))
        pairs = tuple(replace(p, stats=places[id(p.stats)]) for p in whole.pairs)
        whole = replace(whole, pairs=pairs)
        comparisons.write(folder, whole, kept, owner="pairs", ledger=ledger, made=derived)
    (folder / ".pairs").unlink()
    outputs = (p.reference.id for p in whole.pairs if p.reference.slot == "output")
    reason = dict.fromkeys(outputs, "its values are random")
    diagnoses.write(folder, Diagnosis(COMPARISON, "uncompared", (), (), reason))


def _plan(size: Size) -> Iterator[tuple[_Operator, tuple[str, str]]]:
    """Every tensor in execution order: forward, then backward the other way."""
    operators = list(_operators(size))
    for operator in operators:
        yield from ((operator, slot) for slot in _SLOTS[:2])
    for operator in reversed(operators):
        yield operator, _SLOTS[2]


def _operators(size: Size) -> Iterator[_Operator]:
    yield _Operator("model.embed_tokens", "Embedding", -1)
    for layer in range(size.layers):
        for name, kind in BLOCK.items():
            yield _Operator(f"model.layers.{layer}.{name}".rstrip("."), kind, layer)
    yield _Operator("model.norm", "RMSNorm", size.layers)
    yield _Operator("lm_head", "ColumnParallelLinear", size.layers)


def _values(
    rng: np.random.Generator, operator: _Operator, slot: tuple[str, str], *, faulty: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both sides: rounding that grows with depth, and what the faulty operator adds, once."""
    layer, name = FAULTY
    exact = rng.standard_normal(SHAPE, np.float32)
    size = 0.5 + CREEP * max(0, operator.layer) ** 0.5
    if faulty and slot[0] == "forward":
        if operator.module.endswith(f".{layer}.{name}") and slot[1] == "output":
            size = ADDED
        elif operator.layer > layer:
            size = ADDED / 20
    error = rng.standard_normal(SHAPE, np.float32) * np.float32(size * 2**-9)
    return exact.astype(ml_dtypes.bfloat16), (exact * (1 + error)).astype(ml_dtypes.bfloat16)


def _write(
    file: h5py.File,
    operator: _Operator,
    slot: tuple[str, str],
    *,
    order: int,
    values: NDArray[Any],
) -> None:
    group = file.require_group(f"{operator.module}@0")
    dataset = group.create_dataset(f"{slot[0]}_{slot[1]}.0", data=values.view(np.uint16))
    facts = {
        "module": operator.module, "module_class": operator.kind, "op": "", "call": 0,
        "pass": slot[0], "slot": slot[1], "argument": "0", "order": order,
        "dtype": "bfloat16", "attrs_json": "{}",
    }  # fmt: skip
    for fact, value in facts.items():
        dataset.attrs[fact] = value


if __name__ == "__main__":
    print(comparison(Path(sys.argv[1]).resolve()))
