"""A pair's two runs with the pair's tensors adapted, for everything that reads runs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.adapt.lazy import LazyArray
from analysis.adapt.reading import chunks, selected
from analysis.adapt.steps import side_array
from core.adaptation import RunSide
from core.comparison import Pair
from core.errors import LoadError
from core.runs import Array, Run, Selection, Values
from core.tensors import TensorInfo


@dataclass(frozen=True, slots=True)
class AdaptedValues:
    """Values of a run in which one tensor is read through the steps of an adaptation."""

    values: Values
    tensor: str
    array: LazyArray

    def chunks(self, tensor: TensorInfo, elements: int) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` (the last one shorter), in order."""
        if tensor.id != self.tensor:
            return self.values.chunks(tensor, elements)
        return chunks(self.array, elements)

    def read(self, tensor: TensorInfo, selection: Selection) -> Array:
        """The selected part: integers drop an axis, slices keep it."""
        if tensor.id != self.tensor:
            return self.values.read(tensor, selection)
        return selected(self.array, selection)


def adapted(reference: Run, candidate: Run, pair: Pair) -> tuple[Run, Run]:
    """Both runs, in which the pair's tensors have the shape and values they are compared in.

    The runs themselves when the pair needs no adaptation. Every other tensor is as it was. Raises
    LoadError when a dump does not fit the adaptation, so it is not the one that was compared.
    """
    if pair.adaptation is None:
        return reference, candidate
    return (
        _adapted(reference, pair.reference, pair, "reference"),
        _adapted(candidate, pair.candidate, pair, "candidate"),
    )


def _adapted(run: Run, tensor: TensorInfo, pair: Pair, side: RunSide) -> Run:
    assert pair.adaptation is not None
    try:
        array = side_array(run, tensor, pair.adaptation, side)
    except ValueError as error:
        raise LoadError(f"{tensor.id} does not fit its adaptation: {error}.") from error
    changed = replace(tensor, shape=array.shape)
    return replace(
        run,
        tensors=ChainMap({tensor.id: changed}, run.tensors),  # type: ignore[arg-type]
        values=AdaptedValues(run.values, tensor.id, array),
    )
