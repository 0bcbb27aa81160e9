// Folder upload. A folder is one stream of bytes, its files in the server's order; fixed slices of it
// are hashed and PUT. Uploads live on `window`, not in the component: they go on while Streamlit
// reruns the script or shows another page. Names are only ever set as textContent.

const LANES = 3, SPEED_WINDOW_MS = 8000;
const TRIES = 120;  // about 20 minutes without a server
const IGNORED = /(^|\/)(\.DS_Store|Thumbs\.db|desktop\.ini)$/;
const uploads = (window.__pxUploads ??= new Map());

/* ---- reading what was chosen or dropped ---- */

async function filesBelow(entry, prefix, found) {
  if (entry.isFile) {
    found.push([prefix + entry.name, await new Promise((ok, no) => entry.file(ok, no))]);
    return;
  }
  const reader = entry.createReader();
  for (;;) {  // readEntries hands out at most 100 at a time
    const entries = await new Promise((ok, no) => reader.readEntries(ok, no));
    if (!entries.length) return;
    for (const inner of entries) await filesBelow(inner, `${prefix}${entry.name}/`, found);
  }
}

async function dropped(transfer) {
  // The list of items is emptied once this event is over: take all entries before waiting.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const found = [];
  for (const entry of entries) await filesBelow(entry, "", found);
  return found;
}

const picked = (input) => [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);

/* ---- the protocol ---- */

class Refused extends Error {
  constructor(status, text) {
    let said = {};
    try { said = JSON.parse(text); } catch { /* a proxy answered */ }
    super([said.error || fill(words().answered, { status }), said.hint].filter(Boolean).join(" "));
    this.status = status;
    // Worth another try: time-outs, damaged bytes, too many requests, a server that restarts.
    this.isFinal = (status < 500 && ![408, 422, 429].includes(status)) || status === 507;
  }
}

// XMLHttpRequest, since fetch cannot tell how much of a body is sent.
function send(job, method, path, { body = null, headers = {}, onSent = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const stop = () => { request.abort(); reject(new DOMException("cancelled", "AbortError")); };
    if (job.abort.signal.aborted) { stop(); return; }
    job.abort.signal.addEventListener("abort", stop, { once: true });
    request.open(method, `${job.base}api/uploads${path}`);
    request.setRequestHeader("x-px-token", job.token());
    request.setRequestHeader("x-px-language", words().language);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onSent(event.loaded);
    request.onloadend = () => {
      job.abort.signal.removeEventListener("abort", stop);
      if (request.status >= 200 && request.status < 300) resolve(request.responseText && JSON.parse(request.responseText));
      else reject(request.status ? new Refused(request.status, request.responseText) : new Error(words().unreachable));
    };
    request.send(body);
  });
}

async function persistently(job, attempt) {
  for (let n = 0; ; n++) {
    try {
      const answer = await attempt();
      job.say("sending");
      return answer;
    } catch (error) {
      if (error.isFinal || error.name === "AbortError" || n + 1 >= TRIES) throw error;
      job.say("waiting");
      await new Promise((go) => setTimeout(go, Math.min(10000, 250 * 2 ** n)));
    }
  }
}

// A lazy blob over [a, b) of the stream: nothing is read here.
function part(files, starts, a, b) {
  let low = 0, high = starts.length - 1;
  while (low < high) { const mid = (low + high + 1) >> 1; if (starts[mid] <= a) low = mid; else high = mid - 1; }
  const parts = [];
  for (let k = low; k < files.length && starts[k] < b; k++) {
    const from = Math.max(a, starts[k]) - starts[k], to = Math.min(b, starts[k] + files[k].size) - starts[k];
    if (to > from) parts.push(files[k].slice(from, to));
  }
  return new Blob(parts);
}

