"""A workspace around two small runs in memory, really compared, for tests of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
from memory_runs import run_of

from analysis.adapt.runs import adapted
from analysis.compare import compare
from analysis.table import pair_table
from analysis.verdict import judge
from analysis.views import SliceView, slice_view
from core.annotations import Annotation
from core.comparison import Comparison, Judgement
from core.errors import NotHereError
from core.runs import Array, Run
from store.thumbnails import Thumbnail

LAYERS = 3
FAULT = "model.layers.1.mlp:forward_output.0"
SCALAR, EMPTY, COUNT = (
    "model.loss:forward_output.0",
    "model.none:forward_output.0",
    "model.ids:forward_output.0",
)
RESHAPED, ODD = "model.reshaped:forward_output.0", "model.odd:forward_output.0"


def decoder() -> tuple[dict[str, Array], dict[str, Array]]:
    """Both sides of a three-layer decoder in bf16; layer 1's mlp is wrong in one channel."""
    rng = np.random.default_rng(5)
    bf16 = ml_dtypes.bfloat16
    a: dict[str, Array] = {}
    for n in range(LAYERS):
        for part in ("norm", "attn", "attn/softmax", "mlp"):
            a[f"model.layers.{n}.{part}:forward_output.0"] = rng.standard_normal((2, 8, 16)).astype(
                bf16
            )
        a[f"model.layers.{n}:forward_output.0"] = rng.standard_normal((2, 8, 16)).astype(bf16)
    a |= {
        SCALAR: np.array(1.5, np.float32),
        EMPTY: np.zeros((0, 4), np.float32),
        COUNT: np.arange(40, dtype=np.int64).reshape(4, 10),
        ODD: rng.standard_normal((4, 6)).astype(np.float32),
        RESHAPED: np.zeros((4, 6), np.float32),
    }
    a[ODD][0, 0] = np.nan
    b = {name: values.copy() for name, values in a.items()}
    b[FAULT][1, 3, 7] = bf16(40.0)
    b[FAULT][:, :, 2] = -b[FAULT][:, :, 2]
    b[ODD][2, 3] = np.inf
    b[RESHAPED] = np.zeros((6, 4), np.float32)
    return a, b


@dataclass(eq=False)
class MemoryWorkspace:
    """What the pages Layers, Tensor and Drift ask of a workspace."""

    reference: Run
    candidate: Run
    compared: Comparison
    pictures: dict[int, Thumbnail] = field(default_factory=dict)

    def comparison(self, comparison_id: str) -> Comparison:
        if comparison_id != self.compared.id:
            raise NotHereError(f"Comparison {comparison_id!r} is not on this server.", "Compare.")
        return self.compared

    def judgement(self, comparison_id: str) -> Judgement:
        return judge(self.comparison(comparison_id))

    def annotations(self, comparison_id: str) -> list[Annotation]:
        self.comparison(comparison_id)
        return []

    def table(self, comparison_id: str) -> pd.DataFrame:
        return pair_table(self.comparison(comparison_id), self.judgement(comparison_id))

    def thumbnail(self, comparison_id: str, number: int) -> Thumbnail | None:
        self.comparison(comparison_id)
        return self.pictures.get(number)

    def ask(self, comparison_id: str, function: Callable[..., Any], **arguments: Any) -> Any:
        pairs = self.comparison(comparison_id).pairs
        runs = self.reference, self.candidate
        for pair in pairs:
            if pair.reference.id == arguments.get("reference_id"):
                runs = adapted(*runs, pair)
        return function(*runs, **arguments)

    def ask_later(self, comparison_id: str, function: Callable[..., Any], **arguments: Any) -> Any:
        return self.ask(comparison_id, function, **arguments)

    def slice_view(
        self, comparison_id: str, *, whole: str, huge: bool, **arguments: Any
    ) -> SliceView:
        assert not huge, whole
        return self.ask(comparison_id, slice_view, **arguments)


def workspace_of(a: Mapping[str, Array], b: Mapping[str, Array]) -> MemoryWorkspace:
    """The workspace that holds one comparison, of these two runs."""
    reference, candidate = run_of(a, label="gpu"), run_of(b, label="xpu")
    return MemoryWorkspace(reference, candidate, compare(reference, candidate))
