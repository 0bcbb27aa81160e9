"""Faults of the tiny model in what is computed: formulas, layouts, masks and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.planted.tiny_registry import F4, attention, mechanism, one, plant, site


@mechanism("norm_mean_subtract")
def norm_mean_subtract(_c: Any, layer: int, _rng: Any, mod: str = "input_layernorm") -> Any:
    """The mean is taken off first."""

    def fault(_model: Any, base: Any, x: Any, weight: Any) -> Any:
        return base(x - x.mean(-1, keepdims=True, dtype=F4), weight=weight)

    where = mod if mod.startswith("model") else site(layer, mod)
    return one(where, fault, f"{mod} subtracts the mean")


@mechanism("softcap_dropped")
def softcap_dropped(config: Any, layer: int, _rng: Any) -> Any:
    """Scores are not capped."""

    def fault(_model: Any, base: Any, *inputs: Any) -> Any:
        return base(*inputs, softcap=0.0)

    return one(attention(config, layer, "scores"), fault, f"soft cap {config.softcap} missing")


@mechanism("rope_scaling")
def rope_scaling(_c: Any, layer: int, _rng: Any, factor: float = 4.0) -> Any:
    """Queries and keys times 0.1 ln(factor) + 1, the attention factor of YaRN."""
    scale = 0.1 * np.log(factor) + 1

    def fault(_model: Any, base: Any, *inputs: Any) -> Any:
        return base(*inputs, scale=scale)

    return one(site(layer, "self_attn.rotary_emb"), fault, f"rotary output times {scale:.4f}")


@mechanism("lora_scale")
def lora_scale(config: Any, layer: int, _rng: Any, times: float = 0.0) -> Any:
    """The low-rank delta is scaled by `times` the right scale, by 1 where that is 0."""
    scale = times * config.lora_scale if times else 1.0

    def fault(_model: Any, base: Any, x: Any, **parameters: Any) -> Any:
        return base(x, **parameters, scale=scale)

    cause = f"LoRA scale {scale} instead of {config.lora_scale}"
    return one(site(layer, "self_attn.q_proj"), fault, cause)


@mechanism("lmhead_untied")
def lmhead_untied(_c: Any, _layer: int, rng: Any) -> Any:
    """The head has weights of its own, fresh from initialisation."""

    def edit(parameters: Any) -> None:
        like = parameters["lm_head.weight"]
        fresh = (rng.standard_normal(like.shape) * 0.02).astype(F4)
        parameters["lm_head.weight"] = fresh.astype("bfloat16").astype(F4)

    slot = "forward_params.weight"
    return plant(site="lm_head", slot=slot, params=edit, cause="lm_head left as initialised")


@mechanism("padding_idx_zero")
def padding_idx_zero(config: Any, _layer: int, rng: Any, *, stored: bool = False) -> Any:
    """One token's embedding is zero, in the table or in what the lookup returns."""
    where = "model.embed_tokens"
    token = np.zeros(1, np.int64)

    def fault(_model: Any, base: Any, ids: Any, weight: Any) -> Any:
        if not token[0]:
            token[0] = rng.choice(ids[ids > 0])
        return np.where((ids == token[0])[..., None], F4(0), base(ids, weight=weight))

    def edit(parameters: Any) -> None:
        parameters[where + ".weight"][int(rng.integers(3, config.vocab))] = 0

    cause = "embedding of one token is zero"
    if stored:
        return plant(site=where, slot="forward_params.weight", params=edit, cause=cause)
    return one(where, fault, cause)


@mechanism("head_permuted")
def head_permuted(config: Any, layer: int, _rng: Any, *, stored: bool = False) -> Any:
    """Heads in reverse order: rows of the q projection, or of what attention returns."""
    order = np.arange(config.heads)[::-1]

    def permuted(values: Any, axis: int) -> Any:
        shape = (*values.shape[:axis], config.heads, config.hd, *values.shape[axis + 1 :])
        return values.reshape(shape).take(order, axis).reshape(values.shape)

    def edit(parameters: Any) -> None:
        name = site(layer, "self_attn.q_proj.weight")
        parameters[name] = permuted(parameters[name], 0)

    def fault(_model: Any, base: Any, *inputs: Any) -> Any:
        return permuted(base(*inputs), 2)

    if stored:
        where, slot = site(layer, "self_attn.q_proj"), "forward_params.weight"
        return plant(site=where, slot=slot, params=edit, cause="rows of q in another head order")
    where = attention(config, layer, "context")
    return one(where, fault, "heads returned in another order", alt=("layout_reshape",))


@mechanism("gqa_repeat_order")
def gqa_repeat_order(config: Any, layer: int, _rng: Any) -> Any:
    """Key and value heads repeated as 0 1 0 1 instead of 0 0 1 1."""
    heads = [head % config.kv for head in range(config.heads)]

    def fault(_model: Any, base: Any, *inputs: Any) -> Any:
        return base(*inputs, kvmap=heads)

    cause = "KV heads tiled instead of interleaved"
    return one(attention(config, layer, "scores"), fault, cause, alt=("wrong_head",))


@mechanism("index_overflow")
def index_overflow(
    _c: Any, layer: int, _rng: Any, mod: str = "mlp.up_proj", bits: int = 11, how: str = "zero"
) -> Any:
    """All after the flat index 2^bits is zero, or a repetition from the start (`wrap`)."""

    def fault(_model: Any, base: Any, *inputs: Any, **parameters: Any) -> Any:
        out = base(*inputs, **parameters).copy()
        flat = out.reshape(-1)
        after = np.arange(1 << bits, flat.size)
        flat[after] = 0 if how == "zero" else flat[after & ((1 << bits) - 1)]
        return out

    cause = f"index of {mod} overflows at 2^{bits}"
    return one(site(layer, mod), fault, cause, alt=("uninitialised",) if how == "zero" else ())


@mechanism("causal_alignment")
def causal_alignment(_c: Any, layer: int, _rng: Any, step: int = 1) -> Any:
    """The causal mask of a decoding step begins at the first key: only that one is seen."""

    def fault(model: Any, base: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        queries, keys = q.shape[2], k.shape[2]
        if model.step >= step and queries != keys:
            mask = model.make_mask(model.amask, np.arange(queries), np.arange(keys))
        return base(q, k, v, mask)

    where = site(layer, "self_attn.attn")
    return one(where, fault, "causal mask aligned to the upper left", step=str(step))


@mechanism("causal_off_by_one")
def causal_off_by_one(_c: Any, layer: int, _rng: Any, shift: int = 1) -> Any:
    """Each token sees the next one (1), or not itself (-1)."""

    def fault(model: Any, base: Any, q: Any, k: Any, v: Any, _mask: Any) -> Any:
        n, t = q.shape[2], k.shape[2]
        mask = model.make_mask(model.amask, np.arange(t - n, t), np.arange(t), shift=shift)
        return base(q, k, v, mask)

    return one(site(layer, "self_attn.attn"), fault, f"causal diagonal shifted by {shift}")
