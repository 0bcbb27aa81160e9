"""Headers that keep a browser from doing more than the product needs, on every answer."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def content_policy(index_html: str) -> str:
    """Content-Security-Policy for a page whose inline scripts are those of `index_html`.

    `blob:` scripts: browser components arrive over the socket and are imported from blobs; workers
    hash uploads. Inline styles: the page framework writes them. No other origin at all.
    """
    hashes = " ".join(f"'sha256-{_sha256(s)}'" for s in _INLINE_SCRIPT.findall(index_html))
    rules = {
        "default-src": "'self'",
        "script-src": f"'self' blob: {hashes}".strip(),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'self'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


class SecurityHeaders:
    """ASGI middleware: adds the headers, and answers only to the hosts it is known by.

    `hosts` empty: any. A page elsewhere cannot then reach a private server by renaming its own
    host to 127.0.0.1.
    """

    def __init__(self, app: ASGIApp, *, policy: str, hosts: Sequence[str] = ()) -> None:
        self._app, self._hosts = app, tuple(host.lower() for host in hosts)
        self._headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, its answer with the headers added."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)  # an answer may be stricter about itself
            await send(message)

        app = self._app if self._is_known(Headers(scope=scope).get("host", "")) else _REFUSED
        await app(scope, receive, adding)

    def _is_known(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.lower().strip("[]")
        return not self._hosts or any(
            known in ("*", name) or (known.startswith("*.") and name.endswith(known[1:]))
            for known in self._hosts
        )


_REFUSED = PlainTextResponse("This server is not known by that name (server.allowedHosts).\n", 421)


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
