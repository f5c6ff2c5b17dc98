// The query heat map: the networks of a query's tables, coloured by the share of rows that satisfy it.

// The columns of a subtree.
const columnsOf = (nodes, at) => {
  const node = nodes[at];
  const own = node.k === "leaf" || node.k === "column" ? [node.t] : [];
  return own.concat(...(node.c ?? []).map((child) => columnsOf(nodes, child)));
};

// Products below a product, and columns that the query does not ask for, are drawn as one.
function drawnTree(nodes, asked, at = 0, weight = null) {
  const node = nodes[at];
  const branch = { at, weight, kind: node.k, name: node.t ?? "", parents: node.p ?? [], below: [], others: [] };
  const splits = ["product", "clique", "column"].includes(node.k);
  const add = (child, share) => {
    const inner = nodes[child];
    const columns = ["leaf", "clique", "column"].includes(inner.k) ? columnsOf(nodes, child) : null;
    if (node.k === "product" && inner.k === "product") inner.c.forEach((c) => add(c, null));
    else if (splits && columns && !columns.some((name) => asked.has(name))) branch.others.push(...columns);
    else branch.below.push(drawnTree(nodes, asked, child, share));
  };
  (node.c ?? []).forEach((child, i) => add(child, node.w ? node.w[i] : null));
  if (branch.others.length) {
    const name = branch.others.length === 1 ? branch.others[0] : `${branch.others.length} other columns`;
    branch.below.push({ at: null, weight: null, kind: "rest", name, below: [], others: branch.others });
  }
  return branch;
}

function placed(tree) {
  let row = 0, deepest = 0;
  const walk = (node, depth) => {
    node.depth = depth;
    deepest = Math.max(deepest, depth);
    node.below.forEach((child) => walk(child, depth + 1));
    if (node.below.length) node.row = (node.below[0].row + node.below[node.below.length - 1].row) / 2;
    else { node.row = row; row += 1; }
  };
  walk(tree, 0);
  return { rows: row, deepest };
}

// Selectivities span orders of magnitude: 0.1 % and less is the palest, 100 % the strongest.
const strength = (share) => (share <= 0 ? 0 : 1 + Math.log10(Math.max(share, 0.001)) / 3);

const KINDS = {
  sum: "sum: rows are split", product: "product: columns are independent", clique: "clique tree: columns depend on each other",
  leaf: "column", column: "column", cut: "not drawn",
};

function drawTree(parent, title, nodes, values, asked, truth = null) {
  const box = make(parent, "div", { class: "tree" });
  make(box, "h4", {}, title);
  const tree = drawnTree(nodes, asked);
  tree.truth = truth;
  const { rows, deepest } = placed(tree);
  const dense = nodes.some((node) => node.k === "column"); // names stand below inner columns and need their width
  const between = (low, high, all) => Math.max(low, Math.min(high, all / Math.max(1, deepest)));
  const [line, step] = dense ? [38, between(96, 124, 400)] : [30, between(84, 120, 330)];
  const svg = canvas(box, Math.max(420, 40 + deepest * step + 190), Math.max(70, rows * line + 12), title, false);
  const x = (node) => 26 + node.depth * step;
  const y = (node) => 20 + node.row * line + (rows < 2 ? 10 : 0);
  const edges = make(svg, "g");
  const walk = (node) => {
    for (const child of node.below) {
      const middle = (x(node) + x(child)) / 2;
      const d = `M${x(node)},${y(node)}C${middle},${y(node)} ${middle},${y(child)} ${x(child)},${y(child)}`;
      const width = child.weight === null ? 1.5 : 1 + 7 * child.weight;
      make(edges, "path", { d, fill: "none", stroke: "var(--line)", "stroke-width": width });
      walk(child);
      if (child.weight !== null) {
        make(svg, "text", { x: middle + 8, y: (y(node) + 2 * y(child)) / 3 - 5, "text-anchor": "middle" }, percent(child.weight));
      }
    }
    drawNode(svg, node, x(node), y(node), node.at === null ? null : values[node.at]);
  };
  walk(tree);
}

