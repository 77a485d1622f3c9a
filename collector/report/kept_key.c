/* SPDX-License-Identifier: Apache-2.0 */
#include "report/kept_key.h"

#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"

static bool add_file(struct sha256 *hash, const char *path, struct stat *status)
{
    struct stat s;
    if (stat(path, &s) < 0)
        return false;
    *status = s;
    const uint64_t facts[] = {s.st_dev, s.st_ino, (uint64_t)s.st_size, (uint64_t)s.st_mtim.tv_sec,
                              (uint64_t)s.st_mtim.tv_nsec};
    sha256_add(hash, facts, sizeof facts);
    return true;
}

/* Adds a process's file and what loading found, part of which may be in a live file elsewhere.
 * Returns false if the file grew or was put together here: it differs from what is on disk. */
static bool add_process(struct sha256 *hash, const struct process *p)
{
    struct stat status;
    const uint64_t found[] = {p->block_count, p->record_count, p->end_reason, p->live.count};
    sha256_add(hash, found, sizeof found);
    sha256_add(hash, &p->losses, sizeof p->losses);
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
    struct sha256 hash;
    char text[SHA256_BASE64_BYTES];
    *k = (struct kept_key){0};
    if (options->no_index || options->path_count != 1 || rec->unread_files || rec->left_out ||
        stat(options->paths[0], &status) < 0 || !S_ISDIR(status.st_mode))
        return;
    sha256_init(&hash);
    bool is_there = add_file(&hash, "/proc/self/exe", &status);
    sha256_add(&hash, &options->clock, sizeof options->clock);
    for (uint32_t i = 0; is_there && i < rec->count; i++)
        is_there = add_process(&hash, rec->processes[i]);
    _Static_assert(KEPT_KEY_BYTES < sizeof text, "the key is most of the hash");
    memcpy(k->bytes, sha256_base64(&hash, text), KEPT_KEY_BYTES);
    k->is_made = is_there && kept_is_worth_it(rec);
}
