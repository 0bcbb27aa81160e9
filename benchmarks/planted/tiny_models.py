"""Shapes of the casebook's tiny model, and formats of the two sides, to build pairs from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Options = Mapping[str, Any]

MODELS: Mapping[str, Options] = {
    "plain": {},
    "deep": {"layers": 5},
    "wide": {"hidden": 96, "heads": 6, "kv": 3, "inter": 160},
    "all_heads": {"kv": 4, "layers": 2},
    "one_kv": {"heads": 4, "kv": 1},
    "small": {"hidden": 48, "heads": 3, "kv": 1, "inter": 96, "layers": 2},
    "odd": {"hidden": 72, "inter": 120},
    "wide_heads": {"hidden": 64, "heads": 2, "kv": 2, "hd": 32, "layers": 2},
    "long": {"seq": 80, "layers": 2, "n_pad": 19},
    "three_samples": {"batch": 3, "seq": 20, "layers": 2},
    "right": {"pad": "right"},
    "unpadded": {"pad": "none"},
    "far": {"pos0": 300, "layers": 2},
    "eps5": {"eps": 1e-5},
    "base5": {"rope_base": 5e5},
    "sharp": {"logit_gain": 1.6},
    "loud": {"grow": 2.0},
    "gemma": {"gemma": True, "hidden": 96, "layers": 2},
    "gemma2": {"gemma": True, "softcap": 20.0, "window": 12, "act": "gelu_tanh"},
    "softcap": {"softcap": 15.0, "logit_gain": 1.4},
    "qkv_bias": {"qkv_bias": True},
    "biases": {"qkv_bias": True, "o_bias": True},
    "window": {"window": 10, "pad": "none"},
    "gelu": {"act": "gelu"},
    "quick_gelu": {"act": "quick_gelu", "layers": 2},
    "eager": {"attn": "eager"},
    "eager_window": {"attn": "eager", "window": 9, "act": "gelu", "layers": 2},
    "eager_bias": {"attn": "eager", "qkv_bias": True, "pad": "right"},
    "fused_mlp": {"fused_mlp": True},
    "dropout": {"dropout": True},
    "tied": {"tie": True},
    "tp2": {"tp": 2},
    "tp4_bias": {"tp": 4, "o_bias": True, "layers": 2},
    "lora": {"lora": 8},
    "lora_small": {"lora": 4, "lora_scale": 0.5, "layers": 2},
    "moe": {"moe": 4, "inter": 48},
    "moe8": {"moe": 8, "inter": 32, "topk": 3, "layers": 2},
    "moe_bias": {"moe": 6, "inter": 48, "router_bias": True},
    "int8": {"quant": "int8"},
    "int8_bias": {"quant": "int8", "qkv_bias": True, "layers": 2},
    "fp8": {"quant": "fp8"},
    "int4": {"quant": "int4"},
    "int4_fine": {"quant": "int4", "group": 16, "layers": 2},
    "decode": {"decode": 3, "layers": 2},
    "decode_bias": {"decode": 2, "qkv_bias": True, "kv": 1, "layers": 2},
    "decode_right": {"decode": 2, "pad": "none", "seq": 24},
    "steps": {"steps": 3, "layers": 2, "seq": 24},
    "backward": {"backward": True, "layers": 2, "seq": 24},
    "backward_bias": {"backward": True, "qkv_bias": True, "layers": 2, "seq": 20},
    "training": {"backward": True, "steps": 2, "layers": 2, "seq": 16},
}

FORMATS: Mapping[str, tuple[str, str]] = {
    "f": ("float32", "float32"),
    "b": ("bfloat16", "bfloat16"),
    "h": ("float16", "float16"),
    "fb": ("float32", "bfloat16"),
    "fh": ("float32", "float16"),
    "bh": ("bfloat16", "float16"),
    "hb": ("float16", "bfloat16"),
    "bf": ("bfloat16", "float32"),
}
