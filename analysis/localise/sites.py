"""Places under suspicion as detectors are given them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.localise.setup import Given
from analysis.localise.suspects import Suspect
from analysis.replay.calls import CallKey, key_of
from analysis.replay.site import OperatorCall, Site
from core.comparison import Comparison, Pair
from core.findings import Finding
from core.runs import Run


@dataclass(frozen=True, slots=True)
class Sites:
    """Makes sites of one comparison."""

    comparison: Comparison
    reference: Run
    candidate: Run
    reference_calls: dict[CallKey, OperatorCall]
    candidate_calls: dict[CallKey, OperatorCall]

    def order_of(self, finding: Finding) -> int:
        """Where a finding's tensor stands in its run."""
        known = self.reference.tensors.get(finding.tensor)
        if known is not None:
            return known.order
        calls = (c for c in self.candidate_calls.values() if c.operator == finding.operator)
        return next((c.order for c in calls if c.step == finding.step), 0)

    def of_suspect(self, suspect: Suspect) -> Site | None:
        """A wrong output; None where the candidate has no such call."""
        replayed, output = suspect.replayed, suspect.output
        part = output.candidate or output.reference
        if replayed.candidate is None or part is None:
            return None
        fit = replayed.fit
        return self._site(
            output=part.side.tensor.argument,
            slot=output.slot,
            kind=replayed.kind,
            function=None if suspect.gradient else replayed.own,
            attributes=fit.attributes if fit else {},
            fitted=fit.names if fit else (),
            reference=output.reference.side if output.reference else None,
            candidate=output.candidate.side if output.candidate else None,
            reference_call=replayed.reference,
            candidate_call=replayed.candidate,
            valid=part.valid,
        )

    def of_given(self, given: Given) -> Site | None:
        """An input or a weight that the runs were given differently."""
        a, b = given.pair.reference, given.pair.candidate
        call = self.candidate_calls.get(key_of(b)) or self._user(b.module, self.candidate_calls)
        if call is None:
            return None
        return self._site(
            output=a.argument,
            slot=a.slot_label,
            kind="unknown",
            function=None,
            attributes={},
            fitted=(),
            reference=None,
            candidate=None,
            reference_call=self.reference_calls.get(key_of(a))
            or self._user(a.module, self.reference_calls),
            candidate_call=call,
            valid=np.ones(b.shape, bool),
        )

    def of_output(self, call: OperatorCall, pair: Pair, noise: float) -> Site | None:
        """What was not replayed: an output, or what an operator that was not captured handed in."""
        other = self.candidate_calls.get(key_of(pair.candidate))
        if other is None:
            return None
        return self._site(
            output=pair.reference.argument,
            slot=pair.reference.slot_label,
            kind="unknown",
            function=None,
            attributes={},
            fitted=(),
            reference=None,
            candidate=None,
            reference_call=call,
            candidate_call=other,
            valid=np.ones(pair.candidate.shape, bool),
            noise=noise,
        )

    def _user(self, module: str, calls: dict[CallKey, OperatorCall]) -> OperatorCall | None:
        """The first call of a module, for parameters recorded apart from it."""
        return next((c for c in calls.values() if c.module == module), None)

    def _site(self, **parts: object) -> Site:
        return Site(
            comparison=self.comparison,
            reference_run=self.reference,
            candidate_run=self.candidate,
            calls_reference=tuple(self.reference_calls.values()),
            calls_candidate=tuple(self.candidate_calls.values()),
            **parts,  # type: ignore[arg-type]
        )
