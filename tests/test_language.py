"""Messages: said once in English, told again in the reader's language."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import write_po

import language
from core.errors import ExplorerError, LoadError
from language import Said, _, day, listing, n_, say, sentences, told
from language import catalogue as kept
from loaders import open_run
from store.jsonable import from_plain, from_text, to_plain, to_text


@pytest.fixture
def chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = Catalog(locale="zh_CN")
    made.add("Open", "打开")
    made.add("{name} is cut off.", "{name}被截断。")
    made.add("in {place}", "在{place}")
    made.add(("{number} file", "{number} files"), ("{number} 个文件",))
    with (tmp_path / "zh_CN.po").open("wb") as file:
        write_po(file, made)
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    kept._messages.cache_clear()
    language.use("zh")
    yield
    language.use("en")
    kept._messages.cache_clear()


@pytest.mark.usefixtures("chinese")
def test_a_message_is_given_in_the_language_spoken() -> None:
    assert _("Open") == "打开"
    language.use("en")
    assert _("Open") == "Open"


@pytest.mark.usefixtures("chinese")
def test_a_text_said_in_english_is_told_again_with_its_values() -> None:
    where = say("in {place}", place="a.h5")
    text = say("{name} is cut off.", name=where)
    assert text == "in a.h5 is cut off."
    assert told(text) == "在a.h5被截断。"


@pytest.mark.usefixtures("chinese")
def test_numbers_choose_the_form() -> None:
    assert n_("{number} file", "{number} files", 3) == "3 个文件"
    language.use("en")
    assert [n_("{number} file", "{number} files", n) for n in (1, 2)] == ["1 file", "2 files"]


@pytest.mark.usefixtures("chinese")
def test_a_text_survives_pickle_and_json() -> None:
    text = say("{name} is cut off.", name=say("in {place}", place="x"))
    for again in (pickle.loads(pickle.dumps(text)), from_plain(str, to_plain(text))):
        assert again == text
        assert told(again) == "在x被截断。"


def test_values_are_never_taken_for_templates() -> None:
    assert say("{name} is cut off.", name="{0} {x!r}") == "{0} {x!r} is cut off."
    assert told("plain {text}") == "plain {text}"
    assert say("no values {here}") == "no values {here}"


def test_an_unknown_language_is_english() -> None:
    language.use("xx")
    assert language.current() == "en"


def test_a_text_is_kept_as_text_and_can_be_said_again() -> None:
    text = say("{name} is cut off.", name=say("in {place}", place="a|b"))
    again = from_text(to_text(text))
    assert again == text
    assert isinstance(again, Said)
    assert from_text(to_text("plain")) == "plain"


@pytest.mark.parametrize(
    "kept",
    [
        '\x1f{"said":"{x.__class__.__init__}","values":{"x":1}}',
        '\x1f{"said":"{x:>99999999999}","values":{"x":1}}',
        '\x1f{"said":"{x!r:{y}}","values":{"x":1,"y":"9"}}',
        "\x1f{",
        "\x1f[]",
    ],
)
def test_a_kept_text_that_was_never_ours_is_shown_as_it_is(kept: str) -> None:
    assert not isinstance(from_text(kept), Said)


def test_sentences_and_lists_are_strung_as_the_language_does() -> None:
    assert sentences(["One.", "", say("Two.")]) == "One. Two."
    assert listing(["a", "b", "c"]) == "a, b, c"
    assert sentences([]) == ""
    language.use("zh")
    try:
        assert told(listing(["a", "b", "c"])) == "a、b、c"
    finally:
        language.use("en")


def test_days_are_written_as_the_language_does() -> None:
    assert day(date(2024, 11, 27)) == "27 Nov 2024"
    language.use("zh")
    try:
        assert day(date(2024, 11, 27)) == "2024年11月27日"
    finally:
        language.use("en")


def test_an_error_says_its_message_again_also_from_its_text() -> None:
    error = ExplorerError(say("Choose a folder that is not empty."), say("Check the path."))
    language.use("zh")
    try:
        assert told(str(error)) == "请选择非空的文件夹。请检查路径。"
    finally:
        language.use("en")
    assert str(error) == "Choose a folder that is not empty. Check the path."


def test_what_is_kept_is_english_whatever_is_spoken(tmp_path: Path) -> None:
    made = {}
    for code in ("en", "zh"):
        language.use(code)
        try:
            with pytest.raises(LoadError) as raised:
                open_run(tmp_path / "nowhere")
            made[code] = (str(raised.value), to_plain(raised.value.message))
        finally:
            language.use("en")
    assert made["en"] == made["zh"]
    assert made["en"][0].startswith("There is no dump at ")
