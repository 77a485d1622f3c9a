/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the first questions: were the devices busy, if not why, and what to do. */
"use strict";

const causeTexts = {
  launch: "launching work",
  host: "the program's own code",
  waiting: "the program waited",
  preempted: "other processes had the CPUs",
  sync: "synchronisation",
  copy: "blocking copies",
  loader: "data loading",
  allocation: "allocation",
  communication: "waiting for other ranks",
  capture: "capture, loading, compilation",
  "start-up": "start-up",
  nothing: "nothing submitted",
  unknown: "unknown",
};
const CAUSES_SHOWN = 6, PLACES_SHOWN = 3, CALLS_SHOWN = 5;
const START_UP_MIN = .0005; /* of the time: less is shown as 0 */

/* Returns [name, class, ns] for all devices together: recorded time after start-up. */
function deviceTime() {
  const sum = (key) => rowsOf("gpu_time").reduce((all, row) => all + (row[key] || 0), 0);
  const parts = ["compute", "communication", "copies", "idle"].map(
    (kind) => [kind, "c-" + kind, sum(kind + "_ns")]);
  parts.push(["other work", "c-none", sum("other_ns")]); /* not in the selection */
  const startUp = sum("idle_start_up_ns"), stopped = sum("stopped_ns"), all = sum("window_ns");
  const whole = all - startUp - stopped;
  parts[3][2] -= startUp;
  return {
    parts,
    whole,
    of: (startUp > START_UP_MIN * all ? " after start-up" : "") +
      (stopped ? ", as far as recorded" : ""),
    recorded: stopped && 1 - stopped / all,
    busy: parts.slice(0, 3).reduce((all, part) => all + part[2], 0)
  };
}

const processOf = (row) => row.rank !== null ? `rank ${row.rank}` :
  data.overview.process_count > 1            ? `process ${row.pid}` :
                                               null;

/* A hanging call has no device. */
const whose = (row) => [processOf(row), row.device !== null && `GPU ${row.device}`]
  .filter(Boolean).join(", ");

function drawEvidence(rows) {
  if (!Array.isArray(rows) || !rows.length) return null;
  return el("div", {class: "scroll"},
    el("table", {"aria-label": "Evidence"},
      el("thead", {},
        el("tr", {},
          (rows[0].bytes ? ["where", "memory", "count", "peak at"] :
                           ["where", "time", "count", "longest began at"]).map(
            (name, i) => el("th", {scope: "col", class: i ? "number" : ""}, name)))),
      el("tbody", {},
        rows.map((row) => el("tr", {}, el("th", {scope: "row", class: "text"},
                     row.name + (row.where && row.where !== row.name ? ": " + row.where : "") +
                       (row.work_share === undefined ? "" :
                         `, by a thread that launches ${percent(row.work_share)} of the work`)),
                   [
                     row.bytes ? bytes(row.bytes) : time(row.ns), count(row.count),
                     row.at_ns ? time(row.at_ns) : "the start"
                   ].map(
                     (text) => el("td", {class: "number"}, text)))))));
}

/* Names the base of a share if it is not the time after start-up. */
const shareOf = (f) => f.bytes ? " of the peak" : f.id === "start-up" ? " of all the time" : "";

function drawFindings(box) {
  const found = rowsOf("findings");
  if (!found.length && !rowsOf("gpu_time").length) return;
  add(box, el("h3", {}, "Findings: what to fix first"));
  if (!found.length) {
    add(box, el("p", {class: "none"},
      "Nothing costs enough to be a finding (most need 5% of the time and 50 ms). " +
      "Idle time with the cause waiting or preempted is never one."));
    return;
  }
  add(box,
    el("ol", {class: "findings"},
      found.map((f) => el("li", {id: "finding-" + f.id},
                  el("div", {class: "cost"}, el("b", {}, f.bytes ? bytes(f.bytes) : time(f.ns)),
                    el("small", {}, f.share === null ? "" : percent(f.share) + shareOf(f))),
                  el("div", {}, el("h3", {}, f.title),
                    el("p", {class: "small"},
                      whose(f) + (f.devices > 1 ? ` and ${count(f.devices - 1)} more` : "")),
                    el("p", {}, f.advice), drawEvidence(f.evidence),
                    f.next && el("code", {class: "next"}, f.next))))),
    el("p", {class: "small"},
      "Paths in commands are from the folder in which this page was made."));
}

/* Returns a few places as [place, ns], and the sum of the rest. */
function placesOf(places) {
  const sorted = [...places].sort((a, b) => b[1] - a[1]);
  const rest = sorted.length > PLACES_SHOWN + 1 ? sorted.splice(PLACES_SHOWN) : [];
  const ns = rest.reduce((sum, [, of]) => sum + of, 0);
  return rest.length ? [...sorted, [`${count(rest.length)} more places`, ns]] : sorted;
}

