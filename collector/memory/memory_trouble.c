/* SPDX-License-Identifier: Apache-2.0 */
/* Failed allocations, with advice, and memory outside the books: how they are found, their two
 * tables, and cells of all tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "memory/memory_report.h"
#include "read/process.h"

#define TITLE_BYTES    1100
#define JUMP_BYTES     (1ull << 20) /* growth outside the books that makes a row */
#define OOM_LINES_TEXT 3            /* owners of one in the text; other formats have ten */

/* ---- cells ----------------------------------------------------------------------------------- */

struct cell memory_owner_cell(const struct memory_report *m, uint32_t origin)
{
    char *text = memory_owner_text(m, origin);
    struct cell cell = cell_owned(json_line(text));
    free(text);
    return cell;
}

char *memory_place_text(uint32_t device, enum memory_where where, const char *after)
{
    const char *tensors = where == MEMORY_OF_TENSORS ? "tensors on " : "";
    return where == MEMORY_OF_HOST      ? text_printf("host memory%s", after)
           : device == LEDGER_NO_DEVICE ? text_printf("device not known%s", after)
                                        : text_printf("%sdevice %u%s", tensors, device, after);
}

struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where)
{
    char after[TITLE_BYTES] = ", ";
    process_title(p, true, after + 2, sizeof after - 2);
    return cell_owned(memory_place_text(device, where, after));
}

struct cell memory_change_cell(double bytes, enum report_format format)
{
    char unit[UNIT_TEXT_BYTES];
    double size = bytes < 0 ? -bytes : bytes;
    if (format != FORMAT_TEXT)
        return cell_real(bytes);
    if (size < 0.5)
        return cell_text("0 B");
    bytes_text(unit, size < 1e18 ? (uint64_t)(size + 0.5) : UINT64_MAX);
    return cell_owned(text_printf("%c%s", bytes < 0 ? '-' : '+', unit));
}

const char *memory_where_text(enum memory_where where)
{
    static const char *const texts[] = {"tensor", "device", "host"};
    return texts[where];
}

/* ---- failed allocations ---------------------------------------------------------------------- */

static bool holds_more(const void *one, const void *other)
{
    const struct memory_held *a = one, *b = other;
    return a->live.bytes > b->live.bytes;
}

/* Drops failed CUDA calls that belong to this failure: PyTorch's allocator tries CUDA, perhaps
 * twice, before it fails. */
static void forget_tries(struct memory_report *m, const struct memory_oom *oom)
{
    while (oom->where == MEMORY_OF_TENSORS && m->ooms.count && !m->ooms.beyond) {
        const struct memory_oom *last = &m->ooms.list[m->ooms.count - 1];
        if (last->where != MEMORY_OF_DEVICE || last->process != oom->process ||
            last->device != oom->device || last->tensors != oom->tensors)
            return;
        m->ooms.count--;
    }
}

void memory_failed(struct memory_report *m, const struct ledger_block *wanted)
{
    const struct process *p = wanted->process;
    enum memory_where where = memory_where_of(wanted);
    const struct memory_place *place = memory_place_find(m, p, wanted->device, where);
    const struct memory_place *tensors = memory_place_find(m, p, wanted->device, MEMORY_OF_TENSORS);
    const struct memory_place *device = memory_place_find(m, p, wanted->device, MEMORY_OF_DEVICE);
    const struct surveyed_device *about = survey_device(&m->walk.survey, p, wanted->device);
    struct memory_oom oom = {.place = place ? (uint32_t)(place - m->places.list) : UINT32_MAX,
                             .process = p,
                             .device = wanted->device,
                             .where = where,
                             .reserved = wanted->reserved,
                             .at_ns = wanted->begin_ns,
                             .wanted = wanted->bytes,
                             .live = place ? place->all.live.bytes : 0,
                             .free = device ? device->said.free : MEMORY_UNKNOWN,
                             .holes.free = UINT64_MAX,
                             .tensors = tensors ? tensors->all.got.blocks : 0,
                             .total = device && device->total ? device->total
                                      : about                 ? about->limits.memory
                                                              : 0,
                             .on_device = device ? device->all.live.bytes : 0,
                             .origin = wanted->owner};
    forget_tries(m, &oom);
    if (!ledger_reaches(m->selected, p, wanted->device, oom.at_ns, oom.at_ns))
        return;
    if (m->ooms.count == MEMORY_OOMS_MAX) {
        m->ooms.beyond++;
        return;
    }
    for (uint32_t i = 0; i < m->owners.count; i++) {
        const struct memory_owner *o = &m->owners.list[i];
        const struct memory_held held = {o->origin, i, o->book.live};
        if (o->place == oom.place && held.live.bytes)
            ARRAY_KEEP(oom.owners, oom.owner_count, MEMORY_OOM_OWNERS, &held, holds_more);
    }
    if (where == MEMORY_OF_TENSORS)
        oom.holes = ledger_holes(&m->ledger, p, oom.device);
    m->ooms.list[m->ooms.count++] = oom;
}

