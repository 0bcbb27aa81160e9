"""Operators recomputed in float64 from each run's own dumped inputs."""
