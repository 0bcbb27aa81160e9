"""Measurements, always as a ratio against a reference taken in the same run."""
