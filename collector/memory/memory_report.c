/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_report.h"

#include <math.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "record/gpu_record.h"
#include "resolve/call_tree.h"

void memory_report_free(struct memory_report *m)
{
    if (!m)
        return;
    if (m->has_tree)
        call_tree_release(&m->tree);
    free(m->rows.list);
    for (uint32_t i = 0; i < m->places.count; i++) {
        free(m->places.list[i].curve.list);
        free(m->places.list[i].marks.list);
    }
    free(m->places.list);
    free(m->owners.list);
    free(m->origins.list);
    free(m->jumps.list);
    free(m->processes);
    free(m->ranges.rows);
    number_set_release(&m->ranges.numbers);
    number_set_release(&m->origins.numbers);
    number_set_release(&m->owners.numbers);
    key_map_release(&m->origins.of_stacks);
    key_map_release(&m->places.numbers);
    ledger_release(&m->ledger);
    steps_release(&m->steps);
    walk_release(&m->walk);
    free(m);
}

uint64_t memory_slice_ns(const struct memory_report *m, const struct process *p)
{
    const struct memory_process *own = &m->processes[p->index];
    return own->last_ns > own->first_ns ? (own->last_ns - own->first_ns) / MEMORY_SLICES : 0;
}

/* ---- places and owners ----------------------------------------------------------------------- */

enum memory_where memory_where_of(const struct ledger_block *b)
{
    return b->kind == LEDGER_TENSOR ? MEMORY_OF_TENSORS
           : b->is_host             ? MEMORY_OF_HOST
                                    : MEMORY_OF_DEVICE;
}

static struct key place_key(const struct process *p, uint32_t device, enum memory_where where)
{
    return (struct key){p->index, where == MEMORY_OF_HOST ? LEDGER_NO_DEVICE : device, where};
}

struct memory_place *memory_place_find(const struct memory_report *m, const struct process *p,
                                       uint32_t device, enum memory_where where)
{
    uint64_t number = key_map_get(&m->places.numbers, place_key(p, device, where));
    return number ? &m->places.list[number - 1] : NULL;
}

/* The number of the place, from 1 on; 0 if there is no room. */
static uint32_t memory_report_place_of(struct memory_report *m, const struct process *process,
                                       uint32_t device, enum memory_where where)
{
    struct key key = place_key(process, device, where);
    uint32_t before = m->places.count;
    uint32_t number = KEY_MAP_ITEM(&m->places.numbers, key, m->places.list, m->places.count,
                                   MEMORY_PLACES_MAX, NULL);
    if (m->places.count == before)
        return number;
    struct memory_place *p = &m->places.list[before];
    p->process = process;
    p->device = (uint32_t)key.b;
    p->where = where;
    p->said =
        (struct memory_said){{MEMORY_UNKNOWN, MEMORY_UNKNOWN}, MEMORY_UNKNOWN, MEMORY_UNKNOWN};
    const struct surveyed_device *about = survey_device(&m->walk.survey, process, device);
    p->total = where == MEMORY_OF_DEVICE && about ? about->limits.memory : 0;
    p->marks.count = memory_has_steps(m, process)      ? m->processes[process->index].step_count
                     : memory_slice_ns(m, process) > 0 ? MEMORY_SLICES
                                                       : 0;
    if (p->marks.count > m->places.marks_left)
        p->marks.count = 0;
    m->places.marks_left -= p->marks.count;
    p->marks.list = memory_new(p->marks.count, sizeof *p->marks.list);
    p->curve.list = memory_new(MEMORY_CURVE, sizeof *p->curve.list);
    p->curve.count = MEMORY_CURVE;
    p->in_ranges.next = m->processes[process->index].ranges.first_place;
    m->processes[process->index].ranges.first_place = before + 1;
    return number;
}

