/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, as flame graph tools read them: "outermost;...;innermost NUMBER", one line each.
 * A semicolon in a name becomes a colon, or it would end the name.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "flame/flame.h"

static void put_label(struct output *out, const char *label)
{
    char *to = output_room(out, SHOWN_LABEL_BYTES);
    for (; *label; label++)
        *to++ = *label == ';' ? ':' : *label;
    output_advance(out, to);
}

void flame_put_stack(const struct call_tree *tree, uint32_t node, uint32_t *path,
                     const uint64_t *numbers, unsigned number_count, struct output *out)
{
    uint32_t count = 0;
    for (uint32_t n = node; n; n = call_tree_node(tree, n)->parent)
        path[count++] = n;
    for (uint32_t i = count; i > 0; i--) {
        put_label(out, call_tree_frame(tree, path[i - 1])->label);
        if (i > 1)
            output_write(out, ";", 1);
    }
    for (unsigned i = 0; i < number_count; i++)
        output_print(out, " %llu", (unsigned long long)numbers[i]);
    output_write(out, "\n", 1);
}

int flame_write_folded(const struct flame *f, struct output *out)
{
    const struct call_tree *tree = &f->costs.tree;
    uint32_t *path = calloc(tree->count + 1u, sizeof *path);
    if (!path)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = flame_next(tree, f->nodes, 0); n && !out->error;
         n = flame_next(tree, f->nodes, n))
        if (f->nodes[n].own)
            flame_put_stack(tree, n, path, &f->nodes[n].own, 1, out);
    free(path);
    return 0;
}
