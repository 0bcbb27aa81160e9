"""Every format goes into a dump and comes out bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from precision_recorder import DumpWriter, Entry, record, values_of
from recorder_reading import decoded, read
from torch import nn

FLOATS = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
STORED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]
SHAPES = [(), (0,), (3, 0, 2), (7,), (2, 3, 4)]
ENTRY = Entry(module="m", argument="0", pass_="forward", slot="output")


class Identity(nn.Module):
    def forward(self, x):
        return x


def through_the_recorder(tensor, folder):
    model = Identity()
    with record(model, folder) as recording:
        model(tensor)
    return read(recording.path)["/@0/forward_output.0"]


def bits(tensor):
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8) if flat.numel() else torch.zeros(0, dtype=torch.uint8)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool", "complex64", "complex128"])
def test_tensors_come_back_bit_for_bit(name, shape, tmp_path):
    dtype = getattr(torch, name)
    count = int(np.prod(shape, dtype=int))
    tensor = (torch.arange(count) * 7 % 5 - 2).reshape(shape).to(dtype)
    item = through_the_recorder(tensor, tmp_path)
    assert item.attrs["dtype"] == name
    assert str(item.values.dtype) == STORED.get(name, name)
    assert item.values.shape == shape
    assert item.torch.dtype == dtype
    assert torch.equal(bits(item.torch), bits(tensor))


@pytest.mark.parametrize("name", FLOATS)
def test_special_values_survive(name, tmp_path):
    dtype = getattr(torch, name)
    facts = torch.finfo(dtype)
    special = [float("nan"), -0.0, facts.max, facts.min, facts.smallest_normal]
    special += [] if name == "float8_e4m3fn" else [float("inf"), float("-inf")]
    tensor = torch.tensor(special, dtype=torch.float64).to(dtype)
    item = through_the_recorder(tensor, tmp_path)
    assert torch.equal(bits(item.torch), bits(tensor))
    expected = tensor.to(torch.float64).numpy()
    assert np.array_equal(decoded(item).astype(np.float64), expected, equal_nan=True)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "int64", "complex64"])
def test_strided_and_conjugated_views_are_stored_in_their_logical_order(name, tmp_path):
    tensor = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, name)).transpose(0, 2)
    tensor = tensor.conj() if tensor.is_complex() else tensor
    item = through_the_recorder(tensor, tmp_path)
    assert list(item.attrs["stride"]) == list(tensor.stride())
    assert torch.equal(bits(item.torch), bits(tensor.resolve_conj()))


def test_an_expanded_tensor_is_stored_in_full(tmp_path):
    item = through_the_recorder(torch.arange(3.0).expand(4, 3), tmp_path)
    assert item.values.shape == (4, 3)
    assert list(item.attrs["stride"]) == [0, 1]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_arrays_of_ml_dtypes_can_be_written_without_torch(name, tmp_path):
    array = np.array([1.5, -2.0, 0.0]).astype(getattr(ml_dtypes, name))
    writer = DumpWriter(tmp_path / "step0_rank0.h5")
    writer.write(ENTRY, values_of(array))
    writer.close()
    item = read(tmp_path / "step0_rank0.h5")["/m@0/forward_output.0"]
    assert item.attrs["dtype"] == name
    assert np.array_equal(decoded(item), array)


def test_arrays_are_copied_and_stored_little_endian(tmp_path):
    array = np.arange(4, dtype=">i4")
    values = values_of(array)
    array[:] = 0
    writer = DumpWriter(tmp_path / "step0_rank0.h5")
    writer.write(ENTRY, values)
    writer.close()
    item = read(tmp_path / "step0_rank0.h5")["/m@0/forward_output.0"]
    assert item.values.dtype == np.dtype("<i4")
    assert item.values.tolist() == [0, 1, 2, 3]
