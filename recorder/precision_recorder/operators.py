"""Which function calls count as operators, and what they are called in a dump."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

# Views and shape changes are left out: they compute nothing.
OPERATORS = frozenset(
    word
    for line in (
        "linear matmul mm bmm mv addmm baddbmm einsum outer conv1d conv2d conv3d",
        "scaled_dot_product_attention multi_head_attention_forward",
        "softmax log_softmax layer_norm rms_norm group_norm batch_norm normalize",
        "silu gelu relu tanh sigmoid softplus leaky_relu elu mish hardswish glu logsigmoid",
        "add sub rsub mul div rdiv neg abs pow rpow square sqrt rsqrt reciprocal exp log cos sin",
        "sum mean var std amax amin logsumexp cumsum norm clamp maximum minimum",
        "addcmul addcdiv lerp where masked_fill dropout to",
        "embedding gather index_select index_add scatter scatter_add cat stack topk",
    )
    for word in line.split()
)
LOSSES = frozenset(
    word
    for line in (
        "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div softmax",
        "cosine_similarity binary_cross_entropy binary_cross_entropy_with_logits log_softmax",
    )
    for word in line.split()
)
_CASTS = frozenset(["to", "float", "half", "bfloat16", "double", "type", "type_as"])
_SYNONYMS = {
    "truediv": "div",
    "true_divide": "div",
    "divide": "div",
    "rtruediv": "rdiv",
    "radd": "add",
    "rmul": "mul",
    "multiply": "mul",
    "subtract": "sub",
    "special_softmax": "softmax",
    "clip": "clamp",
    "concat": "cat",
} | dict.fromkeys(_CASTS, "to")
_IN_PLACE = frozenset(["iadd", "isub", "imul", "itruediv", "ipow", "imatmul"])

Choice = bool | Collection[str] | Callable[[str, str], bool]


def operator_name(function: Any) -> tuple[str, str]:
    """(name, namespace) of a function; the namespace is empty for the framework's own operators.

    `Tensor.__iadd__`, `Tensor.add_`, `torch.add` and `torch.ops.aten.add` are all `add`.
    """
    qualified = str(getattr(function, "_qualified_op_name", "") or getattr(function, "_name", ""))
    if "::" in qualified:
        namespace, name = qualified.split("::", 1)
        name = name.split(".", 1)[0]
        if namespace != "aten":
            return name, namespace
    else:
        name = str(getattr(function, "__name__", ""))
    name = name[2:-2] if name.startswith("__") else name.rstrip("_")
    name = name[1:] if name in _IN_PLACE else name
    return _SYNONYMS.get(name, name), ""


def overwritten(function: Any) -> tuple[str, ...]:
    """Names of the arguments that a registered operator declares to write to."""
    overloads = getattr(function, "overloads", None)
    if overloads is not None:  # a packet of overloads; they agree in what they write
        function = getattr(function, overloads()[0])
    schema = getattr(function, "_schema", None)
    arguments = () if schema is None else schema.arguments
    return tuple(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write)


def writes_in_place(function: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the call overwrites one of its arguments."""
    if overwritten(function):
        return True
    name = str(getattr(function, "__name__", "")).split(".", 1)[0]
    dunder = name.startswith("__")
    if dunder:
        return name[2:-2] in _IN_PLACE
    return name.endswith("_") or bool(kwargs.get("inplace")) or kwargs.get("out") is not None


def is_chosen(choice: Choice, module: str, name: str, namespace: str) -> bool:
    """Whether to record an operator. Those that other libraries registered always count."""
    if isinstance(choice, bool):
        return choice and (name in OPERATORS or name in LOSSES or is_foreign(namespace))
    if callable(choice):
        return is_chosen(True, module, name, namespace) and choice(module, name)
    return name in choice


def is_foreign(namespace: str) -> bool:
    """Whether the operator was registered by another library than the framework."""
    return bool(namespace) and namespace not in (
        "prim",
        "prims",
        "profiler",
        "c10d",
        "higher_order",
    )
