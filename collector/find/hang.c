/* SPDX-License-Identifier: Apache-2.0 */
#include "find/hang.h"

#include <stdlib.h>

#include "base/json_text.h"
#include "base/unit_text.h"

int hang_init(struct hang *h, struct walk *walk)
{
    *h = (struct hang){0};
    told_stacks_init(&h->stacks, walk->rec, &walk->survey.stacks);
    h->open.stacks = &h->stacks;
    return unfinished_init(&h->unfinished, walk, &h->stacks);
}

void hang_release(struct hang *h)
{
    for (uint32_t i = 0; i < h->open.count; i++)
        free(h->open.calls[i].line);
    unfinished_release(&h->unfinished);
    told_stacks_release(&h->stacks);
}

int hang_finish(struct hang *h, const char *symbol_folder)
{
    struct unfinished *u = &h->unfinished;
    int error = 0;
    if (!unfinished_may_be(u)) /* nobody has gathered stacks for it */
        return 0;
    const struct stack_table *all = &u->walk->survey.stacks;
    for (uint32_t i = 0; error == 0 && i < h->open.count; i++)
        error = told_stacks_add(&h->stacks, all, h->open.calls[i].process->index,
                                h->open.calls[i].stack);
    for (uint32_t i = 0; error == 0 && i < u->row_count; i++)
        error = told_stacks_add(&h->stacks, all, u->rows[i].launch.process->index,
                                u->rows[i].launch.stack);
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
    open_calls_print_summary(&h->open, out);
    if (!hang_first(h, &told) || !told.unfinished)
        return;
    char *what = unfinished_text(told.unfinished), *line = what ? json_line(what) : NULL;
    if (line)
        fprintf(out, "  unfinished %s, launched %s before\n", line,
                time_text(text, told.unfinished->age_ns));
    free(line);
    free(what);
}
