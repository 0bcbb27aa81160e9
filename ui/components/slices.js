// Reference, candidate and error of one slice as three linked images, with their pickers.
// The server sends one block of bytes: header length (u32), header (JSON, padded to 4), then five
// float32 images (reference, candidate, signed error, relative error, ulps) and one of flags (u8).
// Everything a change of view, cursor or size needs is here; only another slice asks the server.
const SIDES = ["reference", "candidate", "error"];
const REFERENCE_ODD = 1, CANDIDATE_ODD = 2, UNSHARED = 4, ABSENT = 8;
const HEIGHT = 224, TEXT_WIDTH = 46, TEXT_HEIGHT = 16;
const MODES = [["floor"], ["signed"], ["relative"], ["ulp"], ["sign"]];

const el = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made[name] = value;
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};

function unpack(bytes) {
  const whole = (bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes)).slice();
  const length = new DataView(whole.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(whole.subarray(4, 4 + length)));
  const cells = head.height * head.width;
  let at = 4 + length;
  for (const name of ["reference", "candidate", "error", "relative", "ulps"]) {
    head[name] = new Float32Array(whole.buffer, at, cells);
    at += 4 * cells;
  }
  head.flags = whole.subarray(at, at + cells);
  return head;
}

// Numbers as everywhere in the product: true minus, three digits, scientific when far from one.
const minus = (text) => text.replaceAll("-", "−");
const group = (text) => text.replace(/^(-?\d+)/, (n) => n.replace(/\B(?=(\d{3})+$)/g, ","));
function measure(x) {
  if (Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(Number(x.toPrecision(3)));
  if (size < 1e-3 || size >= 1e5) return minus(x.toExponential(2).replace("e+", "e"));
  return minus(group(x.toFixed(Math.max(0, 2 - Math.floor(Math.log10(size))))));
}
function times(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : "∞×";
  if (x > 0 && x < 0.05) return "< 0.1×";
  if (x >= 1e5) return measure(x) + "×";
  return (x && Math.round(x * 10) < 100 ? x.toFixed(1) : group(x.toFixed(0))) + "×";
}
function element(x, digits) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "−inf";
  for (let p = 1; p < digits; p++) {
    const short = Number(x.toPrecision(p));
    if (digits >= 9 ? Math.fround(short) === x : short === x) return minus(String(short));
  }
  return minus(String(Number(x.toPrecision(digits))));
}

function table(colours) {
  const rgb = colours.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
  const out = new Uint8Array(256 * 3);
  for (let k = 0; k < 256; k++) {
    const place = (k / 255) * (rgb.length - 1), low = Math.min(rgb.length - 2, Math.floor(place));
    for (let j = 0; j < 3; j++) out[3 * k + j] = Math.round(rgb[low][j] + (rgb[low + 1][j] - rgb[low][j]) * (place - low));
  }
  return out;
}

// Log colour on both sides of zero, three decades each: what is smaller than a thousandth is zero.
function both(low, high) {
  const largest = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const bend = (v) => Math.sign(v) * Math.max(0, Math.log10(Math.abs(v) / largest) + 3);
  const [from, to] = [bend(low), bend(high)];
  return (v) => (v === 0 ? -from : bend(v) - from) / (to - from || 1);
}

