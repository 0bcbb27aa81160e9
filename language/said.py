"""Text that remembers how it was made, so that it can be said again in another language."""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Mapping
from typing import Any

from language.catalogue import lookup, lookup_many

# Ways of writing a number that messages use: whoever hands in a kept text may ask for no other.
_SPECS = {"", ",", *(f".{digits}{kind}" for digits in range(10) for kind in "efg%"), "g"}


class Said(str):
    """An English text with the template and the values it was made from.

    It is an ordinary `str` everywhere else: it compares, hashes, prints and pickles as one. Values
    may be Said themselves and are then said again too; of others text and numbers are kept as they
    are, anything else as its text, so that a Said can be stored.
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, values: Mapping[str, Any]) -> Said:
        """The text for a template in the manner of `str.format` with named fields."""
        kept = {name: _kept(value) for name, value in values.items()}
        made = super().__new__(cls, template.format(**kept) if kept else template)
        made.template, made.values = str(template), kept
        return made

    def __str__(self) -> str:
        return self  # also as the text of an exception raised with it

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, Any]]]:
        return Said, (self.template, self.values)


def say(template: str, /, **values: Any) -> Said:
    """A message for people, to be shown by `told`; fields are named: `say("{n} files", n=3)`.

    A template without values is taken as it stands, braces included.
    """
    return Said(template, values)


def say_many(one: str, many: str, number: int, /, **values: Any) -> Said:
    """A message that depends on a number, to be shown by `told`; both forms are templates."""
    return Said(one if number == 1 else many, {"number": number} | values)


def sentences(texts: Iterable[str]) -> str:
    """Whole sentences one after another; empty ones are left out."""
    return _strung(texts, say("{first} {then}"))


def listing(texts: Iterable[str]) -> str:
    """An enumeration: `a, b, c`; empty ones are left out."""
    return _strung(texts, say("{first}, {then}"))


def restored(template: str, values: Mapping[str, Any]) -> str:
    """What `say` made, from where it was kept; a template that was never ours stays plain text."""
    try:
        fields = list(string.Formatter().parse(template))
        plain = all(
            (name or "").isidentifier() and (spec or "") in _SPECS
            for _, name, spec, _ in fields
            if name is not None
        )
        return Said(template, values) if plain or not values else template
    except (ValueError, KeyError, TypeError):
        return template


def clauses(texts: Iterable[str]) -> str:
    """Parts of one statement: `a; b; c`; empty ones are left out."""
    return _strung(texts, say("{first}; {then}"))


def told(text: str) -> str:
    """A text in the reader's language; what was not made by `say` is looked up as it stands."""
    if not isinstance(text, Said):
        return lookup(text)
    template = lookup(text.template)
    if not text.values:
        return template
    return template.format(**{name: _again(value) for name, value in text.values.items()})


def translated(template: str, /, **values: Any) -> str:
    """A message for people in the reader's language, at once; also of what was said by `say`."""
    if isinstance(template, Said):
        return told(template)
    template = lookup(template)
    return template.format(**_told(values)) if values else template


def translated_many(one: str, many: str, number: int, /, **values: Any) -> str:
    """A message that depends on a number, in the reader's language; both forms are templates."""
    return lookup_many(one, many, number).format(**{"number": number} | _told(values))


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _again(value) for name, value in values.items()}


def _again(value: Any) -> Any:
    return told(value) if isinstance(value, Said) else value


def _kept(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)


def _strung(texts: Iterable[str], template: str) -> str:
    present = [text for text in texts if text]
    if not present:
        return ""
    return functools.reduce(lambda first, then: say(template, first=first, then=then), present)
