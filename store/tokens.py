"""Signed tokens: who may upload, for how long. They outlive a restart, the key is on disk."""

from __future__ import annotations

import hashlib
import hmac
import time

LIFETIME_S = 7 * 24 * 3600  # a big upload over a slow line takes days


def issue(secret: bytes, user: str, *, lifetime_s: int = LIFETIME_S) -> str:
    """A token for a user, valid from now."""
    body = f"{user.encode().hex()}.{int(time.time()) + lifetime_s}"
    return f"{body}.{_signature(secret, body)}"


def user_of(secret: bytes, token: str) -> str | None:
    """Whose token this is; None when it is forged, malformed or too old."""
    body, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_signature(secret, body).encode(), signature.encode()):
        return None
    user, _, expires = body.partition(".")
    return bytes.fromhex(user).decode() if int(expires) > time.time() else None


def _signature(secret: bytes, body: str) -> str:
    return hmac.new(secret, body.encode(), hashlib.sha256).hexdigest()
