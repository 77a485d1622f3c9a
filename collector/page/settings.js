/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of the processes: program, versions, settings, environment. */
"use strict";

sections.settings = (box, settings) => {
  const processes = data.overview.processes, all = data.overview.process_count;
  const pairs = (list) => el("dl", {class: "pairs"},
    list.flatMap(([key, value, alike]) => [el("dt", {}, key),
                   el("dd", {class: "code"}, value,
                     alike < all &&
                       el("small", {},
                         alike > 1 ? ` (${count(alike)} of ${count(all)} processes)` :
                                     " (the first process)"))]));
  const environment = settings.meta.filter(([key]) => key.startsWith("env."));
  add(box, el("p", {class: "lead"}, `This page was made by gpuprof ${settings.release}.`),
    pairs(settings.meta.filter(([key]) => !key.startsWith("env."))));
  if (environment.length)
    add(box, el("h3", {}, "Environment"),
      pairs(environment.map(([key, ...rest]) => [key.slice(4), ...rest])));
  add(box, el("h3", {}, "Processes"),
    drawTable(made("Processes", [["process", "text"], ["calls", "count"], ["GPU rows", "text"]],
                processes.map(([title, , calls, rows]) => [title, calls, rows]),
                all - processes.length),
      {rows: 8}));
};
