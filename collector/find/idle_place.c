/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_text.h"
#include "error.h"
#include "frame.h"
#include "read/process_title.h"
#include "symbol/own_line.h"

bool idle_says_loading(const char *name)
{
    static const char *const words[] = {
        "dataloader", "data_loader", "data loader", "data_loading", "data loading",
        "load_data",  "load data",   "load_batch",  "load batch",   "next_batch",
        "next batch", "get_batch",   "get batch",   "fetch_batch",  "fetch batch",
    };
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

/* Who was waited for; returns `text`. */
static const char *waited_for(const struct walk *w, const struct idle_row *row, char text[32])
{
    const struct process *p = w->rec->processes[(uint32_t)row->place.word];
    const char *rank = process_rank(p);
    if (p->index == row->process)
        snprintf(text, 32, "GPU %llu", (unsigned long long)row->place.word >> 32);
    else if (rank)
        snprintf(text, 32, "rank %.16s", rank);
    else
        snprintf(text, 32, "process %u", p->header.pid);
    return text;
}

/* The operator or range; NULL: it is none, or has no name. */
static const struct kernel_name *around(const struct walk *w, const struct idle_row *row)
{
    const struct idle_place *place = &row->place;
    switch (place->kind) {
    case IDLE_WORD_NAME: return (const struct kernel_name *)(uintptr_t)place->word;
    case IDLE_WORD_OP: return kernel_name_of(&w->names[row->process].ops.names, place->word);
    default: return NULL;
    }
}

/* What the place is called, where it is no line; perhaps in `made`. */
static const char *name_of(const struct walk *w, const struct idle_row *row, char made[32])
{
    const struct idle_place *place = &row->place;
    const struct function_table *functions = &w->rec->reader.functions;
    const struct kernel_name *name = around(w, row);
    if (place->kind == IDLE_WORD_OURS)
        return (const char *)(uintptr_t)place->word;
    if (place->kind == IDLE_WORD_DEVICE)
        return waited_for(w, row, made);
    if (name)
        return name->shown;
    return place->function < functions->count ? functions->functions[place->function]->name
                                              : "not known";
}

/* The innermost of the stack's lines in Python that is the user's own; NULL: none. */
static const struct stack_place *own_line(const struct stack_table *t, const struct idle_row *row)
{
    uint64_t words[FRAME_COUNT_MAX];
    const struct recorded_stack *stack = stack_table_stack(t, row->process, row->place.stack);
    uint32_t count = stack ? stack_table_words(t, stack, words) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct stack_place *place =
            frame_kind(words[i]) == FRAME_PYTHON
                ? stack_table_place(t, row->process, frame_python(words[i]))
                : NULL;
        if (place && place->file && own_python_file(place->file->raw))
            return place;
    }
    return NULL;
}

static char *line_text(const struct stack_place *line)
{
    char *text = NULL;
    if (asprintf(&text, "%s (%s:%u)", line->function ? line->function->shown : "?",
                 path_base(line->file->raw), line->line) < 0)
        return NULL;
    char *clean = json_line(text);
    free(text);
    return clean;
}

char *idle_place_text(const struct walk *w, const struct idle_row *row)
{
    const struct stack_place *line = row->place.stack ? own_line(&w->survey.stacks, row) : NULL;
    char made[32];
    return line ? line_text(line) : json_line(name_of(w, row, made));
}

int idle_where_text(const struct walk *w, const struct idle_row *row, char **text)
{
    const struct stack_place *line = row->place.stack ? own_line(&w->survey.stacks, row) : NULL;
    const struct kernel_name *name = line ? NULL : around(w, row);
    *text = line ? line_text(line) : name ? json_line(name->shown) : NULL;
    return *text || (!line && !name) ? 0 : GPUPROF_NO_MEMORY;
}

static int by_cause_and_place(const void *left, const void *right)
{
    const struct idle_total *a = left, *b = right;
    return a->cause != b->cause ? (a->cause < b->cause ? -1 : 1) : strcmp(a->place, b->place);
}

static int by_ns(const void *left, const void *right)
{
    const struct idle_total *a = left, *b = right;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : by_cause_and_place(left, right);
}

int idle_totals(const struct walk *w, const struct idle_rows *rows, struct idle_total **made,
                uint32_t *count)
{
    struct idle_total *totals = calloc(rows->count + 1u, sizeof *totals);
    *made = totals;
    *count = 0;
    if (!totals)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct idle_row *row = &rows->list[i];
        char *place = idle_place_text(w, row);
        if (!place)
            return GPUPROF_NO_MEMORY;
        totals[(*count)++] = (struct idle_total){.cause = (enum idle_cause)row->cause,
                                                 .place = place,
                                                 .ns = row->ns,
                                                 .count = row->count,
                                                 .longest = i};
    }
    qsort(totals, *count, sizeof *totals, by_cause_and_place);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        struct idle_total *last = kept ? &totals[kept - 1] : NULL;
        if (!last || by_cause_and_place(last, &totals[i]) != 0) {
            totals[kept++] = totals[i];
            continue;
        }
        last->ns += totals[i].ns;
        last->count += totals[i].count;
        if (rows->list[totals[i].longest].longest_ns > rows->list[last->longest].longest_ns)
            last->longest = totals[i].longest;
        free(totals[i].place);
    }
    *count = kept;
    qsort(totals, kept, sizeof *totals, by_ns);
    return 0;
}
