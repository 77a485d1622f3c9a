/* SPDX-License-Identifier: Apache-2.0 */
/* Who held memory: failed allocations, use over time, owners, growth. */

const CHARTS_MAX = 4, FAILURES_SHOWN = 4, HOLDERS_SHOWN = 5, MEMORY_PIECES = 240;
const memoryKinds = {tensor: "compute", device: "accent", host: "copies"};

function placeName(place) {
  const device = place.device === null ? "an unknown device" : `device ${place.device}`;
  const what = {tensor: `tensors on ${device}`, device, host: "host memory, pinned"}[place.where];
  if (place.rank !== null) return `${what}, rank ${place.rank}`;
  return what +
    (data.overview.process_count > 1 ? `, process ${place.pid} on ${place.host}` : "");
}

/* Decodes shares of the place's peak, from 0 to 1. */
const curveOf = (letters) => Array.from({length: MEMORY_PIECES}, (_, i) =>
  (64 * LETTERS.indexOf(letters[2 * i]) + LETTERS.indexOf(letters[2 * i + 1])) / 4095);

function drawMemoryChart(memory, place, letters, W) {
  const H = 120, curve = curveOf(letters), span = memory.end_ns - memory.begin_ns;
  const total = place.device_bytes, peak = place.peak_bytes || 1;
  const top = total && total <= 2 * peak ? Math.max(total, peak) : peak;
  const y = (size) => H - size / top * H;
  const at = clamp((place.peak_ns - memory.begin_ns) / (span || 1) * W, 0, W);
  const said = `peak ${bytes(place.peak_bytes)}` +
    (place.share === null ? "" : `, ${percent(place.share)} of the device`) +
    ` after ${time(place.peak_ns)}; ${bytes(place.end_bytes)} at the end`;
  const steps = curve.map((part, i) =>
    `V${y(part * peak).toFixed(1)}H${((i + 1) * W / MEMORY_PIECES).toFixed(1)}`);
  const drawing = chart(W, H + 22, `${placeName(place)}: ${said}`, {},
    line(0, y(top), W, y(top), "axis"), line(0, y(top / 2), W, y(top / 2), "axis"),
    svg("path", {d: `M0 ${H}${steps.join("")}V${H}Z`, class: `c-${memoryKinds[place.where]}`}),
    line(at, 0, at, H, "peak"), line(0, H + .5, W, H + .5, "axis"),
    svg("text", {x: 4, y: y(top) + 13, class: "haloed"},
      bytes(top) + (top === total ? ", the whole device" : "")),
    axisTexts(W, H + 17, (part) => time(memory.begin_ns + part * span)));
  tipped(drawing, (event) => {
    const piece = partAt(event, drawing, MEMORY_PIECES);
    return `until ${time(memory.begin_ns + (piece + 1) / MEMORY_PIECES * span)}\n` +
      `at most ${bytes(curve[piece] * peak)}`;
  });
  return el("div", {class: "memory-chart"}, small(b(placeName(place)), `: ${said}`), drawing);
}

const drawFailure = (row) => el("div", {class: "failure"},
  el("p", {}, b(bytes(row.wanted_bytes)), " wanted by ", code(row.name),
    ` after ${time(row.at_ns)}, of ${row.place}; ${bytes(row.held_bytes)} were held`,
    row.reserved_bytes !== null && ` of ${bytes(row.reserved_bytes)} reserved`,
    row.device_bytes !== null && `, the device has ${bytes(row.device_bytes)}`, "."),
  el("p", {}, row.advice),
  items(row.owners.slice(0, HOLDERS_SHOWN).map((owner) =>
    [`${bytes(owner.bytes)} in ${count(owner.blocks)}: `, code(owner.name)])));

/* Puts names before numbers, and adds the idle share of reserved memory at the peak. */
function placesTable(table, places) {
  const idle = ({where, reserved_at_peak_bytes: reserved, peak_bytes: peak}) =>
    where === "tensor" && reserved >= peak ? (reserved - peak) / (reserved || 1) : null;
  const columns = [
    ["device and process", "text", placeName], ["peak", "bytes", (p) => p.peak_bytes],
    ["of device", "share", (p) => p.share], ["at", "ns", (p) => p.peak_ns],
    ["at the end", "bytes", (p) => p.end_bytes],
    ["per step", "bytes", (p) => p.growth_by_step ? p.growth_bytes : null],
    ["reserved then", "bytes", (p) => p.where === "tensor" ? p.reserved_at_peak_bytes : null],
    ["fragmented", "share", idle], ["allocations", "count", (p) => p.blocks]
  ];
  return made("Memory of each device", columns,
    places.map((place) => columns.map(([, , valueOf]) => valueOf(place))), table.left_out);
}

function drawPlaces(box, memory, places) {
  const table = placesTable(tableOf("places", memory.tables), places);
  /* Tensors come first: they say more than the memory that their allocator reserves. */
  const order = places.map((_, i) => i).sort(
    (one, other) => (places[other].where === "tensor") - (places[one].where === "tensor") ||
      places[other].peak_bytes - places[one].peak_bytes);
  const charts = el("div", {id: "memory-charts"});
  const show = (shown) => charts.replaceChildren(...shown.map((i) =>
    drawMemoryChart(memory, places[i], memory.curves[i], clamp(charts.clientWidth, 240, 980))));
  const many = places.length > CHARTS_MAX;
  add(box, many && small("Choose a row to see its memory over time."), charts,
    drawTable(table, {rows: 8, choose: many && ((row) => show([table.rows.indexOf(row)]))}));
  show(order.slice(0, many ? 1 : CHARTS_MAX));
}

const ownerTables = [
  ["owners", "Owners at the peak of each device", "name", "where", "process", "bytes", "share",
    "blocks", "end_bytes", "got_blocks", "temporary_blocks"],
  ["leaks", "Growth from step to step", "name", "where", "process", "growth_bytes", "grown_bytes",
    "end_bytes"],
  ["hidden", "Beyond allocations: contexts, modules, libraries, other processes", "longest_call",
    "place", "at_ns", "used_bytes", "hidden_bytes", "before_bytes"],
  ["kinds", "Kinds of memory", "name", "place", "peak_bytes", "peak_blocks", "end_bytes",
    "got_blocks"]
];

sections.memory = (box, memory) => {
  const places = rowsOf("places", memory.tables), failures = rowsOf("out_of_memory", memory.tables);
  if (failures.length)
    add(box, alarm(b("Failed allocations"),
      failures.slice(-FAILURES_SHOWN).reverse().map(drawFailure)));
  if (!places.length)
    return memory.tables.length ? "No memory was allocated." : "No allocation was recorded.";
  const has = (where) => places.some((place) => place.where === where);
  add(box,
    lead("The memory of each process on each device, and its owners at the peak.",
      has("tensor") && has("device") &&
        " Tensors lie in device memory: their bytes count in both.",
      data.overview.piece && " It covers the whole recording."));
  drawPlaces(box, memory, places);
  for (const [key, title, ...columns] of ownerTables)
    addTable(box, title, tableOf(key, memory.tables), {columns, rows: 12});
  return "";
};
