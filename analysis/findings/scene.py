"""A site as detectors look at it: the suspected side, its error, and replays with a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.findings.discrepancy import Discrepancy
from analysis.replay.fit import UNFIT
from analysis.replay.local import rounded
from analysis.replay.registry import Operands
from analysis.replay.site import OperatorCall, Side, Site
from core.findings import Fact
from core.runs import Array
from core.tensors import TensorInfo
from metrics.error import relative_l2
from metrics.formats import coarser_of, format_of, kind

Floats = NDArray[np.float64]

_ROUNDING_VARIANCE = 0.1803  # of one rounding, in squared unit roundoffs


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One faulty output, parameter or input, and everything around it.

    `call` is the suspected run's, `twin` the other's (None when only one run has the operator).
    `error` holds what the output should be and is. `given` are the operands of the suspected call
    where it was replayed, else empty.
    """

    site: Site
    call: OperatorCall
    twin: OperatorCall | None
    tensor: TensorInfo
    error: Discrepancy
    given: Operands

    @property
    def kind(self) -> str:
        """Operator kind of the replay registry, `unknown` without one."""
        return self.site.kind

    @property
    def slot(self) -> str:
        """`output`, `input`, `parameter`, `gradient` (of an input or parameter) by the label.

        An input that an operator made, unseen, is an output.
        """
        head = self.site.slot.partition(".")[0]
        if head == "forward_input" and self.site.noise is not None:
            return "output"
        slots = {"forward_params": "parameter", "forward_input": "input"}
        return slots.get(head, "gradient" if head.startswith("backward") else "output")

    @property
    def argument(self) -> str:
        """Argument of the slot, such as `0` or `weight`."""
        return self.site.slot.partition(".")[2] or self.site.output

    @property
    def dtype(self) -> str:
        """Logical format of the suspected tensor."""
        return self.tensor.dtype

    @property
    def whole(self) -> bool:
        """Whether all rows of the output were replayed."""
        return self.error.expected.shape == self.tensor.shape

    def attribute(self, name: str) -> Fact | None:
        """The reference's attribute, recorded or fitted, None where it has none."""
        return self.site.attributes.get(name)

    def replay(
        self,
        *,
        inputs: Mapping[str, Array] | None = None,
        parameters: Mapping[str, Array] | None = None,
        **attributes: Fact,
    ) -> Floats | None:
        """The output with some operands or attributes changed; None where it cannot be computed."""
        if self.site.function is None:
            return None
        given = replace(
            self.given,
            inputs={**self.given.inputs, **(inputs or {})},
            parameters={**self.given.parameters, **(parameters or {})},
        )
        try:
            answers = self.site.function(given, {**self.site.attributes, **attributes})
        except UNFIT:
            return None  # the changed operands do not fit together
        answer = answers.get(self.site.output)
        if answer is None or answer.value.shape != self.error.expected.shape:
            return None
        return np.asarray(answer.value, np.float64)

    def others(self, *, same_step: bool | None = None) -> Iterator[OperatorCall]:
        """Other calls of the suspected run's same operator: other steps, other calls."""
        calls = self.site.calls_candidate
        if self.call.run is self.site.reference_run:
            calls = self.site.calls_reference
        for one in calls:
            same = one.operator == self.call.operator and one is not self.call
            if same and (same_step is None or (one.step == self.call.step) == same_step):
                yield one


def scene_of(site: Site) -> Scene:
    """Look at a site from the side that is wrong: the candidate unless only the reference is."""
    if site.candidate is None or site.slot.startswith(("forward_params", "forward_input")):
        return _unreplayed(site)
    reference = site.reference
    wrong = site.candidate
    if reference is not None and wrong.ratio < 2 < reference.ratio:
        wrong = reference
    other = site.reference_call if wrong is site.candidate else site.candidate_call
    return Scene(
        site=site,
        call=wrong.call,
        twin=other,
        tensor=wrong.tensor,
        error=_error(wrong, site.valid),
        given=wrong.given,
    )


