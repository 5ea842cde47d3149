// -- rollouts: tokens and turns ---------------------------------------------------------------------------------------
// Quantities that can colour tokens. `both`: two colours, for either sign; the others start at zero.
const COLOURS = {
  credit: { text: "credit", of: (r, k) => numberAt("credit", r, k), both: true, note: "the token's advantage: blue makes the token more likely, orange less likely" },
  ratio: { text: "log-prob ratio", of: (r, k) => numberAt("ratio", r, k), both: true, note: "log-prob after this step's update minus the log-prob when sampled" },
  entropy: { text: "entropy", of: (r, k) => numberAt("entropy", r, k), both: false, note: "of the next-token distribution after the update, in nats" },
  surprise: { text: "surprise", of: (r, k) => { const x = numberAt("logprob", r, k); return x === null ? null : -x; }, both: false, note: "minus the log-prob when sampled, in nats" },
};
const ARRAY_OF = { surprise: "logprob" };
const known = (name) => Boolean(store[ARRAY_OF[name] || name]);
let shade = "credit";

// The number shown in full colour: the largest of the group, so that its rollouts can be compared.
function scaleOf(group, name) {
  const scales = (group.scales ??= {}); // null where nothing was recorded
  if (scales[name] !== undefined) return scales[name];
  let top = null;
  for (const id of store.members[store.groups.indexOf(group)]) {
    const r = store.rollouts[id];
    for (let k = store.start[id]; k < store.start[id + 1]; k++) {
      const x = COLOURS[name].of(r, k);
      if (x !== null) top = Math.max(top, Math.abs(x));
    }
  }
  return (scales[name] = top);
}

function paint(root) {
  root.querySelectorAll("span.own").forEach((node) => {
    const [r, k] = node.at;
    const value = COLOURS[shade].of(r, k), scale = scaleOf(groupOf(r), shade);
    const strength = value && scale ? Math.min(1, Math.abs(value) / scale) : 0;
    const tone = COLOURS[shade].both ? (value > 0 ? "--pos" : "--neg") : "--heat";
    node.style.background = strength > 0.01 ? `rgba(var(${tone}), ${(0.62 * strength).toFixed(3)})` : "";
  });
}

function scaleLegend(group) {
  const { both, note } = COLOURS[shade], top = scaleOf(group, shade);
  const ends = both ? [number(-top), signed(top)] : ["0", number(top)];
  const box = el("div", "scale", null, ...(top ? [el("span", "", ends[0]), el("i", both ? "both" : "heat"), el("span", "", ends[1])] : [top === 0 ? "zero everywhere here" : "not recorded for this group"]));
  box.title = note;
  return box;
}

// Runs of tokens by one author, in indices of the page: {author, from, to, tokens, reward}.
function turnsOf(r) {
  const n = store.length[r.id], gap = store.gap[r.id], a = store.start[r.id];
  const index = (position) => Math.min(n, position <= store.head || !gap ? position : Math.max(store.head, position - gap));
  const found = [];
  const add = (author, from, to, tokens, reward) => {
    const last = found[found.length - 1];
    if (last && last.author === author && reward === null) { last.to = to; last.tokens += tokens; } else found.push({ author, from, to, tokens, reward });
  };
  if (r.turns) {
    let position = 0;
    for (const [author, tokens, reward] of r.turns) {
      if (author === null && !tokens && reward === null) continue; // an answer that nobody read, since no turn was left
      add(author, index(position), index(position + tokens), tokens, reward);
      position += tokens;
    }
  } else {
    for (let k = 0; k < n; k++) add(store.mask[a + k] ? "policy" : null, k, k + 1, 1, null);
  }
  return found;
}

// Rewards on single tokens, by position: {position: [[term, amount]]}.
function paidAt(r) {
  const found = {};
  for (const [name, steps] of Object.entries(r.step_rewards || {})) {
    for (const [position, amount] of Array.isArray(steps) ? steps : []) if (typeof amount === "number") (found[position] ??= []).push([name, amount]);
  }
  return found;
}

function tokensOf(r, from, to) {
  const out = el("div", "text"), start = store.start[r.id], gap = store.gap[r.id], paid = paidAt(r);
  for (let i = from; i < to; i++) {
    if (gap && i === store.head) out.append(el("span", "read", `\n… ${gap} tokens left out …\n`));
    const k = start + i, own = store.mask[k] === 1;
    const node = el("span", own ? "own" : "read", store.vocabulary[store.ids[k]].replaceAll("\n", "↵\n"));
    node.at = [r, k];
    out.append(node);
    for (const [name, amount] of paid[i < store.head ? i : i + gap] || []) {
      const badge = el("b", amount < 0 ? "pay minus" : "pay", signed(amount));
      badge.title = `${name}, on this token`;
      out.append(badge);
    }
  }
  return out;
}

