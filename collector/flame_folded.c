/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, as flame graph tools read them: "outermost;...;innermost NUMBER", one line each.
 * A semicolon in a name becomes a colon, or it would end the name. What has no stack is a line of
 * its own for each process, so that the numbers add up.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "flame.h"
#include "json_text.h"
#include "process_title.h"

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

static int put_stackless(const struct flame *f, struct output *out)
{
    char title[1024];
    for (uint32_t i = 0; i < f->costs.rec->count; i++) {
        uint64_t value = flame_value(f->weight, &f->costs.stackless[i]);
        if (!value)
            continue;
        process_title(f->costs.rec->processes[i], true, title, sizeof title);
        title[SHOWN_LABEL_BYTES - 1] = '\0';
        char *clean = json_clean(title, strlen(title));
        if (!clean)
            return GPUPROF_NO_MEMORY;
        clean[strcspn(clean, "\n\t")] = '\0';
        put_label(out, clean);
        free(clean);
        output_write(out, ";[no stack]", 11);
        put_number(out, value);
    }
    return 0;
}

int flame_write_folded(const struct flame *f, struct output *out)
{
    uint32_t *path = calloc(f->costs.tree.count + 1u, sizeof *path);
    if (!path)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = flame_next(f, 0); n && !out->error; n = flame_next(f, n)) {
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
    return put_stackless(f, out);
}
