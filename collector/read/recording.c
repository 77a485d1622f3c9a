/* SPDX-License-Identifier: Apache-2.0 */
#include "read/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/key_map.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "base/workers.h"
#include "bytes.h"
#include "error.h"
#include "rank.h"
#include "read/process.h"
#include "record.h"
#include "record/losses.h"

#define PROCESSES_SAID_MAX 16 /* processes whose losses are reported one by one */

#define GPU_ROWS_PRESENT "present" /* for older recordings, which do not say */
#define GPU_ROWS_ABSENT  "absent: the recording does not say why"
#define GPU_ROWS_CUT     "absent: the file ends before it says why"

static int recording_add_block(void *context, struct process *p, struct block_place *place)
{
    struct recording *rec = context;
    if (!place->is_taken)
        block_index_add(&rec->index, p->number, place->offset, &place->header, place->apart);
    return 0;
}

/* Returns false after a message if the process is already loaded. */
static bool note_process(struct recording *rec, const struct process *p)
{
    struct key key = {load_u64(p->header.process_id), load_u64(p->header.process_id + 8), 0};
    uint64_t known = key_map_get(&rec->known, key);
    if (!known)
        (void)key_map_set(&rec->known, key, rec->count + 1ull);
    else if (rec->repeated++ < PROCESSES_SAID_MAX)
        message("%s: left out: it repeats pid %u of %s, which is read from %s", p->file.path,
                p->header.pid, p->header.host, rec->processes[known - 1]->file.path);
    return !known;
}

static enum exit_code code_of(int error)
{
    return error == GPUPROF_IO || error == GPUPROF_LIMIT || error == GPUPROF_SPOOL
               ? EXIT_ENVIRONMENT
               : EXIT_USAGE;
}

static enum exit_code failure(const char *path, int error)
{
    if (error == GPUPROF_IO)
        message("%s: %s%s", path, strerror(errno), reading_advice(errno));
    else
        message("%s: %s%s", path, gpuprof_error_text(error),
                error == GPUPROF_NOT_OURS ? foreign_advice(path) : "");
    return code_of(error);
}

/* Reports a file that cannot be read. One bad file must not hide the others: not a dangling link,
 * and not one that permissions or the disk make unreadable. */
static enum exit_code load_failed(struct recording *rec, const char *path, bool named, int error)
{
    int number = error == GPUPROF_IO ? errno : 0;
    bool gone = !named && (number == ENOENT || number == ELOOP || number == ENOTDIR);
    bool closed = number == EACCES || number == EPERM || number == EIO || number == ESTALE;
    bool lost = error == GPUPROF_DAMAGED || error == GPUPROF_TRUNCATED || error == GPUPROF_EMPTY ||
                gone || closed;
    if (!lost && (named || code_of(error) == EXIT_ENVIRONMENT))
        return failure(path, error);
    rec->has_closed |= closed;
    if (rec->unread_files++ < PROCESSES_SAID_MAX)
        failure(path, error);
    return EXIT_OK;
}

/* Loads one file; `named`: the user named it, instead of its folder. */
static enum exit_code load_file(struct recording *rec, const char *path, bool named,
                                const struct recording_options *options)
{
    struct process *p = memory_new(1, sizeof *p);
    int error = process_load(p, &rec->reader, path, rec->count,
                             options->no_index ? NULL : recording_add_block, rec);
    if (error == 0 && note_process(rec, p)) {
        ARRAY_PUSH(rec->processes, rec->count, &p);
        return EXIT_OK;
    }
    if (error == 0)
        process_release(p, &rec->reader);
    block_index_drop(&rec->index, rec->count);
    free(p);
    return error == 0 ? EXIT_OK : load_failed(rec, path, named, error);
}

static enum exit_code load_folder(struct recording *rec, const char *path,
                                  const struct recording_options *options);

