"""The names of msprobe: what they say, and a numbering of calls that one extra call cannot shift.

`Module.<path>.<Class>.<way>.<n>` counts the calls of one module. `<Kind>.<function>.<n>.<way>`
counts a function over the whole model, so one more call anywhere renames all later ones; here
calls are counted inside the module call they happen in.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_MODULE = re.compile(
    r"(?:Module|Cell)\.(?:(?P<path>.+)\.)?(?P<cls>[^.]+)"
    r"\.(?P<way>forward|backward|parameters_grad)\.(?P<n>\d{1,9})"
)
_CALL = re.compile(
    r"(?P<kind>[A-Za-z]+)\.(?P<function>.+)\.(?P<n>\d{1,9})\.(?P<way>forward|backward)"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of dump.json; `name` is ours, without step and rank. Fields as in TensorInfo."""

    name: str
    way: str  # forward, backward, parameters_grad, or empty for something saved by hand
    module: str
    module_class: str = ""
    op: str = ""
    call: int = 0


def entries(names: Iterable[str], parents: Mapping[str, str | None]) -> dict[str, Entry]:
    """The meaning of every entry, by its name in dump.json, given its parents in construct.json.

    A backward call belongs where its forward call was made: construct.json often hangs it higher.
    Without a module around it a function is counted over the model, in the order of the entries.
    """
    numbers: dict[tuple[str, int, str], int] = defaultdict(int)
    placed: dict[str, Entry] = {}
    found: dict[str, Entry] = {}
    for name in names:
        if match := _MODULE.fullmatch(name):
            path, n = match["path"] or "", int(match["n"])
            found[name] = Entry(name, match["way"], path, match["cls"], call=n)
        elif match := _CALL.fullmatch(name):
            call = f"{match['kind']}.{match['function']}.{match['n']}"
            if call not in placed:
                placed[call] = _placed(match, call, parents, numbers)
            inside = placed[call]
            ours = f"{inside.name}.{match['way']}"
            found[name] = Entry(ours, match["way"], inside.module, op=inside.op, call=inside.call)
        else:
            found[name] = Entry(name, "", "", op=name)
    return found


def _placed(
    match: re.Match[str],
    call: str,
    parents: Mapping[str, str | None],
    numbers: dict[tuple[str, int, str], int],
) -> Entry:
    """A function's call: the module call around it, and its number in there."""
    around = _module_around(f"{call}.forward", parents) or _module_around(
        f"{call}.backward", parents
    )
    module = around["path"] or "" if around else ""
    n = int(around["n"]) if around else 0
    op = match["function"].strip("_") or match["function"]
    number = numbers[module, n, op]
    numbers[module, n, op] += 1
    where = f"{module}@{n}/" if n else f"{module}/" if module else ""
    name = f"{where}{match['kind']}.{match['function']}.{number}"
    return Entry(name, "", module, op=f"{op}_{number}" if number else op, call=n)


def _module_around(name: str, parents: Mapping[str, str | None]) -> re.Match[str] | None:
    """The nearest module above a name; chains that run in circles end."""
    seen = set()
    above = parents.get(name)
    while above is not None and above not in seen:
        if match := _MODULE.fullmatch(above):
            return match
        seen.add(above)
        above = parents.get(above)
    return None
