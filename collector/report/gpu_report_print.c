/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the devices on paper. Names of tables and columns are those of `nsys stats` where
 * it has them. */
#include "analyse/gpu_report.h"
#include "analyse/range_rows.h"

static uint64_t mean_ns(const struct gpu_stat *row)
{
    return row->count ? row->total_ns / row->count : 0;
}

static uint64_t quantile_ns(const struct gpu_stat *row, double fraction)
{
    return histogram_quantile(&row->durations, fraction, row->min_ns, row->max_ns);
}

static double bandwidth(const struct gpu_stat *row)
{
    return row->total_ns ? (double)row->bytes / (double)row->total_ns : 0;
}

enum {
    NAME,
    SHARE,
    TOTAL,
    INSTANCES,
    MEAN,
    MEDIAN,
    MIN,
    P95,
    MAX,
    BYTES,
    RATE,
    PART,  /* in the place of the share, where a row is a single number */
    BLANK, /* where rows add up to nothing */
    RANGE_DOMAIN,
    LAUNCHED_BY,
    COLUMNS
};

/* What is counted are times, or bytes; rows add up to something, or are a part of it each. */
#define GPU_COLUMNS(unit, counted, share, part, domain)                                            \
    {                                                                                              \
        [NAME] = {"name", "name"}, [SHARE] = {share, share, COLUMN_SHARE, 7},                      \
        [TOTAL] = {"total_" unit, "total", counted, 12}, [INSTANCES] = {"instances",  "instances", \
                                                                        COLUMN_COUNT, 12,          \
                                                                        false,        2},          \
        [MEAN] = {"mean_" unit, "mean", counted, 12, false, 1},                                    \
        [MEDIAN] = {"median_" unit, "median", counted, 12, false, 1}, [MIN] = {"min_" unit, "min", \
                                                                               counted,     12,    \
                                                                               false,       1},    \
        [P95] = {"p95_" unit, "p95", counted, 12, false, 1}, [MAX] = {"max_" unit, "max", counted, \
                                                                      12,          false, 1},      \
        [BYTES] = {"bytes", "bytes", COLUMN_BYTES, 11, false, 2}, [RATE] = {"bandwidth_gb_s",      \
                                                                            "GB/s",                \
                                                                            COLUMN_RATE,           \
                                                                            9,                     \
                                                                            false,                 \
                                                                            2},                    \
        [PART] = {part, part, COLUMN_SHARE, 7}, [BLANK] = {NULL, "", COLUMN_TEXT, 7},              \
        [RANGE_DOMAIN] = {domain}, [LAUNCHED_BY] = {"launched_by"},                                \
    }
static const struct column times[COLUMNS] = GPU_COLUMNS("ns", COLUMN_NS, "share", NULL, NULL);
static const struct column ranges[COLUMNS] = GPU_COLUMNS("ns", COLUMN_NS, "share", NULL, "domain");
static const struct column sizes[COLUMNS] = GPU_COLUMNS("bytes", COLUMN_BYTES, "share", NULL, NULL);
static const struct column parts[COLUMNS] = GPU_COLUMNS("ns", COLUMN_NS, NULL, "share", NULL);
static const struct column peaks[COLUMNS] = GPU_COLUMNS("bytes", COLUMN_BYTES, NULL, "share", NULL);
#undef GPU_COLUMNS

static bool is_single(const struct table *t)
{
    return t->info->columns == parts || t->info->columns == peaks;
}

static void table_begins(struct table *t, enum report_format format)
{
    uint32_t count;
    const struct gpu_stat *rows = gpu_report_rows(t->source, &count);
    enum gpu_table table = (enum gpu_table)(t->info - gpu_tables);
    (void)format;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].table != table)
            continue;
        t->first = t->count ? t->first : i;
        t->count++;
        t->whole += rows[i].total_ns;
    }
    t->is_there = t->count > 0;
}

static void fill_single(const struct table *t, const struct gpu_stat *row,
                        enum report_format format, struct cell *cells)
{
    bool is_bytes = t->info->columns == peaks;
    if (is_bytes)
        cells[BYTES] = cell_number(row->bytes);
    if (!is_bytes || format == FORMAT_TEXT)
        cells[TOTAL] = cell_number(is_bytes ? row->bytes : row->total_ns);
    if (row->of_ns)
        cells[PART] = cell_share(row->total_ns, row->of_ns);
}

/* The text has a range's domain in its name, as nsys has it; and a kernel's library behind it. */
static struct cell name_of(const struct gpu_stat *row, const char *maker, enum report_format format)
{
    char *text = NULL;
    if (format != FORMAT_TEXT || (!row->domain && !maker))
        return cell_text(row->name);
    if (maker)
        return cell_owned(asprintf(&text, "%s (by %s)", row->name, maker) < 0 ? NULL : text);
    return cell_owned(asprintf(&text, "%s:%s", row->domain, row->name) < 0 ? NULL : text);
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    uint32_t count;
    const struct gpu_stat *row = &gpu_report_rows(t->source, &count)[t->first + index];
    const char *maker = gpu_report_maker(t->source, row);
    cells[NAME] = name_of(row, maker, format);
    if (maker)
        cells[LAUNCHED_BY] = cell_text(maker);
    cells[RANGE_DOMAIN] = cell_text(row->domain);
    if (is_single(t)) {
        fill_single(t, row, format, cells);
        return;
    }
    if (t->info->text[0] == SHARE)
        cells[SHARE] = cell_share(row->total_ns, t->whole);
    cells[TOTAL] = cell_number(row->total_ns);
    cells[INSTANCES] = cell_number(row->count);
    cells[MEAN] = cell_number(mean_ns(row));
    cells[MEDIAN] = cell_number(quantile_ns(row, 0.5));
    cells[MIN] = cell_number(row->min_ns);
    cells[P95] = cell_number(quantile_ns(row, 0.95));
    cells[MAX] = cell_number(row->max_ns);
    bool is_copied = row->table == TABLE_COPIES;
    if (is_copied || row->bytes) /* of ranges: of NCCL's messages */
        cells[BYTES] = cell_number(row->bytes);
    if (is_copied)
        cells[RATE] = cell_real(bandwidth(row));
}

