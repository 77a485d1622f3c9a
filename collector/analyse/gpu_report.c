/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/range_rows.h"
#include "base/array.h"
#include "read/process.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"

enum { RANGE_GROUPS = SUMS_OWN }; /* of the tables of ranges */

/* ---- launches ------------------------------------------------------------------------------- */

enum launch_row { LAUNCH_LATENCY, LAUNCH_QUEUE, LAUNCH_CALL, LAUNCH_ROWS };

/* From call to kernel: the time to the kernel's begin, and its wait after the call returned. */
static void take_launch(struct sums *s, const struct rows *rows, uint32_t i)
{
    uint64_t begin_ns = rows->columns[ROW_BEGIN][i], call_ns = rows->columns[ROW_CALL_NS][i];
    uint64_t called_ns = rows->columns[ROW_CALL_BEGIN][i], end_ns = called_ns + call_ns;
    const uint64_t ns[LAUNCH_ROWS] = {[LAUNCH_LATENCY] = begin_ns - min_of(begin_ns, called_ns),
                                      [LAUNCH_QUEUE] = begin_ns - min_of(begin_ns, end_ns),
                                      [LAUNCH_CALL] = call_ns};
    /* A graph launch has many kernels but is one call. */
    unsigned count = rows->columns[ROW_FLAGS][i] & ROW_COUNTED ? LAUNCH_CALL : LAUNCH_ROWS;
    for (unsigned k = 0; k < count; k++)
        sums_count(s, &s->rows[k], ns[k], 0, 1);
}

static int launches_take(void *context, const struct rows *rows)
{
    struct sums *s = context;
    const unsigned is_one = ROW_IS_KERNEL | ROW_CALLED;
    if (s->is_unseen && s->count)
        return 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if ((rows->columns[ROW_FLAGS][i] & is_one) != is_one)
            continue;
        while (s->count < LAUNCH_ROWS) /* rows have fixed places; each kernel adds to all */
            sums_row(s, s->count, 0, 0);
        take_launch(s, rows, i);
    }
    return 0;
}

/* ---- device use ------------------------------------------------------------------------------ */

/* Keys and values of the table of device use: a row is one number, a share of another. */
enum { USE_PROCESS, USE_DEVICE, USE_WHAT };
enum { USE_SPAN, USE_BUSY, USE_IDLE, USE_KERNELS, USE_COPIES, USE_BOTH, USES };
enum { USE_ROWS, USE_NS, USE_OF };

/* The rows of a device, from USE_SPAN on; NULL: there are too many. Until the end, USE_OF is the
 * end of the last slice, and USE_NS of the span its begin. */
static struct sums_row *uses_of(struct sums *s, uint64_t process, uint64_t device)
{
    const struct key span = {process, device, USE_SPAN};
    if (!sums_find(s, span) && s->count + USES <= s->rows_max)
        for (unsigned what = 0; what < USES; what++)
            sums_row(s, process, device, what);
    return sums_find(s, span);
}

/* Adds the time that no slice covers so far: they come in the order of their begins. */
static void cover(struct sums_row *row, uint64_t begin_ns, uint64_t end_ns)
{
    begin_ns = max_of(begin_ns, row->values[USE_OF]);
    if (end_ns > begin_ns) {
        row->values[USE_NS] += end_ns - begin_ns;
        row->values[USE_OF] = end_ns;
    }
}

static int uses_take(void *context, const struct rows *rows)
{
    struct sums *s = context;
    const uint64_t *processes = rows->columns[ROW_PROCESS], *devices = rows->columns[ROW_DEVICE];
    struct sums_row *use = NULL;
    if (s->is_unseen && s->count)
        return 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t begin_ns = rows->columns[ROW_BEGIN][i];
        uint64_t end_ns = begin_ns + rows->columns[ROW_NS][i];
        bool is_copy = rows->columns[ROW_TYPE][i] == ROW_COPY;
        if (!i || processes[i] != processes[i - 1] || devices[i] != devices[i - 1])
            use = uses_of(s, processes[i], devices[i]);
        if (!use)
            continue;
        uint64_t *span = use[USE_SPAN].values;
        span[USE_NS] = span[USE_ROWS]++ ? min_of(span[USE_NS], begin_ns) : begin_ns;
        span[USE_OF] = max_of(span[USE_OF], end_ns);
        cover(&use[USE_BUSY], begin_ns, end_ns);
        cover(&use[is_copy ? USE_COPIES : USE_KERNELS], begin_ns, end_ns);
    }
    return 0;
}

