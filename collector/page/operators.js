/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's operators: time on the host and on the GPU. */

sections.operators = (box) => {
  const tables = data.tables.filter((table) => table.name === "ops" && table.rows.length);
  if (!tables.length)
    return "No operators were recorded: gpuprof run --pytorch=shapes records them.";
  for (const table of tables)
    addTable(box, table.title || table.key.replace(/_/g, " "), table, {rows: 10});
  return "";
};
