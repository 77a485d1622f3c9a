/* SPDX-License-Identifier: Apache-2.0 */
#include "report/part_report.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyse/findings.h"
#include "base/file_at.h"
#include "base/key_map.h"
#include "base/workers.h"
#include "error.h"
#include "output/new_file.h"

#define NAME ".gpuprof-report"

struct kept_head {
    uint64_t key;
    const uint8_t *files; /* names of the files looked at, each with its zero */
    uint32_t files_bytes;
    uint64_t hash;  /* of the state of these files */
    uint32_t count; /* number of parts */
};

/* ---- the key --------------------------------------------------------------------------------- */

/* Adds the state of a file to a hash, also that it is missing. Returns whether it is there. */
static bool add_file(uint64_t *hash, const char *path, struct stat *status)
{
    bool is_there = stat(path, status) == 0;
    const uint64_t facts[] = {status->st_dev, status->st_ino, (uint64_t)status->st_size,
                              (uint64_t)status->st_mtim.tv_sec, (uint64_t)status->st_mtim.tv_nsec};
    *hash = bytes_hash(*hash, facts, is_there ? sizeof facts : 0);
    return is_there;
}

/* Adds a process's file and what loading found, part of which may be in a live file elsewhere.
 * Returns false if the file grew or was put together here: it differs from what is on disk. */
static bool add_process(uint64_t *hash, const struct process *p)
{
    struct stat status;
    const uint64_t found[] = {p->block_count, p->record_count, p->end_reason, p->live.count};
    *hash = bytes_hash(*hash, found, sizeof found);
    *hash = bytes_hash(*hash, &p->losses, sizeof p->losses);
    return add_file(hash, p->file.path, &status) && (uint64_t)status.st_size == p->file.size;
}

bool kept_is_worth_it(const struct recording *rec)
{
    uint64_t records = 0;
    bool has_ended = true;
    for (uint32_t i = 0; i < rec->count; i++) {
        records += rec->processes[i]->record_count;
        has_ended &= !process_runs(rec->processes[i]);
    }
    return has_ended && records >= KEPT_RECORDS;
}

void kept_key_make(struct kept_key *k, const struct recording *rec, const struct options *options)
{
    struct stat status;
    uint64_t hash = 0;
    *k = (struct kept_key){0};
    if (options->no_index || options->path_count != 1 || rec->unread_files || rec->left_out ||
        stat(options->paths[0], &status) < 0 || !S_ISDIR(status.st_mode))
        return;
    bool is_there = add_file(&hash, "/proc/self/exe", &status);
    hash = bytes_hash(hash, &options->clock, sizeof options->clock);
    for (uint32_t i = 0; is_there && i < rec->count; i++)
        is_there = add_process(&hash, rec->processes[i]);
    k->number = hash;
    k->is_made = is_there && kept_is_worth_it(rec);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Hashes the current state of each file. */
static uint64_t hash_of_files(const char *names, size_t length)
{
    struct stat status;
    uint64_t hash = 0;
    for (size_t at = 0; at < length; at += strlen(names + at) + 1)
        add_file(&hash, names + at, &status);
    return hash;
}

static const char *path_in(const char *folder, char *path)
{
    return snprintf(path, PATH_MAX, "%s/" NAME, folder) < PATH_MAX ? path : "";
}

/* ---- findings about memory ------------------------------------------------------------------- */

struct kept_finding {
    struct finding finding;
    uint32_t kind;
};

#define ROW_FIELDS(row)                                                                            \
    PART(struct kept_finding, finding.rows[row].name),                                             \
        PART(struct kept_finding, finding.rows[row].count),                                        \
        PART(struct kept_finding, finding.rows[row].at_ns),                                        \
        PART(struct kept_finding, finding.rows[row].bytes)

static const struct part_field finding_fields[] = {
    PART(struct kept_finding, kind, .below = FINDING_KINDS),
    PART(struct kept_finding, finding.bytes),
    PART(struct kept_finding, finding.of_bytes),
    PART(struct kept_finding, finding.process),
    PART(struct kept_finding, finding.device),
    PART(struct kept_finding, finding.devices),
    PART(struct kept_finding, finding.where),
    PART(struct kept_finding, finding.row_count, .below = FINDING_ROWS + 1),
    ROW_FIELDS(0),
    ROW_FIELDS(1),
    ROW_FIELDS(2),
    {0}};
_Static_assert(FINDING_ROWS == 3, "each row has its fields");

static void put_findings(struct part *p, const struct findings *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct finding *finding = &f->list[i];
        struct kept_finding row = {*finding, (uint32_t)(finding->kind - finding_kinds)};
        if (finding->bytes) /* findings about time have no bytes */
            part_put_row(p, finding_fields, &row);
    }
    part_put_end(p);
}

