"""Where numbers come from: framework, device, formats and the switches that change arithmetic."""

from __future__ import annotations

import platform
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import h5py
import numpy as np
import torch


def provenance_of(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Flat dotted keys to text, numbers and booleans. `given` wins; None there removes a key."""
    devices = sorted({tensor.device for tensor in model.parameters()}, key=str)
    device = devices[0] if devices else torch.device("cpu")
    found = {
        "framework": "torch",
        "framework.version": torch.__version__,
        "device": ", ".join(map(str, devices)) or "cpu",
        "device.name": _device_name(device),
        "model_class": f"{type(model).__module__}.{type(model).__qualname__}",
        "training": model.training,
        "parameters": sum(tensor.numel() for tensor in model.parameters()),
        "dtype_policy": _dtype_policy(model),
        "autocast": _autocast(device.type),
        "grad_enabled": torch.is_grad_enabled(),
        "seed": torch.initial_seed(),
        "threads": torch.get_num_threads(),
        **_math(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "versions": f"numpy {np.__version__}, h5py {h5py.__version__}",
        "recorder": _own_version(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    merged = found | dict(given)
    return {key: value for key, value in merged.items() if value is not None}


def rank_here() -> int:
    """Rank of this process among the distributed ones, 0 when it is alone."""
    distributed = torch.distributed
    alone = not distributed.is_available() or not distributed.is_initialized()
    return 0 if alone else int(distributed.get_rank())


def _math() -> dict[str, Any]:
    cuda = torch.backends.cuda.matmul
    switches: dict[str, Callable[[], Any]] = {
        "math.float32_matmul_precision": torch.get_float32_matmul_precision,
        "math.allow_tf32": lambda: cuda.allow_tf32,
        "math.cudnn_allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
        "math.fp16_reduced_precision_reduction": (
            lambda: cuda.allow_fp16_reduced_precision_reduction
        ),
        "math.bf16_reduced_precision_reduction": (
            lambda: cuda.allow_bf16_reduced_precision_reduction
        ),
        "math.deterministic": torch.are_deterministic_algorithms_enabled,
        "math.mkldnn": lambda: torch.backends.mkldnn.enabled,
        "math.sdpa_flash": torch.backends.cuda.flash_sdp_enabled,
        "math.sdpa_efficient": torch.backends.cuda.mem_efficient_sdp_enabled,
        "math.sdpa_math": torch.backends.cuda.math_sdp_enabled,
        "math.flush_denormal": _flushes_denormals,
    }
    return {name: _read(switch) for name, switch in switches.items()}


def _read(switch: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older switches announce their successors
        try:
            value = switch()
        except (AttributeError, RuntimeError):  # not there, or old and new switches were mixed
            return None
    return value if isinstance(value, bool | int | float) else str(value)


def _flushes_denormals() -> bool:
    tiny = torch.full((), 2.0**-140, dtype=torch.float32)
    return bool((tiny + tiny).item() == 0.0)


def _device_name(device: Any) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    if device.type == "cpu":
        return f"CPU {torch.backends.cpu.get_cpu_capability()}"
    return str(device.type)


def _dtype_policy(model: Any) -> str:
    """The formats of the parameters, the one with most elements first."""
    counts: Counter[str] = Counter()
    for tensor in model.parameters():
        counts[str(tensor.dtype).removeprefix("torch.")] += tensor.numel()
    return ", ".join(name for name, _ in counts.most_common())


def _autocast(device_type: str) -> str:
    if not torch.is_autocast_enabled(device_type):
        return "off"
    return str(torch.get_autocast_dtype(device_type)).removeprefix("torch.")


def _own_version() -> str:
    try:
        return metadata.version("precision-recorder")
    except metadata.PackageNotFoundError:  # imported from a checkout
        return "checkout"
