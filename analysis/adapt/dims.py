"""The axes of a tensor as text, given at compare time: `b s[cp] (heads*dim)[tp] # dp:replicated`.

    spec    := dim (space dim)* ['#' comment]
    dim     := ('1' | name | '(' name ('*' name)+ ')') ['[' shard (',' shard)* ']']
    shard   := axis [':' ('sharded' | 'partial')]
    comment := (axis ':replicated' | axis '=' size)*

A dim is an axis of the stored tensor, a shard says over which axis of ranks it is cut (or, if
partial, of which sum it is a part), `axis:replicated` that the ranks of that axis hold the same.
Axis names are free. Where ranks lie on several axes their sizes must be given; the last one so
named runs fastest over the ranks. `1` is an axis of length 1 that is dropped, a name in both
specs brings the axes of the candidate into the reference's order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from analysis.adapt.proposals import Members, Proposal, plan_of
from analysis.adapt.steps import Plan
from core.adaptation import Operation, RunSide
from core.comparison import DimsRule
from core.errors import CompareError
from core.runs import Run
from language import say

_DIM = re.compile(r"(?P<name>1|\w+|\(\w+(?:\*\w+)+\))(?:\[(?P<shards>[^\]]*)\])?")
_SHARD = re.compile(r"(?P<axis>\w+)(?::(?P<how>sharded|partial))?")
_COMMENT = re.compile(r"(?P<axis>\w+)(?::(?P<replicated>replicated)|=(?P<size>\d+))")
_RULE = re.compile(r"(?:(?P<side>reference|candidate):)?(?P<pattern>[^=]+)=(?P<dims>.+)")
_HINT = say("Write for example: b s h[tp], or t h[tp:partial] # dp:replicated tp=2 dp=2.")


@dataclass(frozen=True, slots=True)
class Spec:
    """A dims text, read. `names` has one entry an axis; a fused axis has its factors.

    `shards` lists (axis of ranks, axis of the tensor or -1, "concat", "sum" or "replicated");
    `sizes` are those of axes of ranks that were given.
    """

    names: tuple[tuple[str, ...], ...]
    shards: tuple[tuple[str, int, Operation], ...]
    sizes: tuple[tuple[str, int], ...]


def parse(text: str) -> Spec:
    """A dims text, read; CompareError names the part that is not understood."""
    body, _, comment = text.partition("#")
    names: list[tuple[str, ...]] = []
    shards: list[tuple[str, int, Operation]] = []
    for n, part in enumerate(body.split()):
        match = _DIM.fullmatch(part)
        if match is None:
            raise CompareError(
                say("The dims {text!r} hold {part!r}, which is no dim.", text=text, part=part),
                _HINT,
            )
        names.append(tuple(match["name"].strip("()").split("*")))
        shards.extend(_shards(match["shards"] or "", n, text))
    sizes = []
    for part in comment.split():
        match = _COMMENT.fullmatch(part)
        if match is None:
            raise CompareError(
                say("The dims {text!r} hold {part!r} after the #.", text=text, part=part), _HINT
            )
        if match["size"]:
            sizes.append((match["axis"], int(match["size"])))
        else:
            shards.append((match["axis"], -1, "replicated"))
    return Spec(tuple(names), tuple(shards), tuple(sizes))


def rule_from_text(text: str) -> DimsRule:
    """`PATTERN=DIMS`, for one side with `reference:` or `candidate:` before it, as a rule."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise CompareError(
            say("{text!r} gives no dims.", text=text),
            say("Write PATTERN=DIMS, as in '*qkv*=b s h[tp]'."),
        )
    parse(match["dims"])
    side = {None: "both", "reference": "reference", "candidate": "candidate"}[match["side"]]
    return DimsRule(match["pattern"], match["dims"].strip(), side)  # type: ignore[arg-type]


def dims_of(
    rules: Sequence[DimsRule], reference: Members, candidate: Members
) -> tuple[Spec | None, Spec | None] | None:
    """The specs that hold for the two sides of a pair, None when none does."""
    found = (_first(rules, reference, "reference"), _first(rules, candidate, "candidate"))
    return None if found == (None, None) else found


