"""A report as PDF, printed by a browser without a window from the HTML."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from core.errors import ExplorerError
from language import say

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 60
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run",
    "--no-pdf-header-footer", "--run-all-compositor-stages-before-draw",
    "--virtual-time-budget=5000", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


def pdf(html: str) -> bytes:
    """The pages as PDF. Raises ExplorerError without a browser or when it does not finish.

    The browser runs in an empty profile, resolves no host, and is ended after a minute.
    """
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise ExplorerError(
            say("This server has no browser to print with."),
            say("Install chromium, or download the HTML and print it from your own browser."),
        )
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(html, encoding="utf-8")
        command = [
            browser, *_OPTIONS, f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={made}", source.as_uri(),
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
            return made.read_bytes()
        except (subprocess.SubprocessError, OSError) as error:
            raise ExplorerError(
                say("The browser did not print the report."),
                say("Download the HTML and print it from your own browser."),
            ) from error
