"""The upload protocol, as a browser speaks it, over the routes without a browser."""

import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Answer, Client
from blake3 import blake3
from starlette.applications import Starlette

from api import routes
from store import tokens, uploads
from store.options import Options
from store.uploads import Uploads
from store.workspace import Workspace

SMALL = 1 << 10  # slice size in these tests


class Browser:
    """Sends folders the way ui/components/upload.js does."""

    def __init__(self, workspace: Workspace, *, base: str = "") -> None:
        self.client = Client(Starlette(routes=routes(base, served=lambda: workspace)))
        self.prefix = f"/{base}/api/uploads" if base else "/api/uploads"
        self.token = workspace.upload_token("me")

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        named = {"x-px-token": self.token} | {k.replace("_", "-"): v for k, v in headers.items()}
        return self.client.request(method, self.prefix + path, body=body, headers=named)

    def begin(self, files: Mapping[str, bytes]) -> Answer:
        listed = [{"path": p, "size": len(b), "mtime": 1} for p, b in files.items()]
        return self.ask("POST", "", json.dumps({"files": listed}).encode())

    def put(self, upload_id: str, number: int, data: bytes, digest: str | None = None) -> Answer:
        digest = blake3(data).hexdigest() if digest is None else digest
        return self.ask("PUT", f"/{upload_id}/slices/{number}", data, x_px_blake3=digest)

    def send(self, files: Mapping[str, bytes], *, only: set[int] | None = None) -> dict[str, Any]:
        begun = self.begin(files).json()
        stream = b"".join(files[path] for path in begun["order"])
        for n, at in enumerate(range(0, begun["total"], begun["slice"])):
            if n not in begun["have"] and (only is None or n in only):
                answer = self.put(begun["id"], n, stream[at : at + begun["slice"]])
                assert answer.status == 204, answer.body
        return begun

    def complete(self, upload_id: str) -> Answer:
        return self.ask("POST", f"/{upload_id}/complete")


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "SLICE", SMALL)
    monkeypatch.setattr("api.uploads.SLICE", SMALL)
    monkeypatch.setattr("api.uploads._BLOCK", 100)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    # What a run becomes after its upload is another test's matter: no worker is needed here.
    monkeypatch.setattr("store.runs.Runs._describe", lambda *_: None)
    with Workspace(tmp_path / "w", options=Options(max_upload=1 << 20)) as opened:
        yield opened


@pytest.fixture
def browser(workspace: Workspace) -> Browser:
    return Browser(workspace)


FILES = {
    "run/step0/rank0.h5": bytes(range(256)) * 9,
    "run/step0/empty.h5": b"",
    "run/step1/rank0.h5": b"x",
    "run/层 1/ä.h5": b"name" * 300,
    "run/zero": b"",
}


def tree(folder: Path) -> dict[str, bytes]:
    return {
        f"{folder.name}/{path.relative_to(folder)}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_arrives_byte_for_byte_and_becomes_a_run(
    browser: Browser, workspace: Workspace
) -> None:
    begun = browser.send(FILES)
    answer = browser.complete(begun["id"])
    assert answer.json() == {"id": begun["id"], "name": "run", "files": 5, "bytes": 3505}
    run = workspace.run(begun["id"])
    assert (run.label, run.origin) == ("run", "upload")
    assert tree(Path(run.path)) == FILES


def test_three_thousand_small_files_arrive(browser: Browser, workspace: Workspace) -> None:
    files = {f"d/{k % 50}/{k}.bin": bytes([k % 256]) * (k % 40) for k in range(3000)}
    begun = browser.send(files)
    assert browser.complete(begun["id"]).status == 200
    assert tree(Path(workspace.run(begun["id"]).path)) == files


def test_slices_may_come_in_any_order_and_twice(browser: Browser, workspace: Workspace) -> None:
    begun = browser.send(FILES, only={3, 2})
    assert browser.send(FILES, only={1})["have"] == [2, 3]
    browser.send(FILES)
    assert browser.complete(begun["id"]).status == 200
    assert tree(Path(workspace.run(begun["id"]).path)) == FILES