/* Handles a folder without a recording: reads its only subfolder with one, or reports. */
static enum exit_code load_below(struct recording *rec, const char *path,
                                 const struct recording_options *options)
{
    char *first;
    uint32_t count = path_list_below(path, &first);
    enum exit_code code = EXIT_USAGE;
    if (count == 1) {
        message("%s has no recording itself; reading %s", path, first);
        code = load_folder(rec, first, options);
    } else if (count) {
        usage_error("no recording found in %s itself, but in %u of its folders; name one or "
                    "several, such as %s",
                    path, count, first);
    } else {
        usage_error("no recording found in %s; make one with 'gpuprof run -o %s PROGRAM'", path,
                    path);
    }
    free(first);
    return code;
}

static enum exit_code load_folder(struct recording *rec, const char *path,
                                  const struct recording_options *options)
{
    struct path_list list;
    int error = path_list_read(&list, path);
    enum exit_code code = error < 0 ? failure(path, error) : EXIT_OK;
    if (code == EXIT_OK && list.count == 0)
        code = options->quiet ? EXIT_USAGE : load_below(rec, path, options);
    for (uint32_t i = 0; code == EXIT_OK && i < list.count; i++)
        code = load_file(rec, list.paths[i], false, options);
    path_list_release(&list);
    return code;
}

static enum exit_code load_path(struct recording *rec, const char *path,
                                const struct recording_options *options)
{
    struct stat status;
    if (stat(path, &status) < 0) {
        message("%s: %s%s", *path ? path : "''", strerror(errno), reading_advice(errno));
        return errno == ENOENT || errno == ENOTDIR ? EXIT_USAGE : EXIT_ENVIRONMENT;
    }
    if (!S_ISDIR(status.st_mode))
        return load_file(rec, path, !options->found, options);
    return load_folder(rec, path, options);
}

/* Loads the processes of the share in place of their headers. */
static enum exit_code load_share(struct recording *rec, const struct recording_options *options)
{
    uint32_t kept = 0;
    enum exit_code code = EXIT_OK;
    recording_find_share(rec, options->share);
    rec->reader.only_headers = false;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        int error = 0;
        if (!p->is_elsewhere && code == EXIT_OK) {
            char *path = memory_text(p->file.path);
            process_release(p, &rec->reader);
            error = process_load(p, &rec->reader, path, kept, recording_add_block, rec);
            if (error < 0) {
                block_index_drop(&rec->index, kept);
                code = load_failed(rec, path, false, error);
                free(p);
            }
            free(path);
        }
        if (error == 0) {
            p->number = p->index = kept;
            rec->processes[kept++] = p;
        }
    }
    rec->count = kept;
    return code;
}

static void say_more(uint32_t files, const char *what)
{
    if (files > PROCESSES_SAID_MAX)
        message("... and %u more file%s %s", files - PROCESSES_SAID_MAX,
                plural_end(files - PROCESSES_SAID_MAX), what);
}

enum exit_code recording_open(struct recording *rec, char **paths, int path_count,
                              const struct recording_options *options)
{
    *rec = (struct recording){0};
    reader_init(&rec->reader);
    rec->reader.keep_live = options->keep_live;
    /* Without --jobs, other gpuprof processes may share the machine. */
    rec->is_parallel = parallel_processors(options->processors) > 1 && options->processors > 1;
    rec->index.entries_max = options->index_entries_max;
    rec->reader.only_headers = options->share;
    enum exit_code code = EXIT_OK;
    for (int i = 0; code == EXIT_OK && i < path_count; i++)
        code = load_path(rec, paths[i], options);
    if (code == EXIT_OK && options->share)
        code = load_share(rec, options);
    if (code != EXIT_OK)
        return code;
    say_more(rec->unread_files, "that cannot be read");
    say_more(rec->repeated, "left out for the same reason");
    if (rec->count == 0) /* load_file already reported why */
        return rec->has_closed ? EXIT_ENVIRONMENT : EXIT_DAMAGED;
    recording_find_jobs(rec);
    if (!options->quiet && !options->all_jobs && !(options->select && options->select->jobs.count))
        recording_say_jobs(rec, "select one with --job=N");
    code = options->select ? recording_select(rec, options->select) : EXIT_OK;
    if (code == EXIT_OK)
        recording_arrange(rec);
    uint32_t most = rec->is_parallel ? options->processors : 1;
    most = most < WORKERS_MAX ? most : WORKERS_MAX;
    rec->workers = most < rec->count ? most : rec->count;
    return code;
}

