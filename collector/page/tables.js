/* SPDX-License-Identifier: Apache-2.0 */
/* All tables of the report. A table is drawn when it is opened. */
"use strict";

sections.tables = (box, tables) => {
  const filled = tables.filter((table) => table.rows.length);
  if (!filled.length) return "The report has no rows.";
  add(box, el("p", {class: "lead"}, "The same as gpuprof report prints. Columns sort; what is typed is looked for in the texts."));
  for (const table of filled) {
    const inside = el("div"), title = table.title || table.key.replace(/_/g, " ");
    const show = () => {
      if (inside.childElementCount) return;
      for (const note of [table.note, table.behind]) {
        if (note && note.trim()) add(inside, el("p", {class: "small"}, note.trim()));
      }
      add(inside, drawTable(table, {rows: 25}));
    };
    add(box, el("details", {id: "table-" + table.key, ontoggle: (event) => event.target.open && show()},
      el("summary", {}, title[0].toUpperCase() + title.slice(1),
        el("span", {class: "small"}, `${count(table.rows.length + table.left_out)} rows`)), inside));
  }
};
