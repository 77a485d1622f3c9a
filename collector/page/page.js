/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all sections use: elements made without markup (names are always text nodes), numbers with
 * units, tables, bars, and the tip at the pointer. A section is a function sections.ID(box, data).
 * It draws into the element `box`, or returns a sentence that says why there is nothing to draw.
 */
"use strict";

const sections = {};
let data; /* the page's data; page_sections.def lists its members */

/* ---- elements ---- */

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else if (name === "style")
      Object.assign(node.style, value);
    else
      node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
/* Prevents line breaks inside --an-option. */
const kept = (child) => typeof child === "string" && child.includes("--") ?
  child.split(/(--[a-z][a-z-]*)/).map((part, i) => i % 2 ? el("span", {class: "kept"}, [part]) :
                                                           part) :
  child;
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes,
  attributes && attributes.class === "kept" ? children : children.flat().flatMap(kept));
/* Appends the children that are not null. */
const add = (node, ...children) => fill(node, {}, children);
const svg = (name, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
const line = (x1, y1, x2, y2, kind) => svg("line", {x1, y1, x2, y2, class: kind});
const rect = (x, y, width, height, kind, more) =>
  svg("rect", {x, y, width, height, class: kind, ...more});
const label = (x, y, anchor, text) => svg("text", {x, y, "text-anchor": anchor}, text);

const h3 = (...children) => el("h3", {}, ...children);
const b = (...children) => el("b", {}, ...children);
const lead = (...children) => el("p", {class: "lead"}, ...children);
const small = (...children) => el("p", {class: "small"}, ...children);
const none = (...children) => el("p", {class: "none"}, ...children);
const code = (text) => el("code", {}, text);
const alarm = (...children) => el("div", {class: "alert", role: "note"}, ...children);
const items = (list, attributes) =>
  el("ul", attributes, list.map((children) => el("li", {}, children)));
const button = (text, onclick, more) => el("button", {type: "button", onclick, ...more}, text);
const search = (placeholder, name, oninput) =>
  el("input", {type: "search", placeholder, "aria-label": name, oninput});

/* Listens to keys: functions by the names of the keys. */
const onKeys = (actions) => (event) => {
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
};

/* ---- lists ---- */

const sum = (list, of = (x) => x) => list.reduce((all, x, i) => all + (of(x, i) || 0), 0);
const most = (list, of = (x) => x) => list.reduce((best, x) => Math.max(best, of(x)), -Infinity);
const rising = (list) => [...list].sort((one, other) => one - other);

/* ---- numbers ---- */

const digits = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});
const count = (n) => digits.format(n);
const counted = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

function scaled(value, units, base) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= base * .9995) {
    value /= base;
    unit++;
  }
  const digits = unit === 0 || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + " " + units[unit];
}
const seconds = (s) => s >= 5400 ? (s / 3600).toFixed(2) + " h" :
  s >= 100                       ? count(s) + " s" :
                                   s.toFixed(s >= 10 ? 1 : 2) + " s";
const time = (ns) => ns === null ? "" :
  ns <= -.5                      ? "\u2212" + time(-ns) :
  ns >= 999.5e6                  ? seconds(ns / 1e9) :
                                   scaled(Math.max(0, ns), ["ns", "\u00b5s", "ms"], 1000);
const bytes = (n) => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
const amount = (n) => scaled(n, ["", "k", "M", "G", "T", "P"], 1000);
const percent = (share) => share > 0 && share < .00005 ? "< 0.01 %" :
  (100 * share).toFixed(share && Math.abs(share) < .001 ? 2 : 1) + " %";

/* Digits of numbers encoded as letters, 0 to 63. */
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const writers = {
  ns: time,
  bytes,
  amount,
  count,
  share: percent,
  rate: (n) => n.toFixed(n >= 100 ? 0 : 2),
  number: (n) => String(n),
  bool: (n) => n ? "yes" : "",
  json: (v) => typeof v === "string" ? v : JSON.stringify(v),
  list: (v) => Array.isArray(v) ?
    v.map((x) => typeof x === "string" ? x : JSON.stringify(x)).join("\n") :
    String(v),
};
const written = (type, value) => value === null || value === undefined ? "" :
  typeof value === "string"                                            ? value :
                              (writers[type] || String)(value);
const isNumeric =
  (type) => ["ns", "bytes", "amount", "count", "share", "rate", "number"].includes(type);

const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

