"""Records what a model computes."""
