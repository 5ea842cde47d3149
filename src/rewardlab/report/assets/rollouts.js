// -- rollouts: the list and the selected one --------------------------------------------------------------------------
const ROW = 66;
const AROUND = 6;
const browser = { found: [], at: 0, mode: "one" };
const parts = {};

function verdictOf(r) {
  if (r.truth === null) return ["", ""];
  return r.truth >= 1 ? ["right", "✓ right"] : r.truth <= 0 ? ["wrong", "✗ wrong"] : ["", `truth ${number(r.truth)}`];
}

const whereOf = (r) => {
  const g = groupOf(r);
  return `step ${g.step} · problem ${(g.group ?? 0) + 1} · ${(r.row ?? 0) + 1} of ${g.size ?? "?"}`;
};

function rowNode(r, i) {
  const [kind, text] = verdictOf(r);
  const top = el("div", "marks", null, el("span", "total", r.reward === null ? "–" : number(r.reward)), text ? el("span", kind, text) : "");
  if (several) top.append(key(groupOf(r).run));
  top.append(el("span", "stop", `${whereOf(r)} · ${written(r)} tok`));
  const node = el("div", i === browser.at ? "row chosen" : "row", null, top, el("div", "peek", snippet(r)));
  node.setAttribute("role", "option");
  node.setAttribute("aria-selected", String(i === browser.at));
  node.id = `rollout-${i}`;
  node.style.top = `${i * ROW}px`;
  node.onclick = () => choose(i);
  return node;
}

// Only the visible rows are in the document.
function drawList() {
  const { list, inner } = parts;
  const from = Math.max(0, Math.floor(list.scrollTop / ROW) - AROUND);
  const to = Math.min(browser.found.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + AROUND);
  inner.replaceChildren(...browser.found.slice(from, to).map((r, i) => rowNode(r, from + i)));
  list.setAttribute("aria-activedescendant", `rollout-${browser.at}`);
}

// The selected rollout stays selected if the filter keeps it, unless `first` asks for the first one.
function applyFilter(first = false) {
  const before = first ? null : browser.found[browser.at];
  browser.found = matching();
  browser.at = Math.max(0, browser.found.indexOf(before));
  parts.inner.style.height = `${browser.found.length * ROW}px`;
  const total = store.rollouts.length;
  parts.count.textContent = browser.found.length === total ? `${total.toLocaleString("en")} rollouts` : `${browser.found.length.toLocaleString("en")} of ${total.toLocaleString("en")} rollouts`;
  parts.list.scrollTop = browser.at ? browser.at * ROW - parts.list.clientHeight / 2 : 0;
  drawList();
  if (browser.found[browser.at] !== before || !before) showDetail();
}

function choose(i) {
  if (i < 0 || i >= browser.found.length) return;
  browser.at = i;
  const { list } = parts, top = i * ROW;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  drawList();
  showDetail();
  if (parts.root.clientWidth < 760) parts.detail.scrollIntoView({ block: "start" });
}

// -- the selected rollout ---------------------------------------------------------------------------------------------
function fact(name, value, kind) {
  return el("div", "", null, el("dt", "", name), el("dd", kind || "", value));
}

function termsTable(r) {
  const terms = Object.entries(r.terms || {});
  const steps = r.step_rewards || {}, weights = r.weights || {};
  const body = el("tbody");
  const line = (kind, ...cells) => body.append(el("tr", kind, null, ...cells.map((c, i) => el(i ? "td" : "th", "", c))));
  for (const [name, value] of terms) {
    const own = Array.isArray(steps[name]) ? steps[name].filter((s) => typeof s[1] === "number") : [];
    const sum = own.reduce((a, s) => a + s[1], 0) + (typeof value === "number" ? value : 0);
    const shown = value === null && own.length ? `${number(sum)} in ${own.length} steps` : typeof value === "number" ? number(value) : value === null ? "–" : JSON.stringify(value);
    const weight = weights[name];
    line("", name, shown, weight === undefined || weight === 1 ? "" : `× ${number(weight)}`);
  }
  line("sum", "reward", r.reward === null ? "no verdict" : number(r.reward), "");
  if (r.truth !== null) line("", "truth", verdictOf(r)[1], "");
  return el("table", "terms", null, body);
}

