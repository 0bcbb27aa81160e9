"""Work cut by bytes: large tensors into pieces, small ones gathered, so that both scale."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.comparison import Tolerance
from core.runs import Run, nbytes
from metrics import CPU

# Statistics and content digests of a tensor are those of its pieces put together in order, whoever
# measured them: another size would give other digests. A multiple of the engine's segments.
PIECE = 1 << 25  # elements
BATCH_BYTES = 128 << 20  # of both sides; drowns the cost of a task and is soon measured again
BATCH_TENSORS = 256

Piece = tuple[int, int]  # number of the subject, number of the piece in it


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured as one: a pair, or a tensor of one side of which only the digest is taken.

    The absent side's id is None; so is the tolerance where nothing is compared.
    """

    reference: str | None
    candidate: str | None
    tolerance: Tolerance | None


@dataclass(frozen=True, slots=True)
class Task:
    """Pieces `first` to before `end` of a subject; `number` is its place among the subjects."""

    number: int
    subject: Subject
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks with all that a worker anywhere needs to do them: runs of these tensors alone."""

    reference: Run
    candidate: Run
    tasks: tuple[Task, ...]
    nbytes: int
    threads: int
    device: str


def pieces_of(size: int) -> int:
    """How many pieces a tensor of so many elements has; an empty one has one."""
    return max(1, -(-size // PIECE))


def batches(
    runs: tuple[Run, Run],
    subjects: Sequence[Subject],
    *,
    known: Collection[Piece] = (),
    threads: int = 1,
    device: str = CPU,
) -> Iterator[Batch]:
    """All pieces that are not `known` yet, in order; `threads` may work on each batch."""
    held: list[Task] = []
    total = 0
    for task in _tasks(runs, subjects, known):
        held.append(task)
        total += task_bytes(runs, task)
        if total >= BATCH_BYTES or len(held) == BATCH_TENSORS:
            yield Batch(*_only(runs, held), tuple(held), total, threads, device)
            held, total = [], 0
    if held:
        yield Batch(*_only(runs, held), tuple(held), total, threads, device)


def task_bytes(runs: tuple[Run, Run], task: Task) -> int:
    """Bytes of both sides as stored."""
    return sum(_side_bytes(run, name, task) for run, name in sides_of(runs, task.subject))


def _side_bytes(run: Run, name: str, task: Task) -> int:
    tensor = run.tensors[name]
    if task.first == 0 and task.end * PIECE >= tensor.size:
        return nbytes(tensor)
    unit = nbytes(tensor) // tensor.size
    return (min(task.end * PIECE, tensor.size) - task.first * PIECE) * unit


def sides_of(runs: tuple[Run, Run], subject: Subject) -> Iterator[tuple[Run, str]]:
    """The run and the tensor's id of each side that a subject has."""
    for run, name in zip(runs, (subject.reference, subject.candidate), strict=True):
        if name is not None:
            yield run, name


def _tasks(
    runs: tuple[Run, Run], subjects: Sequence[Subject], known: Collection[Piece]
) -> Iterator[Task]:
    for number, subject in enumerate(subjects):
        sides = [(run, run.tensors[name]) for run, name in sides_of(runs, subject)]
        count = pieces_of(sides[0][1].size)
        wanted = [k for k in range(count) if (number, k) not in known]
        if count == 1 or all(run.values.is_seekable(tensor) for run, tensor in sides):
            yield from (Task(number, subject, k, k + 1) for k in wanted)
        elif wanted:  # read in one go, lest each piece begins at the beginning
            yield Task(number, subject, wanted[0], count)


def _only(runs: tuple[Run, Run], tasks: Sequence[Task]) -> tuple[Run, Run]:
    """Both runs with the tensors of the tasks alone."""
    names: Mapping[int, dict[str, None]] = {0: {}, 1: {}}
    for task, side in itertools.product(tasks, (0, 1)):
        name = (task.subject.reference, task.subject.candidate)[side]
        if name is not None:
            names[side][name] = None
    reference, candidate = (run.only(names[side]) for side, run in enumerate(runs))
    return reference, candidate
