/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels with most time, and the distribution of their durations. */
"use strict";

/* Buckets are eighths of a power of two, so they have equal widths on a log scale. */
function drawDurations(name, list, W) {
  const H = 150,
        box = el("div", {class: "panel", id: "kernel"}, el("h3", {"aria-live": "polite"}, name));
  if (!list || !list.length) {
    add(box,
      el(
        "p", {class: "none"}, "This page has the times of the first 200 kernels only."));
    return box;
  }
  const log = (ns) => Math.log2(Math.max(1, ns));
  let from = log(list[0][0]), to = log(list[list.length - 1][1]);
  if (to - from < 1) [from, to] = [(from + to) / 2 - .5, (from + to) / 2 + .5];
  const most = Math.max(...list.map((b) => b[2])), all = list.reduce((sum, b) => sum + b[2], 0);
  const x = (ns) => (log(ns) - from) / (to - from) * W;
  const drawing = chart(W, H + 22,
    `Durations, ${count(all)} in all, from ${time(list[0][0])} to ${
      time(list[list.length - 1][1])}`,
    {style: {maxWidth: W + "px"}});
  for (const [begin, end, n] of list) {
    const h = Math.max(1.5, n / most * H);
    drawing.append(tippedMark(svg("rect", {
      x: x(begin) + .5,
      y: H - h,
      width: Math.max(1.5, x(end) - x(begin) - 1),
      height: h,
      rx: 1.5,
      class: "c-compute"
    }),
      `${time(begin)} to ${time(end)}: ${count(n)} of ${count(all)}`));
  }
  drawing.append(svg("line", {x1: 0, x2: W, y1: H + .5, y2: H + .5, class: "axis"}),
    ...axisTexts(W, H + 17, (part) => time(2 ** (from + part * (to - from)))));
  add(box,
    el("p", {class: "small"},
      `${all === 1 ? "1 instance" : count(all) + " instances"} by duration, on a scale of ` +
        "powers of two"),
    drawing);
  return box;
}
const tippedMark = (node, text) => tipped(node, () => text);

sections.kernels = (box, kernels) => {
  const table = tableOf("cuda_gpu_kern_sum");
  if (!table || !table.rows.length) return "No kernels were recorded.";
  const detail = el("div");
  const nameAt = columnAt(table, "name");
  /* Both have the same order. Names are no keys: the page cuts long ones. */
  const durations = new Map(kernels.durations.map(([, list], i) => [table.rows[i], list]));
  const choose = (row) => detail.replaceChildren(
    drawDurations(row[nameAt], durations.get(row), chartWidth(detail.clientWidth - 36, 760)));
  add(box, el("p", {class: "lead"}, "Choose a kernel to see how its times are distributed."),
    drawTable(table, {
      rows: 10,
      choose,
      columns:
        ["name", "share", "total_ns", "instances", "mean_ns", "median_ns", "p95_ns", "max_ns"]
    }),
    detail);
  choose(table.rows[0]);
};
