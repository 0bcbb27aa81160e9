"""Which tensor of the candidate is which tensor of the reference, and how we know."""

from analysis.matching.cascade import Matching, match
from analysis.matching.mapping import mapping_from_text, mapping_rows, mapping_text
from analysis.matching.sides import picked

__all__ = ["Matching", "mapping_from_text", "mapping_rows", "mapping_text", "match", "picked"]
