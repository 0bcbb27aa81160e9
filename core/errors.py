"""What can go wrong in a way the user can fix. Anything else is a bug and crashes."""

from __future__ import annotations

from language import sentences


class ExplorerError(Exception):
    """Something the user can fix: the message says what and where, `hint` what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return sentences((self.message, self.hint))

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.message, self.hint)  # crosses process boundaries whole


class LoadError(ExplorerError):
    """A dump, or one item of it, cannot be read or must not be read."""


class SelectionError(ExplorerError):
    """A selection such as `0, 2:5` cannot be understood or does not fit the tensor."""


class NotHereError(ExplorerError):
    """A link or a command names something this server does not have."""


class CompareError(ExplorerError):
    """Two runs cannot be compared at all, for example because one of them is empty."""


class UploadError(ExplorerError):
    """An upload was refused: its manifest, its size or its token."""
