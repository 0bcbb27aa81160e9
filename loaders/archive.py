"""Zip archives that hold tensors: where each member lies, checked, without unpacking any."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

from language import say
from loaders.file_bytes import FileBytes, bytes_at
from loaders.names import escaped
from loaders.part import DumpFile, RefusedError

SIGNATURE = b"PK\x03\x04"

_END = struct.Struct("<4s4H2IH")
_END64_AT = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCAL = struct.Struct("<4s5H3I2H")
_LONGEST_COMMENT = 1 << 16
_NO_MEMBERS = b"PK\x05\x06"
_ENCRYPTED = 1


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive: its bytes lie at `offset`, `stored` of them, `size` when inflated."""

    name: str
    where: str
    offset: int
    stored: int
    size: int
    deflated: bool
    checksum: int  # CRC-32 of the inflated bytes
    mode: int = 0  # of the file, as Unix has it; 0 where the archive says nothing


def members_of(bytes_: FileBytes) -> tuple[dict[str, Member], list[RefusedError]]:
    """Members by name in the archive's order, and those refused; RefusedError if it is no archive.

    Refused are members that are encrypted, packed by other means than deflate, declared larger
    than deflate can explain, twice there, outside the file or on top of each other.
    """
    members: dict[str, Member] = {}
    refused: list[RefusedError] = []
    with bytes_.opened() as descriptor:
        infos = _directory(descriptor, bytes_)
        end = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            try:
                member = _member(descriptor, bytes_, info)
                _refuse(member, info, members, end, bytes_.file)
            except RefusedError as refusal:
                refused.append(refusal)
            else:
                members[member.name] = member
                end = member.offset + member.stored
    order = {info.filename: number for number, info in enumerate(infos)}
    return dict(sorted(members.items(), key=lambda item: order[item[0]])), refused


def _directory(descriptor: int, bytes_: FileBytes) -> list[zipfile.ZipInfo]:
    """The members as the archive's directory lists them, unchecked."""
    file = bytes_.file
    if bytes_.size >= len(SIGNATURE):
        start = bytes_at(descriptor, 0, len(SIGNATURE), bytes_)
        if start not in (SIGNATURE, _NO_MEMBERS):
            raise RefusedError("unknown-format", file.name, say("it is no zip archive."))
    _refuse_long_directory(descriptor, bytes_)
    try:
        with os.fdopen(os.dup(descriptor), "rb") as stream, zipfile.ZipFile(stream) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error) as error:
        raise RefusedError(
            "damaged", file.name, say("its directory: {error}.", error=error)
        ) from error


def _refuse_long_directory(descriptor: int, bytes_: FileBytes) -> None:
    """Refuse, before it is read, a directory of more members than any dump has."""
    tail_at = max(0, bytes_.size - _END.size - _LONGEST_COMMENT)
    tail = bytes_at(descriptor, tail_at, bytes_.size - tail_at, bytes_)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        reason = say("an archive without its directory, which stands at the end.")
        raise RefusedError("truncated", bytes_.file.name, reason, say("Copy the file again."))
    _, _, _, _, count, nbytes, _, _ = _END.unpack_from(tail, at)
    if at >= _END64_AT.size and tail[at - _END64_AT.size :].startswith(b"PK\x06\x07"):
        _, _, end64_at, _ = _END64_AT.unpack_from(tail, at - _END64_AT.size)
        if end64_at + _END64.size > bytes_.size:
            raise RefusedError(
                "damaged", bytes_.file.name, say("its directory lies outside the file.")
            )
        end64 = _END64.unpack(bytes_at(descriptor, end64_at, _END64.size, bytes_))
        count, nbytes = end64[7], end64[8]
    limits = bytes_.file.limits
    if max(count, nbytes // 46) > limits.objects or nbytes > limits.document:
        raise RefusedError(
            "objects", bytes_.file.name, say("it lists {count} members.", count=count)
        )


def _member(descriptor: int, bytes_: FileBytes, info: zipfile.ZipInfo) -> Member:
    name = info.filename
    where = f"{bytes_.file.name}: {escaped(name.encode('utf-8', 'surrogateescape'))}"
    if info.header_offset < 0 or info.header_offset + _LOCAL.size > bytes_.size:
        raise RefusedError("truncated", where, say("it lies beyond the end of the file."))
    head = _LOCAL.unpack(bytes_at(descriptor, info.header_offset, _LOCAL.size, bytes_))
    if head[0] != SIGNATURE:
        raise RefusedError("damaged", where, say("the directory points to something else."))
    offset = info.header_offset + _LOCAL.size + head[9] + head[10]
    if offset + info.compress_size > bytes_.size:
        raise RefusedError("truncated", where, say("it lies beyond the end of the file."))
    deflated = info.compress_type == zipfile.ZIP_DEFLATED
    sizes, mode = (info.compress_size, info.file_size), info.external_attr >> 16
    return Member(name, where, offset, *sizes, deflated, info.CRC, mode)


def _refuse(
    member: Member, info: zipfile.ZipInfo, known: Mapping[str, Member], end: int, file: DumpFile
) -> None:
    limits, where = file.limits, member.where
    if info.flag_bits & _ENCRYPTED:
        raise RefusedError("filter", where, say("it is encrypted."))
    if not member.deflated and info.compress_type != zipfile.ZIP_STORED:
        raise RefusedError("filter", where, say("it is packed in a way that is not known here."))
    if not member.deflated and member.stored != member.size:
        raise RefusedError("damaged", where, say("its two sizes contradict each other."))
    if len(member.name) > limits.name:
        raise RefusedError("name", where[:200], say("its name is too long."))
    if member.size > limits.ratio_from and member.size > limits.ratio * member.stored:
        reason = say(
            "it declares {size} bytes and stores {stored}.", size=member.size, stored=member.stored
        )
        raise RefusedError("ratio", where, reason)
    if member.name in known:
        raise RefusedError("alias", where, say("the archive has two members of this name."))
    if info.header_offset < end:
        raise RefusedError("overlap", where, say("it lies on top of another member."))
