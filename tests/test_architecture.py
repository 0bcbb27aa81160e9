"""The layers of the code, enforced: each imports only what stands before it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = {
    "language": set(),
    "core": set(),
    "loaders": {"core"},
    "metrics": {"core"},
    "analysis": {"core", "loaders", "metrics"},
    "store": {"core", "loaders", "metrics", "analysis"},
    "charts": {"core", "metrics", "analysis"},
    "report": {"core", "metrics", "analysis", "charts"},
    "api": {"core", "loaders", "metrics", "analysis", "store", "report"},
    "ui": {"core", "loaders", "metrics", "analysis", "store", "charts", "report", "api"},
    "pages": {"core", "metrics", "analysis", "store", "charts", "report", "ui"},
}
FORBIDDEN = {
    "language": {"h5py", "numpy", "pandas", "plotly", "streamlit", "torch"},
    "core": {"h5py", "pandas", "plotly", "streamlit", "torch"},
    "loaders": {"pandas", "plotly", "streamlit", "torch"},
    "metrics": {"h5py", "plotly", "streamlit", "torch"},
    "analysis": {"h5py", "plotly", "streamlit"},
    "store": {"h5py", "plotly", "streamlit"},
    "charts": {"h5py", "streamlit"},
    "report": {"h5py", "streamlit"},
    "api": {"h5py", "plotly"},
    "ui": {"h5py"},
    "pages": {"h5py", "numpy"},
}
# The one package that may: it is imported when a device is asked for, and not before.
ON_DEVICES = ROOT / "metrics" / "torch_engine"
FILES = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))


def imported(path: Path) -> set[str]:
    tree = ast.walk(ast.parse(path.read_text()))
    names: set[str] = set()
    for node in tree:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_the_layers_before_its_own(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0]
    used = imported(path)
    assert used & set(LAYERS) <= LAYERS[layer] | {layer, "language"}
    allowed = {"torch"} if ON_DEVICES in path.parents else set()
    assert not used & (FORBIDDEN[layer] - allowed)


def test_the_recorder_knows_nothing_of_the_product() -> None:
    for path in (ROOT / "recorder").rglob("*.py"):
        assert not imported(path) & set(LAYERS)
