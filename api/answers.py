"""Errors as answers: one JSON shape for all routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import language
from core.errors import ExplorerError, NotHereError
from store.manifest import UploadTooLargeError

LANGUAGE = "x-px-language"  # header of a request whose answer a page will show
Handler = Callable[[Request], Awaitable[Response]]
S = TypeVar("S")

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotHereError, 404),
    (UploadTooLargeError, 413),
    (ExplorerError, 400),
)


def refusal(message: str, status: int, *, hint: str = "") -> JSONResponse:
    """An answer that says what is wrong and what to do, in English unless a page asked."""
    return JSONResponse({"error": language.told(message), "hint": language.told(hint)}, status)


def told(
    handler: Callable[[S, Request], Awaitable[Response]],
) -> Callable[[S, Request], Awaitable[Response]]:
    """Answer with the errors of the ExplorerError family instead of failing with them."""

    @wraps(handler)
    async def answering(self: S, request: Request) -> Response:
        language.use(request.headers.get(LANGUAGE, "en"))
        try:
            return await handler(self, request)
        except ExplorerError as error:
            status = next(code for kind, code in _STATUS if isinstance(error, kind))
            return refusal(error.message, status, hint=error.hint)

    return answering
