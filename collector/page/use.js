/* SPDX-License-Identifier: Apache-2.0 */
/* What each device did over time: areas for few devices, coloured cells for many. */

const ROWS_MAX = 16;
const useKinds = ["compute", "communication", "copies", "waits"], KINDS = useKinds.length;
const useNames = [...useKinds.slice(0, KINDS - 1), "waiting for other ranks"];

const sharesOf = (device) => useKinds.map(
  (_, k) => Array.from(device[2 + KINDS + k], (letter) => LETTERS.indexOf(letter) / 63));
const deviceName = (device) => `${processName(device[0])}, GPU ${device[1]}`;
/* As in the overview: a share of the time after start-up, where waits for ranks are idle. */
const busyShare = (device) => (device[2] + device[3] + device[4]) / (device[2 + 2 * KINDS] || 1);

/* Formats a time with digits down to a hundredth of the window. */
function momentOf(ns, window) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
  const [unit, name] = units.find(([of]) => ns >= of) || units[3];
  const digits = Math.ceil(Math.log10(unit / (window / 100 || 1)));
  return `${(ns / unit).toFixed(clamp(digits, 0, 9))} ${name}`;
}
function momentText(use, device, i) {
  const shares = sharesOf(device).map((list) => list[i]);
  return [
    `${deviceName(device)}, at ${momentOf(use.from_ns + i * use.bucket_ns, use.window_ns)}`,
    ...useNames.map((name, k) => `${name} ${percent(shares[k])}`),
    `idle ${percent(Math.max(0, 1 - sum(shares)))}`
  ].join("\n");
}

/* Draws compute at the bottom, then communication, copies, and waits; the rest is idle. */
function drawAreas(use, device, height) {
  const shares = sharesOf(device), below = new Array(use.spans).fill(0);
  const areas = useKinds.map((kind, k) => {
    let up = "", down = "";
    for (let i = 0; i < use.spans; i++) {
      const low = 100 - 100 * below[i];
      below[i] = Math.min(1, below[i] + shares[k][i]);
      const high = (100 - 100 * below[i]).toFixed(1);
      up += `L${i} ${high}L${i + 1} ${high}`;
      down = `L${i + 1} ${low.toFixed(1)}L${i} ${low.toFixed(1)}` + down;
    }
    const d = "M" + up.slice(1) + down + "Z";
    return device[2 + k] > 0 && svg("path", {d, class: "c-" + kind});
  });
  const drawing = chart(use.spans, 100,
    `${deviceName(device)}: busy ${percent(busyShare(device))} of the time after start-up`,
    {preserveAspectRatio: "none", height},
    rect(0, 0, use.spans, 100, "c-idle", {opacity: .45}), areas);
  return tipped(drawing,
    (event) => momentText(use, device, partAt(event, drawing, use.spans)));
}

/* Draws a row of one or more pixels for each device. */
function drawMany(use, box) {
  const {devices, spans} = use, height = clamp(devices.length * 4, 160, 480);
  const shares = devices.map(sharesOf);
  const detail = el("div");
  const choose = (x, y) => {
    place(x, y);
    detail.replaceChildren(h3(deviceName(devices[y])), drawAreas(use, devices[y], 90));
  };
  const [map, place] = cellMap("Devices over time", spans, devices.length, height,
    [...useKinds, "idle"], (x, y) => {
      const parts = shares[y].map((list) => list[x]);
      return [...parts, Math.max(0, 1 - sum(parts))];
    }, (x, y) => momentText(use, devices[y], x), choose);
  add(box, map, detail);
  const busy = devices.map(busyShare);
  choose(0, busy.indexOf(Math.min(...busy))); /* the idlest */
}

sections.use = (box, use) => {
  if (!use.devices.length) return "No work of a GPU was recorded.";
  const isMany = use.devices.length > ROWS_MAX, end_ns = use.from_ns + use.window_ns;
  const moment = (ns) => momentOf(ns, use.window_ns);
  const ends = el("div", {class: "tools small ends"}, el("span", {}, moment(use.from_ns)),
    el("span", {class: "end"}, moment(end_ns)));
  const keys = useKinds.filter((_, k) => use.devices.some((device) => device[2 + k] > 0));
  add(box,
    lead(data.overview.piece ?
        `A selection of ${time(use.window_ns)}, ${moment(use.from_ns)} to ${moment(end_ns)} ` +
          "after the first event of the recording" :
        `${time(use.window_ns)}, from the first event of the recording on`,
      `, in ${counted(use.spans, "span")}. `,
      "Communication is shown where no kernel of the program's own runs, copies where no kernel " +
        "runs at all. Shares refer to each device's time after start-up; waiting for other " +
        "ranks counts as idle, as in the overview.",
      rowsOf("gpu_time").some((row) => row.stopped_ns) &&
        " Unrecorded time is in no share, and looks idle here.",
      use.left_out > 0 && ` Not in this page: ${counted(use.left_out, "more device")}.`));
  if (isMany) drawMany(use, box);
  for (const device of isMany ? [] : use.devices)
    add(box,
      el("div", {class: "row"}, el("span", {title: deviceName(device)}, deviceName(device)),
        drawAreas(use, device, 44), b(percent(busyShare(device)))));
  add(box, isMany ? ends : el("div", {class: "row"}, el("span"), ends, el("span")),
    el("ul", {class: "legend"}, [...keys, "idle"].map(
      (kind) => keyed("c-" + kind, useNames[useKinds.indexOf(kind)] || kind))));
  return "";
};
