/* SPDX-License-Identifier: Apache-2.0 */
/* What each device did over time: areas for few devices, coloured cells for many. */
"use strict";

const ROWS_MAX = 16;
const useKinds = ["compute", "communication", "copies", "waits"], KINDS = useKinds.length;
const useNames = [...useKinds.slice(0, KINDS - 1), "waiting for other ranks"];

const sharesOf = (device) =>
  useKinds.map(
    (kind, k) => Array.from(device[2 + KINDS + k], (letter) => LETTERS.indexOf(letter) / 63));
const deviceName = (device) => `${processName(device[0])}, GPU ${device[1]}`;

/* Formats a time with digits down to a hundredth of the window. */
function momentOf(ns, window) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
  const [unit, name] = units.find(([of]) => ns >= of) || units[3];
  const digits = Math.ceil(Math.log10(unit / (window / 100 || 1)));
  return `${(ns / unit).toFixed(Math.max(0, Math.min(9, digits)))} ${name}`;
}
const bucketTime = (use, bucket) => momentOf(use.from_ns + bucket * use.bucket_ns, use.window_ns);

function momentText(use, device, bucket) {
  const shares = sharesOf(device).map((list) => list[bucket]);
  return [
    `${deviceName(device)}, at ${bucketTime(use, bucket)}`,
    ...useNames.map((name, k) => `${name} ${percent(shares[k])}`),
    `idle ${percent(Math.max(0, 1 - shares.reduce((a, b) => a + b, 0)))}`
  ].join("\n");
}

const bucketAt = (use, event, node) => partAt(event, node, use.spans);

/* Draws compute at the bottom, then communication, copies, and waits; the rest is idle. */
function drawAreas(use, device, height) {
  const shares = sharesOf(device), below = new Array(use.spans).fill(0);
  const drawing = chart(use.spans, 100,
    `${deviceName(device)}: busy ${percent(busyShare(device))} of the time after start-up`,
    {preserveAspectRatio: "none", height},
    svg("rect", {width: use.spans, height: 100, class: "c-idle", opacity: .45}));
  useKinds.forEach((kind, k) => {
    let up = "", down = "";
    for (let i = 0; i < use.spans; i++) {
      const low = 100 - 100 * below[i], high = 100 - 100 * Math.min(1, below[i] + shares[k][i]);
      up += `L${i} ${high.toFixed(1)}L${i + 1} ${high.toFixed(1)}`;
      down = `L${i + 1} ${low.toFixed(1)}L${i} ${low.toFixed(1)}` + down;
      below[i] = Math.min(1, below[i] + shares[k][i]);
    }
    if (device[2 + k])
      drawing.append(svg("path", {d: "M" + up.slice(1) + down + "Z", class: "c-" + kind}));
  });
  return tipped(drawing, (event) => momentText(use, device, bucketAt(use, event, drawing)));
}

/* Draws a curve of the driver's readings, from 0 to the highest. */
function drawCurve(use, device, [name, highest, mean, letters]) {
  const values = Array.from(letters, (letter) => LETTERS.indexOf(letter) - 1);
  const shown = (value) => `${+value.toPrecision(4)}`;
  let path = "", before = -1;
  values.forEach((value, i) => {
    const y = (100 - value / 62 * 96).toFixed(1);
    if (value >= 0) path += `${before < 0 ? "M" : "L"}${i} ${y}L${i + 1} ${y}`;
    before = value;
  });
  const drawing = chart(use.spans, 100,
    `${deviceName(device)}: ${name}, mean ${shown(mean)}, highest ${shown(highest)}`,
    {preserveAspectRatio: "none", height: 28},
    svg("path", {d: path, class: "curve", "vector-effect": "non-scaling-stroke"}));
  return el("div", {class: "row"}, el("span", {title: name}, name),
    tipped(drawing, (event) => {
      const bucket = bucketAt(use, event, drawing), value = values[bucket];
      return `${deviceName(device)}, at ${bucketTime(use, bucket)}\n${name}: ` +
        (value < 0 ? "not known" : shown(value / 62 * highest));
    }),
    el("b", {}, shown(mean)));
}

const drawCurves = (use, device) =>
  (device[2 + 2 * KINDS] || []).map((curve) => drawCurve(use, device, curve));

/* As in the overview: a share of the time after start-up, where waits for ranks are idle. */
const busyShare = (device) => (device[2] + device[3] + device[4]) / (device[3 + 2 * KINDS] || 1);

