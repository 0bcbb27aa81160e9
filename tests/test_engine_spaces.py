"""The memory a thread computes in is empty between pairs, whatever the last pair held."""

from __future__ import annotations

import math

import numpy as np
import pytest
from strategies import TensorPair
from test_engine import COMPLEX_PAIRS, FLOAT_PAIRS, about, random_side

from core.comparison import Tolerance
from metrics import pair_stats
from metrics.engine import workspace
from metrics.engine.workspace import Space

TOLERANCE = Tolerance(1e-3, 1e-2)
TABLES = ("tops", "joint", "planes", "marks", "bits", "ulp_bins")


def spaces() -> list[Space]:
    return [*workspace._NARROW._free, *workspace._WIDE._free]


def left_over() -> list[str]:
    return [name for s in spaces() for name in TABLES if np.any(getattr(s, name, 0))]


def measured(pair: TensorPair) -> None:
    with np.errstate(all="ignore"):
        pair_stats(pair.reference, pair.candidate, TOLERANCE, **about(pair))


def test_a_reference_that_reaches_further_down_leaves_nothing_behind() -> None:
    rng = np.random.default_rng(1)
    reference = rng.uniform(1, 2, 20_000).astype(np.float32)
    candidate = reference.copy()
    at = np.arange(9_001, 20_000, 397)
    reference[at] *= np.float32(1e-6)
    measured(TensorPair(reference, candidate, reference.shape))
    assert left_over() == []
    reference[at] = candidate[at]
    stats = pair_stats(
        reference, candidate, TOLERANCE, **about(TensorPair(reference, candidate, reference.shape))
    )
    assert stats.candidate.values.total == stats.reference.values.total == 20_000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtypes", FLOAT_PAIRS + COMPLEX_PAIRS, ids="-".join)
def test_nothing_of_any_pair_stays_in_the_tables(dtypes: tuple[str, str], seed: int) -> None:
    rng = np.random.default_rng([seed, *map(ord, "".join(dtypes))])
    for kind in ("ordinary", "special"):
        for shape in ((int(rng.integers(1, 9000)),), (40, 300)):
            sides = [random_side(rng, name, math.prod(shape), kind) for name in dtypes]
            if dtypes[0] == dtypes[1]:
                same = rng.random(sides[0].size) < rng.choice([0.3, 0.8, 0.95])
                sides[1][same] = sides[0][same]
            measured(TensorPair(sides[0], sides[1], shape))
            assert left_over() == []
