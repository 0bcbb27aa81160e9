"""Watches a running model: hooks on its modules, a function mode for the calls inside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from precision_recorder import scalars
from precision_recorder.frames import (
    Call,
    Frame,
    computes,
    forward_names,
    is_built_in,
    module_call_scalars,
)
from precision_recorder.gradients import Gradients
from precision_recorder.nested import tensors_in, tensors_in_call
from precision_recorder.operators import (
    LOSSES,
    is_chosen,
    operator_name,
    overwritten,
    writes_in_place,
)
from precision_recorder.parameters import Parameters
from precision_recorder.steps import Options, Step


class Tracer(TorchFunctionMode):  # type: ignore[misc]
    """Follows one model. `step` is where tensors go and is exchanged between steps."""

    def __init__(self, model: Any, step: Step, options: Options) -> None:
        super().__init__()
        self.step = step
        self.seen: Counter[str] = Counter()
        self._model = model
        self._options = options
        self._parameters = Parameters(model, options)
        self._gradients = Gradients(self._parameters, options.gradients)
        self._frames: list[Frame] = []
        self._busy = 0
        self._outside: tuple[Step, int, Frame] | None = None
        self._handles: list[Any] = []

    # ---- life ---------------------------------------------------------------------------------
    def start(self) -> None:
        """Attach to the model."""
        for path, module in self._model.named_modules():
            self._handles += self._hooked(path, module)
        self._handles += self._parameters.hooks(lambda: self.step)
        self.__enter__()

    def stop(self) -> None:
        """Leave the model as it was."""
        self.__exit__(None, None, None)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish_step(self) -> None:
        """Write the parameters of modules that were never called."""
        if self.step.calls:
            self._parameters.write_remaining(self.step)

    def _hooked(self, path: str, module: Any) -> Iterator[Any]:
        if isinstance(module, torch.jit.ScriptModule):
            return
        yield module.register_forward_pre_hook(
            lambda module, args, kwargs: self._enter(path, module, args, kwargs), with_kwargs=True
        )
        yield module.register_forward_hook(
            lambda module, _args, _kwargs, result: self._leave(module, result),
            with_kwargs=True,
            always_call=True,
        )

    # ---- modules ------------------------------------------------------------------------------
    def _enter(
        self, path: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        self._busy += 1
        try:
            if self._frames:
                self._put_pending(self._frames[-1])
            frame = self._frame(path, module)
            self._frames.append(frame)
            if not frame.records:
                return None
            frame.scalars = module_call_scalars(module, args, kwargs)
            self._parameters.write_of(self.step, path, module)
            return self._take_inputs(frame, args, kwargs)
        finally:
            self._busy -= 1

    def _frame(self, path: str, module: Any) -> Frame:
        chosen = self._options.modules
        records = chosen is None or chosen(path, module)
        is_leaf = next(module.children(), None) is None
        call = self.step.calls[path]
        self.step.calls[path] += 1
        self.seen[path] += 1
        inside = records and not (is_leaf and is_built_in(module))
        return Frame(module, path, call, records, inside, is_leaf)

    def _take_inputs(
        self, frame: Frame, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        names = forward_names(frame.module)
        call = Call(self.step, frame, "", frame.scalars)
        call.inputs = dict(tensors_in_call(args, kwargs))
        call.take_inputs(names)
        call.put()
        args, kwargs = self._gradients.watched_inputs(call, args, kwargs)
        frame.inputs = dict(tensors_in_call(args, kwargs))
        return args, kwargs

    def _leave(self, module: Any, result: Any) -> None:
        self._busy += 1
        try:
            frame = self._pop(module)
            if frame is not None and frame.records:
                self._take_outputs(frame, dict(tensors_in(result)))
        finally:
            self._busy -= 1

    def _take_outputs(self, frame: Frame, outputs: dict[str, Any]) -> None:
        if frame.pending is not None and frame.pending.is_all_of(frame.inputs, outputs):
            frame.pending.dropped = True
            frame.pending = None
        self._put_pending(frame)
        call = Call(self.step, frame, "", frame.scalars, outputs=outputs)
        call.take_outputs()
        self._gradients.watch_outputs(call, outputs)
        call.put()

    def _pop(self, module: Any) -> Frame | None:
        while self._frames:
            frame = self._frames.pop()
            if frame.module is module:
                return frame
        return None

    # ---- operators ----------------------------------------------------------------------------
    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by the framework for every public function that meets a tensor."""
        kwargs = kwargs or {}
        name, namespace = operator_name(func)
        if self._busy or not self._is_wanted(name, namespace):
            return func(*args, **kwargs)
        self._busy += 1
        try:
            return self._operator(self._frame_now(), func, name, args, kwargs)
        finally:
            self._busy -= 1

    def _is_wanted(self, name: str, namespace: str) -> bool:
        frame = self._frames[-1] if self._frames else None
        if frame is None:  # outside the model only the loss belongs to it
            return name in LOSSES and is_chosen(self._options.operators, "", name, namespace)
        if not frame.records_operators:
            return False
        return is_chosen(self._options.operators, frame.path, name, namespace)

    def _frame_now(self) -> Frame:
        """The innermost module call; outside the model, the model's latest call."""
        if self._frames:
            return self._frames[-1]
        calls = self.step.calls[""]
        if self._outside is None or self._outside[:2] != (self.step, calls):
            frame = Frame(self._model, "", max(calls - 1, 0))
            self._outside = (self.step, calls, frame)
        return self._outside[2]

    def _operator(
        self, frame: Frame, func: Any, name: str, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        names = scalars.argument_names(func, name)
        call = Call(self.step, frame, frame.op(name), self._scalars(names, args, kwargs))
        call.inputs = {
            argument: tensor
            for argument, tensor in tensors_in_call(args, kwargs)
            if not self._parameters.holds(tensor)
        }
        in_place = writes_in_place(func, kwargs)
        if in_place:
            call.take_inputs(names)
        else:
            args, kwargs = self._gradients.watched_inputs(call, args, kwargs)
        result = func(*args, **kwargs)
        call.outputs = dict(tensors_in(result)) or _written(func, names, call)
        call.dropped = not computes(name, args, call)
        if not call.dropped:
            if not in_place:
                call.take_inputs(names)
            self._record(name, call)
        return result

    def _scalars(self, names: tuple[str, ...], args: Any, kwargs: Any) -> dict[str, Any]:
        return scalars.call_scalars(names, args, kwargs) | {
            f"parameter.{argument}": self._parameters.name_of(tensor)
            for argument, tensor in tensors_in_call(args, kwargs)
            if self._parameters.holds(tensor)
        }

    def _record(self, name: str, call: Call) -> None:
        call.take_outputs()
        self._gradients.watch_outputs(call, call.outputs)
        frame = call.frame
        may_be_module = frame.is_leaf and not frame.operators
        frame.operators[name] += 1
        if may_be_module:
            frame.pending = call
        else:
            self._put_pending(frame)
            call.put()

    def _put_pending(self, frame: Frame) -> None:
        pending, frame.pending = frame.pending, None
        if pending is not None:
            pending.put()


def _written(func: Any, names: tuple[str, ...], call: Call) -> dict[str, Any]:
    """The arguments an operator without results has written to."""
    written = overwritten(func)
    return {
        argument: tensor
        for argument, tensor in call.inputs.items()
        if scalars.named(names, argument) in written
    }
