/* SPDX-License-Identifier: Apache-2.0 */
#include "find/findings.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "record/gpu_record.h"

const struct finding_kind finding_kinds[FINDING_KINDS] = {
#define FINDING(NAME, id, share, floor, title, advice, next)                                       \
    [FINDING_##NAME] = {id, share, floor * 1000000ull, title, advice, next},
#include "find/finding_kinds.def"
};

int findings_init(struct findings *f, struct walk *walk, const struct idle *idle)
{
    *f = (struct findings){.walk = walk, .idle = idle};
    finding_sums_init(&f->sums, recording_bytes(walk->rec));
    return finding_gpu_init(&f->gpu, walk, &f->sums);
}

void findings_release(struct findings *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t k = 0; k < f->list[i].row_count; k++)
            free(f->list[i].rows[k].name);
    finding_sums_release(&f->sums);
    finding_gpu_release(&f->gpu);
}

static void take_open(struct findings *f, const struct event *e)
{
    uint64_t ns = e->end_ns - e->begin_ns;
    if (ns > f->hang.ns && !(e->record->flags & RECORD_NESTED))
        f->hang = (struct finding_hang){
            .process = e->process,
            .thread = e->thread,
            .place = {.stack = e->record->stack_id, .function = e->function->index},
            .begin_ns = e->begin_ns,
            .ns = ns};
}

static int take(void *context, const struct slice *s)
{
    struct findings *f = context;
    if (s->event.record->type == RECORD_CALL && s->event.record->flags & RECORD_OPEN)
        take_open(f, &s->event);
    return is_stream_work(s->event.record->type) ? finding_gpu_take(&f->gpu, s) : 0;
}

static int end(void *context)
{
    return finding_gpu_end(&((struct findings *)context)->gpu);
}

struct consumer findings_consumer(struct findings *f)
{
    return (struct consumer){.context = f, .needs = WALK_WORK, .take = take, .end = end};
}

/* ---- what each device is charged ------------------------------------------------------------- */

