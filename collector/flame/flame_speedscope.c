/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): a sampled profile
 * per process, with a sample per stack weighted by its number. If the host was sampled or its waits
 * recorded, more profiles follow.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "flame/flame.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void flame_speedscope_put_text(struct output *out, const char *text)
{
    output_write(out, text, strlen(text));
}

/* Writes the frames in use; sets places[number] to each one's index, and *count. */
static void flame_speedscope_put_frames(const struct flame *f, struct output *out, uint32_t *places,
                                        uint32_t *count)
{
    for (uint32_t n = flame_next(&f->costs.tree, f->nodes, 0); n && !out->error;
         n = flame_next(&f->costs.tree, f->nodes, n)) {
        uint32_t number = call_tree_node(&f->costs.tree, n)->frame;
        const struct shown_frame *frame = call_tree_frame(&f->costs.tree, n);
        if (places[number] || frame->kind == SHOWN_PROCESS)
            continue;
        flame_speedscope_put_text(out, *count ? ",\n{\"name\":" : "\n{\"name\":");
        flame_speedscope_put_text(out, frame->json);
        if (frame->file)
            output_json(out, ",\"file\":", frame->file->raw);
        if (frame->file && frame->name && frame->line)
            output_print(out, ",\"line\":%llu", (unsigned long long)frame->line);
        flame_speedscope_put_text(out, "}");
        places[number] = ++*count;
    }
}

/* If `node` is below the process's node `root`, writes the path from there, innermost first, and
 * returns its length. */
static uint32_t way_from(const struct flame *f, uint32_t root, uint32_t node, uint32_t *way)
{
    uint32_t count = 0;
    for (; node && node != root; node = call_tree_node(&f->costs.tree, node)->parent)
        way[count++] = call_tree_node(&f->costs.tree, node)->frame;
    return node ? count : 0;
}

/* Returns the next node of the profile, 0 at its end. */
static uint32_t next_below(const struct flame *f, uint32_t root, uint32_t node)
{
    uint32_t next = flame_next(&f->costs.tree, f->nodes, node);
    return next == f->nodes[root].sibling ? 0 : next;
}

static void put_samples(const struct flame *f, struct output *out, uint32_t root,
                        const uint32_t *places, uint32_t *way)
{
    const char *separator = "\n[";
    for (uint32_t n = root; n && !out->error; n = next_below(f, root, n)) {
        if (!f->nodes[n].own)
            continue;
        flame_speedscope_put_text(out, separator);
        for (uint32_t i = way_from(f, root, n, way); i > 0; i--) {
            output_print(out, i > 1 ? "%u," : "%u", places[way[i - 1]] - 1);
        }
        flame_speedscope_put_text(out, "]");
        separator = ",\n[";
    }
}

/* The title of a further profile of a process includes its weight. */
static void put_title(const struct flame *f, struct output *out, uint32_t root, bool is_further)
{
    const struct shown_frame *frame = call_tree_frame(&f->costs.tree, root);
    char text[SHOWN_LABEL_BYTES + 64];
    snprintf(text, sizeof text, "%s: %s", frame->label, flame_weight_text(f->weight));
    if (is_further)
        output_json(out, "", text);
    else
        flame_speedscope_put_text(out, frame->json);
}

static void put_profile(const struct flame *f, struct output *out, uint32_t root, bool is_further,
                        const uint32_t *places, uint32_t *way)
{
    static const char *const units[] = {
        [WEIGHT_HOST] = "nanoseconds", [WEIGHT_GPU] = "nanoseconds",
        [WEIGHT_CALLS] = "none",       [WEIGHT_BYTES] = "bytes",
        [WEIGHT_CPU] = "nanoseconds",  [WEIGHT_OFF_CPU] = "nanoseconds",
        [WEIGHT_WALL] = "nanoseconds"};
    flame_speedscope_put_text(out, "{\"type\":\"sampled\",\"name\":");
    put_title(f, out, root, is_further);
    flame_speedscope_put_text(out, ",\"unit\":\"");
    flame_speedscope_put_text(out, units[f->weight]);
    output_print(out, "\",\"startValue\":0,\"endValue\":%llu,\"samples\":[",
                 (unsigned long long)f->nodes[root].total);
    put_samples(f, out, root, places, way);
    flame_speedscope_put_text(out, "],\"weights\":[");
    const char *separator = "";
    for (uint32_t n = root; n; n = next_below(f, root, n)) {
        if (!f->nodes[n].own)
            continue;
        output_print(out, "%s%llu", separator, (unsigned long long)f->nodes[n].own);
        separator = ",";
    }
    flame_speedscope_put_text(out, "]}");
}

/* Further profiles if stacks have such costs: CPU time and time off the CPU. */
enum { GRAPHS = 3 };

static int weigh_others(const struct flame *f, struct flame graphs[GRAPHS])
{
    static const enum flame_weight others[GRAPHS] = {WEIGHT_HOST, WEIGHT_CPU, WEIGHT_OFF_CPU};
    bool has_others = f->weight < WEIGHT_CPU && stack_costs_has_host(&f->costs);
    int error = 0;
    for (unsigned i = 0; i < GRAPHS; i++) {
        graphs[i] = *f;
        graphs[i].nodes = i ? NULL : f->nodes;
        if (i && has_others && error == 0)
            error = flame_weigh(&graphs[i], others[i]);
    }
    return error;
}

int flame_write_speedscope(const struct flame *f, struct output *out)
{
    char text[2 * FLAME_NOTE_BYTES], note[FLAME_NOTE_BYTES];
    struct stack_cost without = stack_costs_without(&f->costs);
    uint32_t *places = calloc(f->costs.tree.frames.count + 1u, sizeof *places);
    uint32_t *way = calloc(f->costs.tree.count + 1u, sizeof *way), frames = 0;
    struct flame graphs[GRAPHS];
    const char *separator = "\n";
    int error = weigh_others(f, graphs);
    if (!places || !way || error < 0) {
        error = GPUPROF_NO_MEMORY;
        goto done;
    }
    snprintf(text, sizeof text, "%s (%s)", flame_weight_text(f->weight),
             flame_note(f, &without, note));
    output_json(out,
                "{\"$schema\":\"" SCHEMA "\",\n\"exporter\":\"gpuprof@" GPUPROF_RELEASE
                "\",\n\"name\":",
                text);
    flame_speedscope_put_text(out, ",\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
    for (unsigned i = 0; i < GRAPHS && graphs[i].nodes; i++)
        flame_speedscope_put_frames(&graphs[i], out, places, &frames);
    flame_speedscope_put_text(out, "]},\n\"profiles\":[");
    for (unsigned i = 0; i < GRAPHS && graphs[i].nodes; i++)
        for (uint32_t root = graphs[i].nodes[0].first_child; root;
             root = graphs[i].nodes[root].sibling) {
            flame_speedscope_put_text(out, separator);
            put_profile(&graphs[i], out, root, i > 0, places, way);
            separator = ",\n";
        }
    flame_speedscope_put_text(out, "]}\n");
done:
    for (unsigned i = 1; i < GRAPHS; i++)
        free(graphs[i].nodes);
    free(places);
    free(way);
    return error;
}
