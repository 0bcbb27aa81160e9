"""Crafted files, each with one evil thing beside a good tensor, and a probe that opens them apart.

`python tests/hostile.py FILE…` opens each file in this process and prints one JSON line a file.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

GOOD = np.arange(12, dtype=np.float32).reshape(3, 4)
SECRET = b"TOPSECRET" * 64

Patch = Callable[[Path], None]  # applied to the closed file
Craft = Callable[[h5py.File, Path], Patch | None]
CRAFTED: dict[str, tuple[Craft, str]] = {}


def crafted(code: str) -> Callable[[Craft], Craft]:
    """Enrol a way to spoil a file, with the code of the problem it must become."""

    def enrol(craft: Craft) -> Craft:
        CRAFTED[craft.__name__] = craft, code
        return craft

    return enrol


def write(folder: Path, name: str) -> Path:
    """The crafted file of that name: a good tensor, and the evil thing."""
    path = folder / f"{name}.h5"
    with h5py.File(path, "w") as file:
        file["a_good"] = GOOD
        patch = CRAFTED[name][0](file, folder)
        file["z_good"] = GOOD + 1
    if patch is not None:
        patch(path)
    return path


def secrets(folder: Path) -> Path:
    """A text file and an HDF5 file beside the dump that no dump may hand out."""
    (folder / "secret.txt").write_bytes(SECRET)
    path = folder / "secret.bin"  # HDF5, but not called so: it is no part of the dump
    with h5py.File(path, "w") as file:
        file["s"] = np.arange(10.0)
    return path


@crafted("external-link")
def external_link(file: h5py.File, folder: Path) -> None:
    file["x"] = h5py.ExternalLink(str(folder / "secret.bin"), "/s")


@crafted("external-storage")
def external_storage(file: h5py.File, folder: Path) -> None:
    secret = (str(folder / "secret.txt"), 0, h5py.h5f.UNLIMITED)
    file.create_dataset("x", (64,), "u1", external=[secret])


@crafted("virtual")
def virtual_dataset(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((10,), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "secret.bin"), "s", (10,))
    file.create_virtual_dataset("x", layout)


@crafted("soft-link")
def soft_loop(file: h5py.File, _: Path) -> None:
    file["x"] = h5py.SoftLink("/y")
    file["y"] = h5py.SoftLink("/x")


@crafted("ratio")
def declared_huge(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", (1 << 40,), "f4")


@crafted("ratio")
def declared_huge_in_chunks(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", (1 << 40,), "f4", chunks=(1 << 20,))[0] = 1


@crafted("chunk-size")
def one_huge_chunk(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (1 << 28,), "f4", chunks=(1 << 28,), compression="gzip")
    x.id.write_direct_chunk((0,), os.urandom(1 << 20))


@crafted("depth")
def deep_groups(file: h5py.File, _: Path) -> None:
    group = file
    for _i in range(3000):
        group = group.create_group("d")
    group["w"] = GOOD


@crafted("alias")
def hard_link_cycle(file: h5py.File, _: Path) -> None:
    group = file.create_group("g/h")
    group["up"] = file["g"]
    group["root"] = file["/"]


@crafted("alias")
def hard_link_alias(file: h5py.File, _: Path) -> None:
    file["b_again"] = file["a_good"]


@crafted("dtype")
def object_references(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", data=[file["a_good"].ref], dtype=h5py.ref_dtype)


@crafted("dtype")
def varying_lengths(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (2,), h5py.vlen_dtype("f4"))
    x[0] = [1, 2]


@crafted("dtype")
def texts(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", data=["a", "b"], dtype=h5py.string_dtype())


@crafted("dtype")
def records(file: h5py.File, _: Path) -> None:
    file["x"] = np.zeros(3, [("a", "f4"), ("b", "i4")])


@crafted("dtype")
def undeclared_opaque(file: h5py.File, _: Path) -> None:
    file["x"] = np.zeros(3, "V2")


@crafted("dtype")
def long_double(file: h5py.File, _: Path) -> None:
    file["x"] = np.zeros(3, np.longdouble)


@crafted("dtype")
def integers_declared_unknown(file: h5py.File, _: Path) -> None:
    file["x"] = np.zeros(3, "u1")
    file["x"].attrs["dtype"] = "float8_of_my_own"


@crafted("name")
def long_name(file: h5py.File, _: Path) -> None:
    file["n" * 5000] = GOOD


@crafted("attributes")
def many_attributes(file: h5py.File, _: Path) -> None:
    file["x"] = GOOD
    for i in range(400):
        file["x"].attrs[f"a{i}"] = i


@crafted("filter")
def unknown_filter(file: h5py.File, _: Path) -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    plist.set_filter(305, h5z.FLAG_OPTIONAL, (1,))
    h5d.create(file.id, b"x", h5t.IEEE_F32LE, h5s.create_simple((10,)), plist)


@crafted("overlap")
def overlapping(file: h5py.File, _: Path) -> Patch:
    """A dataset that claims the bytes of another, as a thousand could to look like terabytes."""
    file["x"] = np.zeros(200_000, "u1")
    file.create_dataset("y", (200_000,), "u1")  # never written: its address is not set
    size = (200_000).to_bytes(8, "little")
    address = file["x"].id.get_offset().to_bytes(8, "little")

    def patch(path: Path) -> None:
        content = path.read_bytes()
        assert content.count(b"\xff" * 8 + size) == 1
        path.write_bytes(content.replace(b"\xff" * 8 + size, address + size))

    return patch


@crafted("inflate")
def inflate_bomb(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (1 << 20,), "u1", chunks=(1 << 20,), compression="gzip")
    deflate = zlib.compressobj(9)
    parts = [deflate.compress(bytes(1 << 24)) for _i in range(64)]  # 1 GiB from 1 MB
    x.id.write_direct_chunk((0,), b"".join(parts) + deflate.flush())


@crafted("checksum")
def short_checksum(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (8,), "u1", chunks=(8,), fletcher32=True)
    x.id.write_direct_chunk((0,), b"abc")


@crafted("checksum")
def wrong_checksum(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (8,), "u1", chunks=(8,), fletcher32=True)
    x.id.write_direct_chunk((0,), bytes(8) + b"\1\2\3\4")


@crafted("chunk-length")
def short_chunk(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (8,), "u1", chunks=(8,), compression="gzip")
    x.id.write_direct_chunk((0,), zlib.compress(b"abc"))


@crafted("chunk")
def damaged_chunk(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (8,), "u1", chunks=(8,), compression="gzip")
    x.id.write_direct_chunk((0,), b"this is no deflate stream")


def overlong(file: h5py.File, **storage: Any) -> None:
    """A dataset of chunks of 4 KiB whose only one holds the compressed 1 MiB of another dataset."""
    source = file.create_dataset("y", data=np.zeros(1 << 20, "u1"), chunks=(1 << 20,), **storage)
    stored = source.id.read_direct_chunk((0,))[1]
    del file["y"]
    x = file.create_dataset("x", (1 << 12,), "u1", chunks=(1 << 12,), **storage)
    x.id.write_direct_chunk((0,), stored)


@crafted("inflate")
def zstandard_bomb(file: h5py.File, _: Path) -> None:
    overlong(file, **hdf5plugin.Zstd())


@crafted("inflate")
def lz4_bomb(file: h5py.File, _: Path) -> None:
    overlong(file, **hdf5plugin.LZ4())


@crafted("inflate")
def blosc_bomb(file: h5py.File, _: Path) -> None:
    overlong(file, **hdf5plugin.Blosc())


@crafted("inflate")
def bitshuffle_bomb(file: h5py.File, _: Path) -> None:
    overlong(file, **hdf5plugin.Bitshuffle())


@crafted("chunk")
def lzf_bomb(file: h5py.File, _: Path) -> None:
    overlong(file, compression="lzf")


@crafted("chunk")
def bitshuffle_beyond_its_chunk(file: h5py.File, _: Path) -> None:
    x = file.create_dataset("x", (1 << 12,), "u1", chunks=(1 << 12,), **hdf5plugin.Bitshuffle())
    sizes = (1 << 12).to_bytes(8, "big") + (1 << 12).to_bytes(4, "big")
    x.id.write_direct_chunk((0,), sizes + (1 << 30).to_bytes(4, "big") + bytes(64))


def probe(path: Path) -> dict[str, Any]:
    """What opening a dump and reading all of it comes to, as JSON values."""
    from core.errors import LoadError
    from loaders import open_run

    try:
        run = open_run(path)
    except LoadError as error:
        return {"error": str(error), "tensors": {}, "problems": [], "failed": {}}
    tensors, failed = {}, {}
    for name in run.tensors:
        try:
            tensors[name] = sum(chunk.size for chunk in run.chunks(name, 1000))
        except LoadError as error:
            failed[name] = getattr(error, "code", str(error))
    problems = [[p.code, p.where, p.message] for p in run.problems]
    return {"error": None, "tensors": tensors, "problems": problems, "failed": failed}


def main() -> None:
    """Probe the files named on the command line under a bound on memory."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for argument in sys.argv[1:]:
        sys.stdout.write(json.dumps({"file": argument, **probe(Path(argument))}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
