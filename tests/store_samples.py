"""Values for the store's tests: a comparison with every extreme, and functions for workers."""

import ctypes
import itertools
import math
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from core.adaptation import Adaptation, Step
from core.comparison import (
    Comparison,
    DimsRule,
    MappingRow,
    Match,
    Pair,
    RunSummary,
    Settings,
    Tolerance,
)
from core.coverage import Coverage, ModuleCount, Oddity, Share
from core.runs import Problem
from core.stats import PairStats
from core.tensors import TensorInfo

ODD_NAN = float(np.array([0x7FF800000000BEEF], np.uint64).view(np.float64)[0])
FLOATS = (ODD_NAN, -0.0, 5e-324, math.inf, 1.7976931348623157e308, 0.1, -math.inf, 1 / 3)


def extreme(hint: Any, seed: Iterator[int]) -> Any:
    """A value of any type the store keeps, full of numbers that are easily lost on the way."""
    n = next(seed)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{f.name: extreme(hints[f.name], seed) for f in fields(hint)})
    origin = get_origin(hint)
    if origin is np.ndarray:
        dtype = get_args(get_args(hint)[1])[0]
        values = FLOATS if dtype is np.float64 else (-(2**62), 0, 2**40, n)
        return np.array(values[: n % 5], dtype)
    if origin is tuple:
        return tuple(extreme(get_args(hint)[0], seed) for _ in range(n % 3))
    return {int: (-1) ** n * (2**53 + n), float: FLOATS[n % 8], str: f"τ{n}", bool: n % 2 > 0}[hint]


def tensor(name: str, **changes: object) -> TensorInfo:
    given = {
        "id": name,
        "name": name,
        "module": "layers.0",
        "argument": "0",
        "pass_": "forward",
        "slot": "output",
        "shape": (2, 3),
        "storage_dtype": "uint16",
        "dtype": "bfloat16",
        "order": 1,
    }
    return TensorInfo(**(given | changes))


def extreme_stats(first: int = 0) -> PairStats:
    return extreme(PairStats, itertools.count(first))


def extreme_comparison(comparison_id: str = "abc123", pairs: int = 1) -> Comparison:
    tolerance = Tolerance(5e-324, 0.1)
    strange = tensor(
        "step0/rank1/层.\udc80\u202e<b>",
        shape=(),
        step=0,
        rank=1,
        dims=("batch", "token"),
        attrs={"eps": 1e-5, "stride": [1, 2], "note": "x\udcff", "nan": math.inf},
    )
    plain = tensor("b", shape=(0, 2**40), order=2**40)
    summary = RunSummary(
        "GPU « bf16 »", "f1", "c1", 3, 2**45, {"framework": "torch"}, (Problem("a", "b", "c"),)
    )
    turned = Step("candidate", "transpose", (1, 0), ((2**40, 0), ()), ((0, 2**40),))
    how = Match("normalised", 0.1, "prefix", Adaptation((turned,), (), (strange, plain)))
    made = tuple(Pair(strange, plain, how, tolerance, extreme_stats(k)) for k in range(pairs))
    return Comparison(
        id=comparison_id,
        reference=summary,
        candidate=RunSummary("XPU", "f2", "c2", 0, 0),
        settings=Settings(
            Tolerance(0.1, 1e-300),
            mapping=(MappingRow("a", ("b\udcff", "c"), "no"), MappingRow("a", ())),
            dims=(DimsRule("*", "b s[tp]", "candidate"),),
            steps="+1",
        ),
        coverage=Coverage(
            *(Share(n, 2**40) for n in range(3)),
            suggested=1,
            oddities=(Oddity("only_nan", "candidate", 2, ("a", "\udcff")),),
            unmatched=(ModuleCount("reference", "", 3),),
        ),
        pairs=(*made, Pair(plain, plain, Match("exact"), tolerance, problem="shapes differ")),
        unmatched_reference=(plain,),
    )


# Functions that workers run; the runs they are handed are ignored.


def crash(*_: object) -> None:
    ctypes.string_at(0)


def hang(*_: object) -> None:
    time.sleep(600)


def hog(*_: object, **__: object) -> int:
    return np.ones(1 << 40, np.uint8).size


def read_file(path: str) -> str:
    return Path(path).read_text()


def write_file(path: str) -> int:
    return Path(path).write_text("x")


def open_socket(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as opened:
        return opened.fileno()


def loaded_modules(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in sys.modules]