def _error(side: Side, valid: Array) -> Discrepancy:
    exact = side.answer.exact
    value = rounded(side.expected, side.tensor.dtype) if exact else side.expected
    expected = np.asarray(value, np.float64)
    counted = np.broadcast_to(np.asarray(valid, bool), expected.shape)
    if side.answer.free is not None:
        counted = counted & ~side.answer.free
    variance = np.broadcast_to(np.asarray(side.variance, np.float64), expected.shape)
    return Discrepancy(expected, np.asarray(side.actual, np.float64), variance, counted)


def _unreplayed(site: Site) -> Scene:
    """Against the reference's own values: parameters, inputs and operators nobody knows."""
    tensor = tensor_at(site.candidate_call, site.slot)
    if tensor is None:
        raise KeyError(f"{site.candidate_call.operator} has no {site.slot}.")
    observed = np.asarray(site.candidate_call.value(tensor), np.float64)
    twin = tensor_at(site.reference_call, site.slot) if site.reference_call else None
    if site.reference_call is None or twin is None or twin.shape != tensor.shape:
        error = Discrepancy(
            np.full(observed.shape, np.nan),
            observed,
            np.zeros(observed.shape),
            np.ones(observed.shape, bool),
        )
    else:
        expected = np.asarray(site.reference_call.value(twin), np.float64)
        valid = np.broadcast_to(np.asarray(site.valid, bool), expected.shape)
        stored = _stored(site)
        if stored:
            valid = np.ones(expected.shape, bool)
        variance = _rounding(expected, twin.dtype, tensor.dtype, stored=stored)
        variance = variance + (0.0 if stored else _noise(site, expected))
        error = Discrepancy(expected, observed, variance, valid)
    return Scene(
        site=site,
        call=site.candidate_call,
        twin=site.reference_call,
        tensor=tensor,
        error=error,
        given=Operands(inputs={}),
    )


def _noise(site: Site, expected: Floats) -> Floats | float:
    """Variance of an output nobody replays: its operator's inputs differ, and so may it, alike.

    As relative error, the largest among what the call was handed, or what the site says.
    """
    call = site.reference_call
    if call is None:
        return 0.0
    handed = call.gradients_in if site.slot.startswith("backward") else call.inputs
    ids = {tensor.id for tensor in (*handed.values(), *call.inputs.values())}
    found = [
        relative_l2(p.stats) for p in site.comparison.pairs if p.reference.id in ids and p.stats
    ]
    share = max((one for one in found if np.isfinite(one)), default=0.0)
    share = share if site.noise is None else site.noise
    return np.asarray(share**2 * (expected**2 + np.mean(expected**2)) / 2)


def _stored(site: Site) -> bool:
    """Whether a site is a parameter, or an input that no operator of the run made."""
    handed_in = site.slot.startswith("forward_input") and site.noise is None
    return handed_in or site.slot.startswith("forward_params")


def _rounding(values: Floats, reference: str, candidate: str, *, stored: bool) -> Floats:
    """One rounding to the coarser format; none for stored values of one format: they are copies."""
    coarse = coarser_of(reference, candidate)
    if kind(coarse) != "float" or (stored and reference == candidate):
        return np.zeros(values.shape)
    roundoff = format_of(coarse).unit_roundoff
    return np.asarray(_ROUNDING_VARIANCE * (roundoff * values) ** 2)


def tensor_at(call: OperatorCall | None, slot: str) -> TensorInfo | None:
    """The tensor of a call at a slot label such as `forward_params.weight`."""
    if call is None:
        return None
    head, _, argument = slot.partition(".")
    groups = {
        "forward_params": call.parameters,
        "forward_input": call.inputs,
        "forward_output": call.outputs,
        "backward_input": call.gradients_in,
        "backward_output": call.gradients_out,
        "backward_params": call.parameter_gradients,
    }
    group = groups.get(head, call.outputs)
    return group.get(argument) or (next(iter(group.values()), None) if not argument else None)
