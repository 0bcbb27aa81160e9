"""A machine that follows a pickle and can call nothing.

A pickle is a program. This one follows its opcodes itself: the names it may mention are in a table,
a call of one of them makes a description, and what any other would make is a placeholder.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from language import say
from loaders.part import RefusedError


@dataclass(frozen=True, slots=True)
class Name:
    """Something the pickle mentions: `torch._utils._rebuild_tensor_v2`, `torch.float8_e4m3fn`."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something the pickle would have a program make: only what it asked for is kept."""

    asked: str

    def refusal(self, where: str) -> RefusedError:
        """Why this is not read."""
        reason = say(
            "its description asks for {asked}, which no tensor needs; nothing was run.",
            asked=self.asked,
        )
        return RefusedError("pickle", where, reason)


class _Mark:
    """Where a group of values on the stack begins."""


class Machine:
    """Stack and memo of one pickle; `builders` describe the calls they are named for."""

    def __init__(self, where: str, builders: Mapping[str, Callable[..., Any]]) -> None:
        self.where, self._builders = where, builders
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def followed(self, program: Any) -> Any:
        """What a program describes: bytes, or what reads like a file."""
        try:
            for opcode, argument, position in pickletools.genops(program):
                if opcode.name == "STOP":
                    return self.stack.pop()
                self.step(opcode.name, argument, position or 0)
        except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise RefusedError("damaged", self.where, say("its description is damaged.")) from error
        raise RefusedError("truncated", self.where, say("its description ends too early."))

    def step(self, opcode: str, argument: Any, position: int) -> None:  # noqa: ARG002
        """Follow one opcode, which stands at a position of the program."""
        if opcode in _PUSHED:
            self.stack.append(_PUSHED[opcode] if argument is None else argument)
        elif opcode in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = self.stack[-1]
        elif opcode == "MEMOIZE":
            self._memo[len(self._memo)] = self.stack[-1]
        elif opcode in ("BINGET", "LONG_BINGET"):
            self.stack.append(self._memo[argument])
        elif opcode == "GLOBAL":
            self.stack.append(Name(argument.replace(" ", ".")))
        elif opcode not in ("PROTO", "FRAME"):
            self._work(opcode)

    def _work(self, opcode: str) -> None:
        action = _ACTIONS.get(opcode)
        if action is None:
            raise self.refusal(say("the opcode {opcode}", opcode=opcode))
        action(self)

    def stack_global(self) -> None:
        """A name in two texts."""
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(Name(f"{module}.{name}"))

    def tuple_of(self, count: int) -> None:
        """The last values as a tuple."""
        if len(self.stack) < count:
            raise IndexError
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def marked(self) -> list[Any]:
        """The values since the last mark, taken off the stack."""
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _Mark:
                found = self.stack[at + 1 :]
                del self.stack[at:]
                return found
        raise IndexError

    def set_items(self, flat: list[Any]) -> None:
        """Put pairs into the dict below them; keys are text or numbers."""
        target = self.stack[-1]
        if isinstance(target, Opaque):
            return
        if not isinstance(target, dict) or len(flat) % 2:
            raise TypeError
        if not all(isinstance(key, (str, int)) for key in flat[::2]):
            raise TypeError  # also: hashing nested tuples may take forever
        target.update(zip(flat[::2], flat[1::2], strict=True))

    def append(self, values: list[Any]) -> None:
        """Put values into the list below them."""
        if isinstance(self.stack[-1], Opaque):
            return
        if not isinstance(self.stack[-1], list):
            raise TypeError
        self.stack[-1].extend(values)

    def storage(self) -> None:
        """Something outside the pickle, of which there is none here."""
        raise self.refusal(say("something outside of it"))

    def reduce(self) -> None:
        """A call, of which only a description is made."""
        arguments, name = self.stack.pop(), self.stack.pop()
        build = self._builders.get(name.text) if isinstance(name, Name) else None
        if build is None or not isinstance(arguments, tuple):
            self.stack.append(_opaque(name))
        else:
            self.stack.append(build(*arguments))

    def new_object(self, arguments: int) -> None:
        """An object of a class, of which only the name is kept."""
        del self.stack[-arguments:]
        self.stack.append(_opaque(self.stack.pop()))

    def build(self) -> None:
        """State of an object is dropped, as what an OrderedDict has beside its items."""
        self.stack.pop()
        if not isinstance(self.stack[-1], dict | Opaque):
            raise self.refusal(say("the state of an object"))

    def refusal(self, what: str) -> RefusedError:
        return Opaque(what).refusal(self.where)


def _opaque(called: Any) -> Opaque:
    what = called.text if isinstance(called, Name) else "something"
    return Opaque(say("a call of {what!r}", what=what[:80]))


_PUSHED: Mapping[str, Any] = {
    "MARK": _Mark,
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), ""),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), 0),
}
_ACTIONS: Mapping[str, Callable[[Machine], None]] = {
    "EMPTY_DICT": lambda machine: machine.stack.append({}),
    "EMPTY_LIST": lambda machine: machine.stack.append([]),
    "EMPTY_SET": lambda machine: machine.stack.append(Opaque("a set")),
    "ADDITEMS": lambda machine: machine.append(machine.marked()),
    "TUPLE": lambda machine: machine.stack.append(tuple(machine.marked())),
    "TUPLE1": lambda machine: machine.tuple_of(1),
    "TUPLE2": lambda machine: machine.tuple_of(2),
    "TUPLE3": lambda machine: machine.tuple_of(3),
    "SETITEM": lambda machine: machine.set_items([machine.stack.pop(-2), machine.stack.pop()]),
    "SETITEMS": lambda machine: machine.set_items(machine.marked()),
    "APPEND": lambda machine: machine.append([machine.stack.pop()]),
    "APPENDS": lambda machine: machine.append(machine.marked()),
    "STACK_GLOBAL": Machine.stack_global,
    "BINPERSID": lambda machine: machine.storage(),
    "REDUCE": Machine.reduce,
    "BUILD": lambda machine: machine.build(),
    "NEWOBJ": lambda machine: machine.new_object(1),
    "NEWOBJ_EX": lambda machine: machine.new_object(2),
}
