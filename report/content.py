"""What a report says: the answer, the findings with their evidence, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.findings.texts import describe, title_of
from analysis.views_findings import replay_of
from charts import execution
from charts.path import Quantity, error_path
from charts.tokens import LIGHT
from core.annotations import Annotation
from core.comparison import Comparison, Judgement, RunSummary
from core.findings import Diagnosis, Finding, Hypothesis
from core.numbers import UNDEFINED, count, error, share, times_floor
from core.words import head, word
from language import Said, _, day, listing, say, sentences, told
from metrics import METRICS
from report.document import Chart, Part, Report, Section, Steps, Table, Text
from report.redaction import Redactor

_METRICS = ("relative_l2", "cosine_distance", "max_abs_error", "ulp_p99")
_QUANTITY = Quantity("times_floor", say("Times floor"), in_floors=True)
_PATH_HEIGHT = 320

__all__ = ["Choices", "Report", "build"]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the reader of a report is given. `redactor` None: names as they are.

    `notes` are left out of a redacted report: people name things in them.
    """

    worst: int = 40
    redactor: Redactor | None = None
    notes: Sequence[Annotation] = ()


def build(
    comparison: Comparison,
    judgement: Judgement,
    table: pd.DataFrame,
    diagnosis: Diagnosis | None,
    choices: Choices,
) -> Report:
    """The document, in the language spoken now.

    It holds statistics and names only, never an element of a tensor; with a redactor, no name.
    """
    hide = choices.redactor.text if choices.redactor else str
    rows = _renamed(table, choices.redactor)
    findings = diagnosis.findings if diagnosis else ()
    sections = [
        _runs(comparison, choices),
        *_findings(diagnosis, findings, choices),
        _path(rows, judgement),
        _worst(rows, choices.worst),
        _notes(choices),
        _coverage(comparison, table),
        *_provenance(comparison, choices.redactor),
        _definitions(),
    ]
    first = describe(findings[0]) if findings else None
    return Report(
        title=_("Precision report"),
        kind=judgement.verdict,
        verdict=told(head(judgement.verdict)),
        sentence=hide(told(first.title if first else judgement.sentence)),
        detail=hide(told(first.detail if first else judgement.detail)),
        sections=[section for section in sections if section.parts],
        leaves=list(_leaves(comparison, findings, table, choices)),
        footer=_("Comparison {id}", id=comparison.id),
    )


def _renamed(table: pd.DataFrame, redactor: Redactor | None) -> pd.DataFrame:
    hidden = table.assign(problem=[_problem(said) for said in table["problem"]])
    if redactor is None:
        return hidden
    for column in ("tensor", "operator", "module", "module_class"):
        hidden[column] = [redactor.name(str(value)) for value in table[column]]
    hidden["problem"] = [redactor.text(said) for said in hidden["problem"]]
    return hidden


def _runs(comparison: Comparison, choices: Choices) -> Section:
    sides = [(_("Reference"), comparison.reference), (_("Candidate"), comparison.candidate)]
    rows = [
        (side, side if choices.redactor else run.label, count(run.tensors), run.content[:12])
        for side, run in sides
    ]
    heads = [_("Side"), _("Run"), _("Tensors"), _("Content")]
    return Section(_("The two runs"), [Table(heads, rows, numeric=(2,))])


def _findings(
    diagnosis: Diagnosis | None, findings: Sequence[Finding], choices: Choices
) -> Iterator[Section]:
    if diagnosis is None:
        return
    said = _("{n} findings, worst first.", n=len(findings)) if findings else _("No finding.")
    done = _("{n} outputs were recomputed in float64.", n=count(len(diagnosis.replays)))
    yield Section(_("Findings"), [Text(told(sentences((said, done))))])
    for finding in findings:
        yield _finding(diagnosis, finding, choices)


def _finding(diagnosis: Diagnosis, finding: Finding, choices: Choices) -> Section:
    hide = choices.redactor.text if choices.redactor else str
    name = choices.redactor.name if choices.redactor else str
    text = describe(finding)
    parts: list[Part] = [Text(hide(told(text.detail))), _place(diagnosis, finding, name)]
    if finding.hypotheses:
        parts.append(_hypotheses(finding.hypotheses, hide))
    if text.next_steps:
        parts.append(Steps([hide(told(step)) for step in text.next_steps]))
    return Section(f"{finding.id}  {hide(told(text.title))}", parts, level=3)


def _place(diagnosis: Diagnosis, finding: Finding, name: Callable[[str], str]) -> Table:
    replay = replay_of(diagnosis, finding)
    rows = [
        (_("Verdict"), told(head(finding.verdict))),
        (_("Operator"), name(finding.operator)),
        (_("Slot"), told(word(finding.slot))),
        (_("Side"), told(head(finding.side))),
        (_("Confidence"), share(finding.confidence, 1)),
    ]
    if finding.step is not None:
        rows.append((_("Step"), str(finding.step)))
    if finding.rank is not None:
        rows.append((_("Rank"), str(finding.rank)))
    if replay is not None:
        rows.append((_("Reference, own error"), times_floor(replay.ratio_reference)))
        rows.append((_("Candidate, own error"), times_floor(replay.ratio_candidate)))
    if finding.zone:
        rows.append((_("Lies among"), told(listing(name(each) for each in finding.zone))))
    return Table(["", ""], rows)


