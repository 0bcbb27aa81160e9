"""Which faults are planted in the torch models, where, and on what kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.planted import torch_semantic_faults, torch_system_faults
from benchmarks.planted.torch_benign import FORMATS, OTHERWISE, PLAIN, job_of
from benchmarks.planted.torch_faults import FAMILY, WRONG, plant
from benchmarks.planted.torch_pairs import Fault, Plan

BUILDERS = (torch_semantic_faults, torch_system_faults)  # imported for what they enter
# Places, by a short word; `L` stands for the layer.
PLACES = {
    "rope": "self_attn.rotary_emb",
    "attn": "self_attn.attn",
    "cache": "self_attn.kv_cache",
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    "up": "mlp.up_proj",
    "gate": "mlp.gate_proj",
    "down": "mlp.down_proj",
    "act": "mlp.act_fn",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "router": "mlp.router",
    "res1": "attn_residual",
    "res2": "mlp_residual",
}
ACCEPTED = {
    "lowprec_accum": ("splitk_16bit",),
    "splitk_16bit": ("lowprec_accum",),
    "lmhead_16bit": ("lowprec_compute",),
    "tile_tail": ("missing_reduce",),
    "missing_reduce": ("tile_tail",),
    "wrong_head": ("gqa_repeat_order",),
    "gqa_repeat_order": ("wrong_head",),
    "layout_reshape": ("head_permuted",),
    "head_permuted": ("layout_reshape",),
    "uninitialised": ("race_partial",),
    "race_partial": ("uninitialised",),
    "index_overflow": ("uninitialised",),
}
BACKWARD = ("grad_scale", "zero_grad_missing")

# mechanism place model formats(2) side option=value … and words of the job
TABLE = """
tf32_gemm 1.up llama f f blocks | tf32_gemm 0.q gpt f f eager xray
tf32_gemm layers.1.conv1 cnn f f channels_last
lowprec_compute 2.down llama f f blocks xray | lowprec_compute 1.v bert f f eager dtype=float16
lowprec_compute layers.0.conv2 cnn f f no_mkldnn xray
lowprec_accum 1.down llama b b blocks | lowprec_accum 0.up gpt f f eager block=4 xray
splitk_16bit 0.down llama f f blocks parts=8 | splitk_16bit 1.down gpt f f eager xray
lmhead_16bit lm_head llama f f blocks | lmhead_16bit lm_head moe f f eager dtype=float16 xray
norm_stat_16bit 1.norm1 llama f f eager xray | norm_stat_16bit 0.norm2 llama_wide f f blocks
rope_phase_16bit 1.rope llama f f eager | rope_phase_16bit 0.rope llama b b blocks xray
softmax_16bit 1.attn llama f f eager xray | softmax_16bit 0.attn bert f f math
softmax_16bit 2.attn llama b b blocks
saturation_clamp 1.down llama b b eager | saturation_clamp 0.up gpt f f blocks share=0.99 xray
flush_to_zero 1.act llama f f eager | flush_to_zero 0.act gpt b b math smallest=0.02 xray
mask_leak 1.attn llama f f blocks | mask_leak 0.attn gpt b b eager low=-6.0 xray
act_variant 1.act gpt f f eager | act_variant 0.act bert b b blocks kind=quick xray
act_variant 2.act llama f f eager kind=hard | act_variant layers.1.mlp.act_fn vit f f blocks
attn_scale 1.attn llama f f eager xray | attn_scale 0.attn gpt b b math times=0.9
attn_scale 1.attn bert f b same times=0.5
attn_scale encoder.layers.1.self_attn.attn t5 f f eager times=0.25
norm_eps 1.norm1 llama f f eager | norm_eps 0.norm2 gpt f f blocks eps=1e-2 xray
norm_eps layers.0.bn1 cnn f f no_mkldnn eps=1e-2 | norm_eps 1.norm2 bert b b eager eps=1e-2
norm_weight_plus1 1.norm2 llama b b eager xray | norm_weight_plus1 0.norm1 llama_wide f f blocks
norm_mean_subtract 1.norm1 llama f f eager | norm_mean_subtract 0.norm2 llama b b blocks xray
dropout_active 1.attn llama b b eager | dropout_active 0.down gpt f f blocks p=0.05 xray
residual_wrong 1.res1 llama f f eager xray | residual_wrong 0.res2 gpt b b math
rope_scaling 1.rope llama b b eager | rope_scaling 0.rope moe f f blocks xray
router_norm 1.router moe f f eager | router_norm 0.router moe b b blocks xray
padding_idx_zero model.embed_tokens llama f f eager
padding_idx_zero model.embed_tokens gpt b b math xray
rope_interleave 1.rope llama f f eager xray | rope_interleave 0.rope moe b b blocks
rope_base 1.rope llama f f eager | rope_base 2.rope llama b b blocks base=2e4 xray
weight_transposed 1.o llama b b eager | weight_transposed 0.v gpt f f blocks xray
head_permuted 1.attn llama f f eager | head_permuted 0.attn bert b b blocks xray
layout_reshape 1.attn llama b b eager xray | layout_reshape 0.attn gpt f f math
tile_tail 1.up llama f f eager | tile_tail 0.down gpt b b math xray
wrong_head 1.attn llama f f blocks | wrong_head 0.attn llama_wide b b eager xray
gqa_repeat_order 2.attn llama b b eager | gqa_repeat_order 0.attn llama_wide f f blocks xray
index_overflow 1.up llama f f eager | index_overflow 0.down gpt b b blocks bits=10 xray
pads_attended 0.attn bert f f eager | pads_attended 1.attn bert b b math xray
causal_off_by_one 1.attn llama f f eager | causal_off_by_one 0.attn gpt b b blocks xray
position_offset 1.rope llama b b eager decode
position_offset 0.rope llama f f blocks first=2 decode xray
causal_alignment 1.attn llama f f eager decode | causal_alignment 0.attn gpt b b blocks decode xray
cache_block_reuse 1.cache llama b b eager decode
cache_block_reuse 0.cache gpt f f blocks decode xray
bias_missing 1.k bert f f eager | bias_missing 0.up gpt b b blocks xray
same_shard 1.q llama b b eager xray | same_shard 0.up gpt f f blocks
missing_reduce 1.down llama f f eager | missing_reduce 0.o bert b b blocks xray
uninitialised 1.down llama f f eager | uninitialised 0.up gpt b b blocks xray
race_partial 1.up llama b b eager | race_partial 0.q gpt f f blocks xray
bit_flip 1.up llama f f eager | bit_flip 0.down gpt b b blocks bit=30 xray
bit_flip layers.1.conv2 cnn f f no_mkldnn bit=31
stale_buffer 1.down llama b b eager decode at=2 | stale_buffer 0.o gpt f f blocks decode at=3 xray
grad_scale 1.o llama f f eager backward | grad_scale 0.up gpt b b blocks times=2.0 backward xray
zero_grad_missing 1.up llama f f eager steps | zero_grad_missing 0.o bert b b blocks steps xray
"""


def plans() -> Iterator[Plan]:
    """All pairs of the table, then those that differ in setup."""
    seeds = count(701)
    for line in TABLE.strip().split("\n"):
        for text in line.split("|"):
            yield plan_of(text.split(), next(seeds))
    for model, layout in (("llama", "xray"), ("gpt", "native")):
        yield _plan(model, "f f eager", [layout], next(seeds), _other_weights())


def plan_of(words: list[str], seed: int) -> Plan:
    """The pair a row of the table describes."""
    slug, place, model, *rest = words
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    plain = [word for word in rest if "=" not in word]
    values = {name: _value(text) for name, text in options.items()}
    module, layer = _module(place)
    backward = slug in BACKWARD
    step = {"steps": "1", "decode": str(values.get("first", values.get("at", 1)))}
    fault = Fault(
        mechanism=slug,
        family=FAMILY[slug],
        module=module,
        edit=lambda net: plant(net, module, WRONG[slug](**values)),
        slot="backward_params.weight" if backward else "forward_output.0",
        step=next((step[word] for word in plain if word in step), "0"),
        accepted=ACCEPTED.get(slug, ()),
        cause=f"{slug} {options or ''}",
        layer=layer,
    )
    return _plan(model, " ".join(plain[:3]), plain[3:], seed, fault)


def _plan(model: str, sides: str, words: list[str], seed: int, fault: Fault) -> Plan:
    reference, candidate, side = sides.split()
    job = replace(job_of(model, seed, words), tokens=20, operators=False)
    padded = 0 if "decode" in words else 5
    return Plan(
        job=replace(job, padded=padded),
        reference=replace(PLAIN, dtype=FORMATS[reference]),
        candidate=replace(OTHERWISE[side], dtype=FORMATS[candidate]),
        fault=fault,
        note=f"{sides} {' '.join(words)}",
    )


def _module(place: str) -> tuple[str, int]:
    """Full path and layer of a place such as `1.up`."""
    layer, _, part = place.partition(".")
    if part in PLACES and layer.isdecimal():
        return f"model.layers.{layer}.{PLACES[part]}", int(layer)
    digits = [piece for piece in place.split(".") if piece.isdecimal()]
    return place, int(digits[0]) if digits else 0


def _other_weights() -> Fault:
    def edit(model: nn.Module) -> None:
        generator = torch.Generator().manual_seed(11)
        with torch.no_grad():
            for parameter in model.parameters():
                noise: Tensor = torch.randn(parameter.shape, generator=generator)
                parameter.add_((0.03 * parameter.std().nan_to_num() * noise).to(parameter.dtype))

    return Fault(
        mechanism="different_weights",
        family="setup",
        module="model.embed_tokens",
        edit=edit,
        slot="forward_params.weight",
        verdict="setup",
        cause="weights of another checkpoint",
    )


def _value(text: str) -> Any:
    kinds: tuple[Callable[[str], Any], ...] = (int, float)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text
