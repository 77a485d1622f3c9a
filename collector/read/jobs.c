/* SPDX-License-Identifier: Apache-2.0 */
/* Groups processes into jobs. */
#include "read/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "rank.h"

#define JOBS_TRIED 16 /* only the newest jobs are candidates for a process */
#define NONE       UINT32_MAX

/* ---- which processes are of one job ---------------------------------------------------------- */

struct member {
    struct process *process;
    char *identity; /* owned: text of process_job */
    uint64_t begin_ns, end_ns;
    uint64_t size; /* ranks of its job; 0: unknown */
    uint32_t job;
};

struct found_job {
    uint64_t begin_ns, end_ns;
    uint64_t size; /* from its processes; 0: unknown */
    uint32_t number;
};

struct finder {
    struct member *members; /* owned; sorted by identity and begin */
    struct found_job *jobs; /* owned */
    uint32_t count, job_count;
    uint32_t first_job;  /* first job of the current identity */
    struct key_map ends; /* (job, rank) -> end of its last process + 1 */
};

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return strcmp(a->identity, b->identity) ?: ORDER(a->begin_ns, b->begin_ns) ?:
           memcmp(a->process->header.process_id, b->process->header.process_id,
                  sizeof a->process->header.process_id);
}

static struct key end_key(uint32_t job, const struct member *m)
{
    return (struct key){job, m->process->rank, 0};
}

/* Returns true if the process can belong to the job: its rank runs there or had no process yet, and
 * the known sizes agree. */
static bool jobs_has_room(const struct finder *f, uint32_t job, const struct member *m)
{
    uint64_t end = key_map_get(&f->ends, end_key(job, m)), size = f->jobs[job].size;
    return (!end || end > m->begin_ns) && (!size || !m->size || size == m->size);
}

/* Returns the oldest of the newest jobs that has room and still runs, else the newest with room. */
static uint32_t job_of(const struct finder *f, const struct member *m)
{
    uint32_t job = NONE;
    for (uint32_t i = f->job_count; i > f->first_job && f->job_count - i < JOBS_TRIED; i--)
        if ((f->jobs[i - 1].end_ns > m->begin_ns || job == NONE) && jobs_has_room(f, i - 1, m))
            job = i - 1;
    return job;
}

static void find_job(struct finder *f, struct member *m)
{
    m->job = job_of(f, m);
    if (m->job == NONE) {
        m->job = f->job_count++;
        f->jobs[m->job] = (struct found_job){.begin_ns = m->begin_ns};
    }
    struct found_job *job = &f->jobs[m->job];
    job->size = job->size ? job->size : m->size;
    job->end_ns = max_of(job->end_ns, m->end_ns);
    struct key key = end_key(m->job, m);
    if (m->end_ns >= key_map_get(&f->ends, key))
        (void)key_map_set(&f->ends, key, m->end_ns + 1);
}

static int compare_jobs(const void *left, const void *right)
{
    const struct found_job *a = *(struct found_job *const *)left,
                           *b = *(struct found_job *const *)right;
    return ORDER(a->begin_ns, b->begin_ns) ?: ORDER(a, b);
}

/* Numbers the jobs by their begin, and sets the processes' job numbers. */
static void number_jobs(struct finder *f)
{
    struct found_job **order = memory_new(f->job_count + 1u, sizeof(struct found_job *));
    for (uint32_t i = 0; i < f->job_count; i++)
        order[i] = &f->jobs[i];
    qsort(order, f->job_count, sizeof *order, compare_jobs);
    for (uint32_t i = 0; i < f->job_count; i++)
        order[i]->number = i;
    for (uint32_t i = 0; i < f->count; i++) {
        f->members[i].process->job = f->jobs[f->members[i].job].number;
        f->members[i].process->is_of_several = f->job_count > 1;
    }
    free(order);
}

static void add_member(struct finder *f, struct process *p)
{
    char text[PROCESS_JOB_BYTES];
    p->rank = rank_number(process_rank(p));
    p->job = JOB_NONE;
    if (p->rank == RANK_NONE)
        return;
    struct member *m = &f->members[f->count++];
    *m = (struct member){.process = p,
                         .identity = memory_text(process_job(p, text)),
                         .begin_ns = p->header.realtime_zero_ns,
                         .end_ns = p->header.realtime_zero_ns + p->lived_ns,
                         .size = process_world_size(p)};
}

void recording_find_jobs(struct recording *rec)
{
    struct finder f = {.members = memory_new(rec->count + 1u, sizeof *f.members),
                       .jobs = memory_new(rec->count + 1u, sizeof *f.jobs)};
    for (uint32_t i = 0; i < rec->count; i++)
        add_member(&f, rec->processes[i]);
    qsort(f.members, f.count, sizeof *f.members, compare_members);
    for (uint32_t i = 0; i < f.count; i++) {
        if (i && strcmp(f.members[i].identity, f.members[i - 1].identity) != 0)
            f.first_job = f.job_count;
        find_job(&f, &f.members[i]);
    }
    number_jobs(&f);
    rec->job_count = f.job_count;
    for (uint32_t i = 0; i < f.count; i++)
        free(f.members[i].identity);
    key_map_release(&f.ends);
    free(f.members);
    free(f.jobs);
    recording_find_missing(rec);
}

