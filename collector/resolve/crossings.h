/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans (spans.h) that begin and end in different entries of the index of blocks. A report of a
 * window needs them: of blocks far from it, it reads only those that begin or end a span of it. Any
 * window needs the spans around captured calls, and the first of each kind on a thread, which show
 * that there are some. A whole report collects them, for later ones (report/shared_report.c).
 * Memory: a spool.
 */
#ifndef GPUPROF_COLLECTOR_CROSSINGS_H
#define GPUPROF_COLLECTOR_CROSSINGS_H

#include "base/spool.h"
#include "resolve/spans.h"

struct crossing {
    struct process *process;
    uint64_t begin_ns;
    uint64_t end_ns;   /* UINT64_MAX: it did not end */
    uint64_t inner_ns; /* as struct host_span, and so are `inside` and has_work */
    uint32_t thread;   /* number, in its process, of the thread that began it ... */
    uint32_t ended_by; /* ... and of the one that ended it */
    uint32_t inside;
    bool has_work;
    bool is_kept; /* for any window */
};

struct crossings {
    struct spool rows; /* struct crossing */
    bool is_unusable;  /* the begin or the end of some span is not known */
};

void crossings_init(struct crossings *c);
void crossings_release(struct crossings *c);

/* Takes the change of a span on that stack, by that record; and a captured call in its spans. */
void crossings_take(struct crossings *c, struct span_stack *stack, struct host_span *span,
                    enum span_change change, const struct event *e);
void crossings_keep(struct span_stack *stack);

#endif
