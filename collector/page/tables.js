/* SPDX-License-Identifier: Apache-2.0 */
/* All tables of the report. A table is drawn when it is opened. */

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

function drawDetails(table) {
  const {key, note, behind} = table, inside = el("div");
  const title = upper(table.title || plainTitles[key] || key.replace(/_/g, " "));
  const show = () => {
    if (inside.childElementCount) return;
    const notes = [note, behind].filter((text) => text && text.trim());
    add(inside, notes.map((text) => small(text.trim())), drawTable(table, {rows: 25}));
  };
  return el("details", {id: "table-" + key, ontoggle: (event) => event.target.open && show()},
    el("summary", {}, title,
      el("span", {class: "small"}, counted(table.rows.length + table.left_out, "row"))),
    inside);
}

sections.tables = (box, tables) => {
  const filled = tables.filter((table) => table.rows.length &&
    (!saysSomething[table.key] || rowsOf(table.key).some(saysSomething[table.key])));
  if (!filled.length) return "The report has no rows.";
  add(box,
    lead("The tables of gpuprof report. Click a column to sort by it; type to search the texts."),
    filled.map(drawDetails));
  return "";
};
