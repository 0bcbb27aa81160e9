"""What the tensors of one run would lose in every scheme, from a sample of their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.lab.grids import GridFit, grid_fit
from analysis.lab.schemes import SCHEMES, Array, Scheme
from core.errors import LoadError
from core.runs import Run
from core.tensors import TensorInfo
from metrics import formats

SAMPLE = 1 << 15  # elements of a tensor that are tried; the SQNR of 2^15 values is good to 0.1 dB
_LONGEST_ROW = 1 << 15
SLACK_DB = 3.0  # below the format's own limit: half the precision of a bit is lost to outliers


@dataclass(frozen=True, slots=True)
class Loss:
    """What one tensor loses in one scheme; fractions are of its finite, non-zero elements.

    `sqnr_db` = 10 log10(sum x^2 / sum (q - x)^2), inf without any error, NaN for a tensor of zeros.
    `saturated`: beyond the range, so that they become infinite or the largest value. `underflow`:
    they become zero. `elements` says how many were tried.
    """

    tensor: str
    scheme: str
    sqnr_db: float
    saturated: float
    underflow: float
    elements: int

    @property
    def relative_l2(self) -> float:
        """Root of error energy over signal energy."""
        return math.nan if math.isnan(self.sqnr_db) else 10 ** (-self.sqnr_db / 20)

    @property
    def fits(self) -> bool:
        """Whether the tensor reaches what the format can give, within `SLACK_DB`, in its range."""
        ideal = SCHEMES[self.scheme].ideal_db
        return self.saturated == 0 and self.sqnr_db >= ideal - SLACK_DB


def lab(
    reference: Run,
    candidate: Run,
    *,
    side: Literal["reference", "candidate"],
    tensors: Sequence[str],
    peaks: Mapping[str, float],
    elements: int = SAMPLE,
) -> tuple[Loss, ...]:
    """Losses of these tensors of one run in all schemes; what cannot be read is left out.

    `peaks`: largest finite magnitude of each whole tensor, for schemes with one scale.
    """
    run = reference if side == "reference" else candidate
    losses = []
    for tensor_id in tensors:
        tensor = run[tensor_id]
        if formats.kind(tensor.dtype) != "float" or not tensor.size:
            continue
        try:
            rows = sample(run, tensor, elements)
        except LoadError:
            continue
        peak = max(peaks.get(tensor_id, 0.0), float(np.abs(rows).max(initial=0.0)))
        losses += [loss(tensor_id, rows, scheme, peak) for scheme in SCHEMES.values()]
    return tuple(losses)


def sample(run: Run, tensor: TensorInfo, elements: int) -> Array:
    """Whole rows of the last axis, evenly spread, as float64 (rows, length); NaN and inf as 0."""
    length = min(tensor.shape[-1], _LONGEST_ROW) if tensor.shape else 1
    if not tensor.shape:
        values = run.read(tensor.id).reshape(1, 1)
    else:
        lead = math.prod(tensor.shape[:-1])
        most = max(1, min(lead, elements // length))
        wanted = np.unique(np.linspace(0, lead - 1, most).astype(int))
        places = np.unravel_index(wanted, tensor.shape[:-1]) if tensor.shape[:-1] else ()
        picked = zip(*places, strict=True) if places else [()]
        values = np.stack([
            run.read(tensor.id, (*map(int, at), slice(0, length))) for at in picked
        ])  # fmt: skip
    exact = values.astype(np.float64)
    return np.where(np.isfinite(exact), exact, 0.0)


def loss(tensor: str, values: Array, scheme: Scheme, peak: float) -> Loss:
    """What these values lose; `peak` is the largest magnitude of the tensor they come from."""
    kept = scheme.quantise(values, peak)
    held = values != 0
    number = int(held.sum())
    finite = np.isfinite(kept)
    error = np.where(finite, kept - values, 0.0)
    signal, noise = float((values**2).sum()), float((error**2).sum())
    if not number:
        return Loss(tensor, scheme.name, math.nan, 0.0, 0.0, values.size)
    beyond = np.abs(values) > scheme.largest
    noise += float((values[beyond] ** 2).sum())  # an infinite value loses all there was
    return Loss(
        tensor=tensor,
        scheme=scheme.name,
        sqnr_db=10 * math.log10(signal / noise) if noise else math.inf,
        saturated=float((beyond | ~finite).sum()) / number,
        underflow=float((held & (kept == 0)).sum()) / number,
        elements=values.size,
    )


def recommended(losses: Sequence[Loss], least_db: float) -> str:
    """The scheme with the fewest bits that keeps range and SQNR; `""` when none does.

    `least_db`: the signal-to-quantisation-noise ratio asked for, in decibels.
    """
    fitting = [found for found in losses if not found.saturated and found.sqnr_db >= least_db]
    best = min(
        fitting, key=lambda found: (SCHEMES[found.scheme].bits, -found.sqnr_db), default=None
    )
    return "" if best is None else best.scheme


def steps(
    reference: Run, candidate: Run, *, pairs: Sequence[tuple[str, str]], elements: int = SAMPLE
) -> Mapping[str, GridFit]:
    """Which candidates lie on an integer grid, by the reference's tensor id."""
    found = {}
    for ours, theirs in pairs:
        a, b = reference[ours], candidate[theirs]
        if a.shape != b.shape or {formats.kind(a.dtype), formats.kind(b.dtype)} != {"float"}:
            continue
        try:
            fit = grid_fit(sample(reference, a, elements), sample(candidate, b, elements))
        except LoadError:
            continue
        if fit is not None:
            found[ours] = fit
    return found
