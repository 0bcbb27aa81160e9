"""Numbers about a pair of tensors: one pass gives `PairStats`, every metric is a function of it.

Metrics come in families, one module each; importing this package registers them all. The order of
the imports is that of every picker, table and document.
"""

from metrics import error, similarity, bits, nonfinite, range, drift  # noqa: A004, I001, F401
from metrics.pair_stats import CPU, accumulator, pair_stats
from metrics.registry import METRICS, Metric, metric

__all__ = ["CPU", "METRICS", "Metric", "accumulator", "metric", "pair_stats"]
