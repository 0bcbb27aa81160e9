"""A decoder of a few operators in NumPy, recorded in memory; kernels and faults are parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from memory_runs import run_of

from core.runs import Array, Run

HIDDEN, INNER, TOKENS, VOCABULARY, HEADS = 32, 48, 24, 40, 2
_STORED = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}

Fault = Callable[[Array], Array]


@dataclass
class Decoder:
    """One run. `order` splits sums over K as another kernel would; `faults` change an output.

    `padding` tokens at the start of the second sample are padding.
    """

    dtype: str = "float32"
    order: int = 0
    layers: int = 2
    seed: int = 0
    padding: int = 0
    faults: Mapping[str, Fault] = field(default_factory=dict)
    weights: Mapping[str, Fault] = field(default_factory=dict)
    ids: Callable[[Array], Array] = lambda ids: ids
    eps: float = 1e-6
    classes: Mapping[str, str] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    facts: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def run(self) -> Run:
        """Execute and give what was recorded."""
        rng = np.random.default_rng(self.seed)
        ids = self.ids(rng.integers(1, VOCABULARY, (2, TOKENS)))
        mask = np.ones((2, TOKENS), np.int64)
        mask[1, : self.padding] = 0
        ids = np.where(mask > 0, ids, 0)
        self.keep("mask", "CausalMask", {"forward_input.0": mask})
        x = self.embedding(ids, self.weight("embed", (VOCABULARY, HIDDEN), rng))
        for layer in range(self.layers):
            x = self.block(f"layers.{layer}", x, mask, rng)
        x = self.norm("norm", x, rng)
        self.linear("lm_head", x, VOCABULARY, rng)
        return run_of(self.arrays, facts=self.facts, label=self.dtype)

    def block(self, at: str, x: Array, mask: Array, rng: np.random.Generator) -> Array:
        """Attention and a gated MLP, each behind a norm."""
        h = self.norm(f"{at}.attn_norm", x, rng)
        q, k, v = (self.by_heads(self.linear(f"{at}.{n}", h, HIDDEN, rng)) for n in "qkv")
        mixed = self.attention(f"{at}.attn", q, k, v, mask)
        o = self.linear(f"{at}.o", mixed, HIDDEN, rng)
        x = self.two(f"{at}.attn_add", "Add", np.add, x, o)
        h = self.norm(f"{at}.mlp_norm", x, rng)
        gate, up = (self.linear(f"{at}.{n}", h, INNER, rng) for n in ("gate", "up"))
        act = self.one(f"{at}.act", "SiLU", lambda t: t / (1 + np.exp(-t)), gate)
        inner = self.two(f"{at}.mul", "Mul", np.multiply, act, up)
        down = self.linear(f"{at}.down", inner, HIDDEN, rng)
        return self.two(f"{at}.mlp_add", "Add", np.add, x, down)

    def rounded(self, x: Array) -> Array:
        """As stored, and back in float32."""
        return np.asarray(x, np.float32).astype(_STORED[self.dtype]).astype(np.float32)

    def keep(self, module: str, cls: str, tensors: Mapping[str, Array]) -> None:
        """Record tensors of one call."""
        for slot, values in tensors.items():
            name = f"{module}:{slot}"
            self.arrays[name] = values
            self.facts[name] = {"module_class": self.classes.get(cls, cls)}
            if values.dtype == np.float32:
                self.facts[name] = {**self.facts[name], "dtype": self.dtype}

    def made(self, module: str, cls: str, y: Array, *inputs: Array, **parameters: Array) -> Array:
        """Round, break and record an output."""
        y = self.rounded(y)
        if module in self.faults:
            y = self.rounded(self.faults[module](y))
        given = {f"forward_input.{n}": x for n, x in enumerate(inputs)}
        held = {f"forward_params.{n}": p for n, p in parameters.items()}
        self.keep(module, cls, {**held, **given, "forward_output.0": y})
        return y

    def weight(self, module: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """A random weight, perhaps replaced."""
        scale = 1.0 if module == "embed" else shape[-1] ** -0.5
        weight = self.rounded(rng.standard_normal(shape) * scale)
        return self.rounded(self.weights[module](weight)) if module in self.weights else weight

    def product(self, a: Array, b: Array) -> Array:
        """a b in float32, in one or in many pieces along K."""
        if not self.order:
            return np.matmul(a, b, dtype=np.float32)
        total = np.float32(0)
        for start in reversed(range(0, a.shape[-1], self.order)):
            cut = slice(start, start + self.order)
            total = total + np.matmul(a[..., cut], b[..., cut, :], dtype=np.float32)
        return np.asarray(total)

    def embedding(self, ids: Array, weight: Array) -> Array:
        """Rows by id."""
        return self.made("embed", "Embedding", weight[ids], ids, weight=weight)

    def norm(self, module: str, x: Array, rng: np.random.Generator) -> Array:
        """RMS norm; another kernel rounds before the weight."""
        weight = self.rounded(1 + 0.2 * rng.standard_normal(HIDDEN))
        h = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(self.eps))
        h = self.rounded(h) if self.order else h
        return self.made(module, "RMSNorm", h * weight, x, weight=weight)

    def linear(self, module: str, x: Array, width: int, rng: np.random.Generator) -> Array:
        """x Wᵀ."""
        weight = self.weight(module, (width, x.shape[-1]), rng)
        return self.made(module, "Linear", self.product(x, weight.T), x, weight=weight)

    def by_heads(self, x: Array) -> Array:
        """(B, S, H·D) to (B, H, S, D)."""
        return x.reshape(2, TOKENS, HEADS, -1).transpose(0, 2, 1, 3).copy()

    def attention(self, module: str, q: Array, k: Array, v: Array, mask: Array) -> Array:
        """Causal attention over real keys; rows without any give zeros."""
        allowed = np.tril(np.ones((TOKENS, TOKENS), bool)) & (mask[:, None, None, :] > 0)
        scores = self.product(q, k.swapaxes(-1, -2)) * np.float32(q.shape[-1] ** -0.5)
        e = np.where(allowed, np.exp(scores - scores.max(-1, keepdims=True)), np.float32(0))
        p = e / np.maximum(e.sum(-1, keepdims=True), np.float32(1e-30))
        y = self.product(self.rounded(p) if self.order else p, v)
        y = y.transpose(0, 2, 1, 3).reshape(2, TOKENS, -1)
        return self.made(module, "FusedAttention", y, q, k, v, allowed)

    def one(self, module: str, cls: str, f: Fault, x: Array) -> Array:
        """An elementwise function."""
        return self.made(module, cls, f(x), x)

    def two(
        self, module: str, cls: str, f: Callable[[Array, Array], Array], a: Array, b: Array
    ) -> Array:
        """An elementwise function of two."""
        return self.made(module, cls, f(a, b), a, b)
