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
#include "base/message.h"
#include "base/moment.h"
#include "base/options.h"
#include "base/text.h"
#include "error.h"
#include "file/live_file.h"
#include "output/output.h"
#include "run/ctl_folder.h"
#include "table/screen.h"

#define SECONDS_USUAL  1.0
#define SECONDS_ONCE   10.0 /* by then all have answered twice, or count as silent */
#define SILENT_SECONDS 5.0
#define LOOK_SECONDS   0.2
#define ASK_SECONDS    2.0 /* well within CONTROL_WATCH_SECONDS / 2 */
#define CELL_BYTES     96
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

struct top_row {
    const struct ctl_process *process; /* its status is valid unless the state is TOP_SILENT ... */
    enum top_state state;              /* ... or TOP_ENDED */
    /* Rates since the previous answer; NAN: not known. */
    double calls_per_second;
    double launches_per_second;
    double busy_share; /* share of its devices' time */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Readings of one process, in the folder's order. */
struct seen {
    uint64_t figures[CONTROL_FIGURES]; /* of the previous answer */
    uint64_t answers;                  /* distinct answers; a rate needs two */
    double answered;                   /* time of the newest answer, by our clock */
    double calls, launches, busy;      /* since the previous answer; NAN: not known */
    bool was_stopped;                  /* by the newest answer */
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
    const char *output; /* NULL: standard output */
    struct seen *seen;  /* owned, `seen_count` of them */
    uint32_t seen_count;
    struct top_row *rows; /* owned; room for as many */
    uint32_t row_count;
    bool has_running; /* some have not ended */
    bool is_whole;    /* all have answered twice, or ended */
};

static double rate(uint64_t before, uint64_t after, double seconds)
{
    bool is_known = before != CONTROL_UNKNOWN && after != CONTROL_UNKNOWN && after >= before;
    return is_known ? (double)(after - before) / seconds : NAN;
}

/* Takes an answer. Without recording, the number of calls is not known. */
static void top_take_answer(struct seen *s, const uint64_t *figures, bool is_stopped)
{
    double seconds = (double)(figures[FIGURE_NOW_NS] - s->figures[FIGURE_NOW_NS]) / 1e9;
    double devices = (double)figures[FIGURE_DEVICES];
    s->calls = s->launches = s->busy = NAN;
    if (s->answers && seconds > 0 && seconds <= SILENT_SECONDS) { /* else it is too old */
        if (!is_stopped && !s->was_stopped) {
            s->calls = rate(s->figures[FIGURE_CALLS], figures[FIGURE_CALLS], seconds);
            s->launches = rate(s->figures[FIGURE_LAUNCHES], figures[FIGURE_LAUNCHES], seconds);
        }
        s->busy = rate(s->figures[FIGURE_BUSY_NS], figures[FIGURE_BUSY_NS], seconds * 1e9) /
                  (devices >= 1 ? devices : 1);
        s->busy = s->busy > 1 ? 1 : s->busy; /* late records of earlier work */
    }
    s->was_stopped = is_stopped;
    s->answers++;
    s->answered = monotonic_seconds();
    memcpy(s->figures, figures, sizeof s->figures);
}

/* Reads new answers. Returns 0, or an error of ctl_folder_look. */
static int top_look(struct top *t)
{
    int error = ctl_folder_look(&t->folder);
    for (uint32_t i = 0; i < t->folder.count && error == 0; i++) {
        struct ctl_process *p = &t->folder.processes[i];
        if (i == t->seen_count) {
            struct seen unseen = {
                .answered = monotonic_seconds(), .calls = NAN, .launches = NAN, .busy = NAN};
            if ((error = ARRAY_PUSH(t->seen, t->seen_count, &unseen)) < 0)
                return error;
            p->is_meant = !p->has_ended; /* processes that ended earlier are not shown */
        }
        if (!p->is_meant || p->has_ended)
            continue;
        struct seen *s = &t->seen[i];
        if (ctl_process_read(p) && p->status.figures[FIGURE_NOW_NS] != CONTROL_UNKNOWN &&
            p->status.figures[FIGURE_CALLS] != CONTROL_UNKNOWN && /* otherwise it answered `ctl` */
            (!s->answers || p->status.figures[FIGURE_NOW_NS] != s->figures[FIGURE_NOW_NS]))
            top_take_answer(s, p->status.figures, p->status.stopped != 0);
        p->has_ended = live_owner(&p->header) == LIVE_OWNER_ENDED;
    }
    return error;
}

static enum top_state state_of(const struct top *t, uint32_t index)
{
    const struct ctl_process *p = &t->folder.processes[index];
    const struct seen *s = &t->seen[index];
    if (p->has_ended)
        return TOP_ENDED;
    if (!s->answers || monotonic_seconds() - s->answered > SILENT_SECONDS)
        return TOP_SILENT;
    return !p->status.stopped                       ? TOP_RECORDING
           : p->status.stopped == STOPPED_BY_WINDOW ? TOP_BETWEEN
                                                    : TOP_STOPPED;
}

static int top_compare_rows(const void *a, const void *b)
{
    const struct ctl_process *x = ((const struct top_row *)a)->process;
    const struct ctl_process *y = ((const struct top_row *)b)->process;
    int host = strcmp(x->header.host, y->header.host);
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1; /* without a rank: last */
    return host ? host : x->header.pid < y->header.pid ? -1 : x->header.pid > y->header.pid;
}

/* 0 or GPUPROF_NO_MEMORY. */
static int make_rows(struct top *t)
{
    struct top_row *rows = realloc(t->rows, (t->folder.count + 1u) * sizeof *rows);
    if (!rows)
        return GPUPROF_NO_MEMORY;
    t->rows = rows;
    t->row_count = 0;
    t->has_running = false;
    t->is_whole = true;
    for (uint32_t i = 0; i < t->folder.count; i++) {
        const struct seen *s = &t->seen[i];
        const struct ctl_process *p = &t->folder.processes[i];
        if (!p->is_meant || !ctl_process_is_named(p, &t->own->which))
            continue;
        enum top_state state = state_of(t, i);
        bool is_live = state < TOP_SILENT;
        t->has_running |= state != TOP_ENDED;
        t->is_whole &= state == TOP_ENDED || s->answers > 1;
        rows[t->row_count++] = (struct top_row){.process = p,
                                                .state = state,
                                                .calls_per_second = is_live ? s->calls : NAN,
                                                .launches_per_second = is_live ? s->launches : NAN,
                                                .busy_share = is_live ? s->busy : NAN};
    }
    qsort(rows, t->row_count, sizeof *rows, top_compare_rows);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

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
    if (which == FIGURE_QUIET_NS && (row->state != TOP_RECORDING || row->calls_per_second > 0))
        return CONTROL_UNKNOWN;
    return is_live && which < CONTROL_FIGURES ? row->process->status.figures[which]
                                              : CONTROL_UNKNOWN;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { RANK, PID, HOST, STATE, CALLS, LAUNCHES, BUSY, MEMORY, TENSORS, STEP, LAST, MEDIAN, OPEN };
static const char *const labels[] = {"rank",       "pid",    "host",     "state",   "calls/s",
                                     "launches/s", "gpu",    "memory",   "tensors", "step",
                                     "step time",  "median", "open call"};
enum { CELLS = sizeof labels / sizeof labels[0] };

typedef char top_cells[CELLS][CELL_BYTES];

static uint64_t rounded(double rate)
{
    return isnan(rate) ? CONTROL_UNKNOWN : (uint64_t)llround(rate);
}

static void figure_cell(char *cell, uint64_t value, const char *(*write)(char *, uint64_t))
{
    char text[UNIT_TEXT_BYTES];
    if (value != CONTROL_UNKNOWN)
        snprintf(cell, CELL_BYTES, "%s", write(text, value));
}

static const char *plain_text(char *text, uint64_t value)
{
    snprintf(text, UNIT_TEXT_BYTES, "%" PRIu64, value);
    return text;
}

/* Fills the cells of a row; NULL: of the labels. */
static void fill_cells(top_cells c, const struct top_row *row)
{
    for (unsigned i = 0; i < CELLS; i++)
        snprintf(c[i], CELL_BYTES, "%s", row ? "-" : labels[i]);
    if (!row)
        return;
    char text[UNIT_TEXT_BYTES];
    uint64_t open_ns = figure_of(row, FIGURE_OPEN_NS);
    uint64_t quiet_ns = figure_of(row, FIGURE_QUIET_NS);
    figure_cell(c[RANK], row->process->rank, plain_text); /* RANK_NONE is CONTROL_UNKNOWN */
    figure_cell(c[PID], row->process->header.pid, plain_text);
    snprintf(c[HOST], CELL_BYTES, "%.90s", row->process->header.host);
    snprintf(c[STATE], CELL_BYTES, "%s", state_words[row->state]);
    figure_cell(c[CALLS], rounded(row->calls_per_second), amount_text);
    figure_cell(c[LAUNCHES], rounded(row->launches_per_second), amount_text);
    if (!isnan(row->busy_share))
        snprintf(c[BUSY], CELL_BYTES, "%.0f%%", 100 * row->busy_share);
    figure_cell(c[MEMORY], figure_of(row, FIGURE_HELD_BYTES), bytes_text);
    figure_cell(c[TENSORS], figure_of(row, FIGURE_TENSOR_BYTES), bytes_text);
    figure_cell(c[STEP], figure_of(row, FIGURE_STEP), plain_text);
    figure_cell(c[LAST], figure_of(row, FIGURE_STEP_NS), time_text);
    figure_cell(c[MEDIAN], figure_of(row, FIGURE_STEP_MEDIAN_NS), time_text);
    if (open_ns != CONTROL_UNKNOWN)
        snprintf(c[OPEN], CELL_BYTES, "%.50s %s", row->process->status.open_call,
                 time_text(text, open_ns));
    else if (quiet_ns != CONTROL_UNKNOWN && quiet_ns >= QUIET_NS)
        snprintf(c[OPEN], CELL_BYTES, "no call for %s", time_text(text, quiet_ns));
}

/* Prints a line of columns that have a width. */
static void top_print_line(FILE *out, top_cells c, const int *widths, uint32_t width)
{
    char line[CELLS * CELL_BYTES];
    size_t length = 0;
    for (unsigned i = 0; i < CELLS; i++) {
        bool is_left = i == HOST || i == STATE || i == OPEN;
        if (widths[i])
            length += (size_t)snprintf(line + length, sizeof line - length, "%*s ",
                                       is_left ? -widths[i] : widths[i], c[i]);
    }
    while (length && line[length - 1] == ' ')
        length--;
    fprintf(out, "%.*s\n", (int)(width && length > width ? width : length), line);
}

/* Prints columns with a value in some row; the host only if there are several. */
static void print_text(FILE *out, const struct top_row *rows, uint32_t count, uint32_t width,
                       uint32_t height)
{
    int widths[CELLS] = {0};
    uint32_t shown = height > 3 && count + 2 > height ? height - 3 : count;
    bool is_filled[CELLS] = {0};
    top_cells c;
    for (uint32_t i = 0; i <= count; i++) {
        fill_cells(c, i ? &rows[i - 1] : NULL);
        for (unsigned k = 0; k < CELLS; k++) {
            widths[k] = (int)strlen(c[k]) > widths[k] ? (int)strlen(c[k]) : widths[k];
            is_filled[k] |= i && strcmp(c[k], "-") != 0 &&
                            (k != HOST || strcmp(rows[i - 1].process->header.host,
                                                 rows[0].process->header.host) != 0);
        }
    }
    for (unsigned k = 0; k < CELLS; k++)
        widths[k] = is_filled[k] ? widths[k] : 0;
    for (uint32_t i = 0; i <= shown; i++) {
        fill_cells(c, i ? &rows[i - 1] : NULL);
        top_print_line(out, c, widths, width);
    }
    if (shown < count)
        fprintf(out, "... and %u more\n", count - shown);
}

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

/* "seconds" or "bytes"; NULL: none. */
static const char *unit_of(const struct metric *m)
{
    const char *last = strrchr(m->name, '_');
    return last ? last + 1 : NULL;
}

static void print_value(FILE *out, const struct metric *m, uint64_t value)
{
    const char *unit = unit_of(m);
    if (unit && strcmp(unit, "seconds") == 0)
        fprintf(out, "%.9f", (double)value * 1e-9);
    else
        fprintf(out, "%" PRIu64, value);
}

static void print_json_rate(FILE *out, const char *key, double rate)
{
    fprintf(out, isnan(rate) ? ",\"%s\":null" : ",\"%s\":%.6g", key, rate);
}

static void print_json_row(FILE *out, const struct top_row *row)
{
    bool is_open = figure_of(row, FIGURE_OPEN_NS) != CONTROL_UNKNOWN;
    if (row->process->rank == RANK_NONE)
        fputs("{\"rank\":null", out);
    else
        fprintf(out, "{\"rank\":%" PRIu64, row->process->rank);
    fprintf(out, ",\"pid\":%u,\"host\":\"%s\",\"state\":\"%s\"", row->process->header.pid,
            row->process->header.host, state_words[row->state]);
    print_json_rate(out, "calls_per_second", row->calls_per_second);
    print_json_rate(out, "launches_per_second", row->launches_per_second);
    print_json_rate(out, "gpu_busy_share", row->busy_share);
    for (const struct metric *m = metrics; m < metrics + METRICS; m++) {
        uint64_t value = figure_of(row, m->figure);
        if (m->figure >= CONTROL_FIGURES)
            continue;
        fprintf(out, value == CONTROL_UNKNOWN ? ",\"%s\":null" : ",\"%s\":", m->name);
        if (value != CONTROL_UNKNOWN)
            print_value(out, m, value);
    }
    fprintf(out, is_open ? ",\"open_call\":\"%s\"}" : ",\"open_call\":null}",
            row->process->status.open_call);
}

static void top_print_json(FILE *out, const struct top_row *rows, uint32_t count)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(out, "{\"time\":%lld.%03ld,\"processes\":[", (long long)now.tv_sec,
            now.tv_nsec / 1000000);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i ? "," : "", out);
        print_json_row(out, &rows[i]);
    }
    fputs("]}\n", out);
}

