/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison: the verdict, each metric with its interval, differing facts, and kernels. */

const COVERAGE_MIN = .95, KERNEL_CHANGE_MIN = .001; /* of all kernels' time */
const SHARE_SEEN = .001;                            /* less is shown as 0 */
const unitWriters = {
  ns: time,
  bytes,
  mj: (mj) => scaled(mj / 1000, ["J", "kJ", "MJ", "GJ"], 1000),
  count: (n) => Number.isInteger(n) ? count(n) : n.toFixed(1)
};

function signed(share) {
  if (share >= 10) return `x ${(share + 1).toFixed(1)}`;
  const sign = Math.abs(share) < .0005 ? "" : share < 0 ? "\u2212" : "+";
  return sign + (100 * Math.abs(share)).toFixed(1) + " %";
}
/* A change is null if the old value is 0, or a side is not known. */
function changeOf(metric) {
  if (metric.change !== null) return signed(metric.change);
  return metric.before !== null && metric.now !== null ? "from 0" : "";
}
const hasInterval = (metric) => !metric.exact && metric.low !== null && metric.high !== null &&
  metric.coverage >= COVERAGE_MIN;
function intervalOf(metric) {
  if (metric.exact) return "exact";
  return hasInterval(metric) ? `${signed(metric.low)} to ${signed(metric.high)}` : "";
}
function seenFrom(metric) {
  if (metric.seen_from === null) return "none";
  return metric.exact && metric.seen_from === 0 ? "any" : percent(metric.seen_from);
}

/*
 * Draws the scale from -`limit` to +`limit`; right of the dashed line is worse. The scale is linear
 * around `threshold` and logarithmic farther out, so that everything fits.
 */
function drawInterval(metric, limit, threshold) {
  const W = 140, H = 18, unit = Math.max(threshold, SHARE_SEEN), change = metric.change;
  if (change === null) return null;
  const x = (share) => W / 2 +
    Math.sign(share) * Math.log1p(Math.abs(share) / unit) / Math.log1p(limit / unit) * (W / 2 - 2);
  const [low, high] = hasInterval(metric) ? [metric.low, metric.high] : [change, change];
  return chart(W, H, `${metric.text}: ${changeOf(metric)}, ${intervalOf(metric) || "no interval"}`,
    {class: "interval"},
    line(x(0), 0, x(0), H, "zero"), line(x(threshold), 0, x(threshold), H, "gate"),
    rect(x(low), 6, x(high) - x(low), 6, "c-other", {rx: 2}),
    rect(x(change) - 1.5, 2, 3, H - 4, metric.verdict === "worse" ? "bad" : "c-accent"));
}

const isOfSteps = (c) => [c.runs, c.against].map((runs) => runs[0].steps > 0);
const perWhat = (c) => isOfSteps(c).every(Boolean) ? "a step" : "a run";

function drawMetrics(c, compares) {
  const known = c.metrics.filter((metric) => metric.before !== null || metric.now !== null);
  const limit = Math.max(2 * c.gate, most(known, (metric) => most(
    [metric.change, ...hasInterval(metric) ? [metric.low, metric.high] : []], Math.abs)));
  const pairs = c.runs.length * c.against.length;
  const heads = [
    [perWhat(c)], ["before", "number"], ["now", "number"], ["change", "number"],
    [`to \u00b1${percent(limit)}`], ["95 % interval"], ["seen from", "number"], ["verdict"]
  ];
  const rows = known.map((metric) => {
    const kind = metric.verdict === "worse" && metric.gates ? "worse" : "";
    const write = (n) => n === null ? "" : unitWriters[metric.unit](n);
    return [
      ["", metric.text], ["number", write(metric.before)], ["number", write(metric.now)],
      [
        "number " + kind, changeOf(metric),
        metric.change !== null && metric.change_is && el("div", {class: "small"}, metric.change_is)
      ],
      ["", drawInterval(metric, limit, c.threshold)], ["word", intervalOf(metric)],
      ["number", seenFrom(metric)],
      [
        "verdict " + kind, metric.verdict, metric.why && ": " + metric.why,
        !metric.gates && " (does not gate)"
      ]
    ];
  });
  const shown = (list) => list.slice(0, compares ? 8 : 3);
  return [
    plainTable("Metrics", shown(heads), rows.map(shown)),
    compares && small("Bars longer than that are drawn on a logarithmic scale. ",
      pairs > 1 && `Change is the median over all ${count(pairs)} pairs of a run now and a run ` +
        "before (Hodges-Lehmann); it can differ from the change between the medians before and " +
        "now.")
  ];
}