/* The number of the owner, from 1 on; beyond the maximum the place's "everything else". */
static uint32_t owner_of(struct memory_report *m, uint32_t origin, uint32_t place)
{
    static const struct number_kind kind = NUMBER_KEY(struct memory_owner, place);
    struct memory_owner wanted = {.origin = origin, .place = place};
    uint32_t found = NUMBER_ADD(&m->owners.numbers, &kind, m->owners.list, m->owners.count,
                                m->owners.most, &wanted);
    wanted.origin = 0;
    return found ? found
                 : NUMBER_ADD(&m->owners.numbers, &kind, m->owners.list, m->owners.count,
                              UINT32_MAX, &wanted);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The end of the part that has not ended yet; the last slice of the curve includes the end. */
static uint64_t part_end(const struct memory_report *m, const struct memory_place *p,
                         const struct memory_series *s)
{
    const struct memory_process *own = &m->processes[p->process->index];
    double slice_ns = ((double)(m->times.end_ns - m->times.begin_ns) + 1) / MEMORY_CURVE;
    if (s == &p->curve)
        return m->times.begin_ns + (uint64_t)ceil((s->done + 1) * slice_ns);
    return memory_has_steps(m, p->process)
               ? own->steps[s->done].end_ns
               : own->first_ns + (s->done + 1) * memory_slice_ns(m, p->process);
}

/* Advances the place to `at_ns` with its current bytes. */
static void memory_report_pass_time(const struct memory_report *m, struct memory_place *p,
                                    uint64_t at_ns)
{
    struct memory_series *both[] = {&p->curve, &p->marks};
    for (unsigned k = 0; k < 2; k++)
        for (struct memory_series *s = both[k]; s->done < s->count && part_end(m, p, s) <= at_ns;) {
            s->list[s->done++] = (struct memory_part){s->peak, p->all.live.bytes};
            s->peak = p->all.live.bytes;
        }
}

/* Starts the selected time: peaks before it do not count. */
static void begin_piece(struct memory_report *m)
{
    for (uint32_t i = 0; i < m->places.count; i++) {
        struct memory_place *p = &m->places.list[i];
        p->peak = p->all.live;
        p->peak_at.ns = m->times.begin_ns;
        p->peak_at.change = m->change;
        p->curve.peak = p->all.live.bytes;
    }
    m->times.is_before = false;
}

/* Saves the amounts at the requested moment. */
static void pass_asked(struct memory_report *m)
{
    for (uint32_t i = 0; i < m->owners.count; i++)
        m->owners.list[i].book.asked = m->owners.list[i].book.live;
    for (uint32_t i = 0; i < m->places.count; i++)
        m->places.list[i].all.asked = m->places.list[i].all.live;
    m->times.is_past_asked = true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* True if it was allocated and freed within one step. */
static bool is_temporary(const struct memory_report *m, const struct memory_place *p,
                         const struct ledger_block *b)
{
    return p->marks.done < p->marks.count && memory_has_steps(m, p->process) &&
           b->begin_ns >= m->processes[p->process->index].steps[p->marks.done].begin_ns;
}

/* Adds the block to the three books that it is in, or takes it out. Returns its place. */
static struct memory_place *change(struct memory_report *m, const struct ledger_block *b,
                                   uint64_t at_ns, bool comes)
{
    struct memory_owner *o = &m->owners.list[b->row - 1];
    struct memory_place *p = &m->places.list[o->place];
    struct memory_book *books[] = {&p->all, &p->kinds[b->kind], &o->book};
    const struct memory_amount more = {b->bytes, 1}, less = {-more.bytes, -more.blocks};
    if (!m->times.is_past_asked && at_ns > m->times.asked_ns)
        pass_asked(m);
    if (m->times.is_before && at_ns >= m->times.begin_ns)
        begin_piece(m);
    memory_report_pass_time(m, p, at_ns);
    bool was_temporary = !comes && is_temporary(m, p, b);
    m->change++;
    for (unsigned i = 0; i < sizeof books / sizeof *books; i++) {
        struct memory_book *book = books[i];
        memory_book_pass(book, p);
        book->at_peak = memory_at_peak(p, book);
        book->changed = m->change;
        memory_add(&book->live, comes ? more : less);
        if (comes)
            memory_add(&book->got, more);
        if (was_temporary)
            memory_add(&book->temporary, more);
    }
    for (uint64_t open = m->processes[p->process->index].ranges.open; open; open &= open - 1) {
        uint64_t *peak = &p->in_ranges.peak[__builtin_ctzll(open)];
        *peak = max_of(*peak, p->all.live.bytes);
    }
    return p;
}

/* Updates the maxima of the place, to which the block was added. */
static void memory_report_grow(struct memory_report *m, struct memory_place *p,
                               const struct ledger_block *b, uint64_t at_ns)
{
    uint64_t live = p->all.live.bytes;
    p->reserved = max_of(p->reserved, b->reserved);
    if (b->bytes > p->largest.bytes) {
        p->largest.bytes = b->bytes;
        p->largest.origin = b->owner;
    }
    p->marks.peak = max_of(p->marks.peak, live);
    p->curve.peak = max_of(p->curve.peak, live);
    if (live <= p->peak.bytes)
        return;
    p->peak = p->all.live;
    p->peak_at.ns = at_ns;
    p->peak_at.change = m->change;
    p->peak_at.reserved = b->reserved;
}

static void memory_report_change(void *context, enum ledger_change what, struct ledger_block *b,
                                 uint64_t at_ns)
{
    struct memory_report *m = context;
    bool counts = at_ns < m->times.until_ns;
    if (what == LEDGER_FAILED)
        memory_failed(m, b);
    if (what == LEDGER_GONE && b->row && counts)
        change(m, b, at_ns, false);
    if (what == LEDGER_GOT)
        b->row = 0;
    if (what != LEDGER_ASKED && !(what == LEDGER_GOT && counts))
        return;
    uint32_t place = memory_report_place_of(m, b->process, b->device, memory_where_of(b));
    if (place && what == LEDGER_ASKED) {
        memory_hidden_asked(m, &m->places.list[place - 1], b);
    } else if (place) {
        b->row = owner_of(m, b->owner, place - 1);
        memory_report_grow(m, change(m, b, at_ns, true), b, at_ns);
    } else if (what == LEDGER_GOT) {
        m->ledger.doubts.beyond++;
    }
}

/* ---- the walks ------------------------------------------------------------------------------- */

static int memory_report_take(void *context, const struct slice *s)
{
    struct memory_report *m = context;
    const struct event *e = &s->event;
    struct memory_process *own = &m->processes[e->process->index];
    uint64_t ns = e->end_ns - e->begin_ns;
    if (e->record->type == RECORD_CALL && ns > own->longest.ns &&
        !(e->record->flags & (RECORD_NESTED | RECORD_OPEN)) &&
        e->function->memory != API_MEMORY_INFO)
        own->longest = (struct memory_longest){e->function, ns};
    if (e->record->type == RECORD_RESIDENT) {
        own->resident.last = record_arg(e->record, RESIDENT_BYTES);
        own->resident.samples++;
        if (own->resident.last > own->resident.peak)
            own->resident.peak_ns = e->begin_ns;
        own->resident.peak = max_of(own->resident.peak, own->resident.last);
    }
    if (s->source && e->record->type == RECORD_DEVICE_USE)
        memory_hidden_read(m, s);
    memory_ranges_take(m, s);
    return 0;
}

static int memory_report_end(void *context)
{
    struct memory_report *m = context;
    memory_ranges_sort(m);
    if (!m->times.is_past_asked)
        pass_asked(m);
    if (m->times.is_before)
        begin_piece(m);
    for (uint32_t i = 0; i < m->places.count; i++) {
        struct memory_place *p = &m->places.list[i];
        memory_report_pass_time(m, p, UINT64_MAX);
        memory_book_pass(&p->all, p);
    }
    for (uint32_t i = 0; i < m->owners.count; i++)
        memory_book_pass(&m->owners.list[i].book, &m->places.list[m->owners.list[i].place]);
    return 0;
}

enum memory_by memory_best_by(const struct recording *rec)
{
    bool has_stacks = recording_any(rec, process_has_stacks);
    for (uint32_t i = 0; has_stacks && i < rec->count; i++)
        if (process_has(rec->processes[i], "python"))
            return MEMORY_BY_LINE;
    return has_stacks                                 ? MEMORY_BY_STACK
           : recording_any(rec, process_may_have_ops) ? MEMORY_BY_OPERATOR
                                                      : MEMORY_BY_FUNCTION;
}

static int note_memory(void *context, const struct slice *s)
{
    struct memory_report *m = context;
    const struct event *e = &s->event;
    unsigned type = e->record->type;
    m->processes[e->process->index].gets_memory |=
        type == RECORD_TENSOR || (type == RECORD_CALL && api_gets_memory(e->function->memory));
    return 0;
}

static void memory_report_init(struct memory_report *m, struct recording *rec,
                               const struct memory_request *request)
{
    const struct ledger_user user = {
        .context = m, .change = memory_report_change, .owner = memory_origin_of};
    m->rec = rec;
    m->process_count = rec->count;
    m->by = request->by == MEMORY_BY_BEST ? memory_best_by(rec) : request->by;
    m->at = request->at;
    m->selected = request->selected;
    m->times.asked_ns = UINT64_MAX;
    m->places.marks_left = MEMORY_MARKS_MAX;
    m->owners.most = stack_table_limit(MEMORY_OWNERS_MAX, MEMORY_OWNERS_FREE, 1,
                                       recording_bytes(m->rec) / MEMORY_FILE_BYTES);
    m->processes = memory_new(rec->count, sizeof *m->processes);
    for (uint32_t i = 0; i < rec->count; i++)
        m->processes[i].process = rec->processes[i];
    ARRAY_PUSH(m->origins.list, m->origins.count, NULL);
    walk_init(&m->walk, rec);
    ledger_init(&m->ledger, &m->walk, &user);
    steps_init(&m->steps, &m->walk, request->step_by, request->step_pattern);
}

/* Sets times, and steps without partial ones. */
static void memory_note_times(struct memory_report *m, const struct memory_request *request)
{
    struct memory_times *t = &m->times;
    uint32_t kept = 0;
    t->begin_ns = UINT64_MAX;
    for (uint32_t i = 0, k = 0; i < m->process_count; i++) {
        struct memory_process *own = &m->processes[i];
        uint32_t first = kept;
        own->first_ns = m->walk.first_ns[i];
        own->last_ns = m->walk.last_ns[i];
        if (own->last_ns) {
            t->begin_ns = min_of(t->begin_ns, own->first_ns);
            t->end_ns = max_of(t->end_ns, own->last_ns);
        }
        for (; k < m->steps.firsts[i + 1]; k++)
            if (!m->steps.list[k].is_partial)
                m->steps.list[kept++] = m->steps.list[k];
        own->steps = kept > first ? &m->steps.list[first] : NULL;
        own->step_count = kept - first;
    }
    t->begin_ns = min_of(t->begin_ns, t->end_ns);
    if (request->at_seconds >= 0)
        t->asked_ns = m->walk.survey.origin_ns + (uint64_t)(request->at_seconds * 1e9);
    t->until_ns = request->to_ns ? request->to_ns : UINT64_MAX;
    t->end_ns = min_of(t->end_ns, t->until_ns);
    t->is_before = request->from_ns > t->begin_ns;
    if (t->is_before)
        t->begin_ns = min_of(request->from_ns, t->end_ns);
}

struct memory_report *memory_report_create(struct recording *rec,
                                           const struct memory_request *request,
                                           const char *symbols, int *error)
{
    struct memory_report *m = memory_new(1, sizeof *m);
    memory_report_init(m, rec, request);
    /* The first walk finds what the second one needs: steps, stacks, names of operators. */
    struct consumer consumers[] = {steps_consumer(&m->steps),
                                   {.context = m,
                                    .needs = WALK_STACKS | WALK_SPANS,
                                    .skips = WALK_SKIPS_WORK,
                                    .take = note_memory}};
    *error = walk_run(&m->walk, NULL, consumers, 2);
    if (*error >= 0)
        memory_note_times(m, request);
    if (*error >= 0 && !request->learns_only) {
        consumers[0] = ledger_consumer(&m->ledger);
        consumers[1] = (struct consumer){.context = m,
                                         .needs = WALK_SPANS,
                                         .skips = WALK_SKIPS_WORK,
                                         .take = memory_report_take,
                                         .end = memory_report_end};
        *error = walk_run(&m->walk, NULL, consumers, 2);
    }
    if (*error < 0) {
        memory_report_free(m);
        return NULL;
    }
    memory_rows_make(m);
    m->has_tree = m->by == MEMORY_BY_STACK;
    if (m->has_tree)
        call_tree_init(&m->tree, &m->walk.survey, NULL, symbols);
    return m;
}
