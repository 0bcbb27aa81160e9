"""What is odd about a dump by itself, from descriptions and content digests alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.tensors import TensorInfo

Digests = Mapping[str, str]
Tensors = Sequence[TensorInfo]
Place = tuple[int | None, int | None, int]  # step, rank, call
Boundary = tuple[Place, str, int]  # …, container of the blocks, index of the later block

_MOSTLY = 0.5


def silent_inputs(tensors: Tensors) -> list[str]:
    """Modules whose forward results were captured and whose inputs were not.

    Nothing where that holds for most modules: the dump was made that way.
    """
    made, handed = (
        {t.operator for t in tensors if t.pass_ == "forward" and t.slot == slot}
        for slot in ("output", "input")
    )
    silent = [module for module in dict.fromkeys(t.operator for t in tensors) if module in made]
    silent = [module for module in silent if module not in handed]
    return silent if len(silent) < _MOSTLY * len(made) else []


def layer_gaps(tensors: Tensors) -> list[str]:
    """Repeated blocks that are missing between the first and the last one captured."""
    seen: dict[str, set[int]] = defaultdict(set)
    for module in {t.module for t in tensors}:
        for container, index, _ in block_places(module):
            seen[container].add(index)
    return [
        f"{container}.{index}"
        for container, found in sorted(seen.items())
        for index in range(min(found), max(found))
        if index not in found
    ]


def identical_layers(
    tensors: Tensors, digests: Digests, others: Tensors, other_digests: Digests
) -> list[str]:
    """Module outputs that are bit for bit the same in several blocks, as stale buffers are.

    What the other run has identical too (a rotary table made anew in every block) is meant so, but
    for the outputs of the blocks themselves.
    """
    meant = set(_identical(others, other_digests))
    return [
        f"{container}.{{{', '.join(map(str, indices))}}}{'.' * bool(rest)}{rest}"
        for (container, rest), indices in _identical(tensors, digests).items()
        if not rest or (container, rest) not in meant
    ]


def chain_breaks(
    tensors: Tensors, digests: Digests, others: Tensors, other_digests: Digests
) -> list[str]:
    """Blocks whose input is not what the block before put out, in one and the same dump.

    Only where it is in most other places, or at this place in the other run: some models add
    something in between. A break means a buffer that was changed in place or caught too late.
    """
    mine = dict(_boundaries(tensors, digests))
    theirs = {place[1:] for place, whole in _boundaries(others, other_digests) if whole}
    usual = sum(mine.values()) > _MOSTLY * len(mine)
    return [
        f"{container}.{index}"
        for (_, container, index), whole in mine.items()
        if not whole and (usual or (container, index) in theirs)
    ]


def block_places(module: str) -> Iterator[tuple[str, int, str]]:
    """Each number in a path: container, index, and the path inside; `a.3.b` gives (a, 3, b)."""
    segments = module.split(".")
    for n, segment in enumerate(segments):
        if segment.isdecimal() and len(segment) < 7:
            yield ".".join(segments[:n]), int(segment), ".".join(segments[n + 1 :])


def _identical(tensors: Tensors, digests: Digests) -> dict[tuple[str, str], list[int]]:
    """Blocks with equal outputs, by container and path inside."""
    groups: dict[tuple[tuple[str, str], object], set[int]] = defaultdict(set)
    for tensor in _outputs(tensors):
        digest = digests.get(tensor.id)
        if tensor.op or tensor.size < 2 or not _is_known(digest):
            continue
        for container, index, rest in block_places(tensor.module):
            key = (tensor.slot_label, _place(tensor), digest)
            groups[(container, rest), key].add(index)
    return {where: sorted(found) for (where, _), found in groups.items() if len(found) > 1}


@dataclass(slots=True)
class _Block:
    """The first input and the first output of one block."""

    handed: TensorInfo | None = None
    made: TensorInfo | None = None


def _boundaries(tensors: Tensors, digests: Digests) -> Iterator[tuple[Boundary, bool]]:
    """Every two neighbouring blocks, and whether one takes what the other gives."""
    blocks = _block_ends(tensors)
    for (place, container, index), block in blocks.items():
        before = blocks.get((place, container, index - 1), _Block())
        pair = [t for t in (before.made, block.handed) if t is not None]
        hashes = [digests.get(t.id) for t in pair]
        alike = len({(t.shape, t.dtype, t.storage_dtype) for t in pair}) == 1
        if len(pair) == 2 and alike and all(map(_is_known, hashes)):
            yield (place, container, index), hashes[0] == hashes[1]


def _block_ends(tensors: Tensors) -> dict[Boundary, _Block]:
    blocks: dict[Boundary, _Block] = defaultdict(_Block)
    for tensor in tensors:
        if tensor.op or tensor.pass_ != "forward" or tensor.size < 2:
            continue
        for container, index, rest in block_places(tensor.module):
            if not rest and tensor.slot == "input":
                block = blocks[_place(tensor), container, index]
                block.handed = block.handed or tensor
            elif not rest and tensor.slot == "output":
                block = blocks[_place(tensor), container, index]
                block.made = block.made or tensor
    return dict(blocks)


def _outputs(tensors: Tensors) -> Iterable[TensorInfo]:
    return (t for t in tensors if t.pass_ == "forward" and t.slot == "output")


def _place(tensor: TensorInfo) -> Place:
    return tensor.step, tensor.rank, tensor.call


def _is_known(digest: str | None) -> bool:
    return digest not in (None, "", "unreadable")
