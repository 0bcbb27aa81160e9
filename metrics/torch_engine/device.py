"""Where the tensors of this engine live."""

from __future__ import annotations

import re
from typing import Any

from core.errors import CompareError
from language import say

TORCH_CPU = "torch-cpu"  # what a GPU would compute, on the processor: for tests
_CUDA = re.compile(r"cuda(?::(\d+))?")


def device_of(name: str) -> Any:
    """The PyTorch device called `cuda`, `cuda:1` or `torch-cpu`; CompareError where it is not."""
    number = _CUDA.fullmatch(name)
    if number is None and name != TORCH_CPU:
        raise CompareError(
            say("There is no device {name!r}.", name=name),
            say("Known: cpu, cuda, cuda:0, cuda:1 …"),
        )
    try:
        import torch
    except ImportError as error:
        hint = say("Install `torch`, or leave out --device.")
        raise CompareError(say("The device {name} needs PyTorch.", name=name), hint) from error
    if number is None:
        return torch.device("cpu")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number[1] or 0) >= found:
        reason = say(
            "PyTorch {version} sees {found} CUDA devices here.",
            version=torch.__version__,
            found=found,
        )
        raise CompareError(
            say("There is no device {name!r}: {reason}", name=name, reason=reason),
            say("Leave out --device."),
        )
    return torch.device(name)