def _hypotheses(hypotheses: Sequence[Hypothesis], hide: Callable[[str], str]) -> Table:
    rows = [
        (
            hide(told(title_of(h))),
            times_floor(h.before),
            times_floor(h.after),
            share(h.confidence, 1),
        )
        for h in hypotheses
    ]
    heads = [_("Hypothesis"), _("Before"), _("After"), _("Confidence")]
    return Table(heads, rows, numeric=(1, 2, 3))


def _path(rows: pd.DataFrame, judgement: Judgement) -> Section:
    first = judgement.first_divergence
    drawn = execution.on_path(rows, execution.direction_of(rows, first))
    figure = error_path(drawn, _QUANTITY, first=first, theme=LIGHT)
    figure.update_layout(height=_PATH_HEIGHT)
    alt = _("Relative L2 error of every output as a multiple of the floor, in execution order")
    return Section(_("Error along execution order"), [Chart(figure, alt)])


def _worst(rows: pd.DataFrame, most: int) -> Section:
    order = rows.sort_values("times_floor", ascending=False, na_position="last", kind="stable")
    shown = order.head(most).to_dict("records")
    heads = [
        _("Verdict"), _("Operator"), _("Slot"), _("× floor"), _("Added here"),
        *(told(METRICS[name].label) for name in _METRICS), _("Not compared because"),
    ]  # fmt: skip
    text = [
        (
            told(head(str(row["verdict"]))), str(row["operator"]) or UNDEFINED,
            told(word(str(row["slot"]))),
            times_floor(row["times_floor"]), times_floor(row["added"]),
            *(error(row[name]) for name in _METRICS), str(row["problem"]),
        )
        for row in shown
    ]  # fmt: skip
    keys = ("verdict", "operator", "slot", "times_floor", "added", *_METRICS, "problem")

    def exact() -> Iterator[list[str | int | float]]:
        for cells in zip(*(order[key].tolist() for key in keys), strict=True):
            yield [_exact(cell) for cell in cells]

    title = _("The {n} largest errors", n=len(text))
    return Section(title, [Table(heads, text, numeric=range(3, 9), exact=exact)])


def _problem(said: object) -> str:
    return told(said) if isinstance(said, Said) else str(said)


def _exact(value: object) -> str | int | float:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, int) else str(value)


def _notes(choices: Choices) -> Section:
    notes = () if choices.redactor else choices.notes
    rows = [
        (
            told(head(note.status)), note.target, note.text, note.link,
            day(note.expires) if note.expires else "", day(note.created),
        )
        for note in notes
    ]  # fmt: skip
    heads = [_("Status"), _("Place"), _("Note"), _("Link"), _("Accepted until"), _("Written")]
    return Section(_("Notes"), [Table(heads, rows)] if rows else [])


def _coverage(comparison: Comparison, table: pd.DataFrame) -> Section:
    counts = table["verdict"].value_counts()
    verdicts = ("fault", "watch", "inherited", "rounding", "uncompared")
    total = len(table) + len(comparison.unmatched_reference) + len(comparison.unmatched_candidate)
    rows = [(told(head(v)), int(counts.get(v, 0))) for v in verdicts]
    rows.append((_("In the reference only"), len(comparison.unmatched_reference)))
    rows.append((_("In the candidate only"), len(comparison.unmatched_candidate)))
    shown = [(word, count(n), share(n, total)) for word, n in rows]
    return Section(
        _("Coverage"), [Table([_("Verdict"), _("Pairs"), _("Share")], shown, numeric=(1, 2))]
    )


def _provenance(comparison: Comparison, redactor: Redactor | None) -> Iterator[Section]:
    ours, theirs = (_facts(run, redactor) for run in (comparison.reference, comparison.candidate))
    absent = _("not recorded")
    rows = [(key, ours.get(key, absent), theirs.get(key, absent)) for key in sorted(ours | theirs)]
    rows.sort(key=lambda row: row[1] == row[2])
    marked = [("≠" if a != b else "=", key, a, b) for key, a, b in rows]
    if marked:
        heads = ["", _("What"), _("Reference"), _("Candidate")]
        yield Section(_("Provenance"), [Table(heads, marked)])


def _facts(run: RunSummary, redactor: Redactor | None) -> dict[str, str]:
    facts = {key: str(value) for key, value in run.provenance.items()}
    return redactor.provenance(facts) if redactor else facts


def _definitions() -> Section:
    rows = [
        (_("× floor"), _("Relative L2 error as a multiple of what rounding explains.")),
        (_("Added here"), _("What the operator put on top of its inputs' error, in floors.")),
        (
            _("Own error"),
            _("Distance from the same operator in float64 on the run's own inputs, in floors."),
        ),
        *((told(METRICS[name].label), told(METRICS[name].help)) for name in _METRICS),
    ]
    return Section(_("What the numbers mean"), [Table(["", ""], rows)])


def _leaves(
    comparison: Comparison, findings: Sequence[Finding], table: pd.DataFrame, choices: Choices
) -> Iterator[str]:
    yield _("No element of any tensor: no values, no weights.")
    yield _("Statistics of {n} pairs in the workbook, of the largest {m} elsewhere.",
            n=count(len(table)), m=count(min(choices.worst, len(table))))  # fmt: skip
    yield _("{n} findings with their evidence.", n=len(findings))
    if choices.redactor:
        yield _("Names of modules, classes and tensors as keyed hashes; labels of runs left out.")
        yield _("Of the provenance: framework, device, number formats and math flags alone.")
    else:
        yield _("Names of modules, classes and tensors, and the labels of both runs.")
        yield _("{n} facts of provenance.", n=len(comparison.reference.provenance))
