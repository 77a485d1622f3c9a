/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/rank_files.h"

#include <stdio.h>
#include <stdlib.h>

#include "rank.h"

/* Processes are in the order of their ranks: those that share one, in one job, are near. */
static bool has_rank(const struct recording *rec, uint32_t index)
{
    const struct process *p = rec->processes[index], *other;
    for (uint32_t i = index; i > 0 && (other = rec->processes[i - 1])->rank == p->rank; i--)
        if (other->job == p->job && (other->has_gpu || !p->has_gpu))
            return false;
    for (uint32_t i = index + 1; i < rec->count && (other = rec->processes[i])->rank == p->rank;
         i++)
        if (other->job == p->job && other->has_gpu && !p->has_gpu)
            return false;
    return true;
}

static bool has_several_jobs(const struct recording *rec)
{
    const struct process *first = rec->count ? rec->processes[0] : NULL;
    for (uint32_t i = 1; i < rec->count && rec->processes[i]->job != JOB_NONE; i++)
        if (rec->processes[i]->job != first->job)
            return true;
    return false;
}

/* Puts its name, without the ending, into `f`. */
static void name_file(struct rank_file *f, bool has_jobs)
{
    char job[24] = "";
    if (has_jobs && f->process->job != JOB_NONE)
        snprintf(job, sizeof job, "job_%u/", f->process->job);
    f->stem = (uint32_t)(f->other ? snprintf(f->name, sizeof f->name, "%sothers/process_%u", job,
                                             f->process->shown_pid)
                                  : snprintf(f->name, sizeof f->name, "%srank_%llu", job,
                                             (unsigned long long)f->rank));
}

struct rank_file *rank_files_make(const struct recording *rec, const char *ending, uint64_t cycle)
{
    struct rank_file *files = calloc(rec->count + 1u, sizeof *files);
    bool ranked = rec->count && rec->processes[0]->rank != RANK_NONE;
    bool with_gpu = recording_has_gpu(rec), has_jobs = has_several_jobs(rec);
    uint64_t next = 0;
    for (uint32_t i = 0; files && i < rec->count; i++) {
        struct process *p = rec->processes[i];
        struct rank_file *f = &files[i];
        f->process = p;
        f->rank = p->rank == RANK_NONE ? 0 : p->rank;
        if (ranked)
            f->other = p->rank == RANK_NONE || !has_rank(rec, i);
        else if (!(f->other = with_gpu && !p->has_gpu))
            f->rank = next++; /* nobody has one: in the order of their starts */
        name_file(f, has_jobs);
        if (cycle)
            snprintf(f->name + f->stem, sizeof f->name - f->stem, ".%llu.%s",
                     (unsigned long long)cycle, ending);
        else
            snprintf(f->name + f->stem, sizeof f->name - f->stem, ".%s", ending);
    }
    return files;
}
