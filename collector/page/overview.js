/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to the first questions: were the devices busy, if not why, and what is to be done. */
"use strict";

/* [name, class, ns] of all devices together: as the report's table has it, or else as the charts. */
function deviceTime() {
  const kinds = ["compute", "communication", "copies"];
  const sums = kinds.map((kind, i) => data.use.devices.reduce((sum, d) => sum + d[2 + i], 0));
  const parts = kinds.map((kind, i) => [kind, "c-" + kind, sums[i]]);
  const busy = sums.reduce((a, b) => a + b, 0);
  const whole = data.use.devices.length * 400 * data.use.bucket_ns;
  return {parts: [...parts, ["idle", "c-idle", Math.max(0, whole - busy)]], whole: Math.max(whole, busy), busy};
}

function drawFindings(box) {
  const table = tableOf("findings");
  if (!table) return;
  const found = rowsOf("findings");
  add(box, el("h3", {}, "What to look at first"));
  if (!found.length) {
    add(box, el("p", {class: "none"}, "Nothing stands out: no cost was above its threshold."));
    return;
  }
  add(box, el("ol", {class: "findings"}, found.map((f) => el("li", {},
    el("div", {class: "cost"}, el("b", {}, time(f.ns)), f.share !== null && el("small", {}, percent(f.share))),
    el("div", {}, el("h3", {}, written("text", f.title)), el("p", {}, written("text", f.place)))))));
}

sections.overview = (box, o) => {
  const {parts, whole, busy} = deviceTime();
  if (whole) {
    add(box, 
      el("p", {class: "hero"}, data.use.devices.length === 1 ? "The GPU worked " : "The GPUs worked ",
        el("em", {}, percent(busy / whole)), " of the time"),
      bar(parts, whole), legend(parts, whole));
  } else {
    add(box, el("p", {class: "hero"}, "No work of a GPU was recorded"),
      el("p", {class: "lead"}, "GPU rows " + o.gpu_rows + "."));
  }
  const steps = rowsOf("step_stats").find((row) => row.name === "median");
  const lost = o.losses.filter((loss) => loss[2] > 0).length;
  const facts = [["Wall time", time(o.wall_ns)], ["Processes", count(o.process_count)],
    ["GPUs", count(data.use.devices.length + data.use.left_out)],
    steps && ["Median step", time(steps.duration_ns)], steps && ["Steps", count(data.steps.whole)],
    ["Calls", (o.estimated ? "about " : "") + count(o.calls)], ["Kernels", count(o.kernels)],
    o.errors && ["Failed calls", count(o.errors)], ["Lost", lost ? "see the end" : "nothing"]];
  drawFindings(box);
  add(box, el("dl", {class: "facts"}, facts.filter(Boolean).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
};
