/* SPDX-License-Identifier: Apache-2.0 */
/* Durations of steps, how their time was spent, and how the chosen step differs. */

const COLUMNS_MAX = 300, ALIKE = .99;
const WAIT_NS = 1000; /* clocks of two processes agree only so well */

/* `data.steps` with details by process and place, the chosen step, and its listener. */
const steps = {};

function prepareSteps(raw) {
  steps.series = raw.processes.map(([process, median, list]) => ({
    process,
    median,
    durations: list.map(([, ns]) => ns),
    /* Duration without waits for other ranks; 0: not complete. */
    own: (i) => Math.max(0, list[i][1] - list[i][2]),
    number: (i) => list[i][0],
    details: new Map()
  }));
  const byProcess = new Map(steps.series.map((series) => [series.process, series]));
  for (const [process, place, begin, parts, kernels, operators, whom, wait] of raw.details) {
    const series = byProcess.get(process);
    if (series) series.details.set(place, {begin, parts, kernels, operators, whom, wait});
  }
}

const partsOf = (ns) => data.steps.parts.map(([name, title], i) => [title, "c-" + name, ns[i]]);

/* If there is no room for all steps, each column shows the longest of several. */
function columnsOf({durations}) {
  const width = Math.ceil(durations.length / COLUMNS_MAX), columns = [];
  durations.forEach((ns, i) => {
    const at = Math.floor(i / width);
    if (at === columns.length || Math.abs(ns) > Math.abs(durations[columns[at]])) columns[at] = i;
  });
  return {columns, width};
}

function drawSeries(series, chosen, choose) {
  const W = 1000, H = 180, {columns, width} = columnsOf(series), {durations, details} = series;
  const sorted = rising(columns.map((i) => Math.abs(durations[i])));
  /* The bar of an outlier is cut, so that the others stay visible. */
  const usual = sorted[Math.floor(.98 * (sorted.length - 1))] * 1.6;
  const top = Math.min(sorted[sorted.length - 1], usual) || 1, slot = W / columns.length;
  const y = (ns) => H * (1 - Math.min(1, ns / top)), wide = Math.max(.5, slot - (slot > 5 ? 1 : 0));
  const bars = columns.flatMap((step, k) => {
    const detail = details.get(step), ns = Math.abs(durations[step]);
    let end = 0;
    const parts = detail ? partsOf(detail.parts) :
      [["", durations[step] < 0 ? "c-idle" : "c-unsplit", ns]];
    const drawn = parts.filter((part) => part[2]).map(([, kind, part]) => {
      const low = y(end), high = y(end += part);
      return rect(k * slot, high, wide, Math.max(0, low - high), kind);
    });
    if (step === chosen)
      drawn.push(rect(k * slot, 0, wide, H, "chosen", {"vector-effect": "non-scaling-stroke"}));
    return drawn;
  });
  const drawing = svg("svg", {
    viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", height: H, "aria-hidden": "true"
  }, bars);
  const at = (event) => columns[partAt(event, drawing, columns.length)];
  const say = (i) => `step ${series.number(i)}: ${time(Math.abs(durations[i]))}` +
    (durations[i] < 0 ? ", not whole" : "");
  const last = durations.length - 1;
  const go = (to) => () => {
    choose(clamp(to, 0, last));
    document.getElementById("steps-chart").focus();
  };
  const slider = el("div", {
    class: "chart pick",
    id: "steps-chart",
    role: "slider",
    tabindex: 0,
    "aria-label": "Step",
    "aria-valuemin": 0,
    "aria-valuemax": last,
    "aria-valuenow": chosen,
    "aria-valuetext": say(chosen),
    onclick: (event) => choose(at(event)),
    onkeydown: onKeys({
      ArrowRight: go(chosen + 1), ArrowUp: go(chosen + 1), ArrowLeft: go(chosen - 1),
      ArrowDown: go(chosen - 1), PageUp: go(chosen + 10), PageDown: go(chosen - 10), Home: go(0),
      End: go(last)
    })
  }, drawing);
  const unsplit = columns.filter((step) => !details.has(step));
  return [
    tipped(slider, (event) => say(at(event))),
    el("div", {class: "tools small"}, el("span", {}, "step " + series.number(0)),
      el("span", {class: "end"}, `full height ${time(top)}`,
        width > 1 && `; each bar is the longest of ${width} steps`),
      last > 0 && el("span", {class: "end"}, "step " + series.number(last))),
    ...unsplit.length ? [el("ul", {class: "legend"},
      unsplit.some((step) => durations[step] < 0) &&
        keyed("c-idle", "not whole: its start or its end was not recorded"),
      unsplit.some((step) => durations[step] > 0) &&
        keyed("c-unsplit", "whole; this page has the parts of the longest steps"))] : []
  ];
}

/* Returns [process, place] of the step that waited least, among steps about as long as the longest.
 * Collectives make a step equally long on all ranks if one rank is late. */
function tellingStep() {
  const longest = most(steps.series, (s) => most(s.durations));
  let found = [steps.series[0].process, null], best = 0;
  for (const s of steps.series)
    s.durations.forEach((ns, i) => {
      if (ns < ALIKE * longest || s.own(i) <= best) return;
      found = [s.process, i];
      best = s.own(i);
    });
  return found;
}

