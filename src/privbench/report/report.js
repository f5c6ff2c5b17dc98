"use strict";
// Draws the plots of the page from the JSON in it. Texts go in as text nodes, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const [sideA, sideB] = data.sides;
const byId = (id) => document.getElementById(id);
const sum = (list) => list.reduce((a, b) => a + b, 0);
const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en"));
const percent = (v) => {
  if (v === null || v === undefined) return "–";
  const p = 100 * v;
  return (p === 0 ? "0" : p >= 9.95 ? p.toFixed(0) : p >= 0.001 ? String(Number(p.toPrecision(2))) : "<0.001") + " %";
};

function make(parent, name, attributes = {}, text = null) {
  const svg = parent instanceof SVGElement || name === "svg";
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  parent.appendChild(element);
  return element;
}

function canvas(parent, width, height, label, fluid = true) {
  const size = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label };
  return make(parent, "svg", { ...size, ...(fluid ? { width: "100%" } : { width, height }) });
}

// Figures as people read them, by the unit of their metric.
const metricsFor = (plot) => data.metrics.filter((metric) => metric.plots.includes(plot));
const factor = (v) => (v < 10 ? v.toFixed(2) : count(v));
function figure(metric, v) {
  if (v === null || v === undefined) return "–";
  if (metric.unit === "share") return percent(v);
  return metric.unit === "factor" ? factor(v) : String(Number(v.toPrecision(4)));
}
const reading = (metric, v, what) => metric.reading.replace("{value}", () => figure(metric, v)).replace("{what}", () => what);
const excess = (metric, v) => (v === null || v === undefined ? -1 : Math.abs(v - metric.best));

// A bin is known by its bounds.
const bound = (v) => (typeof v === "number" && !Number.isInteger(v) ? String(Number(v.toPrecision(10))) : v === "" ? '""' : String(v));
function binLabel(bin) {
  switch (bin.kind) {
    case "value": return bound(bin.value);
    case "prefix": return `${bin.value}…`;
    case "range": return bin.high === null ? `${bound(bin.low)} or more` : `${bound(bin.low)} to ${bound(bin.high)}`;
    case "length": return bin.low === bin.high ? `${bin.low} characters` : `${bin.low} to ${bin.high} characters`;
    case "rest": return bin.values ? `${count(bin.values)} other values` : "other values";
    case "null": return "NULL";
    default: return "not in the real data";
  }
}

// What stands below the first and the last bar.
function outerBounds(bins) {
  if (!bins.length) return ["", ""];
  const [first, last] = [bins[0], bins[bins.length - 1]];
  const ranged = (bin) => bin.kind === "range" && bin.high !== null;
  return [ranged(first) ? bound(first.low) : binLabel(first), ranged(last) ? bound(last.high) : binLabel(last)];
}

const cut = (text, letters) => (text.length > letters ? text.slice(0, letters - 1) + "…" : text);

function mixed(name, share) {
  const style = getComputedStyle(document.documentElement);
  const [from, to] = [0, 1].map((i) => style.getPropertyValue(`--${name}-${i}`).split(",").map(Number));
  return `rgb(${from.map((v, i) => Math.round(v + (to[i] - v) * Math.max(0, Math.min(1, share)))).join(",")})`;
}

// One tooltip for everything that has data-tip.
const tip = byId("tip");
function showTip(target, x, y) {
  tip.textContent = target.getAttribute("data-tip");
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}
document.addEventListener("mousemove", (event) => {
  const target = event.target.closest("[data-tip]");
  if (target) showTip(target, event.clientX, event.clientY);
  else tip.hidden = true;
});
document.addEventListener("focusin", (event) => {
  const target = event.target.closest("[data-tip]");
  if (!target) return;
  const box = target.getBoundingClientRect();
  showTip(target, box.left, box.bottom - 14);
});
document.addEventListener("focusout", () => { tip.hidden = true; });

function fill(select, names, draw) {
  names.forEach((name, at) => make(select, "option", { value: at }, name));
  select.addEventListener("change", draw);
}

for (const legend of document.querySelectorAll(".legend")) {
  make(legend, "span", { class: "key", style: "background:var(--a)" });
  legend.append(sideA);
  make(legend, "span", { class: "key", style: "background:var(--b)" });
  legend.append(sideB);
}

