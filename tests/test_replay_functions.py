"""Reference functions against torch in float64, and their floors against honest kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

import analysis.replay.functions  # noqa: F401  registers the functions
from analysis.replay import registry
from analysis.replay.functions.gradients import GRADIENTS
from analysis.replay.kinds import kind_of
from analysis.replay.local import local_error
from analysis.replay.noise import Arithmetic, variance
from analysis.replay.plugins import load_functions
from analysis.replay.registry import FUNCTIONS, Operands
from core.errors import CompareError, ExplorerError
from core.runs import Array

G = np.random.default_rng(3)
X = G.standard_normal((2, 6, 16))
W = G.standard_normal((8, 16)) / 4
B = G.standard_normal(8)
V = 1 + 0.2 * G.standard_normal(16)
Q, K, VALUES = (G.standard_normal((2, h, 6, 8)) for h in (4, 2, 2))
IMAGES = 1 + G.standard_normal((2, 4, 8, 8))
KERNEL = G.standard_normal((8, 2, 3, 3)) / 4
U = 1 + 0.2 * G.standard_normal(4)
POSITIONS = np.arange(6)
MASK = np.tril(np.ones((6, 6), bool))[None, None]
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

Torch = Callable[..., torch.Tensor]


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def rope(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    channels = torch.arange(0, x.shape[-1], 2, dtype=wide)
    phase = positions.to(wide)[:, None] * 10000.0 ** (-channels / x.shape[-1])
    a, b = x.to(wide).chunk(2, -1)
    turned = [a * phase.cos() - b * phase.sin(), b * phase.cos() + a * phase.sin()]
    return torch.cat(turned, -1).to(x.dtype)


CASES: Mapping[str, tuple[str, Torch, list[Array], Mapping[str, Array], Mapping[str, object]]] = {
    "linear": ("linear", functional.linear, [X], {"weight": W, "bias": B}, {}),
    "rms norm": (
        "rms_norm",
        lambda x, w: functional.rms_norm(x, (16,), w, 1e-6),
        [X],
        {"weight": V},
        {},
    ),
    "layer norm": (
        "layer_norm",
        lambda x, w, b: functional.layer_norm(x, (16,), w, b),
        [X],
        {"weight": V, "bias": V - 1},
        {"eps": 1e-5},
    ),
    "softmax": ("softmax", lambda x: torch.softmax(x, -1), [5 * X], {}, {}),
    "silu": ("activation", functional.silu, [X], {}, {"form": "silu"}),
    "gelu": ("activation", functional.gelu, [X], {}, {"form": "gelu"}),
    "gelu tanh": (
        "activation",
        lambda x: functional.gelu(x, approximate="tanh"),
        [X],
        {},
        {"form": "gelu_tanh"},
    ),
    "mul": ("mul", torch.mul, [X, X + 1], {}, {}),
    "add": ("add", torch.add, [X, X * X], {}, {}),
    "matmul": ("matmul", torch.matmul, [X, W.T], {}, {}),
    "attention": ("attention", attention, [Q, K, VALUES, MASK], {}, {}),
    "rope": ("rope", rope, [Q, POSITIONS], {}, {}),
    "convolution whose stride nobody recorded": (
        "convolution",
        lambda x, w, b: functional.conv2d(x, w, b, stride=2, padding=1, groups=2),
        [IMAGES],
        {"weight": KERNEL, "bias": B},
        {},
    ),
    "patches": (
        "convolution",
        lambda x, w: functional.conv2d(x, w, stride=4),
        [IMAGES],
        {"weight": G.standard_normal((8, 4, 4, 4)) / 8},
        {"padding": "[0, 0]"},
    ),
    "batch norm": (
        "batch_norm",
        lambda x, m, v, w, b: functional.batch_norm(x, m, v, w, b),
        [IMAGES],
        {"running_mean": U, "running_var": U * U, "weight": U, "bias": U - 1},
        {},
    ),
    "batch norm in training": (
        "batch_norm",
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        [IMAGES],
        {"weight": U, "bias": U - 1},
        {},
    ),
}


def as_torch(array: Array, dtype: torch.dtype) -> torch.Tensor:
    made = torch.from_numpy(np.ascontiguousarray(array))
    return made.to(dtype) if array.dtype.kind == "f" else made


def as_float64(tensor: torch.Tensor) -> Array:
    return tensor.detach().double().numpy() if tensor.is_floating_point() else tensor.numpy()


@pytest.mark.parametrize("case", CASES)
def test_a_function_gives_what_torch_gives_in_float64(case: str) -> None:
    kind, run, inputs, parameters, attributes = CASES[case]
    tensors = [as_torch(v, torch.float64) for v in (*inputs, *parameters.values())]
    expected = run(*tensors).numpy()
    made = FUNCTIONS[kind](given_of(inputs, parameters, expected), attributes)["0"]  # type: ignore[arg-type]
    np.testing.assert_allclose(made.value, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_torch_s_own_kernel_is_at_its_floor(case: str, dtype: str) -> None:
    kind, run, inputs, parameters, attributes = CASES[case]
    tensors = [as_torch(v, DTYPES[dtype]) for v in (*inputs, *parameters.values())]
    actual = as_float64(run(*tensors))
    seen = [as_float64(t) for t in tensors]
    held = dict(zip(parameters, seen[len(inputs) :], strict=True))
    made = FUNCTIONS[kind](given_of(seen[: len(inputs)], held, actual), attributes)["0"]  # type: ignore[arg-type]
    arithmetic = Arithmetic(storage=dtype, narrow=dtype != "float32")
    floor = variance(made, arithmetic)
    found = local_error(made, actual, floor, np.ones(actual.shape, bool), dtype)
    assert found.ratio < 1.4
    assert found.worst < 6
    assert found.nonfinite == 0


def given_of(inputs: list[Array], parameters: Mapping[str, Array], output: Array) -> Operands:
    named = {str(n): v for n, v in enumerate(inputs)}
    return Operands(inputs=named, parameters=parameters, shapes={"0": output.shape})


DIFFERENTIATED = [c for c in CASES if CASES[c][0] in GRADIENTS]


@pytest.mark.parametrize("case", DIFFERENTIATED)
def test_a_backward_pass_is_autograd_s(case: str) -> None:
    kind, run, inputs, parameters, attributes = CASES[case]
    tensors = [as_torch(v, torch.float64) for v in (*inputs, *parameters.values())]
    leaves = [t.requires_grad_() for t in tensors if t.is_floating_point()]
    output = run(*tensors)
    into = torch.from_numpy(G.standard_normal(output.shape))
    output.backward(into)  # type: ignore[no-untyped-call]
    given = given_of(inputs, parameters, output.detach().numpy())
    complete = {**FUNCTIONS[kind].defaults, **attributes}
    found = GRADIENTS[kind](given, complete, [into.numpy()])  # type: ignore[arg-type]
    names = [f"input.{n}" for n, v in enumerate(inputs) if v.dtype.kind == "f"]
    names += [f"parameter.{n}" for n in parameters]
    for name, leaf in zip(names, leaves, strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(found[name], leaf.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_quantised_codes_come_back_and_the_product_with_them() -> None:
    given = Operands(
        inputs={"0": X}, shapes={"0": X.shape, "1": (2, 6, 1)}, dtypes={"0": "int8", "1": "float32"}
    )
    made = FUNCTIONS["quantise"](given, {})
    codes, scale = np.rint(made["0"].value), made["1"].value
    assert np.abs(codes).max() == 127
    np.testing.assert_allclose(codes * scale, X, atol=scale.max() / 2)
    step = np.abs(W).max(1, keepdims=True) / 127
    product = Operands(
        inputs={"0": codes.astype(np.int8), "1": scale},
        parameters={"weight": np.rint(W / step).astype(np.int8), "weight_scale": step},
        shapes={"0": (2, 6, 8)},
    )
    value = FUNCTIONS["quant_linear"](product, {})["0"].value
    np.testing.assert_allclose(value, X @ W.T, atol=0.1)


def test_ties_of_a_router_are_free_and_clear_choices_are_not() -> None:
    logits = np.array([[3.0, 1.0, 0.0, -1.0], [2.0, 1.0, 1.0 + 1e-4, -3.0]])
    given = Operands(inputs={"0": logits}, shapes={"0": (2, 2), "1": (2, 2)})
    ids = FUNCTIONS["route"](given, {})["1"]
    assert ids.value.tolist() == [[0, 1], [0, 2]]
    assert ids.free is not None
    assert ids.free.tolist() == [[False, False], [False, True]]


def test_an_all_reduce_is_the_sum_over_ranks() -> None:
    ranks = tuple(G.standard_normal((3, 4)) for _ in range(4))
    given = Operands(inputs={"0": ranks[0]}, shapes={"0": (3, 4)}, ranks=ranks)
    np.testing.assert_allclose(FUNCTIONS["all_reduce"](given, {})["0"].value, sum(ranks))
    mean = FUNCTIONS["all_reduce"](given, {"reduction": "mean"})["0"].value
    np.testing.assert_allclose(mean, sum(ranks) / 4)


def test_a_cache_keeps_what_was_there_and_unknown_slots_are_free() -> None:
    new = G.standard_normal((1, 2, 1, 4))
    old = G.standard_normal((1, 2, 2, 4))
    given = Operands(
        inputs={"0": new, "1": np.array([2])}, shapes={"0": (1, 2, 3, 4)}, earlier={"0": old}
    )
    made = FUNCTIONS["cache"](given, {})["0"]
    np.testing.assert_array_equal(made.value, np.concatenate((old, new), 2))
    assert made.free is not None
    assert not made.free.any()


def test_operands_that_are_not_an_operator_s_are_said_so() -> None:
    with pytest.raises(CompareError):
        FUNCTIONS["attention"](given_of([X], {}, X), {})
    with pytest.raises(CompareError):
        FUNCTIONS["linear"](Operands(inputs={}), {})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LlamaRMSNorm", "rms_norm"),
        ("XpuFlashAttention", "attention"),
        ("FusedSiLU", "activation"),
        ("SiluAndMul", "act_mul"),
        ("ColumnParallelLinearXPU", "linear"),
        ("RowParalleLinear", "row_linear"),
        ("VocabParallelEmbedding", "embedding"),
        ("FP8Linear", "quant_linear"),
        ("BatchNorm2d", "batch_norm"),
        ("add_1", "add"),
        ("scaled_dot_product_attention", "attention"),
        ("Mystery", "unknown"),
    ],
)
def test_a_kind_is_read_from_any_vendor_s_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.fixture
def _registry_as_it_was() -> Iterator[None]:
    kept, classes = dict(FUNCTIONS), dict(registry.CLASSES)
    yield
    for now, before in ((FUNCTIONS, kept), (registry.CLASSES, classes)):
        now.clear()
        now.update(before)


@pytest.mark.usefixtures("_registry_as_it_was")
def test_a_plugin_registers_by_class_name_once(tmp_path: Path) -> None:
    code = (
        "from analysis.replay.registry import Answer, function\n"
        "@function('doubled_in_test', classes=('DoublerOfTest',))\n"
        "def doubled(given, attributes):\n"
        "    return {'0': Answer(value=2 * given.floats[0])}\n"
    )
    path = tmp_path / "mine.py"
    path.write_text(code)
    assert load_functions(path) == ("doubled_in_test",)
    assert kind_of("DoublerOfTest") == "doubled_in_test"
    with pytest.raises(ExplorerError, match="already"):
        load_functions(path)
    with pytest.raises(ExplorerError, match="no file"):
        load_functions(tmp_path / "none.py")
