"""The statistics engine: one fused pass over a pair, compiled."""
