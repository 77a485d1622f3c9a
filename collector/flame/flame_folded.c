/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, as flame graph tools read them: "outermost;...;innermost NUMBER", one line each.
 * A semicolon in a name becomes a colon, or it would end the name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "flame/flame.h"

static void put_label(struct output *out, const char *label)
{
    char *to = output_room(out, SHOWN_LABEL_BYTES);
    for (; *label; label++)
        *to++ = *label == ';' ? ':' : *label;
    output_advance(out, to);
}

static void put_number(struct output *out, uint64_t number)
{
    char *to = output_room(out, JSON_DECIMAL_MAX + 2);
    *to++ = ' ';
    to = json_decimal(to, number);
    *to++ = '\n';
    output_advance(out, to);
}

/* The nodes from `node` to its root into `path`; their number. */
static uint32_t path_from(const struct flame *f, uint32_t node, uint32_t *path)
{
    uint32_t count = 0;
    for (; node; node = call_tree_node(&f->costs.tree, node)->parent)
        path[count++] = node;
    return count;
}

int flame_write_folded(const struct flame *f, struct output *out)
{
    uint32_t *path = calloc(f->costs.tree.count + 1u, sizeof *path);
    if (!path)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = flame_next(&f->costs.tree, f->nodes, 0); n && !out->error;
         n = flame_next(&f->costs.tree, f->nodes, n)) {
        if (!f->nodes[n].own)
            continue;
        for (uint32_t i = path_from(f, n, path); i > 0; i--) {
            put_label(out, flame_frame(f, path[i - 1])->label);
            if (i > 1)
                output_write(out, ";", 1);
        }
        put_number(out, f->nodes[n].own);
    }
    free(path);
    return 0;
}
