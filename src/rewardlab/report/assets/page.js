"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches;
const tip = document.getElementById("tip");
const PALETTE = 8;

// The only way text gets into the page: as text, never as HTML.
function el(tag, kind, text, ...children) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text !== undefined && text !== null) node.textContent = text;
  node.append(...children);
  return node;
}
const number = (x) => (typeof x === "number" ? String(Number(x.toPrecision(3))) : String(x ?? "–")).replace("-", "−");
const signed = (x) => (x > 0 ? "+" : "") + number(x);
const key = (i) => el("i", `key k${i % PALETTE}`);

function button(text, kind, act, title) {
  const node = el("button", kind, text);
  node.type = "button";
  if (title) node.title = title;
  node.onclick = act;
  return node;
}

// A group of buttons, one of which is pressed.
function choice(name, options, chosen, pick) {
  const box = el("div", "choice");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", name);
  for (const [value, text, title] of options) {
    const node = button(text, "", () => {
      box.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b === node)));
      pick(value);
    }, title);
    node.setAttribute("aria-pressed", String(value === chosen));
    node.dataset.value = value;
    box.append(node);
  }
  return box;
}

function showTip(text, x, place) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const above = place.top - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(8, Math.min(x - 20, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${above > 0 ? above : place.bottom + 8}px`;
}
document.addEventListener("scroll", () => (tip.hidden = true), { passive: true, capture: true });

// -- tabs -------------------------------------------------------------------------------------------------------------
const tabs = [["overview", "Overview"], ["rollouts", "Rollouts"], ["settings", "Settings"]];
const onTab = {};

function showTab(name) {
  for (const [id] of tabs) {
    document.getElementById(id).hidden = id !== name;
    document.getElementById(`tab-${id}`).setAttribute("aria-selected", String(id === name));
  }
  document.body.dataset.tab = name;
  tip.hidden = true;
  onTab[name]?.();
}

function tabOfAddress() {
  const wanted = location.hash.slice(1).split("/")[0];
  showTab(tabs.some(([id]) => id === wanted) ? wanted : "overview");
}

function showTabs() {
  const bar = document.getElementById("tabs");
  bar.setAttribute("role", "tablist");
  for (const [id, text] of tabs) {
    const tab = button(text, "", () => (location.hash === `#${id}` ? showTab(id) : (location.hash = id)));
    tab.id = `tab-${id}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", id);
    bar.append(tab);
  }
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const all = [...bar.children];
    if (step) all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
  });
  addEventListener("hashchange", tabOfAddress);
}

