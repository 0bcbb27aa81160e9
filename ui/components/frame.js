// What the frame does in the browser: opens pages without a reload, keeps the address complete,
// lets navigation links carry the comparison, and listens to keys.
const FIND = ".st-key-find input";
const HELP = "px-keys-list";

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

// The list of keys as a dialog of the browser's own: it takes the focus and gives it back.
function help({ title, close, rows }) {
  document.getElementById(HELP)?.remove();
  const dialog = document.createElement("dialog");
  dialog.id = HELP;
  const head = dialog.appendChild(document.createElement("h2"));
  head.textContent = title;
  const list = dialog.appendChild(document.createElement("dl"));
  for (const [key, text] of rows) {
    const row = list.appendChild(document.createElement("div"));
    const dt = row.appendChild(document.createElement("dt"));
    for (const part of key.split(" ").filter(Boolean)) dt.appendChild(document.createElement("kbd")).textContent = part;
    row.appendChild(document.createElement("dd")).textContent = text;
  }
  const button = dialog.appendChild(document.createElement("button"));
  button.type = "button";
  button.textContent = close;
  button.onclick = () => dialog.close();
  dialog.onclick = (event) => event.target === dialog && dialog.close();
  dialog.onclose = () => dialog.remove();
  document.body.appendChild(dialog);
  dialog.showModal();
}

export default function ({ data }) {
  if (data.query && !location.search) history.replaceState(history.state, "", location.pathname + data.query);
  if (data.go && data.go.id !== window.__pxWent) {
    window.__pxWent = data.go.id;
    visit(data.go.href, data.pages);
  }
  document.documentElement.lang = data.lang;

  const carry = () => {
    for (const a of document.querySelectorAll("a[data-testid^=stTopNav],a[data-testid=stSidebarNavLink]")) {
      const url = new URL(a.href, location.href);
      const search = data.pages.includes(url.pathname.split("/").pop()) ? data.carried : data.kept;
      if (url.search !== search) { url.search = search; a.href = url.href; }
    }
  };
  const onClick = (event) => {
    if (event.composedPath().some((el) => el?.matches?.("button.px-help"))) return help(data.help);
    const a = event.composedPath().find((el) => el?.matches?.("a.px-go"));
    if (!a || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    visit(a.getAttribute("href"), data.pages);
  };

  // j and k walk the findings that the page lists; without a list they open the page that has one.
  const step = (by) => {
    const items = [...document.querySelectorAll("a.px-finding")];
    if (!items.length) return visit(data.keys.f, data.pages);
    const at = items.findIndex((a) => a.hasAttribute("aria-current"));
    const next = items[at + by];
    if (next) { visit(next.getAttribute("href"), data.pages); next.focus?.(); }
  };
  // The tour: arrows and Escape do what the links of its panel do; its part comes into sight.
  const walk = (key) => {
    const panel = document.querySelector(".px-tour");
    const link = panel?.querySelector(`a[data-key=${key}]`);
    link?.click();
    return !!link;
  };
  const point = () => {
    const part = document.querySelector(".px-tour")?.dataset.part;
    const target = part && document.querySelector(`.st-key-${part}`);
    if (!target || target.dataset.pxSeen === location.search) return;
    const at = (target.dataset.pxSeen = location.search);
    const block = innerWidth < 700 ? "start" : "center"; // a narrow screen has the panel below
    const show = () => location.search === at && target.scrollIntoView({ block });
    // The page grows while charts arrive; whoever scrolls meanwhile is left alone.
    const growing = new ResizeObserver(show);
    const stop = () => growing.disconnect();
    growing.observe(document.querySelector(".stMainBlockContainer") ?? target);
    setTimeout(stop, 8000);
    for (const kind of ["wheel", "touchstart", "keydown"]) addEventListener(kind, stop, { once: true, passive: true });
    show();
  };
  let leader = 0;
  const press = {
    "/": () => { const field = document.querySelector(FIND); field?.focus(); field?.click(); return !!field; },
    "?": () => help(data.help),
    j: () => step(1),
    k: () => step(-1),
    ArrowRight: () => walk("ArrowRight") || (data.presenting && (step(1), true)),
    ArrowLeft: () => walk("ArrowLeft") || (data.presenting && (step(-1), true)),
    g: () => { leader = Date.now(); },
    y: () => dispatchEvent(new Event("px-copy")),
    u: () => { const up = [...document.querySelectorAll(".px-crumb a.px-go")].pop(); up?.click(); return !!up; },
    p: () => visit(data.present, data.pages),
    Escape: () => walk("Escape") || (data.presenting && (visit(data.keys.f, data.pages), true)),
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || inField(event) || document.getElementById(HELP)) return;
    if (leader && Date.now() - leader < 1500 && data.keys[event.key]) {
      leader = 0;
      event.preventDefault();
      return visit(data.keys[event.key], data.pages);
    }
    const done = press[event.key]?.();
    if (press[event.key] && done !== false && done !== null) event.preventDefault();
  };
  carry();
  const watcher = new MutationObserver(() => { carry(); point(); });
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
