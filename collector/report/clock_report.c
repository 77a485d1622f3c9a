/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"
#include "report/report.h"

enum { NAME, PROCESSES, OFFSET, DRIFT, UNCERTAINTY, REFERENCE, HOW, COLLECTIVES, UNSURE, BY };

static const struct column columns[] = {
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
        count += row->process->host == host && row->all.late &&
                 (!others || row->all.late_ns / row->all.late <= most_ns);
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
    TABLE_COLUMNS(columns),
    .place = PLACE_IDLE,
    .text_none = ": needs recordings of at least two hosts",
    .begin = clock_report_begin,
    .row = clock_report_fill,
    .text_behind = say_unsure,
};
