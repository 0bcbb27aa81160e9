"""Runs in which tensors are read through the steps of an adaptation, for all that reads runs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.adapt.lazy import LazyArray, Stored
from analysis.adapt.reading import chunks, selected
from analysis.adapt.steps import assembled
from core.adaptation import RunSide, Step
from core.comparison import Pair
from core.errors import LoadError
from core.runs import Array, Run, Selection, Values
from core.tensors import TensorInfo
from language import say


@dataclass(frozen=True, slots=True)
class Recipe:
    """One side of a pair: the tensors it is made of, and how."""

    members: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, pair: Pair, side: RunSide) -> Recipe:
        """The recipe of one side of an adapted pair."""
        steps = () if pair.adaptation is None else pair.adaptation.steps
        return cls(pair.members(side), tuple(step for step in steps if step.side == side))

    def array(self, values: Values) -> LazyArray:
        """The side, to be read; LoadError when the dump is not the one that was compared."""
        try:
            return assembled([Stored(values, member) for member in self.members], self.steps)
        except (ValueError, IndexError) as error:
            name = self.members[0].id
            raise LoadError(
                say("{name} does not fit its adaptation: {error}.", name=name, error=error)
            ) from error


@dataclass(frozen=True, slots=True)
class AdaptedValues:
    """Values of a run in which some tensor ids stand for adapted tensors."""

    values: Values
    recipes: Mapping[str, Recipe]

    def chunks(self, tensor: TensorInfo, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from element `start` on, in order."""
        recipe = self.recipes.get(tensor.id)
        if recipe is None:
            return self.values.chunks(tensor, elements, start)
        return chunks(recipe.array(self.values), elements, start)

    def read(self, tensor: TensorInfo, selection: Selection) -> Array:
        """The selected part: integers drop an axis, slices keep it."""
        recipe = self.recipes.get(tensor.id)
        if recipe is None:
            return self.values.read(tensor, selection)
        return selected(recipe.array(self.values), selection)

    def is_seekable(self, tensor: TensorInfo) -> bool:
        """Whether chunks from the middle on cost no more than from the beginning."""
        recipe = self.recipes.get(tensor.id)
        members = (tensor,) if recipe is None else recipe.members
        return all(self.values.is_seekable(member) for member in members)

    def only(self, tensors: Collection[str]) -> AdaptedValues:
        """The values of these tensors alone."""
        kept = {name: self.recipes[name] for name in tensors if name in self.recipes}
        plain = [name for name in tensors if name not in kept]
        parts = [member.id for recipe in kept.values() for member in recipe.members]
        return AdaptedValues(self.values.only(dict.fromkeys([*plain, *parts])), kept)


def adapted(reference: Run, candidate: Run, pair: Pair) -> tuple[Run, Run]:
    """Both runs, in which the pair's tensors have the shape and values they are compared in.

    The runs themselves when the pair needs no adaptation. Every other tensor is as it was. Raises
    LoadError when a dump does not fit the adaptation, so it is not the one that was compared.
    """
    if pair.adaptation is None:
        return reference, candidate
    return (
        _with(reference, {pair.reference.id: Recipe.of(pair, "reference")}),
        _with(candidate, {pair.candidate.id: Recipe.of(pair, "candidate")}),
    )


def extended(reference: Run, candidate: Run, pairs: Sequence[Pair]) -> tuple[Run, Run]:
    """Both runs and, beside their own tensors, those of adapted pairs as they are compared.

    `names_in_extended` says under which ids.
    """
    changed = [(*names_in_extended(p), p) for p in pairs if p.adaptation is not None]
    if not changed:
        return reference, candidate
    return (
        _with(reference, {a: Recipe.of(pair, "reference") for a, _, pair in changed}),
        _with(candidate, {b: Recipe.of(pair, "candidate") for _, b, pair in changed}),
    )


def names_in_extended(pair: Pair) -> tuple[str, str]:
    """Ids of both sides of a pair in the extended runs; a pair is known by its reference."""
    a, b = pair.reference.id, pair.candidate.id
    return (a, b) if pair.adaptation is None else (f"{a} (adapted)", say("{b} (as {a})", b=b, a=a))


def _with(run: Run, recipes: Mapping[str, Recipe]) -> Run:
    made = {
        name: replace(recipe.members[0], id=name, shape=recipe.array(run.values).shape)
        for name, recipe in recipes.items()
    }
    return replace(
        run,
        tensors=ChainMap(made, run.tensors),  # type: ignore[arg-type]
        values=AdaptedValues(run.values, recipes),
    )
