/* SPDX-License-Identifier: Apache-2.0 */
#include "find/hang.h"

#include <stdlib.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "error.h"

int hang_init(struct hang *h, struct walk *walk)
{
    *h = (struct hang){0};
    told_stacks_init(&h->stacks, walk->rec, &walk->survey.stacks);
    h->open.stacks = &h->stacks;
    h->has_hung = calloc(walk->rec->count + 1u, sizeof *h->has_hung);
    if (!h->has_hung)
        return GPUPROF_NO_MEMORY;
    int error = collectives_init(&h->collectives, walk, &h->stacks);
    if (error == 0)
        error = unfinished_init(&h->unfinished, walk, &h->stacks);
    h->needs_stacks = error == 0 && unfinished_may_be(&h->unfinished);
    for (uint32_t i = 0; i < walk->rec->count; i++)
        h->needs_stacks |= quiet_may_be(walk->rec->processes[i]);
    return error;
}

void hang_release(struct hang *h)
{
    for (uint32_t i = 0; i < h->open.count; i++)
        free(h->open.calls[i].line);
    for (uint32_t i = 0; i < h->quiet.count; i++)
        free(h->quiet.rows[i].line);
    if (h->collectives.walk)
        collectives_release(&h->collectives);
    unfinished_release(&h->unfinished);
    told_stacks_release(&h->stacks);
    free(h->has_hung);
}

/* Where the others are is where they wait. */
static bool is_told(const struct pending_row *row)
{
    return row->place &&
           (row->state == COLLECTIVE_NOT_CALLED || row->state == COLLECTIVE_DIFFERENT);
}

int hang_finish(struct hang *h, const char *symbol_folder)
{
    struct unfinished *u = &h->unfinished;
    struct collectives *all_ranks = &h->collectives;
    int error = collectives_judge(all_ranks, u);
    if (error == 0)
        quiet_judge(&h->quiet, all_ranks, u);
    if (error < 0 || !h->needs_stacks) /* nobody has gathered stacks for it */
        return error;
    const struct stack_table *all = &u->walk->survey.stacks;
    for (uint32_t i = 0; error == 0 && i < h->open.count; i++)
        error = told_stacks_add(&h->stacks, all, h->open.calls[i].process->index,
                                h->open.calls[i].stack);
    for (uint32_t i = 0; error == 0 && i < u->row_count; i++)
        error = told_stacks_add(&h->stacks, all, u->rows[i].launch.process->index,
                                u->rows[i].launch.stack);
    for (uint32_t i = 0; error == 0 && i < all_ranks->row_count; i++)
        if (is_told(&all_ranks->rows[i]))
            error = told_stacks_add(&h->stacks, all, all_ranks->rows[i].process->index,
                                    all_ranks->rows[i].place->stack);
    for (uint32_t i = 0; error == 0 && i < h->quiet.count; i++)
        error = told_stacks_add(&h->stacks, all, h->quiet.rows[i].process->index,
                                h->quiet.rows[i].place->stack);
    if (error == 0)
        error = told_stacks_finish(&h->stacks, symbol_folder);
    for (uint32_t i = 0; error == 0 && i < h->open.count; i++) {
        struct open_call *c = &h->open.calls[i];
        c->node = told_stack_node(&h->stacks, c->process->index, c->stack);
        c->line = told_stack_line(&h->stacks, c->node);
    }
    for (uint32_t i = 0; error == 0 && i < u->row_count; i++)
        u->rows[i].node =
            told_stack_node(&h->stacks, u->rows[i].launch.process->index, u->rows[i].launch.stack);
    for (uint32_t i = 0; error == 0 && i < all_ranks->row_count; i++) {
        struct pending_row *row = &all_ranks->rows[i];
        if (is_told(row))
            row->node = told_stack_node(&h->stacks, row->process->index, row->place->stack);
        row->line = told_stack_line(&h->stacks, row->node);
    }
    for (uint32_t i = 0; error == 0 && i < h->quiet.count; i++) {
        struct quiet_row *row = &h->quiet.rows[i];
        row->node = told_stack_node(&h->stacks, row->process->index, row->place->stack);
        row->line = told_stack_line(&h->stacks, row->node);
    }
    return error;
}

bool hang_first(const struct hang *h, struct hang_told *told)
{
    const struct unfinished *u = &h->unfinished;
    *told = (struct hang_told){0};
    if (h->open.count && h->open.calls[0].duration_ns >= SURVEY_HANG_NS) {
        told->call = &h->open.calls[0];
        told->line = told->call->line;
    }
    for (uint32_t i = 0; i < u->row_count && !told->unfinished; i++)
        if (u->rows[i].state != UNFINISHED_MAYBE &&
            (!told->call || told->call->process == u->rows[i].launch.process))
            told->unfinished = &u->rows[i];
    return told->call || told->unfinished;
}

void hang_print_summary(const struct hang *h, FILE *out)
{
    struct hang_told told;
    char text[UNIT_TEXT_BYTES];
    collectives_print_summary(&h->collectives, out);
    open_calls_print_summary(&h->open, out);
    quiet_print_summary(&h->quiet, h->unfinished.walk->survey.origin_ns, out);
    if (!hang_first(h, &told) || !told.unfinished)
        return;
    char *what = unfinished_text(told.unfinished), *line = what ? json_line(what) : NULL;
    if (line)
        fprintf(out, "  unfinished %s, launched %s before\n", line,
                time_text(text, told.unfinished->age_ns));
    free(line);
    free(what);
}
