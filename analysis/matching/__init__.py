"""Which tensor of the candidate is which tensor of the reference, and how we know."""

from analysis.matching.cascade import Matching, match

__all__ = ["Matching", "match"]
