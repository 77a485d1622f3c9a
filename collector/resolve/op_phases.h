/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the phase of training that PyTorch's operators work for. Autograd's operators, modules, and
 * the labels of optimizers, data loaders and Lightning's hooks have a phase, and so does everything
 * inside them. Any other operator, or one inside an optimizer's label (its closure may run the
 * forward pass), is a unit. Its phase follows from the operators around it in time:
 *
 *    forward    it created a node of autograd's graph: its thread's next operator has the next
 *               sequence number, or the backward pass comes next
 *    sync       it reads a value from the device (aten::item and the like)
 *    optimizer  it comes after the backward pass or an update, and no forward operator follows
 *               before the next update, batch or zero_grad: clipping, a gradient scaler, averages
 * of weights. So are operators without a sequence number inside an optimizer's label, which run
 * without gradients, unless between forward operators (zero_grad in a closure is not considered)
 *    forward    all others: work on a batch, and programs that train nothing
 *
 * This needs later events, so phases are found in a walk before the one that uses them. Memory: 16
 * bytes for each change of a thread's phase, at most PHASE_SPANS_FREE and one more for each
 * PHASE_FILE_BYTES of the files; units beyond that have the phase of the one before.
 */
#ifndef GPUPROF_COLLECTOR_OP_PHASES_H
#define GPUPROF_COLLECTOR_OP_PHASES_H

#include "resolve/event_walk.h"

#define PHASE_SPANS_FREE 65536
#define PHASE_FILE_BYTES 16

/* A later one takes precedence when threads are in several. */
enum step_phase {
    PHASE_NONE,
    PHASE_DATA,
    PHASE_SYNC,
    PHASE_FORWARD,
    PHASE_ZERO_GRAD,
    PHASE_OPTIMIZER,
    PHASE_BACKWARD,
    PHASES
};

#define REGION_UNIT 0x80u /* flag beside a phase: in a unit, with at most labels around it */

struct phase_thread;

struct op_phases {
    struct walk *walk;
    struct phase_thread *threads; /* owned, by thread index */
    uint32_t *backwards;          /* owned, by process index: number of backward operators so far */
    uint64_t room;                /* number of further spans */
};

void op_phases_init(struct op_phases *p, struct walk *walk);
void op_phases_release(struct op_phases *p);

/* The consumer that finds them; its `end` completes the phases. */
struct consumer op_phases_consumer(struct op_phases *p);

/* The phase that an operator, label or module has by itself; `text` is its name, or NULL. */
enum step_phase op_phase_said(unsigned scope, const struct kernel_name *text);

/* Whether something inside the phase `outer` takes its own phase `said`. A forward pass that the
 * backward pass repeats counts as backward. */
static inline bool op_phase_holds(enum step_phase said, enum step_phase outer)
{
    return said != PHASE_NONE &&
           (said != PHASE_FORWARD || (outer != PHASE_BACKWARD && outer != PHASE_DATA));
}

/* The phase around an operator that opens, itself included, possibly with REGION_UNIT. */
uint8_t op_phase_region(struct walk *walk, const struct host_span *op);

/* The phase of the last unit of the thread that began at `ns` or before. */
enum step_phase op_phases_at(const struct op_phases *p, uint32_t thread_index, uint64_t ns);

#endif
