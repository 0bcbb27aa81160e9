"""What a format says about a tensor by its name, and the tensor that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.runs import Problem
from core.tensors import Pass, Slot, TensorInfo
from language import say
from loaders.absent import Absent, Told
from loaders.encoding import Encoding
from loaders.names import last_known, only_counts, rank_of, step_of
from loaders.part import DumpFile, Part, RefusedError, Source


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as a file holds it; `inferred`: its format was guessed."""

    shape: tuple[int, ...]
    encoding: Encoding
    source: Source
    inferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The meaning of a tensor's name; fields as in TensorInfo."""

    name: str
    module: str
    argument: str
    pass_: Pass = "unknown"
    slot: Slot = "value"
    module_class: str = ""
    op: str = ""
    call: int = 0
    step: int | None = None
    rank: int | None = None
    dims: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)


def path_naming(parts: Sequence[str], around: Sequence[str]) -> Naming:
    """A name without a known grammar: its last part counts as an operator of the rest.

    Folders called like `step3` or `rank0` say just that and are no part of the name; `around` are
    all parts that may speak of a step or rank. The whole of it is kept as attribute `dump_name`.
    """
    name = "/".join([*(part for part in parts[:-1] if not only_counts(part)), parts[-1]])
    module, _, op = name.replace("/", ".").rpartition(".")
    step, rank = last_known(map(step_of, around)), last_known(map(rank_of, around))
    told = "/".join(parts)
    attrs = {"dump_name": told} if told != name else {}
    return Naming(name=name, module=module, op=op, argument="", step=step, rank=rank, attrs=attrs)


def placed(naming: Naming, *, order: int, recorded: bool, **told: Any) -> TensorInfo:
    """A tensor of that name; without shape and format unless they are `told`."""
    described: dict[str, Any] = {"shape": (), "storage_dtype": "", "dtype": "", **told}
    return TensorInfo(
        id=naming.name,
        name=naming.name,
        module=naming.module,
        argument=naming.argument,
        pass_=naming.pass_,
        slot=naming.slot,
        order=order,
        module_class=naming.module_class,
        op=naming.op,
        call=naming.call,
        step=naming.step,
        rank=naming.rank,
        order_recorded=recorded,
        attrs=naming.attrs,
        **described,
    )


def tensor_of(
    naming: Naming, stored: Stored, *, order: int, recorded: bool
) -> tuple[TensorInfo, Source]:
    """The tensor that is stored under a name; `dims` count if there is one for each axis."""
    info = placed(
        naming,
        order=order,
        recorded=recorded,
        shape=stored.shape,
        storage_dtype=stored.encoding.storage,
        dtype=stored.encoding.logical,
        dtype_inferred=stored.inferred,
        dims=naming.dims if len(naming.dims) == len(stored.shape) else (),
    )
    return info, stored.source


@dataclass(slots=True)
class Gathering:
    """What comes of the tensors of one file, in the order in which they are added."""

    file: DumpFile
    recorded: bool
    items: list[tuple[TensorInfo, Source]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, naming: Naming, find: Callable[[], Stored]) -> None:
        """Describe a tensor, or name why it cannot be read."""
        try:
            stored = find()
        except RefusedError as refusal:
            self.problems.append(refusal.problem)
        else:
            order = len(self.items)
            self.items.append(tensor_of(naming, stored, order=order, recorded=self.recorded))

    def tell(self, naming: Naming, find: Callable[[], Told]) -> None:
        """Describe a tensor whose values are not there, or name what is wrong with it."""
        try:
            told = find()
        except RefusedError as refusal:
            self.problems.append(refusal.problem)
            return
        info = placed(
            naming,
            order=len(self.items),
            recorded=self.recorded,
            shape=told.shape,
            storage_dtype=told.dtype,
            dtype=told.dtype,
            dtype_inferred=told.inferred,
            summary=told.summary,
        )
        self.items.append((info, Absent(naming.name)))

    def part(
        self, provenance: Mapping[str, str], *, calls: bool = False, process: int | None = None
    ) -> Part:
        """The contribution of the file."""
        problems = bounded(self.problems, self.file)
        return Part(tuple(self.items), provenance, problems, calls, process)


def bounded(problems: Sequence[Problem], file: DumpFile) -> tuple[Problem, ...]:
    """As many problems as one file may have, further ones counted."""
    named = tuple(problems[: file.limits.problems])
    more = len(problems) - len(named)
    if not more:
        return named
    return (*named, Problem("more", file.name, say("{more} more problems like these.", more=more)))
