"""The page Report: what goes in, what leaves this server, and the document itself."""

from __future__ import annotations

import csv
import html
import io
from dataclasses import dataclass

import streamlit as st

import language
import report as reports
from api.reports import document_of
from charts.names import for_html
from language import LANGUAGES, _
from ui import url
from ui.frame import View
from ui.markup import heading

_LENGTHS = {"20": "20", "40": "40", "200": "200", "1000": "1000"}
_FORMATS = {"html": "HTML", "pdf": "PDF", "md": "Markdown", "xlsx": "Excel"}
_PREVIEW = 900  # pixels


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page's pickers say, as the address of the report takes it."""

    names: str
    worst: str
    language: str

    def query(self, **more: str) -> str:
        """The query of the report's own address."""
        names = self.names or None
        return url.query(names=names, worst=self.worst, **{url.LANGUAGE: self.language}, **more)


def choose() -> Asked:
    """The pickers, kept in the address."""
    st.html(f"<h1 class='px-sr'>{for_html(_('Report'))}</h1>{heading(_('What goes in'))}")
    names = {"full": _("as they are"), "redacted": _("as hashes")}
    asked = url.choose(
        _("Names of modules and tensors"), {"full": "", "redacted": "redacted"},
        key="names", labels=names, style="segments",
    )  # fmt: skip
    worst = url.choose(_("Largest errors listed"), _LENGTHS, key="worst", default="40")
    spoken = url.choose(
        _("Language of the report"), {code: code for code in LANGUAGES},
        key="in", labels=LANGUAGES, default=language.current(), style="segments",
    )  # fmt: skip
    return Asked(asked, worst, spoken)


def leaves(view: View, asked: Asked) -> None:
    """What is in the document, line by line, before anything is downloaded; then the formats."""
    redactor, document = document_of(
        view.workspace, view.comparison.id, {"names": asked.names, "worst": asked.worst}
    )
    lines = "".join(f"<li>{for_html(line, 300)}</li>" for line in document.leaves)
    st.html(f"{heading(_('What leaves this server'))}<ul class='px-leaves'>{lines}</ul>")
    links = "".join(_download(view, asked, kind, word) for kind, word in _FORMATS.items())
    st.html(f'{heading(_("Download"))}<p class="px-downloads">{links}</p>')
    if redactor is not None:
        _way_back(view, redactor)


def preview(view: View, asked: Asked) -> None:
    """The HTML as its reader will see it, in a frame of its own."""
    st.iframe(_address(view, "html", asked.query()), height=_PREVIEW, alt=_("The report"))


def names_csv(redactor: reports.Redactor) -> str:
    """Hash and name, one line each, for the owner of the model."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["hash", "name"])
    writer.writerows(sorted(redactor.names.items()))
    return text.getvalue()


def _way_back(view: View, redactor: reports.Redactor) -> None:
    said = _("Keep the list of names, to read the answers. It is not part of the report.")
    st.html(f'<p class="px-says">{for_html(said)}</p>')
    st.download_button(
        _("List of names"), lambda: names_csv(redactor), mime="text/csv", on_click="ignore",
        file_name=f"names-{view.comparison.id[:8]}.csv", key="report-names",
    )  # fmt: skip


def _download(view: View, asked: Asked, kind: str, word: str) -> str:
    href = html.escape(_address(view, kind, asked.query(save="1")))
    return f'<a class="px-button" href="{href}" download>{word}</a>'


def _address(view: View, kind: str, query: str) -> str:
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    root = f"/{base}" if base else ""
    return f"{root}/api/comparisons/{view.comparison.id}/report.{kind}{query}"
