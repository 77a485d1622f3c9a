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
#include "base/memory.h"
#include "base/workers.h"
#include "error.h"
#include "memory/memory_report.h"
#include "output/new_file.h"
#include "resolve/selection.h"

#define NAME            ".gpuprof-report"
#define WORKERS_UNASKED 16u
#ifndef KEPT_RECORDS /* tests set a smaller number */
#define KEPT_RECORDS 1000000u
#endif

/* ---- what is stored -------------------------------------------------------------------------- */

struct kept_head {
    uint64_t key;
    const uint8_t *files; /* names of the files looked at, each with its zero */
    uint32_t files_bytes;
    uint64_t hash;  /* of the state of these files */
    uint32_t count; /* number of parts */
};

/* ---- its key --------------------------------------------------------------------------------- */

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

/* Returns whether the recording has ended and has at least KEPT_RECORDS records; others are read
 * again as fast. */
static bool kept_is_worth_it(const struct recording *rec)
{
    uint64_t records = 0;
    bool has_ended = true;
    for (uint32_t i = 0; i < rec->count; i++) {
        records += rec->processes[i]->record_count;
        has_ended &= !process_runs(rec->processes[i]);
    }
    return has_ended && records >= KEPT_RECORDS;
}

/* Identifies the sources: returns a hash of this program, of each recording's inode, size and time,
 * and of what loading found. 0: nothing is stored. */
static uint64_t kept_key(const struct recording *rec, const struct options *options)
{
    struct stat status;
    uint64_t hash = 0;
    if (options->no_index || options->symbols || options->path_count != 1 || rec->unread_files ||
        rec->left_out || stat(options->paths[0], &status) < 0 || !S_ISDIR(status.st_mode))
        return 0;
    bool is_there = add_file(&hash, "/proc/self/exe", &status);
    hash = bytes_hash(hash, &options->clock, sizeof options->clock);
    for (uint32_t i = 0; is_there && i < rec->count; i++)
        is_there = add_process(&hash, rec->processes[i]);
    return is_there && kept_is_worth_it(rec) ? hash : 0;
}

/* ---- its file -------------------------------------------------------------------------------- */

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
        PART_SPAN(struct kept_finding, finding.rows[row].count, finding.rows[row].bytes)

