"""From suspects and setup differences to findings: where, which side, how sure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from analysis.floor import block_of
from analysis.localise.replicas import Parted
from analysis.localise.setup import Given
from analysis.localise.sites import Sites
from analysis.localise.suspects import Suspect
from analysis.localise.transfer import Grown
from analysis.replay.site import Site
from analysis.verdict import JUMP
from core.findings import Fact, Finding, Hypothesis
from core.tensors import TensorInfo

Explain = Callable[[Site], tuple[Hypothesis, ...]]

_SURE, _LEAST = 0.99, 0.6


def findings_of(
    given: Sequence[Given],
    suspects: Sequence[Suspect],
    grown: Sequence[Grown],
    parted: Sequence[Parted],
    sites: Sites,
    explain: Explain,
) -> list[Finding]:
    """One finding for each place, setup first, then in execution order.

    The same output of the same operator in later steps is one place; the first step stands, the
    number of steps is a fact of it. Ranks that part are a finding unless something went wrong
    before: then they are its trace.
    """
    weights = [g for g in given if g.what == "weight"]
    setup = [g for g in given if g.what != "weight"]
    found = [(0, _of_given(each, sites, explain)) for each in _first_of_each(setup)]
    found += [(1, _of_given(each, sites, explain)) for each in _first_of_each(weights)]
    found += [(1, _of_suspects(several, sites, explain)) for several in _by_place(suspects)]
    # Whatever grows later may have grown out of the first that does.
    found += [(1, _of_grown(one, sites, explain)) for one in grown[:1]]
    first = min((sites.order_of(finding) for _, finding in found), default=1 << 62)
    found += [(1, _of_parted(each)) for each in parted if each.pair.reference.order < first]
    found.sort(key=lambda item: (item[0], sites.order_of(item[1])))
    return [replace(finding, id=f"f{n + 1}") for n, (_, finding) in enumerate(found)]


def _of_parted(parted: Parted) -> Finding:
    one, other = parted.tensors
    facts: dict[str, Fact] = {
        "sign": "replicas",
        "rank": "-" if one.rank is None else one.rank,
        "other_rank": "-" if other.rank is None else other.rank,
        "times": parted.times,
        "places": parted.places,
    }
    wrong = parted.times > JUMP
    return _finding(
        parted.pair.reference,
        verdict="fault" if wrong else "watch",
        side=parted.side,
        confidence=_SURE if wrong else _LEAST,
        facts=facts,
    )


def _first_of_each(given: Iterable[Given]) -> list[Given]:
    """The first difference of each setup kind, and of each weight."""
    kept: dict[tuple[str, str], Given] = {}
    for each in given:
        place = f"{each.pair.reference.operator}" if each.what == "weight" else ""
        kept.setdefault((each.what, place), each)
    return list(kept.values())


def _by_place(suspects: Iterable[Suspect]) -> list[list[Suspect]]:
    groups: dict[tuple[object, ...], list[Suspect]] = {}
    for each in suspects:
        lead = each.replayed.lead
        groups.setdefault((lead.operator, lead.rank, each.gradient, each.side), []).append(each)
    return list(groups.values())


def _of_given(given: Given, sites: Sites, explain: Explain) -> Finding:
    site = sites.of_given(given)
    weight = given.what == "weight"
    hypotheses = explain(site) if site else ()
    if not hypotheses and not weight:
        hypotheses = (
            Hypothesis(mechanism=given.what, confidence=_SURE, before=math.nan, after=math.nan),
        )
    stats = given.pair.stats
    facts: dict[str, Fact] = {"sign": "weight" if weight else "given"}
    if stats is not None:
        facts |= {"differing": stats.count - stats.equal, "elements": stats.count}
    return _finding(
        given.pair.reference,
        verdict="fault" if weight else "setup",
        side="unknown",
        confidence=_SURE,
        hypotheses=hypotheses,
        facts=facts,
    )


def _of_suspects(several: Sequence[Suspect], sites: Sites, explain: Explain) -> Finding:
    first = several[0]
    site = sites.of_suspect(first)
    part = first.output.candidate if first.side == "candidate" else first.output.reference
    tensor = (first.output.reference or first.output.candidate or part).side.tensor  # type: ignore[union-attr]
    facts: dict[str, Fact] = {"sign": first.sign, "steps": len(several)}
    if part is not None:
        facts |= {"ratio": part.local.ratio, "worst": part.local.worst}
        facts |= {"nonfinite": part.local.nonfinite} if part.local.nonfinite else {}
    made = _finding(
        tensor,
        verdict="fault",
        side=first.side,
        confidence=_confidence(first.times),
        hypotheses=explain(site) if site else (),
        facts=facts,
    )
    return made if first.output.reference else replace(made, tensor="")


def _of_grown(grown: Grown, sites: Sites, explain: Explain) -> Finding:
    """A place told by growth alone: uncertain unless the call's own inputs were captured.

    What was handed to the first operator of a block was made in the block before, where the last
    operator seen stands for it. A cause counts only where it leaves no more than noise.
    """
    place, before = grown.pair.reference, grown.before
    if before and place.slot == "input" and _blocks_apart(before, place):
        place = before
    site = sites.of_output(grown.call, grown.pair, grown.level)
    made = _finding(
        place,
        verdict="fault",
        side="unknown",
        confidence=min(0.9, _confidence(grown.times)),
        hypotheses=tuple(h for h in (explain(site) if site else ()) if _tested(h, grown)),
        facts={"sign": "growth", "times": grown.times},
        zone=grown.zone,
    )
    return replace(made, tensor=grown.pair.reference.id)


def _blocks_apart(first: TensorInfo, second: TensorInfo) -> bool:
    blocks = block_of(first.module), block_of(second.module)
    return None not in blocks and blocks[0] != blocks[1]


def _tested(hypothesis: Hypothesis, grown: Grown) -> bool:
    """Signs alone are weak in values that are noisy anyway; what is not finite is not."""
    return math.isfinite(hypothesis.after) or math.isinf(grown.times)


def _confidence(times: float) -> float:
    """Least at the limit, sure from ten times it on."""
    if math.isinf(times):
        return _SURE
    return min(_SURE, _LEAST + (_SURE - _LEAST) * math.log10(max(1.0, times)))


def _finding(tensor: TensorInfo, **parts: object) -> Finding:
    return Finding(
        id="",
        tensor=tensor.id,
        module=tensor.module,
        operator=tensor.operator,
        slot=tensor.slot_label,
        step=tensor.step,
        rank=tensor.rank,
        call=tensor.call,
        **parts,  # type: ignore[arg-type]
    )
