/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in a Chrome trace, from the ledger: counters of each device, and instants in
 * torch.profiler's format for PyTorch's allocator, which TensorBoard's memory view needs. */
#include "record/gpu_record.h"
#include "trace/chrome.h"

#define NO_THREAD UINT32_MAX

/* The thread index, which a block has as its owner. */
static uint32_t thread_of(const struct slice *s)
{
    if (s->event.record->type != RECORD_MEMORY)
        return s->event.thread->index;
    return s->is_called ? s->call.thread : NO_THREAD;
}

static void chrome_memory_owner(void *context, const struct slice *s, unsigned kind,
                                uint32_t *number)
{
    (void)context;
    (void)kind;
    *number = thread_of(s);
}

/* Returns true if instants show the block: if requested, PyTorch's blocks replace the device blocks
 * that contain them. */
static bool is_shown(const struct trace_writer *w, const struct ledger_block *b)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    if (b->device == LEDGER_NO_DEVICE && !b->is_host)
        return false;
    if (!w->scope.options->memory_events)
        return !is_tensor && w->scope.survey;
    return b->is_host || is_tensor == w->walk->survey.has_tensors[b->process->index];
}

static void put_instant(struct trace_writer *w, const struct ledger_block *b, uint64_t ns,
                        uint32_t thread, bool comes, const struct place_totals *now)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    uint64_t at_ns = chrome_time(w, ns);
    struct row_ids ids = chrome_has_row(w, thread)
                             ? chrome_row(w, thread)->ids
                             : row_ids_of(b->process->shown_pid, b->process->shown_pid);
    char *out = chrome_begin_instant(w, "t\",\"cat\":\"cpu_instant_event", NULL, "[memory]", &ids,
                                     at_ns, 0);
    out += sprintf(
        out,
        ",\"Device Type\":%d,\"Device Id\":%lld,\"Addr\":%llu,\"Bytes\":%lld,"
        "\"Total Allocated\":%llu,\"Total Reserved\":%llu,\"kind\":\"%s\"",
        !b->is_host, b->is_host ? -1 : (long long)b->device, (unsigned long long)b->address,
        (long long)(comes ? b->bytes : 0 - b->bytes),
        (unsigned long long)(is_tensor ? now->tensors : now->allocated),
        (unsigned long long)(is_tensor ? totals_tensors_reserved(now) : totals_reserved(now)),
        ledger_kind_name(b->kind));
    chrome_end_slice(w, out, 0);
    chrome_reach(w, b->process, at_ns, at_ns);
    w->totals.gpu_events++;
}

/* Returns true if a filtered change still counts: changes before and between selected events affect
 * their totals. */
static bool chrome_memory_is_counted(const struct trace_writer *w, const struct place_totals *now,
                                     uint64_t at_ns)
{
    const struct selection *piece = w->scope.selection;
    return piece && selection_has_all_kinds(piece) && chrome_time(w, at_ns) < w->time.to_ns &&
           number_list_has(&piece->request->devices, now->device);
}

static void chrome_memory_change(void *context, enum ledger_change change, struct ledger_block *b,
                                 uint64_t at_ns)
{
    struct trace_writer *w = context;
    const struct place_totals *now = ledger_totals_of(&w->memory.ledger, b);
    const struct slice *s = w->memory.slice;
    bool comes = change == LEDGER_GOT;
    if (!comes && change != LEDGER_GONE)
        return;
    bool is_filtered = s ? s->is_filtered : w->scope.selection != NULL;
    if (!now || (is_filtered && !chrome_memory_is_counted(w, now, at_ns)))
        return;
    if (!is_filtered && is_shown(w, b))
        put_instant(w, b, at_ns, s && !comes ? thread_of(s) : b->owner, comes, now);
    chrome_count_memory(w, now, at_ns);
}

void chrome_memory_init(struct trace_writer *w)
{
    const struct ledger_user user = {
        .context = w, .change = chrome_memory_change, .owner = chrome_memory_owner};
    w->memory.books = ledger_consumer(&w->memory.ledger);
    ledger_init(&w->memory.ledger, w->walk, &user);
}

void chrome_memory_take(struct trace_writer *w, const struct slice *s)
{
    w->memory.slice = s;
    (void)chrome_ok(w, w->memory.books.take(w->memory.books.context, s));
    w->memory.slice = NULL;
}
