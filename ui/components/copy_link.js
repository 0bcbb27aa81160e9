// Copies the address of the view. The clipboard API needs https or localhost; elsewhere a selected
// field and the older command do the same.
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.style.cssText = "position:fixed;opacity:0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("copy refused");
}

export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.copy;
  let timer;
  const say = (text) => {
    button.textContent = text;
    clearTimeout(timer);
    timer = setTimeout(() => { button.textContent = data.copy; }, 2000);
  };
  button.onclick = () => copy(location.href).then(() => say(data.copied), () => say(data.failed));
  const onKey = () => button.click();
  addEventListener("px-copy", onKey);
  return () => {
    clearTimeout(timer);
    removeEventListener("px-copy", onKey);
  };
}
