/* SPDX-License-Identifier: Apache-2.0 */
/* Data on who held the memory: tables of `gpuprof memory`, and a curve for each place. */
#include <inttypes.h>

#include "page/page.h"

#define TABLES_SHOWN    6    /* the first: failed allocations, places, owners ... */
#define ROWS_MAX        5000 /* of a table; all places fit */
#define TABLE_BYTES_MAX (1u << 20)
#define LEVELS          4095 /* of a place's peak; two letters encode a height */
_Static_assert(ROWS_MAX > MEMORY_PLACES_MAX, "the curves are those of the table's rows");

/* Writes the maximum of each span of time. */
static void put_curve(const struct memory_place *p, FILE *out)
{
    double most = p->peak.bytes ? (double)p->peak.bytes : 1;
    fputc('"', out);
    for (unsigned i = 0; i < MEMORY_CURVE; i++) {
        unsigned level = (unsigned)((double)p->curve.list[i].peak / most * LEVELS + 0.5);
        fputc(PAGE_LETTERS[level >> 6 & 63], out);
        fputc(PAGE_LETTERS[level & 63], out);
    }
    fputc('"', out);
}

static void put_tables(const struct page *p, const struct memory_report *m, struct page_data *d)
{
    struct table_view how = p->view->how;
    const char *separator = "";
    how.limit = ROWS_MAX;
    how.sort = NULL; /* rows of places keep the order of their curves */
    fputs("\"tables\": [", d->stream);
    for (unsigned i = 0; i < TABLES_SHOWN; i++) {
        struct table table = {.info = memory_tables[i], .source = m};
        uint64_t before = page_data_written(d);
        page_put_table(&table, &how, TABLE_BYTES_MAX, separator, d);
        separator = page_data_written(d) > before ? "," : separator;
    }
    fputs("]", d->stream);
}

void page_put_memory(const struct page *p, struct page_data *d)
{
    struct memory_report *made = NULL, *m = p->report->memory;
    if (!m && !p->report->peaks.any) {
        fputs("{\"tables\": [], \"curves\": []}", d->stream);
        return;
    }
    if (!m)
        m = made = memory_report_create(p->report->rec, &p->memory, p->symbols, &d->error);
    if (!m)
        return;
    fprintf(d->stream, "{\"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", ",
            memory_moment(m, m->times.begin_ns), memory_moment(m, m->times.end_ns));
    put_tables(p, m, d);
    fputs(",\n\"curves\": [", d->stream);
    for (uint32_t i = 0; i < m->places.count; i++) {
        fputs(i ? ",\n" : "\n", d->stream);
        put_curve(&m->places.list[i], d->stream);
    }
    fputs("]}", d->stream);
    memory_report_free(made);
}