/* Says which rank the process waited for in this step, and which ranks waited for it. */
function waitsText(series, step, {whom, wait}) {
  if (!data.steps.knows_waits) return "";
  const waits = steps.series.filter((s) => s.number(step) === series.number(step))
    .map((s) => s.details.get(step))
    .filter((other) => other && other.whom === series.process && other.wait >= WAIT_NS)
    .map((other) => other.wait);
  const others = waits.length ?
    `; ${counted(waits.length, "rank")} waited for it, up to ${time(most(waits))}` : "";
  return (whom < 0 || wait < WAIT_NS ? "; it waited for no other rank" :
    `; it waited for ${processName(whom)}, ${time(wait)}`) + others;
}

/* Returns rows [name, kind, this step, median step, difference, counts], the largest difference
 * first. */
function differences(mine, median) {
  const row = (name, kind, ns, of, n, m) => [name, kind, ns, of, ns - of, n, m];
  const named = (kind, list) => data.steps[list].map((name, i) => row(name, kind,
    mine[list][2 * i], median[list][2 * i], mine[list][2 * i + 1], median[list][2 * i + 1]));
  return [
    ...data.steps.parts.map(
      ([, title], i) => row(title, "part", mine.parts[i], median.parts[i], null, null)),
    ...named("kernel", "kernels"), ...named("operator", "operators")
  ].filter((it) => it[2] || it[3]).sort((one, other) => Math.abs(other[4]) - Math.abs(one[4]));
}

const differenceColumns = [
  ["what", "text"], ["kind", "text"], ["this step", "ns"], ["median", "ns"], ["difference", "ns"],
  ["count", "count"], ["median count", "count"]
];

function drawStep(series, step) {
  const ns = Math.abs(series.durations[step]), detail = series.details.get(step);
  const median = series.details.get(series.median), medianNs = series.durations[series.median];
  const panel = el("div", {class: "panel", id: "step"},
    el("h3", {"aria-live": "polite"},
      `Step ${series.number(step)} of ${processName(series.process)}: ${time(ns)}`,
      medianNs > 0 && `, ${(ns / medianNs).toFixed(2)} \u00d7 the median`));
  if (!detail)
    return add(panel, none(series.durations[step] < 0 ?
      "It is not whole: its start or its end was not recorded." :
      "This page has the parts of the longest steps; gpuprof report --table=steps has all."));
  const parts = partsOf(detail.parts);
  return add(panel,
    small(`begins ${time(detail.begin)} into the recording` + waitsText(series, step, detail)),
    bar(parts, ns), legend(parts, ns),
    median && step !== series.median && [
      h3(`Compared with the median, step ${series.number(series.median)} (${time(medianNs)})`),
      bar(partsOf(median.parts), Math.max(ns, medianNs), true),
      drawTable(made("Differences", differenceColumns, differences(detail, median)), {rows: 8})
    ]);
}

sections.steps = (box, raw) => {
  if (!raw.processes)
    return "No steps: call gpuprof_step() in each, record PyTorch with gpuprof run --pytorch, or " +
      "name ranges that are steps: --step-range.";
  prepareSteps(raw);
  const stat = (name) => time(rowsOf("step_stats").find((row) => row.name === name).duration_ns);
  const titles = new Map(raw.parts);
  const parts = rowsOf("step_parts").map(
    ({name, mean_ns}) => [titles.get(name), "c-" + name, mean_ns]);
  const whole = sum(parts, (part) => part[2]);
  const drawn = el("div");
  let series = steps.series[0];
  const who = el("select", {onchange: () => steps.choose(steps.series[who.value].process, null)},
    steps.series.map((s, i) => el("option", {value: i}, processName(s.process))));
  steps.choose = (process, step) => {
    series = steps.series.find((s) => s.process === process) || series;
    who.value = steps.series.indexOf(series);
    const longest = series.durations.indexOf(most(series.durations));
    const chosen = step === null ? Math.max(0, longest) : step;
    drawn.replaceChildren(...drawSeries(series, chosen, (i) => steps.choose(series.process, i)),
      drawStep(series, chosen));
    steps.chosen = [series.process, chosen];
    if (steps.listener) steps.listener(...steps.chosen);
  };
  const [definition, counts] = (tableOf("step_stats").note || "").split("\n");
  add(box,
    lead(`${counts}; ${definition}. Median ${stat("median")}, 95th percentile ${stat("p95")}, ` +
      `longest ${stat("slowest")}.`),
    h3("Mean time of a step"), bar(parts, whole), legend(parts, whole), h3("Step by step"),
    small("Choose a step with the pointer or the arrow keys to compare it with the median step " +
      "of its process."),
    steps.series.length > 1 &&
      el("div", {class: "tools"}, el("label", {}, "Process", who), raw.left_out > 0 &&
        el("span", {class: "end"}, `not in this page: ${count(raw.left_out)} of the processes`)),
    drawn);
  steps.choose(...tellingStep());
  return "";
};
