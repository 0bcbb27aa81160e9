"""The known formats. A loader is a module of this folder that ends in `LOADERS.register(...)`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loaders.part import DumpFile, Part


@dataclass(frozen=True, slots=True)
class Claim:
    """A format of several files: one that `leads` by its name speaks for others, its own.

    `owns` is asked with a path relative to the lead's folder, its parts joined by `/`.
    """

    leads: Callable[[str], bool]
    owns: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Loader:
    """One format: `sniff(first bytes, path)` says whether a file is of it, `open` reads one.

    A `fallback` is asked only after every other loader has declined. With a `claim`, the files it
    owns are given to `open` beside their lead and are not opened one by one. `bare`: its names
    have no grammar of their own, so that a template of the user may say what they mean.
    """

    name: str
    title: str
    sniff: Callable[[bytes, Path], bool]
    open: Callable[[DumpFile], Part]
    fallback: bool = False
    claim: Claim | None = None
    bare: bool = False


class Registry(dict[str, Loader]):
    """Loaders by name."""

    def register(self, loader: Loader) -> Loader:
        """Make a loader known; two of one name are a mistake."""
        if loader.name in self:
            raise ValueError(f"two loaders are called {loader.name!r}")
        self[loader.name] = loader
        return loader

    def discover(self) -> None:
        """Import every module beside this one, so that each registers what it has."""
        package = importlib.import_module(__package__)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")

    def loader_for(self, head: bytes, path: Path) -> Loader | None:
        """The loader that recognises a file; LoadError when one does but the file is broken."""
        asked = sorted(self.values(), key=lambda loader: (loader.fallback, loader.name))
        return next((loader for loader in asked if loader.sniff(head, path)), None)


LOADERS = Registry()
