"""Comparing two dumps from the shell, against the tools of the field on the same tensors.

The peers are installed into `build/peers`, a scratch environment of their own. Whole processes,
start-up included, files in the page cache, each tool in turn, the best of its rounds. On a busy
machine processor time tells more than wall time. Peak memory is that of the largest process.
msprobe computes six metrics, polygraphy its elementwise tolerances, we every statistic of
`docs/metrics.md`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.row import ROOT, Cost, Row, cost_of

PEERS = ("torch==2.13.0", "mindstudio-probe==26.2.0", "polygraphy==0.53.6")
ENVIRONMENT = ROOT / "build" / "peers"
MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of both dumps together, how they are cut, who compares them, how often."""

    nbytes: int
    tensors: int
    elements: int
    peers: tuple[str, ...]
    rounds: int


SIZES = (
    Size(1 << 30, 32, 4 * MB, ("msprobe", "polygraphy"), rounds=2),
    Size(4 << 30, 64, 8 * MB, ("msprobe",), rounds=1),
)


def measure() -> Iterator[Row]:
    """Both sizes, our kernels compiled and not yet compiled."""
    _install()
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            yield from _rows(Path(folder), size)


def _install() -> None:
    """The scratch environment, complete or not at all."""
    if (ENVIRONMENT / "complete").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
    pip = [_in_environment("python"), "-m", "pip", "install", "--quiet", *PEERS]
    subprocess.run(pip, check=True)
    (ENVIRONMENT / "complete").touch()


def _in_environment(program: str) -> str:
    return str(ENVIRONMENT / "bin" / program)


def _rows(folder: Path, size: Size) -> Iterator[Row]:
    what = f"compare, {size.nbytes >> 30} GB of float32 in two dumps"
    commands = {tool: _command(tool, folder / tool) for tool in ("ours", *size.peers)}
    for tool in commands:
        _written(tool, folder / tool, size)
    cold = _cold(commands["ours"])
    best = _best(commands, folder, size.rounds)
    for peer in size.peers:
        yield _row(f"{what}, against {peer}", best["ours"], best[peer])
        yield _row(f"{what}, against {peer}, kernels not yet compiled", cold, best[peer])


def _row(what: str, ours: Cost, theirs: Cost) -> Row:
    value, reference = (
        f"{c.seconds:.2f} s, {c.cpu_seconds:.2f} s of processor, peak {c.peak_mb:.0f} MB"
        for c in (ours, theirs)
    )
    wall, cpu = theirs.seconds / ours.seconds, theirs.cpu_seconds / ours.cpu_seconds
    return Row(what, value, reference, f"{wall:.1f}, of processor {cpu:.1f}")


def _written(tool: str, folder: Path, size: Size) -> None:
    folder.mkdir()
    python = sys.executable if tool == "ours" else _in_environment("python")
    script = str(ROOT / "benchmarks" / "peer_dumps.py")
    command = [python, script, tool, str(folder), str(size.tensors), str(size.elements)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _command(tool: str, folder: Path) -> list[str]:
    """The command line that compares the dumps of a folder."""
    a, b = folder / "reference", folder / "candidate"
    if tool == "ours":
        return [sys.executable, "cli.py", "compare", str(a), str(b)]
    if tool == "polygraphy":
        files = [f"{side}.json" for side in (a, b)]
        return [_in_environment("polygraphy"), "run", "--load-outputs", *files]
    dumps = ["-tp", str(b / "dump.json"), "-gp", str(a / "dump.json")]
    return [_in_environment("msprobe"), "compare", *dumps, "-o", str(folder / "out")]


def _cold(command: list[str]) -> Cost:
    with tempfile.TemporaryDirectory() as empty:
        return cost_of(command, NUMBA_CACHE_DIR=empty)


def _best(commands: dict[str, list[str]], folder: Path, rounds: int) -> dict[str, Cost]:
    """The quickest run of each tool; they take turns."""
    found: dict[str, list[Cost]] = {tool: [] for tool in commands}
    for _ in range(rounds):
        for tool, command in commands.items():
            shutil.rmtree(folder / tool / "out", ignore_errors=True)
            found[tool].append(cost_of(command))
    return {tool: min(costs, key=lambda cost: cost.seconds) for tool, costs in found.items()}
