"""A client that calls an ASGI application directly: no socket, no extra package."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    def __init__(self, app: Any) -> None:
        self.app = app

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Iterable[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        parts = [body] if isinstance(body, bytes) else list(body)
        return asyncio.run(self._exchange(method, path, parts, headers or {}))

    async def _exchange(
        self, method: str, path: str, parts: list[bytes], headers: Mapping[str, str]
    ) -> Answer:
        named = {"host": "localhost", "content-length": str(sum(map(len, parts))), **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in named.items()],
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
        }
        waiting = [{"type": "http.request", "body": p, "more_body": True} for p in parts]
        waiting.append({"type": "http.request", "body": b"", "more_body": False})
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        head = next(m for m in sent if m["type"] == "http.response.start")
        answered = {k.decode().lower(): v.decode("latin-1") for k, v in head["headers"]}
        content = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
        return Answer(head["status"], answered, content)
