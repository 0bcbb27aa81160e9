"""Attributes as recorded, in the words of the reference functions."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.replay.registry import Attributes, Function
from core.findings import Fact

# Canonical name to the names that frameworks use for it; the first that is recorded counts.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "eps": ("eps", "epsilon", "variance_epsilon", "layer_norm_eps"),
    "scale": ("scale", "scaling", "softmax_scale", "sm_scale", "attention_scaling", "embed_scale"),
    "softcap": ("softcap", "logit_softcapping", "attn_logit_softcapping", "soft_cap"),
    "causal": ("is_causal", "causal"),
    "base": ("base", "rope_theta", "theta"),
    "rotary_dim": ("rotary_dim",),
    "num_heads": ("num_heads", "num_attention_heads", "n_heads"),
    "num_kv_heads": ("num_kv_heads", "num_key_value_heads"),
    "window": ("sliding_window", "window_size"),
    "dim": ("dim", "axis"),
    "renormalised": ("norm_topk_prob", "renormalize"),
    "ignore_index": ("ignore_index",),
    "reduction": ("reduction",),
    "stride": ("stride_", "conv_stride"),
    "padding": ("padding",),
    "dilation": ("dilation",),
}
# Operators that multiply by a recorded scale for a reason of their own keep it out of the formula.
_NOT_OURS = {("embedding", "base"), ("linear", "scale")}

_FORMS: tuple[tuple[str, str], ...] = (
    ("gelu_pytorch_tanh", "gelu_tanh"),
    ("gelu_new", "gelu_tanh"),
    ("gelutanh", "gelu_tanh"),
    ("quick", "quick_gelu"),
    ("relu2", "relu2"),
    ("squaredrelu", "relu2"),
    ("hardswish", "hard_silu"),
    ("geglu", "gelu"),
    ("gelu", "gelu"),
    ("silu", "silu"),
    ("swi", "silu"),
    ("softplus", "softplus"),
    ("relu", "relu"),
    ("sigmoid", "sigmoid"),
    ("tanh", "tanh"),
)


def recorded(function: Function, attributes: Attributes) -> dict[str, Fact]:
    """What a dump says of a function's attributes."""
    found: dict[str, Fact] = dict(attributes)
    for ours in function.options:
        found.pop(ours, None)
        if (function.kind, ours) in _NOT_OURS:
            continue
        theirs = next((n for n in _NAMES.get(ours, (ours,)) if attributes.get(n) not in _EMPTY), "")
        if theirs:
            found[ours] = attributes[theirs]
    if attributes.get("approximate") == "tanh" and "form" in function.options:
        found["form"] = "gelu_tanh"
    return found


def suggested(function: Function, attributes: Attributes, name: str) -> dict[str, Fact]:
    """Where to begin with what was not recorded: the activation that a name speaks of.

    `name` is the class or functional name. A class called GELU may hold any of its formulas, so
    this is a default and no knowledge.
    """
    if "form" not in function.options:
        return {}
    said = f"{attributes.get('act', '')} {attributes.get('hidden_act', '')} {name}"
    flat = said.lower().replace("_", "").replace("-", "")
    for part, form in _FORMS:
        if part.replace("_", "") in flat and form in function.options["form"]:
            return {"form": form}
    return {}


_EMPTY = (None, "None", "")
