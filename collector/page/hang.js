/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program hung: for each process its open calls with their stacks, and the unfinished
 * work of each stream. Before that, the collectives in which ranks wait, with all ranks by state.
 */
"use strict";

const HANG_PROCESSES = 16, HANG_CALLS = 8, HANG_COLLECTIVES = 8;
const HANG_NS = 1e9; /* a call open for a shorter time was just running */

/* Lists the frames, the innermost first. */
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
                 "Its stack was not recorded: " +
                 "gpuprof run --backtrace=launch,sync,copy,alloc records it."))));
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

/* Classifies a rank: others wait for it, it waits, it is done, or unknown. */
const standingOf = (state) => ["not called", "called something else"].includes(state) ? "late" :
  ["called", "kernel not finished"].includes(state)                                   ? "waits" :
  state === "finished"                                                                ? "done" :
                                                                                        "unknown";

function drawRank(row) {
  const rank = row.rank === null ? row.communicator_rank : row.rank;
  const says = `rank ${rank === null ? "?" : rank}: ${row.state}`;
  return el("li", {"data-standing": standingOf(row.state), "aria-label": says, title: says},
    rank === null ? "?" : String(rank));
}

function drawCollective(rows) {
  const states = grouped(rows, (row) => row.state), [first] = rows;
  return el("li", {},
    el("p", {}, el("code", {}, first.function),
      ` ${count(first.sequence)} of ${count(first.ranks)} ranks`,
      first.from !== null && `, the message from ${first.from} to ${first.to}`,
      first.waited_ns > 0 && " ",
      first.waited_ns > 0 && el("b", {}, `waited for ${time(first.waited_ns)}`),
      el("small", {}, ` communicator ${first.communicator}`)),
    Array.from(states, ([state, its]) => el("div", {class: "states"}, el("span", {}, state),
      el("ul", {class: "ranks", "aria-label": state}, its.map(drawRank)))),
    rows.filter((row) => standingOf(row.state) === "late" && row.line)
      .slice(0, HANG_CALLS)
      .map((row) => el("p", {class: "small"},
             `Rank ${row.rank === null ? row.communicator_rank : row.rank}` +
               (row.stack_ago_ns > row.last_call_ago_ns ?
                   "'s newest stack, of an earlier call: " :
                   " was at "),
             el("code", {}, row.line))));
}

/* Draws the collectives; rows of one collective are neighbours. */
function drawCollectives(box) {
  const found = grouped(rowsOf("collectives"),
    (row) => [row.communicator, row.sequence, row.from, row.to].join(" "));
  if (!found.size) return;
  add(box, el("h3", {}, "Collectives that never end, or differ"),
    el("ul", {class: "hung", "aria-label": "Pending collectives"},
      Array.from(found.values()).slice(0, HANG_COLLECTIVES).map(drawCollective)));
  if (found.size > HANG_COLLECTIVES)
    add(box, el("p", {class: "small"},
      `${count(found.size - HANG_COLLECTIVES)} more: see the table collectives below.`));
}

sections.hang = (box) => {
  const calls = rowsOf("open_calls"), unfinished = rowsOf("unfinished"), processes = new Map();
  drawCollectives(box);
  if (!calls.length && !unfinished.length && rowsOf("collectives").length) return "";
  if (!calls.length && !unfinished.length)
    return "No call was open at the end, and no launch is known to be unfinished.";
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
      hung ? `${hung === 1 ? "A call" : `${count(hung)} calls`} never returned. ` : "",
      "A hanging kernel has no record; the page names the likeliest kernel of each stream."));
  for (const {row, ...its} of [...processes.values()].slice(0, HANG_PROCESSES)) {
    add(box,
      el("h3", {}, (row.rank === null ? "" : `Rank ${row.rank}, `) + `process ${row.pid}`,
        el("small", {}, ` on ${row.host}`)),
      its.calls.length > 0 && el("ul", {class: "hung", "aria-label": "Open calls"},
        drawHungCalls(its.calls)),
      its.unfinished.length > 0 && el("h4", {}, "Unfinished launches"),
      its.unfinished.length > 0 && el("ul", {class: "hung", "aria-label": "Unfinished launches"},
        drawUnfinished(its.unfinished)));
  }
  const more = processes.size - HANG_PROCESSES;
  if (more > 0)
    add(box, el("p", {class: "small"},
      `${count(more)} more process${more === 1 ? "" : "es"}: see the tables open_calls and ` +
        "unfinished below."));
  return "";
};
