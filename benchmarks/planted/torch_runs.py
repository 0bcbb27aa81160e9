"""Runs a torch model under a side's conditions and records it, in our format or in torch_xray's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from precision_recorder import record
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.planted.torch_models import IMAGES, Inputs, inputs, model_of
from benchmarks.planted.torch_parts import Kernels
from benchmarks.planted.xray_layout import rewrite

Layout = Literal["native", "xray"]
BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side runs on: format, kernels and switches. `autocast` names its format."""

    dtype: str = "float32"
    kernels: Kernels = field(default_factory=Kernels)
    backend: Literal["", "math", "flash"] = ""
    mkldnn: bool = True
    threads: int = 1
    channels_last: bool = False
    autocast: str = ""

    @property
    def computes_in(self) -> str:
        """Format of most values."""
        return self.autocast or self.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What both sides run: a model by name, its weights and inputs, and how far.

    `decode`: one-token steps with a cache after the prefill. `backward`: a training step, or
    `steps` of them. `rounded`: the checkpoint is stored in bfloat16.
    """

    model: str
    seed: int
    tokens: int = 20
    padded: int = 5
    decode: int = 0
    backward: bool = False
    steps: int = 1
    rounded: bool = True
    layout: Layout = "native"
    operators: bool = True


def run(
    job: Job, side: Side, folder: Path, edit: Callable[[nn.Module], object] | None = None
) -> None:
    """Record the job on one side; `edit` changes the model before, to plant a fault."""
    model = model_of(job.model, job.seed, side.kernels, rounded=job.rounded)
    model = model.to(getattr(torch, side.dtype))
    if side.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if edit:
        edit(model)
    given = inputs(job.model, job.seed, tokens=job.tokens, padded=job.padded)
    with _conditions(side), _recorded(model, job, folder) as recording:
        _walk(job, model, _in_format(job, given, side), recording)


def _walk(job: Job, model: nn.Module, given: Inputs, recording: Any) -> None:
    if job.backward:
        _train(job, model, given, recording)
        return
    with torch.no_grad():
        if not job.decode:
            model(*given.arguments)
            return
        _decode(job, model, given, recording)


def _decode(job: Job, model: nn.Module, given: Inputs, recording: Any) -> None:
    for module in model.modules():
        if hasattr(module, "caches"):
            module.caches = True
    start = job.tokens - job.decode
    model(*given.up_to(start).arguments)
    tokens, real = given.arguments
    for n in range(start, job.tokens):
        recording.next_step()
        model(tokens[:, n : n + 1], real[:, : n + 1])


def _train(job: Job, model: nn.Module, given: Inputs, recording: Any) -> None:
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(job.steps):
        if step:
            recording.next_step()
        optimiser.zero_grad()
        logits = model(*given.arguments)
        _loss(job, logits, given.arguments[0]).backward()
        optimiser.step()


def _loss(job: Job, logits: Tensor, given: Tensor) -> Tensor:
    labels = torch.arange(len(logits)) if job.model in IMAGES else given.roll(-1, 1).flatten()
    return functional.cross_entropy(logits.float().flatten(0, -2), labels)


def _in_format(job: Job, given: Inputs, side: Side) -> Inputs:
    if job.model not in IMAGES:
        return given
    images = given.arguments[0].bfloat16().to(getattr(torch, side.dtype))
    if side.channels_last:
        images = images.to(memory_format=torch.channels_last)
    return Inputs((images,))


@contextmanager
def _conditions(side: Side) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(side.threads)
    try:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # about formats and fast paths that are not meant here
            if side.backend:
                stack.enter_context(sdpa_kernel(BACKENDS[side.backend]))
            if side.autocast:
                stack.enter_context(torch.autocast("cpu", getattr(torch, side.autocast)))
            stack.enter_context(torch.backends.mkldnn.flags(enabled=side.mkldnn))
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _recorded(model: nn.Module, job: Job, folder: Path) -> Iterator[Any]:
    native = folder if job.layout == "native" else folder / "native"
    with record(
        model, native, provenance={"time": None}, operators=job.operators, overwrite=True
    ) as recording:
        yield recording
    if job.layout == "xray":
        rewrite(native, folder)
