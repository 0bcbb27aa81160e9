"""Compiled code on disk: nobody loads what other sources or other types left there."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metrics.engine import kept
from metrics.engine.jit import kernel


def multiplying(factor: int) -> Callable[..., Any]:
    """A kernel whose source changes while its name stays."""
    space: dict[str, Any] = {"__name__": kept.__name__}
    exec(compile(f"def multiplied(x):\n    return x * {factor}", __file__, "exec"), space)
    multiplied: Callable[..., Any] = space["multiplied"]
    return kernel(multiplied)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(kept, "_STAMP", "first sources")
    return tmp_path / "kernels"


def test_a_process_loads_what_another_compiled(folder: Path) -> None:
    assert multiplying(2)(10) == 20
    (code,) = folder.iterdir()
    again = multiplying(3)  # of the same stamp, so this is never compiled
    assert again(10) == 20
    assert [code] == list(folder.iterdir())


def test_code_of_other_sources_is_never_loaded_even_while_both_are_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert multiplying(2)(10) == 20
    monkeypatch.setattr(kept, "_STAMP", "second sources")
    assert multiplying(3)(10) == 30
    monkeypatch.setattr(kept, "_STAMP", "first sources")
    assert multiplying(4)(10) == 20
    assert len(list(folder.iterdir())) == 2


def test_code_for_other_types_has_a_file_of_its_own(folder: Path) -> None:
    assert multiplying(2)(10) == 20
    assert multiplying(2)(1.5) == 3.0
    assert len(list(folder.iterdir())) == 2
    assert (multiplying(5)(1.5), multiplying(5)(10)) == (3.0, 20)


def test_a_file_that_is_missing_or_closed_is_compiled_anew(folder: Path) -> None:
    assert multiplying(2)(10) == 20
    (code,) = folder.iterdir()
    code.unlink()
    assert multiplying(2)(10) == 20
    assert code.exists()


def test_old_versions_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(kept._VERSIONS + 3):
        monkeypatch.setattr(kept, "_STAMP", f"sources {n}")
        assert multiplying(n)(1) == n
    assert len(list(folder.iterdir())) == kept._VERSIONS
    assert multiplying(99)(1) == kept._VERSIONS + 2


def imported_by(module: str) -> set[str]:
    tree = ast.parse((Path(kept.__file__).parent / f"{module}.py").read_text())
    sources = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    names = {f"{n.module}.{a.name}" for n in sources for a in n.names}
    names |= {n.module or "" for n in sources}
    parts = {name.split(".")[2] for name in names if name.startswith("metrics.engine.")}
    return parts - ({"kept"} if module == "jit" else set())


def test_no_kernel_is_made_of_what_its_stamp_leaves_out() -> None:
    every = {path.stem for path in Path(kept.__file__).parent.glob("*.py")}
    kernels = every - kept.AROUND
    assert every >= kept.AROUND
    assert not {m: imported_by(m) & kept.AROUND for m in kernels if imported_by(m) & kept.AROUND}
