/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callchains of an SQLite export, frame by frame: those of samples have the sample's id, as nsys'
 * have, of others each different one is there once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/sqlite_tables.h"

#define UNKNOWN "[Unknown]" /* as nsys has it */

void sqlite_chains_release(struct sqlite_chains *c)
{
    if (c->has_tree)
        call_tree_release(&c->tree);
    key_map_release(&c->told);
    free(c->texts);
}

static uint32_t text_of(struct export_writer *w, const char *text)
{
    struct sql_value id = sqlite_text(w, text, strlen(text));
    return id.integer <= UINT32_MAX ? (uint32_t)id.integer : 0;
}

/* A place in Python is told with its line, whose file is its module. */
static struct frame_texts texts_of(struct export_writer *w, uint32_t frame,
                                   const struct shown_frame *f)
{
    struct sqlite_chains *c = &w->chains;
    struct frame_texts *all = array_reach(c->texts, &c->text_count, frame, sizeof *all);
    if (!sqlite_ok(w, all ? 0 : GPUPROF_NO_MEMORY))
        return (struct frame_texts){0};
    c->texts = all;
    if (all[frame].symbol && all[frame].module)
        return all[frame];
    bool is_named = f && f->name && (f->kind == SHOWN_NATIVE || f->kind == SHOWN_INLINED);
    const struct kernel_name *module = !f ? NULL : f->kind == SHOWN_PYTHON ? f->file : f->module;
    all[frame].symbol = text_of(w, is_named ? f->name->shown : f ? f->label : UNKNOWN);
    all[frame].module = text_of(w, module ? module->raw : UNKNOWN);
    return all[frame];
}

static void put_frames(struct export_writer *w, uint64_t id, uint32_t node, bool is_sample)
{
    const struct call_tree *t = &w->chains.tree;
    for (uint64_t depth = 0; node && !w->error; depth++, node = call_tree_node(t, node)->parent) {
        uint32_t frame = call_tree_node(t, node)->frame;
        const struct shown_frame *f = frame ? shown_frame_of(&t->frames, frame) : NULL;
        struct frame_texts texts = texts_of(w, frame, f);
        (is_sample ? put_SAMPLE_CHAINS : put_OSRT_CHAINS)(w, id, &texts, f, depth);
    }
}

uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample)
{
    struct sqlite_chains *c = &w->chains;
    uint32_t node = 0;
    if (!stack || w->error)
        return 0;
    if (!c->has_tree) {
        c->has_tree = true;
        w->error = call_tree_init(&c->tree, &w->walk->survey, w->scope.options->symbols);
    }
    if (!w->error)
        (void)sqlite_ok(w, call_tree_stack(&c->tree, 0, p->index, stack, NULL, &node));
    if (w->error || !node)
        return 0;
    if (sample) {
        put_frames(w, sample, node, true);
        return sample;
    }
    struct key key = {node, 0, 0};
    if (key_map_get(&c->told, key))
        return node;
    int error = key_map_set(&c->told, key, 1);
    if (error == GPUPROF_LIMIT)
        return 0; /* it could not be told that it is there */
    if (sqlite_ok(w, error))
        put_frames(w, node, node, false);
    return node;
}
