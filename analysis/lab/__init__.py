"""What a tensor would lose in a number format: the format lab."""

from analysis.lab.grids import IDEAL, GridFit
from analysis.lab.losses import Loss, lab, recommended, steps
from analysis.lab.schemes import SCHEMES, Scheme

__all__ = ["IDEAL", "SCHEMES", "GridFit", "Loss", "Scheme", "lab", "recommended", "steps"]