static int uses_end(void *context)
{
    struct sums *s = context;
    for (uint32_t i = 0; i + USES <= s->count; i += USES) {
        struct sums_row *use = &s->rows[i];
        uint64_t ns[USES];
        for (unsigned what = 0; what < USES; what++)
            ns[what] = use[what].values[USE_NS];
        ns[USE_SPAN] = use[USE_SPAN].values[USE_OF] - ns[USE_SPAN];
        ns[USE_IDLE] = ns[USE_SPAN] - ns[USE_BUSY];
        ns[USE_BOTH] = ns[USE_KERNELS] + ns[USE_COPIES] - ns[USE_BUSY];
        for (unsigned what = 0; what < USES; what++) {
            use[what].values[USE_ROWS] = 1;
            use[what].values[USE_NS] = ns[what];
            use[what].values[USE_OF] = what == USE_SPAN ? 0 : ns[USE_SPAN];
        }
    }
    return 0;
}

/* ---- ranges and their work ------------------------------------------------------------------- */

static struct sums_row *row_of(struct sums *s, const struct kernel_name *text,
                               const struct kernel_name *domain)
{
    return range_row(s, (struct key){sums_name_key(text), sums_name_key(domain), 0});
}

static int ranges_take(void *context, const struct slice *s)
{
    const struct host_span *range = s->span;
    enum span_change change = slice_change(s, SPAN_RANGE);
    struct nccl_call call;
    if ((change != SPAN_CLOSED && change != SPAN_LEFT) || s->is_filtered)
        return 0;
    uint64_t bytes = nccl_call_of(range, &call) ? call.bytes : 0;
    sums_count(context, row_of(context, range->text, range->domain_text),
               range->end_ns - range->begin_ns, bytes, 1);
    return 0;
}

static int projected_take(void *context, const struct slice *s)
{
    struct sums *sums = context;
    if (s->is_called && s->call.span)
        survey_project(&sums->walk->survey, &s->call, s->event.begin_ns, s->event.end_ns);
    return 0;
}

/* Counts each range once, from its first work to the end of its last, as nsys does. */
static int projected_end(void *context)
{
    struct sums *s = context;
    for (uint64_t i = 0; i < s->walk->survey.nodes.count; i++) {
        const struct span_node *node = spool_at(&s->walk->survey.nodes, i, false);
        if (node->type == SPAN_RANGE && node->work_begin_ns <= node->work_end_ns)
            sums_count(s, row_of(s, node->text, node->domain_text),
                       node->work_end_ns - node->work_begin_ns, 0, 1);
    }
    return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* All tables have the JSON's columns, though some stay empty. */
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
    PART,  /* instead of the share, for rows of one number */
    BLANK, /* for rows without a sum */
    RANGE_DOMAIN,
    LAUNCHED_BY,
    COLUMNS
};

#define TEXT_NUMBERS TOTAL, INSTANCES, MEAN, MEDIAN, MIN, P95, MAX

/* Every table has the keys of all columns, but not all values. */
#define HAS(...) __VA_ARGS__
#define LACKS(...)
#define IF_ANY(...) __VA_ARGS__, .only = SUMS_BYTES
#define A_PEAK(...) SHOW(VALUE, 0), .doc = "the most that there was at a time"

/* clang-format off */
#define NAMED(what) [NAME] = {"name", "name", .shows = SHOWS_KEY, .doc = what}
#define SHARED                                                                                     \
    [SHARE] = {"share", "share", COLUMN_SHARE, 7, SHOW(SHARE, SUMS_TOTAL),          \
               .doc = "total as a share of all rows"}
