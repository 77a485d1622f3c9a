/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of dumps and of the hosts' clocks. */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/api_error.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/text.h"
#include "flight.h"

/* ---- dumps ----------------------------------------------------------------------------------- */

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
        for (uint32_t k = 0; k < p->dump_count; k++)
            if (!last || at_ns(p, &p->dumps[k]) >= last_ns) {
                last = &p->dumps[k];
                last_ns = at_ns(p, last);
            }
    }
    return last;
}

enum { WHY, AT = 3, BEGIN, LENGTH, HOST = 7, PID };

static const struct column dump_columns[] = {
    [WHY] = {"why", "reason", .doc = "why the dump was written"},
    {"dump", "dump", COLUMN_NUMBER, 5, .ascending = true, MEMBER(struct process_dump, number),
     .doc = "its number"},
    {"reason", .type = COLUMN_NUMBER, MEMBER(struct process_dump, reason),
     .doc = "the same as a number (event-stream.md)"},
    [AT] = {"at_ns", "after", COLUMN_NS, 12, .ascending = true,
            .doc = "when, since the first event"},
    [BEGIN] = {"begin_ns", .type = COLUMN_NS, .doc = "nothing is missing after this time"},
    [LENGTH] = {"length_ns", "holds", COLUMN_NS, 12, .doc = "the time that it covers"},
    {"state_lost", .type = COLUMN_COUNT, MEMBER(struct process_dump, lost),
     .doc = "older records that did not fit"},
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
    members_show(t, d, cells);
    cells[WHY] = cell_owned(text);
    cells[AT] = cell_number(at > r->total.begin_ns ? at - r->total.begin_ns : 0);
    cells[BEGIN] = cell_number(begin > r->total.begin_ns ? begin - r->total.begin_ns : 0);
    cells[LENGTH] = cell_number(at > begin ? at - begin : 0);
    cells[HOST] = cell_text(p->header.host);
    cells[PID] = cell_number(p->header.pid);
}

const struct table_info dumps_table = {
    .name = "dumps",
    .key = "dumps",
    .title = "dumps of the flight recorder (--flight)",
    TABLE_COLUMNS(dump_columns),
    .place = PLACE_URGENT,
    .begin = dumps_table_begins,
    .row = dumps_fill_row,
};

/* ---- clocks ---------------------------------------------------------------------------------- */

enum { NAME, PROCESSES, OFFSET, DRIFT, UNCERTAINTY, REFERENCE, HOW, COLLECTIVES, UNSURE, BY };

static const struct column clock_columns[] = {
    [NAME] = {"host", "host", .doc = "the host"},
    [PROCESSES] = {"processes", "processes", COLUMN_COUNT, 9,
                   .doc = "the number of its processes in the recording"},
    [OFFSET] =
        {"offset_us", "clock ahead", COLUMN_AMOUNT, 14,
         .doc =
             "by how much its clock was ahead of the reference's, in the middle, in microseconds"},
    [DRIFT] = {"drift_ppm", "drift", COLUMN_AMOUNT, 12,
               .doc = "the rate at which the clock ran faster, in parts per million"},
    [UNCERTAINTY] =
        {"uncertainty_us", "known to", COLUMN_AMOUNT, 12, .ascending = true,
         .doc =
             "how far times of the two may be apart where that is least certain, in microseconds"},
    [REFERENCE] = {"reference", NULL, .doc = "the host of the clock that it is compared with"},
    [HOW] = {"how", NULL,
             .doc = "the source of the offset: reference, collectives, or wall (its own clock)"},
    [COLLECTIVES] = {"collectives", NULL, COLUMN_COUNT,
                     .doc = "collectives that the offset comes from"},
    [UNSURE] = {"ranks_unsure", NULL, COLUMN_COUNT,
                .doc = "ranks that were late by less than the uncertainty"},
    [BY] = {NULL, "known by", COLUMN_TEXT, 32, .doc = "the source of the offset, as text"},
};

static void clock_report_begin(struct table *t)
{
    const struct report *r = t->source;
    bool is_known = !r->is_combined || r->rec->host_count == 1;
    t->is_there = is_known && (r->rec->host_count > 1 || t->format == FORMAT_JSON);
    t->count = t->is_there ? r->rec->host_count : 0;
}

/* Counts the host's ranks with a mean delay that is not larger than the uncertainty of the clocks
 * that have the same reference. */
static uint32_t count_unsure(const struct report *r, uint32_t host)
{
    const struct recording *rec = r->rec;
    uint64_t most_ns = 0;
    uint32_t others = 0, count = 0;
    for (uint32_t i = 0; i < rec->host_count; i++)
        if (rec->hosts[i].reference == rec->hosts[host].reference) {
            others += i != host;
            most_ns = max_of(most_ns, rec->hosts[i].uncertainty_ns);
        }
    for (uint32_t i = 0; rec->host_count > 1 && i < r->ranks.count; i++) {
        const struct rank_row *row = &r->ranks.rows[i];
        count += row->process->host == host && row->all.met.late &&
                 (!others || row->all.met.late_ns / row->all.met.late <= most_ns);
    }
    return count;
}

static void clock_report_fill(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct report *r = t->source;
    const struct host *h = &r->rec->hosts[index];
    const char *reference = r->rec->hosts[h->reference].first->header.host;
    bool is_aligned = h->source == HOST_CLOCK_COLLECTIVES;
    struct cell null = {.kind = CELL_NULL};
    char time[UNIT_TEXT_BYTES];
    cells[NAME] = cell_text(h->first->header.host);
    cells[PROCESSES] = cell_number(h->processes);
    if (t->format != FORMAT_TEXT) {
        cells[REFERENCE] = cell_text(reference);
        cells[HOW] = cell_text(host_how(r->rec->hosts, index));
        cells[OFFSET] = is_aligned ? cell_real((double)h->offset_ns / 1e3) : null;
        cells[DRIFT] = is_aligned ? cell_real(1e6 * h->drift) : null;
        cells[UNCERTAINTY] = is_aligned ? cell_real((double)h->uncertainty_ns / 1e3) : null;
        cells[COLLECTIVES] = cell_number(h->collectives);
        cells[UNSURE] = cell_number(count_unsure(r, index));
    } else if (h->source == HOST_CLOCK_WALL) {
        cells[BY] = cell_text(index ? "its own clock" : "the reference");
        cells[UNCERTAINTY] = cell_text(index ? "not known" : "");
    } else {
        cells[OFFSET] = cell_printf("%s%s", h->offset_ns < 0 ? "-" : "",
                                    time_text(time, (uint64_t)llabs(h->offset_ns)));
        cells[DRIFT] = cell_printf("%.3f ppm", 1e6 * h->drift);
        cells[UNCERTAINTY] = cell_printf("%s", time_text(time, h->uncertainty_ns));
        cells[BY] = cell_printf("%s collectives%s%.16s", count_text(time, h->collectives),
                                h->reference ? " with " : "", h->reference ? reference : "");
    }
}

static void say_unsure(const struct table *t, FILE *out)
{
    const struct report *r = t->source;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->rec->host_count; i++)
        count += count_unsure(r, i);
    if (count)
        fprintf(out, "  %u rank%s: delays are smaller than the uncertainty of the hosts' clocks\n",
                count, plural_end(count));
}

const struct table_info clocks_table = {
    .name = "clocks",
    .key = "clocks",
    .title = "clocks of the hosts",
    TABLE_COLUMNS(clock_columns),
    .place = PLACE_IDLE,
    .text_none = ": needs recordings of at least two hosts",
    .begin = clock_report_begin,
    .row = clock_report_fill,
    .text_behind = say_unsure,
};
