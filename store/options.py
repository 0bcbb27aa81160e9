"""What the operator of a server may set, through the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SAMPLES = PROJECT / "sample_dumps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Limits and places. `folders`: where dumps on this machine may be opened, beside the samples.

    `questions` and `comparisons` count worker processes. A comparison has no time limit while it
    makes progress; `stall_s` is how long it may make none.
    """

    folders: tuple[Path, ...] = ()
    questions: int = 2
    comparisons: int = 1
    memory: int = 8 << 30
    ask_s: float = 60.0
    describe_s: float = 600.0
    stall_s: int = 300
    max_upload: int = 200 << 30

    @property
    def readable(self) -> tuple[Path, ...]:
        """Resolved folders in which dumps may be opened."""
        return tuple(folder.resolve() for folder in (SAMPLES, *self.folders))


def from_environment(environment: Mapping[str, str] = os.environ) -> Options:
    """Options as PX_FOLDERS (separated by colons), PX_MAX_UPLOAD and PX_WORKER_MEMORY (bytes),
    PX_QUESTION_WORKERS and PX_COMPARE_WORKERS (processes) say.
    """
    folders = environment.get("PX_FOLDERS", "").split(":")
    limits = {
        name: int(environment[f"PX_{variable}"])
        for name, variable in (
            ("questions", "QUESTION_WORKERS"),
            ("comparisons", "COMPARE_WORKERS"),
            ("memory", "WORKER_MEMORY"),
            ("max_upload", "MAX_UPLOAD"),
        )
        if f"PX_{variable}" in environment
    }
    return Options(folders=tuple(Path(f) for f in folders if f), **limits)


def workspace_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Folder of the default workspace: PX_WORKSPACE, else `workspace` beside app.py."""
    return Path(environment.get("PX_WORKSPACE") or PROJECT / "workspace")