#define UNSHARED [SHARE] = {"share", "share", COLUMN_SHARE, 7}, [BLANK] = {NULL, "", .width = 7}
#define NUMBERS(unit, type, total, has)                                                            \
    [TOTAL] = {"total_" unit, "total", type, 12,                                                   \
               total(SHOW(VALUE, SUMS_TOTAL), .doc = "the sum")},                   \
    [INSTANCES] = {"instances", "instances", COLUMN_COUNT, 12, .spare = 2,                         \
                   has(SHOW(VALUE, SUMS_COUNT), .doc = "the number of them")},      \
    [MEAN] = {"mean_" unit, "mean", type, 12, .spare = 1,                                          \
              has(SHOW(MEAN, SUMS_TOTAL), .doc = "the mean")},                      \
    [MEDIAN] = {"median_" unit, "median", type, 12, .spare = 1, .of = SUMS_MAX, .by = SUMS_MIN,    \
                has(.shows = SHOWS_MEDIAN, .doc = "the median, within 1%")},                       \
    [MIN] = {"min_" unit, "min", type, 12, .spare = 1,                                             \
             has(SHOW(VALUE, SUMS_MIN), .doc = "the smallest")},                    \
    [P95] = {"p95_" unit, "p95", type, 12, .spare = 1, .of = SUMS_MAX, .by = SUMS_MIN,             \
             has(.shows = SHOWS_P95, .doc = "the 95th percentile, within 1%")},                    \
    [MAX] = {"max_" unit, "max", type, 12, .spare = 1,                                             \
             has(SHOW(VALUE, SUMS_MAX), .doc = "the largest")}
#define BESIDES(size, rate, maker)                                                                 \
    [BYTES] = {"bytes", "bytes", COLUMN_BYTES, 11, .spare = 2,                                     \
               size(SHOW(VALUE, SUMS_BYTES), .doc = "bytes copied, set or sent")},  \
    [RATE] = {"bandwidth_gb_s", "GB/s", COLUMN_RATE, 9, .spare = 2, .of = SUMS_BYTES,              \
              rate(.shows = SHOWS_RATE, .by = SUMS_TOTAL, .doc = "bytes a second")},               \
    [LAUNCHED_BY] = {"launched_by",                                                                \
                     maker(.doc = "the library call that launched them, if it is one and the same")}

static const struct column kernels[COLUMNS] = {
    NAMED("the kernel"), SHARED, NUMBERS("ns", COLUMN_NS, HAS, HAS), BESIDES(LACKS, LACKS, HAS)};
static const struct column copies[COLUMNS] = {
    NAMED("the direction, or a set"), SHARED, NUMBERS("ns", COLUMN_NS, HAS, HAS),
    BESIDES(HAS, HAS, LACKS)};
static const struct column sizes[COLUMNS] = {
    NAMED("the direction, or a set"), SHARED, NUMBERS("bytes", COLUMN_BYTES, HAS, HAS),
    BESIDES(LACKS, LACKS, LACKS)};
static const struct column times[COLUMNS] = {
    NAMED("what took the time"), SHARED, NUMBERS("ns", COLUMN_NS, HAS, HAS),
    BESIDES(LACKS, LACKS, LACKS)};
static const struct column launches[COLUMNS] = {
    NAMED("from where to where"), UNSHARED, NUMBERS("ns", COLUMN_NS, HAS, HAS),
    BESIDES(LACKS, LACKS, LACKS)};
static const struct column ranges[COLUMNS] = {
    NAMED("the range's text"), UNSHARED, NUMBERS("ns", COLUMN_NS, HAS, HAS),
    [RANGE_DOMAIN] = {"domain", SHOW(KEY, 1), .doc = "the NVTX domain, if any"},
    BESIDES(IF_ANY, LACKS, LACKS)};
static const struct column calls[COLUMNS] = {
    NAMED("the kernel, or the direction"), SHARED, NUMBERS("ns", COLUMN_NS, HAS, HAS),
    BESIDES(IF_ANY, LACKS, LACKS)};
/* Columns for rows of one number. */
static const struct column uses[COLUMNS] = {
    [NAME] = {"name", "name", .doc = "the process, the device, and what the device did"},
    NUMBERS("ns", COLUMN_NS, HAS, LACKS), BESIDES(LACKS, LACKS, LACKS),
    [PART] = {"share", "share", COLUMN_SHARE, 7, .doc = "of the time from first work to last"}};
static const struct column peaks[COLUMNS] = {
    [NAME] = {"name", "name", .doc = "the process, the device, and the kind of memory"},
    NUMBERS("bytes", COLUMN_BYTES, LACKS, LACKS), BESIDES(A_PEAK, LACKS, LACKS),
    [PART] = {"share", "share", COLUMN_SHARE, 7}};
/* clang-format on */

/* ---- names ----------------------------------------------------------------------------------- */

