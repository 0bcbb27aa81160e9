"""A run that dies leaves a readable dump with everything seen so far."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from precision_recorder import record
from recorder_reading import read, root
from torch import nn

from loaders import open_run

MODEL = """
import os, signal, sys, torch
from torch import nn
from precision_recorder import record

class Dies(nn.Module):
    def forward(self, x):
        y = torch.relu(x) + 1
        os.kill(os.getpid(), signal.SIGKILL)
        return y

model = nn.Sequential(nn.Linear(4, 4), Dies(), nn.Linear(4, 4))
with record(model, sys.argv[1]):
    model(torch.ones(2, 4))
"""
ENDLESS = """
import sys, torch
from torch import nn
from precision_recorder import record

model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(20)))
with record(model, sys.argv[1]):
    print("ready", flush=True)
    while True:
        model(torch.ones(2, 4))
"""


class Fails(nn.Module):
    def forward(self, x):
        y = torch.relu(x) + 1
        raise ValueError(f"the device ran away at {tuple(y.shape)}")


def test_an_exception_leaves_what_was_seen_and_says_so(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), Fails(), nn.Linear(4, 4))
    with pytest.raises(ValueError, match="ran away"), record(model, tmp_path) as recording:
        model(torch.ones(2, 4))
    tensors = read(recording.path)
    assert list(tensors)[-2:] == ["/1@0/add/forward_input.0", "/1@0/add/forward_output.0"]
    assert "/0@0/forward_output.0" in tensors
    assert "/2@0/forward_input.0" not in tensors
    attrs = root(recording.path)
    assert not attrs["complete"]
    assert attrs["error"] == "ValueError: the device ran away at (2, 4)"
    assert not model[0]._forward_hooks


def test_an_exception_the_model_itself_handles_does_not_confuse_the_order(tmp_path):
    class Falls(nn.Module):
        def __init__(self):
            super().__init__()
            self.fast, self.slow = Fails(), nn.Linear(4, 4)

        def forward(self, x):
            try:
                return self.fast(x)
            except ValueError:
                return torch.relu(self.slow(x))

    model = Falls()
    with record(model, tmp_path) as recording:
        model(torch.ones(2, 4))
    tensors = read(recording.path)
    assert "/@0/relu/forward_output.0" in tensors
    assert root(recording.path)["complete"]


def test_kill_9_leaves_a_readable_file(tmp_path):
    done = subprocess.run([sys.executable, "-c", MODEL, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    tensors = read(tmp_path / "step0_rank0.h5")
    assert list(tensors) == [
        "/@0/forward_input.0",
        "/0@0/forward_params.weight",
        "/0@0/forward_params.bias",
        "/0@0/forward_input.0",
        "/0@0/forward_output.0",
        "/1@0/forward_input.0",
        "/1@0/relu/forward_input.0",
        "/1@0/relu/forward_output.0",
        "/1@0/add/forward_input.0",
        "/1@0/add/forward_output.0",
    ]
    assert not root(tmp_path / "step0_rank0.h5")["complete"]


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.011, 0.173, 0.397])
def test_kill_9_at_any_moment_costs_at_most_the_group_being_written(delay_s, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.3 + delay_s)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    run = open_run(tmp_path / "step0_rank0.h5")
    assert run.tensors
    # HDF5 has no journal: a kill in the middle of an update can cost the one group it is about.
    damaged = {problem.where.rpartition("/")[0] for problem in run.problems}
    assert len(damaged) <= 1
    if not damaged:
        orders = [item.attrs["order"] for item in read(tmp_path / "step0_rank0.h5").values()]
        assert orders == list(range(len(orders)))
