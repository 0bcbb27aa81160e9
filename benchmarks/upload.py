"""Server memory while a large dump is uploaded, against the idle server."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.live_server import Server, Visit, chromium
from benchmarks.row import Row

GIGABYTES = 2
FILES = 8


def measure() -> Iterator[Row]:
    """Upload 2 GB of files through the page and watch the server's resident memory."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump"
        _sparse_dump(dump)
        with Server(Path(folder)) as server, chromium() as browser:
            page = Visit(browser, server).page
            page.goto("/")
            zone = page.locator(".st-key-upload-reference section")
            zone.wait_for(timeout=60_000)
            idle = server.rss_mb()
            watch = _Watch(server)
            start = time.perf_counter()
            page.locator(".st-key-upload-reference input[type=file]").set_input_files(dump)
            page.get_by_text("Replace").first.wait_for(timeout=600_000)
            seconds = time.perf_counter() - start
            peak = watch.stop()
    yield Row(
        f"server memory during a {GIGABYTES} GB upload",
        f"peak {peak:.0f} MB, {GIGABYTES * 1000 / seconds:.0f} MB/s",
        f"idle {idle:.0f} MB",
        f"{peak / idle:.2f}",
    )


def _sparse_dump(folder: Path) -> None:
    """Files that are not dumps: what is measured is the way, not what is read at its end."""
    folder.mkdir()
    for n in range(FILES):
        with (folder / f"part{n}.bin").open("wb") as file:
            file.truncate(GIGABYTES * 1_000_000_000 // FILES)


class _Watch:
    """Samples the server's memory until stopped."""

    def __init__(self, server: Server) -> None:
        self.peak = 0.0
        self._server = server
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._done.wait(0.1):
            self.peak = max(self.peak, self._server.rss_mb())

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self.peak