function mean(r, name) {
  let sum = 0, n = 0;
  for (let k = store.start[r.id]; k < store.start[r.id + 1]; k++) {
    const x = store.mask[k] ? numberAt(name, r, k) : null;
    if (x !== null) { sum += x; n++; }
  }
  return n ? sum / n : null;
}

function beside(r) {
  const facts = el("dl", "facts");
  const g = groupOf(r);
  const add = (name, value, kind) => value !== null && value !== undefined && value !== "" && facts.append(fact(name, value, kind));
  add("extracted answer", r.extracted);
  add("gold answer", g.answer);
  add("why", r.why);
  add("ended", r.stop);
  add("tokens", `${written(r)} written, ${lengthOf(r) - written(r)} read`);
  for (const [name, text] of [["logprob", "mean log-prob"], ["entropy", "mean entropy"], ["ratio", "mean log-ratio"]]) if (known(name)) add(text, number(mean(r, name)));
  if (r.path?.length > 1) add("branch", r.path.map((x) => x + 1).join(" › "));
  return el("aside", "", null, termsTable(r), facts);
}

function question(r) {
  const g = groupOf(r), box = el("div", "problem", null, el("div", "question", (g.question || "").trim() || "(no question recorded)"));
  if (g.answer) box.append(el("div", "gold", "gold answer: ", el("b", "", g.answer)));
  return box;
}

function foldAll() {
  const all = [...parts.detail.querySelectorAll("details.turn")], open = all.some((d) => d.open);
  all.forEach((d) => (d.open = !open));
}

function oneView(r) {
  return el("div", "one", null, transcript(r), beside(r));
}

// Rollouts of the same problem at the same step, those of other runs too.
function companions(r) {
  const g = groupOf(r);
  const alike = store.groups.flatMap((other, i) => (i === r.group || (other.step === g.step && other.question === g.question && other.run !== g.run) ? [i] : []));
  return alike.flatMap((i) => store.members[i]);
}

function groupView(r) {
  const cards = companions(r).map((id) => {
    const other = store.rollouts[id], [kind, text] = verdictOf(other);
    const head = el("div", "marks", null, el("span", "total", other.reward === null ? "–" : number(other.reward)), el("span", kind, text), several ? el("span", "", null, key(groupOf(other).run), data.runs[groupOf(other).run].name) : "", el("span", "stop", `${(other.row ?? 0) + 1} · ${written(other)} tok · ${other.stop || ""}`));
    const open = button("", "cardhead", () => { go(other); setMode("one"); }, "open this rollout");
    open.append(head);
    const card = el("article", other === r ? "card chosen" : "card", null, open, other.why ? el("div", "why", other.why) : "", replyText(other));
    return card;
  });
  const paid = companions(r).map((id) => store.rollouts[id].reward).filter((x) => x !== null);
  const note = paid.length ? `${cards.length} rollouts of this problem, mean reward ${number(paid.reduce((a, b) => a + b, 0) / paid.length)}` : `${cards.length} rollouts of this problem`;
  return el("div", "", null, el("p", "note", note), el("div", "beside", null, ...cards));
}

function go(r) {
  let i = browser.found.indexOf(r);
  if (i < 0) {
    filter = { ...noFilter(), sort: filter.sort };
    parts.filters.rebuild();
    browser.found = matching();
    parts.inner.style.height = `${browser.found.length * ROW}px`;
    i = browser.found.indexOf(r);
  }
  choose(i);
}

function setMode(mode) {
  browser.mode = mode;
  showDetail();
}

