/* SPDX-License-Identifier: Apache-2.0 */
#include "run/ctl_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"
#include "file/live_file.h"
#include "output/new_file.h"
#include "read/process.h"

/* Reads the rank from the blocks and, for a process on another machine, whether it has ended. */
static void ctl_folder_load(struct ctl_process *p, bool is_elsewhere)
{
    struct reader reader;
    struct process process;
    reader_init(&reader);
    reader.keep_live = true;
    if (process_load(&process, &reader, p->path, 0, NULL, NULL) == 0) {
        p->rank = rank_number(process_rank(&process));
        p->has_ended |= is_elsewhere && process.end_reason != 0;
        process_release(&process, &reader);
    }
    reader_release(&reader);
}

static void ctl_folder_add(struct ctl_folder *f, const char *path)
{
    struct ctl_process p = {.rank = RANK_NONE};
    if (stream_header_of(path, &p.header) < 0)
        return; /* no recording, or not yet */
    p.path = memory_text(path);
    enum live_owner owner = live_owner(&p.header);
    for (char *at = p.header.host; *at; at++) /* the file may have any text */
        *at = *at > ' ' && *at <= '~' && *at != '"' && *at != '\\' ? *at : '?';
    p.has_ended = owner == LIVE_OWNER_ENDED;
    if (owner == LIVE_OWNER_UNKNOWN || (f->needs_ranks && !p.has_ended))
        ctl_folder_load(&p, owner == LIVE_OWNER_UNKNOWN);
    ARRAY_PUSH(f->processes, f->count, &p);
}

/* Whether the path is known. There are a few thousand at most, and it is asked once a second. */
static bool ctl_folder_is_known(const struct ctl_folder *f, const char *path)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->processes[i].path, path) == 0)
            return true;
    return false;
}

int ctl_folder_look(struct ctl_folder *f)
{
    struct path_list list = {0};
    int error = path_list_read(&list, f->path);
    for (uint32_t i = 0; i < list.count && error == 0; i++)
        if (!ctl_folder_is_known(f, list.paths[i]))
            ctl_folder_add(f, list.paths[i]);
    path_list_release(&list);
    return error;
}

void ctl_folder_release(struct ctl_folder *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->processes[i].path);
    free(f->processes);
}

enum exit_code ctl_folder_failed(const struct ctl_folder *f, const char *verb, int error)
{
    if (error == GPUPROF_NOT_OURS)
        return usage_error("%s: '%s/" CONTROL_NAME "' is not a control file; remove it", verb,
                           f->path);
    message("%s: '%s': %s%s", verb, f->path,
            error == GPUPROF_IO ? strerror(errno) : "too many files",
            error == GPUPROF_IO ? reading_advice(errno) : "");
    return EXIT_ENVIRONMENT;
}

bool ctl_process_read(struct ctl_process *p)
{
    char path[STREAM_PATH_BYTES_MAX + 64], data[CONTROL_BYTES_MAX];
    struct control_status status;
    snprintf(path, sizeof path, "%s" CONTROL_STATUS_SUFFIX, p->path);
    ssize_t got = file_head(path, data, sizeof data);
    if (got <= 0 || !control_status_parse(&status, data, (size_t)got) ||
        memcmp(status.process_id, p->header.process_id, sizeof status.process_id) != 0)
        return false;
    p->status = status;
    if (p->rank == RANK_NONE)
        p->rank = status.figures[FIGURE_RANK];
    return true;
}

static int ctl_folder_write_file(const char *path, const struct control_text *text)
{
    struct new_file file;
    char data[CONTROL_BYTES_MAX];
    int error = new_file_open(&file, path, 0600);
    if (error < 0)
        return error;
    error = file_write_at(file.fd, 0, data, control_text_write(text, data));
    if (error == 0)
        return new_file_place(&file, true);
    new_file_drop(&file);
    return error;
}

int ctl_folder_report(const struct ctl_folder *f, const struct control_command *commands,
                      size_t count)
{
    struct control_text text = {0};
    char *path = text_printf("%s/" CONTROL_NAME, f->path), data[CONTROL_BYTES_MAX];
    bool is_new = false;
    ssize_t got = file_head(path, data, sizeof data);
    bool is_missing = got == GPUPROF_IO && errno == ENOENT;
    int error = got >= 0 || is_missing ? 0 : (int)got;
    if (got >= 0 && !control_text_parse(&text, data, (size_t)got))
        error = GPUPROF_NOT_OURS;
    for (size_t i = 0; i < count && error == 0; i++)
        if (!control_text_has(&text, commands[i].id)) {
            control_text_add(&text, &commands[i]);
            is_new = true;
        }
    if (is_new)
        error = ctl_folder_write_file(path, &text);
    free(path);
    return error;
}

int ctl_folder_watch(struct ctl_folder *f)
{
    struct control_command watch = {.is_for_all = true, .what = CONTROL_WATCH};
    double now = monotonic_seconds();
    if (f->watched != 0 && now - f->watched < CONTROL_WATCH_SECONDS / 2.0)
        return 0;
    if (getrandom(&watch.id, sizeof watch.id, 0) != sizeof watch.id)
        return GPUPROF_IO;
    int error = ctl_folder_report(f, &watch, 1);
    f->watched = error == 0 ? now : f->watched;
    return error;
}

bool ctl_process_is_named(const struct ctl_process *p, const struct ctl_options *o)
{
    return (!o->pid || p->header.pid == o->pid) && (o->rank == RANK_NONE || p->rank == o->rank);
}

const struct option ctl_options[] = {
    {0, "pid", "N", OPTION_NUMBER(struct ctl_options, pid, INT32_MAX, "is not a number"),
     "Select the process with this pid, as seen inside its container"},
    {0, "rank", "N", OPTION_NUMBER(struct ctl_options, rank, INT32_MAX, "is not a number"),
     "Select the processes of this rank"},
    {0, "timeout", "SECONDS", OPTION_OWN(option_seconds, struct ctl_options, timeout),
     "Wait this long for answers; default: 10"},
    {0},
};
