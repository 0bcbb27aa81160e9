"""Templates that say what the names of a dump mean: `step{step}/rank{rank}/{module}.{slot}.{i}`.

For trees of `.npy`, `.npz`, `.pt`, `.safetensors` and HDF5 that somebody's own script wrote. A name
is the path of a file without its suffix, followed by `/` and the key where a file holds several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from core.errors import LoadError
from core.runs import Problem
from core.tensors import Pass, Slot, TensorInfo
from language import say
from loaders.naming import Naming
from loaders.part import DumpFile, Part

_LONGEST, _LONGEST_NAME, _MOST_ANY = 500, 1000, 4
_SPLIT = re.compile(r"(\{[^{}]*\}|\[|\])")
# What a field holds: a number, a word of a list, or text without these characters and without the
# one that follows it in the template. Only a module holds anything, so matching takes no longer
# than the square of a name's length, whatever the template.
_NUMBERS = frozenset({"step", "rank", "call"})
_TEXTS: Mapping[str, str] = {
    **dict.fromkeys(("op", "argument", "_"), "/"),
    **dict.fromkeys(("class", "parameter", "gradient"), "/."),
}
_SLOTS: Mapping[str, Slot] = {
    **dict.fromkeys(("input", "inputs", "in", "inp"), "input"),
    **dict.fromkeys(("output", "outputs", "out"), "output"),
    **dict.fromkeys(("weight", "weights", "param", "params", "parameter"), "parameter"),
    **dict.fromkeys(("grad", "grads", "gradient"), "parameter"),
}
_GRADIENTS = frozenset({"grad", "grads", "gradient"})
_PASSES: Mapping[str, Pass] = {
    **dict.fromkeys(("forward", "fwd", "fw", "f"), "forward"),
    **dict.fromkeys(("backward", "bwd", "bw", "b"), "backward"),
}
_WORDS = {"slot": _SLOTS, "pass": _PASSES}
_KNOWN = {"module", *_NUMBERS, *_TEXTS, *_WORDS}
HELP = say(
    "Fields: {module} {op} {class} {slot} {pass} {argument} {parameter} {gradient} "
    "{step} {rank} {call}, and {_} for text that means nothing; [ ] around a part that "
    "may be missing."
)


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template; LoadError from `parsed` says what is wrong with a text."""

    text: str
    pattern: re.Pattern[str] = field(repr=False, compare=False)

    def match(self, name: str) -> Naming | None:
        """What a name says under this template, None if it does not fit.

        Folders above the part that fits may be there. Slots are called `input`, `in`, `output`,
        `out`, `weight`, `param`, `grad`, passes `forward`, `fwd`, `backward`, `bwd`, and so on.
        """
        found = self.pattern.fullmatch(name) if len(name) <= _LONGEST_NAME else None
        if found is None:
            return None
        said = {key: value for key, value in found.groupdict().items() if value is not None}
        pass_, slot, argument = _meaning(said)
        module = said.get("module", "").replace("/", ".").strip(".")
        numbers = {key: int(said[key]) for key in ("step", "rank", "call") if key in said}
        naming = Naming(
            name="",
            module=module,
            argument=argument,
            pass_=pass_,
            slot=slot,
            module_class=said.get("class", ""),
            op=said.get("op", ""),
            call=numbers.get("call", 0),
            step=numbers.get("step"),
            rank=numbers.get("rank"),
        )
        return replace(naming, name=_name(naming))


@dataclass(frozen=True, slots=True)
class Preview:
    """What a template makes of some names: those that fit with their meaning, and those that do
    not.
    """

    matches: tuple[tuple[str, Naming], ...]
    misses: tuple[str, ...]


def parsed(text: str) -> Template:
    """A template from its text; LoadError says what is wrong, with the fields there are."""
    return _parsed(text)


def preview(text: str, names: Iterable[str]) -> Preview:
    """Try a template on names, as while it is being typed; LoadError while it is no template."""
    template = parsed(text)
    tried = [(name, template.match(name)) for name in names]
    return Preview(
        tuple((name, naming) for name, naming in tried if naming is not None),
        tuple(name for name, naming in tried if naming is None),
    )


def templated(part: Part, file: DumpFile, template: Template) -> Part:
    """The tensors of a file under a template; those that do not fit keep their own names."""
    items, misses = [], []
    for info, source in part.items:
        texts = texts_of(info, file)
        naming = next(filter(None, map(template.match, texts)), None)
        if naming is None:
            misses.append(texts[0])
        items.append((_renamed(info, naming) if naming else info, source))
    problems = part.problems
    if misses:
        what = say(
            "{misses} names do not fit the template {text!r}: {first}.",
            misses=len(misses),
            text=template.text,
            first=misses[0][:200],
        )
        problems = (*problems, Problem("template", file.name, what))
    said = {"template": template.text}
    return replace(
        part, items=tuple(items), problems=problems, provenance={**part.provenance, **said}
    )


