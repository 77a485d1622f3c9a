/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph of calls: callers above callees; the width is the share. */
"use strict";

const FLAME_ROW = 20, NARROWEST = 2, FLAME_ROWS_MAX = 400;
const flameWeights =
  [["time on the host", time], ["time on the GPU", time], ["calls", count], ["bytes", bytes],
    ["CPU time of samples", time], ["time off the CPU", time], ["on and off the CPU", time]];
const ON_CPU = 4, OFF_CPU = 5;

function flameTree(raw) {
  const kinds =
    Object.fromEntries(Object.entries(raw.kinds).map(([name, number]) => [number, name]));
  const root = {label: "all", kind: "all", children: [], depth: 0, own: flameWeights.map(() => 0)};
  const nodes = [root];
  for (const [parent, kind, label, ...own] of raw.nodes) {
    const above = nodes[parent];
    const node = {
      label,
      kind: kinds[kind] || "other",
      parent: above,
      children: [],
      depth: above.depth + 1,
      own: flameWeights.map(
        (_, i) => i > OFF_CPU ? (own[ON_CPU] || 0) + (own[OFF_CPU] || 0) : own[i] || 0)
    };
    above.children.push(node);
    nodes.push(node);
  }
  for (let i = nodes.length - 1; i >= 0; i--) {
    nodes[i].total =
      nodes[i].own.map((own, w) => nodes[i].children.reduce((sum, c) => sum + c.total[w], own));
  }
  return {root, nodes};
}

sections.flame = (box, raw) => {
  if (!raw.nodes || !raw.nodes.length) {
    return raw.absent ?
      raw.absent + "." :
      "No stacks were recorded: gpuprof run --backtrace=launch,copy,alloc records them.";
  }
  const {root, nodes} = flameTree(raw);
  const weights = flameWeights.map(([text], i) => [i, text]).filter(([i]) => root.total[i] &&
    (i <= OFF_CPU || (root.total[ON_CPU] && root.total[OFF_CPU])));
  if (!weights.length) return "No call with a stack took any time.";
  let weight = weights.some(([i]) => i === 1) ? 1 : weights[0][0], zoomed = root, words = "",
      focused = null;
  const graph = el("div", {class: "flame", role: "tree", "aria-label": "Flame graph"});
  const said = el("span", {class: "end", "aria-live": "polite"});
  const out = el("button", {type: "button", onclick: () => zoom(root)}, "Zoom out");
  const search = el("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search the flame graph",
    oninput: () => {
      words = search.value.toLowerCase();
      draw();
    }
  });
  const text = (node) => `${node.label}\n${flameWeights[weight][1](node.total[weight])}, ${
    percent(node.total[weight] / root.total[weight])}`;
  const hits = (node) => words !== "" && node.label.toLowerCase().includes(words);

  /* Matches inside a match are not counted twice. */
  const found = (node) =>
    hits(node) ? node.total[weight] : node.children.reduce((sum, c) => sum + found(c), 0);

  function zoom(node) {
    zoomed = focused = node;
    draw();
    const again = graph.querySelector("button[tabindex='0']");
    if (again) again.focus({preventScroll: true});
  }
  function press(event, node) {
    const side = (by) => {
      const around = node.parent ? sorted(node.parent) : [node];
      return around[around.indexOf(node) + by];
    };
    const to = {
      ArrowUp: () => node.parent,
      ArrowDown: () => sorted(node)[0],
      ArrowRight: () => side(1),
      ArrowLeft: () => side(-1)
    }[event.key];
    if (event.key === "Escape") zoom(root);
    if (!to) return;
    event.preventDefault();
    const next = to();
    if (!next || !next.button || !next.button.isConnected) return;
    node.button.tabIndex = -1;
    next.button.tabIndex = 0;
    next.button.focus();
  }
  const sorted = (node) => node.children.filter((c) => c.total[weight] > 0)
                             .sort((a, b) => b.total[weight] - a.total[weight]);
  function draw() {
    const width = graph.clientWidth || 900;
    const buttons = [];
    let rows = 0;
    const put = (node, x, w, above) => {
      if (w < NARROWEST || node.depth >= FLAME_ROWS_MAX) return;
      rows = Math.max(rows, node.depth + 1);
      node.button = tipped(el("button", {
        type: "button",
        role: "treeitem",
        tabindex: -1,
        "aria-level": node.depth + 1,
        "aria-label": text(node).replace("\n", ": "),
        class: `f-${node.kind}${above ? " above" : ""}${hits(node) ? " hit" : ""}`,
        style: {left: x + "px", width: w + "px", top: node.depth * FLAME_ROW + "px"},
        onclick: () => zoom(node),
        onkeydown: (event) => press(event, node)
      },
                             w > 24 ? node.label : ""),
        () => text(node));
      buttons.push(node.button);
      let at = x;
      if (above) return;
      for (const child of sorted(node)) {
        const part = w * child.total[weight] / node.total[weight];
        put(child, at, part, false);
        at += part;
      }
    };
    const path = [];
    for (let node = zoomed.parent; node; node = node.parent) path.unshift(node);
    path.forEach((node) => put(node, 0, width, true));
    put(zoomed, 0, width, false);
    const first = focused && focused.button && buttons.includes(focused.button) ? focused.button :
                                                                                  zoomed.button;
    if (first) first.tabIndex = 0;
    graph.style.height = rows * FLAME_ROW + "px";
    graph.replaceChildren(...buttons);
    out.disabled = zoomed === root;
    said.textContent = words ? `found in ${percent(found(root) / root.total[weight])}` :
                               `${flameWeights[weight][1](root.total[weight])} in all`;
  }
  const change = (to) => {
    weight = to;
    if (!zoomed.total[weight]) zoomed = root;
    draw();
  };
  const processes = data.overview.process_count;
  add(box,
    el("p", {class: "lead"},
      "Callers are above what they called" +
        (processes > 1 ? `; ${count(processes)} processes are one graph` : "") +
        ". Click or press Enter to zoom, Escape to zoom out; arrow keys go from frame to frame." +
        (raw.left_out ?
            ` ${count(raw.left_out)} frames that are too narrow count for their callers.` :
            "")),
    raw.absent && el("p", {class: "small"}, raw.absent + "."),
    el("div", {class: "tools"}, choice("Weight", weights, weight, change), search, out, said),
    graph,
    el("ul", {class: "legend"},
      [
        ["python", "Python"], ["native", "native"], ["call", "call"],
        ["work", "work of the GPU"], ["none", "no stack"]
      ].filter(([kind]) => nodes.some((node) => node.kind === kind))
        .map(([kind, name]) => keyed("f-" + kind, name))));
  draw();
  let drawn = graph.clientWidth;
  new ResizeObserver(() => {
    if (graph.clientWidth !== drawn) {
      drawn = graph.clientWidth;
      draw();
    }
  }).observe(graph);
};
