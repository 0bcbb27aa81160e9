"""Upload component and security headers in a real browser, on a page of their own."""

import base64
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from live_server import ROOT, Server
from playwright.sync_api import Browser, FileChooser, Locator, Page, expect

expect.set_options(timeout=90_000)  # of a busy machine; nothing here waits for time to pass
pytestmark = pytest.mark.browser

PROBE = """
import streamlit as st
from streamlit import runtime

if __name__ == "__main__" and runtime.exists():
    import pandas as pd
    import plotly.graph_objects as go
    from ui import upload

    columns = st.columns(2)
    for column, slot in zip(columns, ("reference", "candidate")):
        with column:
            done = upload.folder_upload(f"{slot} dump", slot=slot, hint="Drop a dump folder here")
            if done:
                st.session_state.setdefault(slot, []).append(done)
            st.text(f"{slot} got {st.session_state.get(slot)}")
    if st.button("again"):
        st.text("ran again")
    st.plotly_chart(go.Figure(go.Bar(y=[1, 2, 3])))
    st.dataframe(pd.DataFrame({"a": [1.5]}))
elif __name__ != "__mp_main__":
    from api import server

    app = st.App(__file__, **server.parts(__file__))
"""


def received(server: Server, name: str) -> dict[str, bytes]:
    (folder,) = (server.workspace / "uploads").glob(f"*/files/{name}")
    return tree(folder)


