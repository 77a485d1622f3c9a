/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): a sampled profile
 * per process, with a sample per stack weighted by its number.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json_text.h"
#include "error.h"
#include "flame/flame.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* Writes the frames in use; sets places[number] to each one's index + 1. */
static void put_frames(const struct flame *f, FILE *out, uint32_t *places)
{
    uint32_t count = 0;
    for (uint32_t n = flame_next(f, 0); n; n = flame_next(f, n)) {
        uint32_t number = call_tree_node(f->tree, n)->frame;
        const struct shown_frame *frame = call_tree_frame(f->tree, n);
        if (places[number] || frame->kind == SHOWN_PROCESS)
            continue;
        json_printf(out, count ? ",\n{\"name\":%s" : "\n{\"name\":%s", frame->label);
        if (frame->file)
            json_printf(out, ",\"file\":%s", frame->file->shown);
        if (frame->file && frame->name && frame->line)
            fprintf(out, ",\"line\":%" PRIu64, frame->line);
        fputs("}", out);
        places[number] = ++count;
    }
}

/* Returns the next node of the profile that has a number of its own, 0 at its end. */
static uint32_t next_own(const struct flame *f, uint32_t root, uint32_t node)
{
    do
        node = flame_next(f, node);
    while (node != f->nodes[root].sibling && !f->nodes[node].own[FLAME_NOW]);
    return node == f->nodes[root].sibling ? 0 : node;
}

static void put_stack(const struct flame *f, FILE *out, uint32_t root, uint32_t node,
                      const uint32_t *places, uint32_t *way)
{
    uint32_t count = 0;
    for (uint32_t at = node; at != root; at = call_tree_node(f->tree, at)->parent)
        way[count++] = call_tree_node(f->tree, at)->frame;
    for (; count; count--)
        fprintf(out, count > 1 ? "%u," : "%u", places[way[count - 1]] - 1);
}

static void put_profile(const struct flame *f, FILE *out, uint32_t root, const uint32_t *places,
                        uint32_t *way)
{
    uint32_t first = f->nodes[root].own[FLAME_NOW] ? root : next_own(f, root, root);
    json_printf(
        out,
        "{\"type\":\"sampled\",\"name\":%s,\"unit\":%s,\"startValue\":0,\"endValue\":%" PRIu64
        ",\"samples\":[",
        call_tree_frame(f->tree, root)->label, flame_weights[f->weight].unit,
        f->nodes[root].total[FLAME_NOW]);
    for (uint32_t n = first; n; n = next_own(f, root, n)) {
        fputs(n == first ? "\n[" : ",\n[", out);
        put_stack(f, out, root, n, places, way);
        fputs("]", out);
    }
    fputs("],\"weights\":[", out);
    for (uint32_t n = first; n; n = next_own(f, root, n))
        fprintf(out, n == first ? "%" PRIu64 : ",%" PRIu64, f->nodes[n].own[FLAME_NOW]);
    fputs("]}", out);
}

int flame_write_speedscope(const struct flame *f, struct output *output)
{
    FILE *out = output->stream;
    char text[2 * FLAME_TEXT_BYTES];
    uint32_t *places = calloc(f->tree->frames.count + 1u, sizeof *places);
    uint32_t *way = calloc(f->tree->count + 1u, sizeof *way), first = f->nodes[0].first_child;
    bool is_whole = places && way;
    snprintf(text, sizeof text, "%s (%s)", flame_weights[f->weight].text, f->note);
    json_printf(out,
                "{\"$schema\":\"" SCHEMA "\",\n\"exporter\":\"gpuprof@" GPUPROF_RELEASE
                "\",\n\"name\":%s,\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[",
                text);
    if (is_whole)
        put_frames(f, out, places);
    fputs("]},\n\"profiles\":[", out);
    for (uint32_t root = first; is_whole && root; root = f->nodes[root].sibling) {
        fputs(root == first ? "\n" : ",\n", out);
        put_profile(f, out, root, places, way);
    }
    fputs("]}\n", out);
    free(places);
    free(way);
    return is_whole ? 0 : GPUPROF_NO_MEMORY;
}
