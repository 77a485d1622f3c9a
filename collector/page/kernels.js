/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels with most time, and the distribution of their durations. */

/* Buckets are eighths of a power of two, so they have equal widths on a log scale. */
function drawDurations(name, list, W) {
  const H = 150, log = (ns) => Math.log2(Math.max(1, ns));
  const box = el("div", {class: "panel", id: "kernel"}, el("h3", {"aria-live": "polite"}, name));
  if (!list || !list.length)
    return add(box, none("This page has the times of the first 200 kernels only."));
  const first = list[0][0], last = list[list.length - 1][1];
  const middle = (log(first) + log(last)) / 2, half = Math.max(.5, (log(last) - log(first)) / 2);
  const highest = most(list, ([, , n]) => n), all = sum(list, ([, , n]) => n);
  const x = (ns) => (log(ns) - middle + half) / (2 * half) * W;
  const drawing = chart(W, H + 22,
    `Durations, ${count(all)} in all, from ${time(first)} to ${time(last)}`,
    {style: {maxWidth: W + "px"}},
    list.map(([begin, end, n]) => {
      const h = Math.max(1.5, n / highest * H), width = Math.max(1.5, x(end) - x(begin) - 1);
      return tipped(rect(x(begin) + .5, H - h, width, h, "c-compute", {rx: 1.5}),
        () => `${time(begin)} to ${time(end)}: ${count(n)} of ${count(all)}`);
    }),
    line(0, H + .5, W, H + .5, "axis"),
    axisTexts(W, H + 17, (part) => time(2 ** (middle + (2 * part - 1) * half))));
  return add(box,
    small(`${counted(all, "instance")} by duration, on a scale of powers of two`), drawing);
}

sections.kernels = (box, kernels) => {
  const table = tableOf("cuda_gpu_kern_sum");
  if (!table || !table.rows.length) return "No kernels were recorded.";
  const detail = el("div");
  const nameAt = columnAt(table, "name");
  /* Both have the same order. Names are no keys: the page cuts long ones. */
  const durations = new Map(kernels.durations.map(([, list], i) => [table.rows[i], list]));
  const choose = (row) => detail.replaceChildren(
    drawDurations(row[nameAt], durations.get(row), clamp(detail.clientWidth - 36, 240, 760)));
  const columns =
    ["name", "share", "total_ns", "instances", "mean_ns", "median_ns", "p95_ns", "max_ns"];
  add(box, lead("Choose a kernel to see how its times are distributed."),
    drawTable(table, {rows: 10, choose, columns}), detail);
  choose(table.rows[0]);
};
