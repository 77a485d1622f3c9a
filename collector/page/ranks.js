/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by rank, coloured by duration, and which rank waited for which. A slow rank shows as a row,
 * a slow moment as a column. */
"use strict";

const CELLS_ACROSS = 400, LABEL_HEIGHT = 14;

/* Returns the place of the longest step in each span, by series; -1: none is complete. Waits for
 * other ranks do not count: if one rank is late, all others wait. */
function cellsOf(series, across) {
  const longest = Math.max(...series.map((s) => s.durations.length));
  const width = Math.ceil(longest / across), columns = Math.ceil(longest / width);
  return {
    width,
    columns,
    rows: series.map((s) => {
      const row = new Int32Array(columns).fill(-1);
      s.durations.forEach((ns, i) => {
        const x = Math.floor(i / width);
        if (ns > 0 && (row[x] < 0 || s.own(i) > s.own(row[x]))) row[x] = i;
      });
      return row;
    })
  };
}

/* Blanks the mean of ranks without a complete step, for which JSON has 0. */
function blankSteps(ranks) {
  const [steps, mean] = ["steps", "step_mean_ns"].map((key) => columnAt(ranks, key));
  for (const row of ranks.rows)
    if (!row[steps]) row[steps] = row[mean] = null;
}

/* Draws the report's tables of ranks and collectives. */
function drawWaits(box) {
  const shown = [
    [
      "ranks", "Waits between ranks",
      [
        "rank", "job", "host", "steps", "step_mean_ns", "compute_ns", "communication_ns",
        "idle_share", "waits_ns", "late", "late_ns", "awaited_ns"
      ]
    ],
    [
      "arrivals", "Arrival of ranks at their collectives",
      [
        "collective", "ranks", "count", "skew_total_ns", "skew_max_ns", "rank", "last",
        "behind_ns", "cause", "where"
      ]
    ]
  ];
  const differing = ["job", "host", "steps"];
  for (const [key, title, columns] of shown) {
    const table = tableOf(key);
    if (table && table.rows.length)
      add(box, el("h3", {}, title),
        drawTable(table, {rows: 8, columns, differing, caption: title}));
    /* Says which collectives the table does not count, for example if ranks were left out. */
    if (table && key === "arrivals" && table.behind)
      add(box, el("p", {class: "small", id: "arrivals-missed"}, table.behind.trim()));
  }
}

sections.ranks = (box) => {
  const series = steps.series || [], ranks = tableOf("ranks");
  if (ranks) blankSteps(ranks);
  if (series.length > 1) drawSteps(box, series);
  if (ranks && ranks.rows.length > 1) drawWaits(box);
  return box.childElementCount > 1 ? "" :
                                     "Neither steps of several processes nor ranks are recorded.";
};

/* Labels the rows, or only the first and the last if there is no room for more. */
function rankLabels(series, height) {
  const each = height / series.length;
  const shown = each >= LABEL_HEIGHT ? series : [series[0], series[series.length - 1]];
  const size = each >= LABEL_HEIGHT ? each : LABEL_HEIGHT;
  return el("div", {class: "map-ranks small", style: {height: height + "px"}},
    shown.map((s) => el("span", {style: {height: size + "px", lineHeight: size + "px"}},
                processName(s.process))));
}

/* Labels the first and the last column. */
function stepLabels(series) {
  const longest = series.reduce((a, b) => b.durations.length > a.durations.length ? b : a);
  return el("div", {class: "tools small"}, el("span", {}, "step " + longest.number(0)),
    el("span", {class: "end"}, "step " + longest.number(longest.durations.length - 1)));
}

