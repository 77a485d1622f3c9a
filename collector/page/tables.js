/* SPDX-License-Identifier: Apache-2.0 */
/* All tables of the report. A table is drawn when it is opened. */
"use strict";

const plainTitles = {
  step_parts: "Time of the steps",
  slowest_step: "The slowest step and the median step",
  steps: "Each step"
};
/* Tables that may have rows without content, for example if there is no Python, no phase of
 * training, or only one host's clock. */
const saysSomething = {
  clocks: () => tableOf("clocks").rows.length > 1,
  calls_by_python_line: (row) => row.file !== null || row.range !== null,
  phases: (row) => row.name !== "other" && (row.host_ns > 0 || row.gpu_ns > 0)
};
const upper = (text) => text.startsWith("gpuprof") ? text : text[0].toUpperCase() + text.slice(1);

sections.tables = (box, tables) => {
  const filled = tables.filter((table) => table.rows.length &&
    (!saysSomething[table.key] || rowsOf(table.key).some(saysSomething[table.key])));
  if (!filled.length) return "The report has no rows.";
  add(box,
    el("p", {class: "lead"},
      "The tables of gpuprof report. Click a column to sort by it; type to search the texts."));
  for (const table of filled) {
    const inside = el("div"),
          title = upper(table.title || plainTitles[table.key] || table.key.replace(/_/g, " "));
    const rows = table.rows.length + table.left_out;
    const show = () => {
      if (inside.childElementCount) return;
      for (const note of [table.note, table.behind]) {
        if (note && note.trim()) add(inside, el("p", {class: "small"}, note.trim()));
      }
      add(inside, drawTable(table, {rows: 25}));
    };
    add(box,
      el("details", {id: "table-" + table.key, ontoggle: (event) => event.target.open && show()},
        el("summary", {}, title,
          el("span", {class: "small"}, rows === 1 ? "1 row" : `${count(rows)} rows`)),
        inside));
  }
};
