"""`python -m metrics.document` writes docs/metrics.md from the registry."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from metrics import METRICS, Metric

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"

FAMILIES = {
    "error": "Error",
    "similarity": "Similarity",
    "bits": "Bits and ulps",
    "nonfinite": "Non-finite values",
    "range": "Range of each side",
    "drift": "Drift of the distribution",
}

_PREFACE = """# Metrics

Written by `python -m metrics.document` from the docstrings of `metrics/`; a test compares the two.

Notation: a is the reference, b the candidate, e = b − a the error, n the number of elements finite
on both sides, count the number of all elements. Everything is computed in float64. A metric that
has no value is NaN, never a number made up by an epsilon. Complex tensors count as twice as many
real ones (real and imaginary parts), booleans as 0 and 1; 64-bit integers are compared as integers.
Unit `data` is that of the tensor's own values, `1` a pure ratio. The ideal is what two equal
tensors score; a dash stands where a metric describes one side only.
"""


def document() -> str:
    """The text of docs/metrics.md."""
    families = groupby(METRICS.values(), key=lambda metric: metric.family)
    return _PREFACE + "".join(_family(name, list(metrics)) for name, metrics in families)


def _family(name: str, metrics: list[Metric]) -> str:
    return f"\n## {FAMILIES.get(name, name)}\n" + "".join(_entry(metric) for metric in metrics)


def _entry(metric: Metric) -> str:
    title, _, details = metric.help.partition("\n\n")
    ideal = "–" if metric.ideal is None else f"{metric.ideal:g}"
    facts = f"`{metric.name}` · unit {metric.unit} · ideal {ideal}"
    items = _joined(details.splitlines())
    return f"\n### {metric.label}\n\n{facts}\n\n{title}\n\n" + "".join(f"- {i}\n" for i in items)


def _joined(lines: list[str]) -> list[str]:
    """One item for each `Label: …`, its continuation lines joined to it."""
    items: list[str] = []
    for line in lines:
        head = line.partition(":")[0]
        if head in ("Formula", "Range", "NaN", "Blind to", "Source"):
            items.append(line)
        else:
            items[-1] += f" {line}"
    return items


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