function setShade(name) {
  shade = name;
  const r = browser.found[browser.at];
  parts.detail.querySelector(".scale")?.replaceWith(scaleLegend(groupOf(r)));
  parts.detail.querySelectorAll(".shades button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.value === name)));
  paint(parts.detail);
}

function showDetail() {
  const r = browser.found[browser.at], { detail } = parts;
  tip.hidden = true;
  if (!r) return detail.replaceChildren(el("p", "note", "No rollout matches the filter."));
  const members = store.members[r.group], tree = isTree(members);
  const mode = browser.mode === "tree" && !tree ? "one" : browser.mode;
  const modes = [["one", "rollout", "o"], ["group", `group of ${companions(r).length}`, "g"], ...(tree ? [["tree", "tree", "t"]] : [])];
  const shades = Object.entries(COLOURS).filter(([name]) => known(name)).map(([name, { text, note }]) => [name, text, note]);
  if (!known(shade) && shades.length) shade = shades[0][0];
  const pick = choice("colour of tokens", shades, shade, setShade);
  pick.classList.add("shades");
  const where = el("div", "where", null, several ? el("span", "", null, key(groupOf(r).run), data.runs[groupOf(r).run].name + " · ") : "", whereOf(r));
  const tools = el("div", "tools", null, choice("view", modes, mode, setMode), pick, shades.length ? scaleLegend(groupOf(r)) : "", mode === "one" ? button("fold", "plain", foldAll, "fold or unfold all turns  ( f )") : "");
  const leaf = (other, box) => { box.replaceChildren(el("h3", "", `Rollout ${(other.row ?? 0) + 1}`), el("div", "one", null, transcript(other), beside(other))); paint(box); };
  const body = mode === "group" ? groupView(r) : mode === "tree" ? treeView(groupOf(r), members, leaf) : oneView(r);
  detail.replaceChildren(where, question(r), tools, body);
  detail.scrollTop = 0;
  paint(detail);
}

// -- keys -------------------------------------------------------------------------------------------------------------
const KEYS = {
  j: () => choose(browser.at + 1), ArrowDown: () => choose(browser.at + 1), k: () => choose(browser.at - 1), ArrowUp: () => choose(browser.at - 1),
  PageDown: () => choose(Math.min(browser.found.length - 1, browser.at + 10)), PageUp: () => choose(Math.max(0, browser.at - 10)),
  Home: () => choose(0), End: () => choose(browser.found.length - 1),
  "/": () => parts.filters.querySelector("input").focus(),
  o: () => setMode("one"), g: () => setMode("group"), t: () => setMode("tree"), f: foldAll,
  1: () => shadeBy(0), 2: () => shadeBy(1), 3: () => shadeBy(2), 4: () => shadeBy(3),
};
const shadeBy = (i) => { const name = Object.keys(COLOURS).filter(known)[i]; if (name) setShade(name); };

function onKey(event) {
  if (document.body.dataset.tab !== "rollouts" || !store?.rollouts.length || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target.matches("input")) return event.target.blur();
  if (event.target.matches("input, select, textarea") || (event.target.closest("#tabs") && event.key.startsWith("Arrow"))) return;
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
}

function build() {
  const root = document.getElementById("rollouts");
  if (!store.rollouts.length) return root.replaceChildren(el("p", "note", "No rollouts recorded."));
  parts.root = root;
  parts.inner = el("div", "inner");
  parts.list = el("div", "list", null, parts.inner);
  parts.list.tabIndex = 0;
  parts.list.setAttribute("role", "listbox");
  parts.list.setAttribute("aria-label", "rollouts");
  parts.count = el("div", "note count");
  parts.count.setAttribute("aria-live", "polite");
  parts.detail = el("section", "detail");
  parts.filters = filterBar(applyFilter);
  const keys = el("div", "note keys", "keys: ↑ ↓ select · / search · o g t view · f fold · 1–4 colour");
  root.replaceChildren(parts.filters, el("div", "panes", null, el("div", "left", null, parts.count, parts.list, touch ? "" : keys), parts.detail));
  parts.list.addEventListener("scroll", () => requestAnimationFrame(drawList), { passive: true });
  new ResizeObserver(drawList).observe(parts.list);
  addEventListener("keydown", onKey);
  applyFilter();
}

async function showRollouts() {
  const root = document.getElementById("rollouts");
  if (typeof DecompressionStream === "undefined") return root.append(el("p", "warning", "This browser cannot unpack the data (it lacks DecompressionStream). Browsers from 2023 or later can."));
  store = await unpack();
  document.getElementById("tab-rollouts").textContent = `Rollouts ${store.rollouts.length.toLocaleString("en")}`;
  onTab.rollouts = () => { if (!parts.root) build(); else drawList(); };
  if (document.body.dataset.tab === "rollouts") onTab.rollouts();
}

showTabs();
showCurves();
tabOfAddress();
showRollouts().finally(() => (document.documentElement.dataset.ready = "yes"));
