"""A real server on a port of its own, and a real browser, for tests and measurements."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
# Streamlit asks for these beside each deep link and takes "no" for an answer.
HARMLESS = ("_stcore/health", "_stcore/host-config")


class Server:
    """`script` served with a workspace in `folder`; can be killed and started again."""

    def __init__(self, folder: Path, script: Path = ROOT / "app.py", **environment: str) -> None:
        self.folder, self.script, self.environment = folder, script, environment
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def workspace(self) -> Path:
        """Where it keeps runs and comparisons."""
        return self.folder / "workspace"

    def start(self) -> None:
        """Start and wait until it answers."""
        own = {"PYTHONPATH": str(ROOT), "PX_WORKSPACE": str(self.workspace), "TZ": "UTC"}
        environment = os.environ | own | self.environment
        flags = ["--server.port", str(self.port), "--server.address", "127.0.0.1"]
        flags += ["--server.headless", "true", "--server.fileWatcherType", "none"]
        flags += ["--browser.gatherUsageStats", "false"]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", str(self.script), *flags],
                cwd=self.script.parent,
                env=environment,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + 90
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/api/healthz", timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """A power cut and a new start on the same port and workspace."""
        self.kill()
        self.start()

    def cpu_s(self) -> float:
        """Processor time of the server process so far, without its workers."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """Resident memory of the server process itself, without its workers."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(x for x in status.splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """One person's browser: a context with a page that remembers errors and foreign requests."""

    def __init__(self, browser: Browser, server: Server, **context: object) -> None:
        options = {"viewport": {"width": 1440, "height": 900}} | context
        self.context = browser.new_context(base_url=server.url, **options)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._hear)
        self.context.route("**/*", self._watch)
        self._home = server.url

    def _hear(self, message: object) -> None:
        where = message.location.get("url", "")
        if message.type == "error" and not where.endswith(HARMLESS):
            self.errors.append(f"{message.text} ({where})")

    def _watch(self, route: object) -> None:
        if route.request.url.startswith((self._home, "data:", "blob:")):
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def settle(self) -> None:
        """Wait until the script has run to its end and the frame's keys and links work."""
        self.page.wait_for_selector(
            "html[data-px-frame] [data-testid=stApp][data-test-script-state=notRunning]",
            timeout=60_000,
        )

    def close(self) -> None:
        """Leave; a clean visit had no error and asked nobody else for anything."""
        self.context.close()
        assert self.errors == []
        assert self.foreign == []
