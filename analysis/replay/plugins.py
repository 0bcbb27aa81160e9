"""A user's own reference functions, from a Python file that the user names.

The file is code and runs as such: it comes from the command line or the server's settings, never
from a dump or an upload.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import analysis.replay.functions  # noqa: F401  what is ours is registered first
from analysis.replay.registry import FUNCTIONS
from core.errors import ExplorerError
from language import say


def load_functions(path: Path) -> tuple[str, ...]:
    """Run a file that registers reference functions; the kinds it added.

    Raises ExplorerError when there is no such file, it does not run, or it registers nothing.
    """
    if not path.is_file():
        raise ExplorerError(
            say("There is no file {name} with reference functions.", name=path.name)
        )
    spec = importlib.util.spec_from_file_location(f"reference_functions_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ExplorerError(
            say("{name} is no Python file.", name=path.name), say("Its name must end in .py.")
        )
    before = set(FUNCTIONS)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except ExplorerError:
        raise
    except Exception as error:
        raise ExplorerError(
            say("{name} does not run: {error!r}", name=path.name, error=error)
        ) from error
    added = tuple(kind for kind in FUNCTIONS if kind not in before)
    if not added:
        raise ExplorerError(
            say("{name} registers no reference function.", name=path.name),
            say("See docs/replay.md for an example."),
        )
    return added
