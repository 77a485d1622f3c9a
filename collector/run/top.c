/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `top`: shows what the processes that record into a folder are doing. */
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
#include "error.h"
#include "file/live_file.h"
#include "output/verb_output.h"
#include "run/ctl_folder.h"
#include "table/text_width.h"

#define SECONDS_USUAL  1.0
#define SECONDS_ONCE   10.0 /* by then all have answered twice, or count as silent */
#define SILENT_SECONDS 5.0
#define LOOK_SECONDS   0.2
#define ASK_SECONDS    2.0 /* well within CONTROL_WATCH_SECONDS / 2 */

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

/* Makes the rows. Returns their number; -1: no memory. *running: of these have not ended. */
static int64_t make_rows(struct top *t, uint32_t *running, bool *is_whole)
{
    uint32_t count = 0;
    struct top_row *rows = realloc(t->rows, (t->folder.count ? t->folder.count : 1) * sizeof *rows);
    if (!rows)
        return -1;
    t->rows = rows;
    *running = 0;
    *is_whole = true;
    for (uint32_t i = 0; i < t->folder.count; i++) {
        const struct seen *s = &t->seen[i];
        const struct ctl_process *p = &t->folder.processes[i];
        if (!p->is_meant || !ctl_process_is_named(p, &t->own->which))
            continue;
        enum top_state state = state_of(t, i);
        bool is_live = state < TOP_SILENT;
        *running += state != TOP_ENDED;
        *is_whole &= state == TOP_ENDED || s->answers > 1;
        rows[count++] = (struct top_row){.process = p,
                                         .state = state,
                                         .calls_per_second = is_live ? s->calls : NAN,
                                         .launches_per_second = is_live ? s->launches : NAN,
                                         .busy_share = is_live ? s->busy : NAN};
    }
    qsort(rows, count, sizeof *rows, top_compare_rows);
    return count;
}

/* Prints over the last output on a terminal, to the named file, or one output after another. */
static enum exit_code top_own_print(const struct top *t, uint32_t count)
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
        top_print(stdout, o->format, t->rows, count, terminal_width(STDOUT_FILENO),
                  is_screen ? size.ws_row : 0);
        if (!is_screen && !o->is_once && o->format == TOP_TEXT)
            fputc('\n', stdout);
        fflush(stdout);
        return ferror(stdout) ? standard_output_end() : EXIT_OK;
    }
    enum exit_code code = verb_output_open(&out, t->output, NULL);
    if (code != EXIT_OK)
        return code;
    top_print(out.stream, o->format, t->rows, count, 0, 0);
    return verb_output_close(&out, t->output, 0);
}

static void wait_seconds(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    if (seconds > 0)
        nanosleep(&time, NULL);
}

static enum exit_code watch(struct top *t)
{
    const struct top_options *o = t->own;
    double interval = o->interval < 0 ? SECONDS_USUAL : o->interval;
    double begin = monotonic_seconds(), next = begin;
    double most_once = o->which.timeout < 0 ? SECONDS_ONCE : o->which.timeout;
    for (;;) {
        uint32_t running;
        bool is_whole;
        int error = top_look(t);
        error = error == 0 ? ctl_folder_watch(&t->folder) : error;
        if (error < 0)
            return ctl_folder_failed(&t->folder, "top", error);
        int64_t count = make_rows(t, &running, &is_whole);
        if (count < 0)
            return ctl_folder_failed(&t->folder, "top", GPUPROF_NO_MEMORY);
        if (count == 0)
            return usage_error("top: no matching process records into '%s' now", t->folder.path);
        bool is_last =
            !running || (o->is_once && (is_whole || monotonic_seconds() > begin + most_once));
        if (is_last || (!o->is_once && monotonic_seconds() >= next)) {
            enum exit_code code = top_own_print(t, (uint32_t)count);
            if (code != EXIT_OK || is_last)
                return code;
            next = monotonic_seconds() + interval;
        }
        double rest = next - monotonic_seconds(), most = o->is_once ? LOOK_SECONDS : ASK_SECONDS;
        wait_seconds(o->is_once || rest > most ? most : rest);
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
