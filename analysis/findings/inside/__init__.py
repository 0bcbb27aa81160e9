"""The insides of operators whose faults lie within: attention, rotation, norm, product.

The replay registry gives an operator's outputs; detectors must change what happens in between.
Every model here is checked against the replayed output before it is used.
"""
