// BLAKE3 (unkeyed, 32 bytes) in a web worker of its own. crypto.subtle has no BLAKE3 and exists only
// on https and localhost, while most servers of this tool stand on plain http inside a company.
// The compression function is written out flat by the code below: seven rounds, no inner loops.

function blake3WorkerSource() {
  const permutation = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
  const columns = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
  const diagonals = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
  const turn = (x, n) => `${x}=(${x}>>>${n})|(${x}<<${32 - n});`;
  const mix = ([a, b, c, d], x, y) =>
    `v${a}=(v${a}+v${b}+m${x})|0;v${d}^=v${a};${turn(`v${d}`, 16)}v${c}=(v${c}+v${d})|0;v${b}^=v${c};${turn(`v${b}`, 12)}` +
    `v${a}=(v${a}+v${b}+m${y})|0;v${d}^=v${a};${turn(`v${d}`, 8)}v${c}=(v${c}+v${d})|0;v${b}^=v${c};${turn(`v${b}`, 7)}`;
  let order = permutation.map((_, k) => k);
  let rounds = "";
  for (let r = 0; r < 7; r++) {
    [...columns, ...diagonals].forEach((quad, k) => { rounds += mix(quad, order[2 * k], order[2 * k + 1]); });
    order = permutation.map((k) => order[k]);
  }
  const list = (n, text) => Array.from({ length: n }, (_, k) => text(k)).join("");
  const iv = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
  return `
const IV = new Int32Array([${iv.map((x) => x | 0).join(",")}]);
const CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8;
// Replaces the chaining value h by the compression of 16 words of w from o on.
function compress(h, w, o, counter, length, flags) {
  ${list(16, (k) => `const m${k}=w[o+${k}];`)}
  ${list(8, (k) => `let v${k}=h[${k}];`)}
  let ${[0, 1, 2, 3].map((k) => `v${k + 8}=${iv[k] | 0}`).join(",")},v12=counter|0,v13=0,v14=length,v15=flags;
  ${rounds}
  ${list(8, (k) => `h[${k}]=v${k}^v${k + 8};`)}
}
// Chaining value of one chunk of at most 1024 bytes that begins at byte a.
function chunkValue(words, bytes, a, b, counter, flags) {
  const h = IV.slice();
  let start = CHUNK_START;
  for (; b - a > 64; a += 64, start = 0) compress(h, words, a >> 2, counter, 64, start);
  const last = new Uint8Array(64);
  last.set(bytes.subarray(a, b));
  compress(h, new Int32Array(last.buffer), 0, counter, b - a, start | CHUNK_END | flags);
  return h;
}
function parentValue(left, right, flags) {
  const both = new Int32Array(16);
  both.set(left); both.set(right, 8);
  const h = IV.slice();
  compress(h, both, 0, 0, 64, PARENT | flags);
  return h;
}
function hash(buffer) {
  const bytes = new Uint8Array(buffer), words = new Int32Array(buffer, 0, buffer.byteLength >> 2);
  const chunks = Math.max(1, Math.ceil(bytes.length / 1024));
  if (chunks === 1) return chunkValue(words, bytes, 0, bytes.length, 0, ROOT);
  const stack = [];
  for (let k = 0; k < chunks - 1; k++) {
    let value = chunkValue(words, bytes, k * 1024, k * 1024 + 1024, k, 0);
    for (let done = k + 1; done % 2 === 0; done /= 2) value = parentValue(stack.pop(), value, 0);
    stack.push(value);
  }
  let value = chunkValue(words, bytes, (chunks - 1) * 1024, bytes.length, chunks - 1, 0);
  while (stack.length) { const left = stack.pop(); value = parentValue(left, value, stack.length ? 0 : ROOT); }
  return value;
}
onmessage = async ({ data: { id, blob } }) => {
  try {
    const buffer = await blob.arrayBuffer();
    const digest = [...new Uint8Array(hash(buffer).buffer)].map((x) => x.toString(16).padStart(2, "0")).join("");
    postMessage({ id, digest });
  } catch (error) { postMessage({ id, error: String(error && error.message || error) }); }
};`;
}

// hasher()(blob) -> its digest in hex.
function hasher() {
  const url = URL.createObjectURL(new Blob([blake3WorkerSource()], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  const waiting = new Map();
  let next = 0;
  worker.onmessage = ({ data }) => {
    const { resolve, reject } = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) reject(new Error(data.error)); else resolve(data.digest);
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message || "hashing failed"));
    waiting.clear();
  };
  const digest = (blob) => new Promise((resolve, reject) => {
    waiting.set(++next, { resolve, reject });
    worker.postMessage({ id: next, blob });
  });
  digest.close = () => worker.terminate();
  return digest;
}
