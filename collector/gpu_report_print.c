/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the devices on paper. Names of tables and columns are those of `nsys stats` where
 * it has them. */
#include <stdlib.h>
#include <string.h>

#include "csv_kind.h"
#include "gpu_report.h"
#include "json_text.h"
#include "unit_text.h"

static const struct {
    enum csv_kind kind;  /* in the csv */
    const char *key;     /* in the JSON */
    const char *heading; /* in the text */
    bool bytes;          /* has sizes */
    bool share;          /* its rows add up to something */
    bool numbers;        /* rows are single numbers */
    bool sizes;          /* what is counted are bytes, not times */
} tables[TABLE_COUNT] = {
    [TABLE_KERNELS] = {CSV_KERNEL, "cuda_gpu_kern_sum", "GPU kernels", false, true, false, false},
    [TABLE_COPIES] = {CSV_COPY, "cuda_gpu_mem_time_sum", "GPU copies and sets", true, true, false,
                      false},
    [TABLE_SIZES] = {CSV_KIND_COUNT, "cuda_gpu_mem_size_sum", "GPU copies and sets, by size", false,
                     true, false, true},
    [TABLE_GRAPHS] = {CSV_GRAPH, "cuda_gpu_graph_sum", "GPU graphs", false, true, false, false},
    [TABLE_SYNCS] = {CSV_SYNC, "cuda_sync_sum", "synchronisations", false, true, false, false},
    [TABLE_LAUNCHES] = {CSV_LAUNCH, "cuda_kern_exec_sum", "from launch to kernel", false, false,
                        false, false},
    [TABLE_RANGES] = {CSV_RANGE, "nvtx_sum", "ranges (host)", false, false, false, false},
    [TABLE_PROJECTIONS] = {CSV_GPU_RANGE, "nvtx_gpu_proj_sum", "ranges (projected on the GPU)",
                           false, false, false, false},
    [TABLE_OVERHEADS] = {CSV_OVERHEAD, "overhead_sum", "overhead of CUDA and CUPTI", false, true,
                         false, false},
    [TABLE_DEVICES] = {CSV_DEVICE, "gpu_time_util", "use of the GPUs", false, false, true, false},
    [TABLE_MEMORY] = {CSV_MEMORY, "gpu_memory_peak", "GPU memory", true, false, true, false},
};

static uint64_t mean_ns(const struct gpu_stat *row)
{
    return row->count ? row->total_ns / row->count : 0;
}

/* A bucket's middle may lie outside of what is in it. */
static uint64_t quantile_ns(const struct gpu_stat *row, double fraction)
{
    uint64_t ns = histogram_quantile(&row->durations, fraction);
    ns = ns > row->min_ns ? ns : row->min_ns;
    return ns < row->max_ns ? ns : row->max_ns;
}

static double bandwidth(const struct gpu_stat *row)
{
    return row->total_ns ? (double)row->bytes / (double)row->total_ns : 0;
}

/* The time of all rows of the table that begins at `rows`. */
static uint64_t table_ns(const struct gpu_stat *rows, uint32_t count)
{
    uint64_t total_ns = 0;
    for (uint32_t i = 0; i < count && rows[i].table == rows->table; i++)
        total_ns += rows[i].total_ns;
    return total_ns;
}

static const char *value_text(const struct gpu_stat *row, char *text, uint64_t value)
{
    return tables[row->table].sizes ? bytes_text(text, value) : time_text(text, value);
}

static void print_row(const struct gpu_stat *row, uint64_t total_ns, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES], d[UNIT_TEXT_BYTES];
    char e[UNIT_TEXT_BYTES], f[UNIT_TEXT_BYTES], g[UNIT_TEXT_BYTES], h[UNIT_TEXT_BYTES];
    char share[16] = "";
    char rate[32] = "";
    if (tables[row->table].share)
        snprintf(share, sizeof share, "%.1f%%",
                 total_ns ? 100.0 * (double)row->total_ns / (double)total_ns : 0);
    if (tables[row->table].bytes)
        snprintf(rate, sizeof rate, "%.3f", bandwidth(row));
    char *name = json_line(row->name);
    fprintf(out, "%7s %12s %12s %12s %12s %12s %12s %12s", share, value_text(row, a, row->total_ns),
            count_text(b, row->count), value_text(row, c, mean_ns(row)),
            value_text(row, d, quantile_ns(row, 0.5)), value_text(row, e, row->min_ns),
            value_text(row, f, quantile_ns(row, 0.95)), value_text(row, g, row->max_ns));
    if (tables[row->table].bytes)
        fprintf(out, " %11s %9s", bytes_text(h, row->bytes), rate);
    fprintf(out, "  %s\n", name ? name : "?");
    free(name);
}

