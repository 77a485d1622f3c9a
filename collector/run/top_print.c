/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `top` as text for a terminal, JSON (a line each time) or OpenMetrics. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/unit_text.h"
#include "rank.h"
#include "run/ctl_folder.h"

#define CELL_BYTES 96
#define HOST_BYTES 256         /* host name of a header, escaped */
#define QUIET_NS   5000000000u /* stored figures are older than now, too */

/* A figure of the row; CONTROL_UNKNOWN: none. */
static uint64_t figure_of(const struct top_row *row, enum control_figure which)
{
    /* Stored figures are a little old: a process that makes calls is not quiet. */
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

/* Replaces unusual characters of the name, which comes from a file, by '?'. */
static const char *host_text(char *text, const struct ctl_process *p)
{
    size_t length = 0;
    for (const char *at = p->header.host; *at && length < HOST_BYTES - 1; at++)
        text[length++] = *at > ' ' && *at <= '~' && *at != '"' && *at != '\\' ? *at : '?';
    text[length] = '\0';
    return text;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { RANK, PID, HOST, STATE, CALLS, LAUNCHES, BUSY, MEMORY, TENSORS, STEP, LAST, MEDIAN, OPEN };
static const char *const labels[] = {"rank",       "pid",    "host",     "state",   "calls/s",
                                     "launches/s", "gpu",    "memory",   "tensors", "step",
                                     "step time",  "median", "open call"};
enum { CELLS = sizeof labels / sizeof labels[0] };

typedef char cells[CELLS][CELL_BYTES];

static uint64_t rounded(double rate)
{
    return isnan(rate) ? CONTROL_UNKNOWN : (uint64_t)llround(rate);
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
    uint64_t open_ns = figure_of(row, FIGURE_OPEN_NS);
    uint64_t quiet_ns = figure_of(row, FIGURE_QUIET_NS);
    figure_cell(c[RANK], row->process->rank, plain_text); /* RANK_NONE is CONTROL_UNKNOWN */
    figure_cell(c[PID], row->process->header.pid, plain_text);
    snprintf(c[HOST], CELL_BYTES, "%.90s", host_text(host, row->process));
    snprintf(c[STATE], CELL_BYTES, "%s", state_word(row->state));
    figure_cell(c[CALLS], rounded(row->calls_per_second), amount_text);
    figure_cell(c[LAUNCHES], rounded(row->launches_per_second), amount_text);
    snprintf(c[BUSY], CELL_BYTES, "-");
    if (!isnan(row->busy_share))
        snprintf(c[BUSY], CELL_BYTES, "%.0f%%", 100 * row->busy_share);
    figure_cell(c[MEMORY], figure_of(row, FIGURE_HELD_BYTES), bytes_text);
    figure_cell(c[TENSORS], figure_of(row, FIGURE_TENSOR_BYTES), bytes_text);
    figure_cell(c[STEP], figure_of(row, FIGURE_STEP), plain_text);
    figure_cell(c[LAST], figure_of(row, FIGURE_STEP_NS), time_text);
    figure_cell(c[MEDIAN], figure_of(row, FIGURE_STEP_MEDIAN_NS), time_text);
    snprintf(c[OPEN], CELL_BYTES, "-");
    if (open_ns != CONTROL_UNKNOWN)
        snprintf(c[OPEN], CELL_BYTES, "%.50s %s", row->process->status.open_call,
                 time_text(text, open_ns));
    else if (quiet_ns != CONTROL_UNKNOWN && quiet_ns >= QUIET_NS)
        snprintf(c[OPEN], CELL_BYTES, "no call for %s", time_text(text, quiet_ns));
}

/* Prints a line, without columns that are empty in all rows. */
static void top_print_line(FILE *out, cells c, const int *widths, uint32_t width)
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
        snprintf(c[k], CELL_BYTES, "%s", labels[k]);
        if (widths[k] && (int)strlen(c[k]) > widths[k])
            widths[k] = (int)strlen(c[k]);
    }
    top_print_line(out, c, widths, width);
    for (uint32_t i = 0; i < shown; i++) {
        fill_cells(c, &rows[i]);
        top_print_line(out, c, widths, width);
    }
    if (shown < count)
        fprintf(out, "... and %u more\n", count - shown);
}

/* ---- JSON and OpenMetrics -------------------------------------------------------------------- */

/* Metrics of a process for both formats; the end of the name is the unit. */
static const struct metric {
    const char *name; /* in OpenMetrics after "gpuprof_" */
    bool is_counter;
    enum control_figure figure;
    const char *help;
} metrics[] = {
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
        uint64_t value = figure_of(row, metrics[i].figure);
        fprintf(out, ",\"%s\":", metrics[i].name);
        if (value == CONTROL_UNKNOWN)
            fputs("null", out);
        else
            print_value(out, &metrics[i], value);
    }
    bool is_open = figure_of(row, FIGURE_OPEN_NS) != CONTROL_UNKNOWN;
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

static void print_head(FILE *out, const char *name, bool is_counter, const char *unit,
                       const char *help)
{
    fprintf(out, "# TYPE gpuprof_%s %s\n", name, is_counter ? "counter" : "gauge");
    if (unit)
        fprintf(out, "# UNIT gpuprof_%s %s\n", name, unit);
    fprintf(out, "# HELP gpuprof_%s %s\n", name, help);
}

static void print_openmetrics(FILE *out, const struct top_row *rows, uint32_t count)
{
    print_head(out, "up", false, NULL, "1 if the process answers, 0 if it does not or has ended.");
    for (uint32_t i = 0; i < count; i++) {
        fputs("gpuprof_up", out);
        print_labels(out, &rows[i], NULL);
        fprintf(out, "%d\n", rows[i].state < TOP_SILENT);
    }
    print_head(out, "recording", false, NULL, "1 if calls are recorded now.");
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].state < TOP_SILENT) {
            fputs("gpuprof_recording", out);
            print_labels(out, &rows[i], NULL);
            fprintf(out, "%d\n", rows[i].state == TOP_RECORDING);
        }
    for (const struct metric *m = metrics; m < metrics + METRICS; m++) {
        print_head(out, m->name, m->is_counter, unit_of(m), m->help);
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

void top_print(FILE *out, enum top_format format, const struct top_row *rows, uint32_t count,
               uint32_t width, uint32_t height)
{
    switch (format) {
    case TOP_TEXT: print_text(out, rows, count, width, height); break;
    case TOP_JSON: top_print_json(out, rows, count); break;
    case TOP_OPENMETRICS: print_openmetrics(out, rows, count); break;
    }
}