async function run(job) {
  const manifest = JSON.stringify({ files: job.files.map(([path, file]) => ({ path, size: file.size, mtime: file.lastModified })) });
  const json = { body: manifest, headers: { "content-type": "application/json" } };
  const begun = await persistently(job, () => send(job, "POST", "", json));
  job.id = begun.id;
  job.name = begun.name;
  const byPath = new Map(job.files);
  const files = begun.order.map((path) => byPath.get(path));
  const starts = [];
  files.reduce((at, file) => { starts.push(at); return at + file.size; }, 0);
  const have = new Set(begun.have), todo = [];
  const bounds = (k) => [k * begun.slice, Math.min((k + 1) * begun.slice, begun.total)];
  for (let k = 0; k * begun.slice < begun.total; k++) {
    const [a, b] = bounds(k);
    if (begun.complete || have.has(k)) job.settled += b - a; else todo.push(k);
  }
  job.resumed = job.settled;
  const digest = hasher();
  const lane = async (number) => {
    for (let k; (k = todo.shift()) !== undefined;) {
      const [a, b] = bounds(k);
      // The blob itself is the body: the browser reads it from disk, and no slice passes through the
      // page's own thread, which would stand still meanwhile.
      const body = part(files, starts, a, b);
      const hex = await digest(body).catch((error) => {
        throw Object.assign(new Error(fill(words().gone, { error: error.message })), { isFinal: true });
      });
      await persistently(job, () => send(job, "PUT", `/${job.id}/slices/${k}`, {
        body, headers: { "x-px-blake3": hex },
        onSent: (bytes) => { job.flying[number] = Math.min(bytes, b - a); job.draw(); },
      }));
      job.flying[number] = 0;
      job.settled += b - a;
      job.draw();
    }
  };
  try {
    await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
  } finally { digest.close(); }
  job.say("finishing");
  return persistently(job, () => send(job, "POST", `/${job.id}/complete`));
}

/* ---- an upload as the window keeps it ---- */

function newJob(slot, files, data) {
  const job = {
    slot, files, base: data.base, nonce: `${Date.now()}-${Math.random().toString(36).slice(2)}`,
    name: files[0][0].split("/")[0], total: files.reduce((sum, [, file]) => sum + file.size, 0),
    settled: 0, resumed: 0, flying: [], marks: [], state: "starting", abort: new AbortController(),
    token: () => window.__pxToken, view: null,
    get sent() { return Math.min(this.total, this.settled + this.flying.reduce((a, b) => a + (b || 0), 0)); },
    say(state) { if (this.state !== state) { this.state = state; this.draw(); } },
    draw() {
      const now = performance.now();
      if (!this.marks.length || now - this.marks.at(-1)[0] > 200) this.marks.push([now, this.sent - this.resumed]);
      while (this.marks.length > 2 && now - this.marks[0][0] > SPEED_WINDOW_MS) this.marks.shift();
      this.view?.();
    },
    get speed() {  // bytes a second over the last seconds; 0 while that is a guess
      if (!this.marks.length) return 0;
      const [first, last] = [this.marks[0], this.marks.at(-1)];
      const elapsed = (last[0] - first[0]) / 1000;
      return elapsed >= 1 ? (last[1] - first[1]) / elapsed : 0;
    },
  };
  return job;
}

const isBusy = (job) => job && !["done", "failed"].includes(job.state);
const beforeLeaving = (event) => { if ([...uploads.values()].some(isBusy)) event.preventDefault(); };

const memory = {  // what a reload interrupts, so that the next visit can say so
  key: (slot) => `px-upload-${slot}`,
  get(slot) { try { return JSON.parse(localStorage.getItem(this.key(slot))); } catch { return null; } },
  set(slot, value) { try { localStorage.setItem(this.key(slot), JSON.stringify(value)); } catch { /* private mode */ } },
  clear(slot) { try { localStorage.removeItem(this.key(slot)); } catch { /* private mode */ } },
};

async function begin(slot, chosen, data, mounted) {
  const files = chosen.filter(([path]) => !IGNORED.test(path));
  if (!files.length) return false;
  const job = newJob(slot, files, data);
  uploads.set(slot, job);
  mounted();
  window.addEventListener("beforeunload", beforeLeaving);
  memory.set(slot, { name: job.name });
  const tick = setInterval(() => job.draw(), 1000);
  try {
    job.result = await run(job);
    job.state = "done";
    memory.clear(slot);
  } catch (error) {
    job.state = "failed";
    job.error = error.message;
    if (error.name === "AbortError") { uploads.delete(slot); memory.clear(slot); }
  } finally {
    clearInterval(tick);
    job.draw();
    job.finished?.();
  }
  return true;
}

function cancel(job) {
  const { id, base } = job;
  job.abort.abort();
  if (id) fetch(`${base}api/uploads/${id}`, { method: "DELETE", headers: { "x-px-token": job.token() } }).catch(() => {});
}

/* ---- words ---- */

// Texts come with the component's data, in the reader's language.
const words = () => window.__pxWords;
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let k = 0;
  while (bytes >= 999.5 && k < units.length - 1) { bytes /= 1000; k += 1; }
  return `${k ? bytes.toPrecision(3) : bytes} ${units[k]}`;
}

