// What the frame does in the browser: opens pages without a reload, keeps the address complete,
// lets navigation links carry the comparison, and focuses the finder on "/".
const FIND = ".st-key-find input";

function inField(event) {
  const el = event.composedPath()[0];
  return el?.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el?.tagName);
}

// One entry in the history and one run of the script: Streamlit follows the address on popstate.
function visit(href, pages) {
  const url = new URL(href, location.href);
  const page = url.pathname.split("/").pop();
  if (url.origin !== location.origin || (page && !pages.includes(page))) return;
  history.pushState({}, "", url);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
}

export default function ({ data }) {
  if (data.query && !location.search) history.replaceState(history.state, "", location.pathname + data.query);
  if (data.go && data.go.id !== window.__pxWent) {
    window.__pxWent = data.go.id;
    visit(data.go.href, data.pages);
  }

  const carry = () => {
    for (const a of document.querySelectorAll("a[data-testid^=stTopNav],a[data-testid=stSidebarNavLink]")) {
      const url = new URL(a.href, location.href);
      const search = data.pages.includes(url.pathname.split("/").pop()) ? data.carried : "";
      if (url.search !== search) { url.search = search; a.href = url.href; }
    }
  };
  const onClick = (event) => {
    const a = event.composedPath().find((el) => el?.matches?.("a.px-go"));
    if (!a || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    visit(a.getAttribute("href"), data.pages);
  };
  const onKey = (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || inField(event)) return;
    const field = document.querySelector(FIND);
    if (field) { event.preventDefault(); field.focus(); field.click(); }
  };
  carry();
  const watcher = new MutationObserver(carry);
  watcher.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  document.documentElement.dataset.pxFrame = "on"; // for whoever waits until keys and links work
  return () => {
    delete document.documentElement.dataset.pxFrame;
    watcher.disconnect();
    document.removeEventListener("click", onClick);
    document.removeEventListener("keydown", onKey);
  };
}