static const struct part_field finding_fields[] = {
    PART(struct kept_finding, kind, .below = FINDING_KINDS),
    PART_SPAN(struct kept_finding, finding.bytes, finding.of_bytes),
    PART(struct kept_finding, finding.process),
    PART_SPAN(struct kept_finding, finding.device, finding.devices),
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

/* Stores a combination of parts that were read from files, with its findings about memory. A
 * failure to write is ignored. */
static void report_cache_write(const char *folder, uint64_t key, const struct combination *c)
{
    const struct recording *rec = &c->rec;
    struct kept_head h = {.key = key,
                          .files = (const uint8_t *)rec->looked_at,
                          .files_bytes = (uint32_t)rec->looked_at_bytes,
                          .hash = hash_of_files(rec->looked_at, rec->looked_at_bytes),
                          .count = c->part_count};
    char path[PATH_MAX];
    struct new_file file;
    struct part head;
    if (new_file_open(&file, path_in(folder, path), 0600) < 0)
        return;
    part_begin(&head, file.fd, 0);
    head.count = 1;
    carry_head(&head, &h);
    put_findings(&head, c->report.findings);
    int error = part_end(&head);
    uint64_t end = head.file_bytes;
    part_release(&head);
    for (uint32_t i = 0; error == 0 && i < c->part_count; i++) {
        const struct part *p = &c->parts[i];
        error = file_copy_at(p->fd, p->file_at, file.fd, end, p->file_bytes);
        end += p->file_bytes;
    }
    if (error < 0)
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

/* Opens what was stored with that key. Returns false if nothing usable is there: it was
 * made from other recordings, or files used to resolve names have changed. Call
 * report_cache_release in both cases. */
static bool report_cache_read(struct report_cache *k, const char *folder, uint64_t key)
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
    const char *files = (const char *)h.files;
    return !k->head.has_failed && h.count && h.count <= WORKERS_MAX && h.key == key &&
           (!h.files_bytes || !files[h.files_bytes - 1]) &&
           h.hash == hash_of_files(files, h.files_bytes);
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

/* ---- workers --------------------------------------------------------------------------------- */

struct shared_report {
    struct recording *rec;
    struct report_request request; /* a worker that finds what it refuses stops at once */
    uint32_t count;
    int files[WORKERS_MAX];
    struct workers workers;
};

/* Adds the findings about memory, which need all recordings. Returns false on failure. */
static bool look_at_memory(struct report *r, struct recording *rec, const char *symbols)
{
    const struct memory_request request = {.by = MEMORY_BY_BEST, .at_seconds = -1};
    int error = 0;
    r->memory = memory_report_create(rec, &request, symbols, &error);
    if (r->memory)
        findings_add_memory(r->findings, r->memory);
    r->missing &= ~(unsigned)PART_MEMORY;
    return error == 0;
}

/* Makes one part, and prints nothing: the report made without workers prints the errors. */
static enum exit_code shared_report_work(void *context, uint32_t index, int to)
{
    struct shared_report *s = context;
    struct report report;
    struct share share = {.index = index, .count = s->count};
    struct part part;
    recording_find_share(s->rec, &share);
    recording_share(s->rec, &share);
    enum exit_code code = part_make(&part, s->files[index], &report, s->rec, &s->request);
    return code == EXIT_OK && workers_write(to, "", 1) ? EXIT_OK : EXIT_ENVIRONMENT;
}

static bool make_parts(struct shared_report *s)
{
    char done;
    for (uint32_t i = 0; i < s->count; i++)
        if ((s->files[i] = file_unnamed()) < 0)
            return false;
    if (!workers_start(&s->workers, s->count, shared_report_work, s))
        return false;
    bool are_there = true;
    for (uint32_t i = 0; are_there && i < s->count; i++)
        are_there = workers_read(&s->workers, i, &done, 1);
    return are_there;
}

static enum exit_code read_made(void *context, uint32_t index, struct part *part)
{
    const struct shared_report *s = context;
    int error;
    const char *wrong = part_open(part, s->files[index], 0, PART_BYTES_MAX, &error);
    part->path = "a part of a share";
    return wrong || error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

/* Combines the parts if they have everything but findings about memory, and leaves out tables of
 * the host that were not asked for. Returns false after releasing the combination. */
static bool shared_report_add_up(struct combination *c, uint32_t count, combination_part_fn *read,
                                 void *context, const struct recording *rec,
                                 const struct report_view *view)
{
    bool is_made = combination_make(c, count, read, context, true, view->groups) == EXIT_OK &&
                   !(c->report.missing & report_needs(view) & ~PART_MEMORY) && !c->has_more;
    if (is_made)
        analyses_leave(c->report.sums, report_leaves(view, rec) & REPORT_HOST);
    else
        combination_release(c);
    return is_made;
}

/* Makes the report with workers. `key`: store it; 0: do not. */
static bool make_shared(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view, uint64_t key)
{
    struct shared_report *s = memory_new(1, sizeof *s);
    *s = (struct shared_report){
        .rec = rec,
        .request = {.by = BY_NAME,
                    .is_part = true,
                    .refused = report_needs(view),
                    .leaves = key ? report_parts_missing(rec) : report_leaves(view, rec),
                    .leaves_hangs = !key && !(report_needs(view) & PART_OF_HANG),
                    .symbols = options->symbols},
        .count = rec->workers ? rec->workers : 1};
    for (uint32_t i = 0; i < s->count; i++)
        s->files[i] = -1;
    bool is_made = make_parts(s) && shared_report_add_up(c, s->count, read_made, s, rec, view);
    workers_end(&s->workers, WORKERS_UNWANTED); /* they free their memory meanwhile */
    progress_clear(rec->progress);
    if (is_made && c->report.missing & s->request.refused &&
        !look_at_memory(&c->report, rec, options->symbols)) {
        combination_release(c);
        is_made = false;
    }
    if (is_made && key)
        report_cache_write(options->paths[0], key, c);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->files[i] >= 0)
            close(s->files[i]);
    free(s);
    return is_made;
}

/* Makes the report from what an earlier one stored with that key. */
static bool read_kept(struct combination *c, struct recording *rec, const struct options *options,
                      const struct report_view *view, uint64_t key)
{
    struct report_cache k;
    bool is_made = report_cache_read(&k, options->paths[0], key) &&
                   shared_report_add_up(c, k.count, report_cache_part, &k, rec, view);
    if (is_made && c->report.missing & report_needs(view)) {
        is_made = c->report.peaks.ooms /* the overview has more than findings */
                      ? look_at_memory(&c->report, rec, options->symbols)
                      : report_cache_memory(&k, c) == 0;
        if (!is_made)
            combination_release(c);
    }
    report_cache_release(&k);
    return is_made;
}

bool shared_report_make(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view)
{
    uint64_t key = kept_key(rec, options);
    /* Can parts have everything that is shown, with the same result? */
    bool may_be = !part_verb_other(options, false) && rec->host_count <= 1 &&
                  view->format != FORMAT_HTML && !report_not_in_parts(view);
    if (may_be && key && read_kept(c, rec, options, view, key))
        return true;
    /* A large recording gets a worker per processor, because somebody waits at a terminal. A worker
     * takes some 25 MiB. */
    if (rec->progress && !options->jobs && kept_is_worth_it(rec)) {
        uint32_t most = parallel_processors(0);
        most = most < WORKERS_UNASKED ? most : WORKERS_UNASKED;
        rec->workers = most < rec->count ? most : rec->count;
    }
    /* What is stored must serve every later question. */
    key = view->tables ? 0 : key;
    return may_be && (rec->workers >= 2 || key) && make_shared(c, rec, options, view, key);
}

static bool is_same_process(const struct process *a, const struct process *b)
{
    return memcmp(a->header.process_id, b->header.process_id, sizeof a->header.process_id) == 0;
}

bool shared_report_whole(struct combination *c, struct recording *rec,
                         const struct options *options)
{
    struct report_cache k;
    uint64_t key = kept_key(rec, options);
    if (!key || !recording_may_have(rec, SELECTION_SPAN_TYPES))
        return false;
    bool is_read = report_cache_read(&k, options->paths[0], key);
    if (is_read) {
        bool fits = combination_make_head(c, k.count, report_cache_part, &k) == EXIT_OK &&
                    !c->report.crossings.is_unusable && c->rec.count == rec->count;
        for (uint32_t i = 0; fits && i < rec->count; i++)
            fits = is_same_process(c->rec.processes[i], rec->processes[i]);
        for (uint32_t i = 0; fits && i < c->part_count; i++)
            fits = !c->parts[i].has_more;
        if (!fits)
            combination_release(c);
        is_read = fits;
    }
    report_cache_release(&k);
    return is_read;
}
