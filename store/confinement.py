"""Take from the current process what it does not need: files, network, memory.

A dump may be crafted to make its reader open other files or run foreign code. A confined process
reads only what it was given, writes only in two folders of the workspace and has no network.
Landlock and seccomp come with the Linux kernel; without them the limits still hold.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # equal on all architectures
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_READ = _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/local/lib", "/etc/ld.so.cache", "/dev/urandom"),
    *("/etc/localtime", "/usr/share/zoneinfo", "/proc/self", "/proc/cpuinfo", "/proc/meminfo"),
    "/sys/devices/system/cpu",
)
# (audit architecture, number of the system call `socket`)
_SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a worker may touch. `nbytes` bounds its private memory; mapped files do not count."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    private: str  # never readable but through the two above: the workspace
    nbytes: int


def confine(bounds: Bounds) -> None:
    """Confine the calling process for good. Call it before any thread is started."""
    # Memory maps of big dumps are address space without being memory, hence not RLIMIT_AS.
    resource.setrlimit(resource.RLIMIT_DATA, (bounds.nbytes, bounds.nbytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    if landlock_version() >= 1:
        code = [path for entry in sys.path for path in _code_below(entry, bounds.private)]
        _landlock(
            readable=[*_SYSTEM, *code, *bounds.readable],
            listable=[entry for entry in sys.path if entry],
            writable=[*bounds.writable, "/dev/null"],
        )
    _forbid_sockets()


def landlock_version() -> int:
    """Version of the kernel's Landlock; 0 or less where it has none."""
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def _code_below(entry: str, private: str) -> Iterable[str]:
    """The parts of an import path that hold code; a workspace or secrets beside it stay closed."""
    folder = Path(entry).resolve()
    if not folder.is_dir():
        return [entry] if entry and folder.exists() else []
    if "site-packages" in folder.parts or folder.is_relative_to(sysconfig.get_path("stdlib")):
        return [entry]
    return [
        str(path)
        for path in folder.iterdir()
        if not path.name.startswith(".")
        and not Path(private).is_relative_to(path)
        and (path.is_dir() or path.suffix == ".py")
    ]


def _landlock(*, readable: Sequence[str], listable: Sequence[str], writable: Sequence[str]) -> None:
    version = landlock_version()
    files = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, _TRUNCATE), (5, 1 << 15)):
        files |= right if version >= since else 0
    network = 3 if version >= 4 else 0  # bind and connect TCP
    scoped = 3 if version >= 6 else 0  # abstract sockets, signals to others
    known = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("QQQ", files, network, scoped)[:known]
    ruleset = _checked(_CREATE_RULESET, attributes, ctypes.c_size_t(known), ctypes.c_uint32(0))
    try:
        for rights, paths in (
            (_READ, readable),
            (_READ_DIR, listable),
            (files & ~_EXECUTE, writable),
        ):
            for path in paths:
                _allow(ruleset, path, rights)
        _checked(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # what is not there needs no permission
    try:
        rights = rights if Path(path).is_dir() else rights & _FILE_RIGHTS
        if rights:
            _checked(
                _ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, descriptor), ctypes.c_uint32(0)
            )
    finally:
        os.close(descriptor)


def _checked(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock call {number} failed: {os.strerror(code)}")
    return result


def _forbid_sockets() -> None:
    """Let `socket` fail with EPERM (a seccomp filter); Landlock alone leaves UDP open."""
    if platform.machine() not in _SOCKET_CALL:
        return
    architecture, call = _SOCKET_CALL[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, architecture),
        (give, 0, 0, kill),
        (load, 0, 0, 0),  # the number of the call
        (0x54, 0, 0, 0xBFFFFFFF),  # without the bit that marks the x32 variant
        (equal, 0, 1, call),
        (give, 0, 0, refuse),
        (give, 0, 0, allow),
    ]
    packed = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(packed)
    header = struct.pack("HL", len(program), ctypes.addressof(buffer))
    if _libc.prctl(_SET_SECCOMP, _FILTER, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the system call filter was refused")
