"""SGLang's older tensor dumps: `TP0_PP0_Rank0_pid1/Pass00000.pt`, a dict of module outputs each."""

from __future__ import annotations

import re
from pathlib import Path

from core.tensors import Slot
from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part
from loaders.registry import LOADERS, Loader
from loaders.torch_files import is_torch, keyed
from loaders.torch_tensor import saved

_FOLDER = re.compile(r"TP(?P<tp>\d{1,6})_PP(?P<pp>\d{1,6})_Rank(?P<rank>\d{1,6})_pid\d+")
_FILE = re.compile(r"Pass(?P<n>\d{1,9})\.pt")
_BATCH = "forward_batch_info"


def sniff(head: bytes, path: Path) -> bool:
    """Whether a file of PyTorch is called like a pass and lies in a rank's folder."""
    ours = _FILE.fullmatch(path.name) and _FOLDER.fullmatch(path.parent.name)
    return ours is not None and is_torch(head, path)


def open_file(file: DumpFile) -> Part:
    """Outputs in the order of the dict, which is that of execution; a pass counts as a step."""
    number = _FILE.fullmatch(file.path.name)
    folder = _FOLDER.fullmatch(file.path.parent.name)
    step = int(number["n"]) if number else None
    gathering = Gathering(file, recorded=True)
    for keys, find in keyed(saved(file), file.name):
        gathering.add(_naming(keys, step, folder), find)
    return gathering.part({"format": "SGLang passes"})


def _naming(keys: tuple[str, ...], step: int | None, folder: re.Match[str] | None) -> Naming:
    """A key is a module, whose output a tensor or a list is; what a batch holds is handed in."""
    module, arguments = (keys or ("",))[0], keys[1:]
    top, _, field = module.rpartition(".")
    slot: Slot = "output"
    if top.rpartition(".")[2] == _BATCH:
        module, arguments, slot = top, (field, *arguments), "input"
    return Naming(
        name=".".join(keys),
        module=module,
        argument=".".join(arguments) or "0",
        pass_="forward",
        slot=slot,
        step=step,
        rank=int(folder["rank"]) if folder else None,
        attrs={k: int(folder[k]) for k in ("tp", "pp")} if folder else {},
    )


LOADERS.register(Loader("sglang_passes", "SGLang passes", sniff, open_file))
