/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto: all frames, and a sample per stack with all its costs, its frame numbers
 * from the innermost out. Processes and threads, to split by, are labels of the samples. Messages
 * may come in any order, so texts and modules are written at first use. Memory: the texts again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/key_map.h"
#include "base/memory.h"
#include "flame/flame.h"
#include "read/process.h"
#include "record/losses.h"
#include "trace/packet.h"

#define TITLE_BYTES 1024
#define LOST_BYTES  2048

/* Field numbers from profile.proto; put_fields writes messages whose fields count from 1 on. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION };
enum { PROFILE_FUNCTION = 5, PROFILE_TEXT, PROFILE_TIME = 9, PROFILE_DURATION };
enum { PROFILE_COMMENT = 13, PROFILE_DEFAULT_TYPE };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };

static const struct {
    const char *name, *unit;
} types[] = {
    {"calls", "count"},          {"host_time", "nanoseconds"},    {"gpu_work", "count"},
    {"gpu_time", "nanoseconds"}, {"allocated", "bytes"},          {"cpu_samples", "count"},
    {"cpu_time", "nanoseconds"}, {"off_cpu_time", "nanoseconds"},
};
#define TYPES        (sizeof types / sizeof types[0])
#define TYPES_PLAIN  5 /* without samples and waits */
#define TYPE_DEFAULT 1

struct pprof {
    const struct stack_costs *costs;
    struct output *out;
    struct packet packet;
    struct packet sample;
    struct kernel_names texts;  /* the string table; numbers are indexes + 1 */
    struct key_map mapping_ids; /* module -> id */
    unsigned type_count;        /* in `types` */
};

static void flush(struct pprof *p)
{
    output_write(p->out, (const char *)p->packet.bytes, p->packet.used);
    p->packet.used = 0;
}

/* Writes a message of the values of its fields 1 to `count`. */
static void put_fields(struct packet *packet, unsigned message, const uint64_t *values,
                       unsigned count)
{
    size_t opened = packet_open(packet, message);
    for (unsigned i = 0; i < count; i++)
        packet_number(packet, i + 1, values[i]);
    packet_close(packet, opened);
}

/* Returns a text's index in the string table; 0, the empty text, if there is no room. */
static uint64_t text_id(struct pprof *p, const char *text)
{
    char *clean = memory_from(json_clean(text, strlen(text)));
    uint32_t before = p->texts.count;
    const struct kernel_name *known = kernel_name_intern(&p->texts, clean, strlen(clean));
    if (p->texts.count > before)
        packet_bytes(&p->packet, PROFILE_TEXT, clean, strlen(clean));
    free(clean);
    return known ? known->number - 1 : 0;
}

/* Returns the id of a module, written at its first use; 0: no room. */
static uint64_t mapping_id_of(struct pprof *p, const struct kernel_name *module)
{
    const struct stack_table *table = &p->costs->walk->survey.stacks;
    const struct kernel_name *build_id = NULL;
    struct key key = {(uintptr_t)module, 0, 0};
    uint64_t id = key_map_get(&p->mapping_ids, key);
    if (id || key_map_set(&p->mapping_ids, key, p->mapping_ids.count + 1u) < 0)
        return id;
    id = p->mapping_ids.count;
    for (uint32_t i = 0; i < table->module_count && !build_id; i++)
        build_id = table->modules[i].path == module ? table->modules[i].build_id : NULL;
    /* No addresses; functions, files, lines and inlined frames need no lookup. */
    const uint64_t fields[] = {
        id, 0, 0, 0, text_id(p, module->raw), build_id ? text_id(p, build_id->raw) : 0, 1, 1, 1, 1};
    put_fields(&p->packet, PROFILE_MAPPING, fields, 10);
    return id;
}

/* Substitutes for a function show their label as name. */
static bool has_own_name(const struct shown_frame *f)
{
    return f->name && (f->kind <= SHOWN_PYTHON || f->kind == SHOWN_CALL || f->kind == SHOWN_WORK);
}

static void put_function(struct pprof *p, uint32_t number, const struct shown_frame *f)
{
    bool is_named = has_own_name(f);
    /* pprof demangles system names, and makes "" of "<module>". */
    bool is_mangled = is_named && strcmp(f->name->raw, f->name->shown) != 0;
    const uint64_t id_name_system_name_file[] = {
        number, text_id(p, is_named ? f->name->shown : f->label),
        is_mangled ? text_id(p, f->name->raw) : 0, f->file ? text_id(p, f->file->raw) : 0};
    put_fields(&p->packet, PROFILE_FUNCTION, id_name_system_name_file, 4);
}

static const char *label_key(const struct shown_frame *f)
{
    return f->kind == SHOWN_PROCESS ? "process" : f->kind == SHOWN_THREAD ? "thread" : NULL;
}

