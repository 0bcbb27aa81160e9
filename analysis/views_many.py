"""Several candidates against one reference, block by block."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from analysis.views_grid import Grid, grid_of
from analysis.views_layers import stack_of

BEFORE, AFTER = "before", "after"


def candidate_grid(tables: Mapping[str, pd.DataFrame], *, metric: str = "relative_l2") -> Grid:
    """Rows: candidates by label; columns: the model's blocks, and what stands outside of them.

    Each cell stands for the worst output of a block. `Grid.path` holds `<candidate>` + newline +
    the block's path, so that a click knows both.
    """
    every = [str(name) for rows in tables.values() for name in rows["operator"].unique()]
    stack = stack_of(list(dict.fromkeys(every)))
    numbers = () if stack is None else stack.numbers
    columns = (BEFORE, *map(str, numbers), AFTER)
    place = {name: n for n, name in enumerate(columns)}
    parts = []
    for row, (label, rows) in enumerate(tables.items()):
        outputs = rows[rows["slot"].str.contains("output|value")]
        inside, seen = [], False
        for operator in outputs["operator"]:
            found = None if stack is None else stack.split(str(operator))
            seen = seen or found is not None
            inside.append(str(found[0]) if found else AFTER if seen else BEFORE)
        paths = [
            f"{label}\n{stack.block(name) if stack and name.isdecimal() else ''}" for name in inside
        ]
        parts.append(outputs.assign(row=row, column=[place[name] for name in inside], path=paths))
    cells = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return grid_of(cells, tuple(tables), columns, metric)
