"""Scores predictions as the casebook does: verdict, module, slot, layer, mechanism."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.planted.predicting import Place, Prediction

QUESTIONS = ("verdict", "module", "slot", "layer", "top1", "top3")
Row = Mapping[str, bool | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry of a manifest, what was predicted and which answers are right (None: not asked)."""

    entry: Mapping[str, Any]
    prediction: Prediction
    row: Row

    @property
    def wrong(self) -> bool:
        """Whether verdict, module, slot or first mechanism is wrong."""
        return False in (self.row[name] for name in ("verdict", "module", "slot", "top1"))


def score(entries: Iterable[Mapping[str, Any]], predictions: Iterable[Prediction]) -> list[Scored]:
    """One row an entry; a missing prediction is a wrong one."""
    known = {prediction.id: prediction for prediction in predictions}
    return [
        Scored(entry, said, judged(entry, said))
        for entry in entries
        for said in (known.get(entry["id"], Prediction(entry["id"], "missing")),)
    ]


def judged(entry: Mapping[str, Any], prediction: Prediction) -> Row:
    """Answers to the questions; place and mechanism are asked of pairs that are not benign."""
    row: dict[str, bool | None] = dict.fromkeys(QUESTIONS)
    row["verdict"] = prediction.verdict == entry["verdict"]
    if entry["verdict"] == "rounding":
        return row
    first = prediction.first or Place("", "", "", "", ())
    module = first.module == entry["module"]
    return row | {
        "module": module,
        "slot": module and first.slot == entry["slot"],
        "layer": bool(first.module) and layer_of(first.module) == layer_of(entry["module"]),
        "top1": any(slug in entry["accepted"] for slug in first.mechanisms[:1]),
        "top3": any(slug in entry["accepted"] for slug in first.mechanisms[:3]),
    }


def layer_of(module: str) -> str:
    """Number of the layer, or the module itself outside of layers."""
    found = re.search(r"layers\.(\d+)", module)
    return f"layer {found[1]}" if found else module


def table(scored: Sequence[Scored]) -> str:
    """Right answers of all asked by family, then by difficulty, then in sum."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for one in scored:
        groups[one.entry["family"]].append(one.row)
        if one.entry["verdict"] != "rounding":
            groups["~" + one.entry["difficulty"]].append(one.row)
    lines = [f"{'family':12}" + "".join(f"{name:>9}" for name in QUESTIONS)]
    lines += [f"{name:12}" + _cells(groups[name]) for name in sorted(groups)]
    return "\n".join([*lines, summary(scored)])


def _cells(rows: Sequence[Row]) -> str:
    return "".join(f"{_share(rows, name):>9}" for name in QUESTIONS)


def _share(rows: Sequence[Row], name: str) -> str:
    asked = [row[name] for row in rows if row[name] is not None]
    return f"{sum(map(bool, asked))}/{len(asked)}" if asked else "-"


def summary(scored: Sequence[Scored]) -> str:
    """Shares in percent; the balanced verdict is the mean of both classes' recalls."""
    benign = [one for one in scored if one.entry["verdict"] == "rounding"]
    others = [one for one in scored if one.entry["verdict"] != "rounding"]
    accused = sum(one.prediction.verdict != "rounding" for one in benign)
    missed = sum(one.prediction.verdict not in ("fault", "setup") for one in others)
    recalls = [
        1 - wrong / len(group) for wrong, group in ((accused, benign), (missed, others)) if group
    ]
    crashes = sum(bool(one.prediction.error) for one in scored)
    counts = f"{accused}/{len(benign)} accused, {missed}/{len(others)} missed, {crashes} crashes"
    balanced = 100 * sum(recalls) / max(len(recalls), 1)
    shares = ", ".join(f"{name} {_percent(scored, name)}" for name in QUESTIONS)
    return f"TOTAL {len(scored)} pairs: balanced verdict {balanced:.1f}%, {counts}; {shares}"


def _percent(scored: Sequence[Scored], name: str) -> str:
    asked = [one.row[name] for one in scored if one.row[name] is not None]
    return f"{100 * sum(map(bool, asked)) / len(asked):.1f}%" if asked else "-"


def error_lines(scored: Iterable[Scored]) -> list[str]:
    """What was expected and what was said, of every pair with a wrong answer."""
    lines = []
    for one in scored:
        entry, first = one.entry, one.prediction.first
        if not one.wrong:
            continue
        said = f"{first.module} {first.slot} {list(first.mechanisms[:3])}" if first else "nothing"
        expected = f"{entry['mechanism']} {entry['module']} {entry['slot']}"
        about = f"[{entry['cand_dtype']}, {entry['difficulty']}, {entry.get('model', '')}]"
        lines.append(f"  {entry['id']} {expected} {about} -> {one.prediction.verdict}, {said}")
        if one.prediction.error:
            lines.append(f"    {one.prediction.error.strip().rpartition(chr(10))[2]}")
    return lines


def found_both(entry: Mapping[str, Any], prediction: Prediction) -> tuple[bool, bool, bool]:
    """Of a pair with two faults: whether each is among the findings, and both named right."""
    answers = [entry, *entry["more"]]
    places = [place for place in prediction.places if place.verdict == "fault"]
    found = [
        next((place for place in places if place.module == answer["module"]), None)
        for answer in answers
    ]
    named = all(
        place is not None and any(slug in answer["accepted"] for slug in place.mechanisms[:1])
        for place, answer in zip(found, answers, strict=True)
    )
    return found[0] is not None, found[1] is not None, named