def steps_from_dims(
    specs: tuple[Spec | None, Spec | None],
    reference: Run,
    candidate: Run,
    ours: Members,
    theirs: Members,
) -> Proposal:
    """The steps that two specs ask for; CompareError when they do not fit the tensors."""
    a, b = plan_of("reference", reference, ours), plan_of("candidate", candidate, theirs)
    try:
        a, names_a = _merged(a, specs[0])
        b, names_b = _merged(b, specs[1])
        if names_a and names_b:
            a, names_a = _split_fused(a, names_a, names_b, b)
            b, names_b = _split_fused(b, names_b, names_a, a)
            b = _in_order(b, names_b, names_a)
    except (ValueError, IndexError) as error:
        raise CompareError(
            say("The dims given for {id} do not fit: {error}.", id=ours[0].id, error=error), _HINT
        ) from error
    return Proposal((*a.steps, *b.steps))


Names = tuple[tuple[str, ...], ...]


def _shards(text: str, axis: int, whole: str) -> list[tuple[str, int, Operation]]:
    found: list[tuple[str, int, Operation]] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        match = _SHARD.fullmatch(part)
        if match is None:
            raise CompareError(
                say("The dims {whole!r} hold the shard {part!r}.", whole=whole, part=part), _HINT
            )
        found.append((match["axis"], axis, "sum" if match["how"] == "partial" else "concat"))
    return found


def _first(rules: Sequence[DimsRule], members: Members, side: RunSide) -> Spec | None:
    for rule in rules:
        if rule.side in (side, "both") and any(fnmatchcase(m.id, rule.pattern) for m in members):
            return parse(rule.dims)
    return None


def _merged(plan: Plan, spec: Spec | None) -> tuple[Plan, Names]:
    """The shards in one array, its axes of length 1 dropped, and the names of what is left."""
    if spec is None:
        if len(plan.arrays) > 1:
            raise ValueError(
                say("{arrays} ranks and no dims that say how they are cut", arrays=len(plan.arrays))
            )
        return plan, ()
    if len(spec.names) != len(plan.arrays[0].shape):
        raise ValueError(
            say(
                "{names} dims for {shape} axes",
                names=len(spec.names),
                shape=len(plan.arrays[0].shape),
            )
        )
    for axis, how, size in reversed(_groups(plan, spec)):
        plan = plan.then("concat", axis, size) if how == "concat" else plan.then(how, size)
    if len(plan.arrays) > 1:
        raise ValueError(
            say("{arrays} tensors are left: name every axis of ranks", arrays=len(plan.arrays))
        )
    kept = [n for n, name in enumerate(spec.names) if name != ("1",)]
    if len(kept) < len(spec.names):
        plan = plan.then("squeeze", *(plan.arrays[0].shape[n] for n in kept))
    return plan, tuple(spec.names[n] for n in kept)


def _groups(plan: Plan, spec: Spec) -> list[tuple[int, Operation, int]]:
    """Axis, step and number of ranks for each axis of ranks, the one that runs fastest last."""
    given = dict(spec.sizes)
    unknown = [axis for axis, *_ in spec.shards if axis not in given]
    rest = len(plan.arrays) // math.prod(given.get(axis, 1) for axis, *_ in spec.shards)
    if len(unknown) > 1 and rest > 1:
        raise ValueError(say("the sizes of {unknown} are not given", unknown=", ".join(unknown)))
    order = list(given)
    shards = sorted(spec.shards, key=lambda s: order.index(s[0]) if s[0] in given else len(order))
    sizes = [given.get(axis, rest) for axis, *_ in shards]
    return [(n, how, size) for (_, n, how), size in zip(shards, sizes, strict=True) if size > 1]


def _split_fused(plan: Plan, names: Names, others: Names, other: Plan) -> tuple[Plan, Names]:
    """Fused axes cut as the other side has them, where the other side has them apart."""
    lengths = {n[0]: s for n, s in zip(others, other.arrays[0].shape, strict=True) if len(n) == 1}
    shape: list[int] = []
    apart: list[tuple[str, ...]] = []
    for name, length in zip(names, plan.arrays[0].shape, strict=True):
        known = [lengths.get(part) for part in name]
        if len(name) > 1 and None not in known:
            shape += [n for n in known if n is not None]
            apart += [(part,) for part in name]
        else:
            shape.append(length)
            apart.append(name)
    return (
        (plan, names) if len(shape) == len(names) else (plan.then("unmerge", *shape), tuple(apart))
    )


def _in_order(plan: Plan, names: Names, wanted: Names) -> Plan:
    if sorted(names) != sorted(wanted):
        raise ValueError(
            say(
                "the candidate's axes are {names}, the reference's {wanted}",
                names=names,
                wanted=wanted,
            )
        )
    order = [names.index(name) for name in wanted]
    return plan if order == sorted(order) else plan.then("transpose", *order)
