/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of the processes: program, versions, settings, environment. */

sections.settings = (box, {meta, release}) => {
  const processes = data.overview.processes, all = data.overview.process_count;
  const others = (alike) => alike < all && el("small", {}, alike > 1 ?
    ` (${count(alike)} of ${count(all)} processes)` : " (the first process)");
  const pairs = (list) => el("dl", {class: "pairs"}, list.flatMap(([key, value, alike]) =>
    [el("dt", {}, key.replace(/^env\./, "")), el("dd", {class: "code"}, value, others(alike))]));
  const environment = meta.filter(([key]) => key.startsWith("env."));
  add(box, lead(`This page was made by gpuprof ${release}.`),
    pairs(meta.filter(([key]) => !key.startsWith("env."))),
    environment.length > 0 && [h3("Environment"), pairs(environment)]);
  addTable(box, "Processes",
    made("Processes", [["process", "text"], ["calls", "count"], ["GPU rows", "text"]],
      processes.map(([title, , calls, rows]) => [title, calls, rows]), all - processes.length),
    {rows: 8});
};
