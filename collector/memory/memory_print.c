/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_print.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/message.h"
#include "base/nearest.h"
#include "base/unit_text.h"
#include "read/process_title.h"

#define NAMES_BYTES 300

static bool is_wanted(const struct memory_view *v, const struct table_info *info,
                      enum report_format format)
{
    if (v->tables)
        return word_in(v->tables, info->name) != UINT_MAX;
    return format != FORMAT_TEXT || v->is_full || info->place != PLACE_ASKED;
}

static const struct table_info *table_of(const char *word, size_t length)
{
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        if (strlen(memory_tables[i]->name) == length &&
            memcmp(memory_tables[i]->name, word, length) == 0)
            return memory_tables[i];
    return NULL;
}

enum exit_code memory_view_check(const struct memory_view *v, enum report_format format)
{
    char names[NAMES_BYTES] = "";
    size_t length = 0;
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                   memory_tables[i]->name);
    for (const char *word = v->tables; word; word += *word == ',') {
        length = strcspn(word, ",");
        const struct table_info *info = table_of(word, length);
        if (!info)
            return usage_error("memory: no table is named '%.*s'; there are %s", (int)length, word,
                               names);
        if (v->is_piece && word_in("places,owners,curve", info->name) == UINT_MAX)
            return usage_error("memory: --from and --to: the table %s is always of the whole "
                               "recording; name only places, owners and curve",
                               info->name);
        word += length;
        if (!*word)
            break;
    }
    const struct table_info *infos[MEMORY_TABLES];
    unsigned count = 0;
    for (unsigned i = 0; v->how.sort && i < MEMORY_TABLES; i++) {
        if (!is_wanted(v, memory_tables[i], format))
            continue;
        if (table_column(memory_tables[i], v->how.sort) >= 0)
            return EXIT_OK;
        infos[count++] = memory_tables[i];
    }
    return v->how.sort ? table_sort_unknown("memory", v->how.sort, infos, count) : EXIT_OK;
}

/* ---- what stands around the tables ----------------------------------------------------------- */

struct doubt {
    uint64_t count;
    const char *key;
    const char *text;
};

#define DOUBTS 9

static void doubts_of(const struct memory_report *m, struct doubt doubts[static DOUBTS])
{
    const struct ledger_doubts *d = &m->ledger.books.doubts;
    const struct doubt all[DOUBTS] = {
        {d->replaced, "replaced", "blocks whose release was not recorded"},
        {d->strays, "strays", "releases of blocks that nobody saw come"},
        {d->beyond, "beyond", "blocks beyond what is followed at a time: they are in no sum"},
        {d->in_graphs, "in_graphs",
         "allocations of graphs, which are made at each launch: they are in no sum"},
        {d->sampled, "sampled", "calls that stand for others, which are in no sum"},
        {m->placeless, "placeless", "blocks on devices beyond those that are followed"},
        {m->others, "others", "changes of owners beyond those that are followed"},
        {m->ranges.beyond, "ranges_beyond", "ranges beyond those that are followed"},
        {m->ooms_all - m->oom_count, "more_out_of_memory",
         "further allocations for which there was not enough"},
    };
    memcpy(doubts, all, sizeof all);
}

static void print_doubts(const struct memory_report *m, FILE *out)
{
    struct doubt doubts[DOUBTS];
    char count[UNIT_TEXT_BYTES];
    bool any = false;
    doubts_of(m, doubts);
    for (unsigned i = 0; i < DOUBTS; i++) {
        if (!doubts[i].count)
            continue;
        fprintf(out, "%s  %12s  %s\n", any ? "" : "\nwhat else to know\n",
                count_text(count, doubts[i].count), doubts[i].text);
        any = true;
    }
}

static void print_json_head(const struct memory_rows *r, FILE *out)
{
    static const char *const by[] = {
        [MEMORY_BY_LINE] = "python-line",  [MEMORY_BY_STACK] = "stack",
        [MEMORY_BY_OPERATOR] = "operator", [MEMORY_BY_FUNCTION] = "function",
        [MEMORY_BY_KIND] = "kind",         [MEMORY_BY_LIBRARY] = "library"};
    static const char *const at[] = {
        [MEMORY_AT_PEAK] = "peak", [MEMORY_AT_END] = "end", [MEMORY_AT_TIME] = "time"};
    const struct memory_report *m = r->report;
    struct doubt doubts[DOUBTS];
    const char *separator = "";
    fprintf(out, "{\n\"processes\": %u,\n\"wall_ns\": %" PRIu64 ",\n", m->rec->count,
            m->end_ns - m->begin_ns);
    fprintf(out, "\"by\": \"%s\",\n\"at\": \"%s\",\n\"steps_by\": \"%s\",\n", by[m->by], at[r->at],
            step_kind_word(m->steps.count ? m->steps.kind : STEPS_NONE));
    doubts_of(m, doubts);
    fputs("\"doubts\": {", out);
    for (unsigned i = 0; i < DOUBTS; i++) {
        if (!doubts[i].count)
            continue;
        fprintf(out, "%s\"%s\": %" PRIu64, separator, doubts[i].key, doubts[i].count);
        separator = ", ";
    }
    fputs("}", out);
}

enum exit_code memory_write_csv(const struct memory_rows *r, const struct memory_view *v,
                                const char *path, uint64_t *room)
{
    struct table tables[MEMORY_TABLES];
    unsigned count = 0;
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        if (is_wanted(v, memory_tables[i], FORMAT_CSV))
            tables[count++] = (struct table){.info = memory_tables[i], .source = r};
    return tables_write_csv(tables, count, &v->how, path, room);
}

int memory_print(const struct memory_rows *r, const struct memory_view *v,
                 enum report_format format, FILE *out)
{
    int error = 0;
    if (format == FORMAT_JSON)
        print_json_head(r, out);
    else if (!v->tables)
        memory_overview_print(r, &v->how, out);
    for (unsigned i = 0; error == 0 && i < MEMORY_TABLES; i++) {
        struct table table = {.info = memory_tables[i], .source = r};
        struct table_view how = v->how;
        if (strcmp(memory_tables[i]->name, "leaks") == 0)
            how.rows = 0; /* as many as it has itself: each is a fault of its own */
        if (is_wanted(v, memory_tables[i], format))
            error = format == FORMAT_JSON ? table_print_json(&table, &how, out)
                                          : table_print_text(&table, &how, out);
    }
    if (format == FORMAT_JSON)
        fputs("\n}\n", out);
    if (format != FORMAT_TEXT)
        return error;
    print_doubts(r->report, out);
    return error;
}
