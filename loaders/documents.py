"""JSON texts of a dump, read within bounds."""

from __future__ import annotations

import json
from typing import Any

from language import say
from loaders.file_bytes import FileBytes, bytes_at
from loaders.part import DumpFile, RefusedError


def read_json(file: DumpFile) -> Any:
    """The value of a JSON file; NaN, Infinity and -Infinity are taken, as Python writes them."""
    bytes_ = FileBytes.of(file)
    if bytes_.size > file.limits.document:
        raise RefusedError(
            "objects", file.name, say("it is a JSON text of {size} bytes.", size=bytes_.size)
        )
    with bytes_.opened() as descriptor:
        text = bytes_at(descriptor, 0, bytes_.size, bytes_)
    return parsed_json(text, file)


def parsed_json(text: bytes, file: DumpFile) -> Any:
    """The value of a JSON text that came from a file."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise RefusedError("depth", file.name, say("its values are nested too deep.")) from error
    except ValueError as error:
        whole = text.rstrip().endswith((b"}", b"]"))
        code, reason = (
            ("damaged", f"{error}.") if whole else ("truncated", say("it ends too early."))
        )
        raise RefusedError(code, file.name, reason) from error
