// -- rollouts: opened, filtered, sorted -------------------------------------------------------------------------------
const ARRAYS = { uint32: Uint32Array, uint8: Uint8Array, int16: Int16Array };
const MISSING = -32768, FULL = 32767;
let store = null;

// data.py documents the layout.
async function unpack() {
  const text = atob(document.getElementById("packed").textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const found = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  for (const [name, kind, n] of found.arrays) {
    found[name] = gathered(new Uint8Array(buffer, at), n, ARRAYS[kind]);
    at += found[name].byteLength;
  }
  found.start = new Uint32Array(found.length.length + 1);
  found.length.forEach((n, i) => (found.start[i + 1] = found.start[i] + n));
  found.members = found.groups.map(() => []);
  found.rollouts.forEach((r, i) => {
    r.id = i;
    r.reward ??= null;
    r.truth ??= null;
    found.members[r.group].push(i);
  });
  return found;
}

// An array of n entries, stored as the first bytes of all entries, then the second bytes.
function gathered(bytes, n, Kind) {
  const size = Kind.BYTES_PER_ELEMENT, out = new Uint8Array(n * size);
  for (let b = 0; b < size; b++) for (let i = 0; i < n; i++) out[i * size + b] = bytes[b * n + i];
  return new Kind(out.buffer);
}

const groupOf = (r) => store.groups[r.group];
const lengthOf = (r) => store.length[r.id] + store.gap[r.id];

// The text of tokens [from, to) of a rollout.
function textOf(r, from = 0, to = store.length[r.id]) {
  if (!store.length[r.id]) return r.reply || "";
  let text = "";
  for (let k = store.start[r.id] + from; k < store.start[r.id] + to; k++) text += store.vocabulary[store.ids[k]];
  return text;
}

// The end of a policy's text, for one line of the list: answers are at the end.
function snippet(r) {
  if (!store.length[r.id]) return r.reply || "";
  const [a, b] = [store.start[r.id], store.start[r.id + 1]];
  let text = "";
  for (let k = b - 1; k >= a && text.length < 130; k--) if (store.mask[k]) text = store.vocabulary[store.ids[k]] + text;
  return text.trim();
}

const written = (r) => (r.written ??= store.length[r.id] ? store.gap[r.id] + store.mask.subarray(store.start[r.id], store.start[r.id + 1]).reduce((a, b) => a + b, 0) : 0);

// A number of token k (index over the whole page): credit, logprob, ratio or entropy; null if there is none.
function numberAt(name, r, k) {
  const raw = store[name] ? store[name][k] : MISSING;
  if (raw === MISSING) return null;
  return name === "credit" ? (raw / FULL) * store.credit_of[r.id] : raw / store.nats;
}

const SORTS = {
  recorded: ["as recorded", (a, b) => a.id - b.id],
  newest: ["newest first", (a, b) => groupOf(b).step - groupOf(a).step || a.id - b.id],
  best: ["best reward", (a, b) => judged(a, b) || b.reward - a.reward || a.id - b.id],
  worst: ["worst reward", (a, b) => judged(a, b) || a.reward - b.reward || a.id - b.id],
  longest: ["longest", (a, b) => written(b) - written(a) || a.id - b.id],
  shortest: ["shortest", (a, b) => written(a) - written(b) || a.id - b.id],
  paid: ["rewarded but wrong", (a, b) => judged(a, b) || (b.reward - (b.truth ?? b.reward)) - (a.reward - (a.truth ?? a.reward)) || a.id - b.id],
};
const judged = (a, b) => (a.reward === null) - (b.reward === null);

const VERDICTS = { right: (r) => r.truth !== null && r.truth >= 1, wrong: (r) => r.truth !== null && r.truth <= 0, open: (r) => r.reward === null };
const noFilter = () => ({ run: "", step: "", group: "", verdict: "", stop: "", low: "", high: "", words: "", sort: "recorded" });
let filter = noFilter();
let texts = null;

// The searchable text of each rollout, in lower case; built at the first search.
function haystack() {
  texts ??= store.rollouts.map((r) => [groupOf(r).question, groupOf(r).answer, r.why, r.extracted, textOf(r)].join("\n").toLowerCase());
  return texts;
}

function matching() {
  const words = filter.words.toLowerCase().trim();
  const hay = words ? haystack() : null;
  const [low, high] = [filter.low, filter.high].map((x) => (x === "" || Number.isNaN(Number(x)) ? null : Number(x)));
  const verdict = VERDICTS[filter.verdict];
  const kept = store.rollouts.filter((r) => {
    const group = groupOf(r);
    return (filter.run === "" || group.run === Number(filter.run)) && (filter.step === "" || group.step === Number(filter.step)) &&
      (filter.group === "" || r.group === Number(filter.group)) && (filter.stop === "" || (r.stop || "") === filter.stop) &&
      (!verdict || verdict(r)) && (low === null || (r.reward !== null && r.reward >= low)) &&
      (high === null || (r.reward !== null && r.reward <= high)) && (!hay || hay[r.id].includes(words));
  });
  return filter.sort === "recorded" ? kept : kept.sort(SORTS[filter.sort][1]);
}

function select(name, options, chosen, pick) {
  const node = el("select");
  node.setAttribute("aria-label", name);
  node.name = name;
  for (const [value, text] of options) {
    const option = el("option", "", text);
    option.value = value;
    node.append(option);
  }
  node.value = chosen;
  node.onchange = () => pick(node.value);
  return node;
}

const distinct = (values) => [...new Set(values)].sort((a, b) => (a > b) - (a < b));
const shorten = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);