void recording_deal(struct recording *rec)
{
    uint64_t bytes[WORKERS_MAX] = {0};
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        p->worker = 0;
        for (uint32_t w = 1; w < rec->workers; w++)
            p->worker = bytes[w] < bytes[p->worker] ? w : p->worker;
        bytes[p->worker] += p->file.size + p->live.bytes + 1;
    }
}

void recording_keep_share(struct recording *rec, uint32_t worker)
{
    rec->progress = NULL; /* workers have no view of the others' progress */
    for (uint32_t i = 0; i < rec->count; i++)
        rec->processes[i]->is_elsewhere = rec->processes[i]->worker != worker;
}

void recording_release(struct recording *rec)
{
    for (uint32_t i = 0; i < rec->count; i++) {
        process_release(rec->processes[i], &rec->reader);
        free(rec->processes[i]);
    }
    free(rec->processes);
    free(rec->loaded);
    free(rec->missing);
    free(rec->hosts);
    key_map_release(&rec->known);
    key_map_release(&rec->said);
    free(rec->looked_at);
    block_index_release(&rec->index);
    reader_release(&rec->reader);
    *rec = (struct recording){0};
}

void recording_note_file(struct recording *rec, const char *path)
{
    size_t bytes = strlen(path) + 1;
    rec->looked_at = memory_resize(rec->looked_at, rec->looked_at_bytes + bytes, 1);
    memcpy(rec->looked_at + rec->looked_at_bytes, path, bytes);
    rec->looked_at_bytes += bytes;
}

uint64_t recording_bytes(const struct recording *rec)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        bytes += rec->processes[i]->file.size + rec->processes[i]->live.bytes;
    return bytes;
}

bool recording_any(const struct recording *rec, bool (*is_one)(const struct process *p))
{
    uint32_t i = 0;
    while (i < rec->count && !is_one(rec->processes[i]))
        i++;
    return i < rec->count;
}

bool recording_may_have(const struct recording *rec, uint64_t types)
{
    const struct block_index *x = &rec->index;
    for (uint32_t i = 0; i < x->count; i++)
        if (!x->entries[i].types || x->entries[i].types & types)
            return true;
    return false;
}

const char *process_gpu_rows(const struct process *p)
{
    const char *text = process_meta(p, "gpu_rows");
    if (text && text[0])
        return text;
    return p->has_gpu ? GPU_ROWS_PRESENT : p->end_reason ? GPU_ROWS_ABSENT : GPU_ROWS_CUT;
}

const char *recording_gpu_rows(const struct recording *rec)
{
    bool is_gpu = recording_any(rec, process_has_gpu);
    for (uint32_t i = 0; i < rec->count; i++)
        if (rec->processes[i]->has_gpu == is_gpu)
            return process_gpu_rows(rec->processes[i]);
    return GPU_ROWS_ABSENT;
}

