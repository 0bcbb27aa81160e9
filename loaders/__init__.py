"""Dump files to runs: `open_run(path)` describes a dump, its values are read on demand.

Nothing else opens a dump. Files are taken for hostile: links out of the dump are not followed,
declared sizes are bounded, and each thing refused is a `Problem` of the run.
"""

from loaders.folder import open_run
from loaders.limits import Limits
from loaders.registry import LOADERS, Loader

__all__ = ["LOADERS", "Limits", "Loader", "open_run"]
