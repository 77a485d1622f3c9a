/* SPDX-License-Identifier: Apache-2.0 */
/* The selection that a user requests with the options of a reading verb. selection.h (resolve/)
 * applies it to a recording. An event must match all options. */
#ifndef GPUPROF_COLLECTOR_SELECT_REQUEST_H
#define GPUPROF_COLLECTOR_SELECT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"

#define NUMBER_LIST_MAX 64
#define CYCLE_ALL       UINT64_MAX
#define SELECT_OPTIONS  14 /* in select_options */

struct number_span {
    uint64_t first;
    uint64_t last;
};

/* "0,2,4-7"; empty: any number. */
struct number_list {
    struct number_span spans[NUMBER_LIST_MAX];
    unsigned count;
};

/* A time since 1970, or since the recording's first event. */
struct select_moment {
    const char *text; /* as given */
    bool is_given;
    bool is_absolute;
    uint64_t ns;
};

/* The kinds of events, with a word for each (select_options.c). */
enum select_kind {
    SELECT_LAUNCH, /* calls, by what they do */
    SELECT_ALLOC,
    SELECT_COPY,
    SELECT_SYNC,
    SELECT_GRAPH,
    SELECT_OTHER,
    SELECT_KERNEL, /* device activities */
    SELECT_MEMCPY,
    SELECT_MEMSET,
    SELECT_GRAPH_RUN,
    SELECT_WAIT,
    SELECT_OVERHEAD,
    SELECT_MEMORY,
    SELECT_RANGE, /* ranges and records of the program and its libraries */
    SELECT_MARK,
    SELECT_OPERATOR,
    SELECT_LIBRARY,
    SELECT_SAMPLE, /* host activities */
    SELECT_OS,
    SELECT_GIL,
    SELECT_GC,
    SELECT_KINDS,
};

const char *select_kind_word(enum select_kind kind);

/* Returns the name of an option by its place in `said`. */
const char *select_option_name(unsigned place);

struct select_request {
    const char *said[SELECT_OPTIONS]; /* values as given; NULL: not given */
    struct select_moment from;
    struct select_moment to;
    bool has_steps;
    uint64_t step_first;
    uint64_t step_end; /* first step after the selection */
    uint64_t cycle;    /* 0: any; CYCLE_ALL: each cycle by itself */
    const char *range; /* a pattern of names; NULL: any */
    const char *name;  /* a POSIX extended regular expression; NULL: any name */
    uint32_t kinds;    /* bits of enum select_kind; 0: all */
    uint64_t min_ns;   /* the least duration */
    struct number_list jobs;
    struct number_list ranks;
    struct number_list pids;
    struct number_list tids;
    struct number_list devices;
    bool is_given; /* any option but jobs, ranks and pids, which exclude whole files */
};

static inline bool number_list_has(const struct number_list *l, uint64_t number)
{
    for (unsigned i = 0; i < l->count; i++)
        if (number >= l->spans[i].first && number <= l->spans[i].last)
            return true;
    return !l->count;
}

/* Parses the value of --kind. Returns EXIT_OK, or EXIT_USAGE after one line. */
enum exit_code select_kinds_take(struct select_request *w, const char *verb, const char *text);

#endif
