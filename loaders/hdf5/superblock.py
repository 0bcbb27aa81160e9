"""The first bytes of an HDF5 file: where it starts and how long it says it is."""

from __future__ import annotations

import os
import struct
from pathlib import Path

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def signature_offset(head: bytes, path: Path) -> int | None:
    """Where the HDF5 signature stands: at 0, or behind a user block of 512 · 2^n bytes."""
    if head.startswith(SIGNATURE):
        return 0
    size, offset = path.stat().st_size, 512
    with path.open("rb", buffering=0) as stream:
        while offset < size:
            if os.pread(stream.fileno(), len(SIGNATURE), offset) == SIGNATURE:
                return offset
            offset *= 2
    return None


def is_hdf5(head: bytes, path: Path) -> bool:
    """Whether the file is HDF5 by its content."""
    return signature_offset(head, path) is not None


def superblock_version(path: Path) -> int:
    """Version of the superblock, 0 to 3; 0 also when there is none."""
    with path.open("rb", buffering=0) as stream:
        start = signature_offset(stream.read(len(SIGNATURE)), path) or 0
        version = os.pread(stream.fileno(), 1, start + len(SIGNATURE))
    return version[0] if version else 0


def stored_end(superblock: bytes) -> int | None:
    """The file length a superblock states, relative to it; None for layouts not known here.

    HDF5 file format specification 3.0, section II.A: versions 0 to 3 with 8-byte offsets.
    """
    if len(superblock) < 64:
        return None
    version = superblock[8]
    offset_size = superblock[13] if version < 2 else superblock[9]
    at = {0: 40, 1: 44, 2: 28, 3: 28}.get(version)
    if at is None or offset_size != 8:
        return None
    return int(struct.unpack_from("<Q", superblock, at)[0])
