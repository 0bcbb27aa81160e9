"""How much a file may claim before it is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what an untrusted dump may declare. Sizes in bytes.

    Generous for real dumps, small against what a crafted file of a few kilobytes can declare.
    `ratio` applies from `ratio_from` declared bytes on: deflate cannot compress better than 1030:1.
    """

    files: int = 100_000
    objects: int = 1_000_000  # links of one file
    depth: int = 32  # groups within groups, folders within folders
    name: int = 1024  # one link name
    tensor: int = 64 << 30  # one tensor, uncompressed
    storage_chunk: int = 512 << 20  # one storage chunk, uncompressed
    storage_chunks: int = 4_000_000  # of one file
    ratio: int = 1100
    ratio_from: int = 64 << 20
    attributes: int = 256  # of one object
    attribute: int = 64 << 10
    document: int = 128 << 20  # one JSON or header text, one directory of an archive
    unpacked: int = 256 << 30  # all files of one archive
    problems: int = 1000  # of one file; further ones are counted
