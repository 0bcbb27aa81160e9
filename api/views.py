"""What pages show, for machines."""

from __future__ import annotations

import logging
from collections.abc import Callable

from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from analysis.export import comparison_json
from analysis.export_findings import diagnosis_json
from api.answers import refusal, told
from language import say
from store.workspace import Workspace

_log = logging.getLogger(__name__)


class Views:
    """Handlers that only read."""

    def __init__(self, served: Callable[[], Workspace]) -> None:
        self._served = served

    async def health(self, _request: Request) -> Response:
        """200 when the workspace can be read and written, else 503."""
        try:
            await run_sync(self._check)
        except (OSError, SQLAlchemyError):
            _log.exception(say("the workspace is not usable"))
            return refusal(say("The workspace cannot be read or written."), 503)
        return JSONResponse({"ok": True})

    @told
    async def comparison(self, request: Request) -> Response:
        """The same JSON as `cli.py compare --json` writes."""
        return await run_sync(self._comparison, request.path_params["comparison_id"])

    @told
    async def findings(self, request: Request) -> Response:
        """The same JSON as `cli.py findings --json` writes."""
        return await run_sync(self._findings, request.path_params["comparison_id"])

    def _findings(self, comparison_id: str) -> Response:
        return JSONResponse(diagnosis_json(self._served().diagnosis(comparison_id)))

    def _check(self) -> None:
        self._served().check()

    def _comparison(self, comparison_id: str) -> Response:
        workspace = self._served()
        comparison = workspace.comparison(comparison_id)
        return JSONResponse(comparison_json(comparison, workspace.judgement(comparison_id)))