def test_an_upload_goes_on_after_a_restart_with_the_same_token(
    browser: Browser, workspace: Workspace
) -> None:
    begun = browser.send(FILES, only={0, 2})
    workspace.uploads = Uploads(workspace.uploads._folder)  # what a new process knows: the disk
    stream = b"".join(FILES[path] for path in begun["order"])
    assert browser.put(begun["id"], 1, stream[SMALL : 2 * SMALL]).status == 204  # no new begin
    assert browser.begin(FILES).json()["have"] == [0, 1, 2]
    browser.send(FILES)
    browser.complete(begun["id"])
    assert tree(Path(workspace.run(begun["id"]).path)) == FILES


def test_after_a_power_cut_the_journal_is_not_believed(
    browser: Browser, workspace: Workspace
) -> None:
    begun = browser.send(FILES, only={0, 2})
    journal = workspace.uploads._folder / f"{begun['id']}.part" / "journal"
    journal.write_bytes(b"another-boot\n" + journal.read_bytes().partition(b"\n")[2])
    workspace.uploads = Uploads(workspace.uploads._folder)
    assert browser.begin(FILES).json()["have"] == []


def test_a_complete_upload_is_not_sent_again(browser: Browser) -> None:
    begun = browser.send(FILES)
    browser.complete(begun["id"])
    again = browser.begin(FILES).json()
    assert again["complete"]
    assert again["id"] == begun["id"]
    assert browser.complete(begun["id"]).json()["files"] == 5
    assert browser.put(begun["id"], 0, b"late").status == 204  # a late slice changes nothing


def test_an_incomplete_upload_says_what_is_missing(browser: Browser) -> None:
    begun = browser.send(FILES, only={0})
    answer = browser.complete(begun["id"])
    assert (answer.status, answer.json()["missing"]) == (409, [1, 2, 3])


def test_an_upload_of_empty_files_only_completes_without_a_slice(
    browser: Browser, workspace: Workspace
) -> None:
    begun = browser.send({"run/a": b"", "run/b": b""})
    assert browser.complete(begun["id"]).status == 200
    assert tree(Path(workspace.run(begun["id"]).path)) == {"run/a": b"", "run/b": b""}


BAD_PATHS = [
    "",
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a/./b",
    "a//b",
    "a/",
    ".",
    "..",
    "a\\..\\b",
    "a\0b",
    "a\nb",
    "a\x1b[31m",
    "a\x7f",
    "lone\udc80",
    "x" * 256,
    "ä" * 128,
    "/".join("a" * 33),
    "/".join(["y" * 200] * 12),
    7,
    None,
    ["a"],
]


@pytest.mark.parametrize("path", BAD_PATHS, ids=ascii)
def test_an_unsafe_path_is_refused_and_nothing_is_written(
    browser: Browser, workspace: Workspace, path: object
) -> None:
    body = json.dumps({"files": [{"path": path, "size": 1, "mtime": 0}]}).encode()
    answer = browser.ask("POST", "", body)
    assert answer.status == 400
    assert "not allowed" in answer.json()["error"]
    assert not list(workspace.uploads._folder.iterdir())


BAD_MANIFESTS = [
    b"",
    b"nonsense",
    b"[]",
    b"7",
    b'{"files": 7}',
    b'{"files": []}',
    b'{"files": ["a"]}',
    b'{"files": [{"path": "a", "size": -1, "mtime": 0}]}',
    b'{"files": [{"path": "a", "size": 1.5, "mtime": 0}]}',
    b'{"files": [{"path": "a", "size": "1", "mtime": 0}]}',
    b'{"files": [{"path": "a", "size": true, "mtime": 0}]}',
    b'{"files": [{"path": "a", "size": 1, "mtime": 1e400}]}',
    b'{"files": [{"path": "a", "size": 1}, {"path": "a", "size": 2}]}',
    b'{"files": [{"path": "a", "size": 1}, {"path": "a/b", "size": 2}]}',
    b'{"files": [{"path": "a", "size": 1}, {"path": "a.b", "size": 1},'
    b' {"path": "a/b", "size": 2}]}',
]


