/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `top`: shows what the processes that record into a folder are doing, as text for a
 * terminal, JSON (a line each time) or OpenMetrics. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "file/live_file.h"
#include "output/output.h"
#include "run/ctl_folder.h"
#include "table/screen.h"
#include "table/table.h"

#define SECONDS_USUAL  1.0
#define SECONDS_ONCE   10.0 /* by then all have answered twice, or count as silent */
#define SILENT_SECONDS 5.0
#define LOOK_SECONDS   0.2
#define ASK_SECONDS    2.0         /* well within CONTROL_WATCH_SECONDS / 2 */
#define QUIET_NS       5000000000u /* stored figures are older than now, too */

enum top_format { TOP_TEXT, TOP_JSON, TOP_OPENMETRICS }; /* in the order of --format */

enum top_state {
    TOP_RECORDING,
    TOP_STOPPED, /* by the program or gpuprof ctl */
    TOP_BETWEEN, /* between two windows */
    TOP_SILENT,  /* no answer lately, or ever */
    TOP_ENDED,
};

/* In the order of enum top_state. */
static const char *const state_words[] = {"recording", "stopped", "between windows", "no answer",
                                          "ended"};

/* What is known of one process. */
struct top_row {
    const struct ctl_process *process; /* a view until the folder is looked at again */
    uint32_t index;                    /* of the process in the folder */
    bool is_shown;
    enum top_state state;
    uint32_t stopped; /* of the newest answer, like the following */
    uint64_t figures[CONTROL_FIGURES];
    double answered;  /* when it was read, by our clock */
    uint64_t answers; /* distinct answers so far */
    /* Per second, and the share of its devices' time, since the answer before; NAN: not known. */
    double calls, launches, busy;
};

/* Options of the verb. */
struct top_options {
    struct ctl_options which;
    bool is_once;
    double interval; /* seconds; below 0: not given */
    enum top_format format;
};

struct top {
    struct ctl_folder folder;
    const struct top_options *own;
    const char *output;   /* NULL: standard output */
    struct top_row *rows; /* owned; one for each process of the folder, those shown first */
    uint32_t count, shown;
    bool has_running; /* some have not ended */
    bool is_whole;    /* all have answered twice, or ended */
};

/* ---- reading --------------------------------------------------------------------------------- */

static double rate(uint64_t before, uint64_t after, double seconds)
{
    bool is_known = before != CONTROL_UNKNOWN && after != CONTROL_UNKNOWN && after >= before;
    return is_known ? (double)(after - before) / seconds : NAN;
}

/* Takes an answer. Without recording, the number of calls is not known. */
static void top_take_answer(struct top_row *row, const struct control_status *s)
{
    const uint64_t *before = row->figures, *now = s->figures;
    double seconds = (double)(now[FIGURE_NOW_NS] - before[FIGURE_NOW_NS]) / 1e9;
    row->calls = row->launches = row->busy = NAN;
    if (row->answers && seconds > 0 && seconds <= SILENT_SECONDS) { /* else it is too old */
        if (!s->stopped && !row->stopped) {
            row->calls = rate(before[FIGURE_CALLS], now[FIGURE_CALLS], seconds);
            row->launches = rate(before[FIGURE_LAUNCHES], now[FIGURE_LAUNCHES], seconds);
        }
        row->busy = rate(before[FIGURE_BUSY_NS], now[FIGURE_BUSY_NS], seconds * 1e9) /
                    (double)max_of(now[FIGURE_DEVICES], 1);
        row->busy = row->busy > 1 ? 1 : row->busy; /* late records of earlier work */
    }
    row->stopped = s->stopped;
    row->answers++;
    row->answered = monotonic_seconds();
    memcpy(row->figures, now, sizeof row->figures);
}

static enum top_state state_of(const struct top_row *row)
{
    if (row->process->has_ended)
        return TOP_ENDED;
    if (!row->answers || monotonic_seconds() - row->answered > SILENT_SECONDS)
        return TOP_SILENT;
    return !row->stopped                       ? TOP_RECORDING
           : row->stopped == STOPPED_BY_WINDOW ? TOP_BETWEEN
                                               : TOP_STOPPED;
}

