"""Reports: what they say, in every format, and what never leaves."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import fakes
import openpyxl
import pandas as pd
import pytest

import report
from core.comparison import Comparison
from core.errors import ExplorerError
from report import printing
from report.document import Table

KEY = b"a key"


def made(compared: Comparison, redactor: report.Redactor | None = None) -> report.Report:
    judged = fakes.judgement(compared)
    rows = fakes.table(compared, judged)
    return report.build(
        compared, judged, rows, fakes.diagnosis(compared), report.Choices(20, redactor)
    )


def redacted(compared: Comparison) -> tuple[report.Redactor, report.Report]:
    redactor = report.Redactor(KEY, compared)
    return redactor, made(compared, redactor)


def test_the_answer_comes_first_and_every_finding_has_a_section() -> None:
    document = made(fakes.comparison())
    assert document.verdict == "Fault"
    assert document.sentence == report.content.describe(fakes.finding()).title
    headings = [section.heading for section in document.sections]
    assert [h.split()[0] for h in headings if h.startswith("F")] == ["Findings", "F1", "F2"]
    assert headings.index("Error along execution order") > headings.index("Findings")


def test_the_workbook_holds_every_pair_the_page_only_the_largest() -> None:
    compared = fakes.comparison()
    document = made(compared)
    table = next(
        part
        for section in document.sections
        for part in section.parts
        if isinstance(part, Table) and part.exact is not None
    )
    assert len(table.rows) == 20
    assert table.exact is not None
    assert len(list(table.exact())) == len(compared.pairs)
    book = openpyxl.load_workbook(io.BytesIO(report.workbook(document)))
    sheet = book["The 20 largest errors"]
    assert sheet.max_row == 1 + len(compared.pairs)
    assert sheet.cell(2, 4).value == 113.0


def test_text_that_looks_like_a_formula_stays_text() -> None:
    pairs = (fakes.pair(fakes.tensor('=HYPERLINK("x")', 0)),)
    book = openpyxl.load_workbook(io.BytesIO(report.workbook(made(fakes.comparison(pairs=pairs)))))
    cell = book["The 1 largest errors"].cell(2, 2)
    assert (cell.value, cell.data_type) == ('=HYPERLINK("x")', "s")


def test_the_page_asks_nothing_of_any_server() -> None:
    text = report.page(made(fakes.comparison()))
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", outside)
    assert "default-src 'none'" in text
    assert text.count('<figure role="img"') == 1


def test_names_cannot_act_as_markup() -> None:
    pairs = (fakes.pair(fakes.tensor(fakes.HOSTILE, 0)),)
    document = made(fakes.comparison(pairs=pairs))
    assert "<img" not in re.sub(r"<script>.*?</script>", "", report.page(document), flags=re.DOTALL)
    written = report.markdown(document)
    assert "**bold**" not in written
    assert not re.search(r"(?<!\\)<img", written)


def test_a_redacted_report_holds_no_name_in_any_format(tmp_path: Path) -> None:
    compared = fakes.comparison()
    _, document = redacted(compared)
    names = {
        segment
        for pair in compared.pairs
        for segment in re.split(r"[./:]", pair.reference.id)
        if "_" in segment and segment != "forward_output"  # not words of plain English
    } | {compared.reference.label, compared.candidate.label, "GPU run"}
    path = tmp_path / "x.xlsx"
    path.write_bytes(report.workbook(document))
    cells = " ".join(
        str(cell.value) for sheet in openpyxl.load_workbook(path) for row in sheet for cell in row
    )
    shown = re.sub(r"<script>.*?plotly.*?</script>", "", report.page(document), flags=re.DOTALL)
    for text in (shown, report.markdown(document).replace("\\", ""), cells):
        assert not {name for name in names if re.search(rf"\b{re.escape(name)}\b", text)}


def test_hashes_are_stable_for_a_key_and_have_a_way_back() -> None:
    compared = fakes.comparison()
    redactor, _ = redacted(compared)
    hashed = redactor.name("model.layers.2.mlp")
    assert hashed == report.Redactor(KEY, compared).name("model.layers.2.mlp")
    assert hashed != report.Redactor(b"another", compared).name("model.layers.2.mlp")
    back = ".".join(redactor.names.get(part, part) for part in hashed.split("."))
    assert back == "model.layers.2.mlp"
    assert ".2." in hashed


def test_a_redacted_report_says_what_is_left_out() -> None:
    _, document = redacted(fakes.comparison())
    assert any("keyed hashes" in line for line in document.leaves)
    assert not any("labels of both runs" in line for line in document.leaves)


def test_a_comparison_without_findings_or_pairs_still_makes_a_report() -> None:
    compared = fakes.comparison(pairs=())
    judged = fakes.judgement(compared)
    rows = pd.DataFrame(fakes.table(fakes.comparison(), fakes.judgement(fakes.comparison())))[:0]
    document = report.build(compared, judged, rows, None, report.Choices())
    assert report.markdown(document).startswith("# Precision report")


def test_without_a_browser_printing_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing.shutil, "which", lambda _: None)
    with pytest.raises(ExplorerError, match="no browser"):
        printing.pdf("<p>x</p>")


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on this machine")
def test_the_report_prints_as_pdf() -> None:
    made_pdf = printing.pdf(report.page(made(fakes.comparison())))
    assert made_pdf.startswith(b"%PDF-")
    assert len(made_pdf) > 20_000
