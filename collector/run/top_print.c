/* SPDX-License-Identifier: Apache-2.0 */
#include "run/top_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "rank.h"

#define CELL_BYTES 96
#define HOST_BYTES 256         /* of a header's, escaped */
#define QUIET_NS   5000000000u /* what is stored is older than now, too */

uint64_t top_figure(const struct top_row *row, enum control_figure which)
{
    /* What is stored is a little older than now: who makes calls is not quiet since the last. */
    if (which == FIGURE_QUIET_NS && (row->state != TOP_RECORDING || row->calls_per_second > 0))
        return CONTROL_UNKNOWN;
    return row->state < TOP_SILENT ? row->process->status.figures[which] : CONTROL_UNKNOWN;
}

static const char *state_word(enum top_state state)
{
    static const char *const words[] = {[TOP_RECORDING] = "recording",
                                        [TOP_STOPPED] = "stopped",
                                        [TOP_BETWEEN] = "between windows",
                                        [TOP_SILENT] = "no answer",
                                        [TOP_ENDED] = "ended"};
    return words[state];
}

/* Out of a file: letters, digits and the like; the others become '?'. */
static const char *host_text(char *text, const struct ctl_process *p)
{
    size_t length = 0;
    for (const char *at = p->header.host; *at && length < HOST_BYTES - 1; at++)
        text[length++] = *at > ' ' && *at <= '~' && *at != '"' && *at != '\\' ? *at : '?';
    text[length] = '\0';
    return text;
}

/* ---- text -------------------------------------------------------------------------------------
 */

enum cell {
    RANK,
    PID,
    HOST,
    STATE,
    CALLS,
    LAUNCHES,
    BUSY,
    MEMORY,
    TENSORS,
    STEP,
    LAST,
    MEDIAN,
    OPEN,
    CELLS
};

static const struct {
    const char *label;
    bool is_left;
} columns[CELLS] = {
    [RANK] = {"rank", false},     [PID] = {"pid", false},        [HOST] = {"host", true},
    [STATE] = {"state", true},    [CALLS] = {"calls/s", false},  [LAUNCHES] = {"launches/s", false},
    [BUSY] = {"gpu", false},      [MEMORY] = {"memory", false},  [TENSORS] = {"tensors", false},
    [STEP] = {"step", false},     [LAST] = {"step time", false}, [MEDIAN] = {"median", false},
    [OPEN] = {"open call", true},
};

typedef char cells[CELLS][CELL_BYTES];

static void rate_cell(char *cell, double rate)
{
    char text[UNIT_TEXT_BYTES];
    snprintf(cell, CELL_BYTES, "%s",
             isnan(rate) ? "-" : amount_text(text, (uint64_t)llround(rate)));
}

static void figure_cell(char *cell, uint64_t value, const char *(*write)(char *, uint64_t))
{
    char text[UNIT_TEXT_BYTES];
    snprintf(cell, CELL_BYTES, "%s", value == CONTROL_UNKNOWN ? "-" : write(text, value));
}

static const char *plain_text(char *text, uint64_t value)
{
    snprintf(text, UNIT_TEXT_BYTES, "%" PRIu64, value);
    return text;
}

static void fill_cells(cells c, const struct top_row *row)
{
    char host[HOST_BYTES], text[UNIT_TEXT_BYTES];
    uint64_t open_ns = top_figure(row, FIGURE_OPEN_NS);
    uint64_t quiet_ns = top_figure(row, FIGURE_QUIET_NS);
    figure_cell(c[RANK], row->process->rank, plain_text); /* RANK_NONE is CONTROL_UNKNOWN */
    figure_cell(c[PID], row->process->header.pid, plain_text);
    snprintf(c[HOST], CELL_BYTES, "%.90s", host_text(host, row->process));
    snprintf(c[STATE], CELL_BYTES, "%s", state_word(row->state));
    rate_cell(c[CALLS], row->calls_per_second);
    rate_cell(c[LAUNCHES], row->launches_per_second);
    snprintf(c[BUSY], CELL_BYTES, "-");
    if (!isnan(row->busy_share))
        snprintf(c[BUSY], CELL_BYTES, "%.0f%%", 100 * row->busy_share);
    figure_cell(c[MEMORY], top_figure(row, FIGURE_HELD_BYTES), bytes_text);
    figure_cell(c[TENSORS], top_figure(row, FIGURE_TENSOR_BYTES), bytes_text);
    figure_cell(c[STEP], top_figure(row, FIGURE_STEP), plain_text);
    figure_cell(c[LAST], top_figure(row, FIGURE_STEP_NS), time_text);
    figure_cell(c[MEDIAN], top_figure(row, FIGURE_STEP_MEDIAN_NS), time_text);
    snprintf(c[OPEN], CELL_BYTES, "-");
    if (open_ns != CONTROL_UNKNOWN)
        snprintf(c[OPEN], CELL_BYTES, "%.50s %s", row->process->status.open_call,
                 time_text(text, open_ns));
    else if (quiet_ns != CONTROL_UNKNOWN && quiet_ns >= QUIET_NS)
        snprintf(c[OPEN], CELL_BYTES, "no call for %s", time_text(text, quiet_ns));
}