/* Draws a row of one or more pixels for each device. */
function drawMany(use, box) {
  const {devices, spans} = use, height = Math.max(160, Math.min(480, devices.length * 4));
  const size = {width: spans, height: devices.length, style: {height: height + "px"}};
  const canvas = el("canvas", size);
  const detail = el("div"), marker = el("div", {class: "marker"});
  let chosen = 0;
  const paint = () => {
    const context = canvas.getContext("2d"), image = context.createImageData(spans, devices.length);
    const colours = [...useKinds, "idle"].map((name) => rgb(colour(name)));
    devices.forEach((device, y) => {
      const shares = sharesOf(device);
      for (let x = 0; x < spans; x++) {
        const parts = shares.map((list) => list[x]);
        parts.push(Math.max(0, 1 - parts.reduce((a, b) => a + b)));
        for (let c = 0; c < 3; c++)
          image.data[4 * (spans * y + x) + c] =
            parts.reduce((sum, part, k) => sum + part * colours[k][c], 0);
        image.data[4 * (spans * y + x) + 3] = 255;
      }
    });
    context.putImageData(image, 0, 0);
  };
  const choose = (to) => {
    chosen = clamp(to, 0, devices.length - 1);
    Object.assign(marker.style, {
      left: 0,
      right: 0,
      top: height * chosen / devices.length - 1 + "px",
      height: Math.max(3, height / devices.length) + 1 + "px"
    });
    slider.setAttribute("aria-valuenow", chosen);
    slider.setAttribute("aria-valuetext",
      `${deviceName(devices[chosen])}: busy ${percent(busyShare(devices[chosen]))}`);
    detail.replaceChildren(
      el("h3", {}, deviceName(devices[chosen])), drawAreas(use, devices[chosen], 90),
      ...drawCurves(use, devices[chosen]));
  };
  const rowAt = (event) => partAt(event, canvas, devices.length, true);
  const slider = tipped(el("div", {
    class: "chart pick",
    role: "slider",
    tabindex: 0,
    "aria-label": "Device",
    "aria-orientation": "vertical",
    "aria-valuemin": 0,
    "aria-valuemax": devices.length - 1,
    onclick: (event) => choose(rowAt(event)),
    onkeydown: (event) => {
      const by =
        {ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9}[event.key];
      if (by === undefined) return;
      event.preventDefault();
      choose(chosen + by);
    }
  },
                          canvas, marker),
    (event) => momentText(use, devices[rowAt(event)], bucketAt(use, event, canvas)));
  paint();
  addEventListener("recolour", paint);
  /* Only devices with work: of others only counters were read. */
  const idlest = devices.reduce((a, d, i) => {
    const share = busyShare(d), least = busyShare(devices[a]);
    return share > 0 && (share < least || !least) ? i : a;
  }, 0);
  add(box, slider, detail);
  choose(idlest);
}

/* Returns the components of a colour #rrggbb. */
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

sections.use = (box, use) => {
  if (!use.devices.length) return "No work of a GPU was recorded.";
  const keys = [...useKinds.map(
    (kind, k) => [useNames[k], "c-" + kind, use.devices.reduce((sum, d) => sum + d[2 + k], 0)])];
  add(box,
    el("p", {class: "lead"},
      (data.overview.piece ?
        `A selection of ${time(use.window_ns)}, ${momentOf(use.from_ns, use.window_ns)} to ` +
          `${momentOf(use.from_ns + use.window_ns, use.window_ns)} after the first event of the ` +
          "recording" :
        `${time(use.window_ns)}, from the first event of the recording on`) +
        `, in ${counted(use.spans, "span")}. ` +
        "Communication is shown where no kernel of the program's own runs, copies where no " +
        "kernel runs at all. Shares refer to each device's time after start-up; waiting for " +
        "other ranks counts as idle, as in the overview." +
        (rowsOf("gpu_time").some((row) => row.stopped_ns) ?
            " Unrecorded time is in no share, and looks idle here." :
            "") +
        (use.left_out ? ` Not in this page: ${counted(use.left_out, "more device")}.` : "")));
  if (use.devices.length > ROWS_MAX)
    drawMany(use, box);
  else
    for (const device of use.devices) {
      add(box,
        el("div", {class: "row"}, el("span", {title: deviceName(device)}, deviceName(device)),
          drawAreas(use, device, 44), el("b", {}, percent(busyShare(device)))),
        ...drawCurves(use, device));
    }
  const ends = el("div", {class: "tools small ends"},
    el("span", {}, momentOf(use.from_ns, use.window_ns)),
    el("span", {class: "end"}, momentOf(use.from_ns + use.window_ns, use.window_ns)));
  add(box,
    use.devices.length > ROWS_MAX ? ends :
                                    el("div", {class: "row"}, el("span"), ends, el("span")));
  add(box, el("ul", {class: "legend"}, [
    ...keys.filter((part) => part[2]), ["idle", "c-idle"]
  ].map(([name, kind]) => keyed(kind, name))));
};
