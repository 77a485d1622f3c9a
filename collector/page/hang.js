/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program hung: for each process its open calls with their stacks, and what each stream
 * had before it that had not finished.
 */
"use strict";

const HANG_PROCESSES = 16, HANG_CALLS = 8;
const HANG_NS = 1e9; /* a call that has been open for less was only under way */

/* Frames, innermost first; the first of them is the line that is looked for. */
const stackOf = (row) => Array.isArray(row.stack) && row.stack.length > 0 ?
  el("ol", {class: "stack"}, row.stack.map((frame) => el("li", {}, String(frame)))) :
  null;

function drawHungCalls(calls) {
  return calls.slice(0, HANG_CALLS)
    .map((call) => el("li", {},
           el("p", {}, el("code", {}, call.function), call.kernel && `: ${call.kernel}`, " ",
             el("b", {}, call.lasted_ns ? `open for ${time(call.lasted_ns)}` : "just begun"),
             ` in thread ${call.thread || call.tid}`),
           stackOf(call) ||
             (call.lasted_ns >= HANG_NS &&
               el("p", {class: "small"},
                 "Its stack is not known: gpuprof run --backtrace=sync,copy,alloc takes it."))));
}

function drawUnfinished(rows) {
  return rows.map((row) => el("li", {},
    el("p", {}, el("code", {}, row.kernel || row.function),
      row.launches > 1 && ` or another of ${count(row.launches)}`,
      row.stream === null ? ` on stream 0x${row.handle.toString(16)} ` :
                            ` on stream ${row.stream} of GPU ${row.device} `,
      el("b", {}, `launched ${time(row.age_ns)} ago`), `: ${row.state}`,
      row.operator && `, in ${row.operator}`),
    stackOf(row)));
}

sections.hang = (box) => {
  const calls = rowsOf("open_calls"), unfinished = rowsOf("unfinished"), processes = new Map();
  if (!calls.length && !unfinished.length)
    return "No call was open at the end, and nothing that was launched is known to be unfinished.";
  for (const [kind, rows] of [["calls", calls], ["unfinished", unfinished]]) {
    for (const row of rows) {
      const key = row.host + " " + row.pid;
      if (!processes.has(key)) processes.set(key, {row, calls: [], unfinished: []});
      processes.get(key)[kind].push(row);
    }
  }
  const hung = calls.filter((call) => call.lasted_ns >= HANG_NS).length;
  add(box,
    el("p", {class: "lead"},
      hung ? `${hung === 1 ? "A call" : `${count(hung)} calls`} did not return. ` : "",
      "A kernel that hangs has no record of its own: of each stream the likeliest is named."));
  for (const {row, ...its} of [...processes.values()].slice(0, HANG_PROCESSES)) {
    add(box,
      el("h3", {}, (row.rank === null ? "" : `Rank ${row.rank}, `) + `process ${row.pid}`,
        el("small", {}, ` on ${row.host}`)),
      its.calls.length > 0 && el("ul", {class: "hung", "aria-label": "Open calls"},
        drawHungCalls(its.calls)),
      its.unfinished.length > 0 && el("h4", {}, "Launched, not finished"),
      its.unfinished.length > 0 && el("ul", {class: "hung", "aria-label": "Launched, not finished"},
        drawUnfinished(its.unfinished)));
  }
  const more = processes.size - HANG_PROCESSES;
  if (more > 0)
    add(box, el("p", {class: "small"},
      `${count(more)} more processes: see the tables open_calls and unfinished below.`));
  return "";
};
