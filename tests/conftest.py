"""Hypothesis profiles: `quick` unless HYPOTHESIS_PROFILE says `thorough`."""

import os

from hypothesis import HealthCheck, settings

_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=30, derandomize=True, **_PATIENT)
settings.register_profile("thorough", max_examples=1000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
