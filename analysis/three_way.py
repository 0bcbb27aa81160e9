"""Two candidates against one reference: how far one errs in units of the other.

The other is a yardstick: a same-format run on a device that is trusted, or a repeat of the
reference, whose error is known to be honest. The ratio needs no replay and no inputs, and judges a
candidate also where only outputs were dumped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.verdict import LIMIT

# Ratio of errors on 90 honest and 468 planted runs (numerics study, section 4): honest ones stay
# below 2; above 3 none of the honest ones and 305 of the planted ones were left.
WATCH, FAULT = 2.0, 3.0
# Floors that stand for the error of a yardstick which is equal to the reference: a law of depth is
# no measured twin, and accuses nobody before the verdict does.
_FLOORS = LIMIT / FAULT
_KEEP = ["tensor", "operator", "slot", "pass", "step", "rank", "pair", "floor"]


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """What the ratios say of one candidate.

    `verdict` is `fault` or `watch` when some output is beyond the limits, else `rounding`;
    `uncompared` when no tensor has both errors. `first` is the reference's tensor id where the
    first of them stands, `""` without one; `median` and `worst` are ratios.
    """

    verdict: str
    first: str
    median: float
    worst: float
    compared: int


def ratios(candidate: pd.DataFrame, yardstick: pd.DataFrame) -> pd.DataFrame:
    """`error`, `base` and `ratio` of every tensor that both pair tables hold, in execution order.

    `error` and `base` are relative L2 errors against the same reference. The ratio divides by the
    base or, where that is smaller, by two floors: a repeat that is equal to the bit does not mean
    that another device must be. NaN where either side has no error.
    """
    base = yardstick.set_index("tensor")["relative_l2"]
    held = candidate[candidate["tensor"].isin(base.index)]
    found = held[_KEEP].copy()
    found["error"] = held["relative_l2"].to_numpy(float)
    found["base"] = base.loc[held["tensor"]].to_numpy(float)
    error = found["error"].to_numpy(float)
    least = np.maximum(found["base"].to_numpy(float), _FLOORS * found["floor"].to_numpy(float))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = error / least
    found["ratio"] = np.where((error == 0) & ~np.isnan(least), 0.0, ratio)
    return found


def judged(rows: pd.DataFrame) -> ThreeWay:
    """The verdict that the ratios of outputs give."""
    outputs = rows[rows["slot"].str.contains("output|value") & rows["ratio"].notna()]
    if outputs.empty:
        return ThreeWay("uncompared", "", np.nan, np.nan, 0)
    worst = float(outputs["ratio"].max())
    verdict = "fault" if worst > FAULT else "watch" if worst > WATCH else "rounding"
    limit = FAULT if verdict == "fault" else WATCH
    beyond = outputs[outputs["ratio"] > limit]
    first = "" if beyond.empty else str(beyond["tensor"].iloc[0])
    return ThreeWay(verdict, first, float(outputs["ratio"].median()), worst, len(outputs))
