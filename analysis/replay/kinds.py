"""Which kind of operator a class or function name means, in any vendor's spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.replay.registry import CLASSES

# Parts of names, first hit wins: vendors prefix and suffix (`XpuFlashAttention`, `FusedSiLU`,
# `LlamaRMSNorm`, `ColumnParallelLinearXPU`, torch_xray's own misspelling `RowParalleLinear`).
_PARTS: Sequence[tuple[str, str]] = (
    (r"quant(izer|ize|stub)|^quantize", "quantise"),
    (r"int4.*linear|w4a|awq|gptq|linear.*int4", "int4_linear"),
    (r"(int8|fp8|w8a8|float8|e4m3|quant).*linear|linear.*(int8|fp8)", "quant_linear"),
    (r"lora", "lora_linear"),
    (r"rowparal", "row_linear"),
    (r"rms_?norm|t5layernorm", "rms_norm"),
    (r"layer_?norm", "layer_norm"),
    (r"batch_?norm", "batch_norm"),
    (r"embed_?scale|scaled_?embed", "mul"),
    (r"rotary|rope", "rope"),
    (r"embedding", "embedding"),
    (r"(silu|swiglu|gelu|geglu|act)_?(and)?_?mul|swiglu|geglu|glu_?act", "act_mul"),
    (r"silu|swish|gelu|relu|sigmoid|tanh|activation|softplus", "activation"),
    (r"masked_?softmax|softmax_?mask", "masked_softmax"),
    (r"log_?softmax", "log_softmax"),
    (r"softmax", "softmax"),
    (r"cross_?entropy|nll_?loss", "cross_entropy"),
    (r"kv_?cache|cache_?update|reshape_and_cache", "cache"),
    (r"attention|attn|sdpa", "attention"),
    (r"(top_?k)?_?rout|gating|topk_?gate", "route"),
    (r"expert", "expert"),
    (r"combine", "combine"),
    (r"dropout|identity", "identity"),
    (r"(causal|attention)_?mask", "causal_mask"),
    (r"mul_?quant|dequant", "unknown"),
    (r"conv[123]d|convolution", "convolution"),
    (r"matmul|bmm|baddbmm|einsum", "matmul"),
    (r"linear|addmm|^dense$|lm_?head|projection", "linear"),
    (r"all_?reduce", "all_reduce"),
    (r"all_?gather", "all_gather"),
    (r"reduce_?scatter", "reduce_scatter"),
    (r"^add$|residual_?add|^sum$|^iadd$", "add"),
    (r"^sub$", "sub"),
    (r"^mul(tiply)?$|^imul$", "mul"),
    (r"^(true_)?div(ide)?$", "div"),
    (r"^(to|cast|type|float|half|bfloat16|contiguous|clone|view|reshape|detach)$", "identity"),
)


def kind_of(name: str) -> str:
    """Kind by a class or function name (`add_1` is `add`), `"unknown"` for names that say nothing.

    Exact registrations (a user's plugin among them) count before parts of names.
    """
    bare = re.sub(r"_\d+$", "", name)
    if bare in CLASSES:
        return CLASSES[bare]
    low = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower()
    flat = low.replace("_", "")
    for part, kind in _PARTS:
        if re.search(part, low) or re.search(part, flat):
            return kind
    return "unknown"


# Operators that compute the same thing from differently stored or spread weights.
_FAMILY = frozenset({"linear", "row_linear", "quant_linear", "int4_linear", "lora_linear"})


def of_one_family(kind: str, other: str) -> bool:
    """Whether two kinds are the same operator, one of them quantised or spread over ranks."""
    return kind in _FAMILY and other in _FAMILY
