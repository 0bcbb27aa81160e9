"""Tensor dumps of TransformerEngine: `tensor_dumps/rank_0/iter_000001/<layer>_<tensor>.pt`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from core.tensors import Pass, Slot
from loaders.names import last_known, rank_of, step_of
from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part
from loaders.registry import LOADERS, Loader
from loaders.torch_files import is_torch, keyed
from loaders.torch_tensor import saved

_ROLES: Mapping[str, tuple[str, Pass, Slot]] = {
    "activation": ("0", "forward", "input"),
    "weight": ("weight", "parameter", "parameter"),
    "output": ("0", "forward", "output"),
    "gradient": ("0", "backward", "input"),
    "dgrad": ("0", "backward", "output"),
    "wgrad": ("weight", "gradient", "parameter"),
}
_FILE = re.compile(
    rf"(?P<layer>.+)_(?P<role>{'|'.join(_ROLES)})(?:_iter_(?P<step>\d{{1,9}}))?\.pt", re.DOTALL
)
_ITERATION, _RANK = re.compile(r"iter_\d{6,9}"), re.compile(r"rank_\d{1,6}")
_FULL = "high_precision"


def sniff(head: bytes, path: Path) -> bool:
    """Whether a file of PyTorch is named so and lies in an iteration's folder, or a rank's."""
    match = _FILE.fullmatch(path.name)
    above, higher = path.parent.name, path.parent.parent.name
    if match is None:
        return False
    if match["step"]:
        placed = _RANK.fullmatch(above) is not None
    else:
        placed = bool(_ITERATION.fullmatch(above) and _RANK.fullmatch(higher))
    return placed and is_torch(head, path)


def open_file(file: DumpFile) -> Part:
    """The tensor before quantisation, and what can be read of the quantised one.

    The dump writes `_` for the dots of a layer's name, which cannot be undone. A quantised tensor
    is an object of the library: it is named and not read.
    """
    match = _FILE.fullmatch(file.path.name)
    parts = file.name.split("/")[:-1]
    layer, role = (match["layer"], match["role"]) if match else (file.path.stem, "activation")
    argument, pass_, slot = _ROLES[role]
    step = int(match["step"]) if match and match["step"] else last_known(map(step_of, parts))
    gathering = Gathering(file, recorded=False)
    for keys, find in keyed(saved(file), file.name):
        more = [] if keys == (_FULL,) else list(keys)
        naming = Naming(
            name="/".join([f"{layer}_{role}", *more]),
            module=layer,
            argument=".".join([argument, *more]),
            pass_=pass_,
            slot=slot,
            step=step,
            rank=last_known(map(rank_of, parts)),
        )
        gathering.add(naming, find)
    return gathering.part({"format": "TransformerEngine tensor dumps"})


LOADERS.register(Loader("transformer_engine", "TransformerEngine tensor dumps", sniff, open_file))