def tree(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.py").write_text(PROBE)
    with Server(folder, folder / "probe.py") as started:
        yield started


@pytest.fixture
def page(server: Server, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    page = context.new_page()
    page.errors = []
    page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(server.url)
    expect(slot(page, "candidate")).to_be_visible()
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    yield page
    context.close()


def slot(page: Page, name: str) -> Locator:
    return page.locator(f".st-key-upload-{name} section")


def choose(page: Page, name: str, folder: Path) -> None:
    page.locator(f".st-key-upload-{name} input[type=file]").set_input_files(folder)


def dump(folder: Path, *, files: int = 3, nbytes: int = 5_000) -> Path:
    for n in range(files):
        path = folder / f"step{n % 2}" / f"rank {n} ä.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(nbytes))
    (folder / "empty").touch()
    return folder


def test_the_page_renders_under_the_policy_without_a_console_error(page: Page) -> None:
    expect(page.locator(".js-plotly-plot .bars").first).to_be_visible(timeout=60_000)
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    assert page.errors == []


def test_the_policy_stops_scripts_that_are_not_ours(page: Page) -> None:
    page.evaluate(
        """() => {
          const [inline, foreign] = ["script", "script"].map((e) => document.createElement(e));
          inline.textContent = "window.ranInline = true";
          foreign.src = "data:text/javascript,window.ranForeign = true";
          document.body.append(inline, foreign);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("() => [window.ranInline, window.ranForeign]") == [None, None]
    assert len(page.errors) == 2


def test_two_folders_chosen_in_the_picker_arrive_whole(
    page: Page, server: Server, tmp_path: Path
) -> None:
    reference = dump(tmp_path / "gpu_picked", files=400, nbytes=300)
    candidate = dump(tmp_path / "xpu_picked", nbytes=12_000_000)
    choose(page, "reference", reference)
    choose(page, "candidate", candidate)
    expect(page.get_by_text("'name': 'gpu_picked'")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("'name': 'xpu_picked'")).to_be_visible(timeout=60_000)
    assert received(server, "gpu_picked") == tree(reference)
    assert received(server, "xpu_picked") == tree(candidate)
    assert page.errors == []


def drop(page: Page, name: str, paths: list[Path]) -> None:
    """What the browser itself does when files are dragged in from the desktop."""
    box = slot(page, name).bounding_box()
    at = {"x": box["x"] + 30, "y": box["y"] + 30}
    data = {"items": [], "files": list(map(str, paths)), "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **at, "data": data})


def test_a_folder_dragged_onto_the_zone_arrives_whole(
    page: Page, server: Server, tmp_path: Path
) -> None:
    folder = dump(tmp_path / "dragged", files=250, nbytes=100)  # more than one readEntries gives
    drop(page, "reference", [folder])
    expect(page.get_by_text("'name': 'dragged'")).to_be_visible(timeout=60_000)
    assert received(server, "dragged") == tree(folder)


def test_a_single_file_dragged_onto_the_zone_arrives(page: Page, tmp_path: Path) -> None:
    (tmp_path / "alone.h5").write_bytes(b"123")
    drop(page, "candidate", [tmp_path / "alone.h5"])
    expect(page.get_by_text("'name': 'alone'")).to_be_visible(timeout=60_000)


def test_the_page_stays_quick_while_it_uploads(page: Page, tmp_path: Path) -> None:
    page.evaluate(
        """() => {
          window.lags = [];
          let last = performance.now();
          setInterval(() => {
            lags.push(performance.now() - last - 20);
            last = performance.now();
          }, 20);
        }"""
    )
    choose(page, "reference", dump(tmp_path / "quick", nbytes=60_000_000))
    expect(page.get_by_text("'name': 'quick'")).to_be_visible()
    lags = sorted(page.evaluate("() => window.lags"))
    assert lags[len(lags) // 2] < 200  # ms; bodies that pass through the page's thread: 1,800


def allow(page: Page, requests: int) -> None:
    """Let an upload send so many requests more; what comes after waits."""
    page.evaluate(
        """(requests) => {
          window.allowed = requests;
          if (window.isGated) return;
          window.isGated = true;
          const send = XMLHttpRequest.prototype.send;
          XMLHttpRequest.prototype.send = function (body) {
            const attempt = () => {
              if (this.readyState !== 1) return;  // aborted
              if (window.allowed-- > 0) send.call(this, body); else setTimeout(attempt, 50);
            };
            attempt();
          };
        }""",
        requests,
    )


def test_an_upload_goes_on_over_reruns_and_a_killed_server(
    page: Page, server: Server, tmp_path: Path
) -> None:
    folder = dump(tmp_path / "long", files=5, nbytes=20_000_000)
    zone = slot(page, "reference")
    allow(page, 3)
    choose(page, "reference", folder)
    expect(zone).to_contain_text("6 files, 33.6 MB of 100 MB")
    expect(zone).to_contain_text("33 %")
    expect(zone).to_contain_text("You may leave this page")
    page.get_by_role("button", name="again").click()
    expect(page.get_by_text("ran again")).to_be_visible(timeout=30_000)
    expect(zone).to_have_attribute("data-state", "busy")
    server.kill()
    try:
        allow(page, 10**6)
        expect(zone).to_contain_text("waiting for the server")
    finally:
        server.start()
    expect(page.get_by_text("'name': 'long'")).to_be_visible(timeout=90_000)
    assert received(server, "long") == tree(folder)


def test_a_cancelled_upload_leaves_nothing_and_the_zone_is_free_again(
    page: Page, server: Server, tmp_path: Path
) -> None:
    before = set((server.workspace / "uploads").iterdir())
    allow(page, 2)
    choose(page, "candidate", dump(tmp_path / "unwanted", nbytes=25_000_000))
    expect(slot(page, "candidate")).to_contain_text("16.8 MB of 75.0 MB")
    slot(page, "candidate").get_by_role("button", name="Cancel").click()
    expect(slot(page, "candidate").get_by_role("button", name="Choose folder…")).to_be_visible()
    end = time.monotonic() + 30
    while set((server.workspace / "uploads").iterdir()) != before:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_after_a_reload_the_same_folder_goes_on_where_it_stopped(
    page: Page, tmp_path: Path
) -> None:
    folder = dump(tmp_path / "reloaded", nbytes=25_000_000)
    allow(page, 2)
    choose(page, "reference", folder)
    expect(slot(page, "reference")).to_contain_text("16.8 MB of 75.0 MB")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(slot(page, "reference")).to_contain_text("upload of reloaded was interrupted")
    allow(page, 1)
    choose(page, "reference", folder)
    expect(slot(page, "reference")).to_contain_text("16.8 MB of 75.0 MB")
    allow(page, 10**6)
    expect(page.get_by_text("'name': 'reloaded'")).to_be_visible(timeout=60_000)


def test_the_zone_is_reached_and_read_without_a_mouse(page: Page) -> None:
    opened: list[FileChooser] = []
    page.on(
        "filechooser", lambda chooser: opened.append(chooser)
    )  # early: Playwright needs a moment to catch choosers
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(
            """() => { let e = document.activeElement;
            while (e?.shadowRoot) e = e.shadowRoot.activeElement; return e?.textContent; }"""
        ).startswith("Choose folder"):
            break
    else:
        pytest.fail("the button cannot be reached with the Tab key")
    page.keyboard.press("Enter")
    end = time.monotonic() + 30
    while not opened:
        assert time.monotonic() < end, "no file chooser was opened"
        page.wait_for_timeout(50)
    assert opened[0].is_multiple()
    expect(slot(page, "reference")).to_have_attribute("aria-label", "reference dump")
    expect(slot(page, "reference").locator("[aria-live=polite]")).to_have_count(1)


HASHES = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const digest = window.hasher();
  const answer = await digest(new Blob([bytes]));
  digest.close();
  return answer;
}"""


def test_the_browsers_digest_is_blake3(page: Page) -> None:
    source = (ROOT / "ui" / "components" / "blake3.js").read_text()
    page.evaluate(f"async () => {{ {source}; window.hasher = hasher; }}")
    for nbytes in (0, 1, 64, 65, 1023, 1024, 1025, 2048, 3073, 65_536, 300_001):
        data = bytes((k * 7 + 3) % 251 for k in range(nbytes))
        told = page.evaluate(HASHES, base64.b64encode(data).decode())
        assert told == blake3(data).hexdigest(), nbytes
