"""Parameters and buffers: their values, their gradients, and what the optimiser makes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from precision_recorder.entries import Entry, Pass
from precision_recorder.steps import Options, Step


class Parameters:
    """The parameters of a model under the first name each is known by."""

    def __init__(self, model: Any, options: Options) -> None:
        self._options = options
        self._modules = dict(model.named_modules())
        self._names: dict[int, list[str]] = defaultdict(list)
        self._tensors: dict[int, Any] = {}  # keeps ids valid
        for name, tensor in _named(model):
            self._names[id(tensor)].append(name)
            self._tensors[id(tensor)] = tensor

    def holds(self, tensor: Any) -> bool:
        """Whether the tensor is a parameter or buffer of the model itself, not a view of one."""
        return id(tensor) in self._names

    def name_of(self, tensor: Any) -> str:
        """Full name of a parameter or buffer."""
        return self._names[id(tensor)][0]

    def write_of(self, step: Step, path: str, module: Any) -> None:
        """Write a module's own parameters and buffers, once in a step."""
        if not self._options.parameters or path in step.parameters_written:
            return
        step.parameters_written.add(path)
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for _, tensor in own:
            if self.holds(tensor) and _split(self.name_of(tensor))[0] == path:
                step.write(self._entry(tensor, "parameter"), tensor)

    def write_remaining(self, step: Step) -> None:
        """Write the parameters of modules that were not called in this step."""
        for path, module in self._modules.items():
            if self._options.modules is None or self._options.modules(path, module):
                self.write_of(step, path, module)
        step.flush()

    def hooks(self, step: Callable[[], Step]) -> Iterator[Any]:
        """Watch gradients and optimisers; yields handles to remove."""
        if self._options.gradients:
            for tensor in self._tensors.values():
                if tensor.requires_grad and tensor.is_leaf:
                    yield tensor.register_post_accumulate_grad_hook(
                        lambda tensor: self._write_gradient(step(), tensor)
                    )
        if self._options.parameters:
            yield register_optimizer_step_pre_hook(
                lambda *_: self.write_remaining(step()) if step().calls else None
            )
            yield register_optimizer_step_post_hook(
                lambda made, *_: self._write_update(step(), made)
            )

    def _write_gradient(self, step: Step, tensor: Any) -> None:
        if step.calls and tensor.grad is not None:
            step.write(self._entry(tensor, "gradient"), tensor.grad)
            step.flush()

    def _write_update(self, step: Step, optimiser: Any) -> None:
        if not step.calls:
            return
        for group in optimiser.param_groups:
            for tensor in filter(self.holds, group["params"]):
                step.write(self._entry(tensor, "update"), tensor)
        step.flush()

    def _entry(self, tensor: Any, pass_: Pass) -> Entry:
        name, *others = self._names[id(tensor)]
        path, argument = _split(name)
        module = self._modules[path]
        kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
        return Entry(
            module=path,
            module_class=type(module).__name__,
            pass_=pass_,
            slot="parameter",
            argument=argument,
            attrs={"kind": kind} | ({"tied": others} if others else {}),
        )


def _named(model: Any) -> Iterator[tuple[str, Any]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _split(name: str) -> tuple[str, str]:
    path, _, argument = name.rpartition(".")
    return path, argument
