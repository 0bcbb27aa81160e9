"""No text that people see is written past the language package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHOWN = sorted(
    p for layer in ("ui", "pages", "charts", "report") for p in (ROOT / layer).rglob("*.py")
)
SAYING = {"_", "n_", "say", "say_many", "told"}
# What is given to these is read by people, whatever it looks like: positions of the text.
TEXT_ARGUMENTS: dict[str, tuple[int, ...]] = {
    "button": (0,), "caption": (0,), "checkbox": (0,), "download_button": (0,), "error": (0,),
    "expander": (0,), "file_uploader": (0,), "info": (0,), "link_button": (0,), "markdown": (0,),
    "multiselect": (0,), "number_input": (0,), "popover": (0,), "segmented_control": (0,),
    "selectbox": (0,), "slider": (0,), "spinner": (0,), "success": (0,), "text_area": (0,),
    "text_input": (0,), "title": (0,), "toast": (0,), "toggle": (0,), "warning": (0,),
    "choose": (0,), "anchor": (1,), "heading": (0, 1), "muted": (0,), "Section": (0,), "Text": (0,),
}  # fmt: skip
TEXT_NAMES = {"help", "placeholder", "label", "title_text", "caption"}
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:.]? [a-z]{2,}")
WORD = re.compile(r"[A-Za-z]{3,}")
# Style sheets, policies, classes and fonts are written in words too.
NO_TEXT = re.compile(
    r"px-|px\b.*solid|-src |sans-serif|monospace|python cli\.py|gradient|viewBox|middle left"
    r"|allow-scripts|top (left|right|center)|bottom (left|right|center)|application/"
    r"|layers[\\]"  # an example of a regular expression
)
# Names that are the same in every language: formats, marks, units, file types, keys of records.
NAMES = {
    "CSV",
    "xlsx",
    "Excel",
    "Markdown",
    "ulp",
    "dtype",
    "atol",
    "rtol",
    "Precision Explorer",
    "csv",
    "json",
}


def _texts(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Every literal with its text (the values of an f-string left out) that is not given to `_`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.JoinedStr) or _is_text(node):
            yield node, _words(node)  # type: ignore[misc]
        for part in _looked_into(node):
            yield from _texts(part)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _looked_into(node: ast.AST) -> list[ast.AST]:
    """A node, or the parts of it that may hold text of their own."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAYING:
        return list(node.keywords)
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "page":
        return []  # the navigation names a page
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("ValueError", "KeyError"):
        return []  # a bug, which nobody reads on a page
    if isinstance(node, ast.Subscript):
        return [node.value]  # a key is a name
    if isinstance(node, ast.Compare):
        return []
    if isinstance(node, ast.JoinedStr):
        return [part for part in node.values if isinstance(part, ast.FormattedValue)]
    return [node]


def _words(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _bare(text: str) -> str:
    """What is left of a text once its tags and entities are taken away."""
    return re.sub(r"<[^<>]*>?|&\w+;|[^<>]*>", " ", text) if "<" in text or ">" in text else text


@pytest.mark.parametrize("path", SHOWN, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_sentence_stands_outside_the_language_package(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [
        f"{path.name}:{node.lineno}: {text}"
        for node, text in _texts(tree)
        if SENTENCE.search(_bare(text)) and not NO_TEXT.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("path", SHOWN, ids=lambda p: str(p.relative_to(ROOT)))
def test_labels_and_titles_go_through_the_language_package(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [
        f"{path.name}:{node.lineno}: {text}"
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for node in _read(call)
        if WORD.search(_bare(text := _words(node)))
        and text not in NAMES
        and not NO_TEXT.search(text)
    ]
    assert found == []


def _read(call: ast.Call) -> Iterator[ast.expr]:
    """The literals of a call that people read."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    for place in TEXT_ARGUMENTS.get(name, ()):
        if place < len(call.args):
            yield from _branches(call.args[place])
    for keyword in call.keywords:
        if keyword.arg in TEXT_NAMES and name in TEXT_ARGUMENTS:
            yield from _branches(keyword.value)


def _branches(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from (*_branches(node.body), *_branches(node.orelse))
    elif isinstance(node, ast.Constant | ast.JoinedStr):
        yield node