const chart = (W, H, said, attributes, ...children) => svg("svg",
  {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": said, ...attributes}, ...children);
/* Labels an axis at its start, middle and end; `write` formats the fraction. */
const axisTexts = (W, y, write) =>
  ["start", "middle", "end"].map((anchor, i) => label(i / 2 * W, y, anchor, write(i / 2)));
/* Returns which of `count` equal parts of the node, left to right (or down), has the pointer. */
const partAt = (event, node, count, isDown) => {
  const area = node.getBoundingClientRect();
  const at = isDown ? (event.clientY - area.top) / area.height :
                      (event.clientX - area.left) / area.width;
  return clamp(Math.floor(at * count), 0, count - 1);
};

/* Returns a colour of the style sheet as red, green and blue, to paint on a canvas. */
const colour = (name) => {
  const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
};

/* Makes a map of cells: a pixel for each column and row, the colours of these names mixed by the
 * weights that weightsOf returns. The arrow keys move its marker, a click or Enter chooses a cell;
 * `say` describes one. Returns the map and a function that moves the marker. */
function cellMap(name, columns, rows, height, colours, weightsOf, say, choose) {
  const canvas = el("canvas", {width: columns, height: rows, style: {height: height + "px"}});
  const marker = el("div", {class: "marker"});
  const paint = () => {
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
    const parts = colours.map(colour);
    for (let y = 0; y < rows; y++)
      for (let x = 0; x < columns; x++) {
        const weights = weightsOf(x, y);
        const pixel = [0, 1, 2].map((c) => sum(parts, (part, i) => weights[i] * part[c]));
        image.data.set([...pixel, 255], 4 * (columns * y + x));
      }
    context.putImageData(image, 0, 0);
  };
  let at = [0, 0];
  const place = (x, y) => {
    at = [clamp(x, 0, columns - 1), clamp(y, 0, rows - 1)];
    Object.assign(marker.style, {
      left: 100 * at[0] / columns + "%",
      width: `max(4px, ${100 / columns}%)`,
      top: height * at[1] / rows - 1 + "px",
      height: Math.max(4, height / rows) + "px"
    });
    map.setAttribute("aria-label", `${name}. ${say(...at)}`);
  };
  const by = (x, y) => () => place(at[0] + x, at[1] + y);
  const cellAt = (event) => [partAt(event, canvas, columns), partAt(event, canvas, rows, true)];
  const map = tipped(el("div", {
    class: "chart pick",
    role: "img",
    tabindex: 0,
    onclick: (event) => choose(...cellAt(event)),
    onkeydown: onKeys({
      ArrowRight: by(1, 0), ArrowLeft: by(-1, 0), ArrowDown: by(0, 1), ArrowUp: by(0, -1),
      Enter: () => choose(...at)
    })
  }, canvas, marker), (event) => say(...cellAt(event)));
  paint();
  addEventListener("recolour", paint);
  return [map, place];
}

/* ---- tables in the data ---- */

const tableOf = (key, tables = data.tables) => tables.find((table) => table.key === key);
const columnAt = (table, key) => table.columns.findIndex((column) => column.key === key);

/* Makes a table of a section's own rows; columns are [label, type]. */
const made = (title, columns, rows, left_out = 0) => ({
  key: title,
  title,
  left_out,
  columns: columns.map(([label, type]) => ({key: label, type, label})),
  rows
});

/* Groups rows by key, in the order of each group's first row. */
function grouped(rows, keyOf) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    groups.set(key, [...groups.get(key) || [], row]);
  }
  return groups;
}

/* Returns rows as objects with the columns' keys; none if there is no table. */
function rowsOf(key, tables) {
  const table = tableOf(key, tables);
  return table ? table.rows.map((row) => Object.fromEntries(
                                  table.columns.map((column, i) => [column.key, row[i]]))) :
                 [];
}

const processName = (index) => {
  const process = data.overview.processes[index];
  if (!process) return "process " + index;
  return process[1] !== null           ? "rank " + process[1] :
    data.overview.processes.length > 1 ? process[0] :
                                         process[0].replace(/ \([^()]*\)$/, "");
};

/* Blanks a count and its mean where the count is 0, in rows that `isUnknown` accepts. */
function blank(table, count, mean, isUnknown = () => true) {
  const places = [count, mean].map((key) => columnAt(table, key));
  for (const row of table.rows)
    if (!row[places[0]] && isUnknown(row)) places.forEach((i) => { row[i] = null; });
}

/* ---- the tip ---- */

/* Shows a tip: `text` returns it for a pointer's event, or "". */
function tipped(node, text) {
  const box = document.getElementById("tip");
  node.addEventListener("pointermove", (event) => {
    box.textContent = text(event);
    box.hidden = !box.textContent;
    const x = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
    const isAbove = event.clientY + 18 + box.offsetHeight > innerHeight;
    box.style.left = Math.max(8, x) + "px";
    box.style.top = event.clientY + (isAbove ? -box.offsetHeight - 12 : 18) + "px";
  });
  node.addEventListener("pointerleave", () => {
    box.hidden = true;
  });
  return node;
}

/* ---- bars ---- */