/* "name", or with --by=grid "name <<<1x1x1, 256x1x1>>>". */
static const char *kernel_name(const struct sums *s, const struct sums_row *row, char *text)
{
    uint64_t grid = row->keys[1], block = row->keys[2];
    const char *name = row->keys[0] ? sums_shown(row->keys[0]) : "(kernel of no known name)";
    if (s->by != BY_GRID || !s->info->keys[1])
        return name;
    snprintf(text, SUMS_NAME_BYTES, "%s <<<%ux%ux%u, %ux%ux%u>>>", name, (unsigned)(uint32_t)grid,
             (unsigned)(grid >> 32 & 0xffff), (unsigned)(grid >> 48), (unsigned)(uint32_t)block,
             (unsigned)(block >> 32 & 0xffff), (unsigned)(block >> 48));
    return text;
}

void gpu_join_makers(uint64_t *to, const uint64_t *from)
{
    if (from[KERNEL_MAKER] == MAKER_UNKNOWN)
        return;
    if (to[KERNEL_MAKER] == MAKER_UNKNOWN) {
        memcpy(&to[KERNEL_MAKER], &from[KERNEL_MAKER], (KERNEL_VALUES - KERNEL_MAKER) * sizeof *to);
    } else if (to[KERNEL_MAKER_FUNCTION] != from[KERNEL_MAKER_FUNCTION]) {
        to[KERNEL_MAKER] = MAKER_NONE;
        to[KERNEL_MAKER_FUNCTION] = to[KERNEL_MAKER_TEXT] = 0;
    } else if (to[KERNEL_MAKER_TEXT] != from[KERNEL_MAKER_TEXT]) {
        to[KERNEL_MAKER_TEXT] = 0;
    }
}

static void fill_kernel(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    const char *maker =
        sums_shown(row->values[KERNEL_MAKER_TEXT] ?: row->values[KERNEL_MAKER_FUNCTION]);
    if (!maker)
        return;
    cells[LAUNCHED_BY] = cell_text(maker);
    if (t->format != FORMAT_TEXT)
        return;
    struct cell name = cell_printf("%s (by %s)", cells[NAME].text, maker);
    free(cells[NAME].memory);
    cells[NAME] = name;
}

static const char *copy_name(uint64_t kind)
{
    static const char *const names[] = {
        "[CUDA memcpy unknown]",          "[CUDA memcpy Host-to-Device]",
        "[CUDA memcpy Device-to-Host]",   "[CUDA memcpy Host-to-Array]",
        "[CUDA memcpy Array-to-Host]",    "[CUDA memcpy Array-to-Array]",
        "[CUDA memcpy Array-to-Device]",  "[CUDA memcpy Device-to-Array]",
        "[CUDA memcpy Device-to-Device]", "[CUDA memcpy Host-to-Host]",
        "[CUDA memcpy Peer-to-Peer]",     "[CUDA memset]",
    };
    _Static_assert(sizeof names / sizeof names[0] == GPU_COPY_SET + 1, "one for each kind");
    return names[kind <= GPU_COPY_SET ? kind : 0];
}

static const char *host_copy_name(uint64_t kind)
{
    static const char *const names[] = {
        "Host-to-Host",         "Host-to-Device", "Device-to-Host", "Device-to-Device",
        "as the addresses say", "not known",      "set to a value"};
    _Static_assert(sizeof names / sizeof names[0] == HOST_COPY_SET + 1, "one for each kind");
    return names[kind <= HOST_COPY_SET ? kind : HOST_COPY_UNKNOWN];
}

static const char *graph_name(const struct sums *s, const struct sums_row *row, char *text)
{
    (void)s;
    snprintf(text, SUMS_NAME_BYTES, "CUDA graph %llu", (unsigned long long)row->keys[0]);
    return text;
}

static const char *launch_name(uint64_t kind)
{
    static const char *const names[] = {"launch latency", "queue time", "call"};
    return names[kind % 3];
}

static const char *range_name(const struct sums *s, const struct sums_row *row, char *text)
{
    (void)s, (void)text;
    return row->keys[0] ? sums_shown(row->keys[0]) : "range";
}

/* Puts a range's domain into its name in the text, as nsys does. */
static void fill_range(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    const char *domain = cells[RANGE_DOMAIN].text;
    (void)row;
    if (t->format == FORMAT_TEXT && domain)
        cells[NAME] = cell_printf("%s:%s", domain, cells[NAME].text);
}

/* ---- devices --------------------------------------------------------------------------------- */

static struct cell device_name(const struct sums *s, const struct sums_row *row, const char *what)
{
    const struct process *p = s->rec->processes[row->keys[USE_PROCESS]];
    char who[RANK_TITLE_BYTES] = "";
    if (s->rec->count > 1 || process_rank(p))
        process_who(p, who);
    return cell_printf("%s%sGPU %llu: %s", who, *who ? ", " : "",
                       (unsigned long long)row->keys[USE_DEVICE], what);
}

