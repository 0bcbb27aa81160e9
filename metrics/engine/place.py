"""Where compiled kernels are kept: beside the source, or in the user's cache if that is closed."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).parent / "__pycache__"


def cache_folder() -> Path:
    """The folder of compiled kernels. Whoever may write there decides what every process runs."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if os.access(_BESIDE if _BESIDE.is_dir() else _BESIDE.parent, os.W_OK):
        return _BESIDE
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "precision-explorer" / "kernels"