/* Columns of no width say nothing of anybody. */
static void print_line(FILE *out, cells c, const int *widths, uint32_t width)
{
    char line[CELLS * CELL_BYTES];
    size_t length = 0;
    for (unsigned i = 0; i < CELLS; i++)
        if (widths[i])
            length += (size_t)snprintf(line + length, sizeof line - length, "%*s ",
                                       columns[i].is_left ? -widths[i] : widths[i], c[i]);
    while (length && line[length - 1] == ' ')
        length--;
    if (width && length > width)
        length = width;
    fprintf(out, "%.*s\n", (int)length, line);
}

static void print_text(FILE *out, const struct top_row *rows, uint32_t count, uint32_t width,
                       uint32_t height)
{
    int widths[CELLS] = {0};
    uint32_t shown = height > 3 && count + 2 > height ? height - 3 : count;
    bool has_hosts = false;
    cells c;
    for (uint32_t i = 0; i < count; i++) {
        has_hosts |= strcmp(rows[i].process->header.host, rows[0].process->header.host) != 0;
        fill_cells(c, &rows[i]);
        for (unsigned k = 0; k < CELLS; k++)
            if (strcmp(c[k], "-") != 0 && (int)strlen(c[k]) > widths[k])
                widths[k] = (int)strlen(c[k]);
    }
    if (!has_hosts)
        widths[HOST] = 0;
    for (unsigned k = 0; k < CELLS; k++) {
        snprintf(c[k], CELL_BYTES, "%s", columns[k].label);
        if (widths[k] && (int)strlen(c[k]) > widths[k])
            widths[k] = (int)strlen(c[k]);
    }
    print_line(out, c, widths, width);
    for (uint32_t i = 0; i < shown; i++) {
        fill_cells(c, &rows[i]);
        print_line(out, c, widths, width);
    }
    if (shown < count)
        fprintf(out, "... and %u more\n", count - shown);
}

/* ---- JSON and OpenMetrics ----------------------------------------------------------------------
 */

/* What both say of a process, each in its way. */
struct metric {
    const char *key;  /* in the JSON */
    const char *name; /* in OpenMetrics, behind "gpuprof_"; NULL: not there */
    const char *type;
    const char *unit;
    const char *help;
    enum control_figure figure;
    double scale; /* the figure's unit in `unit`s */
};

static const struct metric metrics[] = {
    {"calls", "calls", "counter", NULL,
     "CUDA calls recorded since this process was first asked for figures.", FIGURE_CALLS, 1},
    {"launches", "launches", "counter", NULL, "Launches of kernels and graphs among these.",
     FIGURE_LAUNCHES, 1},
    {"gpu_busy_seconds", "gpu_busy_seconds", "counter", "seconds",
     "Time for which devices worked for this process, summed over its devices.", FIGURE_BUSY_NS,
     1e-9},
    {"gpus", "gpus", "gauge", NULL, "Devices that have worked for this process.", FIGURE_DEVICES,
     1},
    {"memory_bytes", "memory_bytes", "gauge", "bytes",
     "Device memory that calls of this process have got and not given back.", FIGURE_HELD_BYTES, 1},
    {"tensor_bytes", "tensor_bytes", "gauge", "bytes",
     "Of it, what PyTorch's allocator has handed out.", FIGURE_TENSOR_BYTES, 1},
    {"reserved_bytes", "reserved_bytes", "gauge", "bytes",
     "Of it, what PyTorch's allocator has reserved.", FIGURE_RESERVED_BYTES, 1},
    {"steps", "steps", "counter", NULL, "Steps that have begun.", FIGURE_STEPS, 1},
    {"step", "step", "gauge", NULL, "Number of the step under way.", FIGURE_STEP, 1},
    {"step_seconds", "step_seconds", "gauge", "seconds", "Duration of the last whole step.",
     FIGURE_STEP_NS, 1e-9},
    {"step_median_seconds", "step_median_seconds", "gauge", "seconds",
     "Median duration of the last 64 steps.", FIGURE_STEP_MEDIAN_NS, 1e-9},
    {"open_call_seconds", "open_call_seconds", "gauge", "seconds",
     "For how long the call has been open that has been so longest.", FIGURE_OPEN_NS, 1e-9},
    {"quiet_seconds", "quiet_seconds", "gauge", "seconds",
     "For how long this process has made no call, and is in none.", FIGURE_QUIET_NS, 1e-9},
};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

