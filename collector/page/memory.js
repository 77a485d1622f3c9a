/* SPDX-License-Identifier: Apache-2.0 */
/* Who held memory: failed allocations, use over time, owners, growth. */
"use strict";

const CHARTS_MAX = 4, FAILURES_SHOWN = 4, HOLDERS_SHOWN = 5, MEMORY_PIECES = 240;
const memoryKinds = {tensor: "compute", device: "accent", host: "copies"};

function placeName(place) {
  const device = place.device === null ? "an unknown device" : `device ${place.device}`;
  const what = {tensor: `tensors on ${device}`, device, host: "host memory, pinned"}[place.where];
  const many = data.overview.process_count > 1;
  return what + (place.rank !== null ? `, rank ${place.rank}` :
                     many            ? `, process ${place.pid} on ${place.host}` :
                                       "");
}

/* Decodes shares of the place's peak, from 0 to 1. */
const curveOf = (letters) => Array.from({length: MEMORY_PIECES},
  (_, i) => (64 * LETTERS.indexOf(letters[2 * i]) +
              LETTERS.indexOf(letters[2 * i + 1])) / 4095);

function drawMemoryChart(memory, place, letters, W) {
  const H = 120, curve = curveOf(letters), span = memory.end_ns - memory.begin_ns;
  const total = place.device_bytes, peak = place.peak_bytes || 1;
  const top = total && total <= 2 * peak ? Math.max(total, peak) : peak;
  const x = (ns) => Math.max(0, Math.min(W, (ns - memory.begin_ns) / (span || 1) * W));
  const y = (size) => H - size / top * H;
  const at = x(place.peak_ns), said = `peak ${bytes(place.peak_bytes)}` +
    (place.share === null ? "" : `, ${percent(place.share)} of the device`) +
    ` after ${time(place.peak_ns)}; ${bytes(place.end_bytes)} at the end`;
  let path = `M0 ${H}`;
  curve.forEach((part, i) => {
    path += `V${y(part * peak).toFixed(1)}H${((i + 1) * W / MEMORY_PIECES).toFixed(1)}`;
  });
  const drawing = chart(W, H + 22, `${placeName(place)}: ${said}`, {},
    svg("line", {x1: 0, x2: W, y1: y(top), y2: y(top), class: "axis"}),
    svg("line", {x1: 0, x2: W, y1: y(top / 2), y2: y(top / 2), class: "axis"}),
    svg("path", {d: `${path}V${H}Z`, class: `c-${memoryKinds[place.where]}`}),
    svg("line", {x1: at, x2: at, y1: 0, y2: H, class: "peak"}),
    svg("line", {x1: 0, x2: W, y1: H + .5, y2: H + .5, class: "axis"}),
    svg("text", {x: 4, y: y(top) + 13, class: "haloed"},
      top === total ? `${bytes(top)}, the whole device` : bytes(top)),
    axisTexts(W, H + 17, (part) => time(memory.begin_ns + part * span)));
  tipped(drawing, (event) => {
    const box = drawing.getBoundingClientRect();
    const piece = Math.floor((event.clientX - box.left) / box.width * MEMORY_PIECES);
    if (piece < 0 || piece >= MEMORY_PIECES) return "";
    const ns = memory.begin_ns + (piece + 1) / MEMORY_PIECES * span;
    return `until ${time(ns)}\nat most ${bytes(curve[piece] * peak)}`;
  });
  return el("div", {class: "memory-chart"},
    el("p", {class: "small"}, el("b", {}, placeName(place)), `: ${said}`), drawing);
}

function drawFailures(box, rows) {
  if (!rows.length) return;
  add(box,
    el("div", {class: "alert", role: "note"}, el("b", {}, "Failed allocations"),
      rows.slice(-FAILURES_SHOWN)
        .reverse()
        .map((row) => el("div", {class: "failure"},
               el("p", {}, el("b", {}, bytes(row.wanted_bytes)), " wanted by ",
                 el("code", {}, row.name), ` after ${time(row.at_ns)}, of ${row.place}; `,
                 `${bytes(row.held_bytes)} were held`,
                 row.reserved_bytes !== null && ` of ${bytes(row.reserved_bytes)} reserved`,
                 row.device_bytes !== null && `, the device has ${bytes(row.device_bytes)}`, "."),
               el("p", {}, row.advice),
               el("ul", {},
                 row.owners.slice(0, HOLDERS_SHOWN)
                   .map((owner) => el("li", {}, `${bytes(owner.bytes)} in ${count(owner.blocks)}: `,
                          el("code", {}, owner.name))))))));
}

