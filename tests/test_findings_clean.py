"""Detectors stay silent on operators that only round, in float32 and bfloat16."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from finding_sites import expected_of, normal, rng, site

from analysis.findings import explain
from analysis.replay.local import rounded
from core.runs import Array

Parts = tuple[str, dict[str, Array], dict[str, Array], dict[str, Any]]


def linear() -> Parts:
    w = normal(96, 64, seed=2, size=0.125)
    return "linear", {"0": normal(2, 24, 64)}, {"weight": w, "bias": normal(96, seed=3)}, {}


def row_linear() -> Parts:
    w = normal(64, 128, seed=2, size=0.1)
    return "row_linear", {"0": normal(2, 24, 128)}, {"weight": w}, {}


def rms_norm() -> Parts:
    size = np.exp(rng(5).standard_normal((2, 24, 1)))
    x = rounded(normal(2, 24, 64) * size * 0.05, "bfloat16")
    return "rms_norm", {"0": x}, {"weight": 1 + normal(64, seed=2, size=0.25)}, {"eps": 1e-6}


def rope() -> Parts:
    pos = np.broadcast_to(np.arange(24), (2, 24))
    heads = {"0": normal(2, 4, 24, 16), "1": normal(2, 2, 24, 16, seed=1), "2": pos}
    return "rope", heads, {}, {"base": 1e4}


def attention() -> Parts:
    q, k, v = (normal(2, h, 24, 16, seed=s) for s, h in ((0, 4), (1, 2), (2, 2)))
    mask = np.tril(np.ones((24, 24), bool))[None, None] & np.ones((2, 1, 1, 24), bool)
    mask[1, ..., :5] = False
    return "attention", {"0": q, "1": k, "2": v, "3": mask}, {}, {}


def activation() -> Parts:
    return "activation", {"0": normal(2, 24, 96, size=1.5)}, {}, {"form": "silu"}


def act_mul() -> Parts:
    return "act_mul", {"0": normal(2, 24, 96)}, {}, {"form": "silu"}


def add() -> Parts:
    return "add", {"0": normal(2, 24, 64), "1": normal(2, 24, 64, seed=1)}, {}, {}


def mul() -> Parts:
    return "mul", {"0": normal(2, 24, 64), "1": normal(2, 24, 64, seed=1)}, {}, {}


def route() -> Parts:
    return "route", {"0": normal(48, 8)}, {"bias": normal(8, seed=1, size=0.1)}, {}


def expert() -> Parts:
    weights = {"w13": normal(64, 32, seed=1, size=0.2), "w2": normal(32, 32, seed=2, size=0.2)}
    return "expert", {"0": normal(40, 32)}, weights, {}


def masked_softmax() -> Parts:
    mask = np.tril(np.ones((24, 24), bool))[None, None]
    return "masked_softmax", {"0": normal(2, 4, 24, 24), "1": mask}, {}, {}


OPERATORS = (
    linear,
    row_linear,
    rms_norm,
    rope,
    attention,
    activation,
    act_mul,
    add,
    mul,
    route,
    expert,
    masked_softmax,
)


def shapes_of(kind: str) -> dict[str, tuple[int, ...]]:
    if kind == "attention":
        return {"0": (2, 24, 64)}
    return {"0": (48, 2)} if kind == "route" else {}


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("parts", OPERATORS, ids=lambda p: p.__name__)
def test_nothing_is_said_about_an_operator_that_only_rounds(
    parts: Callable[[], Parts], dtype: str, seed: int
) -> None:
    kind, inputs, parameters, attributes = parts()
    exact = expected_of(kind, inputs, parameters, shapes=shapes_of(kind), **attributes)
    noise = 1 + 2.0**-25 * rng(seed).standard_normal(exact.shape)
    observed = rounded(exact * noise, dtype)
    made = site(kind, inputs, observed, parameters, dtype=dtype, **attributes)
    assert explain(made) == ()


@pytest.mark.parametrize(
    ("kind", "inputs", "parameters"),
    [
        ("linear", {"0": np.zeros((0, 8))}, {"weight": np.ones((4, 8))}),
        ("linear", {"0": np.ones((1, 1))}, {"weight": np.ones((1, 1))}),
        ("add", {"0": np.array(1.0), "1": np.array(2.0)}, {}),
        ("add", {"0": np.full((3,), np.nan), "1": np.ones(3)}, {}),
        ("rms_norm", {"0": np.zeros((2, 3))}, {"weight": np.ones(3)}),
        ("activation", {"0": np.full((2, 2), np.inf)}, {}),
    ],
)
@pytest.mark.parametrize("off", [0.0, 1.0, np.nan, np.inf])
def test_odd_shapes_and_values_are_borne(
    kind: str, inputs: dict[str, Array], parameters: dict[str, Array], off: float
) -> None:
    observed = np.asarray(expected_of(kind, inputs, parameters)) + off
    for one in explain(site(kind, inputs, observed, parameters)):
        assert 0 <= one.confidence <= 1
