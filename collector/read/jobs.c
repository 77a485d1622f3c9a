/* SPDX-License-Identifier: Apache-2.0 */
/* Groups processes into jobs. */
#include "read/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/new_text.h"
#include "base/unit_text.h"
#include "bytes.h"
#include "error.h"
#include "rank.h"

#define JOBS_TRIED 16 /* only the newest jobs are candidates for a process */
#define JOBS_SAID  4
#define NONE       UINT32_MAX

/* ---- which processes are of one job ---------------------------------------------------------- */

struct member {
    struct process *process;
    char *identity; /* owned: text of process_job */
    uint64_t begin_ns, end_ns;
    uint64_t size;   /* ranks of its job; 0: unknown */
    uint32_t family; /* index of the family's first member */
    uint32_t next;   /* next member of its family + 1 */
    uint32_t last;   /* first member only: the family's last member */
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
    uint32_t first_job; /* first job of the current identity */
    struct key_map families;
    struct key_map pids;
    struct key_map ends; /* (family or job, rank, which of the two) -> end of its last process +
                          * 1 */
};

/* Sets the wall-clock begin and end of the process. */
static void set_times(struct member *m)
{
    const struct process *p = m->process;
    uint64_t ns = p->max_ns != UINT64_MAX && p->min_ns <= p->max_ns ? p->max_ns : 0;
    m->begin_ns = p->header.realtime_zero_ns;
    m->end_ns = ns < CLOCK_NS_MAX && m->begin_ns < CLOCK_NS_MAX ? m->begin_ns + ns : m->begin_ns;
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return strcmp(a->identity, b->identity) ?: ORDER(a->begin_ns, b->begin_ns) ?:
           memcmp(a->process->header.process_id, b->process->header.process_id,
                  sizeof a->process->header.process_id);
}

