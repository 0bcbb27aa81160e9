"""Why an operator is wrong: one detector per mechanism, judged by what each leaves unexplained."""

import importlib
import pkgutil

from analysis.findings.explanation import explain
from analysis.findings.registry import DETECTORS

# Detectors enrol themselves: a new one is a decorated function in any module of this package.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["DETECTORS", "explain"]
