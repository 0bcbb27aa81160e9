"""Dates as a language writes them."""

from __future__ import annotations

from datetime import date

from babel.dates import format_skeleton

from language.catalogue import LOCALES, current

# Dates go by the country: "27 Nov 2024", and "2024年11月27日".
_COUNTRIES = {"en": "en_GB"}


def day(when: date, *, year: bool = True) -> str:
    """A day in the language spoken now, with or without its year."""
    locale = _COUNTRIES.get(current(), LOCALES[current()])
    return format_skeleton("yMMMd" if year else "MMMd", when, locale=locale)
