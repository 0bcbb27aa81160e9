"""Captures of vLLM on Neuron: `<phase>/<module.path>/rank0.pt`, a phase `prefill_s128_0`."""

from __future__ import annotations

import re
from pathlib import Path

from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part
from loaders.registry import LOADERS, Loader
from loaders.torch_files import is_torch, keyed
from loaders.torch_tensor import saved

_FILE = re.compile(r"rank_?(?P<rank>\d{1,6})\.pt")
_PHASE = re.compile(r"(?P<kind>prefill|decode)_(?P<bucket>[a-z]+\d{1,9})_(?P<n>\d{1,9})")
_REPLICA = re.compile(r"dp(\d{1,6})")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a file of PyTorch is a rank's and lies in a module's folder of a phase."""
    phased = any(_PHASE.fullmatch(part) for part in path.parts[-4:-2])
    return phased and _FILE.fullmatch(path.name) is not None and is_torch(head, path)


def open_file(file: DumpFile) -> Part:
    """A module's output in one phase; the order of modules is not recorded.

    The size of the bucket is no part of the name: both sides of a comparison may pad differently.
    Prefill and decode are modules above the model, repeated phases are calls. A replica
    (`dp1`) beside the first is a module above that.
    """
    parts = file.name.split("/")
    at, phase = next(
        ((n, found) for n, part in enumerate(parts) if (found := _PHASE.fullmatch(part))),
        (len(parts) - 3, None),
    )
    rank = _FILE.fullmatch(file.path.name)
    replica, module = _replica(parts[: max(at, 0)]), ".".join(parts[at + 1 : -1])
    gathering = Gathering(file, recorded=False)
    for keys, find in keyed(saved(file), file.name):
        naming = Naming(
            name="/".join(filter(None, [replica, _phase_name(phase), module, *keys])),
            module=".".join(filter(None, [replica, phase["kind"] if phase else "", module])),
            argument=".".join(keys) or "0",
            pass_="forward",
            slot="output",
            call=int(phase["n"]) if phase else 0,
            rank=int(rank["rank"]) if rank else None,
            attrs={"bucket": phase["bucket"]} if phase else {},
        )
        gathering.add(naming, find)
    return gathering.part({"format": "vLLM-Neuron captures"})


def _phase_name(phase: re.Match[str] | None) -> str:
    if phase is None:
        return ""
    return phase["kind"] if phase["n"] == "0" else f"{phase['kind']}@{phase['n']}"


def _replica(above: list[str]) -> str:
    """The folder of a data-parallel replica, which the first one needs not be told apart by."""
    found = [part for part in above if _REPLICA.fullmatch(part)]
    return found[-1] if found and found[-1] != "dp0" else ""


LOADERS.register(Loader("vllm_neuron", "vLLM-Neuron captures", sniff, open_file))