/* Puts names before numbers, and adds the idle share of reserved memory at the peak. */
function placesTable(table, places) {
  const idle = (place) =>
    place.where === "tensor" && place.reserved_at_peak_bytes >= place.peak_bytes ?
    (place.reserved_at_peak_bytes - place.peak_bytes) / (place.reserved_at_peak_bytes || 1) :
    null;
  const columns = [
    ["device and process", "text", placeName], ["peak", "bytes", (p) => p.peak_bytes],
    ["of device", "share", (p) => p.share], ["at", "ns", (p) => p.peak_ns],
    ["at the end", "bytes", (p) => p.end_bytes],
    ["per step", "bytes", (p) => p.growth_by_step ? p.growth_bytes : null],
    ["reserved then", "bytes", (p) => p.where === "tensor" ? p.reserved_at_peak_bytes : null],
    ["fragmented", "share", idle], ["allocations", "count", (p) => p.blocks]
  ];
  return {
    ...table,
    columns: columns.map(([label, type], i) => ({key: "place_" + i, type, label})),
    rows: places.map((place) => columns.map((column) => column[2](place)))
  };
}

function drawPlaces(box, memory, places) {
  const table = placesTable(tableOf("places", data.memory.tables), places);
  /* Tensors come first: they say more than the memory that their allocator reserves. */
  const order = places.map((_, i) => i).sort(
    (a, b) => (places[b].where === "tensor") - (places[a].where === "tensor") ||
      places[b].peak_bytes - places[a].peak_bytes);
  const charts = el("div", {id: "memory-charts"});
  const show = (shown) => charts.replaceChildren(
    ...shown.map((i) => drawMemoryChart(
                   memory, places[i], memory.curves[i], chartWidth(charts.clientWidth, 980))));
  const many = places.length > CHARTS_MAX;
  add(box, many && el("p", {class: "small"}, "Choose a row to see its memory over time."), charts,
    drawTable(table, {
      rows: 8,
      choose: many ? (row) => show([table.rows.indexOf(row)]) : undefined,
      caption: "Memory of each device"
    }));
  show(order.slice(0, many ? 1 : CHARTS_MAX));
}

function drawOwners(box, key, title, columns) {
  const table = tableOf(key, data.memory.tables);
  if (!table || !table.rows.length) return;
  add(box, el("h3", {}, title), drawTable(table, {columns, rows: 12, caption: title}));
}

sections.memory = (box, memory) => {
  const places = rowsOf("places", memory.tables);
  drawFailures(box, rowsOf("out_of_memory", memory.tables));
  if (!places.length)
    return memory.tables.length ? "No memory was allocated." : "No allocation was recorded.";
  const has = (where) => places.some((place) => place.where === where);
  add(box,
    el("p", {class: "lead"},
      "The memory of each process on each device, and its owners at the peak." +
        (has("tensor") && has("device") ?
            " Tensors lie in device memory: their bytes count in both." :
            "") +
        (data.overview.piece ? " It covers the whole recording." : "")));
  drawPlaces(box, memory, places);
  drawOwners(box, "owners", "Owners at the peak of each device",
    ["name", "where", "process", "bytes", "share", "blocks", "end_bytes", "got_blocks",
      "temporary_blocks"]);
  drawOwners(box, "leaks", "Growth from step to step",
    ["name", "where", "process", "growth_bytes", "grown_bytes", "end_bytes"]);
  drawOwners(box, "hidden", "Beyond allocations: contexts, modules, libraries, other processes",
    ["longest_call", "place", "at_ns", "used_bytes", "hidden_bytes", "before_bytes"]);
  drawOwners(box, "kinds", "Kinds of memory",
    ["name", "place", "peak_bytes", "peak_blocks", "end_bytes", "got_blocks"]);
  return "";
};