function drawNode(svg, node, x, y, share) {
  if (node.kind === "rest") {
    make(svg, "circle", { cx: x, cy: y, r: 5, fill: "var(--card)", stroke: "var(--line)", "data-tip": `not asked for:\n${node.others.join(", ")}` });
    make(svg, "text", { x: x + 11, y: y + 4 }, cut(node.name, 26));
    return;
  }
  const [implied, exact] = [share, (node.truth ?? null) !== null];
  share = node.truth ?? share;
  const colour = share === null ? "var(--card)" : mixed("share", strength(share));
  const above = node.parents?.length ? `\ndepends on ${node.parents.join(", ")}` : "";
  const told = `${KINDS[node.kind]}${node.name ? ` ${node.name}` : ""}${above}\nsatisfies the query: ${share === null ? "not known" : percent(share)}${exact ? " (exact)" : ""}`;
  const group = make(svg, "g", { "data-tip": told, class: "node", "data-share": share ?? "" });
  make(group, "circle", { cx: x, cy: y, r: 11, fill: colour, stroke: "var(--soft)", "stroke-width": 0.8 });
  const sign = { sum: "+", product: "×", clique: "→" }[node.kind];
  if (sign) {
    const ink = share !== null && strength(share) > 0.55 ? "fill:var(--page)" : "fill:var(--ink)";
    make(group, "text", { class: "sign", x, y: y + 5, "text-anchor": "middle", style: `${ink};font-size:15px` }, sign);
    const root = node.depth === 0;
    const place = { class: "strong", x: root ? 4 : x, y: y + 23, "text-anchor": root ? "start" : "middle" };
    make(group, "text", place, `${percent(share)}${exact ? " exact" : ""}`);
    if (exact) make(group, "text", { x: 4, y: y + 36 }, `${percent(implied)} implied`);
  } else if (node.below.length) {
    make(group, "text", { class: "strong", x, y: y + 23, "text-anchor": "middle" }, `${cut(node.name, 13)} ${percent(share)}`);
  } else {
    make(group, "text", { class: "strong", x: x + 16, y: y + 4 }, `${cut(node.name, 20)}  ${percent(share)}`);
  }
}

function drawScale(parent) {
  const svg = canvas(parent, 420, 34, "colours of selectivities", false);
  for (let i = 0; i < 60; i += 1) make(svg, "rect", { x: 8 + i * 4, y: 4, width: 4.5, height: 10, fill: mixed("share", i / 59) });
  [["≤0.1 %", 8], ["1 %", 88], ["10 %", 168], ["100 %", 248]].forEach(([text, x], i) => {
    make(svg, "text", { x, y: 28, "text-anchor": i ? "middle" : "start" }, text);
  });
}

const valueOf = (query, metric) => query.values?.[metric.name] ?? null;

function queryTitle(query) {
  const [metric] = metricsFor("curves");
  const value = metric ? valueOf(query, metric) : null;
  return cut(`${query.n}: ${value === null ? "" : `${metric.label} ${figure(metric, value)} · `}${query.sql}`, 120);
}

function drawHeat() {
  const place = byId("heat-view");
  if (!place) return;
  place.replaceChildren();
  const query = data.heat[byId("heat-query").value || 0];
  if (!query) { make(place, "p", { class: "empty" }, "No query of the workload touches a table of the model."); return; }
  make(make(place, "p", { class: "sql" }), "code", {}, query.sql);
  const facts = make(place, "p", { class: "facts" });
  const fact = (name, value) => { make(facts, "span", {}, `${name} `); make(facts.lastChild, "b", {}, value); };
  if ("real" in query) fact("true count", count(query.real));
  if ("synthetic" in query) fact("count in the synthetic data", count(query.synthetic));
  fact("the model's estimate", count(query.estimate));
  for (const metric of metricsFor("curves")) if (valueOf(query, metric) !== null) fact(metric.label, figure(metric, valueOf(query, metric)));
  drawScale(place);
  for (const tree of query.trees) {
    make(place, "h3", {}, `table ${tree.table}`);
    const left = tree.left.length ? ` (${tree.left.join(", ")}: not in the network)` : "";
    make(place, "p", { class: "note" }, `${count(data.rows[tree.table])} rows in the model${left}`);
    const pair = make(place, "div", { class: "pair" });
    const nodes = data.networks[tree.table];
    drawTree(pair, "model", nodes, tree.model, new Set(tree.asked));
    if (tree.real) drawTree(pair, "real columns in the model's tree", nodes, tree.real, new Set(tree.asked), tree.truth);
  }
}

if (byId("heat-query")) {
  fill(byId("heat-query"), data.heat.map(queryTitle), drawHeat);
}
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
