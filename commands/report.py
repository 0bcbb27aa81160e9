"""`cli.py report`: a kept comparison as a document."""

from __future__ import annotations

import argparse
from pathlib import Path

import language
from api.reports import document_of, written
from core.errors import ExplorerError
from store import workspace

_KINDS = ("html", "pdf", "md", "xlsx")


def run(arguments: argparse.Namespace) -> int:
    """Write the document; by default `<id>.html` here."""
    out = arguments.out or Path(f"{arguments.comparison}.html")
    kind = out.suffix.removeprefix(".")
    if kind not in _KINDS:
        raise ExplorerError(f"There is no report as {kind!r}.", f"Known: {', '.join(_KINDS)}.")
    language.use(arguments.lang)
    query = {"names": arguments.names, "worst": arguments.worst}
    _, document = document_of(workspace.default(), arguments.comparison, query)
    made = written(document, kind)
    out.write_bytes(made.encode() if isinstance(made, str) else made)
    print(out)
    return 0