static void print_labels(FILE *out, const struct top_row *row, const char *more)
{
    fprintf(out, "{host=\"%s\",pid=\"%u\"", row->process->header.host, row->process->header.pid);
    if (row->process->rank != RANK_NONE)
        fprintf(out, ",rank=\"%" PRIu64 "\"", row->process->rank);
    if (more)
        fprintf(out, ",function=\"%s\"", more);
    fputs("} ", out);
}

static void print_openmetrics(FILE *out, const struct top_row *rows, uint32_t count)
{
    for (const struct metric *m = metrics; m < metrics + METRICS; m++) {
        const char *unit = unit_of(m);
        fprintf(out, "# TYPE gpuprof_%s %s\n", m->name, m->is_counter ? "counter" : "gauge");
        if (unit)
            fprintf(out, "# UNIT gpuprof_%s %s\n", m->name, unit);
        fprintf(out, "# HELP gpuprof_%s %s\n", m->name, m->help);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t value = figure_of(&rows[i], m->figure);
            if (value == CONTROL_UNKNOWN)
                continue;
            fprintf(out, "gpuprof_%s%s", m->name, m->is_counter ? "_total" : "");
            print_labels(out, &rows[i],
                         m->figure == FIGURE_OPEN_NS ? rows[i].process->status.open_call : NULL);
            print_value(out, m, value);
            fputc('\n', out);
        }
    }
    fputs("# EOF\n", out);
}

