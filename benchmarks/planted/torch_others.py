"""Models that are not written as one of our transformers: convolutions, images, recurrence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.planted.torch_layers import Layer, Shape, norm_of
from benchmarks.planted.torch_parts import Add, Kernels, Linear


class ConvBlock(nn.Module):
    """relu(x + norm(conv(relu(norm(conv(x))))))."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels * stride, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels * stride)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels * stride, channels * stride, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels * stride)
        self.shortcut = nn.Conv2d(channels, channels * stride, 1, stride)
        self.residual = Add()
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width)."""
        h = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(self.residual(self.shortcut(x), h))


class ConvNet(nn.Module):
    """A small residual network over images."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, 1, 1)
        self.pool = nn.MaxPool2d(2)
        self.layers = nn.Sequential(ConvBlock(channels, 1), ConvBlock(channels, 2))
        self.gather = nn.AdaptiveAvgPool2d(1)
        self.fc = Linear(2 * channels, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, height, width) to (batch, 10)."""
        x = self.layers(self.pool(self.stem(images)))
        return self.fc(self.gather(x).flatten(1))


class ImageTransformer(nn.Module):
    """Patches of an image through an encoder."""

    def __init__(self, shape: Shape, kernels: Kernels) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, shape.hidden, 4, 4)
        self.embed_positions = nn.Embedding(shape.tokens, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, kernels) for _ in range(shape.layers))
        self.norm = norm_of(shape, kernels)
        self.head = Linear(shape.hidden, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, 16, 16) to (batch, 10)."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        positions = torch.arange(x.shape[1])
        x = x + self.embed_positions(positions)
        mask = torch.ones(1, 1, len(positions), len(positions), dtype=torch.bool)
        for layer in self.layers:
            x = layer(x, positions, mask)
        return self.head(self.norm(x).mean(1))


class TorchEncoder(nn.Module):
    """torch's own encoder layers, with padding."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        layer = nn.TransformerEncoderLayer(
            shape.hidden, shape.heads, shape.intermediate, 0.1, "gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
        self.head = Linear(shape.hidden, shape.vocabulary)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to (batch, tokens, vocabulary)."""
        x = self.embed_tokens(tokens)
        return self.head(self.encoder(x, src_key_padding_mask=real == 0))


class Recurrent(nn.Module):
    """An LSTM over tokens."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.lstm = nn.LSTM(shape.hidden, shape.hidden, 2, batch_first=True)
        self.head = Linear(shape.hidden, shape.vocabulary)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(batch, tokens) of ids to (batch, tokens, vocabulary)."""
        del real
        return self.head(self.lstm(self.embed_tokens(tokens))[0])
