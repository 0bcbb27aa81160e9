"""Where the tensors of this engine live."""

from __future__ import annotations

import re
from typing import Any

from core.errors import CompareError

TORCH_CPU = "torch-cpu"  # what a GPU would compute, on the processor: for tests
_CUDA = re.compile(r"cuda(?::(\d+))?")


def device_of(name: str) -> Any:
    """The PyTorch device called `cuda`, `cuda:1` or `torch-cpu`; CompareError where it is not."""
    number = _CUDA.fullmatch(name)
    if number is None and name != TORCH_CPU:
        raise CompareError(f"There is no device {name!r}.", "Known: cpu, cuda, cuda:0, cuda:1 …")
    try:
        import torch
    except ImportError as error:
        hint = "Install `torch`, or leave out --device."
        raise CompareError(f"The device {name} needs PyTorch.", hint) from error
    if number is None:
        return torch.device("cpu")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number[1] or 0) >= found:
        reason = f"PyTorch {torch.__version__} sees {found} CUDA devices here."
        raise CompareError(f"There is no device {name!r}: {reason}", "Leave out --device.")
    return torch.device(name)
