/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison: the verdict, each metric with its interval, differing facts, and kernels. */
"use strict";

const COVERAGE_MIN = .95, KERNEL_CHANGE_MIN = .001; /* of all kernels' time */
const SHARE_SEEN = .001;                            /* less is shown as 0 */
const energy = (mj) => scaled(mj / 1000, ["J", "kJ", "MJ", "GJ"], 1000);
const half = (n) => Number.isInteger(n) ? count(n) : n.toFixed(1);
const unitWriters = {ns: time, bytes, mj: energy, count: half};

const signed = (share) => share >= 10 ?
  `x ${(share + 1).toFixed(1)}` :
  (Math.abs(share) < .0005 ? "" : share < 0 ? "\u2212" : "+") +
    (100 * Math.abs(share)).toFixed(1) + " %";
/* A change is null if the old value is 0, or a side is not known. */
const changeOf = (metric) => metric.change !== null      ? signed(metric.change) :
  metric.before !== null && metric.now !== null          ? "from 0" :
                                                           "";
const hasInterval = (metric) => !metric.exact && metric.low !== null && metric.high !== null &&
  metric.coverage >= COVERAGE_MIN;
const intervalOf = (metric) => metric.exact ? "exact" :
  hasInterval(metric) ? `${signed(metric.low)} to ${signed(metric.high)}` :
                        "";
const seenFrom = (metric) => metric.exact && metric.seen_from === 0 ? "any" :
  metric.seen_from === null                                         ? "none" :
                                                                      percent(metric.seen_from);

/*
 * Draws the scale from -`limit` to +`limit`; right of the dashed line is worse. The scale is linear
 * around `threshold` and logarithmic farther out, so that everything fits.
 */
function drawInterval(metric, limit, threshold) {
  const W = 140, H = 18;
  if (metric.change === null) return null;
  const unit = Math.max(threshold, SHARE_SEEN);
  const x = (share) => W / 2 +
    Math.sign(share) * Math.log1p(Math.abs(share) / unit) / Math.log1p(limit / unit) * (W / 2 - 2);
  const [low, high] = hasInterval(metric) ? [metric.low, metric.high] :
                                            [metric.change, metric.change];
  return chart(W, H,
    `${metric.text}: ${changeOf(metric)}, ${intervalOf(metric) || "no interval"}`,
    {class: "interval"},
    svg("line", {x1: x(0), x2: x(0), y1: 0, y2: H, class: "zero"}),
    svg("line", {x1: x(threshold), x2: x(threshold), y1: 0, y2: H, class: "gate"}),
    svg("rect", {x: x(low), y: 6, width: x(high) - x(low), height: 6, rx: 2, class: "c-other"}),
    svg("rect", {
      x: x(metric.change) - 1.5,
      y: 2,
      width: 3,
      height: H - 4,
      class: metric.verdict === "worse" ? "bad" : "c-accent"
    }));
}

const isOfSteps = (c) => [c.runs, c.against].map((runs) => runs[0].steps > 0);
const perWhat = (c) => isOfSteps(c).every(Boolean) ? "a step" : "a run";

function drawMetrics(c) {
  const known = c.metrics.filter((metric) => metric.before !== null || metric.now !== null);
  const compares = c.result !== "not comparable";
  const limit = Math.max(2 * c.gate,
    ...known
      .flatMap((metric) => [metric.change, ...hasInterval(metric) ? [metric.low, metric.high] : []])
      .map((share) => Math.abs(share || 0)));
  const heads = [
    [perWhat(c)], ["before", 1], ["now", 1], ["change", 1],
    [`to \u00b1${percent(limit)}`], ["95 % interval"], ["seen from", 1], ["verdict"]
  ].slice(0, compares ? 8 : 3);
  const write = (metric, n) => n === null ? "" : unitWriters[metric.unit](n);
  const pairs = c.runs.length * c.against.length;
  const about = compares && el("p", {class: "small"},
    "Bars longer than that are drawn on a logarithmic scale. " +
      (pairs > 1 ? `Change is the median over all ${count(pairs)} pairs of a run now and a run ` +
          "before (Hodges-Lehmann); it can differ from the change between the medians before " +
          "and now." :
                   ""));
  const table = el("div", {class: "scroll"},
    el("table", {"aria-label": "Metrics"},
      el("thead", {},
        el("tr", {}, heads.map(([text, isNumber]) => el("th",
                       {scope: "col", class: isNumber ? "number" : ""}, text)))),
      el("tbody", {}, known.map((metric) => {
        const kind = metric.verdict === "worse" && metric.gates ? "worse" : "";
        return el("tr", {}, el("th", {scope: "row"}, metric.text),
          [write(metric, metric.before), write(metric, metric.now)].map(
            (text) => el("td", {class: "number"}, text)),
          compares && [
            el("td", {class: "number " + kind}, changeOf(metric),
              metric.change !== null && metric.change_is &&
                el("div", {class: "small"}, metric.change_is)),
            el("td", {}, drawInterval(metric, limit, c.threshold)),
            el("td", {class: "word"}, intervalOf(metric)),
            el("td", {class: "number"}, seenFrom(metric)),
            el("td", {class: `verdict ${kind}`}, metric.verdict +
              (metric.why ? ": " + metric.why : "") + (metric.gates ? "" : " (does not gate)"))
          ]);
      }))));
  return [table, about];
}

