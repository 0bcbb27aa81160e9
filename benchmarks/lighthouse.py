"""Lighthouse's accessibility score of every page, on a sample: `python -m benchmarks lighthouse`.

The npm package is installed once into a scratch folder outside of the project, and drives the
Chromium of the system. The page Findings is also scored as a presentation.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.row import Row
from benchmarks.served import addresses, sample
from tests.live_server import CHROMIUM, FLAGS

VERSION = "12.8.2"
LEAST = 95
FOLDER = Path(tempfile.gettempdir()) / f"px-lighthouse-{VERSION}"
_WAIT_S = 300


def measure() -> Iterator[Row]:
    """A line a page: the score, and what keeps it from 100."""
    program = installed()
    with sample() as (server, compared):
        for name, address in addresses(compared).items():
            found = report(program, server.url + address)
            score = round(100 * found["categories"]["accessibility"]["score"])
            yield Row(f"accessibility of {name}", str(score), f"bar {LEAST}", _failed(found))


def installed() -> Path:
    """The command-line program, installed now if it is not there."""
    program = FOLDER / "node_modules" / ".bin" / "lighthouse"
    if not program.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "package.json").write_text('{"private": true}')
        package = f"lighthouse@{VERSION}"
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", package], cwd=FOLDER, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return program


def report(program: Path, address: str) -> Mapping[str, Any]:
    """What Lighthouse says of one address."""
    flags = ["--headless=new", *FLAGS]
    done = subprocess.run(
        [
            str(program), address, "--quiet", "--output=json", "--only-categories=accessibility",
            "--preset=desktop", "--max-wait-for-load=60000", f"--chrome-flags={' '.join(flags)}",
        ],
        check=True, capture_output=True, timeout=_WAIT_S,
        env=os.environ | {"CHROME_PATH": CHROMIUM},
    )  # fmt: skip
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def _failed(found: Mapping[str, Any]) -> str:
    """The audits that were not passed, each with the element it names first."""
    lines = []
    for each in found["categories"]["accessibility"]["auditRefs"]:
        audit = found["audits"][each["id"]]
        if audit["score"] is not None and audit["score"] < 1 and each["weight"]:
            lines.append(f"{each['id']}: {'; '.join(_elements(audit)) or audit['title']}")
    return " | ".join(lines) or "nothing failed"


def _elements(audit: Mapping[str, Any], most: int = 2) -> Sequence[str]:
    items = audit.get("details", {}).get("items", [])
    nodes = [item.get("node", {}).get("selector", "") for item in items]
    return [f"{len(items)} ×", *nodes[:most]] if items else []
