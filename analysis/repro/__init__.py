"""One operator call as a parcel for whoever owns the kernel: values, exact answer, a script."""

from analysis.repro.bundle import bundle

__all__ = ["bundle"]