function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

// Control and direction characters in a name must not rearrange what stands around it.
const shown = (name) => name.replace(/[\p{Cc}\p{Cf}]/gu, "\ufffd").slice(0, 120);

const percent = (job) => (job.total ? Math.floor((100 * job.sent) / job.total) : 0);

function status(job) {
  if (job.state === "waiting") return words().waiting;
  if (job.state === "finishing") return words().writing;
  if (!(job.speed > 0)) return fill(words().part, { percent: percent(job) });
  const time = duration((job.total - job.sent) / job.speed);
  return fill(words().left, { percent: percent(job), time });
}

function contents(job) {
  const number = job.files.length.toLocaleString(words().locale);
  const files = fill(job.files.length === 1 ? words().file : words().files, { number });
  const values = { files, sent: size(job.sent), total: size(job.total), speed: `${size(job.speed)}/s` };
  if (job.state === "done") return fill(words().whole, values);
  return fill(isBusy(job) && job.speed > 0 ? words().moving : words().still, values);
}

/* ---- the component ---- */

export default function ({ data, parentElement, setTriggerValue }) {
  const $ = (name) => parentElement.querySelector(`[data-part="${name}"]`);
  const { slot } = data;
  const [root, input] = [$("root"), $("input")];
  window.__pxToken = data.token;
  window.__pxWords = data.words;
  for (const part of parentElement.querySelectorAll("[data-word]")) {
    const text = data.words[part.dataset.word];
    if (part.tagName === "PROGRESS") part.setAttribute("aria-label", text); else part.textContent = text;
  }
  const known = uploads.get(slot);
  if (known?.state === "done" && known.nonce === data.taken) uploads.delete(slot);

  root.setAttribute("aria-label", data.label);
  $("hint").textContent = data.hint;
  let announced = "";
  const announce = (text) => { if (text !== announced) { announced = text; $("live").textContent = text; } };

  const draw = () => {
    const job = uploads.get(slot);
    root.dataset.state = !job ? "empty" : job.state === "done" || job.state === "failed" ? job.state : "busy";
    const before = job ? null : memory.get(slot);
    $("resume").textContent = before ? fill(data.words.interrupted, { name: shown(String(before.name)) }) : "";
    if (!job) { announce(""); return; }
    $("name").textContent = shown(job.name);
    $("contents").textContent = contents(job);
    $("status").textContent = isBusy(job) ? status(job) : job.state === "done" ? data.words.uploaded : data.words.stopped;
    $("bar").max = job.total || 1;
    $("bar").value = job.state === "done" ? job.total || 1 : job.sent;
    $("error").textContent = job.state === "failed" ? fill(data.words.kept, { error: job.error }) : "";
    // Read aloud at each tenth, not at each slice.
    const heard = isBusy(job) ? fill(data.words.heard, { percent: percent(job) - (percent(job) % 10) }) : job.state === "done" ? data.words.uploaded : job.error;
    announce(`${data.label}: ${heard}`);
  };
  const finished = () => {
    const job = uploads.get(slot);
    if (root.isConnected && job?.state === "done" && job.nonce !== data.taken) {
      setTriggerValue("uploaded", { id: job.result.id, name: job.result.name, nonce: job.nonce });
    }
  };
  const mounted = () => { const job = uploads.get(slot); if (job) { job.view = draw; job.finished = finished; } draw(); };
  const take = async (list) => {
    if (isBusy(uploads.get(slot))) return;
    const files = await list;
    if (!(await begin(slot, files, data, mounted))) announce(data.words.none);
  };

  mounted();
  const timer = setTimeout(finished, 50);  // finished while another page was shown; not during mount
  input.onchange = () => { const files = picked(input); input.value = ""; take(files); };
  root.ondragover = (event) => { event.preventDefault(); root.classList.add("over"); };
  root.ondragleave = (event) => { if (!root.contains(event.relatedTarget)) root.classList.remove("over"); };
  root.ondrop = (event) => { event.preventDefault(); root.classList.remove("over"); take(dropped(event.dataTransfer)); };
  for (const name of ["choose", "replace"]) $(name).onclick = () => input.click();
  $("cancel").onclick = () => { const job = uploads.get(slot); if (job) cancel(job); };
  // The upload keeps drawing here until another mount takes over: Streamlit may clean up and not
  // mount again while the server is away.
  return () => clearTimeout(timer);
}
