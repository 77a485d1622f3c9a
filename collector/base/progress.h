/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a long piece of work is, on one line of a terminal that is written anew and in the end
 * cleared. Where stderr is no terminal there is none, which costs nothing.
 */
#ifndef GPUPROF_COLLECTOR_PROGRESS_H
#define GPUPROF_COLLECTOR_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_AFTER_NS 2000000000u /* what is done sooner says nothing */
#define PROGRESS_EVERY_NS 200000000u

struct progress {
    const char *verb;
    uint64_t total; /* bytes to be read; what is read twice counts twice */
    uint64_t done;
    uint64_t begin_ns;
    uint64_t shown_ns; /* when it was written last; 0: never */
    bool is_shown;     /* its line is there, to be cleared */
};

/* Returns `p`, or NULL: stderr is no terminal that can do it. `total` may be set later. */
struct progress *progress_begin(struct progress *p, const char *verb);

/* So many bytes more are done. `p` may be NULL, and so in progress_clear. */
void progress_add(struct progress *p, uint64_t bytes);

/* Takes its line away: what follows on stderr has a line of its own. */
void progress_clear(struct progress *p);

#endif
