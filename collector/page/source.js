/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own lines and their costs, by file. A file is drawn when it is opened.
 */

/* Columns of a cost [calls, host, GPU, bytes]: a line's own cost, then that of all. */
const sourceColumns = [
  ["GPU", "ns", 2, 2], ["host", "ns", 2, 1], ["calls", "count", 2, 0], ["bytes", "bytes", 2, 3],
  ["GPU, all", "ns", 3, 2], ["host, all", "ns", 3, 1]
];
const isWide = ([, type, part]) => part === 3 || type === "bytes" ? " wide" : "";

function drawSourceLine(its, columns, highest) {
  if (!its)
    return el("tr", {}, el("td", {colspan: columns.length + 1}),
      el("td", {class: "source-text"}, "\u22ef"));
  const [number, text, own] = its;
  const cells = columns.map((column, k) => {
    const [, type, part, i] = column, value = own && its[part][i];
    return el("td", {class: "number share" + isWide(column)}, value ? written(type, value) : "",
      k === 0 && value > 0 && el("i", {style: {width: 100 * value / highest + "%"}}));
  });
  return el("tr", own ? {class: "costs", tabindex: -1, "data-line": number} : {}, cells,
    el("th", {scope: "row"}, number), el("td", {class: "source-text"}, text));
}

/* Makes the element of a file, and a function that jumps to a line. */
function sourceFile([path, title, cost, lines, left_out], columns, highest) {
  const inside = el("div");
  const show = () => {
    if (inside.childElementCount) return;
    const heads = [...columns.map((column) => [column[0], "number" + isWide(column)]),
      ["line", ""], ["source", ""]];
    add(inside,
      el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Lines of " + path},
        el("table", {class: "source", "aria-label": path},
          el("thead", {},
            el("tr", {}, heads.map(([text, its]) => el("th", {scope: "col", class: its}, text)))),
          el("tbody", {}, lines.map((its) => drawSourceLine(its, columns, highest))))),
      left_out > 0 && small(`${count(left_out)} more lines are not in this page: `,
        "gpuprof report --source shows them."));
  };
  const sums = sourceColumns.slice(0, 3).filter(([, , , i]) => cost[i] > 0).map(
    ([name, type, , i]) => i ? `${written(type, cost[i])} ${name}` : counted(cost[i], "call"));
  const box = el("details", {ontoggle: () => box.open && show()},
    el("summary", {}, title, el("span", {class: "small"}, sums.join(", "))), inside);
  const open = () => {
    box.open = true;
    show();
  };
  const choose = (number) => {
    open();
    for (const row of inside.querySelectorAll("tr.costs")) {
      const isIt = row.dataset.line === String(number);
      row.setAttribute("aria-selected", isIt);
      if (!isIt) continue;
      row.scrollIntoView({block: "center"});
      row.focus({preventScroll: true});
    }
  };
  return {box, open, choose};
}

/* Draws the most expensive lines of all files; a row links to its line. */
function drawDearest(source, files, columns) {
  const own = columns.filter(([, , part]) => part === 2), [, , , first] = own[0];
  const lines = source.files.flatMap(([path, , , its], i) =>
    its.filter((one) => one && one[2] && one[2].some((n) => n > 0)).map((one) => ({i, path, one})));
  lines.sort((a, other) => other.one[2][first] - a.one[2][first]);
  const rows = lines.map(({i, path, one: [number, , costs, , name]}) => Object.assign(
    [`${path}:${number}`, name, ...own.map(([, , , at]) => costs[at])],
    {choose: () => files[i].choose(number)}));
  return drawTable(
    made("Lines that cost most", [["line", "text"], ["function", "text"], ...own], rows),
    {rows: 8, choose: (row) => row.choose()});
}

sections.source = (box, source) => {
  if (!source.files)
    return "No source: gpuprof report --source=DIR -o page.html shows the lines of the files " +
      "below DIR beside what they cost.";
  if (!source.files.length)
    return "No line of a file below the folder that --source named is in a recorded stack. " +
      source.absent;
  const {total, other} = source;
  const columns = sourceColumns.filter(([, , , i]) => source.files.some((file) => file[2][i] > 0));
  const main = columns[0] ? columns[0][3] : 1;
  const lines = source.files.flatMap((file) => file[3]).filter((its) => its && its[2]);
  const highest = Math.max(1, most(lines, (its) => its[2][main]));
  const files = source.files.map((file) => sourceFile(file, columns, highest));
  add(box,
    lead("A call counts for its innermost line here that led to it, and under \u201call\u201d ",
      `for each such line. In all ${time(total[2])} on the GPU, ${time(total[1])} on the host; `,
      `of these ${time(other[2])} and ${time(other[1])} at no line here, or without a stack.`),
    source.absent && small(source.absent),
    columns.length > 0 && [
      h3("Lines that cost most"), small("Choose one to see it in its file."),
      drawDearest(source, files, columns)
    ],
    h3("File by file"), files.map((file) => file.box));
  files[0].open();
  return "";
};
