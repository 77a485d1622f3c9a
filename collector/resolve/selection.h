/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selection: the part of a recording that a verb shows. It resolves the options
 * (select_request.h) for one recording, and the walk asks it about each slice. All of these must
 * hold:
 *
 *    --from, --to   the event begins there; a range, operator or library call overlaps it
 *    --step         likewise, in the time of those steps of its process; but GPU work is
 *    --range        placed at the call that made it, and nowhere if that is not known
 *    --cycle        likewise; work without a known call is where it begins
 *    --tid          the thread; for GPU work that of its call
 *    --device       for GPU work and synchronisations; events without a device stay
 *    --kind, --name, --min-duration   as they say
 *
 * Descriptions (names, devices, modules) are in every selection.
 *
 * Memory: the survey's (survey.h); 16 bytes for each separate time span of selected steps or
 * ranges, SELECTION_SPANS_MAX at most; and a number for each name that was looked up.
 */
#ifndef GPUPROF_COLLECTOR_SELECTION_H
#define GPUPROF_COLLECTOR_SELECTION_H

#include <regex.h>

#include "base/select_request.h"
#include "record/gpu_record.h"
#include "resolve/steps.h"

#define SELECTION_SPANS_MAX (1u << 22)

/* Spans of one process; once complete, sorted and disjoint. */
struct time_spans {
    struct time_span *list; /* owned */
    uint32_t count;
};

/* How the time is selected; SPANS_CYCLE: the requested window of a process, if it had one. */
enum selection_spans { SPANS_STEPS, SPANS_RANGES, SPANS_CYCLE, SELECTION_SPANS };

/* What a walk, or one worker's share of it, has found. */
struct selection_found {
    uint64_t events;     /* selected, or readings of a selected device */
    uint64_t of_devices; /* zero or not: events of selected devices, selected or not */
    /* Devices and threads busy for most of the selection with something from before --from, and
     * when the first of that began. */
    uint32_t begun_devices, begun_threads;
    uint64_t begun_ns;
};

/* Which calls are read in blocks that hold only calls and GPU work. */
enum selection_calls {
    CALLS_OF_ALL,  /* to find steps, and what a GPU waited for at the edges of the selection */
    CALLS_UP_TO,   /* also those before the selection: they made its work, memory and graphs */
    CALLS_OF_WORK, /* in the selection, and earlier ones that made its work */
    CALLS_OF_ROWS  /* likewise, for tables of rows (rows.h), which use no ranges */
};

/* Which blocks outside the selection are read. */
enum selection_beside {
    BESIDE_CALLS = 1, /* with the last calls of a thread before it, which made its first work */
    BESIDE_IDLE       /* with the spans around those, the next calls, the last and the next work */
};

struct selection {
    const struct select_request *request;
    struct walk own;
    struct walk *walk; /* a complete walk: its own or a view; NULL: nothing is requested */
    uint64_t from_ns;
    uint64_t to_ns;
    struct time_spans *spans[SELECTION_SPANS]; /* owned, by process index; NULL: any time */
    uint64_t cycle_last;                       /* number of the last window of any process */
    uint32_t span_count;
    regex_t name;
    bool has_name;
    struct key_map names; /* place of a text -> 1: does not match, 2: matches */
    struct walk_filter filter;
    struct walk_filter of_steps; /* selection_steps_filter */
    enum selection_calls reads;
    bool keeps_work;          /* all blocks of GPU work are read */
    uint8_t *beside;          /* owned, by index entry: enum selection_beside; NULL: not known */
    uint8_t *core;            /* owned: see struct walk_filter */
    struct near_record *near; /* owned */
    uint32_t near_count;
    uint64_t length_ns; /* length of the recording, from its first event on */
    struct selection_found found;
    struct key_map begun; /* devices and threads that `found` has counted */
};

/* How steps are defined: --step-by and --step-range. */
struct selection_steps {
    const char *by;
    const char *pattern;
    const struct steps *found; /* all steps of that kind; NULL: not known yet */
};

/*
 * Resolves `request`, which must stay, for `rec`. It uses walks of `surveyed`, which must stay,
 * too, or of its own if that is NULL. Returns EXIT_OK, or another code after one line on stderr
 * that begins with `verb`; selection_release in both cases. Does nothing if nothing is requested.
 */
enum exit_code selection_make(struct selection *s, struct recording *rec, struct walk *surveyed,
                              const struct select_request *request,
                              const struct selection_steps *steps, const char *verb);
void selection_release(struct selection *s);

/* The filter for walks of the same recording; NULL: nothing is requested. Blocks without selected
 * events are not read, nor calls that `reads` leaves out. */
static inline const struct walk_filter *selection_filter(struct selection *s,
                                                         enum selection_calls reads)
{
    s->reads = reads;
    s->filter.leaves_calls = reads != CALLS_OF_ALL || s->filter.is_near;
    return s->filter.context ? &s->filter : NULL;
}

/* For idle time: matching collectives needs all kernels, and the edges of a selection need work
 * beyond them. If one time is selected, work near it is enough. */
static inline void selection_keep_work(struct selection *s)
{
    s->keeps_work = !s->filter.is_near && (s->filter.is_of_time || s->walk->rec->count > 1);
}

