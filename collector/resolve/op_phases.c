/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/op_phases.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "resolve/op_names.h"

/* Phases of units, until the later events are known. */
enum { PHASE_PLAIN = PHASES, PHASE_NO_GRADIENT };

#define NO_SPAN UINT32_MAX

struct phase_span {
    uint64_t begin_ns;
    uint8_t phase;
};

struct phase_thread {
    struct phase_span *spans; /* owned; in the order of time */
    uint32_t count;
    uint32_t open;      /* index of the first span that may be unresolved */
    uint32_t last;      /* index of the unit that may have made a node, or NO_SPAN */
    uint64_t sequence;  /* sequence number of that unit */
    uint32_t backwards; /* backward operators of its process, at the last update */
    uint8_t before;     /* enum step_phase: the last known phase before `open` */
    bool trains;        /* it has run a forward operator or an optimizer */
};

void op_phases_init(struct op_phases *p, struct walk *walk)
{
    const struct recording *rec = walk->rec;
    *p = (struct op_phases){.walk = walk,
                            .threads = memory_new(rec->thread_count + 1u, sizeof *p->threads),
                            .backwards = memory_new(rec->count + 1u, sizeof *p->backwards),
                            .room = PHASE_SPANS_FREE + recording_bytes(rec) / PHASE_FILE_BYTES};
    for (uint32_t i = 0; i < rec->thread_count; i++)
        p->threads[i].last = NO_SPAN;
}

