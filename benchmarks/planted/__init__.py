"""Pairs of runs whose answer is known: honest ones, and ones with a planted fault.

Some come from the casebook's tiny model beside the checkout (`tiny_*`, only where it is present),
the others from real torch kernels (`torch_*`). `python -m benchmarks.planted FOLDER` writes them.
"""
