/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the first questions: were the devices busy, if not why, and what to do. */

const causeTexts = {
  launch: "launching work",
  host: "the program's own code",
  waiting: "the program waited",
  preempted: "other processes had the CPUs",
  sync: "synchronisation",
  copy: "blocking copies",
  loader: "data loading",
  communication: "waiting for other ranks",
  capture: "capture, loading, compilation",
  nothing: "nothing submitted",
};
const CAUSES_SHOWN = 6, PLACES_SHOWN = 3, CALLS_SHOWN = 5;
const START_UP_MIN = .0005; /* of the time: less is shown as 0 */

/* Returns [name, class, ns] for all devices together: recorded time after start-up. */
function deviceTime() {
  const rows = rowsOf("gpu_time"), all = (key) => sum(rows, (row) => row[key]);
  const startUp = all("idle_start_up_ns"), stopped = all("stopped_ns"), window = all("window_ns");
  const parts = ["compute", "communication", "copies", "idle"].map(
    (kind) => [kind, "c-" + kind, all(kind + "_ns") - (kind === "idle" ? startUp : 0)]);
  parts.push(["other work", "c-none", all("other_ns")]); /* not in the selection */
  return {
    parts,
    whole: window - startUp - stopped,
    of: (startUp > START_UP_MIN * window ? " after start-up" : "") +
      (stopped ? ", as far as recorded" : ""),
    recorded: stopped && 1 - stopped / window,
    busy: sum(parts.slice(0, 3), ([, , ns]) => ns)
  };
}

function processOf(row) {
  if (row.rank !== null) return `rank ${row.rank}`;
  return data.overview.process_count > 1 ? `process ${row.pid}` : null;
}

function drawEvidence(rows) {
  if (!Array.isArray(rows) || !rows.length) return null;
  const heads =
    rows[0].bytes ? ["memory", "count", "peak at"] : ["time", "count", "longest began at"];
  return plainTable("Evidence", [["where"], ...heads.map((head) => [head, "number"])],
    rows.map((row) => [
      [
        "text", row.name, row.where && row.where !== row.name && ": " + row.where,
        row.work_share !== undefined &&
          `, by a thread that launches ${percent(row.work_share)} of the work`
      ],
      ["number", row.bytes ? bytes(row.bytes) : time(row.ns)], ["number", count(row.count)],
      ["number", row.at_ns ? time(row.at_ns) : "the start"]
    ]));
}

function drawFinding(f) {
  /* The base of a share, if it is not the time after start-up. */
  const of = f.bytes ? " of the peak" : f.id === "start-up" ? " of all the time" : "";
  /* A hanging call has no device. */
  const whose = [processOf(f), f.device !== null && `GPU ${f.device}`].filter(Boolean).join(", ");
  return el("li", {id: "finding-" + f.id},
    el("div", {class: "cost"}, b(f.bytes ? bytes(f.bytes) : time(f.ns)),
      el("small", {}, f.share !== null && percent(f.share) + of)),
    el("div", {}, h3(f.title),
      small(whose, f.devices > 1 && ` and ${count(f.devices - 1)} more`), el("p", {}, f.advice),
      drawEvidence(f.evidence), f.next && el("code", {class: "next"}, f.next)));
}

function drawFindings(box) {
  const found = rowsOf("findings");
  if (!found.length && !rowsOf("gpu_time").length) return;
  add(box, h3("Findings: what to fix first"),
    found.length ? [
      el("ol", {class: "findings"}, found.map(drawFinding)),
      small("Paths in commands are from the folder in which this page was made.")
    ] : none("Nothing costs enough to be a finding (most need 5% of the time and 50 ms). " +
      "Idle time with the cause waiting or preempted is never one."));
}

/* Returns a few places as [place, ns], and the sum of the rest. */
function placesOf(places) {
  const sorted = [...places].sort((one, other) => other[1] - one[1]);
  const rest = sorted.length > PLACES_SHOWN + 1 ? sorted.splice(PLACES_SHOWN) : [];
  if (rest.length) sorted.push([`${count(rest.length)} more places`, sum(rest, ([, ns]) => ns)]);
  return sorted;
}

