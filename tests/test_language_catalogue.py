"""The Chinese catalogue: complete, with the fields of the English, and set as Chinese is set."""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import cache

import pytest
from babel.messages import Catalog
from babel.messages.catalog import Message
from babel.messages.pofile import read_po

from language.catalogue import FOLDER, LANGUAGES, LOCALES
from language.collect import collected

# Messages that are the same in Chinese: names, units, symbols.
SAME = re.compile(
    r"[\W\d_]*|(?:\W|\{[^{}]*\}|NaN|Inf|PSI|SQNR|Wasserstein-1|ulp|[Ss]lot|dtype|[Ss]tep|[Rr]ank|batch|token|head|p)*"
)
CHINESE = "\u4e00-\u9fff"
LATIN = "A-Za-z0-9"


@cache
def catalogue(code: str) -> Catalog:
    with (FOLDER / f"{LOCALES[code]}.po").open("rb") as file:
        return read_po(file, locale=LOCALES[code])


def forms(text: object) -> tuple[str, ...]:
    return tuple(map(str, text)) if isinstance(text, tuple | list) else (str(text or ""),)


def messages(code: str) -> list[Message]:
    return [message for message in catalogue(code) if message.id]


others = pytest.mark.parametrize("code", list(LANGUAGES)[1:])


@others
def test_every_message_of_the_code_is_in_the_catalogue_and_no_other(code: str) -> None:
    """`python -m language.collect` brings it up to date."""
    wanted = {message.id for message in collected() if message.id}
    assert wanted == {message.id for message in messages(code)}


@others
def test_every_message_is_translated(code: str) -> None:
    left = [m.id for m in messages(code) if m.fuzzy or not all(forms(m.string))]
    assert left == []


@others
def test_a_translation_differs_from_the_english_unless_it_is_a_name(code: str) -> None:
    same = [m.id for m in messages(code) if forms(m.id)[0] == forms(m.string)[0]]
    assert [text for text in same if not SAME.fullmatch(forms(text)[0])] == []


@others
def test_a_translation_has_the_fields_of_the_english(code: str) -> None:
    wrong = {}
    for message in messages(code):
        wanted = [fields(form) for form in forms(message.id)]
        for form in forms(message.string):
            if None not in wanted and fields(form) not in wanted:
                wrong[message.id] = form
    assert wrong == {}


def fields(text: str) -> Counter[tuple[str, str, str]] | None:
    """The fields of a template with their formats; None for a text that is none."""
    try:
        found = Counter(
            (name, conversion or "", spec or "")
            for _, name, spec, conversion in string.Formatter().parse(text)
            if name is not None
        )
    except ValueError:
        return None
    return found if all(name.isidentifier() for name, _, _ in found) else None


def test_chinese_is_set_with_its_own_punctuation_and_spaces_beside_latin() -> None:
    """Half-width spaces between Chinese and Latin letters or digits; full-width stops."""
    rules = (
        rf"[{CHINESE}][{LATIN}]", rf"[{LATIN}][{CHINESE}]",
        rf"[{CHINESE}][,;:?!()]", rf"[{CHINESE}]\.(?!\w)", r"[，。；：、] ", r" [，。；：、]",
    )  # fmt: skip
    odd = re.compile("|".join(rules))
    texts = [form for m in messages("zh") for form in forms(m.string)]
    assert [text for text in texts if odd.search(text)] == []
