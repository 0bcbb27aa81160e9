"""How the elements of a tensor lie in a file, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.runs import Array
from language import say
from loaders.dtypes import BITS, holds, numpy_type
from loaders.part import RefusedError


@dataclass(frozen=True, slots=True)
class Encoding:
    """One element: in the file (`file`, with its byte order), as stored, as meant, as handed out.

    `storage` and `logical` are names as in TensorInfo; `decoded` is the type of arrays we return.
    """

    file: np.dtype[Any]
    storage: str
    logical: str
    decoded: np.dtype[Any]

    def decode(self, raw: NDArray[Any]) -> Array:
        """Values of raw elements, whose dtype is `file` in the file's or the machine's byte order.

        A view if the bytes are right already.
        """
        if self.decoded == np.bool_:
            return np.asarray(raw != 0)
        if not raw.dtype.isnative:
            raw = raw.astype(self.file.newbyteorder("="))
        return raw if raw.dtype == self.decoded else raw.view(self.decoded)


def meant(file: np.dtype[Any], storage: str, logical: str | None, where: str) -> Encoding:
    """The encoding of stored elements under the format a dump declares for them, if any.

    RefusedError where what is stored cannot hold what is declared.
    """
    fits = logical is not None and BITS.get(logical) == file.itemsize
    if storage == "opaque":
        if logical is None or not fits:
            reason = say(
                "it holds opaque elements of {itemsize} bytes without a fitting dtype.",
                itemsize=file.itemsize,
            )
            hint = say("Say what they are in an attribute `dtype`, for example `bfloat16`.")
            raise RefusedError("dtype", where, reason, hint)
        return Encoding(file, logical, logical, numpy_type(logical))
    logical = logical or storage
    if fits and file.kind in "iu" and storage != logical:
        return Encoding(file, storage, logical, numpy_type(logical))
    if not holds(storage, logical):
        raise RefusedError(
            "dtype",
            where,
            say("it declares {logical} but stores {storage}.", logical=logical, storage=storage),
        )
    return Encoding(file, storage, logical, numpy_type(storage))