static void print_number(const struct gpu_stat *row, FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    char share[16] = "";
    char *name = json_line(row->name);
    if (row->of_ns)
        snprintf(share, sizeof share, "%.1f%%", 100.0 * (double)row->total_ns / (double)row->of_ns);
    fprintf(out, "%7s %12s  %s\n", share,
            tables[row->table].bytes ? bytes_text(text, row->bytes)
                                     : time_text(text, row->total_ns),
            name ? name : "?");
    free(name);
}

void gpu_report_print_text(const struct gpu_report *g, FILE *out)
{
    uint32_t count;
    const struct gpu_stat *rows = gpu_report_rows(g, &count);
    uint64_t total_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum gpu_table table = rows[i].table;
        if (i == 0 || rows[i - 1].table != table) {
            total_ns = table_ns(rows + i, count - i);
            fprintf(out, "\n%s\n", tables[table].heading);
            if (!tables[table].numbers)
                fprintf(out, "%7s %12s %12s %12s %12s %12s %12s %12s%s  %s\n",
                        tables[table].share ? "share" : "", "total", "instances", "mean", "median",
                        "min", "p95", "max", tables[table].bytes ? "       bytes      GB/s" : "",
                        "name");
        }
        if (tables[table].numbers)
            print_number(&rows[i], out);
        else
            print_row(&rows[i], total_ns, out);
    }
}

static void print_json_row(const struct gpu_stat *row, uint64_t total_ns, FILE *out)
{
    char *name = json_string(row->name, strlen(row->name));
    fprintf(out, "{\"name\": %s", name ? name : "\"?\"");
    free(name);
    if (tables[row->table].numbers) {
        if (tables[row->table].bytes)
            fprintf(out, ", \"bytes\": %llu", (unsigned long long)row->bytes);
        else
            fprintf(out, ", \"total_ns\": %llu", (unsigned long long)row->total_ns);
        if (row->of_ns)
            fprintf(out, ", \"share\": %.4f", (double)row->total_ns / (double)row->of_ns);
        fputc('}', out);
        return;
    }
    if (tables[row->table].share)
        fprintf(out, ", \"share\": %.4f",
                total_ns ? (double)row->total_ns / (double)total_ns : 0.0);
    const char *unit = tables[row->table].sizes ? "bytes" : "ns";
    fprintf(out, ", \"total_%s\": %llu, \"instances\": %llu, \"mean_%s\": %llu, ", unit,
            (unsigned long long)row->total_ns, (unsigned long long)row->count, unit,
            (unsigned long long)mean_ns(row));
    fprintf(out, "\"median_%s\": %llu, \"min_%s\": %llu, \"p95_%s\": %llu, \"max_%s\": %llu", unit,
            (unsigned long long)quantile_ns(row, 0.5), unit, (unsigned long long)row->min_ns, unit,
            (unsigned long long)quantile_ns(row, 0.95), unit, (unsigned long long)row->max_ns);
    if (tables[row->table].bytes)
        fprintf(out, ", \"bytes\": %llu, \"bandwidth_gb_s\": %.6f", (unsigned long long)row->bytes,
                bandwidth(row));
    fputc('}', out);
}

void gpu_report_print_json(const struct gpu_report *g, FILE *out)
{
    uint32_t count;
    const struct gpu_stat *rows = gpu_report_rows(g, &count);
    uint64_t total_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool first = i == 0 || rows[i - 1].table != rows[i].table;
        if (first) {
            total_ns = table_ns(rows + i, count - i);
            fprintf(out, "%s,\n\"%s\": [", i ? "\n]" : "", tables[rows[i].table].key);
        }
        fprintf(out, first ? "\n" : ",\n");
        print_json_row(&rows[i], total_ns, out);
    }
    if (count)
        fprintf(out, "\n]");
}

static bool is_of_host(enum gpu_table table)
{
    return table == TABLE_SYNCS || table == TABLE_RANGES || table == TABLE_OVERHEADS;
}

/* In the columns of the functions: count as calls, and no errors. Sizes have no columns there.
 */
void gpu_report_print_csv(const struct gpu_report *g, FILE *out)
{
    uint32_t count;
    const struct gpu_stat *rows = gpu_report_rows(g, &count);
    for (uint32_t i = 0; i < count; i++) {
        const struct gpu_stat *row = &rows[i];
        if (tables[row->table].sizes)
            continue;
        report_csv_begin(tables[row->table].kind, row->name, out);
        fprintf(out, ",%s,%llu,%llu,%llu,%llu,%llu,%llu,%llu,0,0\n",
                is_of_host(row->table) ? "host" : "gpu", (unsigned long long)row->count,
                (unsigned long long)row->total_ns, (unsigned long long)mean_ns(row),
                (unsigned long long)quantile_ns(row, 0.5),
                (unsigned long long)quantile_ns(row, 0.95), (unsigned long long)row->max_ns,
                (unsigned long long)row->bytes);
    }
}
