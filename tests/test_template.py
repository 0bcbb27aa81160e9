"""Templates: what names mean that somebody's own script made up."""

from __future__ import annotations

import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from test_loaders_safetensors import header_of
from test_loaders_safetensors import write as write_safetensors

import cli
from analysis.matching import match
from core.errors import LoadError
from loaders import open_run
from loaders.naming import placed
from loaders.template import parsed, preview

ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("template", "name", "meaning"),
    [
        ("{module}.{slot}.{argument}", "layers.0.mlp.output.1", ("layers.0.mlp", "forward_output.1")),  # noqa: E501
        ("{module}.{slot}", "layers.0.mlp.in", ("layers.0.mlp", "forward_input.0")),
        ("{module}/{slot}_{argument}", "layers/0/mlp/grad_weight", ("layers.0.mlp", "backward_params.weight")),  # noqa: E501
        ("{pass}_{module}_{slot}", "bwd_norm_input", ("norm", "backward_input.0")),
        ("{module}.{parameter}", "a/b/fc.weight", ("a.b.fc", "forward_params.weight")),
        ("{module}/{op}.{slot}", "blocks.1/softmax.out", ("blocks.1.softmax", "forward_output.0")),
        ("{_}__{module}__{slot}", "00012__fc__OUT", ("fc", "forward_output.0")),
        ("step{step}/{module}", "old/run/step7/fc", ("fc", "value")),
    ],
)  # fmt: skip
def test_a_name_that_fits_says_what_it_means(
    template: str, name: str, meaning: tuple[str, str]
) -> None:
    [(_, naming)] = preview(template, [name]).matches
    info = placed(naming, order=0, recorded=False)
    assert (info.operator, info.slot_label) == meaning


def test_numbers_and_parts_that_may_be_missing_are_understood() -> None:
    template = parsed("step{step}/rank{rank}/{module}[@{call}].{slot}.{argument}")
    first = template.match("step3/rank1/layers.2@4.output.0")
    second = template.match("step3/rank1/layers.2.output.0")
    assert first is not None
    assert second is not None
    assert (first.step, first.rank, first.call, first.module) == (3, 1, 4, "layers.2")
    assert (second.call, second.module) == (0, "layers.2")
    assert first.name == "layers.2@4/forward_output.0"


def test_names_that_do_not_fit_are_shown_beside_those_that_do() -> None:
    found = preview("step{step}/{module}.{slot}", ["step1/a.out", "stepX/a.out", "step2/b.in"])
    assert [name for name, _ in found.matches] == ["step1/a.out", "step2/b.in"]
    assert found.misses == ("stepX/a.out",)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("", "one line"),
        ("x" * 501, "one line"),
        ("{modul}", "unknown"),
        ("step{step}", "neither"),
        ("{module}{op}", "needs text"),
        ("{module}/{step}/{step}", "too often"),
        ("{_}a{_}b{_}c{_}d{_}e{module}", "too often"),
        ("{module}[a", "do not pair"),
        ("{module}]", "do not pair"),
        ("{module}[[a]]", "do not pair"),
    ],
)
def test_what_is_no_template_says_why_and_what_fields_there_are(template: str, reason: str) -> None:
    with pytest.raises(LoadError, match=reason) as raised:
        parsed(template)
    assert "{module}" in raised.value.hint


def test_no_name_takes_a_template_long() -> None:
    template = "{_}-{_}-{_}-{_}-{module}.{op}/{class}.{slot}.{argument}"
    names = ["a-" * 500, "-" * 1000, "a." * 500, "a/" * 500, "." * 5000, "output." * 140]
    started = time.perf_counter()
    assert preview(template, names).matches == ()
    assert time.perf_counter() - started < 10


def test_a_tree_of_any_files_loads_under_a_template(tmp_path: Path) -> None:
    for step in (0, 1):
        folder = tmp_path / f"it{step}" / "r2"
        folder.mkdir(parents=True)
        np.save(folder / "layers.0.fc.output.0.npy", ONES * step)
        torch.save(torch.ones(2), folder / "layers.0.fc.input.0.pt")
        np.savez(folder / "more.npz", **{"layers.0.norm.output.0": ONES})
        write_safetensors(folder / "w.safetensors", *header_of({"layers.0.fc.weight": ONES}))
        with h5py.File(folder / "x.h5", "w") as file:
            file["layers.1.fc.output.0"] = ONES
        (folder / "odd.npy").write_bytes((folder / "layers.0.fc.output.0.npy").read_bytes())
    template = "it{step}/r{rank}[/{_}]/{module}.{slot}.{argument}"
    run = open_run(tmp_path, template=template)
    kept = {"layers.0.fc/forward_output.0", "layers.0.fc/forward_input.0"}
    kept |= {"layers.0.norm/forward_output.0", "layers.1.fc/forward_output.0"}
    assert {f"step1/rank2/{name}" for name in kept} < set(run.tensors)
    assert run.read("step1/rank2/layers.0.fc/forward_output.0")[0, 0] == 1
    assert run["step0/rank2/layers.0.norm/forward_output.0"].module == "layers.0.norm"
    assert {problem.code for problem in run.problems} == {"template"}
    assert run.provenance["template"] == template
    assert run.fingerprint != open_run(tmp_path).fingerprint


def test_under_templates_two_naming_schemes_are_one(tmp_path: Path) -> None:
    for n in range(12):
        for folder, name in (("a", f"{n:02}_layers.{n}.out"), ("b", f"fwd/layers.{n}/output_0")):
            path = tmp_path / folder / f"{name}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, ONES * n)
    ours = open_run(tmp_path / "a", template="{_}_{module}.{slot}")
    theirs = open_run(tmp_path / "b", template="{pass}/{module}/{slot}_{argument}")
    matching = match(ours, theirs)
    assert len(matching.pairs) == 12
    assert {how.method for _, _, how in matching.pairs} == {"exact"}


def test_formats_with_a_grammar_of_their_own_keep_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "rank_0.hf5", "w") as file:
        file["step_0_fc_forward_output_0"] = ONES
    run = open_run(tmp_path, template="{module}.{slot}")
    assert list(run.tensors) == ["step0/rank0/fc_forward_output_0"]


def test_every_template_of_the_guide_is_one() -> None:
    text = (Path(__file__).parent.parent / "docs" / "adding-a-loader.md").read_text()
    table = text.partition("| written by | template |")[2].partition("\n\n")[0]
    rows = [line.split("|")[2].strip(" `") for line in table.splitlines() if "`" in line]
    assert len(rows) == 3
    for row in rows:
        assert parsed(row).text == row


def test_the_shell_takes_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "fc.out.npy", ONES)
    assert cli.main(["inspect", str(tmp_path), "--template", "{module}.{slot}"]) == 0
    assert "fc/forward_output.0" in capsys.readouterr().out
    assert cli.main(["inspect", str(tmp_path), "--template", "{modul}"]) == 2
    assert "Fields:" in capsys.readouterr().err
    assert cli.main(["compare", *[str(tmp_path)] * 2, "--template", "{module}.{slot}"]) == 0
