"""The order in which datasets were written, when no group recorded it: from where things lie."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from loaders.hdf5.datasets import Dataset


def in_written_order(datasets: Iterable[Dataset]) -> list[Dataset]:
    """As the group recorded it; else inferred from the addresses of headers and values.

    A file grows as it is written, so addresses ascend, except that a later object may fill a gap
    left behind earlier: by a growing name table (whole runs of headers) or between values (single
    ones). Nothing can lie beyond the end the file had at its time, so what lies far back in one
    respect and further on in the other was written at the later of the two. Measured with h5py's
    defaults on 2000 datasets: headers alone misplace runs of up to 500, this at most a few.
    """
    found = list(datasets)
    if all(each.place.tracked for each in found):
        return found
    found.sort(key=lambda each: each.address)
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

    The longest ascending run of addresses is taken as right. What is left out of it moves behind
    all smaller addresses of the run if its own is above the run there (its header fills a gap),
    and stays where it is if below (its values fill a gap).
    """
    steady = _longest_ascending(addresses)
    anchors = [addresses[position] for position in steady]
    in_run = set(steady)

    def place(position: int) -> tuple[int, int, int]:
        behind_header = bisect.bisect_left(steady, position)
        if position in in_run:
            return behind_header, 0, position
        behind_values = bisect.bisect_right(anchors, addresses[position]) - 1
        return max(behind_header - 1, behind_values), 1, position

    return sorted(range(len(addresses)), key=place)


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
