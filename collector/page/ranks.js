/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by rank, coloured by duration, and which rank waited for which. A slow rank shows as a row,
 * a slow moment as a column. */

const CELLS_ACROSS = 400, LABEL_HEIGHT = 14;

/* Returns the place of the longest step in each span, by series; -1: none is complete. Waits for
 * other ranks do not count: if one rank is late, all others wait. */
function cellsOf(series) {
  const longest = most(series, (s) => s.durations.length);
  const width = Math.ceil(longest / CELLS_ACROSS), columns = Math.ceil(longest / width);
  const rows = series.map((s) => {
    const row = new Array(columns).fill(-1);
    s.durations.forEach((ns, i) => {
      const x = Math.floor(i / width);
      if (ns > 0 && (row[x] < 0 || s.own(i) > s.own(row[x]))) row[x] = i;
    });
    return row;
  });
  return {width, columns, rows};
}

const rankColumns = [
  "rank", "job", "host", "steps", "step_mean_ns", "compute_ns", "communication_ns", "idle_share",
  "waits_ns", "late", "late_ns", "awaited_ns"
];
const arrivalColumns = [
  "collective", "ranks", "count", "skew_total_ns", "skew_max_ns", "rank", "last", "behind_ns",
  "cause", "where"
];

sections.ranks = (box) => {
  const series = steps.series || [], ranks = tableOf("ranks"), arrivals = tableOf("arrivals");
  if (ranks) blank(ranks, "steps", "step_mean_ns");
  if (series.length > 1) drawSteps(box, series);
  if (ranks && ranks.rows.length > 1) {
    const how = {rows: 8, differing: ["job", "host", "steps"]};
    addTable(box, "Waits between ranks", ranks, {...how, columns: rankColumns});
    addTable(box, "Arrival of ranks at their collectives", arrivals,
      {...how, columns: arrivalColumns});
    /* Says which collectives the table does not count, for example if ranks were left out. */
    if (arrivals && arrivals.behind)
      add(box, el("p", {class: "small", id: "arrivals-missed"}, arrivals.behind.trim()));
  }
  return box.childElementCount > 1 ? "" :
    "Neither steps of several processes nor ranks are recorded.";
};

/* Labels the rows, or only the first and the last if there is no room for more. */
function rankLabels(series, height) {
  const isRoomy = height / series.length >= LABEL_HEIGHT;
  const size = (isRoomy ? height / series.length : LABEL_HEIGHT) + "px";
  const shown = isRoomy ? series : [series[0], series[series.length - 1]];
  return el("div", {class: "map-ranks small", style: {height: height + "px"}}, shown.map(
    (s) => el("span", {style: {height: size, lineHeight: size}}, processName(s.process))));
}

/* Labels the first and the last column. */
function stepLabels(series) {
  const longest = series.reduce((s, other) =>
    other.durations.length > s.durations.length ? other : s);
  return el("div", {class: "tools small"}, el("span", {}, "step " + longest.number(0)),
    el("span", {class: "end"}, "step " + longest.number(longest.durations.length - 1)));
}

function drawSteps(box, series) {
  const {width, columns, rows} = cellsOf(series);
  const values = rows.map((row, y) => row.map((place) => place < 0 ? -1 : series[y].own(place)));
  const all = rising(values.flat().filter((ns) => ns >= 0));
  const low = all[Math.floor(.02 * all.length)] || 0;
  const high = all[Math.ceil(.98 * (all.length - 1))] || 1;
  const height = Math.max(Math.min(320, series.length * 14), Math.min(600, series.length * 2));
  const firstOf = (x, y) => Math.min(x * width, series[y].durations.length - 1);
  const said = (s, i) => i < 0 ? "not recorded" : time(s.durations[i]) +
    (s.own(i) < s.durations[i] ? `, without its waits ${time(s.own(i))}` : "");
  const [grid, place] = cellMap("Steps by ranks", columns, series.length, height,
    ["ground", "wash", "accent"], (x, y) => {
      const part = clamp((values[y][x] - low) / (high - low || 1), 0, 1);
      return values[y][x] < 0 ? [1, 0, 0] : [0, 1 - part, part];
    },
    (x, y) => `${processName(series[y].process)}, step ${series[y].number(firstOf(x, y))}` +
      (width > 1 ? ` and ${width - 1} more, the longest` : "") +
      ": " + said(series[y], rows[y][x]),
    (x, y) => steps.choose(series[y].process, rows[y][x] < 0 ? firstOf(x, y) : rows[y][x]));
  steps.listener = (process, step) =>
    place(Math.floor(step / width), series.findIndex((s) => s.process === process));
  add(box,
    lead("A row for each process, a column for each step",
      width > 1 && ` (the longest of ${width})`,
      data.steps.knows_waits ?
        ". Colour is a step's time without its waits for other ranks: a slow rank is a row of " +
          "strong colour, a slow step a column. " :
        ". A slow step is a column of strong colour, a slow rank a row, unless the others wait " +
          "for it in each step: then their rows are like its own. ",
      "Click a cell to look into it above."),
    el("div", {class: "map"}, rankLabels(series, height), el("div", {}, grid, stepLabels(series))),
    small(time(low), el("span", {class: "scale", "aria-hidden": "true"}), time(high)));
  steps.listener(...steps.chosen);
}
