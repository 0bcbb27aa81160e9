"""The order in which datasets were written, when no group recorded it: from where things lie."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from loaders.hdf5.datasets import Dataset
from loaders.hdf5.walk import Contents


def in_written_order(contents: Contents, datasets: Iterable[Dataset]) -> list[Dataset]:
    """Datasets of one group as the group recorded it; else inferred from addresses in the file.

    A file grows as it is written, so headers lie in the order of creation. In the old layout
    (superblock 0 and 1, what h5py writes by default) a later object may also fill a gap: the name
    table of a group leaves one each time it doubles, filled by runs of headers, and values leave
    smaller ones. Nothing can lie beyond the end the file had at its time, so what lies far back
    in one respect and further on in the other was written at the later of the two. Measured with
    2000 datasets: headers alone misplace runs of hundreds, this a few single ones.
    """
    found = list(datasets)
    if all(each.place.tracked for each in found):
        return found
    found.sort(key=lambda each: each.address)
    if contents.superblock >= 2:
        return found
    return [found[position] for position in corrected(_values_addresses(found))]


def _values_addresses(by_header: Sequence[Dataset]) -> list[int]:
    """Where each one's values begin; what has none goes with the header before it."""
    addresses: list[int] = []
    for each in by_header:
        previous = addresses[-1] if addresses else -1
        addresses.append(previous if each.values_at is None else each.values_at)
    return addresses


def corrected(addresses: Sequence[int]) -> list[int]:
    """Positions in header order, rearranged where the addresses of values say "later".

    The longest ascending run of addresses is taken as right. What is left out of it has filled a
    gap: with its header if its values lie above those before it, then it moves behind all of the
    run that lies below; with its values if not, then it stays behind the header before it.
    """
    steady = _longest_ascending(addresses)
    anchors = [addresses[position] for position in steady]
    keys: list[tuple[int, int, int]] = []  # behind which one of the run, how directly, position
    passed, top = 0, -1
    for position, address in enumerate(addresses):
        if passed < len(steady) and steady[passed] == position:
            keys.append((passed, 0, position))
            passed, top = passed + 1, address
        elif address < top:
            keys.append((keys[-1][0], 1, position))
        else:
            keys.append((bisect.bisect_right(anchors, address) - 1, 1, position))
            top = address
    return sorted(range(len(addresses)), key=keys.__getitem__)


def _longest_ascending(values: Sequence[int]) -> list[int]:
    """Positions of a longest non-descending subsequence (patience sorting)."""
    tails: list[int] = []  # tails[k]: position of the smallest possible end of length k + 1
    ends: list[int] = []
    before: list[int] = []
    for position, value in enumerate(values):
        length = bisect.bisect_right(ends, value)
        before.append(tails[length - 1] if length else -1)
        if length == len(tails):
            tails.append(position)
            ends.append(value)
        else:
            tails[length], ends[length] = position, value
    run = []
    position = tails[-1] if tails else -1
    while position >= 0:
        run.append(position)
        position = before[position]
    return run[::-1]