/* Draws a bar of parts [name, class, value]; `whole` is their base. */
function bar(parts, whole, thin) {
  const shown = parts.filter((part) => part[2] > 0);
  const said = shown.map(([name, , value]) => `${name} ${time(value)}, ${percent(value / whole)}`);
  return el("div", {class: thin ? "bar thin" : "bar", role: "img", "aria-label": said.join("; ")},
    shown.map(
      ([, kind, value], i) => tipped(
        el("span", {class: kind, style: {width: 100 * value / whole + "%"}}), () => said[i])));
}

const keyed = (kind, ...text) => el("li", {}, el("span", {class: "key " + kind}), ...text);
const legend = (parts, whole) => el("ul", {class: "legend"},
  parts.filter((part) => part[2] > 0)
    .map(([name, kind, value]) => keyed(
           kind, name + " ", el("b", {}, percent(value / whole)), " " + time(value))));

/* ---- tables ---- */

const PAGE_ROWS = 15, NARROW_MAX = 12; /* letters */

const labelOf = (column) => column.label || column.key.replace(/_ns$/, "").replace(/_/g, " ");

/* Return whether a column has values, and whether they differ. */
const isFilled = (table, i) => table.rows.some((row) => row[i] !== null && row[i] !== "");
const differs = (table, i) => table.rows.some((row) => row[i] !== table.rows[0][i]);

function cellOf(type, value, isFirst, isNarrow) {
  const text = written(type, value);
  if (type === "share" && typeof value === "number") {
    return el("td", {class: "number share"}, text,
      el("i", {style: {width: clamp(100 * value, 0, 100) + "%"}}));
  }
  if (isNumeric(type)) return el("td", {class: "number"}, text);
  const isLong =
    isFirst || type === "lines" || type === "list" || type === "json" || text.length > 30;
  return el(isFirst ? "th" : "td",
    isFirst ? {scope: "row", class: isNarrow ? "word" : "text"} :
              {class: isLong ? "text" : "word"},
    text.length > 120 ? el("span", {class: "cut", title: text}, text) : text);
}

/*
 * Draws a table that sorts by column, filters by text, and shows a page of rows at a time.
 * `how`: {rows, choose(row), columns: keys, differing: keys that are left out if all rows have the
 * same value, caption}.
 */
function drawTable(table, how = {}) {
  const columns = table.columns.map((column, at) => ({
    ...column, at, isNumber: isNumeric(column.type), text: (row) => written(column.type, row[at])
  })).filter(({key, at}) => isFilled(table, at) && (!how.columns || how.columns.includes(key)) &&
    (differs(table, at) || !(how.differing || []).includes(key)));
  const texts = columns.filter((column) => !column.isNumber), [first] = texts;
  const isNarrow = first && table.rows.every((row) => first.text(row).length <= NARROW_MAX);
  const order = first ? [first, ...columns.filter((column) => column !== first)] : columns;
  const size = how.rows || PAGE_ROWS;
  const caption = how.caption || table.title || table.key.replace(/_/g, " ");
  let rows = table.rows, sorted = null, falls = true, page = 0, chosen = null;

  const body = el("tbody");
  const said = el("span", {"aria-live": "polite"});
  const before = button("Previous", () => show(page - 1));
  const behind = button("Next", () => show(page + 1));
  const heads = order.map((column) =>
    el("th", {scope: "col", class: column.isNumber ? "number" : ""},
      button(labelOf(column), () => sortBy(column), {title: column.doc || null})));
  const filter = search("Filter", "Filter " + caption, () => select());

  function select() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = table.rows.filter((row) => words.every((word) =>
      texts.some((column) => column.text(row).toLowerCase().includes(word))));
    if (sorted) {
      const {at, isNumber} = sorted, sign = falls ? -1 : 1;
      const compare = isNumber ? (a, b) => a - b :
        (a, b) => String(a).localeCompare(String(b), "en", {numeric: true});
      rows.sort((a, b) => (a[at] === null) - (b[at] === null) || sign * compare(a[at], b[at]));
    }
    show(0);
  }
  function sortBy(column) {
    falls = sorted === column ? !falls : column.isNumber;
    sorted = column;
    heads.forEach((head, k) => {
      head.ariaSort = order[k] !== column ? null : falls ? "descending" : "ascending";
    });
    select();
  }
  function pick(row) {
    chosen = row;
    how.choose(row);
    for (const line of body.children) line.setAttribute("aria-selected", String(line.row === row));
  }
  function press(event) {
    const lines = Array.from(body.children), at = lines.indexOf(event.currentTarget);
    const go = (to) => () => lines[to] && lines[to].focus();
    const choose = () => pick(lines[at].row);
    onKeys({
      ArrowDown: go(at + 1), ArrowUp: go(at - 1), Home: go(0), End: go(lines.length - 1),
      Enter: choose, " ": choose
    })(event);
  }
  function show(wanted) {
    const pages = Math.max(1, Math.ceil(rows.length / size));
    page = clamp(wanted, 0, pages - 1);
    body.replaceChildren(...rows.slice(page * size, page * size + size).map((row) => {
      const attributes = {
        tabindex: 0, "aria-selected": row === chosen ? "true" : "false",
        onclick: () => pick(row), onkeydown: press
      };
      return Object.assign(el("tr", how.choose ? attributes : {}, order.map(
        ({type, at}, k) => cellOf(type, row[at], k === 0, isNarrow))), {row});
    }));
    const from = rows.length ? page * size + 1 : 0, to = Math.min(rows.length, page * size + size);
    const left = table.left_out ? `; ${count(table.left_out)} more are not in this page` : "";
    said.textContent = `${count(from)}\u2013${count(to)} of ${count(rows.length)}${left}`;
    before.disabled = page === 0;
    behind.disabled = page + 1 >= pages;
    foot.hidden = pages === 1 && !table.left_out && rows.length === table.rows.length;
  }
  const foot = el("div", {class: "pages"}, said, before, behind);
  show(0);
  return el("div", {class: "table"}, table.rows.length > 8 && el("div", {class: "tools"}, filter),
    el("div", {class: "scroll"},
      el("table", {"aria-label": caption}, el("thead", {}, el("tr", {}, heads)), body)),
    foot);
}

