// -- curves -----------------------------------------------------------------------------------------------------------
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const tint = (hex, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",")},${alpha})`;
// Plotly reads a little HTML in names.
const label = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const several = data.runs.length > 1;
const DASHES = ["solid", "dash", "dot", "dashdot"];
const CLOCKS = [["step", "step"], ["tokens", "tokens"], ["seconds", "time"]];
const look = { smooth: 10, clock: "step", hidden: new Set() };
const plots = [];

// Gaussian smoothing; the width is a share of the curve. Gaps stay gaps.
function smoothed(y, percent) {
  const half = Math.round((y.length * percent) / 100);
  if (half < 1) return y;
  const bell = Array.from({ length: 2 * half + 1 }, (_, i) => 0.5 - 0.5 * Math.cos((Math.PI * (i + 1)) / (half + 1)));
  return y.map((value, i) => {
    if (value === null) return null;
    let sum = 0, weight = 0;
    for (let j = Math.max(0, i - half); j <= Math.min(y.length - 1, i + half); j++) {
      if (y[j] === null) continue;
      sum += bell[j - i + half] * y[j];
      weight += bell[j - i + half];
    }
    return sum / weight;
  });
}

// Steps converted to tokens or seconds, by interpolation between logged values.
function onClock(line) {
  const clock = data.runs[line.run || 0].clock;
  const to = clock[look.clock], steps = clock.step;
  if (look.clock === "step" || !to) return line.x;
  return line.x.map((x) => {
    let i = steps.findIndex((s) => s >= x);
    if (i < 0) i = steps.length - 1;
    const part = i && steps[i] > steps[i - 1] ? Math.max(0, Math.min(1, (x - steps[i - 1]) / (steps[i] - steps[i - 1]))) : 1;
    return i ? to[i - 1] + part * (to[i] - to[i - 1]) : to[0];
  });
}

const toneOf = (panel, line, i) => `--c${(several ? line.run : i) % PALETTE}`;
const named = (line) => (several ? `${data.runs[line.run].name}` : line.name);
const quantities = (panel) => [...new Set(panel.lines.map((l) => l.name))];

function traces(plot) {
  const { panel } = plot;
  return panel.lines.flatMap((line, i) => {
    if (plot.hidden.has(i) || (several && look.hidden.has(line.run))) return [];
    const tone = colour(toneOf(panel, line, i)), x = onClock(line);
    const dash = DASHES[(several ? quantities(panel).indexOf(line.name) : i) % DASHES.length];
    const base = { x, yaxis: line.right ? "y2" : "y", type: "scatter", showlegend: false, connectgaps: false };
    // a line has no mark for a point between two gaps
    const alone = line.y.some((y, j) => y !== null && (line.y[j - 1] ?? null) === null && (line.y[j + 1] ?? null) === null);
    const few = x.length <= 25, smooth = look.smooth > 0 && !line.exact && !panel.stacked && x.length >= 12;
    const hover = several && quantities(panel).length > 1 ? `${named(line)}, ${line.name}` : named(line);
    const main = { ...base, y: smooth ? smoothed(line.y, look.smooth) : line.y, name: label(hover), mode: (few && !smooth) || alone ? "lines+markers" : "lines", line: { color: tone, width: 2.2, dash }, marker: { size: 6, color: tone } };
    if (panel.stacked) return [{ ...main, stackgroup: "all", line: { color: tone, width: 0.8 }, marker: { size: 4, color: tone }, fillcolor: tint(tone, 0.5) }];
    const out = [];
    if (line.low && x.length === 1) {
      main.error_y = { type: "data", symmetric: false, array: [line.high[0] - line.y[0]], arrayminus: [line.y[0] - line.low[0]], color: tone, thickness: 1.5 };
    } else if (line.low) {
      const edge = { ...base, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
      out.push({ ...edge, y: line.low }, { ...edge, y: line.high, fill: "tonexty", fillcolor: tint(tone, several ? 0.1 : 0.16) });
    }
    if (smooth) out.push({ ...base, y: line.y, mode: "lines", hoverinfo: "skip", line: { color: tint(tone, 0.28), width: 1 } });
    return [...out, main];
  });
}

function extent() {
  const all = data.sections.flatMap((s) => s.panels.flatMap((p) => p.lines.flatMap(onClock)));
  const [first, last] = all.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
  // a single point has no extent to take a share of
  const pad = last > first ? Math.max((last - first) * 0.02, look.clock === "step" ? 0.5 : 0) : Math.max(Math.abs(last) * 0.1, 0.5);
  return { first, last, range: [first - pad, last + pad] };
}

function layout(plot) {
  const { panel } = plot, wide = plot.range || extent();
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, tickfont: { size: 11 }, automargin: true };
  const tiny = panel.lines.every((line) => line.y.every((y) => Math.abs(y) < 0.01));
  const framed = (range) => (range && !plot.log ? { range } : { autorange: true });
  const value = { ...axis, type: plot.log ? "log" : "linear", exponentformat: tiny ? "power" : "SI", fixedrange: true, tickformat: panel.percent ? panel.ticks || ".0%" : "", hoverformat: panel.percent ? (panel.ticks === ".2%" ? ".2%" : ".1%") : ".4~g", nticks: 6 };
  const span = ([a, b]) => ({ type: "rect", layer: "below", xref: "x", yref: "paper", x0: a, x1: b, y0: 0, y1: 1, line: { width: 0 }, fillcolor: tint(colour("--red"), 0.13) });
  const spans = look.clock === "step" ? (panel.spans || []) : [];
  const steps = look.clock === "step";
  return {
    margin: { l: 8, r: 10, t: 12, b: 28 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--soft") },
    xaxis: { ...axis, range: wide.range, showgrid: false, nticks: 7, ...(steps && wide.last - wide.first <= 7 ? { dtick: 1 } : {}), tickformat: steps ? "d" : "~s", ticksuffix: look.clock === "seconds" ? " s" : "", hoverformat: steps ? ".0f" : ".4~s", unifiedhovertitle: { text: steps ? "step %{x}" : `${look.clock} %{x}` } },
    yaxis: { ...value, ...framed(panel.range) },
    ...(panel.lines.some((l) => l.right) ? { yaxis2: { ...value, ...framed(panel.right_range), overlaying: "y", side: "right", tickmode: "auto", showgrid: false } } : {}),
    shapes: spans.map(span),
    hovermode: "x unified", hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { size: 12, color: colour("--ink") } },
    dragmode: touch ? false : "zoom",
  };
}

// Zooming into some steps applies to all panels.
function follow(box) {
  box.on("plotly_relayout", (change) => {
    if (follow.busy) return;
    const range = change["xaxis.range"] || (change["xaxis.range[0]"] !== undefined && [change["xaxis.range[0]"], change["xaxis.range[1]"]]);
    if (!range) return;
    follow.busy = true;
    plots.forEach((p) => (p.range = { range: [...range], first: range[0], last: range[1] }));
    Promise.all(plots.filter((p) => p.drawn && p.box !== box).map((p) => Plotly.relayout(p.box, { "xaxis.range": [...range] }))).finally(() => (follow.busy = false));
  });
  box.on("plotly_doubleclick", () => { plots.forEach((p) => (p.range = null)); redraw(); return false; });
}

function withoutLibrary() {
  const file = document.querySelector("script[src]").getAttribute("src");
  return `This chart needs ${file}, a file that lies with the comparison: open the page there, or write it anew with --self-contained.`;
}

function draw(plot) {
  // the library of a page within a comparison is a file, and a page may be copied without it
  if (typeof Plotly === "undefined") return plot.box.replaceChildren(el("p", "warn", withoutLibrary()));
  const settings = { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: false };
  const done = Plotly.react(plot.box, traces(plot), layout(plot), settings);
  if (!plot.drawn) done.then(() => follow(plot.box));
  plot.drawn = true;
}

const redraw = () => plots.filter((p) => p.drawn).forEach(draw);

function toggle(set, value, node) {
  set.has(value) ? set.delete(value) : set.add(value);
  node.setAttribute("aria-pressed", String(!set.has(value)));
}

function legendOf(plot) {
  const legend = el("div", "legend");
  const lines = several ? quantities(plot.panel).map((name, i) => [name, i]) : plot.panel.lines.map((line, i) => [line.name + (line.right ? " (right axis)" : ""), i]);
  if (lines.length < 2) return "";
  for (const [name, i] of lines) {
    const mark = several ? el("i", `dash d${i % DASHES.length}`) : key(i);
    const node = several ? el("span", "", null, mark, name) : button("", "chip", () => { toggle(plot.hidden, i, node); draw(plot); }, "show or hide");
    if (!several) { node.append(mark, name); node.setAttribute("aria-pressed", "true"); }
    legend.append(node);
  }
  return legend;
}

const LOG_FROM = 5; // offer a logarithmic axis from this ratio of largest to smallest value

function spansDecades(panel) {
  const values = panel.lines.flatMap((l) => l.y).filter((y) => y !== null);
  const [low, high] = values.reduce(([a, b], y) => [Math.min(a, y), Math.max(b, y)], [Infinity, 0]);
  return !panel.percent && !panel.stacked && low > 0 && high > LOG_FROM * low;
}

function panelOf(panel) {
  const plot = { panel, hidden: new Set(), log: false, drawn: false, range: null, box: el("div", "plot") };
  const head = el("div", "head", null, el("h3", "", panel.title));
  if (spansDecades(panel)) {
    const log = button("log", "chip", () => { plot.log = !plot.log; log.setAttribute("aria-pressed", String(plot.log)); draw(plot); }, "logarithmic axis");
    log.setAttribute("aria-pressed", "false");
    head.append(log);
  }
  const card = el("div", "panel", null, head, el("div", "note", panel.note), legendOf(plot));
  if (panel.warn) card.append(el("p", "warn", "⚠ " + panel.warn));
  card.append(plot.box);
  plots.push(plot);
  drawWhenSeen.observe(plot.box);
  return card;
}

const drawWhenSeen = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    drawWhenSeen.unobserve(target);
    draw(plots.find((p) => p.box === target));
  }
}, { rootMargin: "400px" });

function curveTools() {
  const smooth = el("input");
  Object.assign(smooth, { type: "range", min: 0, max: 30, value: look.smooth });
  smooth.oninput = () => { look.smooth = Number(smooth.value); requestAnimationFrame(redraw); };
  const clocks = CLOCKS.filter(([name]) => data.runs.some((r) => r.clock[name]));
  const tools = el("div", "tools", null, el("label", "", "smoothing", smooth));
  if (clocks.length > 1) tools.append(el("div", "", null, el("span", "note", "over "), choice("horizontal axis", clocks, "step", (v) => { look.clock = v; plots.forEach((p) => (p.range = null)); redraw(); })));
  if (several) {
    const chips = el("div", "legend");
    data.runs.forEach((run, i) => {
      const chip = button("", "chip", () => { toggle(look.hidden, i, chip); redraw(); }, "show or hide this run");
      chip.append(key(i), run.name);
      chip.setAttribute("aria-pressed", "true");
      chips.append(chip);
    });
    tools.append(chips);
  }
  return tools;
}

function showCurves() {
  const root = document.getElementById("curves");
  if (!data.sections.length) return root.append(el("p", "note", "No metrics recorded yet."));
  root.append(curveTools());
  for (const section of data.sections) {
    const grid = el("div", section.title === "Learning" ? "panels lead" : "panels", null, ...section.panels.map(panelOf));
    root.append(el("section", "", null, el("h2", "", section.title), grid));
  }
  if (!touch) root.append(el("p", "note", "Drag across a curve to zoom all curves into those steps; double-click to reset."));
  dark.addEventListener("change", redraw);
}

