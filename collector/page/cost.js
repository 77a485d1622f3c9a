/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof's own cost, and what is missing from the sections above. */

/* Returns the lost ones, without those that CUPTI holds back because a kernel hangs. */
const missing = ([key, n]) => n - (key === "gpu_missing" ? data.overview.held_back : 0);

sections.cost = (box) => {
  const {losses, held_back: held} = data.overview;
  const weights = ["nothing is missing", "missing", "damaged"];
  const rows = losses.filter((loss) => missing(loss) > 0).map((loss) => {
    const [, , weight, isCount, text, leavesOut] = loss;
    return [(isCount ? "" : "processes: ") + text, missing(loss), leavesOut ? "" : weights[weight]];
  });
  if (held > 0)
    rows.push(["launches whose records CUPTI had not delivered at the hang", held, "held back"]);
  add(box, h3("Losses"),
    losses.length ?
      drawTable(made("Losses", [["what", "text"], ["count", "count"], ["weight", "text"]], rows)) :
      none("Nothing was lost."));
  const cost = tableOf("classes");
  if (!cost || !cost.rows.length) return;
  const total = columnAt(cost, "total_ns");
  blank(cost, "count", "mean_ns", (row) => row[total]); /* only the sum is known */
  addTable(box, "gpuprof's own cost", cost,
    {rows: 20, columns: ["name", "share", "total_ns", "count", "mean_ns"]});
  if (cost.note) add(box, small(cost.note.trim()));
  addTable(box, "What was given up to keep --overhead-max",
    data.tables.find((table) => table.name === "cost" && table.key === "steps"));
};