// What one view draws: value of a cell, its place in [0, 1] on the scale, the scale and its ends.
function viewOf(state, side) {
  const s = state.slice;
  const [low, high] = (state.full ? s.extent : s.limits).map((v) => v ?? NaN);
  const log = (x, from) => (x > from ? Math.min(1, Math.log10(x / from) / 3) : 0);
  if (side !== "error") {
    const place = state.log ? both(low, high) : (v) => (v - low) / (high - low || 1);
    return { values: s[side], place: (v) => Math.max(0, Math.min(1, place(v))), colours: s.scales.values,
      ends: Number.isFinite(low) ? [measure(low), measure(high)] : ["–", "–"], bad: side === "reference" ? REFERENCE_ODD : CANDIDATE_ODD,
      text: (v) => element(v, s.digits[side === "reference" ? 0 : 1]) };
  }
  if (state.mode === "sign") {
    return { values: s.error, place: (v) => 0.5 + Math.sign(v) / 2, colours: s.scales.signed, signed: true,
      ends: [s.words.lower, s.words.higher], bad: UNSHARED, text: (v) => (v > 0 ? "+" : v < 0 ? "−" : "0") };
  }
  if (state.mode === "signed") {
    const limit = s.error_limit || 1, log3 = both(-limit, limit);
    const place = state.log ? log3 : (v) => 0.5 + v / limit / 2;
    return { values: s.error, place: (v) => Math.max(0, Math.min(1, place(v))), signed: true, colours: s.scales.signed,
      ends: [measure(-limit), measure(limit)], bad: UNSHARED, text: measure };
  }
  const [values, from, ends, text] = {
    floor: [s.error, s.unit, ["≤ 1×", "1000×"], (v) => times(Math.abs(v) / s.unit)],
    relative: [s.relative, s.relative_from, ["≤ " + measure(s.relative_from), measure(1000 * s.relative_from)], measure],
    ulp: [s.ulps, 1, ["≤ 1", "1000 ulp"], (v) => (Number.isNaN(v) ? "–" : v < 1e6 ? group(v.toFixed(0)) : measure(v))],
  }[state.mode];
  return { values, place: (v) => log(Math.abs(v), from), colours: s.scales.ember, ends, bad: UNSHARED, text };
}

// The image at no more than the screen's pixels: where cells share a pixel the largest error and the
// first value stand for them, and a non-finite one is never lost.
function reduced(s, view, width, height, isError) {
  const w = Math.min(width, s.width), h = Math.min(height, s.height);
  const place = new Float32Array(w * h).fill(-1), flags = new Uint8Array(w * h).fill(ABSENT);
  const far = (p) => (isError && view.bad === UNSHARED && view.signed ? Math.abs(p - 0.5) : p);
  for (let y = 0; y < s.height; y++) {
    const row = Math.floor((y * h) / s.height) * w;
    for (let x = 0; x < s.width; x++) {
      const k = y * s.width + x, at = row + Math.floor((x * w) / s.width);
      if (s.flags[k] & ABSENT) continue;
      flags[at] = (flags[at] & ~ABSENT) | (s.flags[k] & (view.bad | UNSHARED));
      const v = view.values[k];
      if (Number.isNaN(v)) continue;
      const p = view.place(v);
      if (place[at] < 0 || (isError && far(p) > far(place[at]))) place[at] = p;
    }
  }
  return { w, h, place, flags };
}

function paint(state, side) {
  const s = state.slice, { canvas } = state.panes[side], view = viewOf(state, side);
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.round(HEIGHT * ratio);
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  if (!s.elements) return;
  const image = reduced(s, view, width, height, side === "error");
  const lut = table(view.colours), fault = table([s.colours.fault, s.colours.fault]);
  const pixels = new ImageData(image.w, image.h);
  for (let k = 0; k < image.w * image.h; k++) {
    const odd = oddity(image.flags[k], view.bad);
    if (image.flags[k] & ABSENT || (odd !== "unshared" && image.place[k] < 0)) continue; // hatch shows through
    const from = odd === "unshared" ? fault : lut, c = 3 * Math.round(255 * Math.max(0, image.place[k]));
    pixels.data.set([from[c], from[c + 1], from[c + 2], 255], 4 * k);
  }
  const small = new OffscreenCanvas(image.w, image.h);
  small.getContext("2d").putImageData(pixels, 0, 0);
  if (image.flags.some((f) => f & (REFERENCE_ODD | CANDIDATE_ODD))) hatch(pen, width, height, ratio, s.colours);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, width, height);
  absent(pen, image, width, height, s.colours);
  ring(pen, image, view.bad, width, height, ratio, s.colours);
  write(pen, state, view, image, width, height, ratio, lut);
}

