"""The public way in: `with record(model, folder): …`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_recorder.errors import RecordError, RecorderWarning
from precision_recorder.operators import Choice
from precision_recorder.writer import Compression, file_name, refuse_existing

if TYPE_CHECKING:
    from precision_recorder.steps import Options, Step
    from precision_recorder.tracing import Tracer


class Recording:
    """A model being recorded."""

    def __init__(
        self,
        model: Any,
        folder: Path,
        step: int,
        rank: int,
        options: Options,
        provenance: Mapping[str, Any],
    ) -> None:
        from precision_recorder.provenance import provenance_of
        from precision_recorder.tracing import Tracer

        self._folder = folder
        self._rank = rank
        self._options = options
        self._provenance = lambda: provenance_of(model, provenance)
        self._step = self._new_step(step)
        self._tracer: Tracer = Tracer(model, self._step, options)

    @property
    def step(self) -> int:
        """Number of the step being recorded."""
        return self._step.number

    @property
    def path(self) -> Path:
        """File of the step being recorded; it appears with the first tensor."""
        return self._step.path

    def next_step(self, number: int | None = None) -> None:
        """Finish this step's file and go on with the next, or with the step given."""
        self._finish(None)
        self._step = self._new_step(self._step.number + 1 if number is None else number)
        self._tracer.step = self._step

    def _new_step(self, number: int) -> Step:
        from precision_recorder.steps import Step

        path = self._folder / file_name(number, self._rank)
        if not self._options.overwrite:
            refuse_existing(path)
        return Step(self._folder, number, self._rank, self._options, self._provenance)

    def _finish(self, error: BaseException | None) -> None:
        try:
            if error is None:
                self._tracer.finish_step()
        finally:
            self._step.close(error)

    def _run(self) -> Iterator[Recording]:
        self._tracer.start()
        try:
            yield self
        except BaseException as error:
            self._tracer.stop()
            self._finish(error)
            raise
        self._tracer.stop()
        self._finish(None)
        self._check_calls()

    def _check_calls(self) -> None:
        seen = self._tracer.seen
        if not seen:
            raise RecordError(
                "Nothing was recorded: no module of the model was called through its hooks.",
                "Call the model itself, not model.forward(), inside the with block, and record it "
                "uncompiled: torch.compile and replayed CUDA graphs bypass hooks.",
            )
        if not seen[""]:
            warnings.warn(
                "The model itself was never called, only modules inside it; "
                "model.forward() and compiled models bypass hooks.",
                RecorderWarning,
                stacklevel=4,
            )


@contextmanager
def record(
    model: Any,
    folder: Path | str,
    *,
    step: int = 0,
    rank: int | None = None,
    provenance: Mapping[str, Any] | None = None,
    parameters: bool = True,
    operators: Choice = True,
    gradients: bool = True,
    modules: Callable[[str, Any], bool] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    compression: Compression = None,
    overwrite: bool = False,
) -> Iterator[Recording]:
    """Record what `model` computes inside the block, one file per step and rank in `folder`.

    rank: None asks torch.distributed. provenance: added to what is found out; None removes a key.
    parameters: also parameters, buffers, and parameters after an optimiser's step.
    operators: functional calls inside modules: True, False, names, or a predicate (module, name).
    gradients: in a training step, gradients of activations and parameters.
    modules: predicate (path, module); modules it refuses are passed over with their operators.
    dims: names of axes by pattern, such as {"*.softmax/forward_output.0": ("head", "q", "k")};
        the first pattern that fits the name and the number of axes counts.
    compression: "gzip" for small files; None for files that can be memory-mapped.
    overwrite: replace files of the same step and rank.
    """
    _require_torch(model)
    from precision_recorder.provenance import rank_here
    from precision_recorder.steps import Options

    options = Options(
        parameters=parameters,
        operators=operators,
        gradients=gradients,
        modules=modules,
        dims=dims or {},
        compression=compression,
        overwrite=overwrite,
    )
    own_rank = rank_here() if rank is None else rank
    recording = Recording(model, Path(folder), step, own_rank, options, provenance or {})
    yield from recording._run()


def _require_torch(model: Any) -> None:
    try:
        import torch
    except ImportError:
        raise RecordError(
            "record() follows PyTorch models and torch cannot be imported.",
            "Without torch, arrays can be written with DumpWriter.",
        ) from None
    if not isinstance(model, torch.nn.Module):
        raise RecordError(f"record() needs a torch.nn.Module, not {type(model).__name__}.")
    if any(_is_compiled(module) for module in model.modules()):
        warnings.warn(
            "The model or a part of it is compiled: what runs inside bypasses hooks.",
            RecorderWarning,
            stacklevel=5,
        )


def _is_compiled(module: Any) -> bool:
    compiled = getattr(module, "_compiled_call_impl", None) is not None
    return compiled or hasattr(module, "_orig_mod")
