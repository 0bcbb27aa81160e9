"""Reports over HTTP: what the page Report previews and offers for download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

import language
import report
from api.answers import told
from core.errors import ExplorerError, NotHereError
from core.findings import Diagnosis
from language import say
from report.printing import pdf
from store.workspace import Workspace

MOST = 10_000  # largest errors that a report may list
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_KINDS: Mapping[str, tuple[str, Callable[[report.Report], Any]]] = {
    "html": ("text/html; charset=utf-8", report.page),
    "md": ("text/markdown; charset=utf-8", report.markdown),
    "xlsx": (_XLSX, report.workbook),
    "pdf": ("application/pdf", lambda document: pdf(report.page(document))),
}
# The document is a page of its own: sandboxed, so that nothing in it can act on this server.
_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
)


class Reports:
    """Handlers that make a report of a comparison that is kept."""

    def __init__(self, served: Callable[[], Workspace]) -> None:
        self._served = served

    @told
    async def report(self, request: Request) -> Response:
        """`report.html|md|xlsx|pdf`, by `names=redacted`, `worst=40`, `lang=zh`, `save=1`."""
        kind = request.path_params["kind"]
        if kind not in _KINDS:
            raise NotHereError(
                say("There is no report as {kind!r}.", kind=kind),
                say("Known: {kinds}.", kinds=", ".join(_KINDS)),
            )
        query = dict(request.query_params)
        return await run_sync(self._made, request.path_params["comparison_id"], kind, query)

    def _made(self, comparison_id: str, kind: str, query: Mapping[str, str]) -> Response:
        language.use(query.get("lang", "en"))
        redactor, document = document_of(self._served(), comparison_id, query)
        mime, write = _KINDS[kind]
        suffix = "-redacted" if redactor else ""
        headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
        if query.get("save") == "1":
            name = f"precision-{comparison_id[:8]}{suffix}.{kind}"
            headers["content-disposition"] = f'attachment; filename="{name}"'
        return Response(write(document), media_type=mime, headers=headers)


def written(document: report.Report, kind: str) -> str | bytes:
    """The document in a format of the list above."""
    made: str | bytes = _KINDS[kind][1](document)
    return made


def document_of(
    workspace: Workspace, comparison_id: str, query: Mapping[str, str]
) -> tuple[report.Redactor | None, report.Report]:
    """The report that a query asks for; ExplorerError for a length that is no number."""
    worst = query.get("worst", "40")
    if not worst.isdecimal() or not 1 <= int(worst) <= MOST:
        raise ExplorerError(
            say("A report cannot list {worst!r} errors.", worst=worst),
            say("Ask for 1 to {most:,} of them.", most=MOST),
        )
    comparison = workspace.comparison(comparison_id)
    redactor = None
    if query.get("names") == "redacted":
        redactor = report.Redactor(workspace.redaction_key(), comparison)
    document = report.build(
        comparison,
        workspace.judgement(comparison_id),
        workspace.table(comparison_id),
        _diagnosis(workspace, comparison_id),
        report.Choices(int(worst), redactor, workspace.annotations(comparison_id)),
    )
    return redactor, document


def _diagnosis(workspace: Workspace, comparison_id: str) -> Diagnosis | None:
    """The findings; a report without them says less but is still one."""
    try:
        return workspace.diagnosis(comparison_id)
    except NotHereError:
        return None
