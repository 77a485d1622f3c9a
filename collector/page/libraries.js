/* SPDX-License-Identifier: Apache-2.0 */
/* What library calls computed, how fast, and how that compares with the device's peak. */
"use strict";

const POINTS_MAX = 1000; /* those with most GPU time */
const ROOFS = {f64: ["f64"], f32: ["f32", "tf32"], f16: ["f16"], bf16: ["bf16"], i8: ["i8"]};
const roofsOf = (type) => ROOFS[type] || (/^e\dm\d$/.test(type || "") ? ["fp8"] : []);

/*
 * Draws intensity and speed on log scales. A roof rises with the memory bandwidth up to the
 * device's peak for a type; an unknown device has none.
 */
function drawRoofline(rows, devices, W) {
  const H = 330, LEFT = 52, BELOW = 40, log = Math.log10;
  const roofs = [];
  const types = new Set(rows.flatMap((row) => roofsOf(row.type)));
  for (const device of devices)
    for (const type of types) {
      const peak = device.peaks[type];
      const same = roofs.find((roof) => roof.device === device && roof.peak === peak);
      if (same)
        same.type += ", " + type;
      else if (peak && device.bandwidth)
        roofs.push({device, type, peak, slope: device.bandwidth / 1e3});
    }
  const xs = [...rows.map((row) => row.flops_per_byte), ...roofs.map((r) => r.peak / r.slope)];
  const ys = [...rows.map((row) => row.tflops), ...roofs.map((r) => r.peak)];
  const [left, right] = [Math.floor(log(Math.min(...xs))), Math.ceil(log(Math.max(...xs)) + .3)];
  const [low, high] = [Math.floor(log(Math.min(...ys))), Math.ceil(log(Math.max(...ys)) + .05)];
  const x = (v) => LEFT + (log(v) - left) / (right - left) * (W - LEFT);
  const y = (v) => (high - log(v)) / (high - low) * H;
  const drawing = chart(W, H + BELOW,
    `Roofline: ${count(rows.length)} kinds of calls by FLOP per byte and TFLOP/s; ${
      roofs.length ? roofs.map((r) => `${r.device.name} can do ${r.peak} TFLOP/s of ${r.type}`)
                       .join(", ") :
                     "the peak of the device is not known"}`,
    {style: {maxWidth: W + "px"}, id: "roofline"});
  const ten = (power) => power < 0 ? (10 ** power).toFixed(-power) : count(10 ** power);
  for (let power = low; power <= high; power++) {
    const at = y(10 ** power);
    drawing.append(svg("line", {x1: LEFT, x2: W, y1: at, y2: at, class: "axis"}),
      svg("text", {x: LEFT - 6, y: at + 4, "text-anchor": "end"}, ten(power)));
  }
  for (let power = left; power <= right; power++) {
    const at = x(10 ** power);
    drawing.append(svg("line", {x1: at, x2: at, y1: 0, y2: H, class: "axis"}),
      svg("text", {x: at, y: H + 16, "text-anchor": power === right ? "end" : "middle"},
        ten(power)));
  }
  drawing.append(svg("text", {x: W, y: H + 34, "text-anchor": "end"}, "FLOP per byte"),
    svg("text", {x: LEFT + 6, y: 12}, "TFLOP/s"));
  for (const roof of roofs) {
    const corner = roof.peak / roof.slope, begin = Math.max(10 ** left, 10 ** low / roof.slope);
    drawing.append(
      svg("path", {
        d: `M${x(begin)} ${y(begin * roof.slope)}L${x(corner)} ${y(roof.peak)}L${W} ${
          y(roof.peak)}`,
        class: "roof"
      }),
      svg("text", {x: W - 4, y: y(roof.peak) - 5, "text-anchor": "end"},
        `${devices.length > 1 ? roof.device.name + " " : ""}${roof.type} ${roof.peak}`));
  }
  const most = Math.max(...rows.map((row) => row.gpu_ns));
  const points = new Map();
  for (const row of rows) {
    const point = tipped(svg("circle", {
      cx: x(row.flops_per_byte),
      cy: y(row.tflops),
      r: 3 + 7 * Math.sqrt(row.gpu_ns / most),
      class: row.tensor_cores === "used" ? "point c-compute" : "point c-copies"
    }),
      () => `${row.name}\n${time(row.gpu_ns)}, ${row.tflops.toFixed(2)} TFLOP/s` +
        (row.peak_share ? `, ${percent(row.peak_share)} of peak` : ""));
    points.set(row.name, point);
    drawing.append(point);
  }
  return [drawing, points];
}

sections.libraries = (box, known) => {
  const table = tableOf("library");
  if (!table || !table.rows.length)
    return "No calls of cuBLAS, cuDNN or NCCL were recorded " +
      "(gpuprof run --libraries=off leaves them out).";
  const rows =
    rowsOf("library").filter((row) => row.tflops > 0 && row.flops_per_byte > 0 && row.gpu_ns > 0)
      .slice(0, POINTS_MAX);
  let points = new Map();
  if (table.note) add(box, el("p", {class: "lead"}, table.note));
  if (rows.length) {
    const title = el("h3", {}, "Roofline");
    add(box, title);
    const [drawing, drawn] = drawRoofline(rows, known.devices, chartWidth(title.clientWidth, 980));
    points = drawn;
    add(box, drawing,
      el("ul", {class: "legend"},
        keyed("c-compute", "tensor cores used"), keyed("c-copies", "not, or not known"),
        el("li", {}, "A larger dot has more GPU time.",
          known.devices.length ? "" :
                                 " The peak of this device is not known, so there is no roof.")));
  }
  const nameAt = columnAt(table, "name");
  const choose = (row) => {
    for (const [name, point] of points) point.classList.toggle("chosen", name === row[nameAt]);
  };
  add(box, el("h3", {}, "Calls"), drawTable(table, {
    rows: 12,
    choose,
    columns: [
      "name", "gpu_share", "gpu_ns", "cpu_ns", "calls", "tflops", "peak_share", "flops_per_byte",
      "tensor_cores", "bus_gb_s"
    ].filter((key) => isFilled(table, columnAt(table, key)))
  }));
};