int report_cache_memory(struct report_cache *k, struct combination *c)
{
    struct part *p = &k->head;
    struct findings *f = c->report.findings;
    p->processes = c->rec.processes;
    p->process_count = c->rec.count;
    for (bool has_row = true; has_row && f->count < FINDING_KINDS;) {
        struct kept_finding row = {0};
        has_row = part_get_row(p, finding_fields, &row);
        row.finding.kind = &finding_kinds[row.kind];
        for (uint32_t i = 0; i < row.finding.row_count; i++)
            p->has_failed |= !row.finding.rows[i].name;
        f->list[f->count] = row.finding; /* freed with the others, also after a failure */
        f->count += has_row || p->has_failed;
    }
    findings_sort(f);
    c->report.missing &= ~(unsigned)PART_MEMORY;
    return p->has_failed || p->at != p->length ? GPUPROF_DAMAGED : 0;
}

/* Reads or writes what precedes the findings. */
static void carry_head(struct part *p, struct kept_head *h)
{
    part_number(p, &h->key);
    part_bytes(p, &h->files, &h->files_bytes);
    part_number(p, &h->hash);
    part_u32(p, &h->count);
}

static int report_cache_write_all(int fd, const struct kept_key *key, const struct combination *c)
{
    const struct recording *rec = &c->rec;
    struct kept_head h = {.key = key->number,
                          .files = (const uint8_t *)rec->looked_at,
                          .files_bytes = (uint32_t)rec->looked_at_bytes,
                          .hash = hash_of_files(rec->looked_at, rec->looked_at_bytes),
                          .count = c->part_count};
    struct part head;
    part_begin(&head, fd, 0);
    head.count = 1;
    carry_head(&head, &h);
    put_findings(&head, c->report.findings);
    int error = part_end(&head);
    uint64_t end = head.file_bytes;
    part_release(&head);
    for (uint32_t i = 0; error == 0 && i < c->part_count; i++) {
        const struct part *p = &c->parts[i];
        error = file_copy_at(p->fd, p->file_at, fd, end, p->file_bytes);
        end += p->file_bytes;
    }
    return error;
}

void report_cache_write(const char *folder, const struct kept_key *key, const struct combination *c)
{
    char path[PATH_MAX];
    struct new_file file;
    if (new_file_open(&file, path_in(folder, path), 0600) < 0)
        return;
    if (report_cache_write_all(file.fd, key, c) < 0)
        new_file_drop(&file);
    else
        new_file_place(&file, false);
}

/* Opens the file. Returns false for a file that another user could have written. */
static bool open_own(struct report_cache *k, const char *path)
{
    struct stat s;
    k->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (k->fd < 0 || fstat(k->fd, &s) < 0)
        return false;
    k->bytes = (uint64_t)s.st_size;
    return S_ISREG(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & (S_IWGRP | S_IWOTH));
}

/* Returns whether it was made from these recordings, and the files used to resolve names are
 * unchanged. */
static bool report_cache_is_same(const struct kept_head *h, const struct kept_key *key)
{
    const char *files = (const char *)h->files;
    return h->key == key->number && (!h->files_bytes || !files[h->files_bytes - 1]) &&
           h->hash == hash_of_files(files, h->files_bytes);
}

bool report_cache_read(struct report_cache *k, const char *folder, const struct kept_key *key)
{
    char path[PATH_MAX];
    struct kept_head h = {0};
    int error = 0;
    *k = (struct report_cache){0};
    if (!open_own(k, path_in(folder, path)) || part_open(&k->head, k->fd, 0, k->bytes, &error) ||
        error < 0)
        return false;
    carry_head(&k->head, &h);
    k->at = k->head.file_bytes;
    k->count = h.count;
    return !k->head.has_failed && h.count && h.count <= WORKERS_MAX &&
           report_cache_is_same(&h, key);
}

enum exit_code report_cache_part(void *kept, uint32_t index, struct part *part)
{
    struct report_cache *k = kept;
    int error = 0;
    const char *wrong = part_open(part, k->fd, k->at, k->bytes - k->at, &error);
    part->path = NAME;
    k->at += part->file_bytes;
    bool is_last = index + 1 == k->count;
    return error < 0 || wrong || is_last != (k->at == k->bytes) ? EXIT_ENVIRONMENT : EXIT_OK;
}

void report_cache_release(struct report_cache *k)
{
    if (k->fd >= 0)
        close(k->fd);
    part_release(&k->head);
}
