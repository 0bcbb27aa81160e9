"""What is written about the metrics keeps up with them."""

from pathlib import Path

import pytest

from metrics import METRICS
from metrics.document import DOCUMENT, FAMILIES, document
from metrics.registry import metric

GUIDE = Path(__file__).parent.parent / "docs" / "adding-a-metric.md"


def test_the_metrics_page_is_what_the_registry_says() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run python -m metrics.document"


def test_every_metric_stands_in_the_page_once() -> None:
    lines = document().splitlines()
    for each in METRICS.values():
        assert sum(line.startswith(f"`{each.name}` ·") for line in lines) == 1
        assert each.family in FAMILIES


def test_a_name_is_registered_only_once() -> None:
    def rmse(stats: object) -> float:
        raise AssertionError(stats)

    with pytest.raises(ValueError, match="rmse"):
        metric("Again", unit="1")(rmse)


def test_the_guide_to_adding_a_metric_works_as_written() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {"__name__": "metrics.error"}
    source = code.replace("@metric(", "@unregistered(")
    names["unregistered"] = lambda *_, **__: lambda function: function
    exec(compile(source, GUIDE.name, "exec"), names)
    from strategies import of

    stats = of([1.0, 2.0], [1.0, 3.0]).stats()
    assert names["symmetric_relative_l2"](stats) == pytest.approx((2 / 15) ** 0.5)  # type: ignore[operator]