/* Locations and their functions have the frame's number. */
static void put_location(struct pprof *p, uint32_t number)
{
    const struct shown_frame *f = shown_frame_of(&p->costs->tree.frames, number);
    if (label_key(f))
        return;
    uint64_t mapping = f->module ? mapping_id_of(p, f->module) : 0;
    bool is_line = f->name || f->file;
    put_function(p, number, f);
    size_t opened = packet_open(&p->packet, PROFILE_LOCATION);
    packet_number(&p->packet, LOCATION_ID, number);
    packet_number(&p->packet, LOCATION_MAPPING, mapping);
    packet_number(&p->packet, LOCATION_ADDRESS, is_line ? 0 : f->line);
    const uint64_t function_line[] = {number, is_line ? f->line : 0};
    put_fields(&p->packet, LOCATION_LINE, function_line, 2);
    packet_close(&p->packet, opened);
}

static void put_sample(struct pprof *p, uint32_t node, const struct stack_cost *c)
{
    const struct call_tree *tree = &p->costs->tree;
    struct packet *sample = &p->sample;
    const uint64_t values[TYPES] = {c->calls, c->host_ns, c->works,  c->gpu_ns,
                                    c->bytes, c->samples, c->cpu_ns, c->waited_ns};
    for (size_t i = 0; i < p->type_count; i++)
        packet_number(sample, SAMPLE_VALUE, values[i]);
    for (uint32_t n = node; n; n = call_tree_node(tree, n)->parent) {
        const struct shown_frame *f = call_tree_frame(tree, n);
        if (!label_key(f)) {
            packet_number(sample, SAMPLE_LOCATION, call_tree_node(tree, n)->frame);
            continue;
        }
        const uint64_t key_text[] = {text_id(p, label_key(f)), text_id(p, f->label)};
        put_fields(sample, SAMPLE_LABEL, key_text, 2);
    }
    packet_bytes(&p->packet, PROFILE_SAMPLE, sample->bytes, sample->used);
    sample->used = 0;
}

/* Writes the types, the time and the losses. */
static void put_head(struct pprof *p)
{
    const struct walk *walk = p->costs->walk;
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    const struct recording *rec = p->costs->rec;
    char title[TITLE_BYTES], lost[LOST_BYTES], text[TITLE_BYTES + LOST_BYTES + 16];
    text_id(p, "");
    for (size_t i = 0; i < p->type_count; i++) {
        const uint64_t name_unit[] = {text_id(p, types[i].name), text_id(p, types[i].unit)};
        put_fields(&p->packet, PROFILE_SAMPLE_TYPE, name_unit, 2);
    }
    packet_number(&p->packet, PROFILE_DEFAULT_TYPE, text_id(p, types[TYPE_DEFAULT].name));
    for (uint32_t i = 0; i < rec->count; i++) {
        begin_ns = walk->first_ns[i] && walk->first_ns[i] < begin_ns ? walk->first_ns[i] : begin_ns;
        end_ns = walk->last_ns[i] > end_ns ? walk->last_ns[i] : end_ns;
    }
    if (end_ns >= begin_ns) {
        packet_number(&p->packet, PROFILE_TIME, begin_ns);
        packet_number(&p->packet, PROFILE_DURATION, end_ns - begin_ns);
    }
    packet_number(&p->packet, PROFILE_COMMENT, text_id(p, "gpuprof " GPUPROF_RELEASE));
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct losses *losses = &walk->losses[i];
        if (losses_weight(losses) == LOSS_NONE)
            continue;
        snprintf(text, sizeof text, "%s: lost: %s",
                 process_title(rec->processes[i], true, title, sizeof title),
                 losses_text(losses, lost, sizeof lost));
        packet_number(&p->packet, PROFILE_COMMENT, text_id(p, text));
    }
}

void flame_write_pprof(const struct flame *f, struct output *out)
{
    const struct stack_costs *costs = f->costs;
    struct pprof p = {.costs = costs,
                      .out = out,
                      .texts = {.plain = true, .text_max = STRING_TABLE_BYTES},
                      .type_count = stack_costs_has_host(costs) ? TYPES : TYPES_PLAIN};
    put_head(&p);
    for (uint32_t i = 1; i <= costs->tree.frames.count; i++) {
        put_location(&p, i);
        flush(&p);
    }
    for (uint32_t n = 1; n <= costs->tree.count && !out->error; n++) {
        struct stack_cost cost = stack_cost_of(costs, n);
        if (cost.calls || cost.works || cost.samples || cost.waits)
            put_sample(&p, n, &cost);
        flush(&p);
    }
    packet_release(&p.packet);
    packet_release(&p.sample);
    kernel_names_release(&p.texts);
    key_map_release(&p.mapping_ids);
}
