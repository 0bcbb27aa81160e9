"""Small transformers: decoders, encoders, encoder-decoders."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from benchmarks.planted.torch_layers import Layer, Shape, norm_of
from benchmarks.planted.torch_parts import Add, Kernels, Linear

UNSEEN = -30_000.0  # fits float16, and leaves no weight to a key


class Mask(nn.Module):
    """What each token may see: real tokens, and none after itself in a causal model."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, real: Tensor, queries: Tensor) -> Tensor:
        """(batch, keys) of real tokens, (tokens,) of positions to (batch, 1, tokens, keys)."""
        seen = real.bool()[:, None, None, :].expand(-1, 1, len(queries), -1)
        if self.causal:
            seen = seen & (queries[:, None] >= torch.arange(real.shape[1]))
        return seen


class PositionBias(nn.Module):
    """A learned number for each head and distance, added to the scores; unseen keys lose theirs."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.reach = 16
        self.relative = nn.Embedding(2 * self.reach + 1, shape.heads)

    def forward(self, mask: Tensor, queries: Tensor) -> Tensor:
        """Boolean (batch, 1, tokens, keys) to (batch, heads, tokens, keys)."""
        distance = queries[:, None] - torch.arange(mask.shape[-1])
        near = distance.clamp(-self.reach, self.reach) + self.reach
        bias = self.relative(near).permute(2, 0, 1)[None].float()
        return bias.masked_fill(~mask, UNSEEN)


class Stack(nn.Module):
    """Embedding, layers, norm."""

    def __init__(self, shape: Shape, kernels: Kernels, *, crossed: bool = False) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        if shape.position == "learned":
            self.embed_positions = nn.Embedding(shape.tokens, shape.hidden)
            self.add_positions = Add()
        self.causal_mask = Mask(shape.causal)
        if shape.position == "bias":
            self.position_bias = PositionBias(shape)
        self.layers = nn.ModuleList(
            Layer(shape, kernels, crossed=crossed) for _ in range(shape.layers)
        )
        self.norm = norm_of(shape, kernels)

    def forward(
        self,
        tokens: Tensor,
        real: Tensor,
        source: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        """(batch, tokens) of ids, (batch, all tokens so far) of real ones; hidden states."""
        positions = torch.arange(real.shape[1] - tokens.shape[1], real.shape[1])
        x = self.embed_tokens(tokens)
        if hasattr(self, "embed_positions"):
            x = self.add_positions(x, self.embed_positions(positions))
        mask = self.causal_mask(real, positions)
        if hasattr(self, "position_bias"):
            mask = self.position_bias(mask, positions)
        for layer in self.layers:
            x = layer(x, positions, mask, source, source_mask)
        return self.norm(x)


class LanguageModel(nn.Module):
    """A stack with a head over the vocabulary."""

    def __init__(self, shape: Shape, kernels: Kernels) -> None:
        super().__init__()
        self.model = Stack(shape, kernels)
        self.lm_head = Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to logits."""
        return self.lm_head(self.model(tokens, real))


class EncoderDecoder(nn.Module):
    """An encoder, and a decoder that attends to it; both read the same tokens here."""

    def __init__(self, shape: Shape, kernels: Kernels) -> None:
        super().__init__()
        self.encoder = Stack(replace(shape, causal=False), kernels)
        self.decoder = Stack(shape, kernels, crossed=True)
        self.lm_head = Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to logits."""
        source = self.encoder(tokens, real)
        seen = real.bool()[:, None, None, :].expand(-1, 1, tokens.shape[1], -1)
        return self.lm_head(self.decoder(tokens, real, source, seen))
