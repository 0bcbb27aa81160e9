"""The statistics of a pair on a GPU, through PyTorch, which only this package imports.

Counts, histograms, extremes with their positions, minima and maxima are exactly those of the
compiled engine, on every device. Sums (moments, co-moments, energies along the axes) agree to 1e-12
of what was summed: they are taken in float64 too, but in another order. A pair is worked off in
stretches at fixed places, so that on one device neither cuts nor batches change a bit.
"""
