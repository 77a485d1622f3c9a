/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program hung: for each process its open calls with their stacks, and the unfinished
 * work of each stream. Before that, the collectives in which ranks wait, with all ranks by state.
 */

const HANG_PROCESSES = 16, HANG_CALLS = 8, HANG_COLLECTIVES = 8;
const HANG_NS = 1e9; /* a call open for a shorter time was just running */

/* Lists the frames, the innermost first. */
const stackOf = ({stack}) => Array.isArray(stack) && stack.length > 0 &&
  el("ol", {class: "stack"}, stack.map((frame) => el("li", {}, String(frame))));
const hung = (name, rows) => el("ul", {class: "hung", "aria-label": name}, rows);

function drawHungCall(call) {
  return el("li", {},
    el("p", {}, code(call.function), call.kernel && `: ${call.kernel}`, " ",
      b(call.lasted_ns ? `open for ${time(call.lasted_ns)}` : "just begun"),
      ` in thread ${call.thread || call.tid}`),
    stackOf(call) || (call.lasted_ns >= HANG_NS &&
      small("Its stack was not recorded: " +
        "gpuprof run --backtrace=launch,sync,copy,alloc records it.")));
}

function drawUnfinished(row) {
  return el("li", {},
    el("p", {}, code(row.kernel || row.function),
      row.launches > 1 && ` or another of ${count(row.launches)}`,
      row.stream === null ? ` on stream 0x${row.handle.toString(16)} ` :
        ` on stream ${row.stream} of GPU ${row.device} `,
      b(`launched ${time(row.age_ns)} ago`), `: ${row.state}`,
      row.operator && `, in ${row.operator}`),
    stackOf(row));
}

/* Classifies a rank: others wait for it, it waits, it is done, or unknown. */
const standings = {
  "not called": "late", "called something else": "late", called: "waits",
  "kernel not finished": "waits", finished: "done"
};
const standingOf = ({state}) => standings[state] || "unknown";
const rankOf = (row) => row.rank === null ? row.communicator_rank : row.rank;

function drawRank(row) {
  const rank = rankOf(row) === null ? "?" : String(rankOf(row));
  const title = `rank ${rank}: ${row.state}`;
  return el("li", {"data-standing": standingOf(row), "aria-label": title, title}, rank);
}

function drawCollective(rows) {
  const states = grouped(rows, (row) => row.state), [first] = rows;
  return el("li", {},
    el("p", {}, code(first.function), ` ${count(first.sequence)} of ${count(first.ranks)} ranks`,
      first.from !== null && `, the message from ${first.from} to ${first.to}`,
      first.waited_ns > 0 && [" ", b(`waited for ${time(first.waited_ns)}`)],
      el("small", {}, ` communicator ${first.communicator}`)),
    Array.from(states, ([state, its]) => el("div", {class: "states"}, el("span", {}, state),
      el("ul", {class: "ranks", "aria-label": state}, its.map(drawRank)))),
    rows.filter((row) => standingOf(row) === "late" && row.line).slice(0, HANG_CALLS)
      .map((row) => small(`Rank ${rankOf(row)}`,
        row.stack_ago_ns > row.last_call_ago_ns ? "'s newest stack, of an earlier call: " :
          " was at ",
        code(row.line))));
}

/* Draws the collectives; rows of one collective are neighbours. */
function drawCollectives(box) {
  const found = [...grouped(rowsOf("collectives"),
    (row) => [row.communicator, row.sequence, row.from, row.to].join(" ")).values()];
  const more = found.length - HANG_COLLECTIVES;
  if (found.length)
    add(box, h3("Collectives that never end, or differ"),
      hung("Pending collectives", found.slice(0, HANG_COLLECTIVES).map(drawCollective)),
      more > 0 && small(`${count(more)} more: see the table collectives below.`));
}

sections.hang = (box) => {
  const calls = rowsOf("open_calls"), unfinished = rowsOf("unfinished");
  drawCollectives(box);
  if (!calls.length && !unfinished.length)
    return rowsOf("collectives").length ? "" :
      "No call was open at the end, and no launch is known to be unfinished.";
  const endless = calls.filter((call) => call.lasted_ns >= HANG_NS).length;
  add(box,
    lead(endless > 0 && `${endless === 1 ? "A call" : `${count(endless)} calls`} never returned. `,
      "A hanging kernel has no record; the page names the likeliest kernel of each stream."));
  const processes =
    [...grouped([...calls, ...unfinished], (row) => row.host + " " + row.pid).values()];
  for (const rows of processes.slice(0, HANG_PROCESSES)) {
    const [row] = rows, open = rows.filter((its) => calls.includes(its)).slice(0, HANG_CALLS);
    const work = rows.filter((its) => unfinished.includes(its));
    add(box, h3(row.rank === null ? "" : `Rank ${row.rank}, `, `process ${row.pid}`,
        el("small", {}, ` on ${row.host}`)),
      open.length > 0 && hung("Open calls", open.map(drawHungCall)),
      work.length > 0 && [
        el("h4", {}, "Unfinished launches"), hung("Unfinished launches", work.map(drawUnfinished))
      ]);
  }
  const more = processes.length - HANG_PROCESSES;
  if (more > 0)
    add(box, small(`${count(more)} more process${more === 1 ? "" : "es"}: see the tables ` +
      "open_calls and unfinished below."));
  return "";
};
