"""Integers of up to 64 bits on a device: patterns in int64, signed or not."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_SIGN = -(1 << 63)
_REST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Wholes:
    """Integers as int64; with `unsigned`, negative patterns stand for 2^63 and more."""

    patterns: torch.Tensor
    unsigned: bool

    @property
    def negative(self) -> torch.Tensor:
        """Which are below zero."""
        return (
            torch.zeros_like(self.patterns, dtype=torch.bool)
            if self.unsigned
            else self.patterns < 0
        )

    @property
    def magnitudes(self) -> torch.Tensor:
        """Absolute values as unsigned patterns."""
        return torch.where(self.negative, -self.patterns, self.patterns)

    def at(self, where: torch.Tensor) -> Wholes:
        """Those at a mask."""
        return Wholes(self.patterns[where], self.unsigned)


def sortable(patterns: torch.Tensor) -> torch.Tensor:
    """Signed numbers in the order of unsigned patterns."""
    return patterns ^ _SIGN


def apart(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """|b - a| of signed numbers as an unsigned pattern; wrapping around loses nothing."""
    return torch.maximum(a, b) - torch.minimum(a, b)


def distance(a: Wholes, b: Wholes) -> torch.Tensor:
    """|b - a| as an unsigned pattern: exact, and capped at 2^64 - 1."""
    x, y = a.magnitudes, b.magnitudes
    total = x + y
    total = torch.where(sortable(total) < sortable(x), -1, total)
    return torch.where(a.negative != b.negative, total, apart(sortable(x), sortable(y)))


def is_less(a: Wholes, b: Wholes) -> torch.Tensor:
    """Whether a < b."""
    x, y = sortable(a.magnitudes), sortable(b.magnitudes)
    alike = torch.where(a.negative, y < x, x < y)
    return torch.where(a.negative == b.negative, alike, a.negative)


def floats(patterns: torch.Tensor, *, unsigned: bool) -> torch.Tensor:
    """Nearest float64, ties to even; above 2^63 the lowest bit stands for those shifted out."""
    if not unsigned:
        return patterns.to(torch.float64)
    halved = ((patterns >> 1) & _REST) | (patterns & 1)
    return torch.where(patterns < 0, halved.to(torch.float64) * 2, patterns.to(torch.float64))
