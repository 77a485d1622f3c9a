/* SPDX-License-Identifier: Apache-2.0 */
/* Durations of steps, how their time was spent, and how the chosen step differs. */
"use strict";

const COLUMNS_MAX = 300, ALIKE = .99;

/* `data.steps` with details by process and place, the chosen step, and its listeners. */
const steps = {
  listeners: []
};

function prepareSteps(raw) {
  steps.series = raw.processes.map(([process, median, numbers, durations, waits]) => ({
    process,
    median,
    durations,
    /* Duration without waits for other ranks; 0: not complete. */
    own: (i) => Math.max(0, durations[i] - (waits ? waits[i] : 0)),
    number: (i) => numbers.length > 1 ? numbers[i] : numbers[0] + i,
    details: new Map()
  }));
  const byProcess = new Map(steps.series.map((series) => [series.process, series]));
  for (const [process, place, begin, parts, kernels, operators, whom, wait] of raw.details) {
    const series = byProcess.get(process);
    if (series) series.details.set(place, {begin, parts, kernels, operators, whom, wait});
  }
}

const partsOf = (ns) =>
  data.steps.parts.map(([name, title], i) => [title, "c-" + name, ns[i]]);

/* If there is no room for all steps, each column shows the longest of several. */
function columnsOf(series) {
  const n = series.durations.length, width = Math.ceil(n / COLUMNS_MAX), columns = [];
  for (let from = 0; from < n; from += width) {
    let longest = from;
    for (let i = from; i < Math.min(n, from + width); i++)
      if (Math.abs(series.durations[i]) > Math.abs(series.durations[longest])) longest = i;
    columns.push(longest);
  }
  return {columns, width};
}

/* Returns a round number of at least `value`. */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map((x) => x * power).find((x) => x >= value * .999) ||
    value;
}

