"""float16 and bfloat16 to float32: exact, and one instruction or two for sixteen of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from metrics.engine.jit import intrinsic
from metrics.engine.lanes import F16, F32, I16, I32, Lanes
from metrics.engine.steps import memories, steps


def _decoding(decoded: Callable[[Lanes], Lanes]) -> Any:
    """The loop from 16 bits to float32."""

    @intrinsic
    def decode(typing_context: Any, source: Any, target: Any, count: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = (I16, F32)
            stored, floats = memories(context, builder, signature, arguments, kinds)

            def step(at: Any, mask: Lanes | None) -> None:
                floats.store(at, decoded(stored.load(at, mask)), mask)

            steps(builder, arguments[-1], step)
            return context.get_dummy_value()

        return types.void(source, target, count), generate

    return decode


load_half = _decoding(lambda bits: bits.bits_as(F16).widened(F32))
load_brain = _decoding(lambda bits: (bits.widened(I32) << 16).bits_as(F32))
