/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/message.h"
#include "base/text.h"
#include "error.h"
#include "output/output.h"
#include "rank.h"

static void snapshot_release(struct snapshot *s)
{
    for (unsigned i = 0; i < SNAPSHOT_DEVICES_MAX; i++) {
        spool_release(&s->devices[i].items);
        mappings_release(&s->devices[i].segments);
        free(s->devices[i].used);
    }
    free(s->layout.list);
    ledger_release(&s->ledger);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Sets `row` of the block to a new segment's number, by which blocks find it; 0 beyond the maximum.
 * 0 or GPUPROF_NO_MEMORY. */
static int add_segment(struct snapshot_device *d, struct ledger_block *b)
{
    b->row = 0;
    if (d->segment_count >= SNAPSHOT_SEGMENTS_MAX)
        return 0;
    bool *used = array_reach(d->used, &d->used_count, d->segment_count + 1, sizeof *used);
    if (!used)
        return GPUPROF_NO_MEMORY;
    d->used = used;
    b->row = ++d->segment_count;
    struct mapping segment = {.address = b->address, .bytes = b->bytes, .to = b->row};
    int error = mappings_add(&d->segments, &segment);
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* Marks the segment of a block of PyTorch's allocator as used. False: it lies in none. */
static bool use_segment(struct snapshot *s, struct snapshot_device *d, const struct ledger_block *b)
{
    const struct mapping *segment = mappings_find(&d->segments, b->address, 1);
    const struct mapping *map =
        mappings_find(&s->ledger.mappings[b->process->index], b->address, 1);
    bool is_mapped = map && map->to;
    if (segment)
        d->used[segment->to] = true;
    d->maps_blocks |= is_mapped;
    return segment || is_mapped;
}

/* ---- actions --------------------------------------------------------------------------------- */

static int snapshot_note(struct snapshot_device *d, const struct ledger_block *b, uint64_t at_ns,
                         uint32_t segment, enum snapshot_action action)
{
    struct snapshot_item item = {.address = b->address,
                                 .bytes = b->bytes,
                                 .at_ns = at_ns,
                                 .origin = b->owner,
                                 .segment = segment,
                                 .action = (uint8_t)action};
    d->is_used = true;
    return spool_append(&d->items, &item);
}

static bool is_shown(const struct ledger_block *b)
{
    return b->kind != LEDGER_ARRAY && b->kind != LEDGER_PHYSICAL;
}

/* Sets `row` to the segment's number; for a block of PyTorch's allocator, to whether it lies in a
 * segment. If not, it is its own. */
static int snapshot_got(struct snapshot *s, struct snapshot_device *d, struct ledger_block *b)
{
    if (b->kind != LEDGER_TENSOR) {
        int error = add_segment(d, b);
        return error < 0 ? error : snapshot_note(d, b, b->begin_ns, b->row, SNAPSHOT_SEGMENT_GOT);
    }
    d->has_blocks = true;
    b->row = use_segment(s, d, b);
    return snapshot_note(d, b, b->begin_ns, 0, b->row ? SNAPSHOT_BLOCK_GOT : SNAPSHOT_SEGMENT_GOT);
}

static int snapshot_gone(struct snapshot_device *d, const struct ledger_block *b, uint64_t at_ns)
{
    if (b->kind == LEDGER_TENSOR)
        return snapshot_note(d, b, at_ns, 0, b->row ? SNAPSHOT_BLOCK_GONE : SNAPSHOT_SEGMENT_GONE);
    const struct mapping *segment = mappings_find(&d->segments, b->address, 1);
    if (segment && segment->to == b->row)
        mappings_remove(&d->segments, segment);
    return snapshot_note(d, b, at_ns, b->row, SNAPSHOT_SEGMENT_GONE);
}

static int snapshot_change(void *context, enum ledger_change change, struct ledger_block *b,
                           uint64_t at_ns)
{
    struct snapshot *s = context;
    struct snapshot_device *d = snapshot_device(s, b->device);
    if (b->is_host)
        return 0;
    switch (change) {
    case LEDGER_GOT: return is_shown(b) ? snapshot_got(s, d, b) : 0;
    case LEDGER_GONE: return is_shown(b) ? snapshot_gone(d, b, at_ns) : 0;
    case LEDGER_MAPPED: return snapshot_note(d, b, at_ns, 0, SNAPSHOT_MAPPED);
    case LEDGER_UNMAPPED: return snapshot_note(d, b, at_ns, 0, SNAPSHOT_UNMAPPED);
    case LEDGER_FAILED:
        b->address = d->free;
        return snapshot_note(d, b, at_ns, 0,
                             b->kind == LEDGER_TENSOR ? SNAPSHOT_OOM : SNAPSHOT_REFUSED);
    case LEDGER_ASKED:
        d->free = b->bytes;
        d->is_used = true;
        break;
    }
    return 0;
}

static int snapshot_owner(void *context, const struct slice *slice, unsigned kind, uint32_t *number)
{
    return memory_origin_of(((struct snapshot *)context)->report, slice, kind, number);
}

/* Reads the events of `process`, after memory_report_learn. 0, or an error after one line on
 * stderr; call snapshot_release in both cases. */
static int snapshot_make(struct snapshot *s, struct memory_report *m, const struct process *process)
{
    const struct ledger_user user = {
        .context = s, .change = snapshot_change, .owner = snapshot_owner};
    *s = (struct snapshot){.report = m, .process = process};
    for (unsigned i = 0; i < SNAPSHOT_DEVICES_MAX; i++)
        spool_init(&s->devices[i].items, sizeof(struct snapshot_item));
    int error = ledger_init(&s->ledger, &m->walk, &user);
    if (error == 0) {
        s->ledger.until_ns = m->times.asked_ns == UINT64_MAX ? 0 : m->times.asked_ns;
        struct consumer consumers[] = {ledger_consumer(&s->ledger)};
        consumers[0].needs |= WALK_SPANS;
        error = walk_run(&m->walk, process, consumers, 1);
        if (error < 0)
            return error;
        error = ledger_layout_make(&s->layout, &s->ledger, process);
    }
    say_error("memory", error);
    return error;
}

/* ---- gpuprof memory -o x.pickle -------------------------------------------------------------- */

static bool shares_rank(const struct memory_report *m, const struct process *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->process_count; i++)
        count += m->processes[i].gets_memory && m->processes[i].process->rank == p->rank;
    return count > 1;
}

/* "x.pickle" becomes "x_rank3.pickle". New text; NULL if out of memory. */
static char *file_of(const struct memory_report *m, const struct process *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *ending = strchr(name + 1, '.');
    int stem = (int)(ending ? ending - path : (long)strlen(path));
    bool has_rank = p->rank != RANK_NONE && !shares_rank(m, p);
    return text_printf("%.*s_%s%llu%s", stem, path, has_rank ? "rank" : "pid",
                       has_rank ? (unsigned long long)p->rank : p->shown_pid, path + stem);
}

static enum exit_code write_one(struct memory_report *m, const struct process *p, const char *path)
{
    struct snapshot s;
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(m->rec));
    enum exit_code code = EXIT_ENVIRONMENT;
    if (snapshot_make(&s, m, p) == 0)
        code = verb_output_open(&out, path, &room);
    if (code == EXIT_OK) {
        int error = snapshot_write(&s, &out);
        say_error("memory", error);
        code = verb_output_close(&out, path, error);
    }
    snapshot_release(&s);
    return code;
}

