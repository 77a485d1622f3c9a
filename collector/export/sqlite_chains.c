/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callchains of an SQLite export, frame by frame: those of samples have the sample's id, as nsys'
 * have, of others each different one is there once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "export/sqlite_writer.h"

#define UNKNOWN "[Unknown]" /* as nsys has it */

/* Numbers of StringIds of a frame; 0: not yet known. */
struct frame_texts {
    uint32_t symbol;
    uint32_t module;
};

void sqlite_chains_release(struct sqlite_chains *c)
{
    if (c->has_tree)
        call_tree_release(&c->tree);
    key_map_release(&c->told);
    free(c->texts);
}

static int text_of(struct export_writer *w, const char *text, uint32_t *number)
{
    struct sql_value id;
    int error = sqlite_text(w, text, strlen(text), &id);
    *number = error == 0 && id.integer <= UINT32_MAX ? (uint32_t)id.integer : 0;
    return error;
}

/* A place in Python is told with its line, whose file is its module. */
static int texts_of(struct export_writer *w, uint32_t frame, struct frame_texts *texts)
{
    struct sqlite_chains *c = &w->chains;
    const struct shown_frame *f = frame ? shown_frame_of(&c->tree.frames, frame) : NULL;
    struct frame_texts *all = array_reach(c->texts, &c->text_count, frame, sizeof *all);
    if (!all)
        return GPUPROF_NO_MEMORY;
    c->texts = all;
    *texts = all[frame];
    if (texts->symbol && texts->module)
        return 0;
    bool is_named = f && f->name && (f->kind == SHOWN_NATIVE || f->kind == SHOWN_INLINED);
    const struct kernel_name *module = !f ? NULL : f->kind == SHOWN_PYTHON ? f->file : f->module;
    int error = text_of(w, is_named ? f->name->shown : f ? f->label : UNKNOWN, &texts->symbol);
    if (error == 0)
        error = text_of(w, module ? module->raw : UNKNOWN, &texts->module);
    c->texts[frame] = *texts;
    return error;
}

static int put_frames(struct export_writer *w, enum sql_table table, uint64_t id, uint32_t node)
{
    const struct call_tree *t = &w->chains.tree;
    int error = 0;
    for (uint64_t depth = 0; error == 0 && node; depth++, node = call_tree_node(t, node)->parent) {
        uint32_t frame = call_tree_node(t, node)->frame;
        const struct shown_frame *f = frame ? shown_frame_of(&t->frames, frame) : NULL;
        struct frame_texts texts;
        error = texts_of(w, frame, &texts);
        struct sql_value row[SAMPLE_CHAINS_COLUMNS] = {
            [SQL_SAMPLE_CHAINS_ID] = sql_integer(id),
            [SQL_SAMPLE_CHAINS_SYMBOL] = sql_integer(texts.symbol),
            [SQL_SAMPLE_CHAINS_MODULE] = sql_integer(texts.module),
            [SQL_SAMPLE_CHAINS_KERNEL_MODE] = sql_integer(0),
            [SQL_SAMPLE_CHAINS_UNRESOLVED] = sql_integer(!f || !f->name),
            [SQL_SAMPLE_CHAINS_SPECIAL] = sql_integer(!f || f->kind > SHOWN_ADDRESS),
            [SQL_SAMPLE_CHAINS_DEPTH] = sql_integer(depth),
        };
        if (error == 0)
            error = sql_base_insert(w->base, table, row);
    }
    return error;
}

_Static_assert((int)OSRT_CHAINS_COLUMNS == (int)SAMPLE_CHAINS_COLUMNS, "both are alike");

int sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack, uint64_t sample,
                 uint64_t *id)
{
    struct sqlite_chains *c = &w->chains;
    uint32_t node = 0;
    int error = 0;
    *id = 0;
    if (!stack)
        return 0;
    if (!c->has_tree) {
        c->has_tree = true;
        error = call_tree_init(&c->tree, &w->walk->survey, w->scope.options->symbols);
    }
    if (error == 0)
        error = call_tree_stack(&c->tree, 0, p->index, stack, NULL, &node);
    if (error < 0 || !node)
        return error;
    *id = sample ? sample : node;
    if (sample)
        return put_frames(w, SQL_SAMPLE_CHAINS, sample, node);
    struct key key = {node, 0, 0};
    if (key_map_get(&c->told, key))
        return 0;
    error = key_map_set(&c->told, key, 1);
    if (error == GPUPROF_LIMIT)
        *id = 0; /* it could not be told that it is there */
    return error < 0 ? error == GPUPROF_LIMIT ? 0 : error
                     : put_frames(w, SQL_OSRT_CHAINS, node, node);
}
