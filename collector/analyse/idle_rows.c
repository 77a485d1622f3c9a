/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle_rows.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

const char *const idle_cause_words[IDLE_CAUSES] = {
#define CAUSE(NAME, word, key) word,
#include "analyse/idle_causes.def"
};

const char idle_on_device[] = "on the device";
const char idle_behind_all[] = "after the last work";
static const char other_places[] = "other places";

void idle_rows_release(struct idle_rows *r)
{
    free(r->list);
    number_set_release(&r->numbers);
    *r = (struct idle_rows){0};
}

static const struct number_kind kind = NUMBER_KEY(struct idle_row, did);

/* The row's number, created if new; 0 if out of memory. */
static uint32_t idle_rows_number_of(struct idle_rows *r, const struct idle_row *what)
{
    struct idle_row row = {.place = what->place,
                           .process = what->process,
                           .device = what->device,
                           .thread = what->thread,
                           .cause = what->cause,
                           .did = what->did};
    uint32_t most = what->did ? IDLE_ROWS_MAX / 2 : IDLE_ROWS_MAX;
    int64_t number = NUMBER_ADD(&r->numbers, &kind, r->list, r->count, most, &row);
    if (number == 0) {
        row.place = idle_text(other_places);
        row.thread = IDLE_NONE;
        number = NUMBER_ADD(&r->numbers, &kind, r->list, r->count, UINT32_MAX, &row);
    }
    return number < 0 ? 0 : (uint32_t)number;
}

int idle_rows_add(struct idle_rows *r, const struct idle_row *what, uint64_t at_ns, uint64_t ns)
{
    /* Usually it is the previous row: a loop has few places. */
    if (!r->last || memcmp(&r->list[r->last - 1], what, kind.key_bytes) != 0)
        r->last = idle_rows_number_of(r, what);
    if (!r->last)
        return GPUPROF_NO_MEMORY;
    struct idle_row *row = &r->list[r->last - 1];
    if (row->gap != r->gap || !row->count) {
        row->gap = r->gap;
        row->gap_ns = 0;
        row->gap_at_ns = at_ns;
        row->count++;
    }
    row->ns += ns;
    row->gap_ns += ns;
    if (row->count == 1) {
        row->first_gap = row->gap;
        row->first_ns = row->gap_ns;
    }
    if (!row->did &&
        (row->cause == IDLE_HOST || row->cause == IDLE_PREEMPTED || row->cause == IDLE_NOTHING))
        r->host_ns += ns;
    if (r->rest && row->gap_ns > r->rest->ns && !row->did)
        *r->rest = (struct idle_rest){row->gap_ns, r->last - 1};
    if (row->gap_ns > row->longest_ns) {
        row->longest_ns = row->gap_ns;
        row->longest_at_ns = row->gap_at_ns;
    }
    return 0;
}

int idle_rows_add_sum(struct idle_rows *r, const struct idle_row *sum)
{
    uint32_t number = idle_rows_number_of(r, sum);
    if (!number)
        return GPUPROF_NO_MEMORY;
    struct idle_row *row = &r->list[number - 1];
    row->ns += sum->ns;
    row->count += sum->count;
    if (sum->longest_ns > row->longest_ns) {
        row->longest_ns = sum->longest_ns;
        row->longest_at_ns = sum->longest_at_ns;
    }
    return 0;
}

int idle_rows_join(struct idle_rows *r, const struct idle_row *later)
{
    int error = idle_rows_add_sum(r, later);
    struct idle_row *row = error == 0 ? &r->list[idle_rows_number_of(r, later) - 1] : NULL;
    if (!row)
        return error;
    bool goes_on = row->gap && row->gap == later->first_gap;
    uint64_t begun_ns = goes_on ? row->gap_ns : 0;
    row->count -= goes_on;
    if (begun_ns + later->first_ns > row->longest_ns) {
        row->longest_ns = begun_ns + later->first_ns;
        row->longest_at_ns = row->gap_at_ns;
    }
    if (!goes_on || later->count > 1) {
        row->gap = later->gap;
        row->gap_at_ns = later->gap_at_ns;
        begun_ns = 0;
    }
    row->gap_ns = begun_ns + later->gap_ns;
    return 0;
}
