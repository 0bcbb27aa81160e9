"""The upload protocol: begin, put slices in any order, complete; or cancel.

`POST uploads` with `{"files": [{"path", "size", "mtime"}]}` answers with the slice size, the order
of the files in the stream and the slices that are there already. `PUT uploads/<id>/slices/<n>`
carries the bytes and their BLAKE3 digest. Every request carries the token of its user.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from anyio.to_thread import run_sync
from blake3 import blake3
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from api.answers import refusal, told
from core.errors import UploadError
from language import say
from store.manifest import UploadTooLargeError, manifest
from store.uploads import SLICE, Received, Upload
from store.workspace import Workspace

TOKEN, DIGEST = "x-px-token", "x-px-blake3"
_BLOCK = 1 << 20  # bytes written at once: what an upload costs in memory
_MAX_MANIFEST = 64 << 20


class UploadRoutes:
    """Handlers; what they do on disk happens in threads, the event loop also serves the pages."""

    def __init__(self, served: Callable[[], Workspace]) -> None:
        self._served = served

    @told
    async def begin(self, request: Request) -> Response:
        """Begin an upload, or go on with one of the same files."""
        user = await self._user(request)
        if user is None:
            return _forbidden()
        body = await _limited_body(request)
        try:
            return JSONResponse(await run_sync(self._begun, user, body))
        except OSError as error:
            return _not_written(error)

    @told
    async def put_slice(self, request: Request) -> Response:
        """Take one slice; 422 when its bytes do not have the digest that came with them."""
        user = await self._user(request)
        if user is None:
            return _forbidden()
        upload = await run_sync(self._found, request.path_params["upload_id"], user)
        number = request.path_params["number"]
        if isinstance(upload, Received):
            return Response(status_code=204)
        try:
            digest = await _receive(request, upload, *upload.bounds(number))
        except ClientDisconnect:
            return Response(status_code=400)
        except FileNotFoundError:
            return refusal(say("The upload was cancelled."), 410)
        except OSError as error:
            return _not_written(error)
        if digest != request.headers.get(DIGEST):
            return refusal(
                say("Slice {number} arrived damaged.", number=number),
                422,
                hint=say("Send it again."),
            )
        await run_sync(upload.mark, number)
        return Response(status_code=204)

    @told
    async def complete(self, request: Request) -> Response:
        """Make the upload a run."""
        user = await self._user(request)
        if user is None:
            return _forbidden()
        return await run_sync(self._completed, request.path_params["upload_id"], user)

    @told
    async def cancel(self, request: Request) -> Response:
        """Remove an upload that is on its way."""
        user = await self._user(request)
        if user is None:
            return _forbidden()
        uploads = (await run_sync(self._served)).uploads
        await run_sync(uploads.cancel, request.path_params["upload_id"], user)
        return Response(status_code=204)

    async def _user(self, request: Request) -> str | None:
        workspace = await run_sync(self._served)
        return await run_sync(workspace.token_user, request.headers.get(TOKEN, ""))

    def _begun(self, user: str, body: bytes) -> dict[str, Any]:
        workspace = self._served()
        try:
            files = json.loads(body)["files"]
        except (ValueError, KeyError, TypeError):
            raise UploadError(say("The upload's list of files is malformed.")) from None
        checked = manifest(user, files, max_total=workspace.max_upload)
        begun = workspace.uploads.begin(checked)
        is_complete = isinstance(begun, Received)
        if isinstance(begun, Received):
            workspace.add_upload(begun)
        return {
            "id": checked.id,
            "name": checked.name,
            "slice": SLICE,
            "total": checked.total,
            "order": [entry.path for entry in checked.entries],
            "have": [] if isinstance(begun, Received) else begun.have(),
            "complete": is_complete,
        }

    def _found(self, upload_id: str, user: str) -> Upload | Received:
        return self._served().uploads.find(upload_id, user)

    def _completed(self, upload_id: str, user: str) -> Response:
        workspace = self._served()
        found = workspace.uploads.find(upload_id, user)
        if isinstance(found, Upload):
            missing = found.missing()
            if missing:
                return JSONResponse({"error": "incomplete", "missing": missing[:1000]}, 409)
            found = workspace.uploads.finish(found)
        run = workspace.add_upload(found)
        facts = {"id": run.id, "name": found.name, "files": found.files, "bytes": found.nbytes}
        return JSONResponse(facts)


async def _receive(request: Request, upload: Upload, begin: int, end: int) -> str:
    """Write a request's body into the stream from `begin` to `end`; returns its digest."""
    digest, block, at = blake3(), bytearray(), begin

    def put(offset: int, data: bytearray) -> None:
        digest.update(data)
        upload.write(offset, data)

    async for part in request.stream():
        block += part
        if at + len(block) > end:
            raise UploadError(
                say("More than the {end} bytes of this slice were sent.", end=end - begin)
            )
        if len(block) >= _BLOCK:
            full, block = block, bytearray()
            await run_sync(put, at, full)
            at += len(full)
    if at + len(block) != end:
        raise UploadError(
            say("Fewer than the {end} bytes of this slice were sent.", end=end - begin)
        )
    await run_sync(put, at, block)
    return digest.hexdigest()


async def _limited_body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MAX_MANIFEST:
            raise UploadTooLargeError(
                say("The list of files is too long."), say("Upload fewer files.")
            )
    return bytes(body)


def _forbidden() -> Response:
    return refusal(
        say("The upload token is missing or too old."), 403, hint=say("Reload the page.")
    )


def _not_written(error: OSError) -> Response:
    hint = say("Free some space on the server; the upload then goes on where it stopped.")
    return refusal(
        say("The server cannot write: {strerror}.", strerror=error.strerror), 507, hint=hint
    )
