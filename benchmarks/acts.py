"""The clicks that the page benchmark times: where each starts, what is clicked, what is drawn then.

A click is repeated from the same place; what is drawn is a selector of the page it leads to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.live_server import Visit

PLOT = ".js-plotly-plot .main-svg"
TABLE = ".px-table tbody tr"

# Resolves with the milliseconds from the next click to the second frame after the script has run
# to its end and everything that was asked for is there and fresh.
_STOPWATCH = """
(wanted) => new Promise((resolve) => {
  const app = () => document.querySelector("[data-testid=stApp]");
  let started = 0, ran = false;
  const here = () => {
    const state = app()?.getAttribute("data-test-script-state");
    if (started && state && state !== "notRunning") ran = true;
    const fresh = !document.querySelector("[data-stale=true]");
    const found = wanted.every((selector) => document.querySelector(selector));
    if (started && ran && state === "notRunning" && found && fresh) {
      const done = () => resolve(performance.now() - started);
      requestAnimationFrame(() => requestAnimationFrame(done));
      return;
    }
    requestAnimationFrame(here);
  };
  new MutationObserver(() => { if (started) ran = true; }).observe(
    app(), { attributes: true, attributeFilter: ["data-test-script-state"] });
  const start = () => { started ||= performance.now(); };
  document.addEventListener("pointerdown", start, { capture: true, once: true });
  here();
})
"""

_WAITED = "Promise.race([window.__took, new Promise((give) => setTimeout(() => give(-1), 60000))])"


@dataclass(frozen=True, slots=True)
class Act:
    """A click: `start` is an address without the comparison, `click` a selector.

    `cell` asks for the middle of the largest heat map instead. `drawn` must all be there at the
    end, in this visit and in one that follows the link afterwards.
    """

    name: str
    start: str
    click: str
    drawn: Sequence[str]
    cell: bool = False


def _nav(page: str) -> str:
    return f'a[data-testid="stTopNavLink"][href*="/{page}"]'


ACTS: Sequence[Act] = (
    Act("Runs to Overview", "", '.px-table a.px-go[href*="overview"]', [PLOT, ".px-next li"]),
    Act("Overview, error added", "overview", "text=Added here", [PLOT, ".px-next li"]),
    Act("Overview, backward", "overview", ".st-key-pick-dir >> text=Backward",
        [PLOT, ".px-next li"]),
    Act("Overview to Layers", "overview", _nav("layers"), [PLOT, TABLE]),
    Act("Layers, next page", "layers", "text=next ›", [PLOT, TABLE]),
    Act("Layers, sorted", "layers", ".px-table thead a >> nth=5", [PLOT, TABLE]),
    Act("Layers, by metric", "layers", "cols=metric", [PLOT, TABLE]),
    Act("Layers, by rank", "layers", "cols=rank", [PLOT, TABLE]),
    Act("Layers, up to a module", "layers?at=model.layers.47.self_attn", ".px-crumb a >> nth=3",
        [PLOT, TABLE]),
    Act("Layers, a row", "layers", ".px-table tbody a >> nth=0", ["canvas"]),
    Act("Tensor to Findings", "tensor", _nav("findings"), ["h1"]),
    Act("Tensor to Drift", "tensor", _nav("drift"), [PLOT]),
    Act("Tensor to Formats", "tensor", _nav("formats"), [PLOT]),
    Act("Tensor to Many runs", "tensor", _nav("many"), ["h1"]),
    Act("Tensor to Matching", "tensor", _nav("matching"), ["h1"]),
    Act("Tensor to Report", "tensor", _nav("report"), ["h1"]),
    Act("Report to Runs", "report", _nav(""), [".px-slot"]),
)  # fmt: skip


def warm(act: Act, compared: str, visit: Visit, repeats: int) -> list[float]:
    """Milliseconds of each click, the first one, which nobody waited for yet, left out."""
    times = [_once(act, compared, visit) for _ in range(repeats + 1)]
    return times[1:]


def _once(act: Act, compared: str, visit: Visit) -> float:
    page = visit.page
    page.goto(address(act.start, compared))
    visit.settle()
    page.wait_for_timeout(700)
    target = _target(act, visit)
    page.evaluate(f"() => {{ window.__took = ({_STOPWATCH})({list(act.drawn)!r}) }}")
    target.click()
    took = float(page.evaluate(_WAITED))
    assert took >= 0, f"{act.name}: nothing was drawn after the click"
    return took


def _target(act: Act, visit: Visit):  # type: ignore[no-untyped-def]
    name, equals, value = act.click.partition("=")
    if not equals or name not in ("cols", "rows"):
        return visit.page.locator(act.click).first
    visit.page.locator(
        f".st-key-pick-{name} [role=button], .st-key-pick-{name} button"
    ).first.click()
    return visit.page.get_by_role("option", name=value).first


def address(start: str, compared: str) -> str:
    """The address of a page with the comparison in it."""
    return f"/{start}{'&' if '?' in start else '?'}c={compared}"


def cold(act: Act, link: str, visit: Visit) -> float:
    """Milliseconds from the navigation to the drawn page, in a browser without a cache."""
    visit.page.goto(link, wait_until="commit")
    return float(visit.page.evaluate(
        """(wanted) => new Promise((resolve) => {
          const here = () => {
            const app = document.querySelector("[data-testid=stApp]");
            const done = app?.getAttribute("data-test-script-state") === "notRunning";
            if (done && wanted.every((s) => document.querySelector(s)))
              requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
            else requestAnimationFrame(here);
          };
          here();
        })""",
        list(act.drawn),
    ))  # fmt: skip
