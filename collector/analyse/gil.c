/* SPDX-License-Identifier: Apache-2.0 */
/* Python's lock (GIL): which thread waited for it, while which other one had it. */
#include <stdio.h>

#include "analyse/analyses.h"
#include "read/process.h"
#include "resolve/host_facts.h"

enum { PROCESS, TID, HOLDER };
#define STOPPED (1ull << 32) /* in place of a holder: all threads were stopped */
enum { TIMES, WAITS, WAIT, LONGEST, HOLDS, HOLD, SWITCHES, THREAD_TEXT, HOLDER_TEXT, HOLDER_TID };

/* "loader (thread 4711)" */
static uint64_t gil_title(struct sums *s, const struct thread *t, uint64_t tid)
{
    char text[THREAD_NAME_BYTES_MAX + 32];
    snprintf(text, sizeof text, "%s%sthread %llu%s", t ? t->name : "", t && t->name[0] ? " (" : "",
             (unsigned long long)tid, t && t->name[0] ? ")" : "");
    return sums_text(s, text);
}

/* For a thread, or for the whole block if `tid` is 0. */
static struct sums_row *gil_row_of(struct sums *s, const struct event *e, uint64_t tid,
                                   uint64_t holder)
{
    const struct thread *thread = tid ? host_thread(e, tid) : e->thread;
    tid = tid ? tid : thread->tid;
    struct sums_row *row = sums_row(s, e->process->index, tid, holder);
    if (sums_is_others(row) || row->values[THREAD_TEXT])
        return row;
    row->values[THREAD_TEXT] = gil_title(s, thread, tid);
    row->values[HOLDER_TEXT] = holder == STOPPED ? sums_text(s, "stop of the world")
                               : holder          ? gil_title(s, host_thread(e, holder), holder)
                                                 : 0;
    row->values[HOLDER_TID] = holder == STOPPED ? 0 : holder;
    return row;
}

/* Waits too short for records of their own. */
static int take_rest(struct sums *s, const struct event *e)
{
    const struct record *r = e->record;
    struct sums_row *row = gil_row_of(s, e, record_arg(r, GIL_REST_TID), 0);
    row->values[TIMES] += record_arg(r, GIL_REST_WAITS) + record_arg(r, GIL_REST_HOLDS);
    row->values[WAITS] += record_arg(r, GIL_REST_WAITS);
    row->values[WAIT] += record_arg(r, GIL_REST_WAIT_NS);
    row->values[HOLDS] += record_arg(r, GIL_REST_HOLDS);
    row->values[HOLD] += record_arg(r, GIL_REST_HOLD_NS);
    return 0;
}

static int gil_take(void *context, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (r->type == RECORD_GIL_REST)
        return take_rest(context, e);
    if (r->type != RECORD_GIL)
        return 0;
    bool is_stop = r->code == GIL_STOPPED, is_wait = is_stop || r->code == GIL_WAITED;
    uint64_t holder = is_stop ? STOPPED : is_wait ? record_arg(r, GIL_OTHER) : 0;
    struct sums_row *row = gil_row_of(context, e, 0, holder);
    uint64_t ns = e->end_ns - e->begin_ns;
    row->values[TIMES]++;
    row->values[is_wait ? WAITS : HOLDS]++;
    row->values[is_wait ? WAIT : HOLD] += ns;
    row->values[LONGEST] = is_wait && ns > row->values[LONGEST] ? ns : row->values[LONGEST];
    row->values[SWITCHES] += record_arg(r, GIL_SWITCHES);
    return 0;
}

/* "loader (thread 4711), while main (thread 4710) had it" */
static const char *gil_name(const struct sums *s, const struct sums_row *row, char *text)
{
    char who[RANK_TITLE_BYTES] = "";
    const char *thread = sums_shown(row->values[THREAD_TEXT]),
               *holder = sums_shown(row->values[HOLDER_TEXT]);
    if (s->rec->count > 1)
        process_who(s->rec->processes[row->keys[PROCESS]], who);
    bool is_stop = row->keys[HOLDER] == STOPPED;
    const char *before = is_stop ? ", " : holder ? ", while " : "";
    snprintf(text, SUMS_NAME_BYTES, "%s%s%s%s%s%s", thread ? thread : "thread", *who ? " of " : "",
             who, before, holder ? holder : "", holder && !is_stop ? " had it" : "");
    return text;
}

static const struct column columns[] = {
    {NULL, "thread, and holder of the GIL", SHOW(KEY, PROCESS),
     .doc = "the thread, and the thread that it waited for, if known"},
    {"host", SHOW(HOST, PROCESS), .doc = "the host that it ran on"},
    {"pid", NULL, COLUMN_NUMBER, .ascending = true, SHOW(PID, PROCESS), .doc = "its process"},
    {"tid", NULL, COLUMN_NUMBER, .ascending = true, SHOW(KEY, TID), .doc = "the thread's number"},
    {"thread", SHOW(KEY, SUMS_OF_VALUE(THREAD_TEXT)), .doc = "the thread's name"},
    {"holder_tid", NULL, COLUMN_NUMBER, .ascending = true, SHOW(KEY, SUMS_OF_VALUE(HOLDER_TID)),
     .doc = "the thread that held the GIL; 0: unknown, or it held the GIL too briefly"},
    {"holder", SHOW(KEY, SUMS_OF_VALUE(HOLDER_TEXT)),
     .doc = "the name of that thread; or all threads were stopped (stop of the world)"},
    {"waits", "waits", COLUMN_COUNT, 10, .spare = 1, SHOW(VALUE, WAITS), .where = WAITS,
     .doc = "how often the thread waited for the GIL"},
    {"wait_ns", "waited", COLUMN_NS, 12, SHOW(VALUE, WAIT), .where = WAITS,
     .doc = "how long the thread waited for the GIL"},
    {"max_ns", "longest", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, LONGEST), .where = LONGEST,
     .doc = "the longest known wait"},
    {"holds", "holds", COLUMN_COUNT, 10, .spare = 2, .is_filled = true, SHOW(VALUE, HOLDS),
     .where = HOLDS, .doc = "how often the thread held the GIL"},
    {"hold_ns", "held", COLUMN_NS, 12, .is_filled = true, SHOW(VALUE, HOLD), .where = HOLDS,
     .doc = "how long the thread held the GIL"},
    {"switches", "switches", COLUMN_COUNT, 9, .spare = 2, .is_filled = true, SHOW(VALUE, SWITCHES),
     .where = SWITCHES,
     .doc = "how often the thread asked the holder to release the GIL (every 5 ms)"},
};

const struct sums_info gil_sums = {
    .keys = {KEY_PROCESS, KEY_NUMBER, KEY_NUMBER},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_MOST,
               JOIN_MOST, JOIN_MOST},
    .is = {[THREAD_TEXT] = KEY_TEXT, [HOLDER_TEXT] = KEY_TEXT, [HOLDER_TID] = KEY_NUMBER},
    .rows_max = SUMS_ROWS_MAX,
    .order = WAIT,
    .then = {HOLD, TIMES},
    .is_left_out = true,
    .parts = REPORT_HOST,
    .name = gil_name,
    .consumer = {.skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK, .take = gil_take},
    .table = {SUMS_TABLE, .name = "gil", .key = "gil", .title = "waits for Python's lock (GIL)",
              TABLE_COLUMNS(columns),
              .text = {8, 7, 9, 12, 11, 10}, /* waited, waits, longest, switches, held, holds */
              .text_limit = 40, .text_none = ": the GIL was not recorded (gpuprof run --os)"},
};
