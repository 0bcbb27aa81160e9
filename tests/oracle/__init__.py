"""The statistics of a pair in plain NumPy and float64: compiled kernels must agree with it."""

from oracle.pair_stats import pair_stats

__all__ = ["pair_stats"]
