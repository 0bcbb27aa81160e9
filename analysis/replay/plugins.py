"""Reference functions of the user's own operators, from a Python file that the user names.

The file is run as it stands, so it is only ever taken from the command line, never from an upload.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import analysis.replay.functions  # noqa: F401  the built-in ones come first
from analysis.replay.registry import FUNCTIONS
from core.errors import ExplorerError


def load_functions(path: Path) -> tuple[str, ...]:
    """Run a plugin file; the kinds it registered with `analysis.replay.registry.function`.

    Raises ExplorerError when it cannot be run or registers nothing.
    """
    spec = importlib.util.spec_from_file_location(f"user_functions_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ExplorerError(f"{path} is no Python file.", "Name a file that ends in .py.")
    before = set(FUNCTIONS)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except ExplorerError:
        raise
    except Exception as error:
        raise ExplorerError(
            f"{path} could not be run: {type(error).__name__}: {error}",
            "docs/replay.md shows a plugin that works.",
        ) from error
    added = tuple(kind for kind in FUNCTIONS if kind not in before)
    if not added:
        raise ExplorerError(
            f"{path} registers no reference function.",
            "Decorate one with `analysis.replay.registry.function`.",
        )
    return added
