// What the frame does in the browser: in-app links without a reload, the address kept complete,
// navigation links that carry the comparison, and "/" to find a module or tensor.
const FIND = ".st-key-find input";

function inField(event) {
  const el = event.composedPath()[0];
  return el?.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el?.tagName);
}

export default function ({ data, setTriggerValue }) {
  if (data.query && !location.search) history.replaceState(history.state, "", location.pathname + data.query);

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
    setTriggerValue("go", a.getAttribute("href"));
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
  return () => {
    watcher.disconnect();
    document.removeEventListener("click", onClick);
    document.removeEventListener("keydown", onKey);
  };
}
