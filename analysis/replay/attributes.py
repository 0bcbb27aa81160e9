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
    "groups": ("groups",),
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


def recorded(function: Function, attributes: Attributes, name: str) -> dict[str, Fact]:
    """What a dump says of a function's attributes; `name` is the class or functional name."""
    found: dict[str, Fact] = dict(attributes)
    for ours in function.options:
        found.pop(ours, None)
        if (function.kind, ours) in _NOT_OURS:
            continue
        theirs = next((n for n in _NAMES.get(ours, (ours,)) if attributes.get(n) not in _EMPTY), "")
        if theirs:
            found[ours] = attributes[theirs]
    if "form" in function.options and "silu" in function.options["form"]:
        found |= _form(attributes, name)
    return found


_EMPTY = (None, "None", "")


def _form(attributes: Attributes, name: str) -> dict[str, Fact]:
    """Which activation a name means; `approximate` and `act` decide where they are recorded."""
    said = f"{attributes.get('act', '')} {attributes.get('hidden_act', '')} {name}"
    flat = said.lower().replace("_", "").replace("-", "")
    if attributes.get("approximate") == "tanh":
        return {"form": "gelu_tanh"}
    for part, form in _FORMS:
        if part.replace("_", "") in flat:
            return {"form": form}
    return {}
