"""The samples' decoder cut over two ranks as tensor parallelism does, recorded rank by rank.

Column-parallel q, k, v, gate, up and head, row-parallel o and down whose partial sums are reduced,
the embedding cut along the vocabulary. The ranks run in threads that meet in `all_reduce`.
"""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import torch
from precision_recorder import record
from torch import Tensor, nn
from torch.nn import functional

from sample_dumps.decoder import STEPWISE, STEPWISE_ELSEWHERE, CausalLM, Config, decoder

RANKS = 2
CONFIG = Config()


class Group:
    """Ranks that add up their tensors; the result is rounded once."""

    def __init__(self) -> None:
        self.parts: list[Tensor | None] = [None] * RANKS
        self.barrier = threading.Barrier(RANKS, timeout=60)

    def all_reduce(self, rank: int, part: Tensor) -> Tensor:
        self.parts[rank] = part
        self.barrier.wait()
        total = sum(p.detach().double() for p in self.parts if p is not None)
        self.barrier.wait()
        assert isinstance(total, Tensor)
        return total.to(part.dtype)


class RowParallelLinear(nn.Module):
    """Holds some input channels; the sum over the ranks is the product."""

    def __init__(self, weight: Tensor, rank: int, group: Group, *, reduces: bool = True) -> None:
        super().__init__()
        self.weight, self.rank, self.group = nn.Parameter(weight), rank, group
        self.reduces = reduces

    def forward(self, x: Tensor) -> Tensor:
        part = functional.linear(x, self.weight)
        return self.group.all_reduce(self.rank, part) if self.reduces else part


class VocabParallelEmbedding(nn.Module):
    """Holds some rows; ids of other ranks give zeros before the sum."""

    def __init__(self, weight: Tensor, rank: int, group: Group) -> None:
        super().__init__()
        self.weight, self.rank, self.group = nn.Parameter(weight), rank, group

    def forward(self, ids: Tensor) -> Tensor:
        local = ids - self.rank * self.weight.shape[0]
        here = (local >= 0) & (local < self.weight.shape[0])
        rows = functional.embedding(local.clamp(0, self.weight.shape[0] - 1), self.weight)
        return self.group.all_reduce(self.rank, rows * here[..., None])


def whole(folder: Path, **options: Any) -> None:
    """Record the decoder on one device."""
    model = decoder(CONFIG, STEPWISE, seed=1, dtype=torch.bfloat16).eval()
    with torch.no_grad(), record(model, folder, provenance={"time": None}, **options):
        model(_tokens())


def sharded(folder: Path, *, unreduced: int | None = None, **options: Any) -> None:
    """Record the same decoder on two ranks, with kernels that round at other places.

    The attention of layer `unreduced` leaves out its reduction: each rank goes on with its part.
    """
    model = decoder(CONFIG, STEPWISE_ELSEWHERE, seed=1, dtype=torch.bfloat16).eval()
    group = Group()
    shards = [_shard(model, rank, group, unreduced) for rank in range(RANKS)]
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            with (
                torch.no_grad(),
                record(shards[rank], folder, rank=rank, provenance={"time": None}, **options),
            ):
                shards[rank](_tokens())
        except BaseException as error:
            group.barrier.abort()
            failures.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _shard(model: CausalLM, rank: int, group: Group, unreduced: int | None) -> nn.Module:
    shard: Any = copy.deepcopy(model)
    for n, layer in enumerate(shard.model.layers):
        attention, mlp = layer.self_attn, layer.mlp
        attention.num_heads //= RANKS
        attention.num_kv_heads //= RANKS
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj):
            linear.weight = _piece(linear.weight, rank, 0)
        for linear in (mlp.gate_proj, mlp.up_proj):
            linear.weight = _piece(linear.weight, rank, 0)
        rows = _piece(attention.o_proj.weight, rank, 1)
        attention.o_proj = RowParallelLinear(rows, rank, group, reduces=n != unreduced)
        mlp.down_proj = RowParallelLinear(_piece(mlp.down_proj.weight, rank, 1), rank, group)
    table = _piece(shard.model.embed_tokens.weight, rank, 0)
    shard.model.embed_tokens = VocabParallelEmbedding(table, rank, group)
    shard.lm_head.weight = _piece(shard.lm_head.weight, rank, 0)
    return shard


def _piece(weight: Tensor, rank: int, axis: int) -> nn.Parameter:
    return nn.Parameter(weight.detach().chunk(RANKS, axis)[rank].clone())


def _tokens() -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(CONFIG.vocabulary, (1, 32), generator=generator)
