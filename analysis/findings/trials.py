"""What detectors hand in: predictions to be tried, and signs to be believed; and their ranking."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.findings.discrepancy import FEW, Discrepancy, Fit
from analysis.findings.rounding import FORMATS, round_to
from core.findings import Fact, Hypothesis
from core.runs import Array

Facts = dict[str, Fact]

# Rivals whose Bayesian information criteria differ by less than 10 are told apart by prior alone
# ("very strong" evidence begins there, Kass and Raftery 1995).
_TIE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A prediction of the observed output under one mechanism.

    `parameters` counts the numbers that were fitted to the observation; `prior` in [0, 1] decides
    between rivals that explain alike. `on` is what the prediction is held against where that is not
    the site's own discrepancy.
    """

    mechanism: str
    predicted: Array
    parameters: int = 0
    prior: float = 0.5
    facts: Mapping[str, Fact] = field(default_factory=dict)
    on: Discrepancy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A mechanism recognised by a pattern that needs no prediction; `confidence` in [0, 1]."""

    mechanism: str
    confidence: float
    facts: Mapping[str, Fact] = field(default_factory=dict)


Proposal = Trial | Sign


def ranked(
    proposals: Iterable[Proposal],
    error: Discrepancy,
    *,
    tensors: tuple[str, ...],
    dtype: str,
    limit: int = 6,
) -> tuple[Hypothesis, ...]:
    """Hypotheses, best first: one per mechanism, accepted ones before partial explanations.

    `dtype` is the format that the output is stored in.
    """
    proposed = list(proposals)
    tried = [(one, _fit(one, one.on or error, dtype)) for one in _trials(proposed)]
    found = [
        Hypothesis(
            mechanism=one.mechanism,
            confidence=one.confidence,
            before=error.ratio,
            after=math.nan,
            facts=one.facts,
            tensors=tensors,
        )
        for one in proposed
        if isinstance(one, Sign)
    ]
    found += _judged(tried, tensors)
    best: dict[str, Hypothesis] = {}
    for one in sorted(found, key=lambda h: -h.confidence):
        best.setdefault(one.mechanism, one)
    return tuple(best.values())[:limit]


def _fit(trial: Trial, error: Discrepancy, dtype: str) -> Fit:
    """A prediction that already is of the storage format is held against honest rounding to it.

    Otherwise any emulation that ends in that rounding would seem to explain the rounding.
    """
    on_grid = dtype in FORMATS and np.array_equal(
        round_to(trial.predicted, dtype), trial.predicted, equal_nan=True
    )
    if on_grid:
        error = replace(error, expected=round_to(error.expected, dtype))
    return error.fit(trial.predicted, parameters=trial.parameters)


def _trials(proposals: Sequence[Proposal]) -> list[Trial]:
    return [one for one in proposals if isinstance(one, Trial)]


def _judged(tried: Sequence[tuple[Trial, Fit]], tensors: tuple[str, ...]) -> Iterable[Hypothesis]:
    lengths = [_description_length(trial, fit) for trial, fit in tried]
    accepted = [length for length, (_, fit) in zip(lengths, tried, strict=True) if fit.accepted]
    shortest = min(accepted, default=0.0)
    for (trial, fit), length in zip(tried, lengths, strict=True):
        confidence = _confidence(trial, fit, length - shortest)
        if confidence > 0:
            yield Hypothesis(
                mechanism=trial.mechanism,
                confidence=confidence,
                before=fit.before,
                after=fit.after,
                facts=trial.facts,
                tensors=tensors,
            )


def _description_length(trial: Trial, fit: Fit) -> float:
    """N ln(residual²) + k ln n, Schwarz 1978; residuals below a tenth of the floor count as that.

    Fits with many parameters also swallow honest rounding that elements share (a row's norm): they
    gain nothing below the floor.
    """
    count = max(int(trial.predicted.size), 2)
    least = 0.1 if trial.parameters <= FEW else 1.0
    residual = max(fit.spread, least) if math.isfinite(fit.spread) else 1e9
    return 2 * count * math.log(residual) + trial.parameters * math.log(count)


def _confidence(trial: Trial, fit: Fit, behind: float) -> float:
    if not fit.accepted:
        return 0.4 * fit.explained * trial.prior if fit.halved and fit.before > 2 else 0.0
    held = 1.0 if behind < _TIE else max(0.7, 0.95 - behind / 2000)
    return held * (0.6 + 0.32 * fit.explained + 0.07 * trial.prior)