static void print_value(FILE *out, const struct metric *m, uint64_t value)
{
    if (m->scale == 1)
        fprintf(out, "%" PRIu64, value);
    else
        fprintf(out, "%.9f", (double)value * m->scale);
}

static void print_json_rate(FILE *out, const char *key, double rate)
{
    if (isnan(rate))
        fprintf(out, ",\"%s\":null", key);
    else
        fprintf(out, ",\"%s\":%.6g", key, rate);
}

static void print_json_row(FILE *out, const struct top_row *row)
{
    char host[HOST_BYTES];
    fputs("{\"rank\":", out);
    if (row->process->rank == RANK_NONE)
        fputs("null", out);
    else
        fprintf(out, "%" PRIu64, row->process->rank);
    fprintf(out, ",\"pid\":%u,\"host\":\"%s\",\"state\":\"%s\"", row->process->header.pid,
            host_text(host, row->process), state_word(row->state));
    print_json_rate(out, "calls_per_second", row->calls_per_second);
    print_json_rate(out, "launches_per_second", row->launches_per_second);
    print_json_rate(out, "gpu_busy_share", row->busy_share);
    for (unsigned i = 0; i < METRICS; i++) {
        uint64_t value = top_figure(row, metrics[i].figure);
        fprintf(out, ",\"%s\":", metrics[i].key);
        if (value == CONTROL_UNKNOWN)
            fputs("null", out);
        else
            print_value(out, &metrics[i], value);
    }
    bool is_open = top_figure(row, FIGURE_OPEN_NS) != CONTROL_UNKNOWN;
    fprintf(out, is_open ? ",\"open_call\":\"%s\"}" : ",\"open_call\":null}",
            row->process->status.open_call);
}

static void print_json(FILE *out, const struct top_row *rows, uint32_t count)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(out, "{\"time\":%lld.%03ld,\"processes\":[", (long long)now.tv_sec,
            now.tv_nsec / 1000000);
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            fputc(',', out);
        print_json_row(out, &rows[i]);
    }
    fputs("]}\n", out);
}

static void print_labels(FILE *out, const struct top_row *row, const char *more)
{
    char host[HOST_BYTES];
    fprintf(out, "{host=\"%s\",pid=\"%u\"", host_text(host, row->process),
            row->process->header.pid);
    if (row->process->rank != RANK_NONE)
        fprintf(out, ",rank=\"%" PRIu64 "\"", row->process->rank);
    if (more)
        fprintf(out, ",function=\"%s\"", more);
    fputs("} ", out);
}

static void print_openmetrics(FILE *out, const struct top_row *rows, uint32_t count)
{
    fputs("# TYPE gpuprof_up gauge\n"
          "# HELP gpuprof_up 1 if the process answers, 0 if it does not or has ended.\n",
          out);
    for (uint32_t i = 0; i < count; i++) {
        fputs("gpuprof_up", out);
        print_labels(out, &rows[i], NULL);
        fprintf(out, "%d\n", rows[i].state < TOP_SILENT);
    }
    fputs("# TYPE gpuprof_recording gauge\n"
          "# HELP gpuprof_recording 1 if calls are recorded now.\n",
          out);
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].state < TOP_SILENT) {
            fputs("gpuprof_recording", out);
            print_labels(out, &rows[i], NULL);
            fprintf(out, "%d\n", rows[i].state == TOP_RECORDING);
        }
    for (unsigned m = 0; m < METRICS; m++) {
        bool is_counter = *metrics[m].type == 'c';
        fprintf(out, "# TYPE gpuprof_%s %s\n", metrics[m].name, metrics[m].type);
        if (metrics[m].unit)
            fprintf(out, "# UNIT gpuprof_%s %s\n", metrics[m].name, metrics[m].unit);
        fprintf(out, "# HELP gpuprof_%s %s\n", metrics[m].name, metrics[m].help);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t value = top_figure(&rows[i], metrics[m].figure);
            if (value == CONTROL_UNKNOWN)
                continue;
            fprintf(out, "gpuprof_%s%s", metrics[m].name, is_counter ? "_total" : "");
            print_labels(out, &rows[i],
                         metrics[m].figure == FIGURE_OPEN_NS ? rows[i].process->status.open_call
                                                             : NULL);
            print_value(out, &metrics[m], value);
            fputc('\n', out);
        }
    }
    fputs("# EOF\n", out);
}

void top_print(FILE *out, enum top_format format, const struct top_row *rows, uint32_t count,
               uint32_t width, uint32_t height)
{
    switch (format) {
    case TOP_TEXT: print_text(out, rows, count, width, height); break;
    case TOP_JSON: print_json(out, rows, count); break;
    case TOP_OPENMETRICS: print_openmetrics(out, rows, count); break;
    }
}