/* Finds the blocks beside the selection. A queue of the device has room for some 1,000 launches,
 * and a process has 8 of them by default (CUDA_DEVICE_MAX_CONNECTIONS); with operators or ranges a
 * launch has up to some 16 records. So the last records of a thread have the calls that made its
 * first work. (selection_blocks.c, like the next.) */
#define SELECTION_RECORDS_CALLS 8192  /* before it, of a thread, if there are only calls */
#define SELECTION_RECORDS_SPANS 16384 /* the same, if there may be operators, ranges ... */
#define SELECTION_RECORDS_NEAR  1024  /* after it, and of work before it */
void selection_find_beside(struct selection *s);

/*
 * For a selection that is_near, given the spans and steps of the whole recording: reads blocks that
 * are not near the window only for the records that begin or end its spans, and for rare ones.
 * Memory: 80 bytes for each such record. (selection_near.c, like the next.)
 */
void selection_read_near(struct selection *s, struct crossings *c, const struct steps *steps);

/* Whether the block may have a record that begins or ends a span of the window. */
bool selection_has_near(const struct selection *s, const struct process *p,
                        const struct block_span *b);

/* Records of one moment, which matter near it. */
#define SELECTION_NEAR_TYPES                                                                       \
    (CALL_TYPES | BLOCK_STATEFUL | WORK_TYPES | block_type_bit(RECORD_CONTENT) |                   \
     block_type_bit(RECORD_SILENCE))

/* Records of spans, and of moments that matter near them if the steps are known. */
#define SELECTION_SPAN_TYPES                                                                       \
    (block_type_bit(RECORD_PUSH) | block_type_bit(RECORD_POP) |                                    \
     block_type_bit(RECORD_RANGE_START) | block_type_bit(RECORD_RANGE_END) |                       \
     block_type_bit(RECORD_MARK) | block_type_bit(RECORD_STEP) | block_type_bit(RECORD_OP_BEGIN) | \
     block_type_bit(RECORD_OP_END) | block_type_bit(RECORD_LIBRARY_BEGIN) |                        \
     block_type_bit(RECORD_LIBRARY_END))

/* Clock noise can place work this long before its call. */
static inline uint64_t selection_later(uint64_t ns)
{
    return ns < UINT64_MAX - AHEAD_NS ? ns + AHEAD_NS : UINT64_MAX;
}

/* The last calls of a process that did not exit normally show why it hung. */
bool selection_reads_all_of(const struct process *p);

/* Function of its filter. */
bool selection_wants(void *context, const struct process *p, const struct block_span *b);

/* The filter for walks that look at steps: steps are shown with everything that happened in them,
 * on the selected devices. */
static inline const struct walk_filter *selection_steps_filter(const struct selection *s)
{
    return s && s->of_steps.context ? &s->of_steps : NULL;
}

/* Adds the findings of one worker. */
static inline void selection_add_found(struct selection_found *sum,
                                       const struct selection_found *found)
{
    sum->events += found->events;
    sum->of_devices += found->of_devices;
    sum->begun_devices += found->begun_devices;
    sum->begun_threads += found->begun_threads;
    if (found->begun_ns && (!sum->begun_ns || found->begun_ns < sum->begun_ns))
        sum->begun_ns = found->begun_ns;
}

/* Whether that time of a process overlaps the selection. NULL: always. */
bool selection_reaches(const struct selection *s, const struct process *p, uint64_t begin_ns,
                       uint64_t end_ns);

/* The --kind of a call of that function, and of any record with the function of its call;
 * SELECT_KINDS: none. */
enum select_kind selection_kind_of_call(const struct function *f);
enum select_kind selection_kind_of(const struct record *r, const struct function *f);

/* Whether it selects by time and devices only, so that readings of a device belong to it. */
bool selection_has_all_kinds(const struct selection *s);

/* Removes steps that do not overlap the selection. */
void selection_keep_steps(const struct selection *s, struct steps *steps);

/*
 * The selected time, since the recording's first event: from the first to the last moment in all of
 * its times, steps, ranges and windows. It has no length if they have no moment in common and only
 * a range overlaps them all. False: all of the time is selected.
 */
bool selection_time(const struct selection *s, uint64_t *from_ns, uint64_t *to_ns);

/* Describes the selection and its time: "0 ns to 1.500 ms after the first event, of 2.000 ms:
 * --step=3 --kind=kernel". The caller frees it; NULL: no memory. */
char *selection_text(const struct selection *s);

/* After a walk: says which devices and threads were busy for half of the selection or more with
 * work or a call from before --from, and since when: "work of 2 GPUs and 1 thread began earlier:
 * --from=0.000103000 shows it". The caller frees it; NULL: there is none, or no memory. */
char *selection_begun_text(const struct selection *s);

/* For a selection without events: prints why. Returns EXIT_USAGE. */
enum exit_code selection_empty(const struct selection *s, const char *verb);

/* After the walk: EXIT_OK, or EXIT_USAGE after one line if nothing was selected or no selected
 * device is in the recording. */
enum exit_code selection_check(const struct selection *s, const char *verb);

#endif
