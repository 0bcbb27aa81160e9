"""`python -m benchmarks.fuzz_loaders`: spoil sound dumps at random, see that nothing but a named
refusal comes of it.

Each mutant is opened and read whole in a confined worker process with bounds on memory and time, as
the server opens what strangers upload. Counted are mutants whose worker crashed, was stopped for
taking too long or ran out of memory (the server survives these), and errors that are no LoadError
(bugs). Exit code 1 if there was a bug or this process was hurt. Every mutant is made from the seed
and its number alone.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fuzz_seeds import written
from core.errors import ExplorerError
from loaders import open_run
from store.confinement import Bounds
from store.workers import Workers

_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1)
_TOKENS = (b"-1", b"1e999", b"NaN", b"null", b"[", b"]", b"{", b"}", b'"', b"\\u0000", b"9" * 30)
_ELEMENTS = 1000


@dataclass(frozen=True, slots=True)
class Mutant:
    """A spoilt dump: which seed, which of its files, and that file's new bytes."""

    number: int
    seed: str
    file: str
    content: bytes


def mutants(count: int, seed: int, seeds: Mapping[str, Mapping[str, bytes]]) -> Iterator[Mutant]:
    """Mutants by number; the same seed gives the same ones."""
    names = sorted(seeds)
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        name = names[number % len(names)]
        file = rng.choice(sorted(seeds[name]))
        yield Mutant(number, name, file, spoilt(seeds[name][file], rng))


def spoilt(content: bytes, rng: random.Random) -> bytes:
    """Bytes with one to ten things wrong, or cut short."""
    data = bytearray(content)
    if not data or rng.random() < 0.08:
        return bytes(data[: rng.randrange(max(1, len(data)))])
    is_text = content[:1] in b"{[T" or content.startswith(b"[PRECISION]")
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 10))):
        at, way = rng.randrange(len(data)), rng.random()
        if is_text and way < 0.5:
            token = rng.choice(_TOKENS)
            data[at : at + rng.choice((0, 1, len(token)))] = token
        else:
            _spoil(data, at, way, rng)
    return bytes(data)


def _spoil(data: bytearray, at: int, way: float, rng: random.Random) -> None:
    length = rng.randrange(1, 64)
    if way < 0.35:
        data[at] ^= 1 << rng.randrange(8)
    elif way < 0.6:
        data[at] = rng.randrange(256)
    elif way < 0.8:
        width = rng.choice((1, 2, 4, 8))
        number = rng.choice(_EXTREMES) & ((1 << 8 * width) - 1)
        data[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
    elif way < 0.9:
        start = rng.randrange(len(data))
        data[at : at + length] = data[start : start + length]
    else:
        data[at : at + length] = bytes(length)


def probe(path: str, scratch: str) -> tuple[str, str]:
    """Open a dump and read all of it, in a worker: what came of it, and details of a bug."""
    try:
        run = open_run(Path(path), scratch=Path(scratch))
        for name, tensor in run.tensors.items():
            try:
                for _ in run.chunks(name, _ELEMENTS):
                    pass
                run.read(name, tuple(0 for length in tensor.shape if length))
            except ExplorerError:
                continue
    except ExplorerError:
        return "refused", ""
    except MemoryError:
        return "memory", ""
    except Exception:
        return "bug", traceback.format_exc(limit=-4)
    return ("named" if run.problems else "opened"), ""


class Fuzz:
    """Mutants on their way through the workers."""

    def __init__(
        self, place: Path, workers: Workers, *, timeout_s: float, keep: Path | None
    ) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.bugs: Counter[str] = Counter()
        self.slowest = 0.0
        self._place, self._workers = place, workers
        self._timeout_s, self._keep = timeout_s, keep

    def run(self, made: Iterator[Mutant], seeds: Mapping[str, Mapping[str, bytes]]) -> None:
        """Probe all; a few are under way at a time."""
        waiting: deque[tuple[Mutant, Path, Any, float]] = deque()
        for mutant in made:
            folder = self._place / f"m{mutant.number % 16}"
            if len(waiting) >= 8:
                self._settle(*waiting.popleft())
            self._write(folder, mutant, seeds[mutant.seed])
            scratch = str(self._place / "scratch" / folder.name)
            future = self._workers.schedule(probe, str(folder), scratch, timeout_s=self._timeout_s)
            waiting.append((mutant, folder, future, time.monotonic()))
        while waiting:
            self._settle(*waiting.popleft())

    def _write(self, folder: Path, mutant: Mutant, files: Mapping[str, bytes]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(mutant.content if name == mutant.file else content)

    def _settle(self, mutant: Mutant, folder: Path, future: Any, started: float) -> None:
        try:
            outcome, detail = future.result()
        except TimeoutError:
            outcome, detail = "timeout", ""
        except Exception as error:
            outcome, detail = "crash", f"{type(error).__name__}: {error}"
        self.slowest = max(self.slowest, time.monotonic() - started)
        self.counts.setdefault(mutant.seed, Counter())[outcome] += 1
        if outcome in ("bug", "memory", "timeout", "crash"):
            last = detail.strip().splitlines()[-1:] or [outcome]
            self.bugs[f"{outcome}: {mutant.seed}: {last[0][:150]}"] += 1
            if self._keep is not None:
                shutil.copytree(
                    folder, self._keep / f"{mutant.number}-{outcome}", dirs_exist_ok=True
                )
                (self._keep / f"{mutant.number}-{outcome}.txt").write_text(
                    f"{mutant.file}\n{detail}"
                )
        shutil.rmtree(self._place / "scratch" / folder.name, ignore_errors=True)


def main() -> int:
    """Fuzz as asked on the command line and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_loaders")
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for one mutant")
    parser.add_argument("--memory", type=int, default=2 << 30, help="bytes one worker may have")
    parser.add_argument("--keep", type=Path, help="folder for mutants that hurt")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        return _fuzzed(Path(name), arguments)


def _fuzzed(place: Path, arguments: argparse.Namespace) -> int:
    seeds = written(place / "seeds")
    (place / "scratch").mkdir()
    bounds = Bounds((str(place),), (str(place / "scratch"),), str(place), arguments.memory)
    workers = Workers(arguments.workers, bounds, preload=("loaders", "benchmarks.fuzz_loaders"))
    fuzz = Fuzz(place, workers, timeout_s=arguments.timeout, keep=arguments.keep)
    started = time.monotonic()
    try:
        fuzz.run(mutants(arguments.mutants, arguments.seed, seeds), seeds)
    finally:
        workers.close()
    _report(fuzz, arguments, time.monotonic() - started)
    return 1 if any(counts["bug"] for counts in fuzz.counts.values()) else 0


def _report(fuzz: Fuzz, arguments: argparse.Namespace, passed_s: float) -> None:
    outcomes = ("opened", "named", "refused", "timeout", "memory", "crash", "bug")
    total: Counter[str] = sum(fuzz.counts.values(), Counter())
    print(f"{arguments.mutants} mutants, seed {arguments.seed}, {passed_s:.0f} s, ", end="")
    print(f"slowest {fuzz.slowest:.1f} s in the queue; this process unhurt")
    print("| dump | " + " | ".join(outcomes) + " |")
    print("|---" * (len(outcomes) + 1) + "|")
    for name, counts in [*sorted(fuzz.counts.items()), ("all", total)]:
        print(f"| {name} | " + " | ".join(str(counts[each]) for each in outcomes) + " |")
    for line, count in fuzz.bugs.most_common(40):
        print(f"{count} × {line}")


if __name__ == "__main__":
    sys.exit(main())