/* ---- advice ---------------------------------------------------------------------------------- */

#define LEAK_SHARE  10 /* a leak of 1 / LEAK_SHARE of the memory comes first */
#define OWNER_SHARE 2
#define BLOCK_SHARE 2

/* The growing owner with the most memory in that place; NULL: none, or it is too small. */
static const struct memory_held *leak_of(const struct memory_report *m,
                                         const struct memory_oom *oom)
{
    for (uint32_t i = 0; i < oom->owner_count; i++) {
        const struct memory_held *held = &oom->owners[i];
        if (memory_leaks(&m->owners.list[held->owner].book.growth))
            return held->live.bytes >= oom->live / LEAK_SHARE || held->live.bytes >= oom->wanted
                       ? held
                       : NULL;
    }
    return NULL;
}

static char *fragmented_text(const struct memory_oom *oom)
{
    char idle[UNIT_TEXT_BYTES], hole[UNIT_TEXT_BYTES];
    bool fits = oom->holes.largest >= oom->wanted;
    return text_printf("PyTorch had %s reserved but free, %s%s%s",
                       bytes_text(idle, oom->reserved - oom->live),
                       fits ? "" : "in blocks of at most ", bytes_text(hole, oom->holes.largest),
                       fits ? " of it in a block for another stream, pool or size"
                            : ": try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

static char *leak_text(const struct memory_report *m, const struct memory_oom *oom,
                       const struct memory_held *leak, const char *owner)
{
    char each[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    struct memory_slope slope = {0};
    memory_slope(&m->owners.list[leak->owner].book.growth, &slope);
    bytes_text(each, slope.bytes < 1e18 ? (uint64_t)(slope.bytes + 0.5) : UINT64_MAX);
    return text_printf("%s held %s and grows by %s each %s: release it (in PyTorch, keep "
                       "loss.item() or x.detach(), not the tensor)",
                       owner, bytes_text(all, leak->live.bytes), each,
                       memory_has_steps(m, oom->process) ? "step" : "interval");
}

/* True if there was room that PyTorch's allocator did not take: it queries the driver before it
 * gives up. A query before the process's last allocations does not count. */
static bool is_limited(const struct memory_oom *oom)
{
    return oom->where == MEMORY_OF_TENSORS && oom->free != UINT64_MAX && oom->free >= oom->wanted &&
           oom->total > oom->on_device && oom->free <= oom->total - oom->on_device;
}

/* Advice that names an owner; else about the device. */
static struct memory_advice advise(const struct memory_report *m, const struct memory_oom *oom,
                                   const struct memory_held *leak, const struct memory_place *block,
                                   const char *owner)
{
    char one[UNIT_TEXT_BYTES], other[UNIT_TEXT_BYTES], rest[UNIT_TEXT_BYTES];
    bool is_of_device = oom->where != MEMORY_OF_HOST && oom->total;
    if (leak)
        return (struct memory_advice){"leak", leak_text(m, oom, leak, owner)};
    if (block)
        return (struct memory_advice){
            "preallocation",
            text_printf("%s (%.0f%% of the device) is one block that %s allocated in advance; "
                        "gpuprof does not see what is in it; to lower it, set "
                        "XLA_PYTHON_CLIENT_PREALLOCATE=false (JAX), "
                        "TF_FORCE_GPU_ALLOW_GROWTH=true (TensorFlow) or a lower "
                        "gpu_memory_utilization (vLLM)",
                        bytes_text(one, block->largest.bytes),
                        100.0 * (double)block->largest.bytes / (double)block->total, owner)};
    if (is_limited(oom))
        return (struct memory_advice){
            "limited", text_printf("%s of the device were free, but the program set a limit; raise "
                                   "it (torch.cuda.set_per_process_memory_fraction, or the "
                                   "fraction in PYTORCH_CUDA_ALLOC_CONF)",
                                   bytes_text(one, oom->free))};
    if (is_of_device && oom->on_device < oom->total && oom->wanted < oom->total - oom->on_device)
        return (struct memory_advice){
            "hidden",
            text_printf("the process held only %s of the device's %s: more than %s of the rest "
                        "belonged to other processes, contexts, modules or libraries; nvidia-smi "
                        "names the processes",
                        bytes_text(one, oom->on_device), bytes_text(other, oom->total),
                        bytes_text(rest, oom->total - oom->on_device - oom->wanted))};
    if (oom->owner_count && oom->owners[0].live.bytes >= oom->live / OWNER_SHARE)
        return (struct memory_advice){
            "one-owner",
            text_printf("%s held %s of it (%.0f%%): make that smaller first", owner,
                        bytes_text(one, oom->owners[0].live.bytes),
                        100.0 * (double)oom->owners[0].live.bytes / (double)oom->live)};
    return (struct memory_advice){
        "full",
        memory_text("many owners shared the memory ('gpuprof memory' lists them): use smaller "
                    "batches, gradient checkpointing or lower precision")};
}

struct memory_advice memory_advise(const struct memory_report *m, const struct memory_oom *oom)
{
    if (oom->where != MEMORY_OF_HOST && oom->total && oom->wanted > oom->total)
        return (struct memory_advice){
            "larger-than-device",
            memory_text("the request is larger than the device: use "
                        "smaller batches, a smaller model or several devices")};
    if (oom->where == MEMORY_OF_TENSORS && oom->reserved >= oom->live &&
        oom->reserved - oom->live >= oom->wanted)
        return (struct memory_advice){
            oom->holes.largest >= oom->wanted ? "kept-apart" : "fragmented", fragmented_text(oom)};
    const struct memory_held *leak = leak_of(m, oom);
    /* A block of half the device or more; PyTorch's blocks are known one by one. */
    const struct memory_place *block =
        oom->where == MEMORY_OF_TENSORS
            ? NULL
            : memory_place_find(m, oom->process, oom->device, MEMORY_OF_DEVICE);
    if (block && (!block->total || block->largest.bytes < block->total / BLOCK_SHARE))
        block = NULL;
    char *owner = memory_owner_text(m, leak    ? leak->origin
                                       : block ? block->largest.origin
                                               : oom->owners[0].origin);
    struct memory_advice advice = advise(m, oom, leak, block, owner);
    free(owner);
    return advice;
}

/* ---- the table of failed allocations --------------------------------------------------------- */

#define ROW struct memory_oom

enum { NAME, PLACE, AT, RESERVED = 5, HOLE = 8, ON_DEVICE = 10, OWNERS, ADVICE_ID, ADVICE };

static const struct column oom_columns[] = {
    [NAME] = {"name", "request, and the largest owners then", COLUMN_LINES,
              .doc = "what requested the memory"},
    [PLACE] = {"place", .doc = "the device and the process"},
    [AT] = {"at_ns", "at", COLUMN_NS, 10, true, .doc = "when it failed, since the first event"},
    {"wanted_bytes", "wanted", COLUMN_BYTES, 10, MEMBER(ROW, wanted), .doc = "bytes requested"},
    {"held_bytes", "held", COLUMN_BYTES, 10, MEMBER(ROW, live),
     .doc = "bytes that the process held there then"},
    [RESERVED] = {"reserved_bytes", "reserved", COLUMN_BYTES, 10, .is_filled = true,
                  .doc = "the memory that PyTorch's allocator had reserved"},
    {"free_bytes", "free", COLUMN_BYTES, 10, .is_filled = true, .lacks = LACKS_MAX,
     MEMBER(ROW, free), .doc = "free memory of the device when the program last asked"},
    {"in_holes_bytes", NULL, COLUMN_BYTES, .lacks = LACKS_MAX, MEMBER(ROW, holes.free),
     .doc = "the part of reserved_bytes that was free between blocks"},
    [HOLE] = {"largest_hole_bytes", "hole", COLUMN_BYTES, 10, .is_filled = true, .spare = 1,
              .doc = "the largest free block of that part"},
    {"device_bytes", NULL, COLUMN_BYTES, .lacks = LACKS_ZERO, MEMBER(ROW, total),
     .doc = "memory of the device"},
    [ON_DEVICE] = {"on_device_bytes", NULL, COLUMN_BYTES,
                   .doc = "all memory that the process held on the device"},
    [OWNERS] = {"owners", NULL, COLUMN_LIST, .doc = "up to ten owners of the memory"},
    [ADVICE_ID] = {"advice_id", .doc = "an identifier for the advice"},
    [ADVICE] = {"advice", .doc = "what to do"},
};
#undef ROW

/* The owners as JSON or, below the `first` line, as lines of text. */
static char *oom_owners(const struct memory_report *m, const struct memory_oom *oom,
                        const char *first)
{
    char unit[UNIT_TEXT_BYTES];
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    fputs(first ? first : "[", memory);
    for (uint32_t i = 0; i < oom->owner_count && !(first && i >= OOM_LINES_TEXT); i++) {
        struct memory_amount live = oom->owners[i].live;
        struct cell name = memory_owner_cell(m, oom->owners[i].origin);
        if (first)
            fprintf(memory, "\n%s in %" PRIu64 ": %s", bytes_text(unit, live.bytes), live.blocks,
                    name.text);
        else
            json_printf(memory,
                        i ? ", {\"name\": %s, \"bytes\": %" PRIu64 ", \"blocks\": %" PRIu64 "}"
                          : "{\"name\": %s, \"bytes\": %" PRIu64 ", \"blocks\": %" PRIu64 "}",
                        name.text, live.bytes, live.blocks);
        free(name.memory);
    }
    if (!first)
        fputs("]", memory);
    return new_text_end(&text, memory);
}

static void fill_oom(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_oom *oom = table_item(t, index);
    cells[NAME] = memory_owner_cell(t->source, oom->origin);
    if (t->format == FORMAT_TEXT) {
        char *lines = oom_owners(t->source, oom, cells[NAME].text);
        free(cells[NAME].memory);
        cells[NAME] = cell_owned(lines);
    }
    cells[PLACE] = memory_place_cell(oom->process, oom->device, oom->where);
    cells[AT] = cell_number(memory_moment(t->source, oom->at_ns));
    if (oom->where == MEMORY_OF_TENSORS)
        cells[RESERVED] = cell_number(oom->reserved);
    if (oom->holes.free != UINT64_MAX)
        cells[HOLE] = cell_number(oom->holes.largest);
    cells[OWNERS] = cell_owned(oom_owners(t->source, oom, NULL));
    if (oom->where != MEMORY_OF_HOST)
        cells[ON_DEVICE] = cell_number(oom->on_device);
    struct memory_advice advice = memory_advise(t->source, oom);
    cells[ADVICE_ID] = cell_text(advice.id);
    cells[ADVICE] = cell_owned(advice.text);
}

const struct table_info memory_ooms_table = {
    .name = "out_of_memory",
    .key = "out_of_memory",
    .title = "failed allocations",
    .place = PLACE_URGENT,
    TABLE_COLUMNS(oom_columns),
    .rows = {ROWS_IN(struct memory_report, ooms.list, ooms.count)},
    .row = fill_oom,
};

/* ---- memory outside the books ---------------------------------------------------------------- */

/* Bytes beyond the process's own. Managed memory may be on the device or not: it does not count as
 * own. */
static uint64_t beyond(const struct memory_place *p, uint64_t used)
{
    uint64_t own = p->all.live.bytes - p->kinds[LEDGER_MANAGED].live.bytes;
    return used > own ? used - own : 0;
}

/* Adds a row if `hidden` is more than at the previous query or driver reading. */
static void add_jump(struct memory_report *m, struct memory_place *p, uint64_t at_ns, uint64_t used,
                     uint64_t hidden, uint64_t others, bool is_drivers)
{
    struct memory_longest *longest = &m->processes[p->process->index].longest;
    uint64_t *said = &p->said.hidden[is_drivers], before = *said == MEMORY_UNKNOWN ? 0 : *said;
    bool is_row = *said == MEMORY_UNKNOWN || (hidden >= before && hidden - before >= JUMP_BYTES);
    const struct memory_jump jump = {p->process, p->device,  at_ns,  used,    hidden,
                                     others,     is_drivers, before, *longest};
    *said = hidden;
    if (is_row || !is_drivers)
        *longest = (struct memory_longest){0}; /* the next row starts anew */
    if (is_row && m->jumps.count < MEMORY_JUMPS_MAX)
        ARRAY_PUSH(m->jumps.list, m->jumps.count, &jump);
}

void memory_hidden_asked(struct memory_report *m, struct memory_place *p,
                         const struct ledger_block *asked)
{
    p->total = asked->reserved;
    p->said.free = asked->bytes;
    uint64_t used = p->total > p->said.free ? p->total - p->said.free : 0;
    add_jump(m, p, asked->begin_ns, used, beyond(p, used), MEMORY_UNKNOWN, false);
}

/* The lower of two readings counts, since an allocation may be in progress at one. If the driver
 * does not say who owns a device's memory, only the program's queries count. */
void memory_hidden_read(struct memory_report *m, const struct slice *s)
{
    const struct record *r = s->event.record;
    uint64_t used, own, device = s->source->device;
    struct memory_place *p =
        memory_place_find(m, s->event.process, (uint32_t)device, MEMORY_OF_DEVICE);
    if (!p || device > UINT32_MAX || !device_value(r, DEVICE_USE_USED, &used) ||
        !device_value(r, DEVICE_USE_OWN, &own))
        return; /* a place exists from its first block on */
    uint64_t before = p->said.read, hidden = p->said.read = beyond(p, used);
    hidden = min_of(hidden, before);
    if (before != MEMORY_UNKNOWN)
        add_jump(m, p, s->event.begin_ns, used, hidden, min_of(used > own ? used - own : 0, hidden),
                 true);
}

#define ROW struct memory_jump

enum { SAID_BY = 8 };

static const struct column hidden_columns[] = {
    [NAME] = {"longest_call", "longest call since the previous reading",
              MEMBER_OF(ROW, longest.function, name),
              .doc = "the longest call since the previous reading"},
    [PLACE] = {"place", .doc = "the device and the process"},
    [AT] = {"at_ns", "at", COLUMN_NS, 10, true,
            .doc = "when the program or gpuprof asked, since the first event"},
    {"used_bytes", "used", COLUMN_BYTES, 10, MEMBER(ROW, used),
     .doc = "memory of the device in use"},
    {"hidden_bytes", "not ours", COLUMN_BYTES, 10, MEMBER(ROW, hidden),
     .doc = "the part of used_bytes that the process did not get by calls"},
    {"others_bytes", "by others", COLUMN_BYTES, 10, .is_filled = true, .lacks = LACKS_MAX,
     MEMBER(ROW, others), .doc = "the part of used_bytes that other processes used, if known"},
    {"before_bytes", "before", COLUMN_BYTES, 10, MEMBER(ROW, before),
     .doc = "hidden_bytes at the previous reading"},
    {"longest_call_ns", "took", COLUMN_NS, 10, .lacks = LACKS_ZERO, MEMBER(ROW, longest.ns),
     .doc = "how long that call took"},
    [SAID_BY] = {"said_by", .doc = "who asked: program or driver"},
};

static void fill_hidden(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_jump *jump = table_item(t, index);
    if (!jump->longest.function)
        cells[NAME] = cell_text(t->format == FORMAT_TEXT ? "(none)" : NULL);
    cells[PLACE] = memory_place_cell(jump->process, jump->device, MEMORY_OF_DEVICE);
    cells[AT] = cell_number(memory_moment(t->source, jump->at_ns));
    cells[SAID_BY] = cell_text(jump->is_drivers ? "driver" : "program");
}

const struct table_info memory_hidden_table = {
    .name = "hidden",
    .key = "hidden",
    .title = "memory beyond allocations: contexts, modules, libraries, other processes",
    .place = PLACE_MEMORY,
    TABLE_COLUMNS(hidden_columns),
    .text_limit = 5,
    .rows = {ROWS_IN(struct memory_report, jumps.list, jumps.count)},
    .row = fill_hidden,
};