void recording_say_jobs(const struct recording *rec, const char *how)
{
    if (rec->job_count > 1)
        message("the processes belong to %u jobs, numbered from 0; %s", rec->job_count, how);
}

/* ---- what of them is wanted ------------------------------------------------------------------ */

static bool jobs_is_wanted(const struct process *p, const struct select_request *w)
{
    return (!w->jobs.count || (p->job != JOB_NONE && number_list_has(&w->jobs, p->job))) &&
           (!w->ranks.count || (p->rank != RANK_NONE && number_list_has(&w->ranks, p->rank))) &&
           number_list_has(&w->pids, p->header.pid);
}

/* Drops what is known of missing ranks for jobs that are not selected, or not as a whole. */
static void keep_missing(struct recording *rec, const struct select_request *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rec->missing_count; i++)
        if (w->jobs.count ? number_list_has(&w->jobs, rec->missing[i].job) : !rec->left_out_ranks)
            rec->missing[kept++] = rec->missing[i];
    rec->missing_count = kept;
}

#define LISTED_MAX 4

/* Reports that no process matches, with the first ones as "rank 0 is pid 17, pid 18". */
static enum exit_code nothing_wanted(const struct recording *rec)
{
    char *text = memory_text("");
    for (uint32_t i = 0; i < rec->count && i < LISTED_MAX; i++) {
        const struct process *p = rec->processes[i];
        char rank[32] = "", *before = text;
        if (p->rank != RANK_NONE)
            snprintf(rank, sizeof rank, "rank %" PRIu64 " is ", p->rank);
        text = text_printf("%s%s%spid %u%s", before, i ? ", " : "", rank, p->header.pid,
                           i + 1 == LISTED_MAX && rec->count > LISTED_MAX ? ", ..." : "");
        free(before);
    }
    enum exit_code code = usage_error("none of the %u recorded processes matches --rank, --pid or "
                                      "--job; there are: %s",
                                      rec->count, text);
    free(text);
    return code;
}

enum exit_code recording_select(struct recording *rec, const struct select_request *w)
{
    uint32_t count = rec->count, wanted = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct process *p = rec->processes[i];
        p->is_elsewhere = !jobs_is_wanted(p, w);
        rec->left_out_ranks +=
            p->is_elsewhere && p->job != JOB_NONE && number_list_has(&w->jobs, p->job);
        wanted += !p->is_elsewhere;
    }
    if (!wanted)
        return nothing_wanted(rec);
    recording_drop(rec);
    rec->left_out = count - rec->count;
    keep_missing(rec, w);
    return EXIT_OK;
}

/* ---- ranks that are not here ----------------------------------------------------------------- */

struct seat {
    uint64_t rank, size;
    uint32_t job;
};

static int compare_seats(const void *left, const void *right)
{
    const struct seat *a = left, *b = right;
    return ORDER(a->job, b->job) ?: ORDER(a->rank, b->rank);
}

/* Returns the job size that all processes agree on; 0: they differ, or a rank is larger. */
static uint64_t size_of(const struct seat *seats, uint32_t count)
{
    uint64_t size = seats[0].size;
    for (uint32_t i = 1; i < count; i++)
        size = seats[i].size == size ? size : 0;
    return seats[count - 1].rank < size ? size : 0;
}

/* Adds the missing ranks from `first` up to, but not including, `end`. */
static void share_add_span(struct missing_ranks *m, uint64_t first, uint64_t end)
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

static struct missing_ranks missing_of(const struct seat *seats, uint32_t count)
{
    struct missing_ranks m = {.job = seats[0].job, .size = size_of(seats, count)};
    uint64_t next = 0; /* rank */
    for (uint32_t i = 0; i < count; i++) {
        m.here += seats[i].rank >= next;
        share_add_span(&m, next, seats[i].rank);
        next = seats[i].rank + 1;
    }
    share_add_span(&m, next, m.size);
    return m;
}

void recording_find_missing(struct recording *rec)
{
    struct seat *seats = memory_new(rec->count + 1u, sizeof *seats);
    uint32_t count = 0;
    free(rec->missing);
    rec->missing_count = 0;
    rec->missing = memory_new(rec->job_count + 1u, sizeof *rec->missing);
    for (uint32_t i = 0; i < rec->count && !rec->left_out_ranks; i++) {
        const struct process *p = rec->processes[i];
        if (p->job != JOB_NONE)
            seats[count++] = (struct seat){p->rank, process_world_size(p), p->job};
    }
    qsort(seats, count, sizeof *seats, compare_seats);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && seats[next].job == seats[i].job; next++)
            ;
        struct missing_ranks m = missing_of(seats + i, next - i);
        if (m.count)
            rec->missing[rec->missing_count++] = m;
    }
    free(seats);
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
