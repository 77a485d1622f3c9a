/* SPDX-License-Identifier: Apache-2.0 */
#include "read/missing_ranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "error.h"
#include "rank.h"
#include "read/recording.h"

struct member {
    uint64_t rank, size;
    uint32_t job;
};

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return ORDER(a->job, b->job) ?: ORDER(a->rank, b->rank);
}

/* What all processes of a job say, the last of which has the greatest rank; 0: not the same, or it
 * cannot be right. */
static uint64_t size_of(const struct member *members, uint32_t count)
{
    uint64_t size = members[0].size;
    for (uint32_t i = 1; i < count; i++)
        size = members[i].size == size ? size : 0;
    return members[count - 1].rank < size ? size : 0;
}

/* From `first` on, up to `end`. */
static void add_span(struct missing_ranks *m, uint64_t first, uint64_t end)
{
    if (first >= end)
        return;
    if (m->span_count < MISSING_SPANS_MAX) {
        m->spans[m->span_count][0] = first;
        m->spans[m->span_count][1] = end - 1;
    }
    m->span_count++;
    m->count += end - first;
}

static struct missing_ranks missing_of(const struct member *members, uint32_t count)
{
    struct missing_ranks m = {.job = members[0].job, .size = size_of(members, count)};
    uint64_t next = 0; /* rank */
    for (uint32_t i = 0; i < count; i++) {
        m.here += members[i].rank >= next;
        add_span(&m, next, members[i].rank);
        next = members[i].rank + 1;
    }
    add_span(&m, next, m.size);
    return m;
}

int missing_ranks_find(struct recording *rec)
{
    struct member *members = calloc(rec->count + 1u, sizeof *members);
    uint32_t count = 0;
    free(rec->missing);
    rec->missing_count = 0;
    rec->missing = calloc(rec->job_count + 1u, sizeof *rec->missing);
    if (!members || !rec->missing) {
        free(members);
        return GPUPROF_NO_MEMORY;
    }
    for (uint32_t i = 0; i < rec->count && !rec->share && !rec->left_out_ranks; i++) {
        const struct process *p = rec->processes[i];
        if (p->job != JOB_NONE)
            members[count++] = (struct member){p->rank, process_world_size(p), p->job};
    }
    qsort(members, count, sizeof *members, compare_members);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && members[next].job == members[i].job; next++)
            ;
        struct missing_ranks m = missing_of(members + i, next - i);
        if (m.count)
            rec->missing[rec->missing_count++] = m;
    }
    free(members);
    return 0;
}

static int compare_job(const void *key, const void *item)
{
    uint32_t job = *(const uint32_t *)key, other = ((const struct missing_ranks *)item)->job;
    return ORDER(job, other);
}

const struct missing_ranks *missing_ranks_of(const struct recording *rec, uint32_t job)
{
    return rec->missing_count
               ? bsearch(&job, rec->missing, rec->missing_count, sizeof *rec->missing, compare_job)
               : NULL;
}

char *missing_ranks_text(const struct missing_ranks *m, char text[static MISSING_RANKS_BYTES])
{
    size_t at = (size_t)snprintf(text, MISSING_RANKS_BYTES, "rank%s", m->count > 1 ? "s" : "");
    for (uint32_t i = 0; i < m->span_count && i < MISSING_SPANS_MAX; i++) {
        at += (size_t)snprintf(text + at, MISSING_RANKS_BYTES - at, "%s %llu", i ? "," : "",
                               (unsigned long long)m->spans[i][0]);
        if (m->spans[i][1] > m->spans[i][0])
            at += (size_t)snprintf(text + at, MISSING_RANKS_BYTES - at, "-%llu",
                                   (unsigned long long)m->spans[i][1]);
    }
    at += (size_t)snprintf(text + at, MISSING_RANKS_BYTES - at, "%s",
                           m->span_count > MISSING_SPANS_MAX ? " and more" : "");
    if (m->size)
        snprintf(text + at, MISSING_RANKS_BYTES - at, " of %llu", (unsigned long long)m->size);
    return text;
}
