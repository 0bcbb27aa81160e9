"""What the recorder sees of a model in inference, and how it leaves the model."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from precision_recorder import RecordError, RecorderWarning, record
from recorder_reading import read, root
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.proj = nn.Linear(width, width)
        self.num_heads = 2
        self.scale = 0.5

    def forward(self, x, mask=None):
        q = self.proj(x)
        scores = torch.matmul(q, q.transpose(-1, -2)) * self.scale
        scores = scores + mask
        mixed = functional.softmax(scores, dim=-1) @ q
        return functional.scaled_dot_product_attention(mixed, q, q, is_causal=True, scale=0.25)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8, eps=1e-4)
        self.attn = Attention()
        self.act = nn.SiLU()

    def forward(self, x, *, mask):
        return x + self.act(self.attn(self.norm(x), mask=mask))


def recorded(model: nn.Module, folder: Path, *args, **kwargs):
    with torch.no_grad(), record(model, folder) as recording:
        model(*args, **kwargs)
    return read(recording.path)


@pytest.fixture
def block() -> Block:
    torch.manual_seed(1)
    return Block().eval()


X = torch.linspace(-1, 1, 48).reshape(1, 6, 8)
MASK = torch.zeros(6, 6)


def test_modules_and_operators_come_in_execution_order(block, tmp_path):
    tensors = recorded(block, tmp_path, X, mask=MASK)
    outputs = [path for path in tensors if "forward_output" in path]
    assert outputs == [
        "/norm@0/forward_output.0",
        "/attn.proj@0/forward_output.0",
        "/attn@0/matmul/forward_output.0",
        "/attn@0/mul/forward_output.0",
        "/attn@0/add/forward_output.0",
        "/attn@0/softmax/forward_output.0",
        "/attn@0/matmul_1/forward_output.0",
        "/attn@0/scaled_dot_product_attention/forward_output.0",
        "/attn@0/forward_output.0",
        "/act@0/forward_output.0",
        "/@0/add/forward_output.0",
        "/@0/forward_output.0",
    ]
    assert [item.attrs["order"] for item in tensors.values()] == list(range(len(tensors)))


def test_values_are_those_the_model_computed(block, tmp_path):
    with torch.no_grad():
        expected = block(X, mask=MASK)
        normed = block.norm(X)
    tensors = recorded(block, tmp_path, X, mask=MASK)
    assert torch.equal(tensors["/@0/forward_output.0"].torch, expected)
    assert torch.equal(tensors["/norm@0/forward_output.0"].torch, normed)
    assert torch.equal(tensors["/attn.proj@0/forward_params.weight"].torch, block.attn.proj.weight)
    assert torch.equal(tensors["/attn@0/forward_input.mask"].torch, MASK)


def test_attributes_say_what_a_tensor_is(block, tmp_path):
    tensors = recorded(block, tmp_path, X, mask=MASK)
    attrs = tensors["/attn@0/softmax/forward_input.0"].attrs
    assert {name: attrs[name] for name in ("module", "op", "pass", "slot", "argument")} == {
        "module": "attn",
        "op": "softmax",
        "pass": "forward",
        "slot": "input",
        "argument": "0",
    }
    assert attrs["module_class"] == "Attention"
    assert attrs["parameter"] == "input"
    assert attrs["call"] == 0
    assert attrs["dtype"] == "float32"
    weight = tensors["/norm@0/forward_params.weight"].attrs
    assert (weight["pass"], weight["slot"], weight["argument"]) == (
        "parameter",
        "parameter",
        "weight",
    )


def test_scalars_of_modules_and_calls_are_kept(block, tmp_path):
    tensors = recorded(block, tmp_path, X, mask=MASK)
    norm = tensors["/norm@0/forward_output.0"].scalars
    assert norm["eps"] == 1e-4
    assert norm["normalized_shape"] == [8]
    assert tensors["/attn@0/forward_output.0"].scalars["num_heads"] == 2
    assert tensors["/attn@0/mul/forward_output.0"].scalars == {"other": 0.5}
    assert tensors["/attn@0/softmax/forward_output.0"].scalars["dim"] == -1
    sdpa = tensors["/attn@0/scaled_dot_product_attention/forward_output.0"].scalars
    assert sdpa == {"is_causal": True, "scale": 0.25}


def test_strides_are_those_in_memory(block, tmp_path):
    tensors = recorded(block, tmp_path, X, mask=MASK)
    transposed = tensors["/attn@0/matmul/forward_input.1"]
    assert transposed.values.shape == (1, 8, 6)
    assert list(transposed.attrs["stride"]) == [48, 1, 8]
    assert not transposed.attrs["contiguous"]


def test_a_tensor_seen_before_names_where(block, tmp_path):
    tensors = recorded(block, tmp_path, X, mask=MASK)
    assert tensors["/attn@0/forward_input.0"].attrs["same_as"] == "/norm@0/forward_output.0"
    for item in tensors.values():
        if "same_as" in item.attrs:
            same = tensors[item.attrs["same_as"]]
            assert np.array_equal(same.values, item.values)
            assert same.attrs["order"] < item.attrs["order"]


def test_calls_inside_a_leaf_of_the_framework_are_the_module_itself(tmp_path):
    tensors = recorded(nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1)), tmp_path, X)
    assert {item.attrs["op"] for item in tensors.values()} == {""}


def test_a_leaf_whose_only_call_is_itself_is_the_module(tmp_path):
    class Norm(nn.Module):
        def forward(self, x):
            return functional.rms_norm(x, (8,))

    class Scaled(nn.Module):
        def forward(self, x):
            return functional.rms_norm(x, (8,)) * 2

    tensors = recorded(nn.Sequential(Norm(), Scaled()), tmp_path, X)
    assert [item.attrs["op"] for item in tensors.values() if item.attrs["module"] == "0"] == [
        "",
        "",
    ]
    assert [path for path in tensors if path.startswith("/1@0")] == [
        "/1@0/forward_input.0",
        "/1@0/rms_norm/forward_input.0",
        "/1@0/rms_norm/forward_output.0",
        "/1@0/mul/forward_input.0",
        "/1@0/mul/forward_output.0",
        "/1@0/forward_output.0",
    ]


def test_a_module_called_twice_counts_its_calls(tmp_path):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return self.layer(self.layer(x))

    model = Twice()
    tensors = recorded(model, tmp_path, X)
    first, second = (tensors[f"/layer@{i}/forward_output.0"] for i in (0, 1))
    assert (first.attrs["call"], second.attrs["call"]) == (0, 1)
    assert torch.equal(second.torch, model.layer(first.torch))
    assert "/layer@1/forward_params.weight" not in tensors


def test_a_later_write_in_place_does_not_change_the_dump(tmp_path):
    class Overwrites(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            y = self.layer(x)
            y.mul_(2)
            y += 1
            return y.zero_()

    model = Overwrites()
    tensors = recorded(model, tmp_path, X)
    with torch.no_grad():
        y = model.layer(X)
    assert torch.equal(tensors["/layer@0/forward_output.0"].torch, y)
    assert torch.equal(tensors["/@0/mul/forward_input.0"].torch, y)
    assert torch.equal(tensors["/@0/mul/forward_output.0"].torch, y * 2)
    assert torch.equal(tensors["/@0/add/forward_input.0"].torch, y * 2)
    assert torch.equal(tensors["/@0/add/forward_output.0"].torch, y * 2 + 1)
    assert not tensors["/@0/forward_output.0"].values.any()
    assert "same_as" not in tensors["/@0/forward_output.0"].attrs


Point = namedtuple("Point", "left right")


@dataclass
class Result:
    hidden: torch.Tensor
    extra: Point


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Packs()

    def forward(self, x):
        return self.inner((x, [x + 1]), options={"bias/key": x - 1}, flag=True)["result"].hidden


class Packs(nn.Module):
    def forward(self, pair, options, flag):
        assert flag
        return {"result": Result(pair[0] * 2, Point(pair[1][0], options["bias/key"])), "none": None}


def test_nested_arguments_and_results_are_flattened_by_path(tmp_path):
    tensors = recorded(Nested(), tmp_path, X)
    own = [i for i in tensors.values() if i.attrs["module"] == "inner" and not i.attrs["op"]]
    assert [f"{item.attrs['slot']} {item.attrs['argument']}" for item in own] == [
        "input 0.0",
        "input 0.1.0",
        "input options.bias/key",
        "output result.hidden",
        "output result.extra.left",
        "output result.extra.right",
    ]
    assert own[2].path == "/inner@0/forward_input.options.bias%2Fkey"
    assert own[0].scalars["call.flag"] is True
    assert torch.equal(own[5].torch, X - 1)


def test_operators_of_other_libraries_are_seen_with_what_they_overwrite(tmp_path):
    @torch.library.custom_op("recorder_test::scale_into", mutates_args=("out",))
    def scale_into(out: torch.Tensor, x: torch.Tensor, factor: float) -> None:
        out.copy_(x * factor)

    class Kernel(nn.Module):
        def forward(self, x):
            y = torch.ones_like(x)
            torch.ops.recorder_test.scale_into(y, x, 3.0)
            return y + 1

    tensors = recorded(Kernel(), tmp_path, X)
    before = tensors["/@0/scale_into/forward_input.0"]
    after = tensors["/@0/scale_into/forward_output.0"]
    assert (before.values == 1).all()
    assert torch.equal(after.torch, X * 3)
    assert before.attrs["parameter"] == "out"
    assert after.scalars == {"factor": 3.0}


def test_operators_can_be_chosen_by_name_by_predicate_or_not_at_all(block, tmp_path):
    def ops(folder: str, operators) -> set[str]:
        with torch.no_grad(), record(block, tmp_path / folder, operators=operators) as recording:
            block(X, mask=MASK)
        return {item.attrs["op"] for item in read(recording.path).values()} - {""}

    assert ops("none", False) == set()
    assert ops("names", ("softmax",)) == {"softmax"}
    assert ops("predicate", lambda module, op: module == "" and op == "add") == {"add"}


def test_modules_can_be_passed_over(block, tmp_path):
    with (
        torch.no_grad(),
        record(block, tmp_path, modules=lambda path, _: path != "attn") as recording,
    ):
        block(X, mask=MASK)
    assert {item.attrs["module"] for item in read(recording.path).values()} == {
        "",
        "norm",
        "attn.proj",
        "act",
    }


def test_dims_name_as_many_axes_as_there_are(block, tmp_path):
    dims = {"*": ("only",), "*/*": ("batch", "token", "channel")}
    with torch.no_grad(), record(block, tmp_path, dims=dims) as recording:
        block(X, mask=MASK)
    tensors = read(recording.path)
    named = {path: json.loads(t.attrs.get("dims", "[]")) for path, t in tensors.items()}
    assert {len(d) for d in named.values()} >= {1, 3}
    assert all(len(d) in (0, tensors[path].values.ndim) for path, d in named.items())


def test_dims_are_written_where_the_user_names_them(block, tmp_path):
    dims = {"attn.softmax/*": ("batch", "query", "key")}
    with torch.no_grad(), record(block, tmp_path, dims=dims) as recording:
        block(X, mask=MASK)
    tensors = read(recording.path)
    attrs = tensors["/attn@0/softmax/forward_output.0"].attrs
    assert json.loads(attrs["dims"]) == ["batch", "query", "key"]
    assert "dims" not in tensors["/norm@0/forward_output.0"].attrs


def test_the_root_tells_where_the_numbers_come_from(block, tmp_path):
    with (
        torch.no_grad(),
        torch.autocast("cpu", torch.bfloat16),
        record(
            block, tmp_path, step=3, rank=2, provenance={"note": "x", "time": None}
        ) as recording,
    ):
        block(X, mask=MASK)
    assert recording.path.name == "step3_rank2.h5"
    attrs = root(recording.path)
    assert (attrs["format"], attrs["format_version"]) == ("precision-dump", 1)
    assert (attrs["step"], attrs["rank"], bool(attrs["complete"])) == (3, 2, True)
    provenance = json.loads(attrs["provenance"])
    assert provenance["framework.version"] == torch.__version__
    assert provenance["dtype_policy"] == "float32"
    assert provenance["autocast"] == "bfloat16"
    assert provenance["note"] == "x"
    assert provenance["math.allow_tf32"] is False
    assert "time" not in provenance
    assert provenance["model_class"].endswith(".Block")


def test_groups_are_kept_in_creation_order(block, tmp_path):
    recorded(block, tmp_path, X, mask=MASK)
    with h5py.File(tmp_path / "step0_rank0.h5") as file:
        assert list(file) == ["@0", "norm@0", "attn@0", "attn.proj@0", "act@0"]
        assert list(file["attn@0"])[:4] == [
            "forward_input.0",
            "forward_input.mask",
            "matmul",
            "mul",
        ]


def test_uncompressed_values_can_be_mapped(block, tmp_path):
    tensors = recorded(block, tmp_path, X, mask=MASK)
    file = tmp_path / "step0_rank0.h5"
    with h5py.File(file) as opened:
        dataset = opened["attn@0/softmax/forward_output.0"]
        assert dataset.chunks is None
        offset = dataset.id.get_offset()
    mapped = np.memmap(file, "<f4", "r", offset, (1, 6, 6))
    assert np.array_equal(mapped, tensors["/attn@0/softmax/forward_output.0"].values)


def test_compression_changes_the_layout_and_no_value(tmp_path):
    model = nn.Linear(8, 1024)
    with torch.no_grad(), record(model, tmp_path, compression="gzip") as recording:
        y = model(X)
    with h5py.File(recording.path) as file:
        assert file["@0/forward_output.0"].compression == "gzip"
        assert file["@0/forward_input.0"].compression is None
        assert np.array_equal(file["@0/forward_output.0"][()], y.numpy())


def test_nothing_is_left_on_the_model(block, tmp_path):
    recorded(block, tmp_path, X, mask=MASK)
    for module in block.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    for parameter in block.parameters():
        assert not parameter._post_accumulate_grad_hooks
    size = (tmp_path / "step0_rank0.h5").stat().st_size
    block(X, mask=MASK).sum().backward()
    assert (tmp_path / "step0_rank0.h5").stat().st_size == size


def test_recording_changes_no_result(block, tmp_path):
    with torch.no_grad():
        plain = block(X, mask=MASK)
        with record(block, tmp_path):
            watched = block(X, mask=MASK)
    assert torch.equal(plain, watched)


def test_each_step_gets_its_file(block, tmp_path):
    with torch.no_grad(), record(block, tmp_path, step=5) as recording:
        for _ in range(2):
            block(X, mask=MASK)
            recording.next_step()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step5_rank0.h5", "step6_rank0.h5"]
    assert "/norm@0/forward_params.weight" in read(tmp_path / "step6_rank0.h5")
    assert root(tmp_path / "step6_rank0.h5")["step"] == 6


def test_an_earlier_dump_is_not_overwritten_unasked(block, tmp_path):
    recorded(block, tmp_path, X, mask=MASK)
    with pytest.raises(RecordError, match="exists already"), record(block, tmp_path):
        pass
    with torch.no_grad(), record(block, tmp_path, overwrite=True):
        block(X, mask=MASK)


def test_a_model_that_is_never_called_is_a_loud_error(block, tmp_path):
    with pytest.raises(RecordError, match="Nothing was recorded"), record(block, tmp_path):
        pass


def test_calling_forward_directly_is_warned_about(block, tmp_path):
    with (
        torch.no_grad(),
        pytest.warns(RecorderWarning, match="model itself was never called"),
        record(block, tmp_path),
    ):
        block.forward(X, mask=MASK)


def test_a_compiled_model_is_warned_about(block, tmp_path):
    block.compile(backend="eager")
    with (
        pytest.warns(RecorderWarning, match="compiled"),
        pytest.raises(RecordError),
        record(block, tmp_path),
    ):
        pass


def test_tensors_without_dense_values_are_noted_and_skipped(tmp_path):
    class Sparse(nn.Module):
        def forward(self, x):
            return x.to_sparse()

    with pytest.warns(RecorderWarning, match="not dense"):
        tensors = recorded(Sparse(), tmp_path, X)
    assert list(tensors) == ["/@0/forward_input.0"]
    skipped = json.loads(root(tmp_path / "step0_rank0.h5")["skipped"])
    assert list(skipped) == ["/@0/forward_output.0"]


def test_buffers_and_uncalled_modules_are_recorded_and_tied_weights_once(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 8)
            self.head = nn.Linear(8, 5, bias=False)
            self.head.weight = self.embed.weight
            self.unused = nn.Linear(2, 2)
            self.register_buffer("inv_freq", torch.arange(4.0))

        def forward(self, ids):
            return functional.linear(self.embed(ids), self.head.weight)

    tensors = recorded(Tied(), tmp_path, torch.tensor([1, 2]))
    weight = tensors["/embed@0/forward_params.weight"]
    assert weight.scalars["tied"] == ["head.weight"]
    assert "/head@0/forward_params.weight" not in tensors
    assert tensors["/@0/forward_params.inv_freq"].scalars["kind"] == "buffer"
    assert "/unused@0/forward_params.weight" in tensors
    assert tensors["/@0/linear/forward_output.0"].scalars == {"parameter.1": "embed.weight"}
    assert "/@0/linear/forward_input.1" not in tensors


def test_inference_mode_and_autocast_are_recorded(block, tmp_path):
    with (
        torch.inference_mode(),
        torch.autocast("cpu", torch.bfloat16),
        record(block, tmp_path) as recording,
    ):
        block(X, mask=MASK)
    assert read(recording.path)["/attn.proj@0/forward_output.0"].attrs["dtype"] == "bfloat16"


def test_the_package_works_without_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, pathlib, precision_recorder as p\n"
        "writer = p.DumpWriter(pathlib.Path(sys.argv[1]) / 'step0_rank0.h5')\n"
        "entry = p.Entry(module='a', argument='0', pass_='forward', slot='output')\n"
        "writer.write(entry, p.values_of(np.arange(3.0)))\n"
        "writer.close()\n"
        "try:\n"
        "    with p.record(object(), sys.argv[1]): pass\n"
        "except p.RecordError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    assert "torch cannot be imported" in done.stdout
    tensors = read(tmp_path / "step0_rank0.h5")
    assert np.array_equal(tensors["/a@0/forward_output.0"].values, [0.0, 1.0, 2.0])


def test_importing_the_package_does_not_import_torch():
    code = "import precision_recorder, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_example_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "precision_recorder", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "/0.norm1@0/forward_output.0" in done.stdout
    assert "/1@0/update_params.weight" in done.stdout


def test_recording_raises_no_warning_of_its_own(block, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecorderWarning)
        recorded(block, tmp_path, X, mask=MASK)
