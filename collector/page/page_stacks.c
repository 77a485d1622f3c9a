/* SPDX-License-Identifier: Apache-2.0 */
/* Data on stacks: the flame graph, and source lines and their costs, like the text of report
 * --source. All text comes from files found below the folder (source_tree.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/source_report.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "page/page.h"
#include "resolve/missing_reason.h"

#define NARROWEST         20000 /* hides nodes with smaller shares of all weights, 1 in so many */
#define PAGE_SOURCE_BYTES (2u << 20) /* approximate: the last line is written whole */

/* ---- the flame graph ---- */

struct weights {
    uint64_t own[PAGE_WEIGHTS];
    uint64_t total[PAGE_WEIGHTS];
};

/* The tree as shown. Indices are node numbers of the tree; 0 is the root. */
struct shown_tree {
    const struct call_tree *tree;
    struct weights *weights;
    uint32_t *numbers; /* numbers of shown nodes, from 1; 0: not shown */
    uint32_t count;
};

static void page_flame_weigh(struct shown_tree *t, const struct stack_costs *costs)
{
    for (uint32_t n = t->tree->count; n > 0; n--) { /* parents have smaller numbers */
        struct stack_cost cost = stack_cost_of(costs, n);
        struct weights *w = &t->weights[n], *parent = &t->weights[t->tree->nodes[n - 1].parent];
        const uint64_t own[PAGE_WEIGHTS] = {cost.host_ns, cost.gpu_ns, cost.calls,
                                            cost.bytes,   cost.cpu_ns, cost.waited_ns};
        for (unsigned i = 0; i < PAGE_WEIGHTS; i++) {
            w->own[i] += own[i];
            w->total[i] += own[i];
            parent->total[i] += w->total[i];
        }
    }
}

static bool is_wide(const struct shown_tree *t, uint32_t n, uint64_t narrowest)
{
    for (unsigned i = 0; i < PAGE_WEIGHTS; i++)
        if (t->weights[n].total[i] && t->weights[n].total[i] >= t->weights[0].total[i] / narrowest)
            return true;
    return false;
}

/* Chooses the nodes to show. A child is never wider than its parent, so they form a tree. Few nodes
 * have half of a weight. */
static void page_flame_choose(struct shown_tree *t)
{
    uint64_t narrowest = NARROWEST;
    do {
        t->count = 0;
        for (uint32_t n = 1; n <= t->tree->count; n++)
            t->numbers[n] = is_wide(t, n, narrowest) ? ++t->count : 0;
        narrowest /= 2;
    } while (t->count > PAGE_NODES_MAX && narrowest > 1);
    for (uint32_t n = t->tree->count; n > 0; n--) {
        struct weights *parent = &t->weights[t->tree->nodes[n - 1].parent];
        for (unsigned i = 0; !t->numbers[n] && i < PAGE_WEIGHTS; i++)
            parent->own[i] += t->weights[n].own[i];
    }
}

/* Writes the nodes: [parent, kind, label, own weights without trailing zeros]. */
static void put_nodes(const struct shown_tree *t, struct page_data *d)
{
    for (uint32_t n = 1; n <= t->tree->count; n++) {
        if (!t->numbers[n])
            continue;
        const struct shown_frame *frame = call_tree_frame(t->tree, n);
        const uint64_t *own = t->weights[n].own;
        unsigned count = PAGE_WEIGHTS;
        while (count && !own[count - 1])
            count--;
        page_printf(d, t->numbers[n] > 1 ? ",\n[%u,%u,%s" : "\n[%u,%u,%s",
                    t->numbers[t->tree->nodes[n - 1].parent], frame->kind, frame->label);
        for (unsigned i = 0; i < count; i++)
            fprintf(d->stream, ",%" PRIu64, own[i]);
        fputc(']', d->stream);
    }
}

static void put_tree(const struct stack_costs *costs, struct page_data *d)
{
    struct shown_tree t = {.tree = &costs->tree};
    t.weights = memory_new(t.tree->count + 1u, sizeof *t.weights);
    t.numbers = memory_new(t.tree->count + 1u, sizeof *t.numbers);
    page_flame_weigh(&t, costs);
    page_flame_choose(&t);
    fputs(", \"nodes\": [", d->stream);
    put_nodes(&t, d);
    fprintf(d->stream, "], \"left_out\": %u", t.tree->count - t.count);
    free(t.weights);
    free(t.numbers);
}