/* Reads the process's status, unless it ended before `top` began. */
static void look_at_process(struct top *t, struct top_row *row)
{
    struct ctl_process *p = &t->folder.processes[row->index];
    const uint64_t *figures = p->status.figures;
    row->process = p;
    if (p->is_meant && !p->has_ended) {
        if (ctl_process_read(p) && figures[FIGURE_NOW_NS] != CONTROL_UNKNOWN &&
            figures[FIGURE_CALLS] != CONTROL_UNKNOWN && /* otherwise it answered `ctl` */
            (!row->answers || figures[FIGURE_NOW_NS] != row->figures[FIGURE_NOW_NS]))
            top_take_answer(row, &p->status);
        p->has_ended = live_owner(&p->header) == LIVE_OWNER_ENDED;
    }
    row->state = state_of(row);
    if (row->state >= TOP_SILENT)
        row->calls = row->launches = row->busy = NAN;
    row->is_shown = p->is_meant && ctl_process_is_named(p, &t->own->which);
    t->shown += row->is_shown;
    t->has_running |= row->is_shown && row->state != TOP_ENDED;
    t->is_whole &= !row->is_shown || row->state == TOP_ENDED || row->answers > 1;
}

/* Those shown come first, by rank (unknown: last), host and pid. */
static int top_compare_rows(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;
    const struct ctl_process *x = a->process, *y = b->process;
    int host = strcmp(x->header.host, y->header.host);
    if (a->is_shown != b->is_shown)
        return a->is_shown ? -1 : 1;
    if (x->rank != y->rank)
        return ORDER(x->rank, y->rank);
    return host ? host : ORDER(x->header.pid, y->header.pid);
}

/* Reads new answers. Returns 0, or an error of ctl_folder_look. */
static int top_look(struct top *t)
{
    int error = ctl_folder_look(&t->folder);
    while (t->count < t->folder.count) {
        struct ctl_process *p = &t->folder.processes[t->count];
        struct top_row row = {.index = t->count};
        p->is_meant = !p->has_ended;
        ARRAY_PUSH(t->rows, t->count, &row);
    }
    t->shown = 0;
    t->has_running = false;
    t->is_whole = true;
    for (uint32_t i = 0; i < t->count; i++)
        look_at_process(t, &t->rows[i]);
    ARRAY_SORT(t->rows, t->count, top_compare_rows);
    return error;
}

enum { TOP_UP = CONTROL_FIGURES, TOP_RECORDS }; /* figures of OpenMetrics instead of a state */