@pytest.mark.parametrize("body", BAD_MANIFESTS, ids=ascii)
def test_a_malformed_manifest_is_refused(browser: Browser, body: bytes) -> None:
    assert browser.ask("POST", "", body).status == 400


def test_a_hostile_but_harmless_name_is_taken(browser: Browser, workspace: Workspace) -> None:
    files = {"run/<img src=x onerror=alert(1)>.h5": b"1", "run/a:b*?.h5": b"2", "run/-rf": b"3"}
    begun = browser.send(files)
    browser.complete(begun["id"])
    assert tree(Path(workspace.run(begun["id"]).path)) == files


def test_more_bytes_than_allowed_are_refused(browser: Browser) -> None:
    body = json.dumps({"files": [{"path": "a", "size": (1 << 20) + 1, "mtime": 0}]}).encode()
    answer = browser.ask("POST", "", body)
    assert (answer.status, "PX_MAX_UPLOAD" in answer.json()["hint"]) == (413, True)


def test_a_full_disk_is_507_and_leaves_nothing(
    browser: Browser, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=3000))
    assert browser.begin(FILES).status == 507
    assert not list(workspace.uploads._folder.glob("*.part"))


def test_a_disk_that_fills_up_on_the_way_keeps_what_is_there(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = browser.send(FILES, only={0})

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full)
        stream = b"".join(FILES[path] for path in begun["order"])
        assert browser.put(begun["id"], 1, stream[SMALL : 2 * SMALL]).status == 507
    assert browser.begin(FILES).json()["have"] == [0]


@pytest.mark.parametrize("change", [-1, 1, -SMALL])
def test_a_slice_of_wrong_length_is_refused(browser: Browser, change: int) -> None:
    begun = browser.begin(FILES).json()
    assert browser.put(begun["id"], 0, b"x" * (SMALL + change)).status == 400
    assert browser.begin(FILES).json()["have"] == []


def test_a_slice_that_overruns_in_pieces_writes_nothing_beyond_its_end(
    browser: Browser, workspace: Workspace
) -> None:
    begun = browser.send(FILES, only={1})
    part = workspace.uploads._folder / f"{begun['id']}.part" / "files"
    before = tree(part)
    pieces = [b"y" * 300] * 4
    headers = {"x-px-token": browser.token, "x-px-blake3": blake3(b"".join(pieces)).hexdigest()}
    path = f"/api/uploads/{begun['id']}/slices/0"
    assert browser.client.request("PUT", path, body=pieces, headers=headers).status == 400
    stream = b"".join(FILES[p] for p in begun["order"])
    written = b"".join(tree(part).get(f"files/{p}", b"")[: len(FILES[p])] for p in begun["order"])
    assert written[SMALL : 2 * SMALL] == stream[SMALL : 2 * SMALL]
    assert set(tree(part)) >= set(before)


@pytest.mark.parametrize("digest", ["", "0" * 64, "nonsense"])
def test_damaged_bytes_are_sent_again(browser: Browser, workspace: Workspace, digest: str) -> None:
    begun = browser.begin(FILES).json()
    assert browser.put(begun["id"], 0, b"x" * SMALL, digest=digest).status == 422
    browser.send(FILES)
    browser.complete(begun["id"])
    assert tree(Path(workspace.run(begun["id"]).path)) == FILES


@pytest.mark.parametrize("number", [4, 10**30])
def test_a_slice_that_is_not_there_is_refused(browser: Browser, number: int) -> None:
    begun = browser.begin(FILES).json()
    assert browser.put(begun["id"], number, b"x").status == 400