function told(r, k) {
  const i = k - store.start[r.id], position = i < store.head ? i : i + store.gap[r.id];
  const [lp, ratio, entropy] = ["logprob", "ratio", "entropy"].map((name) => numberAt(name, r, k));
  const lines = [`${JSON.stringify(store.vocabulary[store.ids[k]])}  token ${position}`, `credit     ${number(numberAt("credit", r, k))}`];
  if (lp !== null) lines.push(`log-prob   ${number(lp)}  (p = ${number(Math.exp(lp))})`);
  if (ratio !== null) lines.push(`new/old    ${number(Math.exp(ratio))}  (log ${signed(ratio)})`);
  if (entropy !== null) lines.push(`entropy    ${number(entropy)}`);
  for (const [name, amount] of paidAt(r)[position] || []) lines.push(`${name}  ${signed(amount)}`);
  return lines.join("\n");
}

document.addEventListener("pointerover", (event) => {
  const at = event.target.at;
  if (at && event.target.className === "own") showTip(told(...at), event.clientX, event.target.getBoundingClientRect());
  else tip.hidden = true;
});

const NAMES = { prompt: "prompt", read: "answer", policy: "reply" };

// What a reply asks of its environment, in the forms of tool calls, searches, code and commands.
const ASKS = [
  [/"name"\s*:\s*"([\w.-]{1,60})"/g, "<tool_call"],
  [/<(?:function|invoke)(?:=|\s+name=")([\w.-]{1,60})/g, ""],
  [/<search>\s*([^<]{1,80})/g, ""],
  [/^Search: (.{1,80})/gm, ""],
  [/(<code>|```(?:python|py|bash|sh)\b|<command>)/g, ""],
];

function asksOf(text) {
  const found = ASKS.flatMap(([form, mark]) => (mark && !text.includes(mark) ? [] : [...text.matchAll(form)].map((m) => m[1].trim())));
  return found.map((x) => ({ "<code>": "code", "<command>": "command" })[x] || (x.startsWith("```") ? x.slice(3) : x));
}

// The mean credit of what was decided in a turn: that of the turn, where credit is by turns.
function creditOf(r, turn) {
  let sum = 0, n = 0;
  for (let k = store.start[r.id] + turn.from; k < store.start[r.id] + turn.to; k++) {
    const x = store.mask[k] ? numberAt("credit", r, k) : null;
    if (x !== null) { sum += x; n++; }
  }
  return n ? sum / n : null;
}

function turnNode(r, turn, number, isPrompt, open) {
  const who = turn.author === null ? (isPrompt ? NAMES.prompt : NAMES.read) : turn.author === "policy" ? NAMES.policy : turn.author;
  const node = el("details", turn.author === null ? "turn read" : "turn");
  const text = textOf(r, turn.from, turn.to).trim().replace(/\s+/g, " ");
  const head = el("summary", "", null, el("b", "", number ? `${who} ${number}` : who), el("small", "", `${turn.tokens} token${turn.tokens === 1 ? "" : "s"}`));
  if (turn.reward !== null && turn.reward !== undefined) head.append(el("b", turn.reward < 0 ? "pay minus" : "pay", `paid ${signed(turn.reward)}`));
  const oneOfMany = number > 0, credit = oneOfMany && known("credit") ? creditOf(r, turn) : null;
  if (credit !== null) {
    const badge = el("small", credit < 0 ? "credit minus" : "credit", `credit ${signed(credit)}`);
    badge.title = "mean credit of the tokens of this turn";
    head.append(badge);
  }
  for (const asked of oneOfMany ? asksOf(textOf(r, turn.from, turn.to)) : []) head.append(el("code", "ask", shorten(asked, 40)));
  head.append(el("small", "peek", shorten(text, 160)));
  node.append(head);
  const fill = () => { if (node.open && node.childElementCount === 1) { node.append(tokensOf(r, turn.from, turn.to)); paint(node); } };
  node.addEventListener("toggle", fill);
  node.open = open;
  fill();
  return node;
}

// A rollout turn by turn; the turns that the policy wrote are unfolded.
function transcript(r) {
  if (!store.length[r.id]) return el("div", "transcript", null, el("div", "text", r.reply || "(no text recorded)"));
  const turns = turnsOf(r);
  const many = turns.filter((t) => t.author !== null).length > 1;
  let replies = 0;
  const nodes = turns.map((turn, i) => turnNode(r, turn, turn.author !== null && many ? ++replies : 0, i === 0, turn.author !== null || (i > 0 && turn.tokens <= 60)));
  return el("div", "transcript", null, ...nodes);
}

// Only what the policies wrote, for cards side by side.
function replyText(r) {
  if (!store.length[r.id]) return el("div", "text", r.reply || "");
  const turns = turnsOf(r).filter((t, i) => i > 0 || t.author !== null);
  return el("div", "", null, ...turns.map((t) => tokensOf(r, t.from, t.to)));
}