// Distributions: a wide bar for one side, a narrow bar inside it for the other.
function drawPlot(parent, plot, what) {
  const box = make(parent, "div", { class: "plot" });
  const title = make(box, "h3");
  make(title, "span", {}, plot.name);
  const shown = metricsFor("bars").filter((metric) => (plot.measures[metric.name]?.value ?? null) !== null);
  for (const metric of shown) {
    const { value, floor, grade } = plot.measures[metric.name];
    const resample = floor === null ? "" : `\nresample of the real data: ${figure(metric, floor)}`;
    const label = shown.length > 1 ? `${metric.label} ${figure(metric, value)}` : figure(metric, value);
    make(title, "span", { class: `chip ${grade}`, "data-tip": `${metric.label}: ${reading(metric, value, what)}${resample}` }, label);
  }
  make(box, "p", { class: "note" }, plot.about);
  const shares = [plot.a, plot.b].map((list) => list.map((v) => v / Math.max(1, sum(list))));
  const top = Math.max(1e-12, ...shares[0], ...shares[1]);
  const tell = (i) => [sideA, sideB].map((side, s) => {
    const list = s ? plot.b : plot.a;
    return list.length ? `${side}: ${count(list[i])} (${percent(shares[s][i])})` : "";
  }).filter(Boolean).join("\n");
  const labels = plot.bins.map(binLabel);
  const told = (i) => `${labels[i]}\n${tell(i)}`;
  const lying = !plot.ordered && labels.length <= 9;
  (lying ? drawLying : drawStanding)(box, { name: plot.name, labels, ends: outerBounds(plot.bins) }, shares, top, told);
}

function drawStanding(box, plot, [a, b], top, told) {
  const [width, height, left] = [300, 120, 34];
  const svg = canvas(box, width, height + 18, plot.name);
  const step = Math.min(60, (width - left) / plot.labels.length);
  const y = (share) => height - (share / top) * (height - 12);
  for (const share of [0, top / 2, top]) {
    make(svg, "line", { class: "axis", x1: left, x2: width, y1: y(share), y2: y(share) });
    make(svg, "text", { x: left - 4, y: y(share) + 4, "text-anchor": "end" }, percent(share).replace(" ", ""));
  }
  plot.labels.forEach((_, i) => {
    const x = left + i * step;
    const bar = (side, share, inset) => make(svg, "rect", {
      class: side, x: x + step * inset, width: Math.max(0.8, step * (1 - 2 * inset)), y: y(share), height: height - y(share),
    });
    if (a.length) bar("side-a", a[i], 0.06);
    bar("side-b", b[i], a.length ? 0.32 : 0.15);
    make(svg, "rect", { class: "hit", x, width: step, y: 0, height, "data-tip": told(i) });
  });
  const room = Math.max(5, Math.min(20, Math.floor((step * plot.labels.length) / 13)));
  const ends = [plot.ends[0], plot.labels.length > 1 ? plot.ends[1] : ""];
  make(svg, "text", { x: left, y: height + 14 }, cut(ends[0], room));
  make(svg, "text", { x: left + step * plot.labels.length, y: height + 14, "text-anchor": "end" }, cut(ends[1], room));
}

function drawLying(box, plot, [a, b], top, told) {
  const [width, left, right] = [300, 104, 40];
  const step = Math.min(26, Math.max(14, 138 / plot.labels.length));
  const svg = canvas(box, width, Math.max(138, step * plot.labels.length), plot.name);
  const x = (share) => (share / top) * (width - left - right);
  plot.labels.forEach((label, i) => {
    const y = i * step;
    make(svg, "text", { class: "strong", x: left - 6, y: y + step / 2 + 4, "text-anchor": "end" }, cut(label, 14));
    if (a.length) make(svg, "rect", { class: "side-a", x: left, y: y + step * 0.1, width: x(a[i]), height: step * 0.8 });
    make(svg, "rect", { class: "side-b", x: left, y: y + step * 0.34, width: x(b[i]), height: step * 0.32 });
    const end = left + x(Math.max(b[i], a[i] ?? 0)) + 4;
    make(svg, "text", { x: end, y: y + step / 2 + 4 }, percent(a[i] ?? b[i]));
    make(svg, "rect", { class: "hit", x: 0, y, width, height: step, "data-tip": told(i) });
  });
}

