/* SPDX-License-Identifier: Apache-2.0 */
#include "report/kept_report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyse/findings.h"
#include "base/sha256.h"
#include "bytes.h"
#include "error.h"
#include "store/column_file.h"

#define NAME            ".gpuprof-report"
#define FILES_BYTES_MAX (64u << 20) /* of the names of files in which others were looked up */
#define PART_HEAD_BYTES 8           /* in front of a part: its length */

enum section {
    SECTION_FILES, /* their names, each with its zero */
    SECTION_HASH,  /* of what they were */
    SECTION_PARTS,
    SECTION_MEMORY
};

/* Each as it is now, or as missing. Returns `text`. */
static const char *hash_of_files(const char *names, size_t length, char *text)
{
    struct sha256 hash;
    sha256_init(&hash);
    for (size_t at = 0; at < length; at += strlen(names + at) + 1) {
        struct stat s;
        bool is_there = stat(names + at, &s) == 0;
        const uint64_t facts[] = {s.st_dev, s.st_ino, (uint64_t)s.st_size,
                                  (uint64_t)s.st_mtim.tv_sec, (uint64_t)s.st_mtim.tv_nsec};
        sha256_add(&hash, &is_there, sizeof is_there);
        sha256_add(&hash, facts, is_there ? sizeof facts : 0);
    }
    return sha256_base64(&hash, text);
}

static const char *path_in(const char *folder, char *path)
{
    return snprintf(path, PATH_MAX, "%s/" NAME, folder) < PATH_MAX ? path : "";
}

/* ---- findings about memory ------------------------------------------------------------------- */

struct kept_finding {
    struct finding finding;
    struct finding_row *rows; /* a view, or owned */
    uint32_t kind;
};

static const struct part_field row_fields[] = {PART(struct finding_row, name, .is_needed = true),
                                               PART(struct finding_row, count),
                                               PART(struct finding_row, at_ns),
                                               PART(struct finding_row, bytes),
                                               {0}};

static const struct part_field finding_fields[] = {
    PART(struct kept_finding, kind, .below = FINDING_KINDS),
    PART(struct kept_finding, finding.bytes),
    PART(struct kept_finding, finding.of_bytes),
    PART(struct kept_finding, finding.process),
    PART(struct kept_finding, finding.device),
    PART(struct kept_finding, finding.devices),
    PART(struct kept_finding, finding.where),
    PART_LIST(struct kept_finding, rows, finding.row_count, row_fields, .below = FINDING_ROWS + 1),
    {0}};

static void put_findings(struct part *p, const struct findings *f)
{
    p->is_written = true;
    for (uint32_t i = 0; i < f->count; i++) {
        struct kept_finding row = {.finding = f->list[i]};
        row.rows = row.finding.rows;
        row.kind = (uint32_t)(row.finding.kind - finding_kinds);
        if (row.finding.bytes) /* those of time cost none */
            part_put_row(p, finding_fields, &row);
    }
    part_put_end(p);
}

int kept_report_memory(struct kept_report *k, struct combination *c)
{
    struct part *p = &k->memory;
    struct findings *f = c->report.findings;
    struct kept_finding row = {0};
    p->processes = c->rec.processes;
    p->process_count = c->rec.count;
    for (; part_get_row(p, finding_fields, &row); row = (struct kept_finding){0}) {
        struct finding *to = &f->list[f->count];
        p->has_failed |= f->count == FINDING_KINDS;
        if (p->has_failed)
            break;
        *to = row.finding;
        to->kind = &finding_kinds[row.kind];
        memcpy(to->rows, row.rows, to->row_count * sizeof *to->rows);
        free(row.rows);
        f->count++;
    }
    for (uint32_t i = 0; row.rows && i < row.finding.row_count; i++)
        free(row.rows[i].name);
    free(row.rows);
    free(row.finding.where);
    findings_sort(f);
    c->report.missing &= ~(unsigned)PART_MEMORY;
    return p->is_short                           ? GPUPROF_NO_MEMORY
           : p->has_failed || p->at != p->length ? GPUPROF_DAMAGED
                                                 : 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int put_parts(struct column_writer *w, const struct combination *c)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < c->part_count; i++) {
        uint8_t head[PART_HEAD_BYTES];
        store_u64(head, c->parts[i].length);
        error = column_writer_section(w, SECTION_PARTS, head, sizeof head);
        if (error == 0)
            error = column_writer_section(w, SECTION_PARTS, c->parts[i].data, c->parts[i].length);
    }
    return error;
}