function problemOptions() {
  const fit = store.groups.map((g, i) => [g, i]).filter(([g]) => (filter.step === "" || g.step === Number(filter.step)) && (filter.run === "" || g.run === Number(filter.run)));
  if (filter.step === "" && new Set(fit.map(([g]) => g.step)).size > 1 && filter.group === "") return [["", "any problem (choose a step)"]];
  return [["", "any problem"], ...fit.map(([g, i]) => [i, shorten(`${(g.group ?? i) + 1}: ${(g.question || "").trim()}`, 60)])];
}

function filterBar(changed) {
  const bar = el("div", "filters");
  const set = (name) => (value) => { filter[name] = value; if (name === "step" || name === "run") filter.group = ""; if (["step", "run"].includes(name)) build(); changed(name === "sort"); };
  const field = (name, hint, kind) => {
    const node = el("input");
    Object.assign(node, { type: kind, placeholder: hint, value: filter[name], name });
    node.setAttribute("aria-label", hint);
    node.oninput = () => set(name)(node.value);
    return node;
  };
  function build() {
    const steps = distinct(store.groups.map((g) => g.step)), stops = distinct(store.rollouts.map((r) => r.stop || ""));
    const parts = [
      field("words", "search text  ( / )", "search"),
      several ? select("run", [["", "all runs"], ...data.runs.map((r, i) => [i, r.name])], filter.run, set("run")) : "",
      select("step", [["", steps.length > 1 ? `all ${steps.length} steps` : "every step"], ...steps.map((s) => [s, `step ${s}`])], filter.step, set("step")),
      select("group", problemOptions(), filter.group, set("group")),
      el("span", "range", null, field("low", "reward ≥", "number"), field("high", "≤", "number")),
      select("verdict", [["", "right or wrong"], ["right", "right"], ["wrong", "wrong"], ["open", "no verdict"]], filter.verdict, set("verdict")),
      stops.length > 1 ? select("stop", [["", "any ending"], ...stops.map((s) => [s, `ended: ${s || "unknown"}`])], filter.stop, set("stop")) : "",
      select("sort", Object.entries(SORTS).map(([k, [text]]) => [k, text]), filter.sort, set("sort")),
      button("clear", "plain", () => { filter = noFilter(); build(); changed(); }),
    ];
    bar.querySelectorAll("input, select, button, .range").forEach((node) => node.remove());
    bar.replaceChildren(...parts.filter(Boolean));
  }
  bar.rebuild = build;
  build();
  return bar;
}