static bool launches_block(const struct process *p)
{
    const char *value = process_meta(p, "env.CUDA_LAUNCH_BLOCKING");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* Whose idle time of that cause is; FINDING_KINDS: nobody's. Where each launch waits for its
 * kernel, nobody knows what else the device would have waited for. */
static enum finding_id kind_of(enum idle_cause cause, bool is_blocking)
{
    switch (cause) {
    case IDLE_LAUNCH: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_LAUNCH_BOUND;
    case IDLE_HOST: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_HOST_BOUND;
    case IDLE_SYNC: return FINDING_SYNC_IN_LOOP;
    case IDLE_COPY: return FINDING_PAGEABLE_COPIES;
    case IDLE_LOADER: return FINDING_SLOW_LOADER;
    case IDLE_ALLOCATION: return FINDING_ALLOCATION_CHURN;
    case IDLE_CAPTURE:
    case IDLE_START_UP: return FINDING_START_UP;
    default: return FINDING_KINDS;
    }
}

/* Both have met the same work in the same order; FOUND_DEVICES_MAX are fewer, and share one then.
 */
static const struct found_device *gpu_device(const struct findings *f, uint32_t place)
{
    return place < f->gpu.device_count && place < FOUND_DEVICES_MAX - 1 ? &f->gpu.devices[place]
                                                                        : NULL;
}

/* What idle.h has of the hang, which is no synchronisation too many: the wait at the end. */
static uint64_t hung_ns(const struct findings *f, uint32_t place)
{
    const struct idle_device *device = &f->idle->devices[place];
    const struct found_device *worked = gpu_device(f, place);
    uint64_t from_ns = f->hang.begin_ns, worked_ns = worked ? device_lanes_end(&worked->lanes) : 0;
    if (device->process != f->hang.process || f->hang.ns <= finding_kinds[FINDING_HANG].floor_ns)
        return 0;
    from_ns = from_ns > worked_ns ? from_ns : worked_ns;
    return device->end_ns > from_ns ? device->end_ns - from_ns : 0;
}

static void add_up(const struct findings *f, uint32_t place, uint64_t ns[static FINDING_KINDS])
{
    const struct idle_device *device = &f->idle->devices[place];
    const struct found_device *worked = gpu_device(f, place);
    bool is_blocking = launches_block(device->process);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        ns[id] = worked ? worked->ns[id] : 0;
    for (unsigned cause = 0; cause < IDLE_CAUSES; cause++) {
        enum finding_id id = kind_of((enum idle_cause)cause, is_blocking);
        if (id != FINDING_KINDS)
            ns[id] += device->causes[cause];
    }
    uint64_t hung = hung_ns(f, place);
    ns[FINDING_SYNC_IN_LOOP] -= ns[FINDING_SYNC_IN_LOOP] < hung ? ns[FINDING_SYNC_IN_LOOP] : hung;
    ns[FINDING_EXPOSED_COMMUNICATION] = device->parts[IDLE_COMMUNICATING];
}

/* ---- evidence -------------------------------------------------------------------------------- */

static const struct thread *thread_of(const struct process *p, uint32_t index)
{
    for (uint32_t i = 0; index != IDLE_NONE && i < p->threads.count; i++)
        if (p->threads.threads[i]->index == index && p->threads.threads[i]->tid)
            return p->threads.threads[i];
    return NULL;
}

/* What may be evidence: one of both. */
struct candidate {
    const struct finding_sum *sum;
    const struct idle_row *row;
    uint64_t ns;
};

/* Keeps the FINDING_ROWS with most time, in their order; their number. */
static uint32_t keep(struct candidate *kept, uint32_t count, struct candidate new)
{
    uint32_t place = count < FINDING_ROWS ? count++ : FINDING_ROWS;
    if (place == FINDING_ROWS && kept[--place].ns >= new.ns)
        return count;
    for (; place && kept[place - 1].ns < new.ns; place--)
        kept[place] = kept[place - 1];
    kept[place] = new;
    return count;
}

/* Is the row of idle time evidence of this finding, of the device at `place`? */
static bool is_evidence(const struct findings *f, const struct finding *found, uint32_t place,
                        const struct idle_row *row)
{
    enum finding_id id = (enum finding_id)(found->kind - finding_kinds);
    if (id == FINDING_STRAGGLER)
        return row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE &&
               (uint32_t)row->place.word == found->process->index;
    return row->device == place && kind_of((enum idle_cause)row->cause,
                                           launches_block(f->idle->devices[place].process)) == id;
}

static struct finding_row row_of(const struct findings *f, const struct candidate *c)
{
    char text[GPU_TITLE_BYTES];
    if (c->sum)
        return (struct finding_row){.name = strdup(finding_gpu_text(&f->gpu, c->sum->what, text)),
                                    .count = c->sum->count,
                                    .ns = c->ns,
                                    .longest_ns = c->sum->longest_ns,
                                    .at_ns = c->sum->at_ns};
    return (struct finding_row){
        .name = idle_place_text(f->walk, c->row),
        .count = c->row->count,
        .ns = c->ns,
        .longest_ns = c->row->longest_ns,
        .at_ns = c->row->longest_at_ns,
        .thread = thread_of(f->idle->devices[c->row->device].process, c->row->thread)};
}

/* The call that hangs is all there is of it. */
static int add_hang(struct findings *f)
{
    const struct finding_hang *h = &f->hang;
    struct finding *to = &f->list[f->count];
    const struct idle_row row = {.place = h->place, .process = h->process ? h->process->index : 0};
    if (h->ns <= finding_kinds[FINDING_HANG].floor_ns)
        return 0;
    *to = (struct finding){.kind = &finding_kinds[FINDING_HANG],
                           .ns = h->ns,
                           .process = h->process,
                           .device = UINT64_MAX,
                           .devices = 1,
                           .total_ns = h->ns};
    uint64_t begin_ns = f->idle->processes[h->process->index].begin_ns;
    to->window_ns = f->walk->last_ns[h->process->index] - begin_ns;
    to->rows[to->row_count++] = (struct finding_row){.name = idle_place_text(f->walk, &row),
                                                     .count = 1,
                                                     .ns = h->ns,
                                                     .longest_ns = h->ns,
                                                     .at_ns = h->begin_ns,
                                                     .thread = h->thread};
    f->count++;
    return to->rows[0].name ? 0 : GPUPROF_NO_MEMORY;
}

static int add_rows(const struct findings *f, struct finding *to, uint32_t place)
{
    struct candidate kept[FINDING_ROWS] = {0};
    const struct finding_sum *top[FINDING_ROWS];
    uint32_t kind = (uint32_t)(to->kind - finding_kinds), count = 0;
    uint32_t sums =
        gpu_device(f, place) ? finding_sums_top(&f->sums, kind, place, top, FINDING_ROWS) : 0;
    for (uint32_t i = 0; i < sums; i++)
        count = keep(kept, count, (struct candidate){.sum = top[i], .ns = top[i]->ns});
    for (uint32_t i = 0; i < f->idle->rows.count; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        if (is_evidence(f, to, place, row))
            count = keep(kept, count, (struct candidate){.row = row, .ns = row->ns});
    }
    for (; to->row_count < count; to->row_count++) {
        struct finding_row *row = &to->rows[to->row_count];
        *row = row_of(f, &kept[to->row_count]);
        if (!row->name)
            return GPUPROF_NO_MEMORY;
    }
    return 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool is_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t window_ns)
{
    return ns > kind->floor_ns && (double)ns * 100 > (double)window_ns * kind->share;
}

/* Of a device that costs `ns`: if that is worth it, and the worst of its kind so far. */
static void weigh(const struct findings *f, struct finding *found, uint32_t *worst, uint32_t place,
                  uint64_t ns)
{
    const struct idle_device *device = &f->idle->devices[place];
    uint64_t window_ns = device->end_ns - device->begin_ns;
    if (!is_worth_it(found->kind, ns, window_ns))
        return;
    found->devices++;
    found->total_ns += ns;
    if (ns <= found->ns)
        return;
    *worst = place;
    found->ns = ns;
    found->window_ns = window_ns;
    found->process = device->process;
    found->device = device->device;
}

/* What all others that communicate wait for each process, in the mean. `waits`: zeros, by process
 * index. */
static void weigh_ranks(const struct findings *f, struct finding *found, uint32_t *worst,
                        uint64_t *waits)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < f->idle->device_count; i++)
        others += f->idle->devices[i].parts[IDLE_COMMUNICATING] ||
                  f->idle->devices[i].causes[IDLE_COMMUNICATION];
    for (uint32_t i = 0; i < f->idle->rows.count; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        if (row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE)
            waits[(uint32_t)row->place.word] += row->ns;
    }
    for (uint32_t i = 0; others > 1 && i < f->idle->device_count; i++) {
        uint32_t process = f->idle->devices[i].process->index;
        weigh(f, found, worst, i, waits[process] / (others - 1));
        waits[process] = 0; /* each process once */
    }
}

