"""The torch models by name, with weights like those of trained ones, and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from benchmarks.planted.torch_layers import Shape
from benchmarks.planted.torch_others import ConvNet, ImageTransformer, Recurrent, TorchEncoder
from benchmarks.planted.torch_parts import Kernels, Linear
from benchmarks.planted.torch_transformers import EncoderDecoder, LanguageModel
from sample_dumps import decoder as functional_decoder

LLAMA = Shape(layers=3, kv_heads=2)
GPT = Shape(norm="layer", position="learned", activation="gelu", gated=False, bias=True, eps=1e-5)
BERT = replace(GPT, causal=False, eps=1e-12)
T5 = Shape(position="bias", activation="relu", gated=False)
SAMPLE = functional_decoder.Config(
    vocabulary=112, hidden=48, intermediate=96, layers=3, heads=3, kv_heads=1
)


class FunctionalDecoder(nn.Module):
    """The decoder of the samples, whose operators are calls inside modules."""

    def __init__(self, kernels: Kernels) -> None:
        super().__init__()
        fused, stepwise = functional_decoder.FUSED, functional_decoder.FUSED_ELSEWHERE
        self.lm = functional_decoder.CausalLM(
            SAMPLE, fused if kernels.norm == "fused" else stepwise
        )

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to logits; padding is not known to this model."""
        del real
        return self.lm(tokens)


MODELS: Mapping[str, Callable[[Kernels], nn.Module]] = {
    "llama": lambda kernels: LanguageModel(LLAMA, kernels),
    "llama_wide": lambda kernels: LanguageModel(
        replace(LLAMA, hidden=96, heads=6, kv_heads=3, intermediate=160, layers=2), kernels
    ),
    "llama_functional": FunctionalDecoder,
    "gpt": lambda kernels: LanguageModel(GPT, kernels),
    "bert": lambda kernels: LanguageModel(BERT, kernels),
    "moe": lambda kernels: LanguageModel(replace(LLAMA, experts=4, layers=2), kernels),
    "t5": lambda kernels: EncoderDecoder(T5, kernels),
    "vit": lambda kernels: ImageTransformer(replace(BERT, eps=1e-6), kernels),
    "cnn": lambda _: ConvNet(),
    "torch_encoder": lambda _: TorchEncoder(BERT),
    "lstm": lambda _: Recurrent(replace(GPT, hidden=48)),
}
IMAGES = ("vit", "cnn")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arguments of a model's call; `tokens` or `images` first."""

    arguments: tuple[Tensor, ...]

    def up_to(self, tokens: int) -> Inputs:
        """The first tokens of every sample."""
        return Inputs(tuple(argument[:, :tokens] for argument in self.arguments))


def inputs(name: str, seed: int, *, tokens: int, padded: int) -> Inputs:
    """Images, or ids and which of them are real; the second sample ends in padding."""
    generator = torch.Generator().manual_seed(seed + 1)
    if name in IMAGES:
        return Inputs((torch.randn(2, 3, 16, 16, generator=generator),))
    ids = torch.randint(3, 112, (2, tokens), generator=generator)
    real = torch.ones_like(ids)
    if padded:
        ids[1, -padded:], real[1, -padded:] = 0, 0
    return Inputs((ids, real))


def model_of(name: str, seed: int, kernels: Kernels, *, rounded: bool) -> nn.Module:
    """A model with the weights of this seed, in float32; `rounded` to bfloat16 values if asked."""
    model = MODELS[name](kernels)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for path, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if tensor.is_floating_point():
                values = _values(path, tensor, generator)
                tensor.copy_(values.bfloat16().float() if rounded else values)
    for module in model.modules():
        if isinstance(module, Linear):
            module.blocks = kernels.blocks
    return model.eval()


def _values(path: str, like: Tensor, generator: torch.Generator) -> Tensor:
    """Random values by the kind of a parameter: uneven norms, loud channels, quiet branches."""
    noise = torch.randn(like.shape, generator=generator)
    if "running_var" in path:
        return (0.3 * noise).exp()
    if "embed" in path:
        noise[:, :3] *= 6
        return 0.4 * noise
    if like.ndim == 1:
        is_scale = path.endswith("weight")
        return 1 + 0.2 * noise if is_scale else 0.1 * noise
    gain = 0.35 if path.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
    return gain * noise / like[0].numel() ** 0.5