void page_put_flame(const struct page *p, struct page_data *d)
{
    const struct recording *rec = p->report->rec;
    struct missing_reason found[MISSING_REASONS_MAX];
    char *missing = missing_reasons_find(rec, "stacks", found)
                        ? missing_reason_text(found, rec, "stacks")
                        : NULL;
    fprintf(d->stream,
            "{\"kinds\": {\"python\": %u, \"native\": %u, \"inlined\": %u, \"call\": %u, "
            "\"work\": %u, \"none\": %u}, \"absent\": ",
            SHOWN_PYTHON, SHOWN_NATIVE, SHOWN_INLINED, SHOWN_CALL, SHOWN_WORK, SHOWN_STACKLESS);
    page_put_owned(d, "", missing);
    if (p->flame.is_there)
        put_tree(&p->flame.costs, d);
    fputc('}', d->stream);
}

/* ---- source ---- */

struct listing {
    const struct source_report *source;
    struct page_data *d;
    uint64_t before; /* bytes of the page before it */
};

static void put_cost(const struct stack_cost *cost, FILE *out)
{
    fprintf(out, "[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", cost->calls, cost->host_ns,
            cost->gpu_ns, cost->bytes);
}

/* Writes [number, text], and for a line with costs: own cost, cost of all, function. */
static void put_line(struct listing *l, const struct source_row *row)
{
    const struct source_report *r = l->source;
    FILE *out = l->d->stream;
    fprintf(out, "[%u,", row->line);
    page_put_owned(l->d, "", source_line_text(&r->files[row->file], row->line));
    if (row->cost) {
        fputc(',', out);
        put_cost(row->own, out);
        fputc(',', out);
        put_cost(row->all, out);
        fprintf(out, ",%s", row->cost->function ? row->cost->function->json : "null");
    }
    fputc(']', out);
}

/* Writes the rows of one file from `at` on, with 0 for a gap, and the number of lines left out.
 * Returns the row of the next file. */
static uint32_t put_lines(struct listing *l, uint32_t at)
{
    const struct source_row *rows = l->source->rows;
    uint32_t file = rows[at].file, left_out = 0;
    const char *separator = "\n";
    for (; at < l->source->row_count && rows[at].file == file; at++) {
        if (rows[at].kind == SOURCE_HEAD)
            continue;
        if (page_data_written(l->d) - l->before > PAGE_SOURCE_BYTES) {
            left_out += rows[at].kind == SOURCE_LINE;
            continue;
        }
        fputs(separator, l->d->stream);
        if (rows[at].kind == SOURCE_LINE)
            put_line(l, &rows[at]);
        else
            fputc('0', l->d->stream);
        separator = ",\n";
    }
    fprintf(l->d->stream, "], %u]", left_out);
    return at;
}

/* Writes the files, the most expensive first: [path, heading, cost, lines ...]. */
static void put_files(struct listing *l)
{
    const struct source_report *r = l->source;
    fputs("\"files\": [", l->d->stream);
    for (uint32_t i = 0, row = 0; i < r->file_count; i++) {
        page_put_owned(l->d, i ? ",\n[" : "\n[",
                       json_line(source_tree_path(&r->tree, r->files[i].index)));
        page_put_owned(l->d, ", ", source_head_text(r, &r->files[i]));
        fputs(", ", l->d->stream);
        put_cost(&r->files[i].own, l->d->stream);
        fputs(", [", l->d->stream);
        row = put_lines(l, row);
    }
    fputc(']', l->d->stream);
}

void page_put_source(const struct page *p, struct page_data *d)
{
    const struct source_report *r = p->report->source;
    struct listing l = {.source = r, .d = d, .before = page_data_written(d)};
    if (!r) {
        fputs("{\"files\": null}", d->stream);
        return;
    }
    struct new_text text;
    FILE *note = new_text_begin(&text);
    struct stack_cost other = r->elsewhere;
    stack_cost_add(&other, &r->stacks->without);
    fputs("{\"total\": ", d->stream);
    put_cost(&r->stacks->total, d->stream);
    fputs(", \"other\": ", d->stream);
    put_cost(&other, d->stream);
    stack_report_print_missing_reasons(r->stacks, true, note);
    page_put_owned(d, ", \"absent\": ", new_text_end(&text, note));
    fputs(",\n", d->stream);
    put_files(&l);
    fputc('}', d->stream);
}