/* A figure of the row; CONTROL_UNKNOWN: none. */
static uint64_t figure_of(const struct top_row *row, unsigned which)
{
    bool is_live = row->state < TOP_SILENT;
    if (which == TOP_UP)
        return is_live;
    if (which == TOP_RECORDS && is_live)
        return row->state == TOP_RECORDING;
    /* Stored figures are a little old: a process that makes calls is not quiet. */
    if (which == FIGURE_QUIET_NS && (row->state != TOP_RECORDING || row->calls > 0))
        return CONTROL_UNKNOWN;
    return is_live && which < CONTROL_FIGURES ? row->figures[which] : CONTROL_UNKNOWN;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { OPEN, RANK, PID, HOST, STATE, CALLS, LAUNCHES, BUSY, FIGURES };
static const struct column columns[] = {
    [OPEN] = {.label = "open call"},
    [RANK] = {.label = "rank", .width = 4, .is_filled = true},
    [PID] = {.label = "pid", .width = 6},
    [HOST] = {.label = "host", .width = 16, .is_filled = true},
    [STATE] = {.label = "state", .width = 9},
    [CALLS] = {NULL, "calls/s", COLUMN_AMOUNT, 7, .is_filled = true},
    [LAUNCHES] = {NULL, "launches/s", COLUMN_AMOUNT, 10, .is_filled = true},
    [BUSY] = {NULL, "gpu", COLUMN_SHARE, 6, .is_filled = true},
    [FIGURES] = {NULL, "memory", COLUMN_BYTES, 8, .is_filled = true, .of = FIGURE_HELD_BYTES},
    {NULL, "tensors", COLUMN_BYTES, 8, .is_filled = true, .of = FIGURE_TENSOR_BYTES},
    {NULL, "step", COLUMN_COUNT, 6, .is_filled = true, .of = FIGURE_STEP},
    {NULL, "step time", COLUMN_NS, 10, .is_filled = true, .of = FIGURE_STEP_NS},
    {NULL, "median", COLUMN_NS, 10, .is_filled = true, .of = FIGURE_STEP_MEDIAN_NS},
};

static void begin_rows(struct table *t)
{
    t->count = ((const struct top *)t->source)->shown;
    t->is_there = true;
}

static struct cell rate_cell(double rate)
{
    return isnan(rate) ? (struct cell){0} : cell_number((uint64_t)llround(rate));
}

static void show_row(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct top *top = t->source;
    const struct top_row *row = &top->rows[index];
    const struct ctl_process *p = row->process;
    const char *host = p->header.host;
    char text[UNIT_TEXT_BYTES];
    uint64_t open_ns = figure_of(row, FIGURE_OPEN_NS), quiet_ns = figure_of(row, FIGURE_QUIET_NS);
    if (open_ns != CONTROL_UNKNOWN)
        cells[OPEN] = cell_printf("%s %s", p->status.open_call, time_text(text, open_ns));
    else if (quiet_ns != CONTROL_UNKNOWN && quiet_ns >= QUIET_NS)
        cells[OPEN] = cell_printf("no call for %s", time_text(text, quiet_ns));
    else
        cells[OPEN] = cell_text("-");
    if (p->rank != RANK_NONE)
        cells[RANK] = cell_printf("%" PRIu64, p->rank);
    cells[PID] = cell_printf("%u", p->header.pid);
    if (strcmp(host, top->rows[0].process->header.host) != 0) /* or all are on one host */
        cells[HOST] = cell_text(host);
    cells[STATE] = cell_text(state_words[row->state]);
    cells[CALLS] = rate_cell(row->calls);
    cells[LAUNCHES] = rate_cell(row->launches);
    if (!isnan(row->busy))
        cells[BUSY] = cell_real(row->busy);
    for (unsigned i = FIGURES; i < t->info->column_count; i++) {
        uint64_t figure = figure_of(row, columns[i].of);
        cells[i] = figure == CONTROL_UNKNOWN ? (struct cell){0} : cell_number(figure);
    }
}

static const struct table_info top_table = {TABLE_COLUMNS(columns), .name = "top",
                                            .begin = begin_rows, .row = show_row};

/* ---- JSON and OpenMetrics -------------------------------------------------------------------- */

/* Metrics of a process; the end of the name is the unit. */
static const struct metric {
    const char *name; /* in OpenMetrics after "gpuprof_" */
    bool is_counter;
    unsigned figure; /* enum control_figure, or the above */
    const char *help;
} metrics[] = {
    {"up", false, TOP_UP, "1 if the process answers, 0 if it does not or has ended."},
    {"recording", false, TOP_RECORDS, "1 if calls are recorded now."},
    {"calls", true, FIGURE_CALLS,
     "CUDA calls recorded since this process was first asked for figures."},
    {"launches", true, FIGURE_LAUNCHES, "Launches of kernels and graphs among these."},
    {"gpu_busy_seconds", true, FIGURE_BUSY_NS,
     "Time for which devices worked for this process, summed over its devices."},
    {"gpus", false, FIGURE_DEVICES, "Devices that have worked for this process."},
    {"memory_bytes", false, FIGURE_HELD_BYTES,
     "Device memory that calls of this process have got and not given back."},
    {"tensor_bytes", false, FIGURE_TENSOR_BYTES, "Of it, what PyTorch's allocator has handed out."},
    {"reserved_bytes", false, FIGURE_RESERVED_BYTES,
     "Of it, what PyTorch's allocator has reserved."},
    {"steps", true, FIGURE_STEPS, "Steps that have begun."},
    {"step", false, FIGURE_STEP, "Number of the step under way."},
    {"step_seconds", false, FIGURE_STEP_NS, "Duration of the last whole step."},
    {"step_median_seconds", false, FIGURE_STEP_MEDIAN_NS, "Median duration of the last 64 steps."},
    {"open_call_seconds", false, FIGURE_OPEN_NS,
     "For how long the call has been open that has been so longest."},
    {"quiet_seconds", false, FIGURE_QUIET_NS,
     "For how long this process has made no call, and is in none."},
};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

/* "seconds" or "bytes"; "": none. */
static const char *unit_of(const struct metric *m)
{
    const char *last = strrchr(m->name, '_');
    return last ? last + 1 : "";
}

/* The metric of a process in its unit, and the digits behind the point; NAN: not known. */
static double value_of(const struct top_row *row, const struct metric *m, int *digits)
{
    uint64_t figure = figure_of(row, m->figure);
    bool is_time = strcmp(unit_of(m), "seconds") == 0;
    *digits = is_time ? 9 : 0;
    return figure == CONTROL_UNKNOWN ? NAN : (double)figure * (is_time ? 1e-9 : 1);
}

static void print_json_row(FILE *out, const struct top_row *row)
{
    const struct ctl_process *p = row->process;
    int digits;
    bool is_open = figure_of(row, FIGURE_OPEN_NS) != CONTROL_UNKNOWN;
    json_printf(out,
                "{\"rank\":%.0f,\"pid\":%u,\"host\":%s,\"state\":%s,\"calls_per_second\":%.6g,"
                "\"launches_per_second\":%.6g,\"gpu_busy_share\":%.6g",
                p->rank == RANK_NONE ? NAN : (double)p->rank, p->header.pid, p->header.host,
                state_words[row->state], row->calls, row->launches, row->busy);
    for (const struct metric *m = metrics; m < metrics + METRICS; m++)
        if (m->figure < CONTROL_FIGURES) {
            double value = value_of(row, m, &digits);
            json_printf(out, digits ? ",%s:%.9f" : ",%s:%.0f", m->name, value);
        }
    if (is_open)
        json_printf(out, ",\"open_call\":%s}", p->status.open_call);
    else
        fputs(",\"open_call\":null}", out);
}

static void top_print_json(FILE *out, const struct top *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(out, "{\"time\":%lld.%03ld,\"processes\":[", (long long)now.tv_sec,
            now.tv_nsec / 1000000);
    for (uint32_t i = 0; i < t->shown; i++) {
        fputs(i ? "," : "", out);
        print_json_row(out, &t->rows[i]);
    }
    fputs("]}\n", out);
}

static void print_metric(FILE *out, const struct top_row *row, const struct metric *m)
{
    const struct ctl_process *p = row->process;
    int digits;
    double value = value_of(row, m, &digits);
    if (isnan(value))
        return;
    fprintf(out, "gpuprof_%s%s{host=\"%s\",pid=\"%u\"", m->name, m->is_counter ? "_total" : "",
            p->header.host, p->header.pid);
    if (p->rank != RANK_NONE)
        fprintf(out, ",rank=\"%" PRIu64 "\"", p->rank);
    if (m->figure == FIGURE_OPEN_NS)
        fprintf(out, ",function=\"%s\"", p->status.open_call);
    fprintf(out, "} %.*f\n", digits, value);
}

static void print_openmetrics(FILE *out, const struct top *t)
{
    for (const struct metric *m = metrics; m < metrics + METRICS; m++) {
        fprintf(out, "# TYPE gpuprof_%s %s\n", m->name, m->is_counter ? "counter" : "gauge");
        if (*unit_of(m))
            fprintf(out, "# UNIT gpuprof_%s %s\n", m->name, unit_of(m));
        fprintf(out, "# HELP gpuprof_%s %s\n", m->name, m->help);
        for (uint32_t i = 0; i < t->shown; i++)
            print_metric(out, &t->rows[i], m);
    }
    fputs("# EOF\n", out);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static void top_print(FILE *out, const struct top *t, const struct table_view *view)
{
    struct table table = {.info = &top_table, .source = t};
    struct new_text text;
    if (t->own->format != TOP_TEXT) {
        (t->own->format == TOP_JSON ? top_print_json : print_openmetrics)(out, t);
        return;
    }
    FILE *stream = new_text_begin(&text);
    table_print_text(&table, view, stream);
    char *all = new_text_end(&text, stream);
    fputs(all + (*all == '\n'), out); /* in a report an empty line comes first */
    free(all);
}

/* Prints over the last output on a terminal, to the named file, or one output after another. */
static enum exit_code top_own_print(const struct top *t)
{
    const struct top_options *o = t->own;
    struct output out;
    struct winsize size = {0};
    struct table_view view = {.limit = ROWS_UNLIMITED};
    if (!t->output) {
        view.width = terminal_width(STDOUT_FILENO);
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        if (!o->is_once && o->format == TOP_TEXT && terminal_has_colour(STDOUT_FILENO)) {
            fputs("\033[H\033[2J", stdout);
            view.limit = size.ws_row > 4 ? size.ws_row - 4u : ROWS_UNLIMITED;
        }
        top_print(stdout, t, &view);
        fflush(stdout);
        return ferror(stdout) ? standard_output_end() : EXIT_OK;
    }
    enum exit_code code = verb_output_open(&out, t->output, NULL);
    if (code != EXIT_OK)
        return code;
    top_print(out.stream, t, &view);
    return verb_output_close(&out, t->output, 0);
}

static enum exit_code watch(struct top *t)
{
    const struct top_options *o = t->own;
    double interval = o->interval < 0 ? SECONDS_USUAL : o->interval;
    double begin = monotonic_seconds(), next = begin;
    double most_once = o->which.timeout < 0 ? SECONDS_ONCE : o->which.timeout;
    for (;;) {
        int error = top_look(t);
        error = error == 0 ? ctl_folder_watch(&t->folder) : error;
        if (error < 0)
            return ctl_folder_failed(&t->folder, "top", error);
        if (t->shown == 0)
            return usage_error("top: no matching process records into '%s' now", t->folder.path);
        bool is_last = !t->has_running ||
                       (o->is_once && (t->is_whole || monotonic_seconds() > begin + most_once));
        if (is_last || (!o->is_once && monotonic_seconds() >= next)) {
            enum exit_code code = top_own_print(t);
            if (code != EXIT_OK || is_last)
                return code;
            next = monotonic_seconds() + interval;
        }
        double rest = o->is_once ? LOOK_SECONDS : next - monotonic_seconds();
        if (rest > 0)
            usleep((useconds_t)(1e6 * (rest < ASK_SECONDS ? rest : ASK_SECONDS)));
    }
}

static enum exit_code top_run(const struct options *options)
{
    struct top t = {
        .own = options->own, .output = options->output, .folder = {.needs_ranks = true}};
    if (options->path_count != 1)
        return usage_error("top: name one data folder; try 'gpuprof help top'");
    t.folder.path = options->paths[0];
    enum exit_code code = watch(&t);
    ctl_folder_release(&t.folder);
    free(t.rows);
    return code;
}

static const struct option own_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT, "Replace this file each time; default: standard output"},
    {OPTIONS_OF(ctl_options, 0), .at = offsetof(struct top_options, which)},
    {0, "once", NULL, OPTION_FLAG(struct top_options, is_once),
     "Print one answer of each process after a few seconds, and end"},
    {0, "interval", "SECONDS", OPTION_OWN(option_seconds, struct top_options, interval),
     "Print this often; default: 1"},
    {0, "format", "text|json|openmetrics", OPTION_OWN(option_choice, struct top_options, format),
     "Print text, a line of JSON each time, or Prometheus metrics; default: text"},
    {0},
};

VERB_IS(top, top_run, own_options,
        VERB_OWN(struct top_options, .which = CTL_OPTIONS_USUAL, .interval = -1), 0, "DIR",
        "show what running processes do: calls, GPU use, memory, steps, waits",
        {PART_EXAMPLE, "gpuprof top data", "show the running processes, once a second"},
        {PART_EXAMPLE, "gpuprof top data --format=openmetrics -o gpuprof.prom --interval=15",
         "write a file for Prometheus, replaced every 15 seconds"},
        {PART_FILE, "DIR/control", "the requests; DIR/*.status: the answers"},
        {PART_STATUS, "0", "all processes have ended, or --once is done"},
        {PART_STATUS, "2", "a wrong option, or no such process records there now"});
