/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
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

/* Sets `row` of the block to a new segment's number, by which blocks find it; 0 beyond the
 * maximum. */
static void add_segment(struct snapshot_device *d, struct ledger_block *b)
{
    b->row = 0;
    if (d->segment_count >= SNAPSHOT_SEGMENTS_MAX)
        return;
    d->used = array_reach(d->used, &d->used_count, d->segment_count + 1, sizeof *d->used);
    b->row = ++d->segment_count;
    struct mapping segment = {.address = b->address, .bytes = b->bytes, .to = b->row};
    if (mappings_add(&d->segments, &segment) == GPUPROF_NO_MEMORY)
        memory_missing();
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

static void snapshot_note(struct snapshot *s, const struct ledger_block *b, uint64_t at_ns,
                          uint32_t segment, enum snapshot_action action)
{
    struct snapshot_item item = {.address = b->address,
                                 .bytes = b->bytes,
                                 .at_ns = at_ns,
                                 .origin = b->owner,
                                 .segment = segment,
                                 .action = (uint8_t)action};
    struct snapshot_device *d = snapshot_device(s, b->device);
    int error = spool_append(&d->items, &item);
    d->is_used = true;
    s->error = error < 0 ? error : s->error;
}

static bool is_shown(const struct ledger_block *b)
{
    return b->kind != LEDGER_ARRAY && b->kind != LEDGER_PHYSICAL;
}

/* Sets `row` to the segment's number; for a block of PyTorch's allocator, to whether it lies in a
 * segment. If not, it is its own. */
static void snapshot_got(struct snapshot *s, struct snapshot_device *d, struct ledger_block *b)
{
    enum snapshot_action action = SNAPSHOT_SEGMENT_GOT;
    if (b->kind != LEDGER_TENSOR) {
        add_segment(d, b);
    } else {
        d->has_blocks = true;
        b->row = use_segment(s, d, b);
        action = b->row ? SNAPSHOT_BLOCK_GOT : SNAPSHOT_SEGMENT_GOT;
    }
    snapshot_note(s, b, b->begin_ns, b->kind != LEDGER_TENSOR ? b->row : 0, action);
}

static void snapshot_gone(struct snapshot *s, struct snapshot_device *d,
                          const struct ledger_block *b, uint64_t at_ns)
{
    const struct mapping *segment =
        b->kind == LEDGER_TENSOR ? NULL : mappings_find(&d->segments, b->address, 1);
    if (segment && segment->to == b->row)
        mappings_remove(&d->segments, segment);
    if (b->kind == LEDGER_TENSOR)
        snapshot_note(s, b, at_ns, 0, b->row ? SNAPSHOT_BLOCK_GONE : SNAPSHOT_SEGMENT_GONE);
    else
        snapshot_note(s, b, at_ns, b->row, SNAPSHOT_SEGMENT_GONE);
}

static void snapshot_change(void *context, enum ledger_change change, struct ledger_block *b,
                            uint64_t at_ns)
{
    struct snapshot *s = context;
    struct snapshot_device *d = snapshot_device(s, b->device);
    if (b->is_host)
        return;
    if (change == LEDGER_GOT && is_shown(b)) {
        snapshot_got(s, d, b);
    } else if (change == LEDGER_GONE && is_shown(b)) {
        snapshot_gone(s, d, b, at_ns);
    } else if (change == LEDGER_MAPPED || change == LEDGER_UNMAPPED) {
        snapshot_note(s, b, at_ns, 0,
                      change == LEDGER_MAPPED ? SNAPSHOT_MAPPED : SNAPSHOT_UNMAPPED);
    } else if (change == LEDGER_FAILED) {
        b->address = d->free;
        snapshot_note(s, b, at_ns, 0, b->kind == LEDGER_TENSOR ? SNAPSHOT_OOM : SNAPSHOT_REFUSED);
    } else if (change == LEDGER_ASKED) {
        d->free = b->bytes;
        d->is_used = true;
    }
}

static void snapshot_owner(void *context, const struct slice *slice, unsigned kind,
                           uint32_t *number)
{
    memory_origin_of(((struct snapshot *)context)->report, slice, kind, number);
}

/* Reads the events of `process`, after its first walk. 0, or an error after one line on
 * stderr; call snapshot_release in both cases. */
static int snapshot_make(struct snapshot *s, struct memory_report *m, const struct process *process)
{
    const struct ledger_user user = {
        .context = s, .change = snapshot_change, .owner = snapshot_owner};
    *s = (struct snapshot){.report = m, .process = process};
    for (unsigned i = 0; i < SNAPSHOT_DEVICES_MAX; i++)
        spool_init(&s->devices[i].items, sizeof(struct snapshot_item));
    ledger_init(&s->ledger, &m->walk, &user);
    s->ledger.until_ns = m->times.asked_ns == UINT64_MAX ? 0 : m->times.asked_ns;
    struct consumer consumers[] = {ledger_consumer(&s->ledger)};
    consumers[0].needs |= WALK_SPANS;
    int error = walk_run(&m->walk, process, consumers, 1);
    if (error < 0)
        return error;
    ledger_layout_make(&s->layout, &s->ledger, process);
    say_error("memory", s->error);
    return s->error;
}

/* ---- gpuprof memory -o x.pickle -------------------------------------------------------------- */

/* "x.pickle" becomes "x_rank3.pickle", or with the pid if other processes have that rank. New text;
 * NULL if out of memory. */
static char *file_of(const struct memory_report *m, const struct process *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *ending = strchr(name + 1, '.');
    int stem = (int)(ending ? ending - path : (long)strlen(path));
    uint32_t alike = 0;
    for (uint32_t i = 0; i < m->process_count; i++)
        alike += m->processes[i].gets_memory && m->processes[i].process->rank == p->rank;
    bool has_rank = p->rank != RANK_NONE && alike == 1;
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
    const struct memory_request request = {
        .by = MEMORY_BY_STACK, .at_seconds = at_seconds, .learns_only = true};
    int error;
    struct memory_report *m = memory_report_create(rec, &request, options->symbols, &error);
    if (!m)
        return EXIT_ENVIRONMENT;
    enum exit_code code = memory_check_moment(m);
    if (code == EXIT_OK)
        code = snapshot_write_all(m, options->output);
    if (code == EXIT_OK)
        code = walk_verdict(&m->walk, options->strict);
    memory_report_free(m);
    return code;
}
