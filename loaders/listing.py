"""The files of a dump, in natural order, without leaving its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import LoadError
from core.runs import Problem
from language import say
from loaders.limits import Limits
from loaders.names import escaped, natural_key
from loaders.part import DumpFile

_HDF5_SUFFIXES = (".h5", ".hdf5", ".hf5", ".hdf", ".he5")
_OTHER_SUFFIXES = (".npy", ".npz", ".pt", ".pth", ".safetensors")


@dataclass(slots=True)
class Listing:
    """Regular files that may belong to a dump, what was refused, and how many were passed over."""

    files: list[DumpFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    ignored: int = 0


def looks_like_dump(path: Path) -> bool:
    """Whether a file name promises HDF5, so that finding something else is worth a word."""
    return path.suffix.lower() in _HDF5_SUFFIXES


def holds_tensors(path: Path) -> bool:
    """Whether a file name promises tensors of any kind, so that passing it over is worth a word."""
    return looks_like_dump(path) or path.suffix.lower() in _OTHER_SUFFIXES


def listed(root: Path, limits: Limits) -> Listing:
    """The files below a folder, or the one file itself; symbolic links inside are not followed.

    Hidden files are passed over: those beside dumps (`._x.h5`, `.nfs…`) are other programs' own.
    """
    listing = Listing()
    if root.is_dir():
        _visit(root, (), listing, limits)
        return listing
    if not root.is_file():
        raise LoadError(say("{root} is neither a folder nor a file.", root=_shown(root)))
    listing.files.append(DumpFile(root, _shown(root), limits))
    return listing


def _visit(folder: Path, above: tuple[str, ...], listing: Listing, limits: Limits) -> None:
    for path in _members(folder, "/".join(above) or ".", listing):
        name = "/".join((*above, _shown(path)))
        if path.name.startswith("."):
            listing.ignored += 1
        elif path.is_symlink():
            _refuse(
                path, name, "symlink", say("it is a symbolic link, which is not followed."), listing
            )
        elif path.is_dir():
            if len(above) < limits.depth:
                _visit(path, (*above, _shown(path)), listing, limits)
            else:
                listing.problems.append(
                    Problem("depth", name, say("folders are nested too deep here."))
                )
        elif not path.is_file():
            _refuse(path, name, "not-regular-file", say("it is not a regular file."), listing)
        elif len(listing.files) < limits.files:
            listing.files.append(DumpFile(path, name, limits))
        else:
            listing.ignored += 1


def _members(folder: Path, name: str, listing: Listing) -> Iterator[Path]:
    try:
        found = list(folder.iterdir())
    except OSError as error:
        listing.problems.append(Problem("unreadable", name, f"{error.strerror}."))
        return iter(())
    return iter(sorted(found, key=lambda path: natural_key(_shown(path))))


def _refuse(path: Path, name: str, code: str, reason: str, listing: Listing) -> None:
    if holds_tensors(path) or path.is_dir():
        listing.problems.append(Problem(code, name, reason))
    else:
        listing.ignored += 1


def _shown(path: Path) -> str:
    return escaped(os.fsencode(path.name))