/* Reports what was recovered of the process, and what is missing. */
static void say_losses(const struct process *p, const struct losses *l)
{
    char text[2048], who[RANK_TITLE_BYTES + 32], rank[RANK_TITLE_BYTES];
    size_t length = strlen(process_rank_title(p, rank));
    snprintf(who, sizeof who, "%.*s%spid %u", length ? (int)length - 2 : 0, rank,
             length ? ", " : "", p->header.pid);
    /* A normal end also leaves the last calls in the live file; that is not worth a message. */
    bool ended = p->end_reason && p->end_reason != END_KILLED && !l->running && !l->may_run;
    if (l->open_calls || (l->live_records && !ended))
        message("%s (%s): read from the live file: events: %llu, unfinished calls: %llu (%s)",
                p->file.path, who, (unsigned long long)l->live_records,
                (unsigned long long)l->open_calls,
                l->running                    ? "the process still runs: this is a snapshot"
                : l->may_run                  ? "the process may still run, on another machine "
                                                "or in another PID namespace"
                : p->end_reason == END_KILLED ? "the process was killed, or called exec; it "
                                                "is recovered"
                : p->end_reason               ? "they came while the process ended"
                : l->counters[COUNTER_ENDED]  ? "recording had ended before the process"
                                              : "the process was killed, or called exec");
    if (l->not_ended && p->header.live_path[0])
        message("%s (%s): its live file is missing: it is not in the same folder, and not at '%s'",
                p->file.path, who, p->header.live_path);
    if (losses_weight(l) != LOSS_NONE)
        message("%s (%s): lost: %s", p->file.path, who, losses_text(l, text, sizeof text));
}

enum exit_code recording_verdict(const struct recording *rec, const struct losses *losses,
                                 bool names_dropped, bool strict)
{
    enum exit_code code = rec->unread_files ? EXIT_DAMAGED : EXIT_OK;
    uint32_t said = 0;
    if (names_dropped) {
        message("names: too many to keep: some kernels appear as their handles or '?', and some "
                "ranges without their texts");
        code = strict ? EXIT_DAMAGED : code;
    }
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct losses *l = &losses[i];
        enum loss_weight weight = losses_weight(l);
        if (weight == LOSS_DAMAGE || (strict && weight == LOSS_COUNTED))
            code = EXIT_DAMAGED;
        if ((weight != LOSS_NONE || l->live_records || l->open_calls) &&
            said++ < PROCESSES_SAID_MAX)
            say_losses(rec->processes[i], l);
    }
    if (said > PROCESSES_SAID_MAX)
        message("... and losses of %u more process%s; the report has the sum of all losses, and "
                "reading one file shows its own",
                said - PROCESSES_SAID_MAX, said - PROCESSES_SAID_MAX == 1 ? "" : "es");
    return code;
}

/* ---- files that are none of ours ------------------------------------------------------------- */

const char *foreign_advice(const char *path)
{
    uint8_t head[8];
    return file_head(path, head, sizeof head) == sizeof head && load_u64(head) == PART_MAGIC
               ? ", but a part of a report; read it with 'gpuprof report --combine'"
               : RECORDING_ADVICE;
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool has_recorded_parent(const struct recording *rec, const struct process *p)
{
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct stream_header *h = &rec->processes[i]->header;
        if (h->pid == p->header.parent_pid && h->pid_namespace == p->header.pid_namespace &&
            memcmp(h->boot_id, p->header.boot_id, sizeof h->boot_id) == 0)
            return true;
    }
    return false;
}

/* Returns the only process whose parent is not recorded; NULL: unclear. */
static const struct process *first_of_all(const struct recording *rec)
{
    const struct process *first = NULL;
    for (uint32_t i = 0; i < rec->count; i++) {
        if (has_recorded_parent(rec, rec->processes[i]))
            continue;
        if (first)
            return NULL;
        first = rec->processes[i];
    }
    return first;
}

/* Takes the settings from one process, since all ranks have the same. */
static void set_options(const struct process *p, struct next_words *w)
{
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        char key[64];
        snprintf(key, sizeof key, "env.%s", setting_infos[i].variable);
        const char *value = process_meta(p, key);
        next_words_add_option(w, setting_infos[i].option, value && *value ? value : NULL, true);
    }
}

void recorded_program(const struct recording *rec, struct next_words *w)
{
    if (rec->count)
        set_options(rec->processes[0], w);
    const struct process *p = first_of_all(rec);
    const char *line = p ? process_meta(p, "cmdline") : NULL,
               *split = p ? process_meta(p, "argv") : NULL;
    if (split)
        next_words_set_program(w, split, ARGUMENT_SEPARATOR);
    else if (line && line[0])
        next_words_set_program(w, line, ' ');
}
