"""Text that remembers how it was made, so that it can be said again in another language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from language.catalogue import lookup, lookup_many


class Said(str):
    """An English text with the template and the values it was made from.

    It is an ordinary `str` everywhere else: it compares, hashes, prints and pickles as one. Values
    may be Said themselves and are then said again too.
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, values: Mapping[str, Any]) -> Said:
        """The text for a template in the manner of `str.format` with named fields."""
        made = super().__new__(cls, template.format(**values) if values else template)
        made.template, made.values = template, dict(values)
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, Any]]]:
        return Said, (self.template, self.values)


def say(template: str, /, **values: Any) -> Said:
    """A message for people, to be shown by `told`; fields are named: `say("{n} files", n=3)`.

    A template without values is taken as it stands, braces included.
    """
    return Said(template, values)


def told(text: str) -> str:
    """A text in the reader's language; what was not made by `say` is looked up as it stands."""
    if not isinstance(text, Said):
        return lookup(text)
    template = lookup(text.template)
    if not text.values:
        return template
    return template.format(**{name: _again(value) for name, value in text.values.items()})


def translated(template: str, /, **values: Any) -> str:
    """A message for people in the reader's language, at once."""
    template = lookup(template)
    return template.format(**values) if values else template


def translated_many(one: str, many: str, number: int, /, **values: Any) -> str:
    """A message that depends on a number, in the reader's language; both forms are templates."""
    return lookup_many(one, many, number).format(number=number, **values)


def _again(value: Any) -> Any:
    return told(value) if isinstance(value, Said) else value
