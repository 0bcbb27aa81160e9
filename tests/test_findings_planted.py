"""Every detector names its own planted fault first, from arrays alone."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from finding_sites import call_of, expected_of, gradient_site, normal, rng, site, stored_site

from analysis.findings import explain
from analysis.findings.rounding import round_to
from analysis.replay.site import Site
from core.runs import Array

PLANTED: dict[str, list[Callable[[], Site]]] = {}


def planted(mechanism: str) -> Callable[[Callable[[], Site]], Callable[[], Site]]:
    def register(make: Callable[[], Site]) -> Callable[[], Site]:
        PLANTED.setdefault(mechanism, []).append(make)
        return make

    return register


X = normal(2, 24, 64)
W = normal(96, 64, seed=2, size=0.125)
BIAS = normal(96, seed=3)
SQUARE = normal(64, 64, seed=4, size=0.125)


def linear(observed: Array, dtype: str = "float32", **parts: Array) -> Site:
    parameters = {"weight": parts.pop("weight", W), **parts}
    return site("linear", {"0": X}, round_to(observed, dtype), parameters, dtype=dtype)


# ---- precision


@planted("tf32_gemm")
def operands_of_eleven_bits() -> Site:
    x, w = X * 1.00012345, W * 1.0005432
    y = round_to(x, "tf32") @ round_to(w, "tf32").T
    return site("linear", {"0": x}, round_to(y, "float32"), {"weight": w})


@planted("lowprec_compute")
def product_in_bfloat16() -> Site:
    x, w = X * 1.00012345, W * 1.0005432
    y = round_to(round_to(x, "bfloat16") @ round_to(w, "bfloat16").T, "bfloat16")
    return site("linear", {"0": x}, y, {"weight": w})


def running_sum(dtype: str, block: int) -> Array:
    total = np.zeros((2, 24, 96))
    for start in range(0, 64, block):
        span = slice(start, start + block)
        total = round_to(total + X[..., span] @ W[:, span].T, dtype)
    return total


@planted("lowprec_accum")
def accumulator_in_bfloat16() -> Site:
    return linear(running_sum("bfloat16", 1), "bfloat16")


@planted("splitk_16bit")
def quarters_summed_in_bfloat16() -> Site:
    parts = [X[..., i : i + 16] @ W[:, i : i + 16].T for i in range(0, 64, 16)]
    return linear(np.sum([round_to(p, "bfloat16") for p in parts], 0))


POSITIONS = np.broadcast_to(np.arange(24), (2, 24))
HEADS = normal(2, 4, 24, 16)


def turned(positions: Array, base: float = 1e4, round_phase: str = "") -> Array:
    phase = positions[:, None, :, None] * base ** (-np.arange(0, 16, 2) / 16)
    phase = round_to(phase, round_phase) if round_phase else phase
    a, b = HEADS[..., :8], HEADS[..., 8:]
    cos, sin = np.cos(phase), np.sin(phase)
    return np.concatenate((a * cos - b * sin, a * sin + b * cos), -1)


def rope(observed: Array, dtype: str = "float32") -> Site:
    inputs = {"0": HEADS, "1": HEADS[:, :2], "2": POSITIONS}
    return site("rope", inputs, round_to(observed, dtype), dtype=dtype, base=1e4)


@planted("rope_phase_16bit")
def phase_in_bfloat16() -> Site:
    return rope(turned(POSITIONS, round_phase="bfloat16"))


Q, K, V = normal(2, 4, 24, 16), normal(2, 2, 24, 16, seed=1), normal(2, 2, 24, 16, seed=2)
CAUSAL = np.tril(np.ones((24, 24), bool))[None, None] & np.ones((2, 1, 1, 24), bool)
PADDED = CAUSAL.copy()
PADDED[1, ..., :5] = False


def attended(
    mask: Array = CAUSAL,
    *,
    scale: float = 0.25,
    groups: tuple[int, ...] = (0, 0, 1, 1),
    low: float = -np.inf,
    cap: float = 0.0,
    change: Callable[[Array], Array] = lambda p: p,
    step: str = "",
) -> Array:
    scores = Q @ K[:, list(groups)].swapaxes(-1, -2) * scale
    scores = cap * np.tanh(scores / cap) if cap else scores
    some = mask.any(-1, keepdims=True)
    scores = np.where(some, np.where(mask, scores, low), 0.0)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    grown = round_to(grown, step) if step else grown
    p = grown / grown.sum(-1, keepdims=True)
    p = change(np.where(some, round_to(p, step) if step else p, 0.0))
    out = p @ V[:, list(groups)]
    return out.transpose(0, 2, 1, 3).reshape(2, 24, 64)


def attention(
    observed: Array, mask: Array = CAUSAL, dtype: str = "float32", **facts: float
) -> Site:
    inputs = {"0": Q, "1": K, "2": V, "3": mask}
    return site("attention", inputs, round_to(observed, dtype), dtype=dtype, **facts)


@planted("softmax_16bit")
def exponentials_in_bfloat16() -> Site:
    return attention(attended(step="bfloat16"))


NORM_X = round_to(normal(2, 24, 64) * np.exp(rng(5).standard_normal((2, 24, 1))) * 0.02, "bfloat16")
NORM_W = 1 + normal(64, seed=2, size=0.25)


def normed(eps: float = 1e-6, weight: Array = NORM_W, dtype: str = "") -> Array:
    square = np.mean(NORM_X**2, -1, keepdims=True)
    square = round_to(square, dtype) if dtype else square
    return NORM_X / np.sqrt(square + eps) * weight


def norm(observed: Array, x: Array = NORM_X, dtype: str = "float32", **facts: float) -> Site:
    made = {"eps": 1e-6, **facts}
    return site(
        "rms_norm", {"0": x}, round_to(observed, dtype), {"weight": NORM_W}, dtype=dtype, **made
    )


@planted("norm_stat_16bit")
def statistic_in_bfloat16() -> Site:
    return norm(normed(dtype="bfloat16"))


@planted("lmhead_16bit")
def logits_in_bfloat16() -> Site:
    y = round_to(X @ W.T, "bfloat16")
    return site("linear", {"0": X}, y, {"weight": W}, module="lm_head")


# ---- constants and range


@planted("norm_1p_16bit")
def one_plus_weight_in_bfloat16() -> Site:
    return norm(normed(weight=round_to(1 + NORM_W, "bfloat16")), plus_one=True)


@planted("const_rounded")
def embedding_scale_in_bfloat16() -> Site:
    constant = np.sqrt(96.0)
    y = X * float(round_to(np.array(constant), "bfloat16"))
    return site(
        "mul", {"0": X, "1": np.array([constant])}, round_to(y, "bfloat16"), dtype="bfloat16"
    )


@planted("fp16_overflow")
def one_channel_beyond_fp16() -> Site:
    w = W.copy()
    w[7] *= 60000
    return site("linear", {"0": X}, round_to(X @ w.T, "float16"), {"weight": w}, dtype="float16")


@planted("saturation_clamp")
def output_clamped() -> Site:
    return linear(np.clip(X @ W.T, -1.5, 1.5))


@planted("flush_to_zero")
def small_values_gone() -> Site:
    y = X @ W.T
    return linear(np.where(np.abs(y) < 2.0**-7, 0, y), "bfloat16")


@planted("mask_leak")
def mask_of_minus_nine() -> Site:
    return attention(attended(low=-9.0), dtype="bfloat16")


@planted("nan_masked_rows")
def nan_where_nothing_is_allowed() -> Site:
    dead = PADDED.any(-1)[:, 0, :, None]
    return attention(np.where(dead, attended(PADDED), np.nan), PADDED)


@planted("eps_underflow")
def zero_rows_divided_by_zero() -> Site:
    x = NORM_X.copy()
    x[0, 3:5] = 0
    with np.errstate(invalid="ignore"):
        y = x / np.sqrt(np.mean(x**2, -1, keepdims=True)) * NORM_W
    return norm(y, x)


@planted("variance_overflow")
def great_rows_vanish() -> Site:
    x = NORM_X.copy()
    x[1, 4:6, 3] = 900
    y = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6) * NORM_W
    y[1, 4:6] = 0
    return norm(y, x, "float16")


# ---- semantics


@planted("act_variant")
def tanh_gelu_for_exact_gelu() -> Site:
    inputs = {"0": normal(2, 24, 96, size=1.5)}
    y = expected_of("activation", inputs, form="gelu_tanh")
    return site("activation", inputs, round_to(y, "float32"), form="gelu")


@planted("attn_scale")
def scale_of_a_padded_head() -> Site:
    return attention(attended(scale=24**-0.5), dtype="bfloat16")


@planted("norm_eps")
def epsilon_ten_times_larger() -> Site:
    return norm(normed(eps=1e-5))


@planted("norm_weight_plus1")
def kernel_adds_one() -> Site:
    return norm(normed(weight=1 + NORM_W), dtype="bfloat16")


@planted("norm_weight_plus1")
def stored_weight_has_one_more() -> Site:
    return stored_site(NORM_W, NORM_W + 1)


@planted("norm_mean_subtract")
def layer_norm_for_rms_norm() -> Site:
    x = NORM_X - NORM_X.mean(-1, keepdims=True)
    return norm(x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6) * NORM_W)


@planted("dropout_active")
def ten_percent_dropped() -> Site:
    kept = rng(7).random(X.shape) >= 0.1
    return site("identity", {"0": X}, np.where(kept, X / 0.9, 0.0))


@planted("dropout_active")
def attention_weights_dropped() -> Site:
    keep = rng(7).random((2, 4, 24, 24)) >= 0.02
    return attention(attended(change=lambda p: np.where(keep, p / 0.98, 0.0)), dtype="bfloat16")


@planted("softcap_dropped")
def cap_left_out() -> Site:
    return attention(attended(scale=1.0), scale=1.0, softcap=5.0)


@planted("rope_scaling")
def attention_factor_applied() -> Site:
    return rope(turned(POSITIONS) * 1.139, "bfloat16")


@planted("lora_scale")
def adapter_at_half_strength() -> Site:
    a, b = normal(4, 64, seed=6, size=0.125), normal(96, 4, seed=7, size=0.3)
    y = X @ W.T + 1.0 * (X @ a.T) @ b.T
    parameters = {"weight": W, "lora_A": a, "lora_B": b}
    return site("lora_linear", {"0": X}, round_to(y, "float32"), parameters, scale=2.0)


@planted("lmhead_untied")
def random_head() -> Site:
    return stored_site(W, normal(96, 64, seed=9, size=0.02), module="lm_head")


@planted("lmhead_untied")
def logits_of_another_head() -> Site:
    y = X @ normal(96, 64, seed=9, size=0.125).T
    return site("linear", {"0": X}, round_to(y, "float32"), {"weight": W}, module="lm_head")


IDS = rng(1).integers(0, 30, (2, 24))


@planted("padding_idx_zero")
def vector_of_one_token_is_zero() -> Site:
    table = normal(30, 64)
    y = np.where((IDS[0, 3] == IDS)[..., None], 0.0, table[IDS])
    return site("embedding", {"0": IDS}, y, {"weight": table})


@planted("router_norm")
def router_weights_as_they_are() -> Site:
    inputs = {"0": normal(48, 8)}
    y = expected_of("route", inputs, shapes={"0": (48, 2)}, renormalised=False)
    return site("route", inputs, round_to(y, "float32"))


@planted("gate_up_swap")
def activation_on_the_up_half() -> Site:
    y = expected_of("act_mul", {"0": X}, form="silu", swapped=True)
    return site("act_mul", {"0": X}, round_to(y, "bfloat16"), dtype="bfloat16", form="silu")


@planted("residual_wrong")
def residual_left_out() -> Site:
    branch = normal(2, 24, 64, seed=1)
    return site("add", {"0": X, "1": branch}, branch)


@planted("residual_wrong")
def residual_after_the_norm() -> Site:
    branch, late = normal(2, 24, 64, seed=1), normal(2, 24, 64, seed=8)
    norm_before = call_of({"forward_output.0": late}, module="model.layers.1.norm")
    return site(
        "add", {"0": X, "1": branch}, round_to(late + branch, "float32"), others=(norm_before,)
    )


# ---- layout


@planted("rope_interleave")
def neighbours_rotated() -> Site:
    inputs = {"0": HEADS, "1": HEADS[:, :2], "2": POSITIONS}
    y = expected_of("rope", inputs, base=1e4, interleaved=True)
    return rope(y, "bfloat16")


@planted("rope_base")
def base_of_half_a_million() -> Site:
    return rope(turned(POSITIONS, base=5e5), "bfloat16")


@planted("weight_transposed")
def kernel_reads_the_transpose() -> Site:
    return linear(X @ SQUARE, "bfloat16", weight=SQUARE)


@planted("weight_transposed")
def stored_transpose() -> Site:
    return stored_site(SQUARE, SQUARE.T.copy())


@planted("head_permuted")
def heads_in_another_order() -> Site:
    y = attended().reshape(2, 24, 4, 16)[:, :, [2, 0, 3, 1]]
    return attention(y.reshape(2, 24, 64), dtype="bfloat16")


@planted("head_permuted")
def stored_rows_of_heads_moved() -> Site:
    moved = W.reshape(6, 16, 64)[[1, 2, 3, 4, 5, 0]].reshape(96, 64)
    return stored_site(W, moved)


@planted("layout_reshape")
def heads_and_tokens_merged() -> Site:
    y = attended().reshape(2, 24, 4, 16).transpose(0, 2, 1, 3)
    return attention(y.reshape(2, 24, 64), dtype="float16")


@planted("tile_tail")
def last_tile_of_k_left_out() -> Site:
    x, w = normal(2, 24, 72), normal(96, 72, seed=2, size=0.125)
    y = x[..., :64] @ w[:, :64].T
    return site("linear", {"0": x}, round_to(y, "bfloat16"), {"weight": w}, dtype="bfloat16")


@planted("wrong_head")
def one_head_uses_another_key_head() -> Site:
    return attention(attended(groups=(0, 1, 1, 1)), dtype="bfloat16")


@planted("gqa_repeat_order")
def key_heads_tiled() -> Site:
    return attention(attended(groups=(0, 1, 0, 1)), dtype="bfloat16")


@planted("index_overflow")
def zeros_from_a_power_of_two_on() -> Site:
    y = (X @ W.T).ravel()
    y[2048:] = 0
    return linear(y.reshape(2, 24, 96), "bfloat16")


@planted("stale_weight")
def weight_of_the_step_before() -> Site:
    old = W + normal(96, 64, seed=8, size=0.01)
    before = call_of({"forward_params.weight": old, "forward_input.0": X}, step=0)
    y = round_to(X @ old.T, "float32")
    return site("linear", {"0": X}, y, {"weight": W}, earlier=before)


# ---- masks and positions


@planted("pads_attended")
def padding_seen() -> Site:
    real = np.broadcast_to(PADDED[:, 0, -1, :, None], (2, 24, 64))
    made = attention(attended(CAUSAL), PADDED, "bfloat16")
    return replace(made, valid=real)


@planted("causal_alignment")
def diagonal_from_the_other_corner() -> Site:
    query = Q[:, :, -4:]
    mask = CAUSAL[:, :, -4:]
    corner = np.tril(np.ones((4, 24), bool))[None, None] & np.ones((2, 1, 1, 24), bool)
    inputs = {"0": query, "1": K, "2": V}
    y = expected_of("attention", {**inputs, "3": corner}, shapes={"0": (2, 4, 64)})
    return site("attention", {**inputs, "3": mask}, round_to(y, "bfloat16"), dtype="bfloat16")


@planted("causal_off_by_one")
def next_token_seen() -> Site:
    mask = np.tril(np.ones((24, 24), bool), 1)[None, None] & np.ones((2, 1, 1, 24), bool)
    return attention(attended(mask), dtype="bfloat16")


@planted("window_off_by_one")
def window_one_longer() -> Site:
    window = CAUSAL & ~np.tril(np.ones((24, 24), bool), -8)
    longer = CAUSAL & ~np.tril(np.ones((24, 24), bool), -9)
    return attention(attended(longer), window, "bfloat16")


@planted("cache_block_reuse")
def block_of_the_other_sequence() -> Site:
    keys, slots = normal(2, 2, 24, 16), np.arange(24)
    wrong = keys.copy()
    wrong[0, :, 8:16] = keys[1, :, 8:16]
    return site("cache", {"0": keys, "1": keys, "2": slots}, wrong, more={"1": keys})


@planted("position_offset")
def positions_one_too_large() -> Site:
    return rope(turned(POSITIONS + 1), "bfloat16")


@planted("position_offset")
def positions_restart() -> Site:
    return rope(turned(POSITIONS % 8), "bfloat16")


# ---- quantisation

CODES = rng(3).integers(-127, 128, (64, 64)).astype(np.int8)
SCALES = np.abs(normal(64, 1, seed=4, size=0.01)) + 0.001
TOKENS = rng(5).integers(-127, 128, (2, 24, 64)).astype(np.int8)
TOKEN_SCALES = np.abs(normal(2, 24, 1, seed=6, size=0.01)) + 0.001


def quantised(scales: Array, codes: Array = CODES) -> Site:
    y = (TOKENS.astype(float) @ codes.astype(float).T) * TOKEN_SCALES * scales.T
    inputs = {"0": TOKENS, "1": TOKEN_SCALES}
    parameters = {"weight": CODES, "weight_scale": SCALES}
    return site("quant_linear", inputs, round_to(y, "bfloat16"), parameters, dtype="bfloat16")


@planted("quant_scale_wrong")
def scale_inverted() -> Site:
    return quantised(1 / SCALES)


@planted("scale_axis")
def scale_along_the_input() -> Site:
    return quantised(SCALES, CODES * SCALES.T / SCALES)


def quantiser(codes: Array, scale: Array, earlier: Array | None = None) -> Site:
    before = None
    others = ()
    if earlier is not None:
        before = call_of({"forward_output.1": earlier}, step=0)
        others = (before,)
    more = {"1": scale}
    return site(
        "quantise", {"0": X}, codes.astype(np.int8), more=more, earlier=before, others=others
    )


NEEDED = np.abs(X).max(-1, keepdims=True) / 127


@planted("int8_saturation")
def scale_too_small() -> Site:
    return quantiser(np.clip(np.rint(X / (NEEDED * 0.7)), -127, 127), NEEDED * 0.7)


@planted("int8_wrap")
def codes_wrap_around() -> Site:
    return quantiser((np.rint(X / (NEEDED * 0.9)) + 128) % 256 - 128, NEEDED * 0.9)


@planted("stale_scale")
def scale_of_the_step_before() -> Site:
    old = NEEDED * (0.7 + 0.2 * rng(3).random(NEEDED.shape))
    return quantiser(np.clip(np.rint(X / old), -127, 127), old, old)


FOUR_BIT = rng(3).integers(0, 16, (96, 64)).astype(np.int8)
GROUP_SCALES = np.abs(normal(96, 2, seed=4, size=0.02)) + 0.005
ZEROS = rng(4).integers(5, 10, (96, 2)).astype(np.int8)


def int4(codes: Array, zeros: Array) -> Site:
    wide = (codes.reshape(96, 2, 32) - zeros[..., None].astype(float)) * GROUP_SCALES[..., None]
    parameters = {"weight": FOUR_BIT, "weight_scale": GROUP_SCALES, "weight_zero": ZEROS}
    y = round_to(X @ wide.reshape(96, 64).T, "bfloat16")
    return site("int4_linear", {"0": X}, y, parameters, dtype="bfloat16")


@planted("zero_point_off")
def zero_point_one_off() -> Site:
    return int4(FOUR_BIT, ZEROS + np.int8(1))


@planted("nibble_order")
def neighbouring_codes_exchanged() -> Site:
    return int4(FOUR_BIT.reshape(96, 32, 2)[..., ::-1].reshape(96, 64), ZEROS)


@planted("fp8_fnuz")
def codes_read_at_half() -> Site:
    codes = round_to(normal(96, 64, size=20.0), "float8_e4m3fn")
    x = round_to(normal(2, 24, 64, seed=1, size=20.0), "float8_e4m3fn")
    scale = np.full((1, 1), 0.01)
    inputs, parameters = {"0": x, "1": scale[0]}, {"weight": codes, "weight_scale": scale}
    y = round_to((x @ (codes * 0.5).T) * 0.0001, "bfloat16")
    made = site("quant_linear", inputs, y, parameters, dtype="bfloat16")
    call = made.candidate_call
    weight = replace(call.parameters["weight"], dtype="float8_e4m3fn")
    call = replace(call, parameters={**call.parameters, "weight": weight})
    assert made.candidate is not None
    return replace(made, candidate_call=call, candidate=replace(made.candidate, call=call))


# ---- parallelism


@planted("same_shard")
def both_ranks_compute_the_first_half() -> Site:
    half = X @ W[:48].T
    return linear(np.concatenate((half, half), -1), "bfloat16")


@planted("same_shard")
def stored_half_twice() -> Site:
    return stored_site(W, np.concatenate((W[:48], W[:48])))


@planted("missing_reduce")
def one_of_two_partial_sums() -> Site:
    y = round_to(X[..., :32] @ W[:, :32].T, "bfloat16")
    return site("row_linear", {"0": X}, y, {"weight": W}, dtype="bfloat16")


@planted("bias_times_tp")
def bias_on_both_ranks() -> Site:
    return linear(X @ W.T + 2 * BIAS, "bfloat16", bias=BIAS)


@planted("bias_missing")
def bias_left_out_on_one_shard() -> Site:
    half = np.where(np.arange(96) < 48, 0.0, BIAS)
    return linear(X @ W.T + half, "bfloat16", bias=BIAS)


# ---- backward

DY = normal(2, 24, 96, seed=8)
TRUE_GRADIENT = DY.reshape(-1, 96).T @ X.reshape(-1, 64)


def weight_gradient(observed: Array, before: Array | None = None) -> Site:
    earlier = None
    if before is not None:
        earlier = call_of({"backward_params.weight": before}, step=0)
    made = linear(X @ W.T)
    tensors = {"backward_params.weight": observed, "forward_input.0": X}
    call = call_of(tensors, step=1, earlier=earlier)
    made = replace(made, candidate_call=call)
    return gradient_site(made, TRUE_GRADIENT, observed, "backward_params.weight", 1e-3)


@planted("grad_scale")
def gradient_at_half() -> Site:
    return weight_gradient(TRUE_GRADIENT * 0.5)


@planted("zero_grad_missing")
def gradient_of_two_steps() -> Site:
    old = normal(96, 64, seed=9, size=5.0)
    return weight_gradient(TRUE_GRADIENT + old, old)


@planted("attn_backward")
def row_sum_left_out() -> Site:
    made = attention(attended())
    assert made.candidate is not None
    upper = normal(2, 24, 64, seed=9)
    given = made.candidate.given
    given = replace(given, inputs={**given.inputs, "gradient.0": upper})
    made = replace(made, candidate=replace(made.candidate, given=given))
    do = upper.reshape(2, 24, 4, 16).transpose(0, 2, 1, 3)
    keys, values = K.repeat(2, 1), V.repeat(2, 1)
    scores = np.where(CAUSAL, Q @ keys.swapaxes(-1, -2) / 4, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = do @ values.swapaxes(-1, -2)
    right = p * (dp - (dp * p).sum(-1, keepdims=True)) / 4 @ keys
    wrong = p * dp / 4 @ keys
    made = replace(made, candidate_call=call_of({"backward_output.0": wrong, "forward_input.0": Q}))
    return gradient_site(made, right, wrong, "backward_output.0", 1e-3)


# ---- execution and routing


@planted("uninitialised")
def block_never_written() -> Site:
    y = X @ W.T
    y[1, 8:12, 16:32] = rng(4).standard_normal((4, 16)) * 10.0 ** rng(5).integers(-3, 2, (4, 16))
    return linear(y, "bfloat16")


@planted("race_partial")
def tile_read_half_way() -> Site:
    y = X @ W.T
    y[0, 8:16, 32:48] = X[0, 8:16, :32] @ W[32:48, :32].T
    return linear(y, "bfloat16")


@planted("stale_buffer")
def output_of_the_step_before() -> Site:
    before = call_of({"forward_output.0": normal(2, 24, 96, seed=9)}, step=0)
    y = normal(2, 24, 96, seed=9)
    return site("linear", {"0": X}, y, {"weight": W}, earlier=before, others=(before,))


@planted("bit_flip")
def exponent_bit_flipped() -> Site:
    y = (X @ W.T).astype(np.float32)
    bits = y.view(np.uint32)
    bits[1, 3, 5] ^= np.uint32(1 << 27)
    return linear(y.astype(np.float64))


def expert_weights(seed: int) -> dict[str, Array]:
    return {
        "w13": normal(64, 32, seed=seed, size=0.2),
        "w2": normal(32, 32, seed=seed + 1, size=0.2),
    }


@planted("expert_mapping")
def weights_of_the_neighbour() -> Site:
    x = {"0": normal(40, 32)}
    tensors = {f"forward_params.{n}": v for n, v in expert_weights(5).items()}
    neighbour = call_of(tensors, module="model.layers.1.mlp.experts.1")
    y = expected_of("expert", x, expert_weights(5))
    return site(
        "expert",
        x,
        round_to(y, "bfloat16"),
        expert_weights(1),
        dtype="bfloat16",
        module="model.layers.1.mlp.experts.0",
        others=(neighbour,),
    )


@planted("router_bias_missing")
def bias_not_used_for_the_choice() -> Site:
    inputs, bias = {"0": normal(48, 8)}, {"bias": normal(8, seed=1, size=0.2)}
    y = expected_of("route", inputs, bias, shapes={"0": (48, 2)}, biased=False)
    return site("route", inputs, round_to(y, "float32"), bias)


# ---- setup


@planted("different_inputs")
def other_tokens() -> Site:
    other = IDS.copy()
    other[0, 3] += 1
    return stored_site(IDS, other, slot="forward_input.0")


@planted("different_mask")
def other_mask() -> Site:
    mask = np.ones((2, 24), np.int64)
    other = mask.copy()
    other[1, :4] = 0
    return stored_site(mask, other, slot="forward_input.attention_mask")


CASES = [(slug, make) for slug, makes in PLANTED.items() for make in makes]


@pytest.mark.parametrize(("mechanism", "make"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_the_planted_mechanism_is_named_first(mechanism: str, make: Callable[[], Site]) -> None:
    found = explain(make())
    assert found
    assert found[0].mechanism == mechanism, [(h.mechanism, h.confidence) for h in found]
    assert found[0].confidence >= 0.5
