"""The fuzz of loaders: it covers every format, makes the same mutants again, and finds nothing."""

from __future__ import annotations

from pathlib import Path

from benchmarks.fuzz_loaders import Fuzz, mutants
from benchmarks.fuzz_seeds import SEEDS, written
from loaders import open_run
from loaders.registry import LOADERS
from store.confinement import Bounds
from store.workers import Workers


def test_the_seeds_are_sound_and_cover_every_format(tmp_path: Path) -> None:
    LOADERS.discover()
    used = set()
    for name, write in SEEDS.items():
        folder = tmp_path / name
        folder.mkdir()
        write(folder)
        run = open_run(folder)
        assert {problem.code for problem in run.problems} <= {"soft-link", "dtype"}, name
        for path in (path for path in folder.rglob("*") if path.is_file()):
            loader = LOADERS.loader_for(path.read_bytes()[:4096], path)
            used.add(loader.name if loader else "")
    assert used - {""} == set(LOADERS)


def test_mutants_are_made_from_the_seed_and_their_number() -> None:
    seeds = {"a": {"x": bytes(range(256)), "y": b'{"k": [1, 2]}'}, "b": {"z": b"T" * 99}}
    first, again = (list(mutants(60, 4, seeds)) for _ in range(2))
    assert first == again
    assert first != list(mutants(60, 5, seeds))
    assert list(mutants(20, 4, seeds)) == first[:20]
    assert sum(m.content != seeds[m.seed][m.file] for m in first) > 50


def test_some_mutants_do_no_harm(tmp_path: Path) -> None:
    seeds = written(tmp_path / "seeds")
    (tmp_path / "scratch").mkdir()
    bounds = Bounds((str(tmp_path),), (str(tmp_path / "scratch"),), str(tmp_path), 2 << 30)
    workers = Workers(1, bounds, preload=("loaders", "benchmarks.fuzz_loaders"))
    fuzz = Fuzz(tmp_path, workers, timeout_s=60, keep=None)
    try:
        fuzz.run(mutants(3 * len(SEEDS), 11, seeds), seeds)
    finally:
        workers.close()
    assert sum(sum(counts.values()) for counts in fuzz.counts.values()) == 3 * len(SEEDS)
    assert fuzz.bugs == {}
