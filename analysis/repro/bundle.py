"""The parcel: inputs, parameters, both outputs, the float64 answer, the floor, and a script."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from analysis.replay.engine import Engine
from analysis.replay.result import Output, Part, Replayed
from core.comparison import Comparison
from core.errors import CompareError
from core.runs import Array, Run
from language import say

MAX_BYTES = 256 << 20  # of values; a larger operator cannot be sent by mail anyway
_SCRIPT = Path(__file__).parent / "rerun.py"
_TEXT = "read_me.txt"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same comparison gives the same bytes


def bundle(reference: Run, candidate: Run, *, comparison: Comparison, tensor: str) -> bytes:
    """A zip of one operator call, by the reference's id of one of its outputs.

    `rerun.py` in it needs NumPy and PyTorch alone; it runs the operator on any device and prints R,
    the root of its error's energy over the floor's (about 1 is honest). Raises CompareError when
    the call was not replayed or is too large.
    """
    replayed, output = _found(comparison, reference, candidate, tensor)
    parts = {"reference": output.reference, "candidate": output.candidate}
    arrays = {name: value for side, part in parts.items() for name, value in _arrays(side, part)}
    total = sum(value.nbytes for value in arrays.values())
    if total > MAX_BYTES:
        raise CompareError(
            say(
                "{tensor} is too large for a bundle: {total} MB of values.",
                tensor=tensor,
                total=total >> 20,
            ),
            say(
                "A bundle may hold {max_bytes} MB. Dump a smaller batch.", max_bytes=MAX_BYTES >> 20
            ),
        )
    about = _about(comparison, replayed, output, tensor)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as parcel:
        _put(parcel, "about.json", (json.dumps(about, indent=1) + "\n").encode())
        _put(parcel, "rerun.py", _SCRIPT.read_bytes())
        _put(parcel, _TEXT, _read_me(about).encode())
        for name, value in arrays.items():
            _put(parcel, f"{name}.npy", _npy(value))
    return made.getvalue()


def _found(
    comparison: Comparison, reference: Run, candidate: Run, tensor: str
) -> tuple[Replayed, Output]:
    engine = Engine(comparison, reference, candidate)
    for pair in engine.pairs():
        calls = [call for call in (pair.reference, pair.candidate) if call is not None]
        held = {t.id for call in calls for group in _groups(call) for t in group.values()}
        if tensor not in held:
            continue
        replayed = engine.replay(pair)
        for output in (*replayed.outputs, *replayed.gradients):
            if any(p and p.side.tensor.id == tensor for p in (output.reference, output.candidate)):
                return replayed, output
        raise CompareError(
            say(
                "{tensor} was not replayed: {reason}.",
                tensor=tensor,
                reason=replayed.reason or say("its function does not give it"),
            ),
            say("A bundle needs an operator whose inputs were dumped and whose function is known."),
        )
    raise CompareError(say("No operator call of the two runs made {tensor}.", tensor=tensor), "")


def _groups(call: Any) -> tuple[Mapping[str, Any], ...]:
    return call.outputs, call.gradients_out, call.parameter_gradients


def _arrays(side: str, part: Part | None) -> Iterator[tuple[str, Array]]:
    if part is None:
        return
    given = part.side.given
    for name, value in given.inputs.items():
        yield f"{side}/inputs/{name}", _small(value)
    for name, value in given.parameters.items():
        yield f"{side}/parameters/{name}", _small(value)
    yield f"{side}/output", _small(part.side.actual)
    yield f"{side}/exact", part.side.expected
    yield f"{side}/floor_variance", np.broadcast_to(part.side.variance, part.side.actual.shape)
    yield f"{side}/counted", np.broadcast_to(part.valid, part.side.actual.shape)


def _small(value: Array) -> Array:
    """Floats as float32 where that keeps every bit of them; dumped formats are no wider."""
    if value.dtype == np.float64 and value.size:
        narrow = value.astype(np.float32)
        if np.array_equal(narrow.astype(np.float64), value, equal_nan=True):
            return narrow
    return value


def _about(
    comparison: Comparison, replayed: Replayed, output: Output, tensor: str
) -> dict[str, Any]:
    call = replayed.lead
    fit = replayed.fit
    sides = {"reference": output.reference, "candidate": output.candidate}
    return {
        "comparison": comparison.id,
        "tensor": tensor,
        "operator": call.operator,
        "class": call.module_class,
        "kind": replayed.kind,
        "slot": output.slot,
        "attributes": dict(fit.attributes) if fit else {},
        "fitted": list(fit.names) if fit else [],
        "sides": {
            side: {
                "ratio": part.side.ratio,
                "worst": part.side.worst,
                "dtype": part.side.tensor.dtype,
                "inputs": {name: t.dtype for name, t in part.side.call.inputs.items()},
                "parameters": {name: t.dtype for name, t in part.side.call.parameters.items()},
            }
            for side, part in sides.items()
            if part is not None
        },
    }


def _read_me(about: Mapping[str, Any]) -> str:
    ratios = ", ".join(f"{side} {known['ratio']:.3g}" for side, known in about["sides"].items())
    return (
        f"{about['operator']} ({about['class'] or about['kind']}), {about['slot']}\n\n"
        f"Error in units of what rounding allows (R): {ratios}. About 1 is honest.\n\n"
        "python rerun.py --device cpu        runs the operator on the candidate's own inputs\n"
        "python rerun.py --side reference    the same for the reference\n\n"
        "inputs, parameters: as dumped. output: what the device gave. exact: the operator in\n"
        "float64 on these inputs. floor_variance: squared rounding error allowed to each element.\n"
        "counted: elements that are no padding. Floats are in float32 where that keeps all bits.\n"
    )


def _npy(value: Array) -> bytes:
    made = io.BytesIO()
    np.save(made, np.ascontiguousarray(value), allow_pickle=False)
    return made.getvalue()


def _put(parcel: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    parcel.writestr(info, content)
