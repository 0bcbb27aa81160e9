"""`python -m metrics.compile`: compile all kernels now and keep them on disk.

Worker processes of the server are not allowed to write code that others run: what is compiled
before they start, they load in a fraction of a second.
"""

from __future__ import annotations

import itertools

import numpy as np

from core.comparison import Tolerance
from metrics.pair_stats import accumulator


def compile_kernels() -> None:
    """Run every kernel once on a tiny pair."""
    for dtype, shape in itertools.product(("float32", "float64"), ((3,),)):
        values = np.ones(3, dtype)
        gathered = accumulator(Tolerance(0, 0), dtype=dtype, dtypes=(dtype, dtype), shape=shape)
        gathered.add(values, values)
        gathered.stats()
    from metrics.engine.merging import compile_merging

    compile_merging()
    from metrics.engine.blocks import compile_blocks

    compile_blocks()


if __name__ == "__main__":
    compile_kernels()
