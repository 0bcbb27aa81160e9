"""What can go wrong while recording, in words the user can act on."""

from __future__ import annotations


class RecordError(Exception):
    """Nothing useful can be recorded: the message says what and where, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class RecorderWarning(UserWarning):
    """The dump is less complete than one would expect; the run itself is untouched."""