// A non-finite value that only one side has, or that differs, is a fault; one that both share is not.
function oddity(flags, bad) {
  if (bad === UNSHARED) return flags & UNSHARED ? "unshared" : "";
  if (!(flags & bad)) return "";
  return flags & UNSHARED ? "unshared" : "shared";
}

// Shared non-finite values, masks most of all, are hatched: no value, and nobody's fault.
function hatch(pen, width, height, ratio, colours) {
  pen.strokeStyle = colours.line_strong;
  pen.lineWidth = ratio;
  pen.beginPath();
  for (let x = -height; x < width; x += 6 * ratio) {
    pen.moveTo(x, height);
    pen.lineTo(x + height, 0);
  }
  pen.stroke();
}

function absent(pen, image, width, height, colours) {
  const cw = width / image.w, ch = height / image.h;
  pen.fillStyle = colours.surface_2;
  for (let k = 0; k < image.flags.length; k++) {
    if (image.flags[k] & ABSENT) pen.fillRect((k % image.w) * cw, Math.floor(k / image.w) * ch, cw + 1, ch + 1);
  }
}

// A 2 px outline in the page's colour around the fault colour, so that a lone cell is seen.
function ring(pen, image, bad, width, height, ratio, colours) {
  const cw = width / image.w, ch = height / image.h, cells = [];
  for (let k = 0; k < image.flags.length && cells.length <= 64; k++) {
    if (!(image.flags[k] & ABSENT) && oddity(image.flags[k], bad) === "unshared") cells.push(k);
  }
  if (cells.length > 64) return; // an area needs no outline
  for (const k of cells) {
    const x = (k % image.w) * cw, y = Math.floor(k / image.w) * ch, least = 3 * ratio;
    const w = Math.max(cw, least), h = Math.max(ch, least);
    pen.fillStyle = colours.fault;
    pen.fillRect(x, y, w, h);
    pen.strokeStyle = colours.bg;
    pen.lineWidth = 2 * ratio;
    pen.strokeRect(x - ratio, y - ratio, w + 2 * ratio, h + 2 * ratio);
  }
}

function write(pen, state, view, image, width, height, ratio, lut) {
  const s = state.slice, cw = width / s.width, ch = height / s.height;
  if (cw < TEXT_WIDTH * ratio || ch < TEXT_HEIGHT * ratio || image.w !== s.width || image.h !== s.height) return;
  pen.font = `${12 * ratio}px "Source Code Pro", Consolas, monospace`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let k = 0; k < s.width * s.height; k++) {
    if (s.flags[k] & ABSENT) continue;
    const c = 3 * Math.round(255 * Math.max(0, image.place[k]));
    const odd = oddity(image.flags[k], view.bad);
    const light = 0.2126 * lut[c] + 0.7152 * lut[c + 1] + 0.0722 * lut[c + 2];
    pen.fillStyle = odd === "shared" ? s.colours.text : light > 128 && !odd ? "#17202A" : "#FFFFFF";
    pen.fillText(odd ? s.words.odd : view.text(view.values[k]), ((k % s.width) + 0.5) * cw, (Math.floor(k / s.width) + 0.5) * ch, cw - 4);
  }
}

// A place is an element's row and column within the slice; the server made cells of `block` elements.
function indexOf(s, [row, column]) {
  const at = s.fixed.map((i) => i ?? 0);
  if (s.down) at[s.down.axis] = s.down.start + row;
  if (s.across) at[s.across.axis] = s.across.start + (s.down ? column : row * s.columns + column);
  return at;
}
// The other way round; null when the slice does not hold the element.
function placeOf(s, index) {
  if (!index || index.some((i, axis) => s.fixed[axis] !== null && s.fixed[axis] !== i)) return null;
  const within = [s.down, s.across].every((w) => !w || (index[w.axis] >= w.start && index[w.axis] < w.stop));
  if (!within) return null;
  const across = s.across ? index[s.across.axis] - s.across.start : 0;
  if (s.down) return [index[s.down.axis] - s.down.start, across];
  return s.elements ? [Math.floor(across / s.columns), across % s.columns] : null;
}
const cellOf = (s, [row, column]) => Math.floor(row / s.block[0]) * s.width + Math.floor(column / s.block[1]);

