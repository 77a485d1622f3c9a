/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each device did over time: the window of the recording, or of the piece of it, in equal
 * spans, PAGE_BUCKETS at most, and how much of each went to compute, to communication without
 * compute, to copies without either, and to communication that only waited for another rank, which
 * is idle time as the rest is. Beside it stand curves of what the driver said of the device: the
 * mean of each span. Memory: 10 KB for each device of a process, of which PAGE_USES_MAX are
 * followed, and 26 KB for its curves.
 */
#ifndef GPUPROF_COLLECTOR_PAGE_USE_H
#define GPUPROF_COLLECTOR_PAGE_USE_H

#include "find/idle.h"
#include "page/page_data.h"

#define PAGE_BUCKETS  400
#define PAGE_USES_MAX 1024

/* The first that is under way at a moment has it. */
enum page_use_kind { USE_COMPUTE, USE_COMMUNICATION, USE_COPIES, USE_WAITS, USE_KINDS };

/* Of readings that are some spans apart the line between them. */
enum page_curve_kind { CURVE_POWER, CURVE_CLOCK, CURVE_BUSY, CURVE_THROTTLED, PAGE_CURVES };

struct page_curve {
    double sums[PAGE_BUCKETS]; /* value x ns */
    uint64_t ns[PAGE_BUCKETS]; /* for how long it is known */
};

struct page_device {
    const struct process *process;
    uint64_t device;
    uint64_t run_ns;              /* its time after start-up, if recorded; 0: not known */
    uint64_t at_ns;               /* until here it is counted */
    uint64_t until_ns[USE_KINDS]; /* the last end of what has begun of each kind */
    uint64_t ns[USE_KINDS][PAGE_BUCKETS];
    uint32_t whom;             /* index of the process that it waited for longest, ... */
    uint64_t whom_ns;          /* ... and how long; 0: for none that is known */
    struct page_curve *curves; /* owned, PAGE_CURVES; NULL: the driver said nothing */
};

struct page_use {
    struct walk *walk;
    struct idle *idle; /* NULL: nobody knows how long they waited */
    uint64_t begin_ns;
    uint64_t window_ns;
    uint64_t bucket_ns;
    unsigned spans;               /* PAGE_BUCKETS at most */
    struct page_device **devices; /* owned, and so are they */
    uint32_t count;
    uint32_t capacity;
    struct key_map places; /* (process, device) -> place + 1 */
    struct key_map beyond; /* devices for which there was no room -> 1 */
};

/* `walk` and `idle`, which is finished and may be NULL, must stay. The window is that from begin_ns
 * to end_ns; a span is as many steps, which begin `step_ns` apart (0: not known), or a small part
 * of one. */
void page_use_init(struct page_use *u, struct walk *walk, struct idle *idle, uint64_t begin_ns,
                   uint64_t end_ns, uint64_t step_ns);
void page_use_release(struct page_use *u);

struct consumer page_use_consumer(struct page_use *u);

/* Its data. 0. */
int page_use_put(const struct page_use *u, struct page_data *d);

#endif
