"""One line of the result table, and how to run something and see what it took."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, against what."""

    what: str
    value: str
    reference: str = "–"
    ratio: str = "–"


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall time, processor time and peak resident memory of a process and those it started."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def cost_of(command: Sequence[str], *, cores: int = 0, **environment: str) -> Cost:
    """Run a command line to its end; exit codes 0 and 1 are both answers.

    `cores`: how many it may use, 0 for all.
    """
    code = (
        "import os, resource, subprocess, sys, time\n"
        f"os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cores or None}])\n"
        "start = time.perf_counter()\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)\n"
        "assert done.returncode in (0, 1), done.stderr.decode()[-2000:]\n"
        "wall = time.perf_counter() - start\n"
        "took = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(wall, took.ru_utime + took.ru_stime, took.ru_maxrss)"
    )
    outer = [sys.executable, "-c", code, *command]
    # Sources are compiled once, as wherever Python may write beside them.
    surroundings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
    done = subprocess.run(
        outer, cwd=ROOT, check=True, stdout=subprocess.PIPE, env=surroundings, text=True
    )
    seconds, cpu_seconds, peak = done.stdout.split()
    return Cost(float(seconds), float(cpu_seconds), int(peak) / 1024)


def own_peak_mb() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work) -> float:  # type: ignore[no-untyped-def]
    """Seconds that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
