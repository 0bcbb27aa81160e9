"""`python -m language.collect` brings the catalogue up to date with the code.

It reads the sources, imports none of them, and keeps every translation that is still used. What is
collected: the texts given to `_`, `say`, `told` (one), `n_`, `say_many` (two forms), every text of
an `Entry` of the mechanisms, label and docstring of every metric, and the index of the samples. New
messages come out empty; a test fails until each is translated.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from language.catalogue import FOLDER, LANGUAGES, LOCALES

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "core", "loaders", "metrics", "analysis", "store", "charts", "report", "api", "ui", "pages",
    "commands", "language",
)  # fmt: skip
SAMPLES = "sample_dumps/index.json"
Message = str | tuple[str, str]
Found = tuple[int, str | None, Message, list[str]]
_SIDES = ("reference", "candidate")
_HEADER = "# Texts of the product; `python -m language.collect` brings them up to date."
_MADE = datetime(2026, 12, 1, tzinfo=UTC)  # of the first catalogue: a date that runs is no change


def collected() -> Catalog:
    """Every message of the code, without translations."""
    catalogue = Catalog(creation_date=_MADE)
    for package in PACKAGES:
        found = extract_from_dir(
            ROOT / package, [("**.py", "language.collect:messages")], comment_tags=()
        )
        for name, _line, message, _comments, _context in found:
            catalogue.add(message, locations=[(f"{package}/{name}", None)])  # type: ignore[list-item]
    for sample in json.loads((ROOT / SAMPLES).read_text(encoding="utf-8")):
        for text in (sample["title"], sample["story"]):
            catalogue.add(text, locations=[(SAMPLES, None)])  # type: ignore[list-item]
    return catalogue


def messages(
    file: IO[bytes],
    _keywords: Any,
    _comments: Any,
    *,
    options: Any,  # noqa: ARG001
) -> Iterator[Found]:
    """The messages of one Python file, as Babel's extractor asks for them."""
    for node in ast.walk(ast.parse(file.read())):
        for message in _said(node):
            forms = None if isinstance(message, str) else "ngettext"  # Babel's name of two forms
            yield getattr(node, "lineno", 0), forms, message, []


def _said(node: ast.AST) -> Iterator[Message]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from _of_call(node.func.id, node)
    elif isinstance(node, ast.FunctionDef):
        yield from _of_metric(node)


def _of_call(name: str, call: ast.Call) -> Iterator[Message]:
    if name in ("_", "say", "told") and call.args:
        yield from _constants(call.args[0])
    elif name in ("n_", "say_many", "_some"):
        forms = [text for argument in call.args[:2] for text in _constants(argument)]
        if len(forms) == 2:
            yield forms[0], forms[1]
    elif name == "Entry":
        for argument in call.args[1:]:
            yield from _constants(argument)


def _of_metric(function: ast.FunctionDef) -> Iterator[Message]:
    for decorator in function.decorator_list:
        if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)):
            continue
        text = inspect.cleandoc(ast.get_docstring(function) or "")
        if decorator.func.id == "metric":
            yield from (*_constants(decorator.args[0]), text)
        elif decorator.func.id == "side_metrics":
            yield from _constants(decorator.args[0])
            yield from (text.replace("{side}", side) for side in _SIDES)


def _constants(node: ast.AST) -> Iterator[str]:
    """Texts that an argument may be: itself, either branch of a choice, each of a tuple."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_constants(node.body), *_constants(node.orelse))
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from _constants(item)


def updated(code: str) -> Catalog:
    """The catalogue of a language with the messages of the code, translations kept."""
    path = FOLDER / f"{LOCALES[code]}.po"
    catalogue = Catalog(locale=LOCALES[code])
    if path.exists():
        with path.open("rb") as file:
            catalogue = read_po(file, locale=LOCALES[code])
    catalogue.update(collected(), no_fuzzy_matching=True)
    catalogue.header_comment, catalogue.fuzzy = _HEADER, False
    catalogue.project, catalogue.version = "Precision Explorer", "1"
    catalogue.revision_date = _MADE
    catalogue.last_translator = catalogue.language_team = catalogue.msgid_bugs_address = ""
    return catalogue


def main() -> None:
    """Writes the catalogue of every language but the code's own."""
    FOLDER.mkdir(exist_ok=True)
    for code in list(LANGUAGES)[1:]:
        catalogue = updated(code)  # read before the file is opened to be written
        with (FOLDER / f"{LOCALES[code]}.po").open("wb") as file:
            write_po(
                file, catalogue, width=100, sort_by_file=True, ignore_obsolete=True,
                include_lineno=False,
            )  # fmt: skip


if __name__ == "__main__":
    main()
