"""Records the sample pairs from real models; run as `python -m sample_dumps.make [ID …]`.

Every pair has a planted fault or none, said in `expect`. One thread and fixed seeds: the same
machine makes the same values again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from precision_recorder import record
from torch.nn import functional

from sample_dumps import encoder, faults, xray
from sample_dumps.decoder import (
    FUSED,
    FUSED_ELSEWHERE,
    STEPWISE,
    STEPWISE_ELSEWHERE,
    CausalLM,
    Config,
    Kernels,
    decoder,
)

HERE = Path(__file__).parent
SEED = 20_260_101
# Names of the axes, by operator and slot; the first pattern that fits name and number of axes.
SCORES, HEADS = ("batch", "head", "token", "key"), ("batch", "head", "token", "channel")
AXES = {
    "*.softmax/*": SCORES,
    "*.mul/*": SCORES,
    "*.matmul/forward_output.0": SCORES,
    "*.matmul/backward_input.0": SCORES,
    "*.matmul/forward_input.1": ("batch", "head", "channel", "key"),
    "*.matmul/backward_output.1": ("batch", "head", "channel", "key"),
    "*.matmul_1/forward_input.0": SCORES,
    "*.matmul_1/backward_output.0": SCORES,
    "*attention.self/forward_output.1": SCORES,
    "*lm_head/forward_output.0": ("batch", "token", "vocabulary"),
    "*lm_head/backward_input.0": ("batch", "token", "vocabulary"),
    "*_params.weight": ("out", "in"),
    "*/*": HEADS,
    "*": ("batch", "token", "channel"),
}
SMALL = Config(vocabulary=96, hidden=48, intermediate=96, layers=3, heads=3, kv_heads=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An entry of index.json. Folders are relative to this one; `expect` is the known answer."""

    id: str
    title: str
    story: str
    reference: str
    candidate: str
    expect: dict[str, Any]


def main() -> None:
    """Make the samples named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help=f"of {', '.join(MAKERS)}")
    parser.add_argument("--into", type=Path, default=HERE, help="another folder than this one")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for sample in SAMPLES:
        if sample.id in (chosen.ids or MAKERS):
            _make(sample, chosen.into)
    index = json.dumps([asdict(sample) for sample in SAMPLES], indent=2, ensure_ascii=False)
    (chosen.into / "index.json").write_text(f"{index}\n", encoding="utf-8")


def _make(sample: Sample, into: Path) -> None:
    """Make a sample aside, then put it in the place of the one there."""
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        made = Path(scratch)
        MAKERS[sample.id](made / sample.reference, made / sample.candidate)
        shutil.rmtree(into / sample.id, ignore_errors=True)
        (made / sample.id).replace(into / sample.id)


def minilm(reference: Path, candidate: Path) -> None:
    """The encoder in fp32 and in bf16; leaves and attention only, to stay small."""
    operators = {"matmul", "softmax"}
    for folder, dtype in ((reference, torch.float32), (candidate, torch.bfloat16)):
        model, tokens = encoder.encoder_and_input(dtype)
        with _recorded(
            model,
            folder,
            parameters=False,
            operators=lambda _, op: op in operators,
            modules=lambda path, module: not path or _computes(module),
            compression="gzip",
        ):
            model(**tokens)


def decoder_fault(reference: Path, candidate: Path) -> None:
    """Two bf16 decoders on kernels that round differently, one with a shifted rotary embedding."""
    good = _decoder(Config(), STEPWISE)
    bad = _decoder(Config(), STEPWISE_ELSEWHERE)
    faults.shift_query_positions(bad, 2, STEPWISE_ELSEWHERE)
    tokens = _tokens(Config(), batch=1, length=32)
    with torch.no_grad():
        with _recorded(good, reference, operators=_decoder_operators):
            good(tokens)
        with _recorded(bad, candidate, operators=_decoder_operators):
            bad(tokens)


def decoder_training(reference: Path, candidate: Path) -> None:
    """A training step; one norm of the candidate hands back a gradient with a term missing."""
    own = _with_norm(FUSED_ELSEWHERE, faults.norm_with_own_backward)
    good, bad = _decoder(SMALL, FUSED), _decoder(SMALL, own)
    bad.model.layers[1].post_attention_layernorm.kernel = faults.norm_with_wrong_backward
    with _recorded(good, reference, operators=_decoder_operators):
        _train(good)
    with _recorded(bad, candidate, operators=_decoder_operators):
        _train(bad)


def xray_renamed(reference: Path, candidate: Path) -> None:
    """Two sound fp16 runs in torch_xray's layout, whose class names do not agree."""
    tokens = _tokens(SMALL, batch=1, length=24)
    sides = (
        (reference, FUSED, xray.reference_name, True),
        (candidate, FUSED_ELSEWHERE, xray.candidate_name, False),
    )
    for folder, kernels, rename, counters in sides:
        model = _decoder(SMALL, kernels, torch.float16)
        with tempfile.TemporaryDirectory() as scratch:
            with torch.no_grad(), _recorded(model, Path(scratch)) as recording:
                model(tokens)
            xray.convert(recording.path, folder, rename, counters=counters)


