"""What a page made of a table, kept for its next run and for others who read the same address."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from language import current
from store.cache import Recent
from ui.frame import View

T = TypeVar("T")

_MOST = 64  # figures of 100 000 pairs take some hundred kB each
_kept: Recent[tuple[pd.DataFrame, Any]] = Recent(_MOST)


def kept(view: View, name: str, make: Callable[[], T], *parts: Hashable) -> T:
    """`make()`, or what it gave before for the same table, address, theme and language.

    For what depends on nothing else, or on `parts` too; treat the value as read-only. A table is
    never changed: another diagnosis of the comparison makes another one.
    """
    address = tuple(sorted(st.query_params.to_dict().items()))
    key = (name, id(view.table), address, view.theme, current(), *parts)
    found: T = _kept.get(key, lambda: (view.table, make()))[1]  # the table lives as long: its id
    return found