void op_phases_release(struct op_phases *p)
{
    for (uint32_t i = 0; p->threads && i < p->walk->rec->thread_count; i++)
        free(p->threads[i].spans);
    free(p->threads);
    free(p->backwards);
    *p = (struct op_phases){0};
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Lightning's profilers name a hook "[pl][profile][Strategy]SingleDeviceStrategy.training_step". */
static enum step_phase phase_of_hook(const char *text)
{
    static const struct {
        const char *hook;
        enum step_phase phase;
    } hooks[] = {
        {"training_step", PHASE_FORWARD},
        {"validation_step", PHASE_FORWARD},
        {"test_step", PHASE_FORWARD},
        {"predict_step", PHASE_FORWARD},
        {"backward", PHASE_BACKWARD},
        {"optimizer_step", PHASE_OPTIMIZER},
        {"configure_gradient_clipping", PHASE_OPTIMIZER},
        {"optimizer_zero_grad", PHASE_ZERO_GRAD},
        {"batch_to_device", PHASE_DATA},
        {"transfer_batch_to_device", PHASE_DATA},
        {"train_dataloader_next", PHASE_DATA},
        {"val_next", PHASE_DATA},
    };
    const char *dot = strrchr(text, '.');
    for (unsigned i = 0; dot && i < sizeof hooks / sizeof hooks[0]; i++)
        if (strcmp(dot + 1, hooks[i].hook) == 0)
            return hooks[i].phase;
    return PHASE_NONE;
}

enum step_phase op_phase_said(unsigned scope, const struct kernel_name *text)
{
    static const uint8_t phases[] = {
        [OP_KIND_PLAIN] = PHASE_NONE,          [OP_KIND_BACKWARD] = PHASE_BACKWARD,
        [OP_KIND_OPTIMIZER] = PHASE_OPTIMIZER, [OP_KIND_ZERO_GRAD] = PHASE_ZERO_GRAD,
        [OP_KIND_LOADER] = PHASE_DATA,         [OP_KIND_PROFILER] = PHASE_NONE,
    };
    if (scope == OP_SCOPE_MODULE)
        return PHASE_FORWARD;
    if (scope == OP_SCOPE_LABEL && text && op_hook_name(text))
        return phase_of_hook(text->shown);
    return (enum step_phase)phases[op_kind_of(scope, text)];
}

/* Initial phase of a unit. Operators of a gradient scaler have their own prefix. */
static uint8_t phase_of_unit(const struct host_span *op, const struct kernel_name *name,
                             bool is_in_update)
{
    static const char *const reads[] = {"aten::item", "aten::_local_scalar_dense",
                                        "aten::is_nonzero", "aten::equal"};
    const char *text = name ? name->shown : "";
    if (is_in_update && !op->sequence)
        return PHASE_NO_GRADIENT;
    if (strncmp(text, "aten::_amp_", 11) == 0)
        return PHASE_OPTIMIZER;
    for (unsigned i = 0; i < sizeof reads / sizeof reads[0]; i++)
        if (strcmp(text, reads[i]) == 0)
            return PHASE_SYNC;
    return PHASE_PLAIN;
}

uint8_t op_phase_region(struct walk *walk, const struct host_span *op)
{
    const struct host_span *outer_op = spans_around(&walk->spans, op);
    uint8_t outer = outer_op ? outer_op->region : PHASE_NONE;
    enum step_phase around = (enum step_phase)(outer & ~REGION_UNIT);
    enum step_phase said = op->is_traced ? PHASE_NONE : op_phase_said(op->scope, op->text);
    if (op_phase_holds(said, around))
        return (uint8_t)said;
    bool is_unit = op_works(op) && (outer == PHASE_NONE || outer == PHASE_OPTIMIZER);
    return is_unit ? outer | REGION_UNIT : outer;
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* `is_own`: do not merge it with the span before. Returns whether it was added. */
static bool op_phases_add(struct op_phases *p, struct phase_thread *t, uint64_t begin_ns,
                          uint8_t phase, bool is_own)
{
    const struct phase_span made = {begin_ns, phase};
    bool is_same = !is_own && t->count > t->open && t->last + 1 != t->count &&
                   t->spans[t->count - 1].phase == phase;
    if (is_same || !p->room)
        return false;
    p->room--;
    ARRAY_PUSH(t->spans, t->count, &made);
    return true;
}

static uint8_t resolved(const struct phase_thread *t, uint8_t phase, enum step_phase next)
{
    bool is_trained = next == PHASE_FORWARD || next == PHASE_BACKWARD;
    if (phase == PHASE_NO_GRADIENT)
        return t->before == PHASE_FORWARD && is_trained ? PHASE_FORWARD : PHASE_OPTIMIZER;
    if (phase != PHASE_PLAIN)
        return phase;
    bool is_update = t->before == PHASE_BACKWARD || t->before == PHASE_OPTIMIZER;
    return is_update && !is_trained && t->trains ? PHASE_OPTIMIZER : PHASE_FORWARD;
}

/* Resolves the spans before index `end`, given the next phase, and merges equal ones. */
static void op_phases_resolve(struct op_phases *p, struct phase_thread *t, uint32_t end,
                              enum step_phase next)
{
    uint32_t kept = t->open;
    for (uint32_t i = t->open; i < end; i++) {
        t->spans[i].phase = resolved(t, t->spans[i].phase, next);
        if (!kept || t->spans[kept - 1].phase != t->spans[i].phase)
            t->spans[kept++] = t->spans[i];
    }
    if (end > kept)
        memmove(&t->spans[kept], &t->spans[end], (t->count - end) * sizeof *t->spans);
    p->room += end - kept;
    t->count -= end - kept;
    t->open = kept;
    t->before = (uint8_t)next;
    t->trains |= next == PHASE_FORWARD || next == PHASE_OPTIMIZER;
}

/* The last unit made a node, so it is a forward operator. */
static void made_node(struct op_phases *p, struct phase_thread *t)
{
    t->spans[t->last].phase = PHASE_FORWARD;
    op_phases_resolve(p, t, t->last + 1, PHASE_FORWARD);
    t->last = NO_SPAN;
}

/* Something with a known phase begins, or an update ends. */
static void op_phases_meet(struct op_phases *p, struct phase_thread *t, enum step_phase next)
{
    if (t->last != NO_SPAN && next == PHASE_BACKWARD)
        made_node(p, t);
    t->last = NO_SPAN;
    op_phases_resolve(p, t, t->count, next);
}

/* ---- consumer -------------------------------------------------------------------------------- */

static struct phase_thread *thread_of(struct op_phases *p, const struct host_span *op)
{
    struct phase_thread *t = &p->threads[op->thread->index];
    uint32_t backwards = p->backwards[op->process->index];
    if (t->backwards != backwards)
        op_phases_meet(p, t, PHASE_BACKWARD);
    t->backwards = backwards;
    return t;
}

static void take_unit(struct op_phases *p, struct phase_thread *t, const struct host_span *op)
{
    uint8_t phase = phase_of_unit(op, op->text, op->region == (PHASE_OPTIMIZER | REGION_UNIT));
    bool may_make_node = phase == PHASE_PLAIN && op->sequence;
    if (may_make_node || phase == PHASE_SYNC)
        t->last = NO_SPAN; /* the unit before made no node */
    if (op_phases_add(p, t, op->begin_ns, phase, may_make_node) && may_make_node) {
        t->last = t->count - 1;
        t->sequence = op->sequence;
    }
}

static void op_phases_open_op(struct op_phases *p, struct host_span *op)
{
    const struct host_span *outer_op = spans_around(&p->walk->spans, op);
    uint8_t outer = outer_op ? outer_op->region : PHASE_NONE;
    op->region = op_phase_region(p->walk, op);
    if (op->region == PHASE_BACKWARD) {
        p->backwards[op->process->index] += outer != PHASE_BACKWARD;
    } else if (op->region & REGION_UNIT) {
        struct phase_thread *t = thread_of(p, op);
        if (t->last != NO_SPAN && op->sequence > t->sequence && !op->forward_thread)
            made_node(p, t);
        if (!(outer & REGION_UNIT))
            take_unit(p, t, op);
    } else if (op->region != outer && (op->region != PHASE_ZERO_GRAD || outer != PHASE_OPTIMIZER)) {
        op_phases_meet(p, thread_of(p, op), (enum step_phase)op->region);
    }
}

/* Later units follow the update, even if it contained a forward pass. */
static void op_phases_close_op(struct op_phases *p, const struct host_span *op)
{
    if (op->region == PHASE_OPTIMIZER && op_is_label(op) &&
        op_phase_said(op->scope, op->text) == PHASE_OPTIMIZER)
        op_phases_meet(p, thread_of(p, op), PHASE_OPTIMIZER);
}

static int op_phases_take(void *context, const struct slice *s)
{
    struct op_phases *p = context;
    enum span_change change = slice_change(s, SPAN_OP);
    if (change == SPAN_OPENED)
        op_phases_open_op(p, s->span);
    else if (change)
        op_phases_close_op(p, s->span);
    return 0;
}

static int op_phases_end(void *context)
{
    struct op_phases *p = context;
    const struct recording *rec = p->walk->rec;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *process = rec->processes[i];
        for (uint32_t k = 0; k < process->thread_count; k++) {
            struct phase_thread *t = &p->threads[process->first_thread + k];
            if (t->backwards != p->backwards[i])
                op_phases_meet(p, t, PHASE_BACKWARD);
            op_phases_meet(p, t, PHASE_NONE);
        }
    }
    return 0;
}

struct consumer op_phases_consumer(struct op_phases *p)
{
    return (struct consumer){.context = p,
                             .needs = WALK_SPANS,
                             .skips = WALK_SKIPS_PLAIN_CALLS | WALK_SKIPS_WORK,
                             .sees_filtered = true,
                             .take = op_phases_take,
                             .end = op_phases_end};
}

enum step_phase op_phases_at(const struct op_phases *p, uint32_t thread_index, uint64_t ns)
{
    const struct phase_thread *t = &p->threads[thread_index];
    uint32_t begun = ARRAY_UP_TO(t->spans, t->count, begin_ns, ns);
    return begun ? (enum step_phase)t->spans[begun - 1].phase : PHASE_FORWARD;
}