function readouts(state) {
  const s = state.slice, at = state.hover ?? state.cursor;
  for (const side of SIDES) {
    const pane = state.panes[side], view = viewOf(state, side);
    pane.frame.classList.toggle("pointed", Boolean(at));
    pane.low.textContent = view.ends[0];
    pane.high.textContent = view.ends[1];
    pane.bar.style.background = `linear-gradient(90deg,${view.colours.join()})`;
    if (!at) { pane.out.textContent = ""; continue; }
    const x = ((at[1] + 0.5) / s.columns) * 100, y = ((at[0] + 0.5) / s.rows) * 100;
    pane.frame.style.setProperty("--x", `${x}%`);
    pane.frame.style.setProperty("--y", `${y}%`);
    const k = cellOf(s, at), odd = s.flags[k] & view.bad, value = view.values[k];
    const many = s.block[0] * s.block[1] > 1;
    const text = odd ? s.words.odd : Number.isNaN(value) ? "–" : view.text(value);
    const raw = side === "error" && state.mode === "floor" && !odd && !Number.isNaN(value) ? `${measure(value)} = ` : "";
    pane.out.textContent = (many ? `${side === "error" ? s.words.largest : s.words.mean} ` : "") + raw + text;
  }
  state.place.textContent = at ? `[${indexOf(s, at).join(", ")}]` : s.words.none;
}

function placeAt(state, event, canvas) {
  const box = canvas.getBoundingClientRect(), s = state.slice;
  const clip = (v, n) => Math.max(0, Math.min(n - 1, Math.floor(v * n)));
  const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
  const cell = [clip(y, s.height), clip(x, s.width)];
  const at = [Math.min(cell[0] * s.block[0], s.rows - 1), Math.min(cell[1] * s.block[1], s.columns - 1)];
  return s.flags[cell[0] * s.width + cell[1]] & ABSENT ? null : at;
}

function pointer(state, canvas) {
  let from = null, pans = false;
  canvas.onpointerdown = (event) => {
    from = [event.clientX, event.clientY];
    pans = event.shiftKey;
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    state.hover = placeAt(state, event, canvas);
    const dragging = from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 8;
    canvas.parentElement.classList.toggle("dragging", Boolean(dragging && state.slice.down && !pans));
    if (dragging && state.slice.down && !pans) rubber(canvas, from, event);
    readouts(state);
  };
  canvas.onpointerup = (event) => {
    const to = [event.clientX, event.clientY], start = from;
    from = null;
    canvas.parentElement.classList.remove("dragging");
    if (!start) return;
    const box = canvas.getBoundingClientRect();
    if (Math.hypot(to[0] - start[0], to[1] - start[1]) > 8 && state.slice.down) {
      if (pans) pan(state, (start[1] - to[1]) / box.height, (start[0] - to[0]) / box.width);
      else zoom(state, placeAt(state, { clientX: start[0], clientY: start[1] }, canvas), placeAt(state, event, canvas));
    } else pick(state, placeAt(state, event, canvas));
  };
  canvas.onpointerleave = () => { state.hover = null; readouts(state); };
  canvas.ondblclick = () => state.act({ fit: true });
}

function rubber(canvas, from, event) {
  const box = canvas.getBoundingClientRect(), frame = canvas.parentElement;
  const sides = [from[0], event.clientX].sort((a, b) => a - b), ends = [from[1], event.clientY].sort((a, b) => a - b);
  frame.style.setProperty("--l", `${sides[0] - box.left}px`);
  frame.style.setProperty("--t", `${ends[0] - box.top}px`);
  frame.style.setProperty("--w", `${sides[1] - sides[0]}px`);
  frame.style.setProperty("--h", `${ends[1] - ends[0]}px`);
}

