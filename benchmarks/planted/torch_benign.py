"""Honest pairs from real torch kernels: other formats, backends, switches and summation orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from benchmarks.planted.torch_pairs import Plan
from benchmarks.planted.torch_parts import Kernels
from benchmarks.planted.torch_runs import Job, Side

PLAIN = Side()
EAGER = Kernels(attention="eager", norm="eager")
# How the candidate differs from a plain side.
OTHERWISE: Mapping[str, Side] = {
    "same": PLAIN,
    "math": Side(backend="math"),
    "flash": Side(backend="flash"),
    "eager": Side(kernels=EAGER),
    "blocks": Side(kernels=Kernels(blocks=4)),
    "blocks_eager": Side(kernels=replace(EAGER, blocks=2)),
    "no_mkldnn": Side(mkldnn=False),
    "threads": Side(threads=2, backend="math"),
    "channels_last": Side(channels_last=True),
    "autocast": Side(autocast="bfloat16"),
}
FORMATS = {"f": "float32", "b": "bfloat16", "h": "float16"}

# Model, format of the reference and of the candidate, candidate's side, then words of the job.
PAIRS = """
llama f f math | llama b b eager | llama h h blocks | llama f b same | llama f h eager
llama b b blocks_eager xray | llama f f eager xray | llama f b blocks xray | llama h b same xray
llama f f autocast | llama f f autocast xray | llama b b same | llama f f same xray
llama b b eager backward | llama f f blocks backward xray | llama f b eager backward
llama f f autocast backward | llama b b blocks decode | llama f f eager decode xray
llama f b same decode | llama f f math steps | llama f b same exact | llama f h same exact xray
llama_wide b b eager | llama_wide f f blocks xray | llama_wide h h eager backward
llama_functional b b eager | llama_functional f f eager xray | llama_functional h h eager
llama_functional f b same | llama_functional b b eager backward | llama_functional f b eager xray
gpt f f eager | gpt b b eager | gpt h h flash | gpt f b same xray | gpt f f autocast
gpt b b blocks backward | gpt f f no_mkldnn backward xray | gpt b b math decode | gpt f h same exact
bert f f eager | bert b b math xray | bert f b same | bert h h blocks | bert f f no_mkldnn
bert f b eager backward xray | bert f f autocast xray
moe f f eager | moe b b blocks | moe f b same | moe h h eager xray | moe b b eager backward
moe f f blocks xray | moe f b blocks exact
t5 f f eager | t5 b b eager | t5 f b same xray | t5 f f blocks backward | t5 h h math
vit f f eager | vit b b blocks xray | vit f b same | vit f f no_mkldnn backward | vit f f autocast
cnn f f channels_last | cnn f f no_mkldnn xray | cnn b b channels_last | cnn f b same xray
cnn f f no_mkldnn backward | cnn f h same | cnn f f autocast | cnn h h no_mkldnn xray
torch_encoder f f math | torch_encoder b b math xray | torch_encoder f b same
torch_encoder f f no_mkldnn backward | torch_encoder h h threads | torch_encoder f f autocast
lstm f f no_mkldnn | lstm f b same | lstm b b no_mkldnn xray | lstm f f no_mkldnn backward
"""


def plans() -> Iterator[Plan]:
    """All pairs; the seed of each is its place."""
    seeds = count(501)
    for line in PAIRS.split("\n"):
        for text in line.split("|"):
            if text.strip():
                yield plan_of(text, next(seeds))


def plan_of(text: str, seed: int) -> Plan:
    """The pair a line of the table describes."""
    model, reference, candidate, side, *words = text.split()
    return Plan(
        job=job_of(model, seed, words),
        reference=replace(PLAIN, dtype=FORMATS[reference]),
        candidate=replace(OTHERWISE[side], dtype=FORMATS[candidate]),
        note=text.strip(),
        unequal=("router", "mlp") if model == "moe" else (),
    )


def job_of(model: str, seed: int, words: list[str]) -> Job:
    """What both sides run: `backward`, `steps`, `decode`, `exact` weights, layout `xray`."""
    return Job(
        model=model,
        seed=seed,
        tokens=16 + seed % 3 * 4,
        padded=0 if "decode" in words or model.endswith("functional") else seed % 3 * 2,
        decode=3 if "decode" in words else 0,
        backward="backward" in words or "steps" in words,
        steps=2 if "steps" in words else 1,
        rounded="exact" not in words,
        layout="xray" if "xray" in words else "native",
    )
