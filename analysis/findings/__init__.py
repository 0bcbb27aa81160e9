"""Why an operator is wrong: one detector per mechanism, judged by what each leaves unexplained."""

from analysis.findings.explanation import explain

__all__ = ["explain"]
