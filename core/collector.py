"""The collector of reference cycles, for work that keeps a great many small records."""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 50_000, 20, 100


def collect_seldom() -> None:
    """Look for cycles after 50 000 new objects, not after 700; for processes of one task.

    Descriptions and statistics of 100 000 tensors hold none, and searching them all again and again
    took a third of the time of a comparison.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
