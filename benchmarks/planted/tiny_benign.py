"""Honest pairs of the casebook's tiny model: rounding, other kernels, and harmless differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from benchmarks.planted.casebook import casebook
from benchmarks.planted.tiny_models import FORMATS, MODELS, Options

# Model: formats in which it is run on two kernel orders.
ROUNDED: Mapping[str, str] = {
    "plain": "f b h fb fh bh hb bf",
    "deep": "f b h fb",
    "wide": "b fh",
    "all_heads": "h fb",
    "one_kv": "b f",
    "small": "h bh",
    "odd": "b f",
    "wide_heads": "b fh",
    "long": "b h",
    "three_samples": "b f",
    "right": "b h",
    "unpadded": "f b",
    "far": "f b",
    "eps5": "f h",
    "base5": "b f",
    "sharp": "b h",
    "loud": "b f",
    "gemma": "b f h",
    "gemma2": "b fb",
    "softcap": "b f h",
    "qkv_bias": "b fb",
    "biases": "h f",
    "window": "b f",
    "gelu": "f b h",
    "quick_gelu": "b f",
    "eager": "f b h fb",
    "eager_window": "b h",
    "eager_bias": "b f",
    "fused_mlp": "b f",
    "dropout": "b f",
    "tied": "b h",
    "tp2": "b h f",
    "tp4_bias": "b fb",
    "lora": "b f",
    "lora_small": "h bh",
    "moe": "b h f fb",
    "moe8": "b h",
    "moe_bias": "b f",
    "int8": "b h f",
    "int8_bias": "b fb",
    "fp8": "b h",
    "int4": "b h f",
    "int4_fine": "b fb",
    "decode": "b h f",
    "decode_bias": "b fb",
    "decode_right": "h f",
    "steps": "b f",
    "backward": "b f h fb",
    "backward_bias": "b h",
    "training": "b f",
}

# The reference is built otherwise than the candidate, with the same mathematics.
BUILT_OTHERWISE: tuple[tuple[Options, Options, str], ...] = (
    ({"quant": "int8"}, {"quant": ""}, "b h f"),
    ({"quant": "fp8"}, {"quant": ""}, "b h"),
    ({"quant": "int4"}, {"quant": ""}, "b h"),
    ({"quant": "int8"}, {"quant": "fp8"}, "b"),
    ({"attn": "eager"}, {"attn": "fused"}, "b f h"),
    ({"attn": "fused", "window": 9}, {"attn": "eager"}, "b"),
    ({"fused_mlp": True}, {"fused_mlp": False}, "b f"),
    ({"tp": 2}, {"tp": 1}, "b h"),
    ({"tp": 1, "o_bias": True}, {"tp": 4}, "b"),
    ({"dropout": True}, {"dropout": False}, "b"),
)

# Benign kinds below, by model and formats.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("none", "plain", "b"),
    ("renamed", "plain", "h"),
    ("renamed", "eager", "b"),
    ("renamed", "fused_mlp", "f"),
    ("pad_garbage", "plain", "b"),
    ("pad_garbage", "right", "h"),
    ("pad_garbage", "three_samples", "f"),
    ("pad_mlp", "decode", "b"),
    ("pad_mlp", "right", "b"),
    ("pad_mlp", "plain", "f"),
    ("pad_ids", "right", "b"),
    ("pad_ids", "plain", "h"),
    ("tied_experts", "moe", "b"),
    ("tied_experts", "moe8", "h"),
    ("tied_experts", "moe_bias", "f"),
    ("signed_zeros", "plain", "b"),
)
IDENTICAL = ("plain b", "moe h", "int8 b", "decode f", "backward b", "gemma2 h", "training f")
# Summation orders and roundings of the two sides (`Num` of the casebook).
KERNELS: tuple[Mapping[str, Any] | None, ...] = (
    None,
    {"chunk": 16, "jitter": 1},
    {"chunk": 8, "jitter": 2, "fuse": True},
    {"chunk": 64, "fuse": True},
    {"jitter": 1},
)


def cases() -> Iterator[Any]:
    """Cases of the casebook's own type, all with the verdict `rounding`."""
    seeds = count(3001)
    yield from _rounded(seeds)
    for options, reference, formats in BUILT_OTHERWISE:
        for name in formats.split():
            yield _case(next(seeds), name, options, ref_cfg=dict(reference))
    for kind, model, formats in KINDS:
        for name in formats.split():
            yield _case(next(seeds), name, MODELS[model], opt={"kind": kind})
    for text in IDENTICAL:
        model, name = text.split()
        yield _case(next(seeds), name, MODELS[model], cand_num={})
    for name in ("fb", "fh"):  # the checkpoint is finer than the candidate's format
        yield _case(next(seeds), name, {"ckpt": "float32"})


def _rounded(seeds: Iterator[int]) -> Iterator[Any]:
    for model, formats in ROUNDED.items():
        for name in formats.split():
            seed = next(seeds)
            kernel = KERNELS[seed % len(KERNELS)]
            other: dict[str, Any] = {} if kernel is None else {"cand_num": _fitting(kernel, name)}
            if seed % 7 == 0 and name not in ("f", "fb", "fh"):
                other["ref_num"] = {"chunk": 48, "fuse": True}
            yield _case(seed, name, MODELS[model], **other)


def _fitting(kernel: Mapping[str, Any], formats: str) -> dict[str, Any]:
    """`fuse` perturbs accumulators by 2^-12, which is no rounding of float32."""
    narrow = FORMATS[formats][1] != "float32"
    return {**kernel, "fuse": narrow and kernel.get("fuse", False)}


def _case(seed: int, formats: str, options: Options, **more: Any) -> Any:
    reference, candidate = FORMATS[formats]
    return casebook().runner.Case(
        slug="rounding",
        seed=seed,
        ref=reference,
        cand=candidate,
        style="native" if seed % 3 == 0 else "attr",
        cfg=dict(options),
        **more,
    )
