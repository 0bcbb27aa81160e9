"""NaN and infinities: the mismatch is the finding, never a reason to skip a pair."""

from __future__ import annotations

from core.stats import PairStats, SideStats
from metrics.registry import metric, side_metrics


@side_metrics("NaN", unit="elements")
def nan(side: SideStats) -> float:
    """Number of NaN in the {side}.

    Formula: count.
    Range: [0, count].
    NaN: never.
    Blind to: whether the other side has them too, and where.
    Source: count.
    """
    return side.nan


@side_metrics("Inf", unit="elements")
def inf(side: SideStats) -> float:
    """Number of infinities of either sign in the {side}.

    Formula: count.
    Range: [0, count].
    NaN: never.
    Blind to: whether the other side has them too; −∞ of an attention mask is meant to be there.
    Source: count.
    """
    return side.positive_inf + side.negative_inf


@metric("Non-finite mismatches", unit="elements", ideal=0.0)
def nonfinite_mismatch(stats: PairStats) -> float:
    """Elements that are NaN or infinite on one side only, or infinite with opposite signs.

    Formula: count − finite on both − NaN on both − same infinity on both.
    Range: [0, count]; any above 0 outweighs every error metric.
    NaN: never.
    Blind to: finite errors.
    Source: count.
    """
    return stats.unmatched_nonfinite