def texts_of(info: TensorInfo, file: DumpFile) -> list[str]:
    """The names of a tensor that a template may be meant for, the longest first."""
    own = str(info.attrs.get("dump_name", info.name))
    folder, _, name = file.name.rpartition("/")
    stem = "/".join(filter(None, [folder, name.rpartition(".")[0] or name]))
    return [own] if own == stem else [f"{stem}/{own}", own]


def _renamed(info: TensorInfo, naming: Naming) -> TensorInfo:
    """Step and rank of the file stay where the template does not speak of them."""
    return replace(
        info,
        id=naming.name,
        name=naming.name,
        module=naming.module,
        argument=naming.argument,
        pass_=naming.pass_,
        slot=naming.slot,
        module_class=naming.module_class,
        op=naming.op,
        call=naming.call,
        step=info.step if naming.step is None else naming.step,
        rank=info.rank if naming.rank is None else naming.rank,
        attrs={"dump_name": info.name, **info.attrs},
    )


def _meaning(said: Mapping[str, str]) -> tuple[Pass, Slot, str]:
    for key, known in (("parameter", "parameter"), ("gradient", "gradient")):
        if key in said:
            pass_: Pass = "parameter" if known == "parameter" else "gradient"
            return pass_, "parameter", said[key]
    word = said.get("slot", "").lower()
    slot = _SLOTS.get(word)
    way = _PASSES.get(said.get("pass", "").lower())
    argument = said.get("argument", "" if slot is None else "0")
    if slot is None:
        return way or "unknown", "output" if way else "value", argument
    if slot == "parameter":
        is_gradient = word in _GRADIENTS or way == "backward"
        return "gradient" if is_gradient else "parameter", slot, argument
    return way or "forward", slot, argument


def _name(naming: Naming) -> str:
    """A name made of what was understood, equal for both sides of a comparison."""
    at = f"@{naming.call}" if naming.call else ""
    kind = naming.slot if naming.pass_ in ("unknown", naming.slot) else None
    label = kind or f"{naming.pass_}_{naming.slot}"
    last = f"{label}.{naming.argument}" if naming.argument else label
    return "/".join(filter(None, [f"{naming.module}{at}", naming.op, last]))


@lru_cache(maxsize=64)
def _parsed(text: str) -> Template:
    if not 0 < len(text) <= _LONGEST:
        raise LoadError(say("A template is one line of at most 500 characters."), HELP)
    pieces = [piece for piece in _SPLIT.split(text.strip("/")) if piece]
    _check(pieces)
    after = [_text_after(pieces[n + 1 :]) for n in range(len(pieces))]
    pattern = "".join(map(_regex, pieces, after))
    return Template(text, re.compile(rf"(?:.*?/)??{pattern}", re.IGNORECASE | re.DOTALL))


def _text_after(pieces: list[str]) -> str:
    return next((piece for piece in pieces if piece[0] not in "{[]"), "")


def _check(pieces: list[str]) -> None:
    names = [piece[1:-1] for piece in pieces if piece.startswith("{")]
    unknown = [name for name in names if name not in _KNOWN]
    if unknown:
        raise LoadError(
            say(
                "The template has a field {{{unknown}}}, which is unknown.", unknown=unknown[0][:40]
            ),
            HELP,
        )
    if not {"module", "op"} & set(names):
        raise LoadError(say("The template names neither {module} nor {op}."), HELP)
    repeated = [name for name in names if name != "_" and names.count(name) > 1]
    if repeated or names.count("_") > _MOST_ANY:
        raise LoadError(
            say("The template repeats {{{repeated}}} too often.", repeated=(repeated or ["_"])[0]),
            HELP,
        )
    depth = 0
    for before, piece in zip(["", *pieces], pieces, strict=False):
        depth += (piece == "[") - (piece == "]")
        if not 0 <= depth <= 1:
            raise LoadError(
                say("Brackets of the template do not pair; they cannot be nested."), HELP
            )
        if before.startswith("{") and piece.startswith("{"):
            raise LoadError(
                say(
                    "The template needs text between {before} and {piece}.",
                    before=before,
                    piece=piece,
                ),
                HELP,
            )
    if depth:
        raise LoadError(say("Brackets of the template do not pair."), HELP)


def _regex(piece: str, following: str) -> str:
    """A piece as a pattern; `following` is the text after it."""
    if piece in ("[", "]"):
        return "(?:" if piece == "[" else ")?"
    if not piece.startswith("{"):
        return re.escape(piece)
    name = piece[1:-1]
    if name == "module":
        inside = ".+?"
    elif name in _NUMBERS:
        inside = r"\d{1,9}"
    elif name in _WORDS:
        inside = "|".join(sorted(_WORDS[name], key=len, reverse=True))
    else:
        inside = f"[^{re.escape(_TEXTS[name] + following[:1])}]{'*' if name == '_' else '+'}+"
    return inside if name == "_" else f"(?P<{name}>{inside})"