static int jobs_set(struct key_map *map, struct key key, uint64_t value)
{
    int error = key_map_set(map, key, value);
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* The key of a pid within its boot and pid namespace. */
static struct key pid_key(const struct process *p, uint32_t pid)
{
    const uint8_t *boot = p->header.boot_id;
    return (struct key){load_u64(boot) ^ p->header.pid_namespace, load_u64(boot + 8), pid};
}

static struct key end_key(bool is_job, uint32_t of, const struct process *p)
{
    return (struct key){of, p->rank, is_job};
}

static int note_end(struct finder *f, bool is_job, uint32_t of, const struct member *m)
{
    struct key key = end_key(is_job, of, m->process);
    uint64_t known = key_map_get(&f->ends, key), end = m->end_ns + 1;
    return end > known ? jobs_set(&f->ends, key, end) : 0;
}

/* Returns true if the known sizes show two different jobs. */
static bool are_of_two(uint64_t size, uint64_t other)
{
    return size && other && size != other;
}

/* Returns the family to join: the parent's own if it has the same rank, else that of processes with
 * the same parent. NONE (a new family) if that family's process of this rank has ended, or the job
 * size differs. */
static uint32_t family_of(struct finder *f, const struct member *m)
{
    const struct process *p = m->process;
    struct key parent = pid_key(p, p->header.parent_pid);
    bool has_parent = p->header.parent_pid > 1; /* orphans have parent 1 */
    uint64_t known = has_parent ? key_map_get(&f->pids, parent) : 0;
    if (known && strcmp(f->members[known - 1].identity, m->identity) == 0 &&
        f->members[known - 1].process->rank == p->rank)
        return f->members[known - 1].family;
    known = has_parent ? key_map_get(&f->families, parent) : 0;
    if (!known || strcmp(f->members[known - 1].identity, m->identity) != 0 ||
        are_of_two(f->members[known - 1].size, m->size))
        return NONE;
    uint64_t end = key_map_get(&f->ends, end_key(false, (uint32_t)known - 1, p));
    return end && end <= m->begin_ns ? NONE : (uint32_t)known - 1;
}

static int find_family(struct finder *f, uint32_t index)
{
    struct member *m = &f->members[index];
    const struct process *p = m->process;
    m->family = family_of(f, m);
    bool is_new = m->family == NONE;
    if (is_new) {
        m->family = index;
    } else {
        f->members[f->members[m->family].last].next = index + 1;
        f->members[m->family].last = index;
    }
    m->last = index;
    int error = note_end(f, false, m->family, m);
    if (error == 0 && is_new && p->header.parent_pid > 1)
        error = jobs_set(&f->families, pid_key(p, p->header.parent_pid), index + 1ull);
    return error < 0 ? error : jobs_set(&f->pids, pid_key(p, p->header.pid), index + 1ull);
}

/* Returns true if a launcher identifies the job. SLURM_JOB_ID alone does not: one allocation may
 * run several jobs. */
static bool jobs_is_named(const struct member *m)
{
    return m->identity[0] &&
           (strncmp(m->identity, "SLURM_JOB_ID=", 13) != 0 || strchr(m->identity, ' '));
}

/* Returns true if the family can belong to the job. Named jobs of one identity never overlap unless
 * sizes differ; unnamed jobs have one process per rank. */
static bool jobs_has_room(const struct finder *f, uint32_t job, uint32_t family)
{
    for (uint32_t i = family + 1; i; i = f->members[i - 1].next) {
        const struct member *m = &f->members[i - 1];
        uint64_t end = key_map_get(&f->ends, end_key(true, job, m->process));
        if ((end && (!jobs_is_named(m) || end <= m->begin_ns)) ||
            are_of_two(f->jobs[job].size, m->size))
            return false;
    }
    return true;
}

/* Returns the oldest of the newest jobs that has room and still runs, else the newest with room. */
static uint32_t job_of(const struct finder *f, uint32_t family)
{
    uint32_t job = NONE;
    for (uint32_t i = f->job_count; i > f->first_job && f->job_count - i < JOBS_TRIED; i--) {
        bool is_over = f->jobs[i - 1].end_ns <= f->members[family].begin_ns;
        if ((!is_over || job == NONE) && jobs_has_room(f, i - 1, family))
            job = i - 1;
    }
    return job;
}

static int find_job(struct finder *f, uint32_t family)
{
    uint32_t job = job_of(f, family);
    int error = 0;
    if (job == NONE) {
        job = f->job_count++;
        f->jobs[job] = (struct found_job){.begin_ns = f->members[family].begin_ns};
    }
    for (uint32_t i = family + 1; i && error == 0; i = f->members[i - 1].next) {
        struct member *m = &f->members[i - 1];
        m->job = job;
        f->jobs[job].size = f->jobs[job].size ? f->jobs[job].size : m->size;
        if (m->end_ns > f->jobs[job].end_ns)
            f->jobs[job].end_ns = m->end_ns;
        error = note_end(f, true, job, m);
    }
    return error;
}

static int compare_jobs(const void *left, const void *right)
{
    const struct found_job *a = *(struct found_job *const *)left,
                           *b = *(struct found_job *const *)right;
    return ORDER(a->begin_ns, b->begin_ns) ?: ORDER(a, b);
}

/* Numbers the jobs by their begin, and sets the processes' job numbers. */
static int number_jobs(struct finder *f)
{
    struct found_job **order = malloc((f->job_count + 1u) * sizeof(struct found_job *));
    if (!order)
        return GPUPROF_NO_MEMORY;
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
    return 0;
}

static int add_member(struct finder *f, struct process *p)
{
    char text[PROCESS_JOB_BYTES];
    p->rank = rank_number(process_rank(p));
    p->job = JOB_NONE;
    if (p->rank == RANK_NONE)
        return 0;
    struct member *m = &f->members[f->count];
    *m = (struct member){
        .process = p, .identity = strdup(process_job(p, text)), .size = process_world_size(p)};
    if (!m->identity)
        return GPUPROF_NO_MEMORY;
    set_times(m);
    f->count++;
    return 0;
}

int recording_find_jobs(struct recording *rec)
{
    struct finder f = {.members = calloc(rec->count + 1u, sizeof *f.members),
                       .jobs = calloc(rec->count + 1u, sizeof *f.jobs)};
    int error = f.members && f.jobs ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count && error == 0; i++)
        error = add_member(&f, rec->processes[i]);
    if (f.members)
        qsort(f.members, f.count, sizeof *f.members, compare_members);
    for (uint32_t i = 0; i < f.count && error == 0; i++)
        error = find_family(&f, i);
    for (uint32_t i = 0; i < f.count && error == 0; i++) {
        if (i && strcmp(f.members[i].identity, f.members[i - 1].identity) != 0)
            f.first_job = f.job_count;
        if (f.members[i].family == i)
            error = find_job(&f, i);
    }
    if (error == 0)
        error = number_jobs(&f);
    rec->job_count = f.job_count;
    for (uint32_t i = 0; f.members && i < f.count; i++)
        free(f.members[i].identity);
    key_map_release(&f.families);
    key_map_release(&f.pids);
    key_map_release(&f.ends);
    free(f.members);
    free(f.jobs);
    return error < 0 ? error : recording_find_missing(rec);
}

/* ---- what is said of them -------------------------------------------------------------------- */

static void print_job(const struct recording *rec, uint32_t job, uint64_t origin_ns, FILE *out)
{
    char text[PROCESS_JOB_BYTES], time[UNIT_TEXT_BYTES];
    const struct process *first = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        if (p->job != job)
            continue;
        if (!first || p->header.realtime_zero_ns < first->header.realtime_zero_ns)
            first = p;
        count++;
    }
    if (!first)
        return;
    fprintf(out, "%s %u (%u process%s", job ? "," : "", job, count, count == 1 ? "" : "es");
    if (first->header.realtime_zero_ns > origin_ns)
        fprintf(out, ", begun %s later",
                time_text(time, first->header.realtime_zero_ns - origin_ns));
    if (process_job(first, text)[0])
        fprintf(out, ", %s", text);
    fputc(')', out);
}

