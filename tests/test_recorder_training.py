"""A recorded training step: gradients of activations and parameters, and the update."""

from __future__ import annotations

import pytest
import torch
from precision_recorder import record
from recorder_reading import read
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    """A residual branch, so that one tensor has several consumers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = self.first(x)
        return self.head(x + functional.silu(self.second(x)) * x)


X = torch.linspace(-2, 2, 30).reshape(5, 6)
LABELS = torch.tensor([0, 1, 2, 0, 1])


def net(dtype=torch.float32) -> Net:
    torch.manual_seed(3)
    return Net().to(dtype)


def train(model, optimiser=None):
    loss = functional.cross_entropy(model(X.to(model.head.weight.dtype)).float(), LABELS)
    loss.backward()
    if optimiser is not None:
        optimiser.step()


@pytest.fixture
def tensors(tmp_path):
    model = net()
    with record(model, tmp_path) as recording:
        train(model, torch.optim.SGD(model.parameters(), lr=0.5))
    return read(recording.path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recording_changes_no_gradient(dtype, tmp_path):
    plain, watched = net(dtype), net(dtype)
    train(plain)
    with record(watched, tmp_path):
        train(watched)
    for a, b in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)


def test_gradients_of_parameters_are_those_of_autograd(tensors):
    plain = net()
    train(plain)
    for name, parameter in plain.named_parameters():
        module, argument = name.rsplit(".", 1)
        item = tensors[f"/{module}@0/backward_params.{argument}"]
        assert item.attrs["pass"] == "gradient"
        assert torch.equal(item.torch, parameter.grad)


def test_gradients_of_activations_are_what_each_call_hands_on(tensors):
    model = net()
    x = model.first(X)
    gate = functional.silu(model.second(x))
    into_mul = x.view_as(x)
    into_second = x.view_as(x)
    into_add = x.view_as(x)
    gate = functional.silu(model.second(into_second))
    logits = model.head(into_add + gate * into_mul)
    loss = functional.cross_entropy(logits.float(), LABELS)
    wanted = torch.autograd.grad(loss, [x, gate, into_mul, into_second, into_add, logits])
    paths = [
        "/first@0/backward_input.0",
        "/@0/silu/backward_input.0",
        "/@0/mul/backward_output.1",
        "/second@0/backward_output.0",
        "/@0/add/backward_output.0",
        "/head@0/backward_input.0",
    ]
    for path, gradient in zip(paths, wanted, strict=True):
        assert tensors[path].attrs["pass"] == "backward"
        assert torch.allclose(tensors[path].torch, gradient, rtol=1e-6, atol=1e-8), path


def test_the_branches_of_a_fan_out_add_up_to_the_gradient_of_the_tensor(tensors):
    parts = [
        "/@0/add/backward_output.0",
        "/@0/mul/backward_output.1",
        "/second@0/backward_output.0",
    ]
    total = sum(tensors[path].torch for path in parts)
    assert torch.allclose(total, tensors["/first@0/backward_input.0"].torch, rtol=1e-6)


def test_the_loss_belongs_to_the_model_although_it_is_computed_outside(tensors):
    assert tensors["/@0/cross_entropy/forward_output.0"].values.shape == ()
    assert tensors["/@0/cross_entropy/backward_output.0"].values.shape == (5, 3)


def test_the_backward_pass_comes_after_the_forward_pass_in_reverse(tensors):
    order = {path: item.attrs["order"] for path, item in tensors.items()}
    forward_end = order["/@0/forward_output.0"]
    grads = [order[f"/{m}@0/backward_input.0"] for m in ("head", "second", "first")]
    assert grads == sorted(grads)
    assert grads[0] > forward_end


def test_parameters_before_and_after_the_update_are_kept(tensors):
    before, after = net(), net()
    train(after, torch.optim.SGD(after.parameters(), lr=0.5))
    start = tensors["/head@0/forward_params.weight"]
    update = tensors["/head@0/update_params.weight"]
    assert torch.equal(start.torch, before.head.weight)
    assert torch.equal(update.torch, after.head.weight)
    assert update.attrs["pass"] == "update"
    assert update.attrs["order"] > tensors["/head@0/backward_params.weight"].attrs["order"]


def test_accumulated_gradients_end_as_the_sum(tmp_path):
    model = net()
    with record(model, tmp_path) as recording:
        train(model)
        train(model)
    item = read(recording.path)["/head@0/backward_params.weight"]
    assert torch.equal(item.torch, model.head.weight.grad)
    assert item.attrs["writes"] == 2
    assert "/head@1/backward_input.0" in read(recording.path)


def test_gradients_can_be_left_out(tmp_path):
    model = net()
    with record(model, tmp_path, gradients=False) as recording:
        train(model)
    passes = {item.attrs["pass"] for item in read(recording.path).values()}
    assert passes == {"forward", "parameter"}


def test_several_steps_record_the_weights_as_they_change(tmp_path):
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    with record(model, tmp_path) as recording:
        for _ in range(2):
            optimiser.zero_grad()
            train(model, optimiser)
            recording.next_step()
    first, second = (read(tmp_path / f"step{i}_rank0.h5") for i in (0, 1))
    updated = first["/head@0/update_params.weight"].torch
    assert torch.equal(second["/head@0/forward_params.weight"].torch, updated)


def test_frozen_parameters_and_inputs_without_gradient_are_no_trouble(tmp_path):
    model = net()
    model.first.requires_grad_(False)
    with record(model, tmp_path) as recording:
        train(model)
    tensors = read(recording.path)
    assert "/first@0/backward_params.weight" not in tensors
    assert "/first@0/backward_input.0" not in tensors
    assert "/second@0/backward_input.0" in tensors