function drawFacts(box, c) {
  const said = (runs, key) => [...new Set(runs.map((run) => run.facts[key]))];
  const rows = Object.keys(c.runs[0].facts)
    .map((key) => [key, said(c.against, key), said(c.runs, key)])
    .filter(([, before, now]) => new Set([...before, ...now]).size > 1)
    .map(([key, ...sides]) => [key.replace(/_/g, " "),
      ...sides.map((texts) => texts.filter((text) => text !== null).join("\n"))]);
  const columns = ["what", "before", "now"].map((name) => [name, "lines"]);
  addTable(box, "Differences between the runs", made("facts", columns, rows));
}

function drawKernels(box, c) {
  const all = (side) => sum(c.kernels, (row) => row[side].ns);
  const least = KERNEL_CHANGE_MIN * Math.max(all("before"), all("now"));
  const wordOf = ({kind, added_ns: added}) => kind !== "same" ? kind :
    Math.abs(added) < least ? "same" : added > 0 ? "longer" : "shorter";
  const namesOf = ({name, names}) => name + (names > 1 ? ` and ${names - 1} more` : "");
  const columns = [
    ["kernel", "lines"], ["what", "text"], ["before", "ns"], ["now", "ns"], ["change", "ns"],
    ["launches before", "rate"], ["launches now", "rate"], ["called before", "lines"],
    ["launched in", "lines"]
  ];
  const rows = c.kernels.map((row) => {
    const before = row.before.name === null ? null : namesOf(row.before);
    const now = row.now.name === null ? before : namesOf(row.now);
    return [
      now, wordOf(row), row.before.ns, row.now.ns, row.added_ns, row.before.count, row.now.count,
      before === now ? null : before, row.place
    ];
  });
  const words = grouped(rows, (row) => row[1]);
  add(box, h3(`Kernels, in ${perWhat(c)}`),
    small("They explain the change, but do not gate: ",
      Array.from(words, ([word, its]) => `${count(its.length)} ${word}`).join(", ") + "."),
    drawTable(made("kernels", columns, rows, c.kernel_rows - rows.length),
      {rows: 20, caption: "Kernels of both sides"}));
}

sections.compare = (box, c) => {
  const compares = c.result !== "not comparable";
  const side = (runs) => {
    const steps = sum(runs, (run) => run.steps);
    return counted(runs.length, "run") + (steps ? ` (${counted(steps, "step")})` : "");
  };
  add(box,
    el("p", {class: c.result === "worse" ? "hero worse" : "hero"}, c.says),
    lead(`${side(c.runs)} against ${side(c.against)}. The gate is ${percent(c.gate)}: a metric ` +
      `is worse if it grew by more than ${percent(c.threshold)}, the dashed line, and its ` +
      "interval is above 0."),
    c.differs.length > 0 &&
      alarm(el("b", {}, compares ? "Compared anyway" : "Not comparable"), items(c.differs)),
    c.notes.length > 0 && items(c.notes, {class: "small"}),
    (compares || new Set(isOfSteps(c)).size === 1) && drawMetrics(c, compares));
  if (compares && c.kernels.length) drawKernels(box, c);
  drawFacts(box, c);
};
