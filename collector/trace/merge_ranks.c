/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a trace for each rank: as files in a folder, or as members of an archive. */
#include "trace/merge_trace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/workers.h"
#include "bytes.h"
#include "error.h"
#include "output/output.h"
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

/* Returns one file per process, in display order; the caller frees it. NULL: no memory. `cycle` is
 * the window number for their names; 0: none. */
static struct rank_file *rank_files_make(const struct merge *m, uint64_t cycle)
{
    const struct recording *rec = &m->rec;
    const char *ending = m->format->rank_ending ? m->format->rank_ending : m->format->file.ending;
    struct rank_file *files = calloc(rec->count + 1u, sizeof *files);
    bool ranked = rec->count && rec->processes[0]->rank != RANK_NONE;
    bool with_gpu = recording_any(rec, process_has_gpu), has_jobs = has_several_jobs(rec);
    uint64_t next = 0;
    for (uint32_t i = 0; files && i < rec->count; i++) {
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

/* An existing folder is fine. */
static enum exit_code make_folder(const char *path, bool *is_new)
{
    struct stat status;
    *is_new = mkdir(path, 0777) == 0;
    if (*is_new || (errno == EEXIST && (stat(path, &status) < 0 || S_ISDIR(status.st_mode))))
        return EXIT_OK; /* for a dangling link, the first file reports the error */
    if (errno == EEXIST)
        message("%s: is a file, but --per-rank needs a folder; name another", path);
    else
        message("%s: %s%s", path, strerror(errno), writing_advice(errno));
    return EXIT_ENVIRONMENT;
}

/* A process without a window of that number has no file. */
static bool is_written(const struct merge *m, const struct rank_file *file)
{
    return !m->selection.spans[SPANS_CYCLE] ||
           m->selection.spans[SPANS_CYCLE][file->process->index].count;
}

static const char *path_of(const char *folder, const struct rank_file *file, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s.gz", folder, file->name);
    return path;
}

/* Creates the folders of the file in `path`. */
static enum exit_code write_rank(struct merge *m, const char *folder, const struct rank_file *file,
                                 char path[PATH_MAX])
{
    struct trace_scope scope = {.only = file->process, .rank = file->rank};
    enum exit_code code = EXIT_OK;
    bool is_new;
    path_of(folder, file, path);
    for (char *end = path + strlen(folder); code == EXIT_OK && (end = strchr(end + 1, '/'));) {
        *end = '\0';
        code = make_folder(path, &is_new);
        *end = '/';
    }
    return code == EXIT_OK ? merge_write_file(m, path, &scope) : code;
}

static enum exit_code write_ranks(struct merge *m, const char *folder,
                                  const struct rank_file *files)
{
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; code == EXIT_OK && i < m->rec.count; i++) {
        char path[PATH_MAX];
        if (!is_written(m, &files[i]))
            continue;
        code = write_rank(m, folder, &files[i], path);
        if (code == EXIT_OK)
            merge_say_left_out(m, path);
    }
    return code;
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
        code = write_rank(m, work->folder, &work->files[i], path);
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

/* Prints the files' messages in file order. */
static enum exit_code gather_ranks(struct merge *m, const char *folder,
                                   const struct rank_file *files, struct workers *workers)
{
    uint32_t how = WORKERS_DONE;
    for (uint32_t i = 0; how == WORKERS_DONE && i < m->rec.count; i++) {
        struct rank_result result;
        char path[PATH_MAX];
        if (!is_written(m, &files[i]))
            continue;
        uint32_t worker = files[i].process->worker;
        if (!workers_read(workers, worker, &result, sizeof result) || result.code != EXIT_OK) {
            how = worker;
            break;
        }
        path_of(folder, &files[i], path);
        if (result.is_large)
            merge_say_large(m, path);
        m->fit = result.fit;
        selection_add_found(&m->selection.found, &result.selected);
        walk_add_found(&m->walk, files[i].process, &result.found);
        merge_say_left_out(m, path);
    }
    enum exit_code code = workers_end(workers, how);
    return code == EXIT_OK && how != WORKERS_DONE ? EXIT_ENVIRONMENT : code;
}

enum exit_code merge_write_folder(struct merge *m, const char *folder, uint64_t cycle)
{
    struct rank_file *files = rank_files_make(m, cycle);
    struct rank_work work = {m, folder, files};
    struct workers workers;
    bool is_new;
    enum exit_code code =
        files ? make_folder(folder, &is_new) : verb_output_failed(folder, GPUPROF_NO_MEMORY);
    if (code == EXIT_OK) {
        recording_deal(&m->rec);
        bool has_workers =
            m->rec.workers > 1 && workers_start(&workers, m->rec.workers, work_on_ranks, &work);
        code =
            has_workers ? gather_ranks(m, folder, files, &workers) : write_ranks(m, folder, files);
        if (is_new)
            rmdir(folder); /* if it stayed empty */
    }
    free(files);
    return code;
}

/* ---- in an archive -----------------------------------------------------------------------------
 *
 * A ZIP archive, written from front to back. Each member is first compressed into an unnamed file,
 * so that its header has its sizes: some readers need them there.
 */

#define LOCAL_MAGIC    0x04034b50u
#define CENTRAL_MAGIC  0x02014b50u
#define END_MAGIC      0x06054b50u
#define ZIP_VERSION    20
#define METHOD_DEFLATE 8
#define FLAG_UTF8      0x800
#define DATE_1980      0x21 /* the earliest date: equal content gives equal files */
#define MODE_FILE      (0100644u << 16)
#define MADE_ON_UNIX   (3u << 8)
#define ARCHIVE_MAX    0xf0000000u /* bytes; leaves room for the directory */
#define COPY_BYTES     65536

struct zip_member {
    const char *name; /* a view */
    struct zstream_sums sums;
    uint64_t offset;
};

struct zip {
    struct output *out;         /* not compressed */
    struct zip_member *members; /* owned */
    uint32_t count;
    uint64_t length; /* of the archive so far */
    int fd;          /* of the current member; -1: none */
};

static void put_data(struct zip *z, const void *data, size_t length)
{
    output_write(z->out, data, length);
    z->length += length;
}

/* Writes numbers of 2 or 4 bytes, one digit of `widths` for each. */
static void put_numbers(struct zip *z, const char *widths, const uint64_t *numbers)
{
    uint8_t bytes[8];
    for (; *widths; widths++) {
        store_u64(bytes, *numbers++);
        put_data(z, bytes, (size_t)(*widths - '0'));
    }
}

/* Writes the header before a member's data, or its entry in the final directory. */
static void put_head(struct zip *z, const struct zip_member *m, bool is_central)
{
    if (is_central)
        put_numbers(z, "42", (uint64_t[]){CENTRAL_MAGIC, MADE_ON_UNIX | ZIP_VERSION});
    else
        put_numbers(z, "4", (uint64_t[]){LOCAL_MAGIC});
    put_numbers(z, "2222244422",
                (uint64_t[]){ZIP_VERSION, FLAG_UTF8, METHOD_DEFLATE, 0, DATE_1980, m->sums.crc,
                             m->sums.compressed, m->sums.bytes, strlen(m->name), 0});
    if (is_central)
        put_numbers(z, "22244", (uint64_t[]){0, 0, 0, MODE_FILE, m->offset});
    put_data(z, m->name, strlen(m->name));
}

/* Begins a member; write its content to *member. Returns 0, GPUPROF_SPOOL or GPUPROF_NO_MEMORY. */
static int begin_member(struct zip *z, const char *name, struct output *member)
{
    struct zip_member its = {.name = name};
    z->fd = file_unnamed();
    int error = z->fd < 0 ? GPUPROF_SPOOL : ARRAY_PUSH(z->members, z->count, &its);
    return error < 0 ? error : output_open_member(member, z->fd, NULL);
}

/* Appends *member to the archive. Returns 0, GPUPROF_SPOOL (errno), GPUPROF_NO_MEMORY, or
 * GPUPROF_LIMIT if the format's sizes of 32 bits do not suffice. */
static int end_member(struct zip *z, struct output *member)
{
    struct zip_member *m = &z->members[z->count - 1];
    char buffer[COPY_BYTES];
    ssize_t got = 0;
    member->sums = &m->sums;
    m->offset = z->length;
    int error = output_finish(member, 1);
    if (error == 0 && (m->sums.bytes > UINT32_MAX || z->count > UINT16_MAX ||
                       z->length + m->sums.compressed > ARCHIVE_MAX))
        error = GPUPROF_LIMIT;
    if (error == 0)
        put_head(z, m, false);
    for (uint64_t at = 0; error == 0 && (got = file_read_at(z->fd, at, buffer, sizeof buffer)) > 0;
         at += (uint64_t)got)
        put_data(z, buffer, (size_t)got);
    file_close(z->fd);
    z->fd = -1;
    return error == GPUPROF_IO || got < 0 ? GPUPROF_SPOOL : error;
}

/* Writes the directory at the archive's end. */
static void put_directory(struct zip *z)
{
    uint64_t begin = z->length;
    for (uint32_t i = 0; i < z->count; i++)
        put_head(z, &z->members[i], true);
    put_numbers(z, "42222442",
                (uint64_t[]){END_MAGIC, 0, 0, z->count, z->count, z->length - begin, begin, 0});
}

#define MANIFEST_NAME "perfetto_manifest.json"

/*
 * Perfetto treats all members as one trace, each with a machine of its own; older versions go by
 * pids alone, which are therefore unique. The manifest must be first both in name order and in the
 * file.
 */
static int write_manifest(struct merge *m, struct zip *zip, const struct rank_file *files)
{
    struct output member;
    int error = begin_member(zip, MANIFEST_NAME, &member);
    if (error < 0)
        return error;
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
    return end_member(zip, &member);
}

static int write_members(struct merge *m, struct zip *zip, const char *path,
                         const struct rank_file *files)
{
    struct device_pids pids;
    device_pids_init(&pids, m->rec.processes, m->rec.count);
    int error = write_manifest(m, zip, files), failed = 0;
    for (uint32_t i = 0; error == 0 && failed == 0 && i < m->rec.count; i++) {
        struct trace_scope scope = {
            .only = files[i].process, .rank = files[i].rank, .pids = &pids, .name = files[i].name};
        struct output member;
        if ((error = begin_member(zip, files[i].name, &member)) < 0)
            break;
        member.room = &m->room;
        if (m->rec.is_parallel)
            member.in_background = true;
        m->one.path = files[i].name;
        failed = merge_write_trace(m, &member, &scope); /* and a message was printed */
        error = end_member(zip, &member);
        if (failed == 0 && error == 0)
            merge_say_left_out(m, files[i].name);
    }
    device_pids_release(&pids);
    if (failed < 0)
        return failed;
    if (error == GPUPROF_LIMIT)
        message(
            "%s: an archive has at most 4 GiB; write a file per rank into a folder (--per-rank)",
            path);
    else if (error < 0)
        verb_output_failed(path, error);
    else
        put_directory(zip);
    return error;
}

enum exit_code merge_write_archive(struct merge *m, const char *path)
{
    struct output out;
    struct zip zip = {.out = &out, .fd = -1};
    struct rank_file *files = rank_files_make(m, 0);
    enum exit_code code = files ? verb_output_open(&out, path, NULL) /* its members are bounded */
                                : verb_output_failed(path, GPUPROF_NO_MEMORY);
    if (code == EXIT_OK) {
        int error = write_members(m, &zip, path, files);
        code = merge_close(m, &out, path, error, true);
    }
    free(zip.members);
    file_close(zip.fd);
    free(files);
    return code;
}
