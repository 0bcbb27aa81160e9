"""One training or inference step: its file, the calls seen so far, what stands where."""

from __future__ import annotations

import dataclasses
import fnmatch
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from precision_recorder.entries import Entry
from precision_recorder.errors import RecorderWarning
from precision_recorder.operators import Choice
from precision_recorder.tensors import Identities, Identity, UnstorableError, copied, identity_of
from precision_recorder.values import Values
from precision_recorder.writer import Compression, DumpWriter, file_name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to record; see `record`."""

    parameters: bool = True
    operators: Choice = True
    gradients: bool = True
    modules: Callable[[str, Any], bool] | None = None
    dims: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    compression: Compression = None
    overwrite: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A copy of a tensor on its way into the file."""

    entry: Entry
    values: Values
    identity: Identity | None


class Step:
    """The tensors of one step. The file appears with the first of them."""

    def __init__(
        self,
        folder: Path,
        step: int,
        rank: int,
        options: Options,
        provenance: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.number = step
        self.path = folder / file_name(step, rank)
        self.calls: Counter[str] = Counter()
        self.parameters_written: set[str] = set()
        self.closed = False
        self._rank = rank
        self._options = options
        self._provenance = provenance
        self._identities = Identities()
        self._writer: DumpWriter | None = None

    def take(self, entry: Entry, tensor: Any) -> Taken | None:
        """The tensor's present values and all that is said about them; None if unstorable."""
        try:
            values = copied(tensor)
        except UnstorableError as error:
            self._skip(entry, str(error))
            return None
        identity = identity_of(tensor) if entry.pass_ == "forward" else None
        full = dataclasses.replace(
            entry,
            stride=tuple(tensor.stride()),
            contiguous=bool(tensor.is_contiguous()),
            dims=self._dims(entry, tensor.ndim),
            same_as=self._identities.path_of(identity),
        )
        return Taken(full, values, identity)

    def put(self, taken: Taken | None) -> None:
        """Write what was taken."""
        if taken is not None:
            self._open().write(taken.entry, taken.values)
            self._identities.remember(taken.identity, taken.entry.path)

    def write(self, entry: Entry, tensor: Any) -> None:
        """Take and put at once."""
        self.put(self.take(entry, tensor))

    def flush(self) -> None:
        """From here on a crash loses nothing that was written so far."""
        if self._writer is not None:
            self._writer.flush()

    def close(self, error: BaseException | None) -> None:
        """Finish the file, if there is one."""
        self.closed = True
        if self._writer is not None:
            self._writer.close(error)

    def _open(self) -> DumpWriter:
        if self._writer is None:
            self._writer = DumpWriter(
                self.path,
                step=self.number,
                rank=self._rank,
                provenance=self._provenance(),
                compression=self._options.compression,
                overwrite=self._options.overwrite,
            )
        return self._writer

    def _skip(self, entry: Entry, reason: str) -> None:
        self._open().skip(entry, reason)
        warnings.warn(f"{entry.path} was not recorded: {reason}", RecorderWarning, stacklevel=2)

    def _dims(self, entry: Entry, axes: int) -> tuple[str, ...]:
        """Of the patterns that fit the name, the first that names as many axes as there are."""
        operator = ".".join(filter(None, (entry.module, entry.op)))
        name = f"{operator}/{entry.slot_label}"
        fitting = (d for p, d in self._options.dims.items() if fnmatch.fnmatchcase(name, p))
        return next((tuple(d) for d in fitting if len(d) == axes), ())
