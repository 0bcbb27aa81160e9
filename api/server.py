"""What the server needs beside the pages: routes, headers, workers that start and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict

import streamlit as st
from anyio.to_thread import run_sync
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from api.routing import routes
from api.security import SecurityHeaders, content_policy
from store import workspace


class Parts(TypedDict):
    """Arguments of `st.App` beside the script."""

    routes: list[Route]
    middleware: list[Middleware]
    lifespan: Any


def parts(script: str) -> Parts:
    """What to build the ASGI application of a script with, by the settings that stand beside it."""
    # What st.App does too, but only after these parts were made: settings are read in here, and
    # without this `python app.py` from another folder would not find ours.
    if config._main_script_path is None:
        config._main_script_path = script
    # A folder `pages` beside the script would make Streamlit run its files without app.py on the
    # first visit after a start.
    PagesManager.uses_pages_directory = False
    index = Path(st.__file__).parent / "static" / "index.html"
    headers = Middleware(
        SecurityHeaders,
        policy=content_policy(index.read_text(encoding="utf-8")),
        hosts=st.get_option("server.allowedHosts"),
    )
    base = st.get_option("server.baseUrlPath") or ""
    return Parts(routes=routes(base), middleware=[headers], lifespan=serving)


@asynccontextmanager
async def serving(_app: object) -> AsyncIterator[None]:
    """Workers start with the server, before the first visitor, and end with it."""
    served = await run_sync(workspace.default)
    await run_sync(served.warm)
    try:
        yield
    finally:
        await run_sync(served.close)
