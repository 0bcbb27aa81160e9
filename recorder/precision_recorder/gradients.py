"""Gradients of activations: what each call is handed back and what it hands on."""

from __future__ import annotations

from typing import Any

import torch

from precision_recorder.entries import Entry
from precision_recorder.frames import Call
from precision_recorder.nested import replaced, tensors_in_call
from precision_recorder.parameters import Parameters


class Gradients:
    """Watches the tensors of calls until the backward pass reaches them."""

    def __init__(self, parameters: Parameters, wanted: bool) -> None:
        self._parameters = parameters
        self._wanted = wanted

    def watched_inputs(self, call: Call, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments, each tensor behind a view of its own.

        The gradient of the view is what this call alone hands back; the gradient of the tensor
        would be the sum over all its consumers.
        """
        if not self._wanted or not torch.is_grad_enabled():
            return args, kwargs
        views: dict[int, Any] = {}

        def view(tensor: Any) -> Any:
            if not tensor.requires_grad or self._parameters.holds(tensor):
                return tensor
            if id(tensor) not in views:  # `query is key` must stay true
                views[id(tensor)] = tensor.view_as(tensor)
            return views[id(tensor)]

        args, kwargs = replaced(args, view), replaced(kwargs, view)
        mine = {id(v) for v in views.values()}
        for argument, tensor in tensors_in_call(args, kwargs):
            if id(tensor) in mine:
                _watch(call, tensor, call.describe("backward", "output", argument))
        return args, kwargs

    def watch_outputs(self, call: Call, outputs: dict[str, Any]) -> None:
        """Wait for the gradient of each result, summed over all its consumers."""
        if not self._wanted or not torch.is_grad_enabled():
            return
        for argument, tensor in outputs.items():
            if tensor.requires_grad:
                _watch(call, tensor, call.describe("backward", "input", argument))


def _watch(call: Call, tensor: Any, entry: Entry) -> None:
    step = call.step

    def arrived(gradient: Any) -> None:
        if not step.closed and not call.dropped:
            step.write(entry, gradient)
            step.flush()

    tensor.register_hook(arrived)
