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


def _unpack(folder: Path) -> None:
    """Unpack the weights without running the package's own code."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SystemExit(f"{PACKAGE} is not installed; see sample_dumps/README.md")
    with zipfile.ZipFile(Path(found.origin).parent / "model.zip") as archive:
        archive.extractall(folder)