/* Returns " 0 (2 processes), 1 (...)", which the caller frees; NULL: no memory. */
static char *jobs_text(const struct recording *rec)
{
    uint64_t origin_ns = UINT64_MAX;
    struct new_text text;
    FILE *out = new_text_begin(&text);
    if (!out)
        return NULL;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        if (p->job != JOB_NONE && p->header.realtime_zero_ns < origin_ns)
            origin_ns = p->header.realtime_zero_ns;
    }
    for (uint32_t i = 0; i < rec->job_count && i < JOBS_SAID; i++)
        print_job(rec, i, origin_ns, out);
    if (rec->job_count > JOBS_SAID)
        fprintf(out, " and %u more", rec->job_count - JOBS_SAID);
    char *all = new_text_end(&text, out), *line = all ? json_line(all) : NULL;
    free(all);
    return line;
}

void recording_say_jobs(const struct recording *rec, const char *how)
{
    char *text = rec->job_count > 1 ? jobs_text(rec) : NULL;
    if (text)
        message("the processes belong to %u jobs: job%s; %s", rec->job_count, text, how);
    free(text);
}

/* ---- what of them is wanted ------------------------------------------------------------------ */

static bool jobs_is_wanted(const struct process *p, const struct select_request *w)
{
    return p->job != JOB_NONE && number_list_has(&w->jobs, p->job) &&
           number_list_has(&w->ranks, p->rank) && number_list_has(&w->pids, p->header.pid);
}

/* Reports that the selection is empty, and which processes or jobs exist. */
static enum exit_code none_wanted(struct recording *rec, const struct select_request *w)
{
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        if (p->job != JOB_NONE && number_list_has(&w->jobs, p->job))
            (void)recording_note_other(rec, p);
    }
    if (rec->left_out)
        return recording_none_wanted(rec);
    char *text = rec->job_count ? jobs_text(rec) : NULL;
    enum exit_code code = usage_error("--job: no such job; %s%s",
                                      text ? "the recording has jobs" : "no process reports a rank",
                                      text ? text : "");
    free(text);
    return code;
}

/* Drops what is known of missing ranks for jobs that are not selected. */
static void keep_missing(struct recording *rec, const struct select_request *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rec->missing_count; i++)
        if (number_list_has(&w->jobs, rec->missing[i].job))
            rec->missing[kept++] = rec->missing[i];
    rec->missing_count = kept;
}

enum exit_code recording_select_jobs(struct recording *rec, const struct select_request *w)
{
    uint32_t kept = 0, count = rec->count, wanted = 0;
    for (uint32_t i = 0; i < count; i++)
        wanted += jobs_is_wanted(rec->processes[i], w);
    if (!wanted)
        return none_wanted(rec, w);
    uint32_t *numbers = calloc(rec->count + 1u, sizeof *numbers);
    if (!numbers)
        return say_error("gpuprof-collector", GPUPROF_NO_MEMORY);
    for (uint32_t i = 0; i < count; i++) {
        struct process *p = rec->processes[i];
        bool stays = jobs_is_wanted(p, w);
        numbers[i] = stays ? kept : NONE;
        if (stays) {
            p->number = kept;
            rec->processes[kept++] = p;
            continue;
        }
        rec->left_out_ranks += p->job != JOB_NONE && number_list_has(&w->jobs, p->job);
        process_release(p, &rec->reader);
        free(p);
        rec->left_out++;
    }
    rec->count = kept;
    keep_missing(rec, w);
    block_index_renumber(&rec->index, numbers);
    free(numbers);
    return EXIT_OK;
}

int recording_note_other(struct recording *rec, const struct process *p)
{
    rec->left_out++;
    uint64_t number = rec->reader.select->ranks.count ? p->rank : p->header.pid;
    if (number == RANK_NONE)
        return 0;
    rec->left_out_ranks++;
    return ARRAY_PUSH(rec->others, rec->others_count, &number);
}

enum exit_code recording_none_wanted(struct recording *rec)
{
    char text[NUMBER_SPANS_BYTES];
    const struct select_request *request = rec->reader.select;
    bool by_rank = request->ranks.count > 0, by_pid = request->pids.count > 0;
    number_spans_text(rec->others, rec->others_count, text);
    return usage_error("none of the %u recorded processes matches %s%s%s: %s%s", rec->left_out,
                       by_rank ? "--rank" : "", by_rank && by_pid ? " and " : "",
                       by_pid ? "--pid" : "",
                       !rec->others_count                ? "no process has a rank"
                       : rec->reader.select->ranks.count ? "the recording has ranks "
                                                         : "the recording has pids ",
                       text);
}
