"""Which faults are planted in the tiny model: mechanism, formats, shape, layer, options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from benchmarks.planted import tiny_numeric, tiny_registry, tiny_semantic, tiny_system
from benchmarks.planted.casebook import casebook
from benchmarks.planted.tiny_models import FORMATS, MODELS

BUILDERS = (tiny_numeric, tiny_semantic, tiny_system)  # imported for what they enter

# mechanism: `formats model layer option=value …` of each case
TABLE: Mapping[str, str] = {
    "tf32_gemm": "f wide 0 mod=self_attn.k_proj | f gelu 1 mod=mlp.down_proj | f softcap 2"
    " mod=self_attn.o_proj | f plain 1 mod=mlp.gate_proj",
    "lowprec_compute": "f wide 0 mod=mlp.gate_proj | f plain 2 dtype=float16 | f odd 1"
    " mod=self_attn.v_proj | f gelu 0 mod=self_attn.o_proj dtype=float16",
    "lowprec_accum": "f wide 1 blk=4 | b long 0 mod=self_attn.o_proj | h plain 2 dtype=float16"
    " | b right 1 mod=mlp.up_proj",
    "splitk_16bit": "f plain 1 | b wide 0 parts=8 | h plain 2 mod=mlp.up_proj parts=4"
    " | f odd 0 mod=self_attn.q_proj parts=8 | fb plain 1 parts=16",
    "rope_phase_16bit": "f long 1 | b far 1 | h long 0 dtype=float16 | f far 0 dtype=float16",
    "softmax_16bit": "f eager 2 | f plain 0 dtype=float16 | b sharp 1 | f softcap 0",
    "norm_stat_16bit": "f plain 1 | f wide 0 mod=post_attention_layernorm | b plain 2"
    " | f odd 1 dtype=float16 | h right 1",
    "lmhead_16bit": "f wide 0 | f tied 0 dtype=float16 | f right 0",
    "norm_1p_16bit": "f gemma 1 | f gemma 0 mod=post_attention_layernorm | h gemma 1"
    " | f gemma2 2 dtype=float16",
    "const_rounded": "f gemma 0 | h gemma 0",
    "fp16_overflow": "bh wide 0 size=3e5 | fh plain 2 | bh right 1",
    "saturation_clamp": "f plain 1 | b wide 0 mod=mlp.up_proj share=0.99 | h plain 2"
    " | b right 1 mod=self_attn.o_proj share=0.999 | fb plain 0",
    "flush_to_zero": "h eager 1 smallest=1e-3 | f eager 0 smallest=1e-4"
    " | f plain 1 mod=mlp.mul smallest=1e-3"
    " | b plain 2 mod=mlp.act_fn smallest=0.01",
    "mask_leak": "f plain 0 | b eager 1 neg=-7.0 | h window 2 neg=-10.0 | f right 1 neg=-14.0",
    "nan_masked_rows": "f plain 0 | h eager 2 | b three_samples 1",
    "eps_underflow": "h plain 0 | f wide 0 | b right 0",
    "variance_overflow": "bh plain 0 | fh wide 1",
    "act_variant": "f quick_gelu 0 kind=gelu | f plain 2 kind=hard_silu | b plain 0 kind=gelu"
    " | h gelu 1 kind=quick_gelu | b quick_gelu 1 kind=gelu_tanh | f gelu 2 kind=gelu_tanh",
    "attn_scale": "f plain 0 | b eager 2 | h wide 1 | b window 0 scale=0.125 | f gemma2 1",
    "norm_eps": "f wide 1 eps=1e-5 mod=post_attention_layernorm | b plain 0 eps=1e-4"
    " | f eps5 0 eps=1e-6 | h small 0 eps=1e-3 | f plain 1 eps=1e-3 mod=model.norm",
    "norm_weight_plus1": "f wide 0 | h gemma 1 hidden=True | b plain 2 hidden=True"
    " | f right 1 hidden=True mod=input_layernorm",
    "norm_mean_subtract": "f plain 1 | b wide 0 | h right 2 mod=post_attention_layernorm"
    " | b plain 0 mod=model.norm",
    "dropout_active": "f dropout 0 | h plain 2 p=0.2 | b wide 0 p=0.05 | f right 1",
    "softcap_dropped": "f softcap 1 | b softcap 0 | h gemma2 2 | fb softcap 2",
    "rope_scaling": "f plain 1 | b wide 0 factor=8 | h far 1 factor=32 | fb plain 2",
    "lora_scale": "f lora 1 | b lora 0 times=0.125 | h lora_small 1 | fb lora 2 times=4",
    "lmhead_untied": "f tied 0 | b tied 0 | h plain 0",
    "padding_idx_zero": "f plain 0 | b wide 0 | h right 0 stored=True | b plain 0 stored=True",
    "router_norm": "f moe 0 | h moe8 1 | b moe_bias 2",
    "gate_up_swap": "f fused_mlp 0 | h fused_mlp 2",
    "residual_wrong": "f plain 0 kind=mlp | b wide 1 kind=mlp | h right 2 | f gelu 1",
    "rope_interleave": "f plain 0 | h wide 1 | b far 0",
    "rope_base": "f base5 1 to=1e4 | b plain 2 | h right 0 to=1e6 | fb wide 1",
    "weight_transposed": "f plain 2 | b all_heads 0 mod=self_attn.k_proj | h plain 0 hidden=True"
    " | f all_heads 1 mod=self_attn.v_proj hidden=True",
    "head_permuted": "f plain 1 | b wide 0 stored=True | h plain 2 stored=True | b right 1",
    "layout_reshape": "f wide 0 | b plain 2 | f wide_heads 1",
    "tile_tail": "f odd 0 | h odd 1 axis=n mod=mlp.up_proj | b odd 2 mod=mlp.down_proj"
    " | f plain 1 axis=n mod=self_attn.q_proj tile=24 | b plain 0 mod=self_attn.o_proj tile=24",
    "wrong_head": "f plain 1 | h wide 0 | b eager 2",
    "gqa_repeat_order": "f plain 1 | b wide 0 | h eager 2 | fb plain 0",
    "index_overflow": "f plain 1 | b wide 0 bits=12 how=wrap | h right 2 mod=mlp.down_proj"
    " | b plain 1 mod=self_attn.q_proj bits=10 how=wrap",
    "stale_weight": "f steps 1 | b steps 0 at=2 hidden=True | h steps 1 mod=mlp.up_proj"
    " | b steps 0 mod=self_attn.v_proj hidden=True",
    "pads_attended": "f plain 0 | h three_samples 1 | b wide 2",
    "causal_alignment": "b decode 1 | f decode_right 0 | h decode_bias 1 step=2",
    "causal_off_by_one": "f plain 0 | b wide 1 | h right 2 shift=-1 | b unpadded 0",
    "window_off_by_one": "f window 1 | h window 0 d=-1 | b gemma2 2",
    "cache_block_reuse": "f decode 0 | h decode_bias 1 block=4 | b decode_right 1 step=2",
    "position_offset": "f decode 0 | h decode_right 1 step=2 | b decode 1 wrap=16",
    "quant_scale_wrong": "h int8 0 kind=ignored | b fp8 2 kind=inverse | b int8_bias 1 kind=square",
    "int8_saturation": "h int8 0 | b int8_bias 1 mod=mlp.up_proj mul=0.7 | f int8 2 mul=0.85",
    "int8_wrap": "b int8 1 | h int8 0 mod=mlp.up_proj mul=0.9 | f int8_bias 1 mul=0.7",
    "zero_point_off": "h int4 0 | b int4_fine 1 d=-1 mod=mlp.down_proj | f int4 2",
    "scale_axis": "h int8 0 | f int8 2 | b int8_bias 0 mod=self_attn.q_proj",
    "nibble_order": "b int4 1 | h int4 0 mod=mlp.down_proj | f int4_fine 1 mod=self_attn.q_proj",
    "fp8_fnuz": "b fp8 1 | h fp8 0 mod=mlp.down_proj factor=2 | b fp8 0 mod=self_attn.v_proj",
    "stale_scale": "b int8_steps 1 | h fp8_steps 0 mod=mlp.up_proj | b int8_steps 0 at=2",
    "same_shard": "f tp2 0 | h tp2 2 mod=self_attn.k_proj | b tp2 1 hidden=True mod=mlp.up_proj",
    "missing_reduce": "f tp2 1 | b tp4_bias 0 lost=2 | h tp2 2 mod=self_attn.o_proj lost=0",
    "bias_times_tp": "f tp4_bias 1 | b tp4_bias 0 mod=self_attn.o_proj | h tp2_bias 1",
    "bias_missing": "f qkv_bias 0 mod=self_attn.q_proj | h biases 2 mod=mlp.down_proj"
    " | b qkv_bias 2 shard=1 | f biases 1 mod=self_attn.o_proj",
    "grad_scale": "f backward 0 k=2.0 | h backward 1 mod=mlp.up_proj k=0.25 | b training 0 k=0.5",
    "zero_grad_missing": "b training 1 | f training 0 mod=mlp.up_proj | h training 1",
    "attn_backward": "f backward 1 | b backward 0 kind=half | h backward_bias 1 kind=double",
    "uninitialised": "f unpadded 0 | h right 2 mod=mlp.up_proj | b odd 1 rows=2 cols=16",
    "race_partial": "f wide 0 | h plain 1 mod=self_attn.q_proj | b odd 2 mod=mlp.down_proj",
    "stale_buffer": "b steps 1 | f steps 0 at=2 | h steps 1 mod=self_attn.o_proj",
    "bit_flip": "f plain 1 | b wide 0 bit=27 | h right 2 bit=31 | f gelu 0 bit=25"
    " mod=self_attn.v_proj | b plain 0 bit=24",
    "expert_mapping": "f moe 0 | h moe8 1 a=2 b=5 | b moe_bias 0 a=1 b=3 hidden=False",
    "router_bias_missing": "f moe_bias 1 | b moe_bias 0 | h moe_bias 2",
    "different_inputs": "f plain 0 n=1 | h wide 0 n=5 sample=1 | b moe 0 | fb gelu 0",
    "different_weights": "f plain 0 | b wide 0 which=proj size=0.05 | h moe8 0 | fb plain 0",
    "different_mask": "f plain 0 | b right 0 kind=more | h wide 0 kind=more | b plain 0",
}
EXTRA_MODELS: Mapping[str, Mapping[str, Any]] = {
    "int8_steps": {"quant": "int8", "steps": 3, "layers": 2, "seq": 24},
    "fp8_steps": {"quant": "fp8", "steps": 2, "layers": 2, "seq": 24},
    "tp2_bias": {"tp": 2, "o_bias": True},
}


def cases() -> Iterator[Any]:
    """Cases of the casebook's own type, each with one fault."""
    seeds = count(4001)
    for slug, texts in TABLE.items():
        for text in texts.split("|"):
            yield case_of(slug, text.split(), next(seeds))


def register() -> None:
    """Make the further mechanisms known to the casebook."""
    tiny_registry.register()


def case_of(slug: str, words: list[str], seed: int) -> Any:
    """A case from its words in the table."""
    formats, model, layer, *options = words
    reference, candidate = FORMATS[formats]
    config = dict(EXTRA_MODELS[model] if model in EXTRA_MODELS else MODELS[model])
    return casebook().runner.Case(
        slug=slug,
        seed=seed,
        layer=int(layer),
        ref=reference,
        cand=candidate,
        style="native" if seed % 3 == 0 else "attr",
        cfg=config,
        opt={name: _value(text) for name, text in (word.split("=", 1) for word in options)},
    )


def _value(text: str) -> Any:
    """A number or truth value where the text is one."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