/* Where rows are left out, what all devices together did, which is no row of the table. Of one
 * device it would be. */
static bool fill_all_devices(const struct table *t, struct cell *cells)
{
    struct gpu_totals all = gpu_report_totals(t->source);
    char *name = NULL;
    if (t->shown == t->rows || all.devices < 2)
        return false;
    if (asprintf(&name, "all %u devices: busy", all.devices) < 0)
        name = NULL;
    cells[NAME] = cell_owned(name);
    cells[TOTAL] = cell_number(all.busy_ns);
    cells[PART] = cell_share(all.busy_ns, all.span_ns);
    return true;
}

static void say_groups(const struct table *t, FILE *out)
{
    uint32_t count, groups = 0;
    const struct gpu_stat *rows = gpu_report_rows(t->source, &count);
    for (uint32_t i = 0; i < t->count; i++)
        groups += rows[t->first + i].is_group;
    if (groups)
        range_rows_say(out);
}

static void say_memory(const struct table *t, FILE *out)
{
    const struct gpu_report *g = t->source;
    if (t->count && gpu_report_is_piece(g))
        fprintf(out, "  the most that there was at any time of the piece, whoever allocated it\n");
}

#define GPU_TABLE(key_, title_, columns_)                                                          \
    .name = key_, .key = key_, .title = title_, .columns = columns_, .column_count = COLUMNS,      \
    .begin = table_begins, .row = fill_row
/* Of a device of one process there are up to six rows, or two: 16 such are shown. */
#define FEW(rows)                                                                                  \
    .text_limit = 16 * (rows), .more = "... and %s more row%s; --limit=N shows more of them"
#define NUMBERS TOTAL, INSTANCES, MEAN, MEDIAN, MIN, P95, MAX

const struct table_info gpu_tables[TABLE_COUNT] = {
    [TABLE_KERNELS] = {GPU_TABLE("cuda_gpu_kern_sum", "GPU kernels", times), .place = PLACE_KERNELS,
                       .text = {SHARE, NUMBERS}},
    [TABLE_COPIES] = {GPU_TABLE("cuda_gpu_mem_time_sum", "GPU copies and sets", times),
                      .place = PLACE_COPIES, .text = {SHARE, NUMBERS, BYTES, RATE}},
    [TABLE_SIZES] = {GPU_TABLE("cuda_gpu_mem_size_sum", "GPU copies and sets, by size", sizes),
                     .text = {SHARE, NUMBERS}},
    [TABLE_GRAPHS] = {GPU_TABLE("cuda_gpu_graph_sum", "GPU graphs", times), .place = PLACE_GRAPHS,
                      .text = {SHARE, NUMBERS}},
    [TABLE_SYNCS] = {GPU_TABLE("cuda_sync_sum", "synchronisations", times),
                     .text = {SHARE, NUMBERS}},
    [TABLE_LAUNCHES] = {GPU_TABLE("cuda_kern_exec_sum", "from launch to kernel", times),
                        .text = {BLANK, NUMBERS}},
    [TABLE_RANGES] = {GPU_TABLE("nvtx_sum", "ranges (host)", ranges), .place = PLACE_RANGES,
                      .text = {BLANK, NUMBERS}, .text_behind = say_groups},
    [TABLE_PROJECTIONS] = {GPU_TABLE("nvtx_gpu_proj_sum", "ranges (projected on the GPU)", ranges),
                           .text = {BLANK, NUMBERS}, .text_behind = say_groups},
    [TABLE_OVERHEADS] = {GPU_TABLE("overhead_sum", "overhead of CUDA and CUPTI", times),
                         .text = {SHARE, NUMBERS}},
    [TABLE_DEVICES] = {GPU_TABLE("gpu_time_util", "use of the GPUs", parts), .text = {PART, TOTAL},
                       .is_bare = true, FEW(6), .foot = fill_all_devices},
    [TABLE_MEMORY] = {GPU_TABLE("gpu_memory_peak", "GPU memory", peaks), .place = PLACE_MEMORY,
                      .text = {PART, TOTAL}, .is_bare = true, FEW(2), .text_behind = say_memory},
    [TABLE_HOST_LAUNCHES] = {GPU_TABLE("host_kernel_sum", "launches by kernel (times of the calls)",
                                       times),
                             .place = PLACE_KERNELS, .text = {SHARE, NUMBERS}},
    [TABLE_HOST_COPIES] = {GPU_TABLE("host_mem_sum", "copies by direction (times of the calls)",
                                     times),
                           .place = PLACE_COPIES, .text = {SHARE, NUMBERS, BYTES}},
};
