"""A server of its own and a headless browser, for measurements of what a user waits for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from playwright.sync_api import Page, sync_playwright

from benchmarks.row import ROOT

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"


class Server:
    """The product on a free port with a workspace in `folder`."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder

    def __enter__(self) -> Self:
        flags = ["--server.port", str(self.port), "--server.headless", "true"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", *flags],
            cwd=ROOT,
            env=os.environ | {"PX_WORKSPACE": str(self.folder / "workspace")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/api/healthz", timeout=1).close()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)

    def rss_mb(self) -> float:
        """Resident memory of the server process itself, without its workers."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(x for x in status.splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


@contextmanager
def browser() -> Iterator[Page]:
    """A page in headless Chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield started.new_page(viewport={"width": 1440, "height": 900})
        started.close()
