"""The worst elements of a pair, and the one that its statistics know."""

from __future__ import annotations

import numpy as np

from analysis.views_cut import DIRECT
from analysis.views_elements import Element, element, worst_elements
from core.comparison import Pair
from core.stats import PairStats
from ui.cards.values import names
from ui.frame import View


def worst(view: View, pair: Pair, most: int = 20) -> tuple[Element, ...] | None:
    """The worst elements of a pair; of a huge one None while they are being looked for."""
    ask = view.workspace.ask_later if pair.reference.size > DIRECT else view.workspace.ask
    return ask(view.comparison.id, worst_elements, count=most, **names(pair))


def the_worst(view: View, pair: Pair) -> tuple[Element, ...]:
    """The one worst element, which the statistics know; empty when there is none."""
    index = worst_index(pair.shape, pair.stats) if pair.stats else None
    if index is None:
        return ()
    return (view.workspace.ask(view.comparison.id, element, index=index, **names(pair)),)


def worst_index(shape: tuple[int, ...], stats: PairStats) -> tuple[int, ...] | None:
    """Index of the largest |error| among finite elements; None when there is none."""
    at = stats.max_abs_error.index
    if at < 0:
        return None
    return tuple(int(i) for i in np.unravel_index(at, shape)) if shape else ()
