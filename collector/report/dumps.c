/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/api_error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "flight.h"

char *dump_line(const struct process_dump *d)
{
    char time[UNIT_TEXT_BYTES], *line, *text = json_line(d->text ? d->text : "");
    const char *why = dump_reason_text(d->reason), *error;
    why = why ? why : "for a reason of a later version";
    switch (d->reason) {
    case DUMP_STEP:
        line = text_printf("%s: step %" PRIu64 " took %s, %.1f x the median", why, d->value,
                           time_text(time, d->ns),
                           d->median_ns ? (double)d->ns / (double)d->median_ns : 0.0);
        break;
    case DUMP_IDLE:
    case DUMP_COLLECTIVE: line = text_printf("%s for %s", why, time_text(time, d->ns)); break;
    case DUMP_ERROR:
        error = api_error_name(api_domain_of(text), (int)(int64_t)d->value);
        line = text_printf("%s: %s returned %" PRId64 " (%s)", why, text, (int64_t)d->value,
                           error ? error : "an error");
        break;
    default: line = text_printf("%s%s%s", why, *text ? ": " : "", text);
    }
    free(text);
    return line;
}

static uint64_t count_all(const struct recording *rec)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        count += rec->processes[i]->dump_count;
    return count;
}

static uint64_t at_ns(struct process *p, const struct process_dump *d)
{
    return clock_map_ns(&p->clock, d->at_ns);
}

const struct process_dump *dumps_last(const struct recording *rec, uint64_t *count)
{
    const struct process_dump *last = NULL;
    uint64_t last_ns = 0;
    *count = count_all(rec);
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        for (uint32_t k = 0; k < p->dump_count; k++) {
            if (!last || at_ns(p, &p->dumps[k]) >= last_ns) {
                last = &p->dumps[k];
                last_ns = at_ns(p, last);
            }
        }
    }
    return last;
}

enum { NAME, NUMBER, REASON, AT, BEGIN, LENGTH, LOST, HOST, PID };

static const struct column columns[] = {
    [NAME] = {"why", "reason", .doc = "why the dump was written"},
    [NUMBER] = {"dump", "dump", COLUMN_NUMBER, 5, .ascending = true, .doc = "its number"},
    [REASON] = {"reason", .type = COLUMN_NUMBER, .doc = "the same as a number (event-stream.md)"},
    [AT] = {"at_ns", "after", COLUMN_NS, 12, .ascending = true,
            .doc = "when, since the first event"},
    [BEGIN] = {"begin_ns", .type = COLUMN_NS, .doc = "nothing is missing after this time"},
    [LENGTH] = {"length_ns", "holds", COLUMN_NS, 12, .doc = "the time that it covers"},
    [LOST] = {"state_lost", .type = COLUMN_COUNT, .doc = "older records that did not fit"},
    [HOST] = {"host", .doc = "the host"},
    [PID] = {"pid", .type = COLUMN_NUMBER, .ascending = true, .doc = "the process"},
};

static void dumps_table_begins(struct table *t)
{
    uint64_t count = count_all(((const struct report *)t->source)->rec);
    t->count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    t->is_there = t->count || t->format == FORMAT_JSON;
}

static void dumps_fill_row(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct report *r = t->source;
    uint32_t i = 0;
    for (; index >= r->rec->processes[i]->dump_count; i++)
        index -= r->rec->processes[i]->dump_count;
    struct process *p = r->rec->processes[i];
    const struct process_dump *d = &p->dumps[index];
    uint64_t at = at_ns(p, d), begin = clock_map_ns(&p->clock, d->begin_ns);
    char *why = dump_line(d), *text = why;
    if (r->rec->count > 1 && t->format == FORMAT_TEXT) {
        text = text_printf("process %u: %s", p->header.pid, why);
        free(why);
    }
    cells[NAME] = cell_owned(text);
    cells[NUMBER] = cell_number(d->number);
    cells[REASON] = cell_number(d->reason);
    cells[AT] = cell_number(at > r->begin_ns ? at - r->begin_ns : 0);
    cells[BEGIN] = cell_number(begin > r->begin_ns ? begin - r->begin_ns : 0);
    cells[LENGTH] = cell_number(at > begin ? at - begin : 0);
    cells[LOST] = cell_number(d->lost);
    cells[HOST] = cell_text(p->header.host);
    cells[PID] = cell_number(p->header.pid);
}

const struct table_info dumps_table = {
    .name = "dumps",
    .key = "dumps",
    .title = "dumps of the flight recorder (--flight)",
    TABLE_COLUMNS(columns),
    .place = PLACE_URGENT,
    .begin = dumps_table_begins,
    .row = dumps_fill_row,
};
