"""Writes what a model computed, tensor by tensor and in execution order, to HDF5.

`record` follows a PyTorch model; `DumpWriter` writes arrays of any origin in the same format.
Importing this package does not import torch.
"""

from precision_recorder.entries import Entry
from precision_recorder.errors import RecordError, RecorderWarning
from precision_recorder.recording import Recording, record
from precision_recorder.values import Values, values_of
from precision_recorder.writer import DumpWriter

__all__ = [
    "DumpWriter",
    "Entry",
    "RecordError",
    "RecorderWarning",
    "Recording",
    "Values",
    "record",
    "values_of",
]
