"""Which languages there are, which one is spoken now, and what a message is in it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path

from babel.messages.pofile import read_po

# Code in the address -> name in the language itself; the first is what the code is written in.
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "简体中文"}
LOCALES: Mapping[str, str] = {"en": "en", "zh": "zh_CN"}
FOLDER = Path(__file__).parent / "locales"

_spoken: ContextVar[str] = ContextVar("language", default="en")


def use(code: str) -> None:
    """Speak this language from here on in this thread or task; an unknown code means English."""
    _spoken.set(code if code in LANGUAGES else "en")


def current() -> str:
    """Code of the language spoken now."""
    return _spoken.get()


def lookup(message: str) -> str:
    """The message in the language spoken now; itself where there is no translation."""
    return _messages(current()).get(message, message)


def lookup_many(one: str, many: str, number: int) -> str:
    """The form of a message for a number, in the language spoken now."""
    found = _messages(current()).get(one)
    if found is not None:
        return found  # Chinese has one form; a language with more needs its plural rule here
    return one if number == 1 else many


@functools.cache
def _messages(code: str) -> Mapping[str, str]:
    path = FOLDER / f"{LOCALES[code]}.po"
    if not path.exists():
        return {}
    with path.open("rb") as file:
        catalogue = read_po(file, locale=LOCALES[code])
    found: dict[str, str] = {}
    for message in catalogue:
        keys = message.id if isinstance(message.id, tuple | list) else (message.id,)
        text = message.string[0] if isinstance(message.string, tuple | list) else message.string
        found |= {key: text for key in keys if key and text}
    return found