def test_a_token_is_needed_for_everything(browser: Browser, workspace: Workspace) -> None:
    begun = browser.send(FILES, only={0})
    secret = workspace._layout.secret()
    expired = tokens.issue(secret, "me", lifetime_s=-1)
    forged = tokens.issue(b"another key", "me")
    signed = tokens.issue(secret, "me")
    for token in (
        "",
        "x",
        "..",
        expired,
        forged,
        signed[:-1],
        "é.1.2",
        signed.replace(".", ".9", 1),
    ):
        browser.token = token
        for method, path in (
            ("POST", ""),
            ("PUT", f"/{begun['id']}/slices/1"),
            ("POST", f"/{begun['id']}/complete"),
            ("DELETE", f"/{begun['id']}"),
        ):
            assert browser.ask(method, path, b"{}").status == 403, (token, method)


def test_the_upload_of_another_user_is_not_there(browser: Browser, workspace: Workspace) -> None:
    begun = browser.send(FILES, only={0})
    browser.token = workspace.upload_token("somebody else")
    assert browser.put(begun["id"], 1, b"x" * SMALL).status == 404
    assert browser.ask("DELETE", f"/{begun['id']}").status == 404
    assert browser.begin(FILES).json()["id"] != begun["id"]


@pytest.mark.parametrize("name", ["nothing", "..", "%2e%2e", "a.part"])
def test_an_unknown_upload_is_not_there(browser: Browser, name: str) -> None:
    assert browser.complete(name).status == 404


def test_cancelling_removes_every_byte(browser: Browser, workspace: Workspace) -> None:
    begun = browser.send(FILES, only={0, 1})
    assert browser.ask("DELETE", f"/{begun['id']}").status == 204
    assert not list(workspace.uploads._folder.iterdir())
    assert browser.put(begun["id"], 2, b"x" * SMALL).status == 404


def test_a_slice_on_its_way_while_the_upload_is_cancelled_leaves_nothing(
    browser: Browser, workspace: Workspace
) -> None:
    begun = browser.send(FILES, only={0})
    upload = workspace.uploads.find(begun["id"], "me")
    browser.ask("DELETE", f"/{begun['id']}")
    with pytest.raises(FileNotFoundError):
        upload.write(SMALL, b"late")
    assert not list(workspace.uploads._folder.iterdir())


def test_an_upload_nobody_goes_on_with_is_swept_after_a_week(
    browser: Browser, workspace: Workspace
) -> None:
    old = browser.send(FILES, only={0})["id"]
    new = browser.send({"other/a": b"x" * 2000}, only={0})["id"]
    journal = workspace.uploads._folder / f"{old}.part" / "journal"
    week_ago = time.time() - uploads.STALE_S - 1
    os.utime(journal, (week_ago, week_ago))
    workspace.uploads.sweep()
    assert [path.name for path in workspace.uploads._folder.iterdir()] == [f"{new}.part"]


def test_a_symbolic_link_in_the_way_is_not_followed(
    browser: Browser, workspace: Workspace, tmp_path: Path
) -> None:
    begun = browser.begin(FILES).json()
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    first = workspace.uploads._folder / f"{begun['id']}.part" / "files" / "run/step0/rank0.h5"
    first.symlink_to(target)
    stream = b"".join(FILES[path] for path in begun["order"])
    assert browser.put(begun["id"], 0, stream[:SMALL]).status == 507
    assert target.read_bytes() == b"mine"


def test_the_signing_key_is_private_and_stays_over_restarts(
    workspace: Workspace, tmp_path: Path
) -> None:
    token = workspace.upload_token("me")
    key = tmp_path / "w" / "secret"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with Workspace(tmp_path / "w") as restarted:
        assert restarted.token_user(token) == "me"


def test_routes_stand_below_the_base_path(workspace: Workspace) -> None:
    browser = Browser(workspace, base="px/deep")
    begun = browser.send(FILES)
    assert browser.complete(begun["id"]).status == 200