/* Draws the facts that differ between runs. */
function drawFacts(box, c) {
  const said = (runs, key) => [...new Set(runs.map((run) => run.facts[key]))];
  const rows = Object.keys(c.runs[0].facts)
                 .map((key) => [key, said(c.against, key), said(c.runs, key)])
                 .filter(([, before, now]) => new Set([...before, ...now]).size > 1)
                 .map(([key, ...sides]) => [key.replace(/_/g, " "),
                        ...sides.map((texts) => texts.filter((text) => text !== null).join("\n"))]);
  if (!rows.length) return;
  const columns = ["what", "before", "now"].map((label) => [label, "lines"]);
  add(box, el("h3", {}, "Differences between the runs"), drawTable(made("facts", columns, rows)));
}

function kernelWord(row, least) {
  if (row.kind !== "same") return row.kind;
  return Math.abs(row.added_ns) < least ? "same" : row.added_ns > 0 ? "longer" : "shorter";
}

const namesOf = (side) => side.name + (side.names > 1 ? ` and ${side.names - 1} more` : "");

function drawKernels(box, c) {
  const all = (side) => c.kernels.reduce((sum, row) => sum + row[side].ns, 0);
  const least = KERNEL_CHANGE_MIN * Math.max(all("before"), all("now"));
  const columns = [
    ["kernel", "lines"], ["what", "text"], ["before", "ns"], ["now", "ns"], ["change", "ns"],
    ["launches before", "rate"], ["launches now", "rate"], ["called before", "lines"],
    ["launched in", "lines"]
  ];
  const rows = c.kernels.map((row) => {
    const before = row.before.name === null ? null : namesOf(row.before);
    const now = row.now.name === null ? before : namesOf(row.now);
    return [
      now, kernelWord(row, least), row.before.ns, row.now.ns, row.added_ns, row.before.count,
      row.now.count, before === now ? null : before, row.place
    ];
  });
  const words = grouped(rows, (row) => row[1]);
  add(box, el("h3", {}, `Kernels, in ${perWhat(c)}`),
    el("p", {class: "small"}, "They explain the change, but do not gate: ",
      Array.from(words, ([word, its]) => `${count(its.length)} ${word}`).join(", ") + "."),
    drawTable(made("kernels", columns, rows, c.kernel_rows - rows.length),
      {rows: 20, caption: "Kernels of both sides"}));
}

sections.compare = (box, c) => {
  const compares = c.result !== "not comparable";
  const steps = (runs) => runs.reduce((sum, run) => sum + run.steps, 0);
  const side = (runs) => counted(runs.length, "run") +
    (steps(runs) ? ` (${counted(steps(runs), "step")})` : "");
  add(box,
    el("p", {class: c.result === "worse" ? "hero worse" : "hero"}, c.says),
    el("p", {class: "lead"},
      `${side(c.runs)} against ${side(c.against)}. The gate is ${percent(c.gate)}: a metric ` +
        `is worse if it grew by more than ${percent(c.threshold)}, the dashed line, and its ` +
        "interval is above 0."),
    c.differs.length > 0 && el("div", {class: "alert", role: "note"},
      el("b", {}, compares ? "Compared anyway" : "Not comparable"),
      el("ul", {}, c.differs.map((text) => el("li", {}, text)))),
    c.notes.length > 0 && el("ul", {class: "small"}, c.notes.map((text) => el("li", {}, text))),
    (compares || new Set(isOfSteps(c)).size === 1) && drawMetrics(c));
  if (compares && c.kernels.length) drawKernels(box, c);
  drawFacts(box, c);
};