/* Draws idle time by cause as a share of the time after start-up, and each cause's top places. */
function drawIdle(box, whole) {
  const causes = new Map(), host = rowsOf("idle_host").map((row) =>
    ({...row, place: `${row.did}: ${row.place}`}));
  const split = new Set(host.map((row) => row.cause));
  split.delete("unknown"), split.delete("nothing"); // only partly split
  const idle = rowsOf("idle").filter((row) => !split.has(row.cause));
  for (const row of [...idle, ...host.filter((row) => split.has(row.cause))]) {
    if (row.cause === "start-up") continue;
    const cause = causes.get(row.cause) || {ns: 0, places: []};
    cause.ns += row.total_ns;
    cause.places.push([row.place || "", row.total_ns]);
    causes.set(row.cause, cause);
  }
  if (!causes.size) return;
  const sorted = [...causes].sort((a, b) => b[1].ns - a[1].ns), rest = sorted.splice(CAUSES_SHOWN);
  const most = sorted[0][1].ns,
        line = (name, ns, places) => el("li", {}, el("span", {}, name),
          el("div", {class: "bar thin", "aria-hidden": "true"},
            el("span", {class: "c-accent", style: {width: 100 * ns / most + "%"}})),
          el("b", {class: "number"}, time(ns)),
          el("span", {class: "number soft"}, percent(ns / whole)),
          el("div", {},
            placesOf(places).map(
              ([place, of]) => el("div", {class: "where", title: place},
                places.length > 1 && el("span", {class: "number"}, time(of)), " ", place))));
  add(box, el("h3", {}, "Idle time by cause"),
    el("ul", {class: "causes"},
      sorted.map(([cause, {ns, places}]) => line(causeTexts[cause] || cause, ns, places)),
      rest.length > 0 && line("other causes", rest.reduce((sum, [, {ns}]) => sum + ns, 0), [])));
}

/* Draws hanging calls and missing ranks before all numbers. */
function drawOpen(box, collective) {
  const open = rowsOf("open_calls");
  if (!open.length && !collective) return;
  add(box,
    el("div", {class: "alert", role: "note"},
      collective && el("p", {}, el("b", {}, collective)),
      el("b", {},
        open.length === 0 ? "" :
        open.length === 1 ? "A call never returned" :
                            `${count(open.length)} calls never returned`),
      el("ul", {},
        open.slice(0, CALLS_SHOWN)
          .map((call) => el("li", {}, el("code", {}, call.function),
                 (call.lasted_ns ? ` for ${time(call.lasted_ns)}, in ` : " just begun, in ") +
                   [processOf(call), call.thread || "thread " + call.tid]
                     .filter(Boolean).join(", ") +
                   (call.kernel ? `: ${call.kernel}` : "") +
                   (call.line ? `, at ${call.line}` : "")))),
      el("a", {href: "#hang"}, "What they wait for")));
}

/* Draws the last failed allocation, which is often the end of the program. */
function drawShortage(box) {
  const last = rowsOf("out_of_memory", data.memory.tables).pop();
  if (!last) return;
  add(box,
    el("div", {class: "alert", role: "note"},
      el("b", {}, `An allocation failed: ${bytes(last.wanted_bytes)} wanted`),
      el("ul", {}, el("li", {}, "by ", el("code", {}, last.name)), el("li", {}, last.advice)),
      el("a", {href: "#memory"}, "Owners of the memory")));
}

sections.overview = (box, o) => {
  const {parts, whole, of, recorded, busy} = deviceTime(), many = o.devices > 1;
  drawOpen(box, o.collective);
  drawShortage(box);
  if (o.piece) add(box, el("p", {class: "lead"}, `Selection: ${o.piece}`));
  if (o.left_out)
    add(box,
      el("p", {class: "lead", id: "left-out"},
        `Left out: ${count(o.left_out)} of ${count(o.left_out + o.process_count)} processes` +
          (o.hides_waits ? "; who waited for whom is not known" : "")));
  if (o.missing_ranks)
    add(box, el("p", {class: "lead", id: "missing-ranks"}, `Missing: ${o.missing_ranks}`));
  if (whole) {
    add(box,
      el("p", {class: "hero"}, many ? "The GPUs worked " : "The GPU worked ",
        el("em", {}, percent(busy / whole)), " of the time" + of),
      bar(parts, whole), legend(parts, whole));
  } else {
    add(box, el("p", {class: "hero"}, "No work of a GPU was recorded"),
      el("p", {class: "lead"}, `GPU rows: ${o.gpu_rows}.`));
  }
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
  add(box, el("dl", {class: "facts"}, facts.filter(Boolean).map(([name,
    value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
  drawFindings(box);
  drawIdle(box, whole);
};
