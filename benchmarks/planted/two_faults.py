"""Candidates with two faults at once: two mechanisms in two layers of the tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.planted import tiny_faults
from benchmarks.planted.casebook import casebook
from benchmarks.planted.manifest import Entry
from benchmarks.planted.tiny_pairs import write_case

# first mechanism and its options | second mechanism and its options; `formats model layer …`
TABLE = """
attn_scale f plain 0 | saturation_clamp f plain 2
rope_base f wide 0 | act_variant f wide 2 kind=hard_silu
norm_weight_plus1 b plain 0 hidden=True | race_partial b plain 2
tile_tail b odd 0 | causal_off_by_one b odd 2
uninitialised h right 0 | wrong_head h right 2
norm_eps f plain 0 eps=1e-4 | tf32_gemm f plain 2
lowprec_compute f wide 1 | softmax_16bit f wide 2
bias_missing b qkv_bias 0 | attn_scale b qkv_bias 2 scale=0.18
rope_interleave h plain 1 | residual_wrong h plain 2 kind=mlp
pads_attended b plain 0 | index_overflow b plain 2
gqa_repeat_order f plain 0 | splitk_16bit f plain 2
norm_mean_subtract b wide 0 | tile_tail b wide 2 tile=48 mod=mlp.up_proj
int8_saturation b int8 0 | quant_scale_wrong b int8 2 kind=ignored
zero_point_off h int4 0 | attn_scale h int4 2
missing_reduce b tp2 0 | rope_scaling b tp2 2
softcap_dropped f softcap 0 | dropout_active f softcap 2 p=0.05
lora_scale b lora 0 | head_permuted b lora 2
router_norm b moe 0 | bit_flip b moe 2 mod=self_attn.v_proj
gate_up_swap h fused_mlp 0 | mask_leak h fused_mlp 2 neg=-5.0
weight_transposed b plain 0 | layout_reshape b plain 1
"""
SEED = 5001


def pairs(folder: Path) -> Iterator[Entry]:
    """Write the pairs of the table; `more` of each entry is the second fault."""
    tiny_faults.register()
    for n, line in enumerate(TABLE.strip().split("\n")):
        first, second = (_case(text, SEED + n) for text in line.split("|"))
        yield _written(first, second, folder, f"d{n + 1:02d}")


def _case(text: str, seed: int) -> Any:
    slug, *words = text.split()
    return tiny_faults.case_of(slug, words, seed)


def _written(first: Any, second: Any, folder: Path, name: str) -> Entry:
    """The pair; it is sound if the first shows where it should, and the second does alone."""
    runner = casebook().runner
    both = f"{first.slug} + {second.slug}"
    runner.MECH[both] = lambda config, _, rng: _merged(
        *(runner.MECH[case.slug](config, case.layer, rng, **case.opt) for case in (first, second))
    )
    _, plant, *runs = runner.build(second)
    _, problems = runner.verify(second, plant, *runs)
    entry = write_case(runner.Case(**{**vars(first), "slug": both, "opt": {}}), folder, name)
    return replace(
        entry,
        mechanism=first.slug,
        accepted=[first.slug, *entry.accepted[1:]],
        more=[_answer(plant, second)],
        problems=entry.problems + problems,
    )


def _merged(first: Any, second: Any) -> Any:
    """Both plants in one; what it says of itself is the first's."""
    edits = [plant.params for plant in (first, second) if plant.params]

    def edit(parameters: Any) -> None:
        for one in edits:
            one(parameters)

    return replace(first, ops={**first.ops, **second.ops}, params=edit if edits else None)


def _answer(plant: Any, case: Any) -> dict[str, Any]:
    return {
        "module": plant.site,
        "slot": plant.slot,
        "step": plant.step,
        "accepted": [case.slug, *plant.alt],
    }
