/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph of calls: callers above callees; the width is the share. */

const FLAME_ROW = 20, NARROWEST = 2, LABEL_MIN = 24, FLAME_ROWS_MAX = 400;
const flameWeights = [
  ["time on the host", time], ["time on the GPU", time], ["calls", count], ["bytes", bytes],
  ["CPU time of samples", time], ["time off the CPU", time], ["on and off the CPU", time]
];
const ON_GPU = 1, ON_CPU = 4, OFF_CPU = 5;

function flameTree(raw) {
  const kinds = new Map(Object.entries(raw.kinds).map(([name, number]) => [number, name]));
  const root = {label: "all", kind: "all", children: [], depth: 0, own: flameWeights.map(() => 0)};
  const nodes = [root];
  for (const [above, kind, text, ...weights] of raw.nodes) {
    const parent = nodes[above];
    const own = flameWeights.map((_, i) => weights[i] || 0);
    own[OFF_CPU + 1] = own[ON_CPU] + own[OFF_CPU];
    const depth = parent.depth + 1;
    const node = {label: text, kind: kinds.get(kind) || "other", parent, children: [], depth, own};
    nodes.push(node);
    parent.children.push(node);
  }
  for (const node of [...nodes].reverse())
    node.total = node.own.map((own, w) => own + sum(node.children, (child) => child.total[w]));
  return {root, nodes};
}

sections.flame = (box, raw) => {
  if (!raw.nodes || !raw.nodes.length)
    return raw.absent ?
      raw.absent + "." :
      "No stacks were recorded: gpuprof run --backtrace=launch,copy,alloc records them.";
  const {root, nodes} = flameTree(raw);
  const weights = flameWeights.map(([text], i) => [i, text]).filter(([i]) => root.total[i] &&
    (i <= OFF_CPU || (root.total[ON_CPU] && root.total[OFF_CPU])));
  if (!weights.length) return "No call with a stack took any time.";
  let weight = root.total[ON_GPU] ? ON_GPU : weights[0][0], words = "";
  let zoomed = root, focused = null;
  const graph = el("div", {class: "flame", role: "tree", "aria-label": "Flame graph"});
  const said = el("span", {class: "end", "aria-live": "polite"});
  const out = button("Zoom out", () => zoom(root));
  const find = search("Search", "Search the flame graph", () => {
    words = find.value.toLowerCase();
    draw();
  });
  const write = (node) => flameWeights[weight][1](node.total[weight]);
  const shareOf = (n) => percent(n / root.total[weight]);
  const text = (node) => `${node.label}\n${write(node)}, ${shareOf(node.total[weight])}`;
  const hits = (node) => words !== "" && node.label.toLowerCase().includes(words);
  /* Matches inside a match are not counted twice. */
  const found = (node) => hits(node) ? node.total[weight] : sum(node.children, found);
  const sorted = (node) => node.children.filter((child) => child.total[weight] > 0)
    .sort((one, other) => other.total[weight] - one.total[weight]);

  function zoom(node) {
    zoomed = focused = node;
    draw();
    const again = graph.querySelector("button[tabindex='0']");
    if (again) again.focus({preventScroll: true});
  }
  function press(event, node) {
    const around = node.parent ? sorted(node.parent) : [node], at = around.indexOf(node);
    const go = (next) => () => {
      if (!next || !next.button || !next.button.isConnected) return;
      node.button.tabIndex = -1;
      next.button.tabIndex = 0;
      next.button.focus();
    };
    onKeys({
      ArrowUp: go(node.parent), ArrowDown: go(sorted(node)[0]), ArrowRight: go(around[at + 1]),
      ArrowLeft: go(around[at - 1]), Escape: () => zoom(root)
    })(event);
  }
  function draw() {
    const width = graph.clientWidth || 900, buttons = [];
    let rows = 0;
    const put = (node, x, w, isAbove) => {
      if (w < NARROWEST || node.depth >= FLAME_ROWS_MAX) return;
      rows = Math.max(rows, node.depth + 1);
      node.button = tipped(button(w > LABEL_MIN ? node.label : "", () => zoom(node), {
        role: "treeitem",
        tabindex: -1,
        "aria-level": node.depth + 1,
        "aria-label": text(node).replace("\n", ": "),
        class: `f-${node.kind}${isAbove ? " above" : ""}${hits(node) ? " hit" : ""}`,
        style: {left: x + "px", width: w + "px", top: node.depth * FLAME_ROW + "px"},
        onkeydown: (event) => press(event, node)
      }), () => text(node));
      buttons.push(node.button);
      if (isAbove) return;
      for (const child of sorted(node)) {
        const part = w * child.total[weight] / node.total[weight];
        put(child, x, part, false);
        x += part;
      }
    };
    const path = [];
    for (let node = zoomed.parent; node; node = node.parent) path.unshift(node);
    path.forEach((node) => put(node, 0, width, true));
    put(zoomed, 0, width, false);
    const first = focused && buttons.includes(focused.button) ? focused : zoomed;
    if (first.button) first.button.tabIndex = 0;
    graph.style.height = rows * FLAME_ROW + "px";
    graph.replaceChildren(...buttons);
    out.disabled = zoomed === root;
    said.textContent = words ? `found in ${shareOf(found(root))}` : `${write(root)} in all`;
  }
  const which = el("select", {onchange: () => {
    weight = Number(which.value);
    if (!zoomed.total[weight]) zoomed = root;
    draw();
  }}, weights.map(([i, name]) => el("option", {value: i, selected: i === weight}, name)));
  const processes = data.overview.process_count;
  add(box,
    lead("Callers are above what they called",
      processes > 1 && `; ${count(processes)} processes are one graph`,
      ". Click or press Enter to zoom, Escape to zoom out; arrow keys go from frame to frame.",
      raw.left_out > 0 &&
        ` ${count(raw.left_out)} frames that are too narrow count for their callers.`),
    raw.absent && small(raw.absent + "."),
    el("div", {class: "tools"}, el("label", {}, "Weight", which), find, out, said), graph,
    el("ul", {class: "legend"},
      [
        ["python", "Python"], ["native", "native"], ["call", "call"], ["work", "work of the GPU"],
        ["none", "no stack"]
      ].filter(([kind]) => nodes.some((node) => node.kind === kind))
        .map(([kind, name]) => keyed("f-" + kind, name))));
  draw();
  let drawn = graph.clientWidth;
  new ResizeObserver(() => {
    if (graph.clientWidth === drawn) return;
    drawn = graph.clientWidth;
    draw();
  }).observe(graph);
};