def _recorded(model: Any, folder: Path, **options: Any) -> AbstractContextManager[Any]:
    # Without the time of day the files come out the same each time.
    return record(model, folder, provenance={"time": None, "seed": SEED}, dims=AXES, **options)


def _decoder(config: Config, kernels: Kernels, dtype: torch.dtype = torch.bfloat16) -> CausalLM:
    return decoder(config, kernels, seed=SEED, dtype=dtype).eval()


def _tokens(config: Config, *, batch: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(SEED)
    return torch.randint(config.vocabulary, (batch, length), generator=generator)


def _train(model: CausalLM) -> None:
    model.train()
    tokens = _tokens(SMALL, batch=1, length=25)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    logits = model(tokens[:, :-1])
    functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()).backward()
    optimiser.step()


def _with_norm(kernels: Kernels, norm: Callable[..., torch.Tensor]) -> Kernels:
    return replace(kernels, rms_norm=norm)


def _decoder_operators(module: str, op: str) -> bool:
    """The insides of norms and of the rotary embedding differ by design and stay out."""
    inside = module.endswith(("norm", "rotary_emb"))
    return not inside and op in {
        "matmul", "mul", "softmax", "scaled_dot_product_attention", "silu", "add", "cross_entropy",
    }  # fmt: skip


def _computes(module: Any) -> bool:
    """Whether a module of the encoder computes something of its own."""
    name = type(module).__name__
    return name in ("Linear", "LayerNorm", "Embedding", "GELUActivation", "BertSelfAttention")


SAMPLES = (
    Sample(
        id="minilm-fp32-bf16",
        title="Sentence encoder, fp32 against bf16",
        story="The pretrained MiniLM encoder on a sentence in single precision, and the same "
        "weights in bfloat16. Everything differs, nothing is wrong.",
        reference="minilm-fp32-bf16/reference",
        candidate="minilm-fp32-bf16/candidate",
        expect={"verdict": "rounding"},
    ),
    Sample(
        id="decoder-fault",
        title="Decoder with a rotary embedding off by one",
        story="A bf16 decoder on two libraries that round differently. In one layer of the "
        "candidate the positions of queries count from 1 and those of keys from 0.",
        reference="decoder-fault/reference",
        candidate="decoder-fault/candidate",
        expect={
            "verdict": "fault",
            "module": "model.layers.2.self_attn.rotary_emb",
            "slot": "forward_output.0",
        },
    ),
    Sample(
        id="decoder-training",
        title="Training step with a wrong gradient",
        story="Forward, loss, backward and update of a bf16 decoder. The forward pass agrees; one "
        "norm of the candidate hands back a gradient that lacks a term.",
        reference="decoder-training/reference",
        candidate="decoder-training/candidate",
        expect={
            "verdict": "fault",
            "module": "model.layers.1.post_attention_layernorm",
            "slot": "backward_output.0",
        },
    ),
    Sample(
        id="xray-renamed",
        title="torch_xray dumps whose class names disagree",
        story="The same fp16 decoder on two vendors' engines, in the layout of torch_xray. The "
        "port renamed and misspelt the classes and left out the counters; the values agree.",
        reference="xray-renamed/reference",
        candidate="xray-renamed/candidate",
        expect={"verdict": "rounding"},
    ),
)
MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "minilm-fp32-bf16": minilm,
    "decoder-fault": decoder_fault,
    "decoder-training": decoder_training,
    "xray-renamed": xray_renamed,
}

if __name__ == "__main__":
    main()