function pick(state, at) {
  if (!at) return;
  state.cursor = at;
  readouts(state);
  state.act({ element: indexOf(state.slice, at) });
}

function zoom(state, a, b) {
  const s = state.slice;
  if (!a || !b || !s.down) return;
  const span = (i, w, n, step) => [w.start + Math.min(a[i], b[i]), w.start + Math.min(n, Math.max(a[i], b[i]) + step)];
  state.act({ window: { down: span(0, s.down, s.rows, s.block[0]), across: span(1, s.across, s.columns, s.block[1]) } });
}

function zoomBy(state, factor) {
  const s = state.slice, at = state.cursor ?? [s.rows / 2, s.columns / 2];
  if (!s.down) return;
  const span = (w, centre) => {
    const length = Math.max(2, Math.round((w.stop - w.start) * factor)), size = s.shape[w.axis];
    const start = Math.max(0, Math.min(size - length, w.start + Math.round(centre - length / 2)));
    return [start, Math.min(size, start + length)];
  };
  state.act({ window: { down: span(s.down, at[0]), across: span(s.across, at[1]) } });
}

// All three views move together: the window by a share of its own size.
function pan(state, down, across) {
  const s = state.slice;
  if (!s.down) return;
  const span = (w, by) => {
    const length = w.stop - w.start, start = w.start + Math.round(by * length);
    const kept = Math.max(0, Math.min(s.shape[w.axis] - length, start));
    return [kept, kept + length];
  };
  state.act({ window: { down: span(s.down, down), across: span(s.across, across) } });
}

function step(state, by) {
  const s = state.slice, at = state.cursor ?? [0, 0];
  const next = [at[0] + by[0] * s.block[0], at[1] + by[1] * s.block[1]];
  if (next[0] < 0 || next[1] < 0 || next[0] >= s.rows || next[1] >= s.columns) return;
  state.cursor = next;
  readouts(state);
  clearTimeout(state.later); // the address follows when the cursor rests
  state.later = setTimeout(() => state.act({ element: indexOf(s, next) }), 400);
}

function scrub(state, which, by) {
  const s = state.slice, axes = s.fixed.map((i, axis) => (i === null || s.shape[axis] < 2 ? -1 : axis)).filter((a) => a >= 0);
  const axis = axes[which];
  if (axis === undefined) return;
  const size = s.shape[axis];
  state.act({ axis, index: (s.fixed[axis] + by + size) % size });
}

const KEYS = {
  "[": (s) => scrub(s, 0, -1), "]": (s) => scrub(s, 0, 1), "{": (s) => scrub(s, 1, -1), "}": (s) => scrub(s, 1, 1),
  "w": (s) => s.act({ worst: true }), "+": (s) => zoomBy(s, 0.5), "-": (s) => zoomBy(s, 2), "0": (s) => s.act({ fit: true }),
};
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const quarter = (state, [down, across]) => pan(state, down / 4, across / 4);

function onKey(state, event) {
  const target = event.composedPath()[0];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target?.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target?.tagName)) return;
  const inside = event.composedPath().includes(state.root);
  if (inside && ARROWS[event.key]) { event.preventDefault(); (event.shiftKey ? quarter : step)(state, ARROWS[event.key]); }
  else if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](state); }
}

function axisPicker(state, label, key, allowNone) {
  const s = state.slice, chosen = s[key]?.axis ?? -1;
  const options = s.shape.map((n, axis) => [axis, s.dims[axis]]).filter(([axis]) => s.shape[axis] !== 1 || axis === chosen);
  const box = el("select", { "aria-label": `${label} axis`, onchange: (e) => state.act({ axes: { ...axesOf(s), [key]: Number(e.target.value) } }) });
  if (allowNone) box.append(el("option", { value: -1, selected: chosen < 0 }, "–"));
  for (const [axis, name] of options) box.append(el("option", { value: axis, selected: axis === chosen }, name));
  return el("label", {}, el("span", {}, label), box);
}
const axesOf = (s) => ({ down: s.down?.axis ?? -1, across: s.across?.axis ?? -1 });

