/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a trace for each rank: as files in a folder, or as members of an archive. */
#include "trace/merge_trace.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/workers.h"
#include "error.h"
#include "output/output.h"
#include "output/zip_writer.h"
#include "rank.h"

/*
 * One trace file per process, with the names that HTA and TensorBoard expect: rank_N with the
 * format's ending. Processes that share a rank or have none go to a folder of their own, which
 * those tools skip. With several jobs each has a folder, job_N.
 */
#define RANK_FILE_BYTES 96

struct rank_file {
    struct process *process;
    uint64_t rank;              /* as the file has it */
    bool other;                 /* in the folder for processes without their own rank */
    uint32_t stem;              /* bytes of `name` before the ending */
    char name[RANK_FILE_BYTES]; /* with folders, without .gz */
};

/* Returns true if the process gets its rank's file: of a job's processes with that rank, the first
 * with GPU work, or else the first. */
static bool has_rank(const struct recording *rec, const struct process *p)
{
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *other = rec->processes[i];
        if (other->rank == p->rank && other->job == p->job && other->has_gpu >= p->has_gpu &&
            (other->has_gpu > p->has_gpu || other->index < p->index))
            return false;
    }
    return true;
}

/* False where --job=N selected one. */
static bool has_several_jobs(const struct recording *rec)
{
    for (uint32_t i = 1; i < rec->count && rec->processes[i]->job != JOB_NONE; i++)
        if (rec->processes[i]->job != rec->processes[0]->job)
            return true;
    return false;
}

/* Returns one file per process, in display order; the caller frees it. `cycle` is the window number
 * for their names; 0: none. */
static struct rank_file *rank_files_make(const struct merge *m, uint64_t cycle)
{
    const struct recording *rec = &m->rec;
    const char *ending = m->format->rank_ending ? m->format->rank_ending : m->format->file.ending;
    struct rank_file *files = memory_new(rec->count + 1u, sizeof *files);
    bool ranked = rec->count && rec->processes[0]->rank != RANK_NONE;
    bool with_gpu = recording_any(rec, process_has_gpu), has_jobs = has_several_jobs(rec);
    uint64_t next = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        struct rank_file *f = &files[i];
        char job[24] = "", number[32] = "";
        f->process = p;
        f->rank = p->rank == RANK_NONE ? 0 : p->rank;
        if (ranked)
            f->other = p->rank == RANK_NONE || !has_rank(rec, p);
        else if (!(f->other = with_gpu && !p->has_gpu))
            f->rank = next++; /* no process has a rank: numbered by start time */
        if (has_jobs && p->job != JOB_NONE)
            snprintf(job, sizeof job, "job_%u/", p->job);
        if (cycle)
            snprintf(number, sizeof number, ".%llu", (unsigned long long)cycle);
        f->stem = (uint32_t)snprintf(f->name, sizeof f->name, "%s%s%llu", job,
                                     f->other ? "others/process_" : "rank_",
                                     f->other ? p->shown_pid : (unsigned long long)f->rank);
        snprintf(f->name + f->stem, sizeof f->name - f->stem, "%s.%s", number, ending);
    }
    return files;
}

/* A process without a window of that number has no file. */
static bool is_written(const struct merge *m, const struct rank_file *file)
{
    return !m->selection.spans[SPANS_CYCLE] ||
           m->selection.spans[SPANS_CYCLE][file->process->index].count;
}

static enum exit_code write_rank(struct merge *m, const struct rank_file *file, const char *path)
{
    struct trace_scope scope = {.only = file->process, .rank = file->rank};
    enum exit_code code = verb_output_folders(path);
    return code == EXIT_OK ? merge_write_file(m, path, &scope) : code;
}

/* ---- by several workers ---------------------------------------------------------------------- */

struct rank_work {
    struct merge *merge;
    const char *folder;
    const struct rank_file *files;
};

struct rank_result {
    enum exit_code code;
    bool is_large;
    struct merge_fit fit;
    struct selection_found selected;
    struct walk_found found;
};

static enum exit_code work_on_ranks(void *context, uint32_t index, int to)
{
    struct rank_work *work = context;
    struct merge *m = work->merge;
    enum exit_code code = EXIT_OK;
    m->room /= m->rec.workers;
    m->rec.is_parallel = false; /* workers use all processors; threads would not help */
    m->said_large = true;       /* by the parent */
    recording_keep_share(&m->rec, index);
    for (uint32_t i = 0; code == EXIT_OK && i < m->rec.count; i++) {
        char path[PATH_MAX];
        struct process *p = work->files[i].process;
        if (p->is_elsewhere || !is_written(m, &work->files[i]))
            continue;
        m->selection.found = (struct selection_found){0};
        snprintf(path, sizeof path, "%s/%s.gz", work->folder, work->files[i].name);
        code = write_rank(m, &work->files[i], path);
        struct rank_result result;
        memset(&result, 0, sizeof result); /* the padding is sent, too */
        result.code = code;
        result.is_large = m->one.is_large;
        result.fit = m->fit;
        result.selected = m->selection.found;
        result.found = walk_found(&m->walk, p);
        if (!workers_write(to, &result, sizeof result))
            return EXIT_ENVIRONMENT;
    }
    return code;
}

