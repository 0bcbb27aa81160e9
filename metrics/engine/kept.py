"""Compiled kernels on disk, for processes to come."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from pickle import loads
from typing import Any

import numba
from llvmlite.binding import parse_assembly
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from metrics.engine.place import cache_folder

_HERE = Path(__file__).parent
# Modules around the kernels, which no kernel's module imports.
AROUND = frozenset({"accumulator", "building", "kept", "place", "plan", "workspace"})
_VERSIONS = 8  # of one kernel that stay: of other sources, processors, argument types


def _stamp() -> str:
    """Hash of all kernel sources: numba itself looks at the file of the outermost function only."""
    digest = hashlib.sha256()
    for source in sorted(_HERE.glob("*.py")):
        if source.stem not in AROUND:
            digest.update(source.read_bytes())
    return digest.hexdigest()


# Measures stages, for benchmarks.engine alone: it costs time of its own.
TIMED = bool(os.environ.get("PX_ENGINE_TIMED"))
_STAMP = f"{_stamp()} {TIMED} {numba.__version__} {sys.implementation.cache_tag}"


def _to_be_run(compiled: Any) -> tuple[Any, ...]:
    """What a process needs to run a kernel, as `CompileResult._rebuild` takes it.

    Left out is what others would need to compile a kernel into theirs: its code before it became
    the machine's, and the surroundings of numba's own functions in it, which would be imported.
    """
    (name, kind, (machine_code, _)), *middle, surroundings = compiled._reduce()
    ours = tuple(each for each in surroundings if not _is_of_numba(each))
    entry = f'@"{compiled.fndesc.llvm_cpython_wrapper_name}" = global i64 0'  # named, so found
    return ((name, kind, (machine_code, parse_assembly(entry).as_bitcode())), *middle, ours)


def _is_of_numba(environment: Any) -> bool:
    return str(environment.globals["__name__"]).partition(".")[0] == "numba"


class KeptCode:
    """A kernel's compiled code, in a file named after everything that it depends on.

    Numba's own cache numbers its files and lists them in another: of two processes that compile at
    once, after the sources changed or for other types, one could load what it did not ask for.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._folder = cache_folder()

    @property
    def cache_path(self) -> str:
        """The folder, as numba asks for it."""
        return str(self._folder)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Compiled code as kept; None where there is none, or the folder is closed to this process.

        Numba's own way first imports all it can compile; what was compiled needs its runtime alone,
        and a process starts 0.2 s earlier.
        """
        rtsys.initialize(target_context)
        place = self._place(signature, target_context.codegen())
        with contextlib.suppress(OSError):
            return CompileResult._rebuild(target_context, *loads(place.read_bytes()))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep compiled code; a process that must not write there goes without."""
        if compiled.library.has_dynamic_globals:
            raise TypeError(f"{self._name} holds addresses of this process")
        place = self._place(signature, compiled.codegen)
        draft = place.with_name(f".{place.name}-{secrets.token_hex(6)}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                draft.write_bytes(dumps(_to_be_run(compiled)))
                draft.replace(place)
            finally:
                draft.unlink(missing_ok=True)
            self._tidy()

    def flush(self) -> None:
        """Nothing: what is stale has another name."""

    def _place(self, signature: Any, codegen: Any) -> Path:
        key = f"{_STAMP} {signature} {codegen.magic_tuple()}"
        return self._folder / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:20]}.nbc"

    def _tidy(self) -> None:
        """Forget the oldest versions."""
        found = sorted(self._folder.glob(f"{self._name}-*.nbc"), key=lambda p: p.stat().st_mtime_ns)
        for stale in found[:-_VERSIONS]:
            stale.unlink(missing_ok=True)
