"""The names of a dump: a template tried while it is typed, and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest
from streamlit_fixture import html_of

from store.tasks import Dump, names_of

NAMES = ("step0/rank0/model.mlp.input.0", "step0/rank0/model.mlp.output.0", "readme")


def page(template: str) -> AppTest:
    def script(names: tuple[str, ...], template: str) -> None:
        import fakes

        from ui.cards.names import _wizard

        record = fakes.run_record("r1", provenance={"template": template})
        held = fakes.FakeWorkspace(known_runs={"r1": record}, dump_names=names)
        _wizard(held, "reference", record)  # type: ignore[arg-type]

    return AppTest.from_function(script, args=(NAMES, template), default_timeout=30).run()


def test_a_template_shows_what_fits_and_what_does_not() -> None:
    test = page("step{step}/rank{rank}/{module}.{slot}.{argument}")
    shown = html_of(test)
    assert not test.exception
    assert "2 / 3 names fit." in shown
    assert "forward input 0" in shown
    assert "readme" in shown.split("These do not fit:")[1]


def test_a_text_that_is_no_template_says_what_is_wrong() -> None:
    test = page("{modul}")
    assert not test.exception
    assert "modul" in test.error[0].value


def test_without_a_template_the_names_are_listed() -> None:
    test = page("")
    assert "step0/rank0/model.mlp.input.0" in html_of(test)
    assert test.button[0].label == "Read the dump without one"


def test_names_are_the_dumps_own(tmp_path: Path) -> None:
    np.save(tmp_path / "model.mlp.output.0.npy", np.ones(3, np.float32))
    template = "{module}.{slot}.{argument}"
    dump = Dump("r", str(tmp_path), "r", str(tmp_path / "scratch"), template)
    assert names_of(dump, 10) == ("model.mlp.output.0",)
