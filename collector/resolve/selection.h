/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The piece of a recording that a verb shows: what is said in select_wish.h, found out for one
 * recording, and asked by the walk about each slice. All of these must hold:
 *
 *   --from, --to   the event begins there; a range, operator or call of a library reaches into it
 *   --step         likewise, in the time of those steps of its process; but work of a device is
 *   --range        where the call is that made it, and is nowhere if that is not known
 *   --cycle        likewise; work whose call is not known is where it begins
 *   --tid          the thread, of work that of its call
 *   --device       of work and synchronisations; what has no device stays
 *   --kind, --name, --min-duration   as they say
 *
 * What only describes (names, devices, modules) is in every piece.
 *
 * Memory: what a survey takes (survey.h), 16 bytes for each time at which steps or ranges that are
 * wanted begin, not counting those that touch or overlap, SELECTION_SPANS_MAX at most; a number for
 * each name that was asked about.
 */
#ifndef GPUPROF_COLLECTOR_SELECTION_H
#define GPUPROF_COLLECTOR_SELECTION_H

#include <regex.h>

#include "base/select_wish.h"
#include "resolve/steps.h"

#define SELECTION_SPANS_MAX (1u << 22)

/* Of one process; once complete, in the order of time, and apart from each other. */
struct time_spans {
    struct time_span *list; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* What times are named by; of cycles: the window that was asked for, if it had one. */
enum selection_spans { SPANS_STEPS, SPANS_RANGES, SPANS_CYCLE, SELECTION_SPANS };

/* What an event of the piece has come through, in this order. */
enum selection_met {
    MET_DEVICE, /* it is of a device, and of one that is wanted */
    MET_TIME,
    MET_KIND,
    MET_TID,
    MET_DURATION,
    MET_ALL, /* it is in it, or it is a reading of a device that is */
    SELECTION_MET
};

/* What a walk, or a worker's part of it, has found. */
struct selection_found {
    uint64_t met[SELECTION_MET]; /* how many events; 0 or not is certain but for the last */
    /* Devices and threads that what began before --from kept busy for most of the piece, and the
     * first of that. */
    uint32_t begun_devices, begun_threads;
    uint64_t begun_ns;
};

/* Blocks of nothing but calls and work: of which time their calls are read. */
enum selection_calls {
    CALLS_OF_ALL,  /* for who looks for steps */
    CALLS_UP_TO,   /* before the piece, too: they made its work, memory, and graphs */
    CALLS_OF_WORK, /* in the piece, and those before that made its work */
    CALLS_OF_ROWS  /* likewise, for tables of rows (rows.h), which need no ranges around them */
};

struct selection {
    const struct select_wish *wish;
    struct walk own;
    struct walk *walk; /* that knows everything: its own, or a view; NULL: nothing is wished */
    uint64_t from_ns;
    uint64_t to_ns;
    struct time_spans *spans[SELECTION_SPANS]; /* owned, by process index; NULL: any time */
    uint64_t cycle_last;                       /* the last window of any process */
    uint32_t range_count;                      /* of all that were found */
    uint32_t span_count;
    regex_t name;
    bool has_name;
    struct key_map names; /* place of a text -> 1: it has not the name, 2: it has */
    struct walk_filter filter;
    struct walk_filter of_steps; /* selection_steps_filter */
    enum selection_calls reads;
    bool keeps_work;    /* blocks of work are all read */
    bool *called;       /* owned, by place in the index of blocks: those calls; NULL: not sought */
    uint64_t length_ns; /* of the recording, from its first event on */
    struct selection_found found;
    struct key_map begun; /* the devices and threads that are counted in it */
};

/* What a step is, as --step-by and --step-range say. */
struct selection_steps {
    const char *by;
    const char *pattern;
    const struct steps *found; /* all, as these say, if they are known; NULL: they are not */
};

/*
 * Finds out what `wish`, which must stay, means in `rec`, by walks of `surveyed`, which then must
 * stay, too, or, if that is NULL, by some of its own. EXIT_OK, or another code after one line on
 * stderr that begins with `verb`; selection_release in both cases. Where nothing is wished nothing
 * is done.
 */
enum exit_code selection_make(struct selection *s, struct recording *rec, struct walk *surveyed,
                              const struct select_wish *wish, const struct selection_steps *steps,
                              const char *verb);
void selection_release(struct selection *s);

/* For walks of the same recording; NULL: nothing is wished. Blocks that the piece has nothing of
 * are not read: of calls those which `reads` leaves out. */
static inline const struct walk_filter *selection_filter(struct selection *s,
                                                         enum selection_calls reads)
{
    s->reads = reads;
    s->filter.leaves_calls = reads == CALLS_OF_WORK || reads == CALLS_OF_ROWS;
    return s->filter.context ? &s->filter : NULL;
}

/* Of its filter (selection_blocks.c). */
int selection_begin(void *context, bool ties);
bool selection_wants(void *context, const struct process *p, const struct block_span *b);

/* Likewise for walks that look at steps, which are shown as they are in the whole: of the devices
 * that are wanted, and of all that happened. */
static inline const struct walk_filter *selection_steps_filter(const struct selection *s)
{
    return s && s->of_steps.context ? &s->of_steps : NULL;
}

/* Adds what a worker has found in its share. */
static inline void selection_add_found(struct selection_found *sum,
                                       const struct selection_found *found)
{
    for (unsigned i = 0; i < SELECTION_MET; i++)
        sum->met[i] += found->met[i];
    sum->begun_devices += found->begun_devices;
    sum->begun_threads += found->begun_threads;
    if (found->begun_ns && (!sum->begun_ns || found->begun_ns < sum->begun_ns))
        sum->begun_ns = found->begun_ns;
}

/* Does that time of a process reach into it? NULL: everything does. */
bool selection_reaches(const struct selection *s, const struct process *p, uint64_t begin_ns,
                       uint64_t end_ns);

/* What --kind calls a call of that function, and any record, with the function of its call;
 * SELECT_KINDS: it is of none. */
enum select_kind selection_kind_of_call(const struct function *f);
enum select_kind selection_kind_of(const struct record *r, const struct function *f);

/* Is it of time and devices alone? Then a device's readings are among what was asked for. */
bool selection_has_all_kinds(const struct selection *s);

/* Takes steps that do not reach into it out of the list. */
void selection_keep_steps(const struct selection *s, struct steps *steps);

/*
 * The time that it is of, since the recording's first event: from the first to the last that its
 * times, steps, ranges and windows name. Where these have no moment in common, and only a range
 * reaches into all of them, it has no length. False: of all.
 */
bool selection_time(const struct selection *s, uint64_t *from_ns, uint64_t *to_ns);

/* What was asked for, and, of a piece of time, when that was: "0 ns to 1.500 ms after the first
 * event, of 2.000 ms: --step=3 --kind=kernel". To be freed; NULL: no memory. */
char *selection_text(const struct selection *s);

/* After a walk: which devices did work and which threads were in a call that began before --from
 * and took half of the piece or more, and since when: "2 GPUs were in work, and a thread in a call,
 * that began before: --from=0.000103 shows it". To be freed; NULL: there is none, or no memory. */
char *selection_begun_text(const struct selection *s);

/* No event is in it: EXIT_USAGE after one line that says which option leaves none. */
enum exit_code selection_empty(const struct selection *s, const char *verb);

/* Behind the walk: EXIT_OK, or EXIT_USAGE after one line where nothing is in it, or none of the
 * devices that are wanted is in the recording. */
enum exit_code selection_check(const struct selection *s, const char *verb);

#endif