function indexPicker(state, axis) {
  const s = state.slice, size = s.shape[axis];
  const go = (index) => state.act({ axis, index });
  const field = size <= 64
    ? el("select", { "aria-label": s.dims[axis], onchange: (e) => go(Number(e.target.value)) },
        ...Array.from({ length: size }, (_, i) => el("option", { value: i, selected: i === s.fixed[axis] }, String(i))))
    : el("input", { type: "number", min: 0, max: size - 1, value: s.fixed[axis], "aria-label": s.dims[axis],
        onchange: (e) => go(Math.max(0, Math.min(size - 1, Math.round(Number(e.target.value) || 0)))) });
  return el("label", {}, el("span", {}, s.dims[axis]), field);
}

function bar(state) {
  const s = state.slice;
  const picked = s.fixed.flatMap((i, axis) => (i !== null && s.shape[axis] > 1 ? [indexPicker(state, axis)] : []));
  const long = s.shape.filter((n) => n !== 1).length;
  const axes = long > 1 ? [axisPicker(state, s.words.down, "down", false), axisPicker(state, s.words.across, "across", false)] : [];
  const modes = MODES.map(([mode]) => [mode, s.words.modes[mode]]).map(([mode, word]) => el("button", {
    type: "button", "aria-pressed": String(mode === state.mode), disabled: mode === "floor" && !s.unit,
    title: mode === "floor" && !s.unit ? s.words.no_floor : s.help[mode],
    onclick: () => { state.mode = mode; render(state); state.act({ mode }); },
  }, word));
  const toggle = (name, on, help, act) => el("button", { type: "button", class: "toggle", "aria-pressed": String(on), title: help, onclick: act }, name);
  const looks = [
    toggle(s.words.log, state.log, s.words.log_help, () => { state.log = !state.log; render(state); state.act({ log: state.log }); }),
    toggle(s.words.full, state.full, s.words.full_help, () => { state.full = !state.full; render(state); state.act({ full: state.full }); }),
  ];
  const scrubs = picked.length ? [el("span", { class: "hint" }, el("kbd", {}, "["), " ", el("kbd", {}, "]"), ` ${s.words.scrub}`)] : [];
  const whole = s.down && (s.down.stop - s.down.start < s.shape[s.down.axis] || s.across.stop - s.across.start < s.shape[s.across.axis]);
  const focused = state.root?.getRootNode().activeElement?.getAttribute("aria-label");
  state.bar.replaceChildren(
    el("span", { class: "chip" }, s.dims.map((d, i) => `${d}${/\d$/.test(d) ? ":" : ""} ${s.shape[i]}`).join(" · ") || "scalar"),
    ...axes, ...picked, ...scrubs, el("span", { class: "grow" }),
    el("span", { class: "seg", role: "group", "aria-label": s.words.colours }, ...looks),
    el("span", { class: "hint" }, s.words.third), el("span", { class: "seg", role: "group", "aria-label": s.words.third }, ...modes),
    ...(whole ? [el("button", { type: "button", class: "one", onclick: () => state.act({ fit: true }) }, `${s.words.whole} `, el("kbd", {}, "0"))] : []),
    el("button", { type: "button", class: "one", disabled: !s.has_worst, onclick: () => state.act({ worst: true }) }, `${s.words.worst} `, el("kbd", {}, "w")),
  );
  if (focused) state.bar.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function ends(state, side) {
  const s = state.slice, pane = state.panes[side];
  const name = (w) => (w ? (/\d$/.test(s.dims[w.axis]) ? `${s.dims[w.axis]}:` : s.dims[w.axis]) : "");
  pane.top.textContent = s.down ? `${name(s.down)} ${s.down.start}` : s.rows > 1 ? `${s.words.row} 0` : "";
  pane.bottom.textContent = s.down ? String(s.down.stop - 1) : s.rows > 1 ? String(s.rows - 1) : "";
  pane.left.textContent = s.down ? `${name(s.across)} ${s.across.start}` : s.across ? `${name(s.across)} ${s.across.start}` : "";
  pane.right.textContent = s.down ? String(s.across.stop - 1) : s.across ? `${s.across.stop - 1}${s.rows > 1 ? ` (${s.words.folded})` : ""}` : "";
}

function render(state) {
  const s = state.slice;
  bar(state);
  for (const side of ["reference", "candidate"]) state.panes[side].title.textContent = s.words[side];
  state.hint.textContent = s.words.hint;
  state.root.setAttribute("aria-label", s.words.group);
  state.panes.error.title.textContent = s.words.titles[state.mode];
  for (const side of SIDES) {
    ends(state, side);
    paint(state, side);
    const view = viewOf(state, side);
    state.panes[side].canvas.setAttribute("aria-label", s.words.alt[side].replace("{low}", view.ends[0]).replace("{high}", view.ends[1]));
  }
  state.note.textContent = s.note;
  state.root.dataset.shown = s.shown; // what is painted now, for whoever waits for it
  state.root.dataset.exact = s.exact;
  readouts(state);
}

function build(state, parent) {
  state.bar = el("div", { class: "bar" });
  state.note = el("p", { class: "note" });
  state.place = el("span", { class: "place", "aria-live": "polite" });
  state.panes = {};
  const views = SIDES.map((side) => {
    const canvas = el("canvas", { role: "img" });
    const pane = { canvas, title: el("h3") };
    for (const name of ["low", "high", "bar", "top", "bottom", "left", "right"]) pane[name] = el("span", { class: name });
    pane.out = el("span", { class: "out", "aria-live": side === "error" ? "polite" : null });
    pane.frame = el("div", { class: "frame" }, canvas, el("i", { class: "h" }), el("i", { class: "v" }), el("i", { class: "o" }), el("i", { class: "box" }));
    state.panes[side] = pane;
    const key = side === "error" ? [] : [el("i", { class: `key ${side}` })];
    pointer(state, canvas);
    return el("section", {},
      el("div", { class: "head" }, ...key, pane.title, el("span", { class: "scale" }, pane.low, pane.bar, pane.high)),
      el("div", { class: "pane" }, el("div", { class: "ends" }, pane.bottom, pane.top), pane.frame),
      el("div", { class: "foot" }, pane.left, pane.out, pane.right));
  });
  state.hint = el("span", { class: "hint" });
  state.root = el("div", { class: "slices", tabindex: "0", role: "group" },
    state.bar, el("div", { class: "views" }, ...views), el("div", { class: "under" }, state.place, state.hint, state.note));
  parent.querySelector(".px-slices").replaceChildren(state.root);
}

const STATES = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let state = STATES.get(parentElement);
  if (!state) {
    state = { mode: "floor", cursor: null, hover: null, log: false, full: false };
    STATES.set(parentElement, state);
    build(state, parentElement);
  }
  state.act = (act) => setTriggerValue("act", act);
  state.slice = unpack(data);
  const follow = () => {
    const told = window.pxCursor ?? {};
    state.mode = told.mode === "floor" && !state.slice.unit ? "signed" : told.mode ?? "signed";
    state.log = Boolean(told.log);
    state.full = Boolean(told.full);
    state.cursor = placeOf(state.slice, told.element);
    state.hover = null;
    render(state);
  };
  follow();
  window.addEventListener("px-cursor", follow);
  const watcher = new ResizeObserver(() => { for (const side of SIDES) paint(state, side); });
  watcher.observe(state.root);
  const key = (event) => onKey(state, event);
  document.addEventListener("keydown", key);
  return () => {
    watcher.disconnect();
    window.removeEventListener("px-cursor", follow);
    document.removeEventListener("keydown", key);
  };
}