function drawSeries(series, chosen, choose) {
  const W = 1000, H = 180, {columns, width} = columnsOf(series);
  const sorted = columns.map((i) => Math.abs(series.durations[i])).sort((a, b) => a - b);
  /* The bar of an outlier is cut, so that the others stay visible. */
  const usual = sorted[Math.floor(.98 * (sorted.length - 1))] * 1.6;
  const top = ceiling(Math.min(sorted[sorted.length - 1], usual)), slot = W / columns.length;
  const y = (ns) => H * (1 - Math.min(1, ns / top));
  const drawing = svg("svg",
    {viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", height: H, "aria-hidden": "true"});
  columns.forEach((step, k) => {
    const detail = series.details.get(step), ns = Math.abs(series.durations[step]);
    const gap = slot > 5 ? 1 : 0, box = {x: k * slot, width: Math.max(.5, slot - gap)};
    let sum = 0;
    for (const [, kind, part] of detail ?
        partsOf(detail.parts) :
        [["", series.durations[step] < 0 ? "c-idle" : "c-unsplit", ns]]) {
      if (!part) continue;
      const low = y(sum), high = y(sum += part);
      drawing.append(svg("rect", {...box, y: high, height: Math.max(0, low - high), class: kind}));
    }
    if (step === chosen)
      drawing.append(svg(
        "rect", {...box, y: 0, height: H, class: "chosen", "vector-effect": "non-scaling-stroke"}));
  });
  const at = (event) => columns[partAt(event, drawing, columns.length)];
  const say = (i) => `step ${series.number(i)}: ${time(Math.abs(series.durations[i]))}` +
    (series.durations[i] < 0 ? ", not whole" : "");
  const last = series.durations.length - 1;
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
    onkeydown: (event) => {
      const to = {
        ArrowRight: chosen + 1,
        ArrowUp: chosen + 1,
        ArrowLeft: chosen - 1,
        ArrowDown: chosen - 1,
        PageUp: chosen + 10,
        PageDown: chosen - 10,
        Home: 0,
        End: last
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(clamp(to, 0, last));
      document.getElementById("steps-chart").focus();
    }
  },
    drawing);
  tipped(slider, (event) => say(at(event)));
  return [
    slider,
    el("div", {class: "tools small"}, el("span", {}, "step " + series.number(0)),
      el("span", {class: "end"},
        `full height ${time(top)}` +
          (width > 1 ? `; each bar is the longest of ${width} steps` : "")),
      last > 0 && el("span", {class: "end"}, "step " + series.number(last))),
    columns.some((step) => !series.details.has(step)) &&
      el("ul", {class: "legend"},
        columns.some((step) => series.durations[step] < 0) &&
          keyed("c-idle", "not whole: its start or its end was not recorded"),
        columns.some((step) => series.durations[step] > 0 && !series.details.has(step)) &&
          keyed("c-unsplit", "whole; this page has the parts of the longest steps"))
  ].filter(Boolean);
}

/* Returns [process, place] of the step that waited least, among steps about as long as the longest.
 * Collectives make a step equally long on all ranks if one rank is late. */
function tellingStep() {
  const longest =
    Math.max(...steps.series.map((s) => s.durations.reduce((a, b) => Math.max(a, b))));
  let found = [steps.series[0].process, null], most = 0;
  for (const s of steps.series)
    s.durations.forEach((ns, i) => {
      if (ns < ALIKE * longest || s.own(i) <= most) return;
      found = [s.process, i];
      most = s.own(i);
    });
  return found;
}

/* Clocks of two processes agree only so well. */
const WAIT_NS = 1000;

/* Says which rank the process waited for in this step, and which ranks waited for it. */
function waitsText(series, step, detail) {
  if (!data.steps.knows_waits) return "";
  const others =
    steps.series.filter((s) => s.number(step) === series.number(step) && s.details.has(step))
      .map((s) => s.details.get(step))
      .filter((other) => other.whom === series.process && other.wait >= WAIT_NS);
  const most = others.reduce((ns, other) => Math.max(ns, other.wait), 0);
  return (detail.whom < 0 || detail.wait < WAIT_NS ? "; it waited for no other rank" :
                            `; it waited for ${processName(detail.whom)}, ${time(detail.wait)}`) +
    (others.length ? `; ${counted(others.length, "rank")} waited for it, up to ${time(most)}` : "");
}

/* Returns rows [kind, name, this step, median step], the largest difference first. */
function differences(mine, median) {
  const rows = data.steps.parts.map(
    ([, title], i) => ["part", title, mine.parts[i], median.parts[i], null, null]);
  for (const kind of ["kernels", "operators"])
    data.steps[kind].forEach((name, i) => rows.push([
      kind.slice(0, -1), name, mine[kind][2 * i], median[kind][2 * i], mine[kind][2 * i + 1],
      median[kind][2 * i + 1]
    ]));
  return rows.filter((row) => row[2] || row[3])
    .map(([kind, name, a, b, n, m]) => [name, kind, a, b, a - b, n, m])
    .sort((a, b) => Math.abs(b[4]) - Math.abs(a[4]));
}

function drawStep(series, step) {
  const ns = Math.abs(series.durations[step]), detail = series.details.get(step);
  const median = series.details.get(series.median), medianNs = series.durations[series.median];
  const panel = el("div", {class: "panel", id: "step"},
    el("h3", {"aria-live": "polite"},
      `Step ${series.number(step)} of ${processName(series.process)}: ${time(ns)}` +
        (medianNs ? `, ${(ns / medianNs).toFixed(2)} \u00d7 the median` : "")));
  if (!detail) {
    add(panel,
      el("p", {class: "none"},
        series.durations[step] < 0 ?
          "It is not whole: its start or its end was not recorded." :
          "This page has the parts of the longest steps; gpuprof report --table=steps has all."));
    return panel;
  }
  const parts = partsOf(detail.parts);
  add(panel,
    el("p", {class: "small"},
      `begins ${time(detail.begin)} into the recording` + waitsText(series, step, detail)),
    bar(parts, ns), legend(parts, ns));
  if (median && step !== series.median) {
    add(panel,
      el("h3", {},
        `Compared with the median, step ${series.number(series.median)} (${time(medianNs)})`),
      bar(partsOf(median.parts), Math.max(ns, medianNs), true),
      drawTable(made("Differences",
                  [
                    ["what", "text"], ["kind", "text"], ["this step", "ns"], ["median", "ns"],
                    ["difference", "ns"], ["count", "count"], ["median count", "count"]
                  ],
                  differences(detail, median)),
        {rows: 8}));
  }
  return panel;
}

sections.steps = (box, raw) => {
  if (!raw.processes) {
    return "No steps: call gpuprof_step() in each, record PyTorch with gpuprof run --pytorch, or " +
      "name " +
      "ranges that are steps: --step-range.";
  }
  prepareSteps(raw);
  const split = rowsOf("step_parts");
  const stat = (name) => time(rowsOf("step_stats").find((row) => row.name === name).duration_ns);
  const whole = split.reduce((sum, part) => sum + part.mean_ns, 0);
  const titles = new Map(raw.parts);
  const parts =
    split.map((part) => [titles.get(part.name), "c-" + part.name, part.mean_ns]);
  const chart = el("div");
  let series = steps.series[0], chosen = 0;
  const who = el("select", {onchange: () => steps.choose(steps.series[who.value].process, null)},
    steps.series.map((s, i) => el("option", {value: i}, processName(s.process))));
  steps.choose = (process, step) => {
    series = steps.series.find((s) => s.process === process) || series;
    who.value = steps.series.indexOf(series);
    const lengths = series.durations;
    chosen = step === null ? lengths.indexOf(lengths.reduce((a, b) => Math.max(a, b), -1)) : step;
    chosen = Math.max(0, chosen);
    chart.replaceChildren(...drawSeries(series, chosen, (i) => steps.choose(series.process, i)),
      drawStep(series, chosen));
    steps.chosen = [series.process, chosen];
    steps.listeners.forEach((listener) => listener(...steps.chosen));
  };
  const [definition, counts] = (tableOf("step_stats").note || "").split("\n");
  add(box,
    el("p", {class: "lead"},
      `${counts}; ${definition}. Median ${stat("median")}, 95th percentile ${stat("p95")}, ` +
        `longest ${stat("slowest")}.`),
    el("h3", {}, "Mean time of a step"), bar(parts, whole), legend(parts, whole),
    el("h3", {}, "Step by step"),
    el("p", {class: "small"},
      "Choose a step with the pointer or the arrow keys to compare it with the median step of " +
        "its process."),
    steps.series.length > 1 &&
      el("div", {class: "tools"}, el("label", {}, "Process", who),
        raw.left_out > 0 &&
          el("span", {class: "end"}, `not in this page: ${count(raw.left_out)} of the processes`)),
    chart);
  steps.choose(...tellingStep());
};