static void top_print(FILE *out, const struct top *t, uint32_t width, uint32_t height)
{
    switch (t->own->format) {
    case TOP_TEXT: print_text(out, t->rows, t->row_count, width, height); break;
    case TOP_JSON: top_print_json(out, t->rows, t->row_count); break;
    case TOP_OPENMETRICS: print_openmetrics(out, t->rows, t->row_count); break;
    }
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Prints over the last output on a terminal, to the named file, or one output after another. */
static enum exit_code top_own_print(const struct top *t)
{
    const struct top_options *o = t->own;
    struct output out;
    struct winsize size = {0};
    bool is_screen =
        !t->output && !o->is_once && o->format == TOP_TEXT && terminal_has_colour(STDOUT_FILENO);
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (!t->output) {
        if (is_screen)
            fputs("\033[H\033[2J", stdout);
        top_print(stdout, t, terminal_width(STDOUT_FILENO), is_screen ? size.ws_row : 0);
        if (!is_screen && !o->is_once && o->format == TOP_TEXT)
            fputc('\n', stdout);
        fflush(stdout);
        return ferror(stdout) ? standard_output_end() : EXIT_OK;
    }
    enum exit_code code = verb_output_open(&out, t->output, NULL);
    if (code != EXIT_OK)
        return code;
    top_print(out.stream, t, 0, 0);
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
        error = error == 0 ? make_rows(t) : error;
        if (error < 0)
            return ctl_folder_failed(&t->folder, "top", error);
        if (t->row_count == 0)
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
    free(t.seen);
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
        {PART_STATUS, "1", "input or output failed"},
        {PART_STATUS, "2", "a wrong option, or no such process records there now"});