/* Adds a heading and a table, unless the table is missing or empty. */
function addTable(box, title, table, how) {
  if (table && table.rows.length) add(box, h3(title), drawTable(table, {caption: title, ...how}));
}

/* Makes a table that stays as it is. Heads are [text, class]; cells [class, children ...], those of
 * the first column name their rows. */
const plainTable = (name, heads, rows) => el("div", {class: "scroll"},
  el("table", {"aria-label": name},
    el("thead", {}, el("tr", {},
      heads.map(([text, its]) => el("th", {scope: "col", class: its || ""}, text)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map(([its, ...children], i) =>
      i ? el("td", {class: its}, children) :
        el("th", {scope: "row", class: its}, children)))))));

/* ---- the page ---- */

function theme() {
  const root = document.documentElement, button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const use = (isDark) => {
    root.dataset.theme = isDark ? "dark" : "light";
    button.textContent = isDark ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark ? "Use light colours" : "Use dark colours");
    dispatchEvent(new Event("recolour"));
  };
  button.addEventListener("click", () => use(root.dataset.theme !== "dark"));
  dark.addEventListener("change", () => use(dark.matches));
  use(dark.matches);
}

/* Draws a section; returns "", or why it is empty. */
function drawSection(id, box) {
  try {
    const none = sections[id](box, data[id]) || "";
    box.dataset.drawn = none ? "none" : "yes";
    return none;
  } catch (error) {
    console.error(error);
    box.append(none("This section could not be drawn: " + error.message));
    box.dataset.drawn = "failed";
    return "";
  }
}

/* Lists empty sections and what to do about them, after all others. */
const drawAbsent = (absent) => el("details", {id: "absent"},
  el("summary", {}, "Nothing to show of: " + absent.map(([title]) => title).join(", ")),
  el("dl", {}, absent.map(([title, why]) => [el("dt", {}, title), el("dd", {}, why)])));

/* Marks the first visible section in the list of sections. */
function follow(links) {
  const seen = new Map();
  /* The margin is what the head hides. */
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) seen.set(entry.target.id, entry.isIntersecting);
    const first = data.sections.find(([id]) => seen.get(id));
    if (!first) return;
    for (const [id, link] of links) link.ariaCurrent = id === first[0] ? "true" : null;
  }, {rootMargin: "-49px 0px -55% 0px"});
  for (const id of links.keys()) watcher.observe(document.getElementById(id));
}

function start() {
  data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main"), nav = document.getElementById("nav");
  const links = new Map(), absent = [];
  document.title = data.name + " \u00b7 gpuprof";
  document.getElementById("name").textContent = data.name;
  theme();
  const boxes = data.sections.map(([id, title]) => {
    const box =
      el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title));
    links.set(id, el("a", {href: "#" + id}, title));
    return [id, box];
  });
  main.replaceChildren(...boxes.map(([, box]) => box));
  nav.append(...links.values());
  follow(links);
  /* Draws the first section at once, each other one after the browser has painted. */
  const next = (i) => {
    if (i === boxes.length) {
      if (absent.length) main.append(drawAbsent(absent));
      document.documentElement.dataset.drawn = "all";
      return;
    }
    const [id, box] = boxes[i], why = drawSection(id, box);
    if (why) {
      absent.push([data.sections[i][1], why]);
      box.remove();
      links.get(id).remove();
      links.delete(id);
    }
    setTimeout(next, 0, i + 1);
  };
  next(0);
}

addEventListener("DOMContentLoaded", start);