/* Draws idle time by cause as a share of the time after start-up, and each cause's top places. */
function drawIdle(box, whole) {
  const host = rowsOf("idle_host").map((row) => ({...row, place: `${row.did}: ${row.place}`}));
  const split = new Set(host.map((row) => row.cause));
  split.delete("unknown"), split.delete("nothing"); // only partly split
  const rows = [
    ...rowsOf("idle").filter((row) => !split.has(row.cause)),
    ...host.filter((row) => split.has(row.cause))
  ].filter((row) => row.cause !== "start-up");
  if (!rows.length) return;
  const causes = Array.from(grouped(rows, (row) => row.cause), ([cause, its]) => ({
    name: causeTexts[cause] || cause,
    ns: sum(its, (row) => row.total_ns),
    places: placesOf(its.map((row) => [row.place || "", row.total_ns]))
  })).sort((one, other) => other.ns - one.ns);
  const longest = causes[0].ns, rest = causes.splice(CAUSES_SHOWN);
  if (rest.length) causes.push({name: "other causes", ns: sum(rest, ({ns}) => ns), places: []});
  add(box, h3("Idle time by cause"),
    el("ul", {class: "causes"}, causes.map(({name, ns, places}) => el("li", {},
      el("span", {}, name),
      el("div", {class: "bar thin", "aria-hidden": "true"},
        el("span", {class: "c-accent", style: {width: 100 * ns / longest + "%"}})),
      el("b", {class: "number"}, time(ns)), el("span", {class: "number soft"}, percent(ns / whole)),
      el("div", {}, places.map(([place, of]) => el("div", {class: "where", title: place},
        places.length > 1 && el("span", {class: "number"}, time(of)), " ", place)))))));
}

/* Draws hanging calls and missing ranks before all numbers. */
function drawOpen(box, collective) {
  const open = rowsOf("open_calls");
  if (!open.length && !collective) return;
  const whereOf = (call) =>
    [processOf(call), call.thread || "thread " + call.tid].filter(Boolean).join(", ");
  add(box,
    alarm(collective && el("p", {}, b(collective)),
      b(open.length === 1 ? "A call never returned" :
        open.length > 1 && `${count(open.length)} calls never returned`),
      items(open.slice(0, CALLS_SHOWN).map((call) => [
        code(call.function), call.lasted_ns ? ` for ${time(call.lasted_ns)}` : " just begun",
        `, in ${whereOf(call)}`, call.kernel && `: ${call.kernel}`, call.line && `, at ${call.line}`
      ])),
      el("a", {href: "#hang"}, "What they wait for")));
}

/* Draws the last failed allocation, which is often the end of the program. */
function drawShortage(box) {
  const last = rowsOf("out_of_memory", data.memory.tables).pop();
  if (!last) return;
  add(box, alarm(b(`An allocation failed: ${bytes(last.wanted_bytes)} wanted`),
    items([["by ", code(last.name)], last.advice]),
    el("a", {href: "#memory"}, "Owners of the memory")));
}

sections.overview = (box, o) => {
  const {parts, whole, of, recorded, busy} = deviceTime();
  drawOpen(box, o.collective);
  drawShortage(box);
  add(box, o.piece && lead(`Selection: ${o.piece}`),
    o.left_out > 0 && el("p", {class: "lead", id: "left-out"},
      `Left out: ${count(o.left_out)} of ${count(o.left_out + o.process_count)} processes`,
      o.hides_waits > 0 && "; who waited for whom is not known"),
    o.missing_ranks &&
      el("p", {class: "lead", id: "missing-ranks"}, `Missing: ${o.missing_ranks}`),
    whole ? [
      el("p", {class: "hero"}, o.devices > 1 ? "The GPUs worked " : "The GPU worked ",
        el("em", {}, percent(busy / whole)), " of the time" + of),
      bar(parts, whole), legend(parts, whole)
    ] : [
      el("p", {class: "hero"}, "No work of a GPU was recorded"), lead(`GPU rows: ${o.gpu_rows}.`)
    ]);
  const median = rowsOf("step_stats").find((row) => row.name === "median");
  const lost = o.losses.some((loss) => loss[2] > 0 && missing(loss) > 0);
  const facts = [
    ["Wall time", time(o.wall_ns)],
    o.start_up_ns > START_UP_MIN * o.wall_ns &&
      ["Start-up", `${time(o.start_up_ns)} until ${o.start_up_end}`],
    recorded && ["Of the GPUs' time recorded", percent(recorded)],
    median && ["Median step", time(median.duration_ns)],
    median && ["Steps", count(data.steps.whole)], ["Processes", count(o.process_count)],
    whole && ["GPUs", count(o.devices)],
    ["Kernels", count(o.kernels)], ["Calls", (o.estimated ? "about " : "") + count(o.calls)],
    o.errors && ["Failed calls", count(o.errors)],
    o.held_back && ["Held back", el("a", {href: "#cost"}, `work of ${count(o.held_back)}`)],
    ["Lost", lost ? el("a", {href: "#cost"}, "some") : "nothing"]
  ];
  add(box, el("dl", {class: "facts"}, facts.filter(Boolean).map(
    ([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
  drawFindings(box);
  drawIdle(box, whole);
};