function drawSteps(box, series) {
  const {width, columns, rows} = cellsOf(series, CELLS_ACROSS);
  const own = (row, y) => Array.from(row, (place) => place < 0 ? -1 : series[y].own(place));
  const values = rows.map(own);
  const all = values.flatMap((row) => row.filter((ns) => ns >= 0)).sort((a, b) => a - b);
  const low = all[Math.floor(.02 * all.length)] || 0,
        high = all[Math.ceil(.98 * (all.length - 1))] || 1;
  const height =
    Math.max(series.length * 14 > 320 ? 320 : series.length * 14, Math.min(600, series.length * 2));
  const canvas =
    el("canvas", {width: columns, height: series.length, style: {height: height + "px"}});
  const marker = el("div", {class: "marker"});
  let at = [0, 0];
  const paint = () => {
    const context = canvas.getContext("2d"),
          image = context.createImageData(columns, series.length);
    const from = rgb(colour("wash")), to = rgb(colour("accent")), none = rgb(colour("ground"));
    values.forEach((row, y) => row.forEach((ns, x) => {
      const part = Math.max(0, Math.min(1, (ns - low) / (high - low || 1)));
      for (let c = 0; c < 3; c++)
        image.data[4 * (columns * y + x) + c] =
          ns >= 0 ? from[c] + part * (to[c] - from[c]) : none[c];
      image.data[4 * (columns * y + x) + 3] = 255;
    }));
    context.putImageData(image, 0, 0);
  };
  const said = (s, i) => i < 0 ? "not recorded" :
    time(s.durations[i]) +
      (s.own(i) < s.durations[i] ? `, without its waits ${time(s.own(i))}` : "");
  const say = ([x, y]) =>
    `${processName(series[y].process)}, step ${
      series[y].number(Math.min(x * width, series[y].durations.length - 1))}` +
    (width > 1 ? ` and ${width - 1} more, the longest` : "") +
    ": " + said(series[y], rows[y][x]);
  const place = ([x, y]) => {
    at = [x, y];
    Object.assign(marker.style, {
      left: 100 * x / columns + "%",
      width: `max(4px, ${100 / columns}%)`,
      top: height * y / series.length - 1 + "px",
      height: Math.max(4, height / series.length) + "px"
    });
    grid.setAttribute("aria-label", "Steps by ranks. " + say(at));
  };
  const cellAt = (event) =>
    [partAt(event, canvas, columns), partAt(event, canvas, series.length, true)];
  const choose = ([x, y]) => {
    const s = series[y], first = Math.min(x * width, s.durations.length - 1);
    steps.choose(s.process, rows[y][x] < 0 ? first : rows[y][x]);
  };
  const grid = tipped(el("div", {
    class: "chart pick",
    role: "img",
    tabindex: 0,
    onclick: (event) => choose(cellAt(event)),
    onkeydown: (event) => {
      const by = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0,
                    -1]}[event.key];
      if (event.key === "Enter") choose(at);
      if (!by) return;
      event.preventDefault();
      place([clamp(at[0] + by[0], 0, columns - 1), clamp(at[1] + by[1], 0, series.length - 1)]);
    }
  },
                        canvas, marker),
    (event) => say(cellAt(event)));
  paint();
  addEventListener("recolour", paint);
  const listen = (process, step) =>
    place([Math.floor(step / width), series.findIndex((s) => s.process === process)]);
  steps.listeners.push(listen);
  add(box,
    el("p", {class: "lead"},
      "A row for each process, a column for each step" +
        (width > 1 ? ` (the longest of ${width})` : "") +
        (data.steps.knows_waits ?
            ". Colour is a step's time without its waits for other ranks: a slow rank is a row " +
              "of strong colour, a slow step a column. " :
            ". A slow step is a column of strong colour, a slow rank a row, unless the others " +
              "wait for it in each step: then their rows are like its own. ") +
        "Click a cell to look into it above."),
    el("div", {class: "map"}, rankLabels(series, height), el("div", {}, grid, stepLabels(series))),
    el("p", {class: "small"}, time(low), el("span", {class: "scale", "aria-hidden": "true"}),
      time(high)));
  const half = (list) => [...list].filter((ns) => ns > 0).sort((a, b) => a - b);
  /* Only devices with work: others are listed if their counters were read. */
  const busy = new Map();
  for (const device of data.use.devices) {
    const share = busyShare(device);
    if (share > 0) busy.set(device[0], [...(busy.get(device[0]) || []), share]);
  }
  const mean = (list) => list ? list.reduce((a, b) => a + b) / list.length : null;
  add(box, el("h3", {}, "Rank by rank"),
    drawTable(made("Ranks",
      [
        ["process", "text"], ["steps", "count"], ["median step", "ns"], ["longest", "ns"],
        ["GPU busy", "share"]
      ],
      series.map((s) => {
        const sorted = half(s.durations);
        return [
          processName(s.process), sorted.length, sorted[Math.floor(sorted.length / 2)] || null,
          sorted[sorted.length - 1] || null, mean(busy.get(s.process))
        ];
      })),
      {rows: 8}));
  listen(...steps.chosen);
}
