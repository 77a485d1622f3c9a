/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof's own cost, and what is missing from the sections above. */
"use strict";

/* Returns the lost ones, without those that CUPTI holds back because a kernel hangs. */
const missing = ([key, n]) => n - (key === "gpu_missing" ? data.overview.held_back : 0);

/* Blanks count and mean of costs with only a sum, for which JSON has 0. */
function blankCounts(cost) {
  const [count, total, mean] = ["count", "total_ns", "mean_ns"].map((key) => columnAt(cost, key));
  for (const row of cost.rows)
    if (!row[count] && row[total]) row[count] = row[mean] = null;
}

sections.cost = (box) => {
  const losses = data.overview.losses, held = data.overview.held_back;
  add(box, el("h3", {}, "Losses"));
  if (!losses.length)
    add(box, el("p", {class: "none"}, "Nothing was lost."));
  else
    add(box, drawTable(made("Losses",
      [["what", "text"], ["count", "count"], ["weight", "text"]],
      [
        ...losses.filter((loss) => missing(loss) > 0)
          .map((loss) => [(loss[3] ? "" : "processes: ") + loss[4], missing(loss),
                 loss[5] ? "" : ["nothing is missing", "missing", "damaged"][loss[2]]]),
        ...held > 0 ? [["launches whose records CUPTI had not delivered at the hang", held,
          "held back"]] :
                      []
      ])));
  const cost = tableOf("classes");
  if (!cost || !cost.rows.length) return "";
  blankCounts(cost);
  add(box, el("h3", {}, "gpuprof's own cost"),
    drawTable(cost, {rows: 20, columns: ["name", "share", "total_ns", "count", "mean_ns"]}));
  if (cost.note) add(box, el("p", {class: "small"}, cost.note.trim()));
  const given = data.tables.find((table) => table.name === "cost" && table.key === "steps");
  if (given && given.rows.length)
    add(box, el("h3", {}, "What was given up to keep --overhead-max"), drawTable(given));
  return "";
};
