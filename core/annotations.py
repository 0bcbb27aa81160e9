"""What people say about a place of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

Status = Literal["note", "seen", "accepted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A note or a status on a module or a tensor of one comparison.

    `target` is the dotted path of a module or operator, or a tensor id of the reference. An
    accepted deviation says why in `text`, and may say until when it is accepted and where it is
    tracked. `created` is in UTC.
    """

    id: str
    comparison_id: str
    target: str
    status: Status
    text: str
    link: str = ""
    expires: date | None = None
    created: datetime

    def has_expired(self, today: date) -> bool:
        """Whether an acceptance no longer holds."""
        return self.expires is not None and self.expires < today
