/* SPDX-License-Identifier: Apache-2.0 */
/* What every trace format provides: a table of functions, one writer file each. */
#ifndef GPUPROF_COLLECTOR_TRACE_WRITER_H
#define GPUPROF_COLLECTOR_TRACE_WRITER_H

#include "output.h"
#include "recording.h"
#include "timeline.h"

struct trace_writer;

struct trace_format {
    const char *name;
    /* NULL: no memory. `out` and `rec` must stay. */
    struct trace_writer *(*create)(struct output *out, struct recording *rec);
    /* Before the first event; all times will be shown relative to origin_ns. 0 or an error. */
    int (*begin)(struct trace_writer *w, uint64_t origin_ns);
    /* A CALL; events come in the order of the timeline. 0 or an error. */
    int (*call)(struct trace_writer *w, const struct event *event);
    /* After the last event, when the losses are known. 0 or an error. */
    int (*end)(struct trace_writer *w);
    void (*free)(struct trace_writer *w);
};

extern const struct trace_format chrome_format; /* chrome_writer.c */

#endif
