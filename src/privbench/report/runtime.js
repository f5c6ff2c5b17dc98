// Runtimes: each query is a point, the real database to the right, another one upwards; on the line both are equal.
const SCATTERS = [
  { key: "buffers", title: "Pages touched", unit: "pages" },
  { key: "times", title: "Times", unit: "ms" },
];
const POINTS = {
  again: { fill: "var(--line)", r: 3, order: 0 },
  resample: { fill: "var(--a)", r: 3, order: 1 },
  synthetic: { fill: "var(--s0)", r: 3, order: 2 },
};
const CHANGED = "var(--b)";

function drawScatter(place, kind) {
  const points = data.runtime.queries.flatMap((query) => data.runtime.variants.map((variant) => ({
    query, variant, changed: query.changed.includes(variant.name) && variant.name === "synthetic",
    x: query[kind.key].real, y: query[kind.key][variant.name],
  }))).filter((p) => p.x > 0 && p.y > 0).sort((p, q) => POINTS[p.variant.name].order - POINTS[q.variant.name].order);
  if (!points.length) return;
  const box = make(place, "div", { class: "plot" });
  make(box, "h3", {}, kind.title);
  make(box, "p", { class: "note" }, `${kind.unit}, log scales: real to the right, others upwards`);
  const [width, height, left, bottom] = [420, 340, 46, 30];
  const svg = canvas(box, width, height, kind.title);
  const all = points.flatMap((p) => [p.x, p.y]);
  const [low, top] = [Math.min(...all) * 0.8, Math.max(...all) * 1.25];
  const share = (v) => Math.log(v / low) / Math.log(top / low);
  const x = (v) => left + share(v) * (width - left - 26);
  const y = (v) => height - bottom - share(v) * (height - bottom - 8);
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= top; power += 1) {
    const tick = 10 ** power;
    make(svg, "line", { class: "axis", x1: x(tick), x2: x(tick), y1: y(low), y2: y(top) });
    make(svg, "line", { class: "axis", x1: x(low), x2: x(top), y1: y(tick), y2: y(tick) });
    make(svg, "text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, tick.toLocaleString("en"));
    make(svg, "text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en"));
  }
  make(svg, "line", { class: "floor", x1: x(low), y1: y(low), x2: x(top), y2: y(top) });
  for (const p of points) {
    const style = POINTS[p.variant.name];
    const told = [`query ${p.query.n}: ${cut(p.query.sql, 160)}`, `real: ${figureOf(p.x)} ${kind.unit}`,
      `${p.variant.label}: ${figureOf(p.y)} ${kind.unit}`, p.changed ? "another plan" : ""].filter(Boolean).join("\n");
    const place = { cx: x(p.x).toFixed(1), cy: y(p.y).toFixed(1), r: p.changed ? 4 : style.r };
    make(svg, "circle", { class: "cell", ...place, fill: p.changed ? CHANGED : style.fill, "data-tip": told });
  }
}
const figureOf = (v) => Number(v.toPrecision(3)).toLocaleString("en");

function drawRuntime() {
  const [place, legend] = [byId("runtime-plots"), document.querySelector(".runtime-legend")];
  if (!place || !data.runtime) return;
  place.querySelectorAll(".plot").forEach((plot) => plot.remove());
  legend.replaceChildren();
  const keys = data.runtime.variants.map((v) => [POINTS[v.name].fill, v.label]).reverse();
  if (data.runtime.queries.some((q) => q.changed.includes("synthetic"))) keys.splice(1, 0, [CHANGED, "synthetic, another plan"]);
  for (const [colour, label] of keys) {
    const entry = make(legend, "span");
    make(entry, "span", { class: "key", style: `background:${colour}` });
    entry.append(label);
  }
  SCATTERS.forEach((kind) => drawScatter(place, kind));
}