static void fill_use(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    const struct sums *s = t->source;
    static const char *const whats[USES] = {[USE_SPAN] = "from first to last work",
                                            [USE_BUSY] = "busy",
                                            [USE_IDLE] = "idle",
                                            [USE_KERNELS] = "in kernels",
                                            [USE_COPIES] = "in copies and sets",
                                            [USE_BOTH] = "copies and sets during kernels"};
    uint64_t what = row->keys[USE_WHAT] < USES ? row->keys[USE_WHAT] : USE_SPAN;
    cells[NAME] = device_name(
        s, row, what == USE_IDLE && s->walk->filter ? "idle, or at other work" : whats[what]);
    if (row->values[USE_OF])
        cells[PART] = cell_share(row->values[USE_NS], row->values[USE_OF]);
}

static void fill_peak(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    const struct sums *s = t->source;
    cells[NAME] = device_name(
        s, row,
        row->keys[USE_WHAT] == PEAK_ALLOCATED ? "most allocated" : "most reserved, pools included");
    if (t->format == FORMAT_TEXT)
        cells[TOTAL] = cell_number(row->values[0]);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define TABLE(key_, title_, columns_)                                                              \
    SUMS_TABLE, .name = key_, .key = key_, .title = title_, .columns = columns_,                   \
                .column_count = COLUMNS
#define VALUES                  JOIN_ADD, JOIN_ADD, JOIN_LEAST, JOIN_MOST, JOIN_ADD
#define FROM(table_, type, ...) .from = {1u << (type), table_, __VA_ARGS__}
#define OF_TIMES                                                                                   \
    .rows_max = SUMS_ROWS_MAX, .has_durations = true, .is_left_out = true, .order = SUMS_TOTAL
#define OF_KINDS OF_TIMES, .keys = {KEY_NUMBER}, .values = {VALUES}
#define OF_RANGES                                                                                  \
    OF_TIMES, .keys = {KEY_TEXT, KEY_TEXT}, .values = {VALUES, JOIN_ADD}, .name = range_name,      \
              .marks = RANGE_GROUPS, .fill = fill_range, .row = range_row,                         \
              .complete = range_rows_complete
#define OF_DEVICES                                                                                 \
    .keys = {KEY_PROCESS, KEY_NUMBER, KEY_NUMBER}, .is_left_out = true, .order = SUMS_BY_KEYS
/* Shows 16 devices: each has up to six rows, or two. */
#define FEW(rows) .text_limit = 16 * (rows)

const struct sums_info kernels_sums = {
    OF_TIMES,
    .keys = {KEY_TEXT, KEY_NUMBER, KEY_NUMBER},
    .values = {VALUES, JOIN_OWN, JOIN_OWN, JOIN_OWN},
    .is = {[KERNEL_MAKER_FUNCTION] = KEY_TEXT, [KERNEL_MAKER_TEXT] = KEY_TEXT},
    FROM(ROWS_WORK, ROW_KERNEL, ROW_NAME),
    .parts = REPORT_WORK | REPORT_MAKERS,
    .name = kernel_name,
    .join = gpu_join_makers,
    .fill = fill_kernel,
    .table = {TABLE("cuda_gpu_kern_sum", "GPU kernels", kernels), .place = PLACE_KERNELS,
              .text = {SHARE, TEXT_NUMBERS}}};

const struct sums_info copies_sums = {
    OF_KINDS, FROM(ROWS_WORK, ROW_COPY, ROW_KIND), .parts = REPORT_WORK, .number_name = copy_name,
    .table = {TABLE("cuda_gpu_mem_time_sum", "GPU copies and sets", copies), .place = PLACE_COPIES,
              .text = {SHARE, TEXT_NUMBERS, BYTES, RATE}}};

const struct sums_info copy_sizes_sums = {
    OF_KINDS, FROM(ROWS_WORK, ROW_COPY, ROW_KIND, ROW_BYTES), .parts = REPORT_WORK,
    .number_name = copy_name,
    .table = {TABLE("cuda_gpu_mem_size_sum", "GPU copies and sets, by size", sizes),
              .text = {SHARE, TEXT_NUMBERS}}};

const struct sums_info graphs_sums = {
    OF_KINDS, FROM(ROWS_WORK, ROW_GRAPH, ROW_KIND), .parts = REPORT_WORK, .name = graph_name,
    .table = {TABLE("cuda_gpu_graph_sum", "GPU graphs", times), .place = PLACE_GRAPHS,
              .text = {SHARE, TEXT_NUMBERS}}};

const struct sums_info syncs_sums = {
    OF_KINDS, FROM(ROWS_OTHERS, ROW_SYNC, ROW_KIND), .parts = REPORT_WORK,
    .number_name = sync_kind_text,
    .table = {TABLE("cuda_sync_sum", "synchronizations", times), .text = {SHARE, TEXT_NUMBERS}}};

const struct sums_info launches_sums = {
    OF_KINDS, .parts = REPORT_WORK | REPORT_CORRELATED, .number_name = launch_name,
    .rows = {.tables = 1u << ROWS_WORK, .ties = true, .take = launches_take},
    .table = {TABLE("cuda_kern_exec_sum", "time from launch to kernel", launches),
              .text = {BLANK, TEXT_NUMBERS}}};

const struct sums_info ranges_sums = {
    OF_RANGES, .parts = REPORT_WORK,
    .consumer = {.needs = WALK_SPANS,
                 .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK,
                 .take = ranges_take},
    .table = {TABLE("nvtx_sum", "ranges (host)", ranges), .place = PLACE_RANGES,
              .text = {BLANK, TEXT_NUMBERS}, .text_behind = range_rows_say}};

const struct sums_info projections_sums = {
    OF_RANGES, .parts = REPORT_WORK | REPORT_CORRELATED,
    .consumer = {.needs = WALK_SPANS | WALK_WORK,
                 .skips = WALK_SKIPS_CALLS | WALK_SKIPS_OTHERS,
                 .take_work = projected_take,
                 .end = projected_end},
    .table = {TABLE("nvtx_gpu_proj_sum", "ranges (projected on the GPU)", ranges),
              .text = {BLANK, TEXT_NUMBERS}, .text_behind = range_rows_say}};

const struct sums_info overheads_sums = {
    OF_KINDS, FROM(ROWS_OTHERS, ROW_OVERHEAD, ROW_KIND), .parts = REPORT_WORK,
    .number_name = overhead_kind_text,
    .table = {TABLE("overhead_sum", "overhead of CUDA and CUPTI", times),
              .text = {SHARE, TEXT_NUMBERS}}};

const struct sums_info gpu_use_sums = {
    OF_DEVICES,
    .rows = {.tables = 1u << ROWS_WORK, .take = uses_take, .end = uses_end},
    .rows_max = USES * 4096,
    .values = {JOIN_MOST, JOIN_ADD, JOIN_ADD},
    .parts = REPORT_WORK | REPORT_USE,
    .fill = fill_use,
    .table = {TABLE("gpu_time_util", "GPU utilization", uses), .text = {PART, TOTAL},
              .is_bare = true, FEW(6)}};

const struct sums_info gpu_memory_sums = {
    OF_DEVICES, .values = {JOIN_MOST}, .parts = REPORT_MEMORY, .fill = fill_peak,
    .table = {TABLE("gpu_memory_peak", "GPU memory", peaks), .place = PLACE_MEMORY,
              .text = {PART, TOTAL}, .is_bare = true, FEW(2)}};

#define FROM_GPU_ROWS ": only for processes whose work on the GPU is not recorded"

const struct sums_info host_kernels_sums = {
    OF_TIMES,
    .keys = {KEY_TEXT},
    .values = {VALUES},
    FROM(ROWS_CALLS, ROW_HOST_KERNEL, ROW_NAME),
    .parts = REPORT_WORK,
    .name = kernel_name,
    .table = {TABLE("host_kernel_sum", "launches by kernel (times of the calls)", calls),
              .place = PLACE_KERNELS, .text = {SHARE, TEXT_NUMBERS}, .text_none = FROM_GPU_ROWS}};

const struct sums_info host_copies_sums = {
    OF_KINDS, FROM(ROWS_CALLS, ROW_HOST_COPY, ROW_KIND), .parts = REPORT_WORK,
    .number_name = host_copy_name,
    .table = {TABLE("host_mem_sum", "copies by direction (times of the calls)", calls),
              .place = PLACE_COPIES, .text = {SHARE, TEXT_NUMBERS, BYTES},
              .text_none = FROM_GPU_ROWS}};
