"""A comparison saved as one file: whole, the same anywhere, checked because it may be forged."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_resuming import write_dump
from test_store_comparisons import bits
from test_store_workspace import described, options

import cli
from analysis.compare import compare
from analysis.views import slice_view
from core.comparison import Comparison
from core.errors import CompareError, LoadError, NotHereError
from loaders import open_run
from store import bundles, comparisons
from store.uploads import Received
from store.workspace import Workspace

pytestmark = pytest.mark.xdist_group("workspace")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    """A saved comparison in which shapes differ and a tensor has no partner, and the original."""
    root = tmp_path_factory.mktemp("saved")
    dumps = write_dump(root / "gpu", 1.0), write_dump(root / "xpu", 1.01)
    np.save(dumps[1] / "t39.npy", np.zeros(3))
    np.save(dumps[0] / "only.npy", np.zeros(3))
    path = root / "a.pxc"
    assert cli.main(["compare", *map(str, dumps), "--save", str(path)]) == cli.FAIL
    return path, compare(open_run(dumps[0]), open_run(dumps[1]))


def test_a_saved_comparison_is_one_file_with_everything_in_it(
    saved: tuple[Path, Comparison], tmp_path: Path
) -> None:
    path, compared = saved
    assert [p.name for p in path.parent.iterdir() if p.is_file()] == ["a.pxc"]
    kept = bundles.take(path, tmp_path, "me")
    assert kept.record.id == compared.id
    assert bits(comparisons.read(tmp_path, compared.id)) == bits(compared)
    assert [p.name for p in tmp_path.iterdir()] == [compared.id]


def test_show_reads_a_saved_comparison_without_the_dumps(
    saved: tuple[Path, Comparison], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "copy.bin"
    elsewhere.write_bytes(saved[0].read_bytes())
    assert cli.main(["show", str(elsewhere)]) == cli.FAIL
    assert f"id {saved[1].id}" in capsys.readouterr().out
    assert cli.main(["show", str(Path(__file__))]) == cli.COULD_NOT_COMPARE
    assert "no saved comparison" in capsys.readouterr().err


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


@pytest.mark.parametrize("place", range(12))
def test_a_damaged_bundle_is_refused_or_read_whole(
    saved: tuple[Path, Comparison], tmp_path: Path, place: int
) -> None:
    data = saved[0].read_bytes()
    damaged = tmp_path / "x.pxc"
    damaged.write_bytes(flipped(data, 60 + place * (len(data) - 100) // 12))
    (tmp_path / "w").mkdir()
    try:
        bundles.take(damaged, tmp_path / "w", "me")
    except LoadError:
        assert list((tmp_path / "w").iterdir()) == []
    else:  # a byte that stands between the members, or in a picture
        assert bits(comparisons.read(tmp_path / "w", saved[1].id)) == bits(saved[1])


def renamed(archive: Path, change: Callable[[str, bytes], tuple[str, bytes]], to: Path) -> Path:
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(to, "w") as target:
        for member in source.infolist():
            target.writestr(*change(member.filename, source.read(member)))
    return to


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda n, d: ("../evil" if n == "meta.json" else n, d), "unknown"),
        (lambda n, d: (n, d.replace(b'"id": "', b'"id": "0')), "id does not follow"),
        (lambda n, d: (n, d.replace(b'"version": 1', b'"version": 9')), "version is 9"),
        (lambda n, d: (n, d.replace(b"gpu", b"GPU") if n == "meta.json" else d), ""),
        (lambda n, d: (n, d.replace(b'"content"', b'"contemt"')), "content"),
    ],
)
def test_a_forged_bundle_says_what_is_wrong(
    saved: tuple[Path, Comparison],
    tmp_path: Path,
    change: Callable[[str, bytes], tuple[str, bytes]],
    why: str,
) -> None:
    forged = renamed(saved[0], change, tmp_path / "x.pxc")
    (tmp_path / "w").mkdir()
    if not why:  # a label is nobody's content
        assert bundles.take(forged, tmp_path / "w", "me").record.label_reference == "GPU"
        return
    with pytest.raises(LoadError, match=why):
        bundles.take(forged, tmp_path / "w", "me")
    assert list(tmp_path.glob("**/*evil*")) == []


def test_an_uploaded_bundle_opens_under_the_same_id_with_its_pictures(
    saved: tuple[Path, Comparison], tmp_path: Path
) -> None:
    path, compared = saved
    folder = tmp_path / "dumps" / "upload"
    folder.mkdir(parents=True)
    (folder / "a.pxc").write_bytes(path.read_bytes())
    with Workspace(tmp_path / "w", options=options(tmp_path)) as workspace:
        upload = Received("u1", "me", "a.pxc", folder, 1, path.stat().st_size)
        run = described(workspace, workspace.add_upload(upload))
        assert (run.status, run.comparison_id) == ("ready", compared.id), run.error
        assert bits(workspace.comparison(compared.id)) == bits(compared)
        assert workspace.recent()[0].id == compared.id
        table = workspace.table(compared.id)
        worst = int(table.sort_values("times_floor", ascending=False)["pair"].iloc[0])
        small = workspace.thumbnail(compared.id, worst)
        assert small is not None
        stats = compared.pairs[worst].stats
        assert stats is not None
        assert abs(small.view.images.error).max() == np.float32(stats.max_abs_error.value)
        with pytest.raises(NotHereError, match="dump of this comparison is not on this server"):
            workspace.ask(compared.id, slice_view, reference_id="t00")
        with pytest.raises(CompareError, match="comparison already, not a dump"):
            workspace.submit(run.id, run.id)


def test_a_bundle_named_by_its_path_is_taken_like_an_upload(
    saved: tuple[Path, Comparison], tmp_path: Path
) -> None:
    place = tmp_path / "dumps" / "b.pxc"
    place.parent.mkdir()
    place.write_bytes(saved[0].read_bytes())
    with Workspace(tmp_path / "w", options=options(tmp_path)) as workspace:
        run = described(workspace, workspace.add_folder(place))
        assert run.comparison_id == saved[1].id
        place.write_bytes(saved[0].read_bytes()[:-500])
        broken = described(workspace, workspace.add_folder(place))
        assert broken.status == "failed"
        assert "no whole comparison" in broken.error
