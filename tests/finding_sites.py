"""Sites made of arrays: an operator, its operands, and the output some kernel gave for them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from memory_runs import run_of

import analysis.replay.functions  # noqa: F401  registers the reference functions
from analysis.replay.local import local_error, rounded
from analysis.replay.noise import Arithmetic, variance
from analysis.replay.registry import FUNCTIONS, Answer, Operands
from analysis.replay.site import OperatorCall, Side, Site
from core.comparison import Comparison, RunSummary, Settings
from core.findings import Fact
from core.runs import Array

MODULE = "model.layers.1.op"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(*shape: int, seed: int = 0, size: float = 1.0) -> Array:
    """Values of bfloat16, so that both formats of the tests hold them exactly."""
    return rounded(rng(seed).standard_normal(shape) * size, "bfloat16")


def call_of(
    tensors: Mapping[str, Array],
    *,
    module: str = MODULE,
    module_class: str = "",
    dtype: str = "float32",
    step: int = 0,
    order: int = 0,
    earlier: OperatorCall | None = None,
) -> OperatorCall:
    """One call whose tensors stand from `order` on; keys are labels such as `forward_input.0`."""
    names = {f"{module}:{label}": label for label in tensors}
    arrays = dict(zip(names, tensors.values(), strict=True))
    facts = {
        name: {
            "dtype": dtype if array.dtype.kind == "f" else array.dtype.name,
            "step": step,
            "order": order + place,
        }
        for place, (name, array) in enumerate(arrays.items())
    }
    run = run_of(arrays, facts=facts)

    def group(head: str) -> dict[str, object]:
        return {t.argument: t for n, t in run.tensors.items() if names[n].startswith(head)}

    return OperatorCall(
        run=run,
        module=module,
        module_class=module_class,
        op="",
        step=step,
        rank=None,
        call=0,
        inputs=group("forward_input"),
        outputs=group("forward_output"),
        parameters=group("forward_params"),
        gradients_in=group("backward_input"),
        gradients_out=group("backward_output"),
        parameter_gradients=group("backward_params"),
        earlier=earlier,
    )


def _comparison() -> Comparison:
    summary = RunSummary("run", "", "", 1, 0)
    return Comparison("c", summary, summary, Settings(), ())


def expected_of(
    kind: str,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    output: str = "0",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dtypes: Mapping[str, str] | None = None,
    **attributes: Fact,
) -> Array:
    """What the registered function makes of these operands."""
    given = Operands(
        inputs=inputs, parameters=parameters or {}, shapes=shapes or {}, dtypes=dtypes or {}
    )
    return FUNCTIONS[kind](given, attributes)[output].value


def site(
    kind: str,
    inputs: Mapping[str, Array],
    observed: Array,
    parameters: Mapping[str, Array] | None = None,
    *,
    output: str = "0",
    dtype: str = "float32",
    module: str = MODULE,
    more: Mapping[str, Array] | None = None,
    earlier: OperatorCall | None = None,
    others: tuple[OperatorCall, ...] = (),
    valid: Array | None = None,
    **attributes: Fact,
) -> Site:
    """A replayed output; `more` are further outputs of the call, `others` further calls."""
    parameters = parameters or {}
    outputs = {output: observed, **(more or {})}
    tensors = {f"forward_params.{n}": v for n, v in parameters.items()}
    tensors |= {f"forward_input.{n}": v for n, v in inputs.items()}
    tensors |= {f"forward_output.{n}": v for n, v in outputs.items()}
    step = 0 if earlier is None else (earlier.step or 0) + 1
    call = call_of(tensors, dtype=dtype, module=module, earlier=earlier, step=step, order=100)
    given = Operands(
        inputs=inputs,
        parameters=parameters,
        shapes={n: v.shape for n, v in outputs.items()},
        dtypes={n: call.outputs[n].dtype for n in outputs},
    )
    answer = FUNCTIONS[kind](given, attributes)[output]
    counted = np.ones(observed.shape, bool) if valid is None else valid
    side = _side(call, output, given, observed, answer, counted)
    return Site(
        comparison=_comparison(),
        reference_run=run_of({}),
        candidate_run=call.run,
        output=output,
        slot=f"forward_output.{output}",
        kind=kind,
        function=FUNCTIONS[kind],
        attributes=attributes,
        fitted=(),
        reference=None,
        candidate=side,
        reference_call=None,
        candidate_call=call,
        valid=counted,
        calls_candidate=(*others, call),
    )


def _side(
    call: OperatorCall,
    output: str,
    given: Operands,
    observed: Array,
    answer: Answer,
    valid: Array,
) -> Side:
    tensor = call.outputs[output]
    narrow = tensor.dtype != "float32"
    floor = variance(answer, Arithmetic(storage=tensor.dtype, narrow=narrow))
    local = local_error(answer, observed, floor, valid, tensor.dtype)
    return Side(
        call=call,
        tensor=tensor,
        given=given,
        actual=observed,
        answer=answer,
        variance=floor,
        local=local.error,
        ratio=local.ratio,
        worst=local.worst,
    )


def stored_site(
    reference: Array,
    candidate: Array,
    *,
    slot: str = "forward_params.weight",
    dtype: str = "float32",
    module: str = MODULE,
    others: tuple[OperatorCall, ...] = (),
) -> Site:
    """A stored parameter or an input that differs between the runs; nothing is replayed."""
    left, right = (
        call_of({slot: value}, dtype=dtype, module=module, step=1, order=100)
        for value in (reference, candidate)
    )
    return Site(
        comparison=_comparison(),
        reference_run=left.run,
        candidate_run=right.run,
        output=slot.partition(".")[2],
        slot=slot,
        kind="unknown",
        function=None,
        attributes={},
        fitted=(),
        reference=None,
        candidate=None,
        reference_call=left,
        candidate_call=right,
        valid=np.ones(candidate.shape, bool),
        calls_reference=(*others, left),
        calls_candidate=(right,),
    )


def gradient_site(made: Site, expected: Array, observed: Array, slot: str, floor: float) -> Site:
    """The same call seen at one of its gradients, with a plain relative floor."""
    call = made.candidate_call
    head, _, argument = slot.partition(".")
    groups = {"backward_params": call.parameter_gradients, "backward_output": call.gradients_out}
    tensor = groups[head][argument]
    answer = Answer(value=expected)
    level = np.full(expected.shape, floor**2 * float(np.mean(expected**2)))
    local = local_error(answer, observed, level, np.ones(expected.shape, bool), tensor.dtype)
    side = Side(
        call=call,
        tensor=tensor,
        given=made.candidate.given if made.candidate else Operands(inputs={}),
        actual=observed,
        answer=answer,
        variance=level,
        local=local.error,
        ratio=local.ratio,
        worst=local.worst,
    )
    return replace(
        made,
        output=argument,
        slot=slot,
        function=None,
        candidate=side,
        valid=np.ones(expected.shape, bool),
    )