function drawColumns() {
  const place = byId("columns-plots");
  const columns = [...(data.tables[byId("columns-table").value || 0]?.columns ?? [])];
  const [metric] = metricsFor("bars");
  const far = (column) => excess(metric, column.measures[metric.name]?.value);
  if (metric && byId("columns-order").value === "worst") columns.sort((p, q) => far(q) - far(p));
  place.replaceChildren();
  columns.forEach((column) => drawPlot(place, column, "rows"));
}
fill(byId("columns-table"), data.tables.map((t) => t.name), drawColumns);
byId("columns-order").addEventListener("change", drawColumns);

function drawFanouts() {
  const place = byId("fanout-plots");
  place?.replaceChildren();
  if (place) data.keys.forEach((key) => drawPlot(place, key, "parents"));
}

// Pairs of columns: the lower half of a matrix.
function drawPairs() {
  const place = byId("pairs-map");
  if (!place) return;
  place.replaceChildren();
  const table = data.tables[byId("pairs-table").value || 0];
  const metric = metricsFor("matrix")[byId("pairs-metric")?.value || 0];
  const names = table ? table.columns.map((c) => c.name) : [];
  const matrix = (table && metric && table.pairs[metric.name]) || [];
  const known = matrix.flat().filter((v) => v !== null);
  if (!known.length) { make(place, "p", { class: "empty" }, "No pairs of columns to compare."); return; }
  const farthest = known.reduce((p, q) => (excess(metric, q) > excess(metric, p) ? q : p));
  const top = Math.max(0.05, excess(metric, farthest));
  const size = Math.max(16, Math.min(44, 640 / names.length));
  const left = 16 + 6.4 * Math.min(20, Math.max(...names.map((n) => n.length)));
  const width = left + size * (names.length - 1) + left * 0.7;
  const svg = canvas(place, width, size * names.length + left * 0.75 + 40, `pairs of ${table.name}`, false);
  names.forEach((name, i) => {
    const y = (i - 1) * size;
    if (i > 0) make(svg, "text", { class: "strong", x: left - 6, y: y + size / 2 + 4, "text-anchor": "end" }, cut(name, 20));
    const x = left + i * size + size / 2;
    const below = (names.length - 1) * size + 8;
    if (i < names.length - 1) {
      make(svg, "text", { class: "strong", transform: `translate(${x},${below}) rotate(40)`, y: 6 }, cut(name, 20));
    }
    for (let j = 0; j < i; j += 1) {
      const value = matrix[i][j];
      const told = value === null ? "not counted" : `${metric.label}: ${reading(metric, value, "rows")}`;
      const box = { class: "cell", x: left + j * size + 1, y: y + 1, width: size - 2, height: size - 2, rx: 3 };
      const colour = value === null ? "transparent" : mixed("heat", excess(metric, value) / top);
      make(svg, "rect", { ...box, fill: colour, "data-tip": `${name} and ${names[j]}\n${told}` });
    }
  });
  const [x, y, w] = [left, size * names.length + left * 0.75 - 8, 160];
  for (let i = 0; i < 32; i += 1) make(svg, "rect", { x: x + (i * w) / 32, y, width: w / 32 + 0.5, height: 10, fill: mixed("heat", i / 31) });
  const end = metric.best + (farthest < metric.best ? -top : top);
  make(svg, "text", { x, y: y + 24 }, figure(metric, metric.best));
  make(svg, "text", { x: x + w, y: y + 24, "text-anchor": "end" }, figure(metric, end));
}
if (byId("pairs-table")) fill(byId("pairs-table"), data.tables.map((t) => t.name), drawPairs);
if (byId("pairs-metric")) fill(byId("pairs-metric"), metricsFor("matrix").map((m) => m.label), drawPairs);

