/* SPDX-License-Identifier: Apache-2.0 */
/* What library calls computed, how fast, and how that compares with the device's peak. */

const POINTS_MAX = 1000; /* those with most GPU time */
const ROOFS = {f64: ["f64"], f32: ["f32", "tf32"], f16: ["f16"], bf16: ["bf16"], i8: ["i8"]};
const roofsOf = (type) => ROOFS[type] || (/^e\dm\d$/.test(type || "") ? ["fp8"] : []);

/* Returns the peaks of the devices for these types, those that are the same once. */
function roofsFor(rows, devices) {
  const roofs = [], types = new Set(rows.flatMap((row) => roofsOf(row.type)));
  for (const device of devices)
    for (const type of types) {
      const peak = device.peaks[type];
      const same = roofs.find((roof) => roof.device === device && roof.peak === peak);
      if (same)
        same.type += ", " + type;
      else if (peak && device.bandwidth)
        roofs.push({device, type, peak, slope: device.bandwidth / 1e3});
    }
  return roofs;
}

/*
 * Draws intensity and speed on log scales. A roof rises with the memory bandwidth up to the
 * device's peak for a type; an unknown device has none.
 */
function drawRoofline(rows, devices, W) {
  const H = 330, LEFT = 52, BELOW = 40, log = Math.log10, roofs = roofsFor(rows, devices);
  const xs = [...rows.map((row) => row.flops_per_byte), ...roofs.map((r) => r.peak / r.slope)];
  const ys = [...rows.map((row) => row.tflops), ...roofs.map((r) => r.peak)];
  const [left, right] = [Math.floor(log(Math.min(...xs))), Math.ceil(log(Math.max(...xs)) + .3)];
  const [low, high] = [Math.floor(log(Math.min(...ys))), Math.ceil(log(Math.max(...ys)) + .05)];
  const x = (v) => LEFT + (log(v) - left) / (right - left) * (W - LEFT);
  const y = (v) => (high - log(v)) / (high - low) * H;
  const ten = (power) => power < 0 ? (10 ** power).toFixed(-power) : count(10 ** power);
  const said = roofs.map((r) => `${r.device.name} can do ${r.peak} TFLOP/s of ${r.type}`);
  const drawing = chart(W, H + BELOW,
    `Roofline: ${count(rows.length)} kinds of calls by FLOP per byte and TFLOP/s; ` +
      (said.join(", ") || "the peak of the device is not known"),
    {style: {maxWidth: W + "px"}, id: "roofline"});
  for (let power = low; power <= high; power++) {
    const at = y(10 ** power);
    add(drawing, line(LEFT, at, W, at, "axis"), label(LEFT - 6, at + 4, "end", ten(power)));
  }
  for (let power = left; power <= right; power++) {
    const at = x(10 ** power);
    add(drawing, line(at, 0, at, H, "axis"),
      label(at, H + 16, power === right ? "end" : "middle", ten(power)));
  }
  add(drawing, label(W, H + 34, "end", "FLOP per byte"), label(LEFT + 6, 12, "start", "TFLOP/s"));
  for (const {device, type, peak, slope} of roofs) {
    const begin = Math.max(10 ** left, 10 ** low / slope), top = y(peak);
    const d = `M${x(begin)} ${y(begin * slope)}L${x(peak / slope)} ${top}L${W} ${top}`;
    add(drawing, svg("path", {d, class: "roof"}), label(W - 4, top - 5, "end",
      `${devices.length > 1 ? device.name + " " : ""}${type} ${peak}`));
  }
  const longest = most(rows, (row) => row.gpu_ns);
  const points = new Map(rows.map((row) => [row.name, tipped(svg("circle", {
    cx: x(row.flops_per_byte),
    cy: y(row.tflops),
    r: 3 + 7 * Math.sqrt(row.gpu_ns / longest),
    class: row.tensor_cores === "used" ? "point c-compute" : "point c-copies"
  }),
    () => `${row.name}\n${time(row.gpu_ns)}, ${row.tflops.toFixed(2)} TFLOP/s` +
      (row.peak_share ? `, ${percent(row.peak_share)} of peak` : ""))]));
  return [add(drawing, ...points.values()), points];
}

sections.libraries = (box, {devices}) => {
  const table = tableOf("library");
  if (!table || !table.rows.length)
    return "No calls of cuBLAS, cuDNN or NCCL were recorded " +
      "(gpuprof run --libraries=off leaves them out).";
  const rows = rowsOf("library")
    .filter((row) => row.tflops > 0 && row.flops_per_byte > 0 && row.gpu_ns > 0)
    .slice(0, POINTS_MAX);
  let points = new Map();
  if (table.note) add(box, lead(table.note));
  if (rows.length) {
    const title = h3("Roofline");
    add(box, title);
    const [drawing, drawn] = drawRoofline(rows, devices, clamp(title.clientWidth, 240, 980));
    points = drawn;
    add(box, drawing,
      el("ul", {class: "legend"}, keyed("c-compute", "tensor cores used"),
        keyed("c-copies", "not, or not known"),
        el("li", {}, "A larger dot has more GPU time.", !devices.length &&
          " The peak of this device is not known, so there is no roof.")));
  }
  const nameAt = columnAt(table, "name");
  const choose = (row) => {
    for (const [name, point] of points) point.classList.toggle("chosen", name === row[nameAt]);
  };
  const columns = [
    "name", "gpu_share", "gpu_ns", "cpu_ns", "calls", "tflops", "peak_share", "flops_per_byte",
    "tensor_cores", "bus_gb_s"
  ];
  add(box, h3("Calls"), drawTable(table, {rows: 12, choose, columns}));
};
