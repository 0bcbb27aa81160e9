"""Three runs of one decoder: a candidate in units of a yardstick's error, end to end."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_decoder import Decoder, Fault

from analysis.compare import compare
from analysis.table import pair_table
from analysis.three_way import ThreeWay, judged, ratios
from analysis.verdict import judge
from core.runs import Array, Run

SEEDS = range(4)


def ended(reference: Run, candidate: Run, yardstick: Run) -> ThreeWay:
    """The verdict as the command line and the page Many runs come to it."""
    compared = [compare(reference, other) for other in (candidate, yardstick)]
    tables = [pair_table(each, judge(each), ("relative_l2",)) for each in compared]
    return judged(ratios(*tables))


def louder(y: Array) -> Array:
    return y * np.float32(1.25)


@pytest.mark.parametrize("seed", SEEDS)
def test_another_order_of_sums_is_as_far_from_float32_as_the_twin_is(seed: int) -> None:
    golden = Decoder(seed=seed, padding=3).run()
    twin = Decoder(seed=seed, padding=3, dtype="bfloat16").run()
    candidate = Decoder(seed=seed, padding=3, dtype="bfloat16", order=16).run()
    said = ended(golden, candidate, twin)
    assert said.verdict == "rounding", said
    assert said.median == pytest.approx(1.0, abs=0.3)
    assert ended(twin, candidate, golden).verdict == "rounding"


@pytest.mark.parametrize("where", ["layers.0.attn", "layers.1.down"])
@pytest.mark.parametrize("golden_is_the_yardstick", [False, True])
def test_a_fault_stands_out_whichever_run_is_the_yardstick(
    where: str, golden_is_the_yardstick: bool
) -> None:
    faults: dict[str, Fault] = {where: louder}
    golden, twin = Decoder().run(), Decoder(dtype="bfloat16").run()
    candidate = Decoder(dtype="bfloat16", order=16, faults=faults).run()
    a, b = (twin, golden) if golden_is_the_yardstick else (golden, twin)
    said = ended(a, candidate, b)
    assert (said.verdict, said.first) == ("fault", f"{where}:forward_output.0")


@pytest.mark.parametrize("repeat_order", [0, 8])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_repeat_of_the_reference_gives_the_base_of_its_nondeterminism(
    dtype: str, repeat_order: int
) -> None:
    """A repeat equal to the bit leaves the floor; one with other sums is itself the unit."""
    reference = Decoder(dtype=dtype).run()
    repeat = Decoder(dtype=dtype, order=repeat_order).run()
    assert ended(reference, Decoder(dtype=dtype, order=16).run(), repeat).verdict == "rounding"
    broken = Decoder(dtype=dtype, order=16, faults={"layers.1.attn": louder}).run()
    said = ended(reference, broken, repeat)
    assert (said.verdict, said.first) == ("fault", "layers.1.attn:forward_output.0")
