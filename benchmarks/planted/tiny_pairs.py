"""Writes a case of the casebook's tiny model as a pair of dumps, and checks that it is sound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planted.casebook import casebook, families
from benchmarks.planted.manifest import Entry, plain


def write_case(case: Any, folder: Path, name: str) -> Entry:
    """Run reference and candidate, write both, say what was planted.

    The casebook's own check decides whether the pair is sound: the first tensor that differs from
    the same candidate without the fault must be the declared one.
    """
    config, plant, reference, clean, candidate = casebook().runner.build(case)
    facts, problems = casebook().runner.verify(case, plant, reference, clean, candidate)
    problems += _only_padding(plant, clean, candidate)
    for side, steps in (("reference", reference), ("candidate", candidate)):
        casebook().dumpio.write(str(folder / name / side), steps, case.style)
    return replace(
        _entry(case, plant, name),
        quant=config.quant or None,
        difficulty=facts.pop("difficulty"),
        facts=plain(facts),
        problems=[problem for problem in problems if not _meant(plant, problem)],
    )


def _entry(case: Any, plant: Any, name: str) -> Entry:
    """What is known of a case before it has run."""
    return Entry(
        id=name,
        mechanism=case.slug,
        family=families().get(case.slug, "two"),
        verdict=plant.verdict,
        module=plant.site or None,
        slot=plant.slot if plant.site else None,
        step=plant.step,
        ref_dtype=case.ref,
        cand_dtype=case.cand,
        quant=None,
        accepted=[case.slug, *plant.alt],
        seed=case.seed,
        layer=case.layer,
        cause=plant.cause,
        difficulty="",
        source="tiny",
        model=model_of(case),
    )


def model_of(case: Any) -> str:
    """Options of the case's model, kernels and kind, for people."""
    parts = {"": case.cfg, "reference ": case.ref_cfg, "kernels ": case.cand_num or {}}
    parts["kind "] = case.opt
    return "; ".join(
        head + ", ".join(f"{name}={value}" for name, value in options.items())
        for head, options in parts.items()
        if options
    )


def _only_padding(plant: Any, clean: Any, candidate: Any) -> list[str]:
    """A complaint where a fault changes no real token: such a difference is harmless."""
    split = casebook().dumpio.split_name
    first, second = (_named(steps[plant.step], split) for steps in (clean, candidate))
    key = (plant.site, plant.slot)
    mask = first.get(("model.causal_mask", "forward_input.0"))
    if plant.verdict != "fault" or mask is None or key not in first or key not in second:
        return []
    a, b = first[key], second[key]
    real = mask[:, -a.shape[1] :] > 0 if a.ndim == 3 else np.zeros(0)
    if real.shape != a.shape[:2] or not np.array_equal(a[real], b[real], equal_nan=True):
        return []
    return ["only padded tokens differ"]


def _named(items: Any, split: Any) -> dict[tuple[str, str], Any]:
    return {(path, slot): v for n, v, _ in items for path, _, _, slot in (split(n),)}


def _meant(plant: Any, problem: str) -> bool:
    """Whether the check complains about the very difference that was planted."""
    return plant.ids is not None and plant.verdict == "rounding" and "integers differ" in problem
