/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/message.h"
#include "base/unit_text.h"
#include "read/process_title.h"

#define NAMES_BYTES 300
#define LARGE_SHARE 2 /* one block of 1 / LARGE_SHARE of a device is no ordinary one */

/* Is `name` one of the words of `list`, a,b,c? */
static bool is_in(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (strcspn(list, ",") == length && memcmp(list, name, length) == 0)
            return true;
    return false;
}

static bool is_wanted(const struct memory_view *v, const struct table_info *info,
                      enum report_format format)
{
    if (v->tables)
        return is_in(v->tables, info->name);
    return format != FORMAT_TEXT || v->is_full || info->place != PLACE_ASKED;
}

static const struct table_info *table_of(const char *word, size_t length)
{
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        if (strlen(memory_tables[i].name) == length &&
            memcmp(memory_tables[i].name, word, length) == 0)
            return &memory_tables[i];
    return NULL;
}

enum exit_code memory_view_check(const struct memory_view *v, enum report_format format)
{
    char names[NAMES_BYTES] = "";
    size_t length = 0;
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                   memory_tables[i].name);
    for (const char *word = v->tables; word; word += *word == ',') {
        length = strcspn(word, ",");
        if (!table_of(word, length))
            return usage_error("memory: no table is named '%.*s'; there are %s", (int)length, word,
                               names);
        word += length;
        if (!*word)
            break;
    }
    for (unsigned i = 0; v->how.sort && i < MEMORY_TABLES; i++)
        if (is_wanted(v, &memory_tables[i], format) &&
            table_column(&memory_tables[i], v->how.sort) >= 0)
            return EXIT_OK;
    return v->how.sort ? usage_error("memory: no table here has a column '%s'", v->how.sort)
                       : EXIT_OK;
}

/* ---- what stands around the tables ----------------------------------------------------------- */

static void print_head(const struct memory_report *m, FILE *out)
{
    char time[UNIT_TEXT_BYTES];
    fprintf(out, "memory of %u process%s, recorded for %s\n", m->rec->count,
            m->rec->count == 1 ? "" : "es", time_text(time, m->end_ns - m->begin_ns));
    if (!m->place_count)
        fputs("no call that gets memory was recorded\n", out);
}

/* One block of half of the device: what is in it is hidden from this ledger. */
static void print_preallocations(const struct memory_rows *r, FILE *out)
{
    const struct memory_report *m = r->report;
    char bytes[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < m->place_count; i++) {
        const struct memory_place *p = &m->places[i];
        if (!p->total || p->largest < p->total / LARGE_SHARE)
            continue;
        char *owner = memory_origin_text(m, p->largest_origin,
                                         r->has_tree ? (struct call_tree *)&r->tree : NULL);
        char *clean = owner ? json_line(owner) : NULL;
        fprintf(out,
                "\ndevice %u: one block of %s (%.0f%% of it) is a preallocation, by %s: what is "
                "in it, its owner knows alone\n",
                p->device, bytes_text(bytes, p->largest),
                100.0 * (double)p->largest / (double)p->total, clean ? clean : "?");
        free(owner);
        free(clean);
    }
}

/* PyTorch's allocator had enough, but no piece of it was large enough, or not for this one. */
static void print_advice(const struct memory_report *m, FILE *out)
{
    char idle[UNIT_TEXT_BYTES], wanted[UNIT_TEXT_BYTES], hole[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < m->oom_count; i++) {
        const struct memory_oom *oom = &m->ooms[i];
        if (oom->where != MEMORY_OF_TENSORS || oom->reserved < oom->live ||
            oom->reserved - oom->live < oom->wanted)
            continue;
        bytes_text(hole, oom->hole);
        fprintf(out, "\n%s of what PyTorch's allocator had reserved were free when %s were wanted",
                bytes_text(idle, oom->reserved - oom->live), bytes_text(wanted, oom->wanted));
        if (oom->hole >= oom->wanted)
            fprintf(out, ", %s in one piece, but kept for another stream, pool or size\n", hole);
        else
            fprintf(out,
                    ", but in pieces, the largest of %s: try "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n",
                    hole);
        return;
    }
}

struct doubt {
    uint64_t count;
    const char *key;
    const char *text;
};

#define DOUBTS 8

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
    static const char *const by[] = {[MEMORY_BY_LINE] = "python-line",
                                     [MEMORY_BY_STACK] = "stack",
                                     [MEMORY_BY_OPERATOR] = "operator",
                                     [MEMORY_BY_FUNCTION] = "function",
                                     [MEMORY_BY_KIND] = "kind"};
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

int memory_print(const struct memory_rows *r, const struct memory_view *v,
                 enum report_format format, FILE *out)
{
    typedef int print_fn(struct table *, const struct table_view *, FILE *);
    static print_fn *const print[] = {table_print_text, table_print_json, table_print_csv};
    int error = 0;
    if (format == FORMAT_JSON)
        print_json_head(r, out);
    else if (format == FORMAT_CSV)
        csv_print_heading(out);
    else if (!v->tables)
        print_head(r->report, out);
    for (unsigned i = 0; error == 0 && i < MEMORY_TABLES; i++) {
        struct table table = {.info = &memory_tables[i], .source = r};
        if (is_wanted(v, &memory_tables[i], format))
            error = print[format](&table, &v->how, out);
    }
    if (format == FORMAT_JSON)
        fputs("\n}\n", out);
    if (format != FORMAT_TEXT)
        return error;
    print_advice(r->report, out);
    print_preallocations(r, out);
    print_doubts(r->report, out);
    return error;
}
