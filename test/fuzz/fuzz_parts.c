/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_parts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_at.h"
#include "base/options.h"
#include "bytes.h"
#include "crc32c.h"
#include "fuzz_outputs.h"
#include "query/part_file.h"
#include "read/recording.h"
#include "report/part_report.h"
#include "resolve/symbols.h"

extern const struct verb report_verb;

#define PIECES_MAX   3
#define CHECKED_FROM 16
#define VALUES_AT    16
#define STORED_AT    32 /* bytes of the spans in the file */
#define INDEX_AT     40
#define SET_AT       48
#define HEADER_BYTES 84 /* as part_file.h has it */
#define AS_IT_IS     4  /* of `how`, and so is the next one */
#define IS_KEPT      8

struct piece {
    uint8_t *at;
    size_t length;
};

/* Part `index` of `count`, of the set that is the first one's. */
static void repair(const struct piece *p, uint32_t index, uint32_t count, const uint8_t *set)
{
    if (p->length < HEADER_BYTES)
        return;
    store_u64(p->at, PART_MAGIC);
    store_u32(p->at + 8, PART_VERSION);
    uint64_t rest = p->length - HEADER_BYTES, stored = load_u64(p->at + STORED_AT);
    stored = stored < rest ? stored : rest;
    store_u64(p->at + STORED_AT, stored);
    store_u64(p->at + VALUES_AT, rest - stored);
    store_u32(p->at + INDEX_AT, index);
    store_u32(p->at + INDEX_AT + 4, count);
    memmove(p->at + SET_AT, set, HEADER_BYTES - SET_AT);
    store_u32(p->at + 12, crc32c(0, p->at + CHECKED_FROM, p->length - CHECKED_FROM));
}

static int split(uint8_t *data, size_t size, struct piece *pieces)
{
    int count = 0;
    while (count < PIECES_MAX && size > 4) {
        size_t length = load_u32(data);
        length = length < size - 4 ? length : size - 4;
        pieces[count++] = (struct piece){data + 4, length};
        data += 4 + length;
        size -= 4 + length;
    }
    return count;
}

static void print(char **paths, int count, unsigned how)
{
    static const char *const ways[][2] = {
        {"--format=text", "--full"},
        {"--format=csv", "--table=idle,findings,ranks,arrivals,ops,library"},
        {"--format=json", "--strict"},
        {"--no-group", "--sort=count"}};
    const char *const *way = ways[how % (sizeof ways / sizeof ways[0])];
    char *argv[PIECES_MAX + 6] = {"report", "--combine", (char *)way[0], (char *)way[1]};
    memcpy(argv + 4, paths, (size_t)count * sizeof *paths);
    fuzz_run(&report_verb, 4 + count, argv);
}

/* As part_report.h has them: the last piece is what was found about memory. */
static void print_kept(const struct piece *pieces, int count)
{
    static const struct report_view view = {.is_full = true};
    const struct piece *last = &pieces[count - 1];
    struct report_cache k = {.count = (uint32_t)count - 1, .fd = file_unnamed()};
    struct combination c;
    FILE *out = fopen("/dev/null", "w");
    for (int i = 0; i < count - 1; i++) {
        file_write_at(k.fd, k.bytes, pieces[i].at, pieces[i].length);
        k.bytes += pieces[i].length;
    }
    k.head.length = last->length > HEADER_BYTES ? last->length - HEADER_BYTES : 0;
    k.head.data = malloc(k.head.length + 1);
    memcpy(k.head.data, last->at + last->length - k.head.length, k.head.length);
    if (combination_make(&c, k.count, report_cache_part, &k, true, true) == EXIT_OK &&
        report_cache_memory(&k, &c) == 0)
        report_print_text(&c.report, &view, out);
    combination_release(&c);
    report_cache_release(&k);
    fclose(out);
}

void fuzz_parts(const char *folder, uint8_t *data, size_t size, unsigned how)
{
    struct piece pieces[PIECES_MAX];
    char names[PIECES_MAX][128];
    char *paths[PIECES_MAX];
    int count = split(data, size, pieces);
    bool has_set = count && pieces[0].length >= HEADER_BYTES;
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s/part%d", folder, i);
        paths[i] = names[i];
        if (has_set && !(how & AS_IT_IS))
            repair(&pieces[i], (uint32_t)i, (uint32_t)(count - !!(how & IS_KEPT)),
                   pieces[0].at + SET_AT);
        fuzz_write(paths[i], pieces[i].at, pieces[i].length);
    }
    if (how & IS_KEPT && count > 1)
        print_kept(pieces, count);
    else if (count)
        print(paths, count, how);
}