static enum exit_code snapshot_write_all(struct memory_report *m, const char *output)
{
    uint32_t count = 0;
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; i < m->process_count; i++)
        count += m->processes[i].gets_memory;
    if (!count)
        message("memory: no allocation was recorded, so %s is not written", output);
    for (uint32_t i = 0; code == EXIT_OK && i < m->process_count; i++) {
        const struct process *p = m->processes[i].process;
        if (!m->processes[i].gets_memory)
            continue;
        char *path = count == 1 ? strdup(output) : file_of(m, p, output);
        code = path ? write_one(m, p, path) : verb_output_failed(output, GPUPROF_NO_MEMORY);
        free(path);
    }
    return count ? code : EXIT_ENVIRONMENT;
}

enum exit_code snapshot_files(struct recording *rec, const struct options *options,
                              double at_seconds)
{
    struct memory_report m;
    struct memory_request request = {.by = MEMORY_BY_STACK, .at_seconds = at_seconds};
    enum exit_code code = EXIT_ENVIRONMENT;
    if (memory_report_learn(&m, rec, &request) == 0) {
        m.has_tree = true;
        code = call_tree_init(&m.tree, &m.walk.survey, NULL, options->symbols) == 0
                   ? memory_check_moment(&m)
                   : verb_output_failed(options->output, GPUPROF_NO_MEMORY);
        if (code == EXIT_OK)
            code = snapshot_write_all(&m, options->output);
    }
    if (code == EXIT_OK)
        code = walk_verdict(&m.walk, options->strict);
    memory_report_release(&m);
    return code;
}
