"""Blocks of huge slices on disk: made once from every element, read for each picture.

A file a slice, named by what it was made from; the oldest are removed when all take too much room.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3

from analysis.views import SliceView
from analysis.views_blocks import Blocks
from analysis.views_cut import Grid
from analysis.views_kept import kept_blocks, picture_of_kept
from core.runs import Run
from store.cache import Recent

MOST_BYTES = 2 << 30  # of all files together
_VERSION = 1  # of the file and of what is computed
_IN_MEMORY = 2
_ARRAYS = ("cells", "count", "odd", "unshared", "flags")
_SMALL: Mapping[str, Any] = {"cells": np.float32, "count": np.uint32, "odd": np.uint32,
                             "unshared": np.uint32, "flags": np.uint8}  # fmt: skip
_read: Recent[Blocks] = Recent(_IN_MEMORY)


def file_of(folder: Path, comparison_id: str, arguments: Mapping[str, Any]) -> Path:
    """The file of a slice of a comparison."""
    said = json.dumps([_VERSION, comparison_id, arguments], sort_keys=True)
    return folder / f"{blake3(said.encode()).hexdigest()[:32]}.npz"


def reduce_slice(reference: Run, candidate: Run, *, file: str, **arguments: Any) -> str:
    """Make the file of a slice unless it is there, and return its path; arguments as `kept_blocks`.

    In a worker: takes some seconds for each billion elements.
    """
    path = Path(file)
    if path.exists():
        os.utime(path)
        return file
    blocks = kept_blocks(reference, candidate, **arguments)
    _write(path, blocks)
    _make_room(path.parent, keep=path)
    return file


def reduced_view(reference: Run, candidate: Run, *, file: str, **arguments: Any) -> SliceView:
    """A picture from the file of a slice; arguments as `picture_of_kept`."""
    blocks = _read.get(file, lambda: _load(Path(file)))
    return picture_of_kept(reference, candidate, blocks=blocks, **arguments)


def _write(path: Path, blocks: Blocks) -> None:
    grid = blocks.grid
    head = {
        "grid": [grid.rows, grid.columns, grid.elements, *grid.block, grid.flipped],
        "dtype": blocks.dtype, "floor": blocks.floor, "scale": blocks.scale,
        "complex": blocks.complex,
    }  # fmt: skip
    draft = path.with_name(f".{path.stem}-{secrets.token_hex(6)}.npz")
    arrays = {n: _narrowed(getattr(blocks, n), n) for n in _ARRAYS}
    try:
        np.savez(draft, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
        os.replace(draft, path)  # noqa: PTH105 - atomic, whatever is there
    finally:
        draft.unlink(missing_ok=True)


def _narrowed(values: Any, name: str) -> Any:
    """As it is kept; counts that are zero throughout take no room."""
    if name in ("odd", "unshared") and not values.any():
        return np.zeros((2, 0, 0) if name == "odd" else (0, 0), np.uint32)
    if name == "cells":
        largest = float(np.finfo(np.float32).max)
        infinite = np.isinf(values)
        values = np.where(infinite, values, np.clip(values, -largest, largest))
    return values.astype(_SMALL[name])


def _load(path: Path) -> Blocks:
    with contextlib.suppress(OSError):
        os.utime(path)  # used: others go first when room is needed
    with np.load(path, allow_pickle=False) as kept:
        head = json.loads(bytes(kept["head"]))
        rows, columns, elements, down, across, flipped = head["grid"]
        grid = Grid(rows, columns, elements, (down, across), bool(flipped))
        blocks = Blocks(grid, head["dtype"], head["floor"], head["scale"], head["complex"])
        for name in _ARRAYS:
            values = kept[name]
            if values.size:
                setattr(blocks, name, values)
    return blocks


def _make_room(folder: Path, *, keep: Path) -> None:
    """Remove the files not used for longest until all together are small enough."""
    files = []
    for path in folder.glob("*.npz"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MOST_BYTES:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= size
