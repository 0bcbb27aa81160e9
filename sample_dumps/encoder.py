"""The pretrained MiniLM sentence encoder, out of a package that is only needed to make samples."""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import torch

PACKAGE = "all_minilm_l6_v2"
SENTENCE = "Rounding is harmless."


def encoder_and_input(dtype: torch.dtype) -> tuple[Any, dict[str, torch.Tensor]]:
    """The encoder in a format, and the tokens of a short sentence."""
    _require("transformers", PACKAGE)
    from transformers import AutoTokenizer, BertModel

    with tempfile.TemporaryDirectory() as folder:
        _unpack(Path(folder))
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = BertModel.from_pretrained(
            folder, local_files_only=True, attn_implementation="eager", dtype=torch.float32
        )
    tokens = tokenizer(SENTENCE, return_tensors="pt")
    model.name_or_path = model.config.name_or_path = PACKAGE  # not the folder it was unpacked to
    return model.eval().to(dtype), dict(tokens)


def _require(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise SystemExit(f"{package} is not installed; sample_dumps/README.md says how.")


def _unpack(folder: Path) -> None:
    """Unpack the weights without running the package's own code."""
    found = importlib.util.find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    with zipfile.ZipFile(Path(found.origin).parent / "model.zip") as archive:
        archive.extractall(folder)
