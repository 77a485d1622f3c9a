/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/rank_files.h"

#include <stdio.h>
#include <stdlib.h>

#include "rank.h"

/* Processes are in the order of their ranks: those that share one are neighbours. */
static bool has_rank(const struct recording *rec, uint32_t index)
{
    const struct process *p = rec->processes[index];
    for (uint32_t i = index; i > 0 && rec->processes[i - 1]->rank == p->rank; i--)
        if (rec->processes[i - 1]->has_gpu || !p->has_gpu)
            return false;
    for (uint32_t i = index + 1; i < rec->count && rec->processes[i]->rank == p->rank; i++)
        if (rec->processes[i]->has_gpu && !p->has_gpu)
            return false;
    return true;
}

struct rank_file *rank_files_make(const struct recording *rec, const char *ending, uint64_t cycle)
{
    struct rank_file *files = calloc(rec->count + 1u, sizeof *files);
    bool ranked = rec->count && rec->processes[0]->rank != RANK_NONE;
    bool with_gpu = recording_has_gpu(rec);
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
        if (f->other)
            f->stem = (uint32_t)snprintf(f->name, sizeof f->name, RANK_FILES_OTHERS "/process_%u",
                                         p->shown_pid);
        else
            f->stem = (uint32_t)snprintf(f->name, sizeof f->name, "rank_%llu",
                                         (unsigned long long)f->rank);
        if (cycle)
            snprintf(f->name + f->stem, sizeof f->name - f->stem, ".%llu.%s",
                     (unsigned long long)cycle, ending);
        else
            snprintf(f->name + f->stem, sizeof f->name - f->stem, ".%s", ending);
    }
    return files;
}
