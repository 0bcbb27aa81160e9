"""Records one training step of a small transformer layer and lists what was written."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import h5py

from precision_recorder import record


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(prog="python -m precision_recorder", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write the dump")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier dump")
    chosen = parser.parse_args()
    for line in listing(recorded(chosen.folder, overwrite=chosen.overwrite)):
        print(line)


def recorded(folder: Path, *, overwrite: bool = False) -> Path:
    """Train a small layer for one step and record it; returns the file."""
    import torch

    torch.manual_seed(0)
    model = _model()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, folder, overwrite=overwrite, provenance={"note": "example"}) as recording:
        loss = model(torch.randn(2, 8, 16)).square().mean()
        loss.backward()
        optimiser.step()
        return recording.path


def listing(path: Path) -> list[str]:
    """One line a tensor, in execution order."""
    found: list[h5py.Dataset] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: found.append(item) if hasattr(item, "shape") else None)
        found.sort(key=lambda dataset: int(dataset.attrs["order"]))
        return [f"{d.attrs['dtype']:>9} {d.shape!s:>14} {d.name}" for d in found]


def _model() -> Any:
    from torch import nn

    layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=32, batch_first=True)
    return nn.Sequential(layer, nn.Linear(16, 4))


if __name__ == "__main__":
    main()
