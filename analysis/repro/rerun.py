"""Runs the operator of this bundle on a device and prints how far it is from float64.

    python rerun.py [--device cpu|cuda|xpu|npu|...] [--side candidate|reference] [--dtype NAME]

R is the root of the error's energy over that of what rounding allows: about 1 for an honest kernel.
Where PyTorch has no operator of this kind, add a call of your kernel to OPERATORS.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

HERE = Path(__file__).parent
ABOUT = json.loads((HERE / "about.json").read_text())
Tensors = dict[str, torch.Tensor]


@dataclass
class Given:
    """What one call was handed, on the device; `known` are the operator's attributes."""

    inputs: Tensors
    parameters: Tensors
    known: dict[str, Any]

    @property
    def floats(self) -> list[torch.Tensor]:
        """The float inputs in order."""
        return [value for value in self.inputs.values() if value.is_floating_point()]


def linear(given: Given) -> torch.Tensor:
    """Also of shards that are added up."""
    weight = given.parameters["weight"]
    turned = weight.T if given.known.get("transposed") else weight
    return functional.linear(given.floats[0], turned, given.parameters.get("bias"))


def rms_norm(given: Given) -> torch.Tensor:
    """With (1 + weight) where the model has it so."""
    x, weight, eps = given.floats[0], given.parameters["weight"], given.known.get("eps", 1e-6)
    scale = 1 + weight if given.known.get("plus_one") else weight
    return functional.rms_norm(x, x.shape[-1:], scale, eps=float(eps))


def layer_norm(given: Given) -> torch.Tensor:
    """Over the last axis."""
    x, eps = given.floats[0], given.known.get("eps", 1e-5)
    weight, bias = given.parameters.get("weight"), given.parameters.get("bias")
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps=float(eps))


def embedding(given: Given) -> torch.Tensor:
    """Rows of a table, scaled where the model scales them."""
    ids = next(value for value in given.inputs.values() if not value.is_floating_point())
    rows = functional.embedding(ids.long(), given.parameters["weight"])
    return rows * float(given.known.get("scale", 1.0))


def activation(given: Given) -> torch.Tensor | None:
    """The form that the reference was found to use."""
    x, form = given.floats[0], str(given.known.get("form", "silu"))
    if form in ("gelu", "gelu_tanh"):
        return functional.gelu(x, approximate="tanh" if form == "gelu_tanh" else "none")
    known = {"silu": functional.silu, "relu": functional.relu, "tanh": torch.tanh}
    return known[form](x) if form in known else None


OPERATORS: dict[str, Callable[[Given], torch.Tensor | None]] = {
    "linear": linear,
    "row_linear": linear,
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "embedding": embedding,
    "activation": activation,
    "softmax": lambda given: torch.softmax(given.floats[0], dim=int(given.known.get("dim", -1))),
    "add": lambda given: torch.add(*given.floats),
    "sub": lambda given: torch.sub(*given.floats),
    "mul": lambda given: torch.mul(*given.floats),
    "div": lambda given: torch.div(*given.floats),
}


def load(side: str, group: str, dtypes: dict[str, str], device: str, dtype: str | None) -> Tensors:
    """The values of one group in the formats they were dumped in."""
    made = {}
    for name, logical in dtypes.items():
        path = HERE / side / group / f"{name}.npy"
        if not path.exists():
            continue
        value = torch.from_numpy(np.load(path))
        if value.is_floating_point():
            value = value.to(getattr(torch, dtype or logical, torch.float32))
        made[name] = value.to(device)
    return made


def ratio(side: str, actual: np.ndarray) -> float:
    """R of an output: root of the error's energy over the floor's, on the elements that count."""
    exact, floor, counted = (
        np.load(HERE / side / f"{name}.npy") for name in ("exact", "floor_variance", "counted")
    )
    error = actual.astype(np.float64).reshape(exact.shape) - exact
    kept = counted & np.isfinite(error)
    return math.sqrt(float((error[kept] ** 2).sum()) / max(float(floor[kept].sum()), 1e-300))


def main() -> None:
    """Print R of the dumped outputs, and of this device."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--side", default="candidate", choices=sorted(ABOUT["sides"]))
    options.add_argument("--dtype", help="compute in this format instead of the dumped one")
    asked = options.parse_args()
    print(f"{ABOUT['operator']}  {ABOUT['kind']}  {ABOUT['slot']}")
    for side in ABOUT["sides"]:
        print(f"dumped by the {side}: R = {ratio(side, np.load(HERE / side / 'output.npy')):.3g}")
    formats = ABOUT["sides"][asked.side]
    inputs, parameters = (
        load(asked.side, group, formats[group], asked.device, asked.dtype)
        for group in ("inputs", "parameters")
    )
    run: Callable[[Given], torch.Tensor | None] = OPERATORS.get(ABOUT["kind"], lambda _: None)
    with torch.no_grad():
        made = run(Given(inputs, parameters, ABOUT["attributes"]))
    if made is None:
        print("PyTorch has no operator of this kind: put a call of your kernel into OPERATORS.")
        return
    print(f"{asked.device}, PyTorch {torch.__version__}: R = ", end="")
    print(f"{ratio(asked.side, made.detach().to('cpu', torch.float64).numpy()):.3g}")


if __name__ == "__main__":
    main()