static int compare(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    bool hangs = a->kind == &finding_kinds[FINDING_HANG];
    if (hangs || b->kind == &finding_kinds[FINDING_HANG])
        return hangs ? -1 : 1;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

int findings_finish(struct findings *f)
{
    struct finding found[FINDING_KINDS] = {0};
    uint32_t worst[FINDING_KINDS] = {0};
    uint64_t *waits = calloc(f->walk->rec->count + 1u, sizeof *waits);
    int error = waits ? 0 : GPUPROF_NO_MEMORY;
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        found[id].kind = &finding_kinds[id];
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        uint64_t ns[FINDING_KINDS];
        add_up(f, i, ns);
        for (unsigned id = 0; id < FINDING_KINDS; id++)
            weigh(f, &found[id], &worst[id], i, ns[id]);
    }
    if (waits)
        weigh_ranks(f, &found[FINDING_STRAGGLER], &worst[FINDING_STRAGGLER], waits);
    free(waits);
    if (error == 0)
        error = add_hang(f);
    for (unsigned id = 0; error == 0 && id < FINDING_KINDS; id++)
        if (found[id].devices) {
            f->list[f->count] = found[id];
            error = add_rows(f, &f->list[f->count++], worst[id]);
        }
    qsort(f->list, f->count, sizeof *f->list, compare);
    return error;
}