void kept_report_write(const char *folder, const struct column_key *key,
                       const struct combination *c, bool has_memory)
{
    char path[PATH_MAX], hash[SHA256_BASE64_BYTES];
    const struct recording *rec = &c->rec;
    struct part memory = {0};
    int error;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->part_count; i++)
        bytes += PART_HEAD_BYTES + c->parts[i].length;
    struct column_writer *w =
        bytes <= PART_BYTES_MAX ? column_writer_create(path_in(folder, path), key, &error) : NULL;
    if (!w)
        return;
    hash_of_files(rec->looked_at, rec->looked_at_bytes, hash);
    if (has_memory)
        put_findings(&memory, c->report.findings);
    if (memory.has_failed ||
        column_writer_section(w, SECTION_FILES, rec->looked_at, rec->looked_at_bytes) < 0 ||
        column_writer_section(w, SECTION_HASH, hash, sizeof hash) < 0 || put_parts(w, c) < 0 ||
        column_writer_section(w, SECTION_MEMORY, memory.data, memory.length) < 0)
        column_writer_drop(w);
    else
        column_writer_end(w);
    part_release(&memory);
}

/* Are the files in which names were looked up what they were? */
static bool files_are_same(struct column_reader *r)
{
    char hash[SHA256_BASE64_BYTES];
    uint8_t *names = NULL, *known = NULL;
    size_t length, hash_length;
    bool are_same =
        column_reader_section(r, SECTION_FILES, FILES_BYTES_MAX, &names, &length) == 0 &&
        column_reader_section(r, SECTION_HASH, sizeof hash, &known, &hash_length) == 0 &&
        hash_length == sizeof hash && (!length || !names[length - 1]) &&
        memcmp(hash_of_files((char *)names, length, hash), known, sizeof hash) == 0;
    free(names);
    free(known);
    return are_same;
}

/* The length of the part at `at`; 0: there is none. */
static uint64_t part_length(const struct kept_report *k, size_t at)
{
    uint64_t length = k->length - at > PART_HEAD_BYTES ? load_u64(k->parts + at) : 0;
    return length <= k->length - at - PART_HEAD_BYTES ? length : 0;
}

static bool count_parts(struct kept_report *k)
{
    size_t at = 0;
    for (uint64_t length; at < k->length && (length = part_length(k, at)); k->count++)
        at += PART_HEAD_BYTES + length;
    return k->count && at == k->length;
}

bool kept_report_read(struct kept_report *k, const char *folder, const struct column_key *key)
{
    char path[PATH_MAX];
    struct column_reader *r;
    *k = (struct kept_report){0};
    if (column_reader_open(&r, path_in(folder, path), key) != COLUMN_FOUND)
        return false;
    bool is_good =
        files_are_same(r) &&
        column_reader_section(r, SECTION_PARTS, PART_BYTES_MAX, &k->parts, &k->length) == 0 &&
        column_reader_section(r, SECTION_MEMORY, PART_BYTES_MAX, &k->memory.data,
                              &k->memory.length) == 0 &&
        count_parts(k);
    column_reader_close(r);
    return is_good;
}

enum exit_code kept_report_part(void *kept, uint32_t index, struct part *part)
{
    struct kept_report *k = kept;
    uint64_t length = part_length(k, k->at);
    (void)index;
    *part = (struct part){.path = NAME, .data = malloc(length)};
    if (!part->data)
        return EXIT_ENVIRONMENT;
    memcpy(part->data, k->parts + k->at + PART_HEAD_BYTES, length);
    k->at += PART_HEAD_BYTES + length;
    return part_check(part, length) ? EXIT_USAGE : EXIT_OK;
}

void kept_report_release(struct kept_report *k)
{
    free(k->parts);
    part_release(&k->memory);
}