// Queries: the share of them up to each value of a metric, one curve for each number of joins.
function drawCurves(place) {
  place.replaceChildren();
  const metric = data.metrics.find((m) => m.name === place.getAttribute("data-metric"));
  const valued = (values) => (q) => ({ joins: q.joins, v: q[values][metric.name] ?? null });
  const queries = data.queries.map(valued("values")).filter((q) => q.v !== null);
  if (!queries.length) { make(place, "p", { class: "empty" }, "No query was answered on both sides."); return; }
  const [width, height, left, bottom, right] = [900, 330, 48, 36, 150];
  const svg = canvas(place, width, height, `${metric.label} by number of joins`);
  const joins = [...new Set(queries.map((q) => q.joins))].sort((p, q) => (p ?? 99) - (q ?? 99));
  const named = (j) => (j === null ? "other" : j === 1 ? "1 join" : `${j} joins`);
  const groups = joins.map((j, i) => ({ name: named(j), colour: `var(--s${Math.min(i, 5)})`, dash: "", list: queries.filter((q) => q.joins === j) }));
  const floor = data.queries.map(valued("floors")).filter((q) => q.v !== null);
  if (floor.length) groups.push({ name: "resample", colour: "var(--soft)", dash: "5 4", list: floor });
  const all = groups.flatMap((g) => g.list.map((q) => q.v));
  const { low, top, share, ticks } = metric.unit === "factor" ? logAxis(all) : linearAxis(all);
  const x = (v) => left + share(v) * (width - left - right);
  const y = (part) => height - bottom - part * (height - bottom - 12);
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    make(svg, "line", { class: "axis", x1: left, x2: width - right, y1: y(part), y2: y(part) });
    make(svg, "text", { x: left - 6, y: y(part) + 4, "text-anchor": "end" }, `${100 * part} %`);
  }
  for (const tick of ticks.filter((t) => t <= top)) {
    make(svg, "line", { class: "axis", x1: x(tick), x2: x(tick), y1: y(0), y2: y(1) });
    make(svg, "text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, tick.toLocaleString("en"));
  }
  const scale = metric.unit === "factor" ? " (log scale)" : "";
  make(svg, "text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, `${metric.label} up to${scale}`);
  groups.forEach((group, g) => {
    const sorted = group.list.map((q) => q.v).sort((p, q) => p - q);
    let path = `M${x(low)},${y(0)}`;
    sorted.forEach((v, i) => { path += `H${x(v).toFixed(1)}V${y((i + 1) / sorted.length).toFixed(1)}`; });
    const line = { fill: "none", stroke: group.colour, "stroke-width": 2, "stroke-dasharray": group.dash };
    make(svg, "path", { d: `${path}H${x(top)}`, ...line });
    make(svg, "line", { x1: width - right + 14, x2: width - right + 38, y1: 22 + 20 * g, y2: 22 + 20 * g, ...line });
    make(svg, "text", { class: "strong", x: width - right + 44, y: 26 + 20 * g }, `${group.name} (${count(sorted.length)})`);
  });
  const steps = 80;
  for (let i = 0; i < steps; i += 1) {
    const at = metric.unit === "factor" ? Math.exp(((i + 0.5) / steps) * Math.log(top)) : low + ((i + 0.5) / steps) * (top - low);
    const told = groups.map((g) => `${g.name}: ${percent(g.list.filter((q) => q.v <= at).length / g.list.length)}`);
    const start = left + (i * (width - left - right)) / steps;
    make(svg, "rect", { class: "hit", x: start, width: (width - left - right) / steps, y: y(1), height: y(0) - y(1),
      "data-tip": `${metric.label} up to ${figure(metric, at)}\n${told.join("\n")}` });
  }
}
const drawAllCurves = () => document.querySelectorAll(".curves").forEach(drawCurves);

// Factors are 1 or more.
function logAxis(values) {
  const top = Math.max(2, ...values) * 1.05;
  const ticks = top < 5 ? [1, 1.2, 1.5, 2, 3, 4] : top < 60 ? [1, 2, 5, 10, 20, 50] : [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
  return { low: 1, top, share: (v) => Math.log(v) / Math.log(top), ticks };
}

function linearAxis(values) {
  const low = Math.min(0, ...values);
  const top = Math.max(low + 1e-9, ...values);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => Number((low + part * (top - low)).toPrecision(2)));
  return { low, top, share: (v) => (v - low) / (top - low), ticks };
}

function drawAll() {
  drawColumns();
  drawPairs();
  drawFanouts();
  drawAllCurves();
  drawRuntime();
  drawHeat();
}