/* Waits for a file that a worker writes. Returns false if it failed. */
static bool read_rank(struct merge *m, const struct workers *workers, const struct rank_file *file,
                      const char *path)
{
    struct rank_result result;
    if (!workers_read(workers, file->process->worker, &result, sizeof result) ||
        result.code != EXIT_OK)
        return false;
    if (result.is_large)
        merge_say_large(m, path);
    m->fit = result.fit;
    selection_add_found(&m->selection.found, &result.selected);
    walk_add_found(&m->walk, file->process, &result.found);
    return true;
}

/* Prints the files' messages in file order. */
enum exit_code merge_write_folder(struct merge *m, const char *folder, uint64_t cycle)
{
    struct rank_file *files = rank_files_make(m, cycle);
    struct rank_work work = {m, folder, files};
    struct workers workers;
    uint32_t how = WORKERS_DONE;
    enum exit_code code = EXIT_OK, ended = EXIT_OK;
    bool is_new = access(folder, F_OK) < 0;
    recording_deal(&m->rec);
    bool has_workers =
        m->rec.workers > 1 && workers_start(&workers, m->rec.workers, work_on_ranks, &work);
    for (uint32_t i = 0; code == EXIT_OK && i < m->rec.count; i++) {
        char path[PATH_MAX];
        if (!is_written(m, &files[i]))
            continue;
        snprintf(path, sizeof path, "%s/%s.gz", folder, files[i].name);
        if (!has_workers) {
            code = write_rank(m, &files[i], path);
        } else if (!read_rank(m, &workers, &files[i], path)) {
            how = files[i].process->worker;
            code = EXIT_ENVIRONMENT;
        }
        if (code == EXIT_OK)
            merge_say_left_out(m, path);
    }
    if (has_workers)
        ended = workers_end(&workers, how);
    if (is_new)
        rmdir(folder); /* if it stayed empty */
    free(files);
    return ended == EXIT_OK ? code : ended;
}

/* ---- in an archive --------------------------------------------------------------------------- */

#define MANIFEST_NAME "perfetto_manifest.json"

/*
 * Perfetto treats all members as one trace, each with a machine of its own; older versions go by
 * pids alone, which are therefore unique. The manifest must be first both in name order and in the
 * file.
 */
static int write_manifest(struct merge *m, struct zip_writer *zip, const struct rank_file *files)
{
    struct output member;
    zip_writer_begin(zip, MANIFEST_NAME, &member);
    fputs("{\"perfetto_manifest\":{\"version\":1,\"files\":[", member.stream);
    for (uint32_t i = 0; i < m->rec.count; i++) {
        const struct rank_file *f = &files[i];
        char machine[RANK_FILE_BYTES + STREAM_HOST_BYTES_MAX + 8];
        snprintf(machine, sizeof machine, "%.*s (%s)", (int)f->stem, f->name,
                 f->process->header.host);
        fputs(i ? ",\n" : "\n", member.stream);
        json_printf(member.stream, "{\"path\":%s,\"machine\":{\"name\":%s}}", f->name, machine);
    }
    fputs("\n]}}\n", member.stream);
    return zip_writer_end(zip, &member);
}

static int write_members(struct merge *m, struct zip_writer *zip, const char *path,
                         const struct rank_file *files)
{
    uint32_t owners[DEVICES_NUMBERED] = {0};
    int error = write_manifest(m, zip, files), failed = 0;
    for (uint32_t i = 0; error == 0 && failed == 0 && i < m->rec.count; i++) {
        struct trace_scope scope = {.only = files[i].process,
                                    .rank = files[i].rank,
                                    .owners = owners,
                                    .name = files[i].name};
        struct output member;
        zip_writer_begin(zip, files[i].name, &member);
        member.room = &m->room;
        if (m->rec.is_parallel)
            member.in_background = true;
        m->one.path = files[i].name;
        failed = merge_write_trace(m, &member, &scope); /* and a message was printed */
        error = zip_writer_end(zip, &member);
        if (failed == 0 && error == 0)
            merge_say_left_out(m, files[i].name);
    }
    if (failed < 0)
        return failed;
    if (error < 0)
        verb_output_failed(path, error);
    else
        zip_writer_finish(zip);
    return error;
}

enum exit_code merge_write_archive(struct merge *m, const char *path)
{
    struct output out;
    struct zip_writer zip = {.out = &out};
    struct rank_file *files = rank_files_make(m, 0);
    enum exit_code code = verb_output_open(&out, path, NULL); /* its members are bounded */
    if (code == EXIT_OK) {
        int error = write_members(m, &zip, path, files);
        zip_writer_release(&zip);
        code = merge_close(m, &out, path, error, true);
    }
    free(files);
    return code;
}
