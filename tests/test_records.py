"""Frozen records by the hundred thousand are still the records that they say they are."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest

from core.comparison import Tolerance
from core.moments import Moments
from core.records import changed, maker_of
from core.stats import Extreme, SideStats
from core.wide import Wide


def test_a_change_that_changes_nothing_gives_the_record_itself() -> None:
    tolerance = Tolerance(1e-5, 1e-3)
    assert changed(tolerance, atol=1e-5) is tolerance
    assert changed(tolerance, atol=1e-5, rtol=0.1) == Tolerance(1e-5, 0.1)
    assert tolerance == Tolerance(1e-5, 1e-3)


@pytest.mark.parametrize(
    "record",
    [Wide(0.5, 3), Moments(2, Wide.of(1.0), Wide.of(2.0)), Extreme(1, 2, 3, 4), SideStats()],
)
def test_a_made_record_is_one_of_its_kind_and_frozen(record: object) -> None:
    values = [getattr(record, field.name) for field in fields(record)]  # type: ignore[arg-type]
    made = maker_of(type(record))(*values)
    assert made == record
    assert type(made) is type(record)
    assert repr(made) == repr(record)
    assert copy.copy(made) == pickle.loads(pickle.dumps(made)) == record
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(record)[0].name, 1)  # type: ignore[arg-type]


def test_a_maker_wants_all_values() -> None:
    with pytest.raises(TypeError):
        maker_of(Wide)(0.5)
