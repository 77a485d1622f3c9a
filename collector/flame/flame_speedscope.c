/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): a sampled profile
 * per process, with a sample per stack weighted by its number.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "flame/flame.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void put_text(struct output *out, const char *text)
{
    output_write(out, text, strlen(text));
}

/* Writes the frames in use; sets places[number] to each one's index, and *count. */
static void put_frames(const struct flame *f, struct output *out, uint32_t *places, uint32_t *count)
{
    for (uint32_t n = flame_next(f, 0); n && !out->error; n = flame_next(f, n)) {
        uint32_t number = call_tree_node(f->tree, n)->frame;
        const struct shown_frame *frame = call_tree_frame(f->tree, n);
        if (places[number] || frame->kind == SHOWN_PROCESS)
            continue;
        put_text(out, *count ? ",\n{\"name\":" : "\n{\"name\":");
        put_text(out, frame->json);
        if (frame->file)
            output_json(out, ",\"file\":", frame->file->raw);
        if (frame->file && frame->name && frame->line)
            output_print(out, ",\"line\":%llu", (unsigned long long)frame->line);
        put_text(out, "}");
        places[number] = ++*count;
    }
}

/* Returns the next node of the profile, 0 at its end. */
static uint32_t next_below(const struct flame *f, uint32_t root, uint32_t node)
{
    uint32_t next = flame_next(f, node);
    return next == f->nodes[root].sibling ? 0 : next;
}

static void put_samples(const struct flame *f, struct output *out, uint32_t root,
                        const uint32_t *places, uint32_t *way)
{
    const char *separator = "\n[";
    for (uint32_t n = root; n && !out->error; n = next_below(f, root, n)) {
        if (!f->nodes[n].own[FLAME_NOW])
            continue;
        put_text(out, separator);
        uint32_t count = 0;
        for (uint32_t at = n; at != root; at = call_tree_node(f->tree, at)->parent)
            way[count++] = call_tree_node(f->tree, at)->frame;
        for (; count; count--)
            output_print(out, count > 1 ? "%u," : "%u", places[way[count - 1]] - 1);
        put_text(out, "]");
        separator = ",\n[";
    }
}

static void put_profile(const struct flame *f, struct output *out, uint32_t root,
                        const uint32_t *places, uint32_t *way)
{
    put_text(out, "{\"type\":\"sampled\",\"name\":");
    put_text(out, call_tree_frame(f->tree, root)->json);
    put_text(out, ",\"unit\":\"");
    put_text(out, flame_weights[f->weight].unit);
    output_print(out, "\",\"startValue\":0,\"endValue\":%llu,\"samples\":[",
                 (unsigned long long)f->nodes[root].total[FLAME_NOW]);
    put_samples(f, out, root, places, way);
    put_text(out, "],\"weights\":[");
    const char *separator = "";
    for (uint32_t n = root; n; n = next_below(f, root, n)) {
        if (!f->nodes[n].own[FLAME_NOW])
            continue;
        output_print(out, "%s%llu", separator, (unsigned long long)f->nodes[n].own[FLAME_NOW]);
        separator = ",";
    }
    put_text(out, "]}");
}

int flame_write_speedscope(const struct flame *f, struct output *out)
{
    char text[2 * FLAME_TEXT_BYTES];
    uint32_t *places = calloc(f->tree->frames.count + 1u, sizeof *places);
    uint32_t *way = calloc(f->tree->count + 1u, sizeof *way), frames = 0;
    const char *separator = "\n";
    int error = places && way ? 0 : GPUPROF_NO_MEMORY;
    if (error < 0)
        goto done;
    snprintf(text, sizeof text, "%s (%s)", flame_weights[f->weight].text, f->note);
    output_json(out,
                "{\"$schema\":\"" SCHEMA "\",\n\"exporter\":\"gpuprof@" GPUPROF_RELEASE
                "\",\n\"name\":",
                text);
    put_text(out, ",\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
    put_frames(f, out, places, &frames);
    put_text(out, "]},\n\"profiles\":[");
    for (uint32_t root = f->nodes[0].first_child; root; root = f->nodes[root].sibling) {
        put_text(out, separator);
        put_profile(f, out, root, places, way);
        separator = ",\n";
    }
    put_text(out, "]}\n");
done:
    free(places);
    free(way);
    return error;
}
