/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which phase of training PyTorch's operators work for. Autograd's operators, the labels of
 * optimizers, data loaders and Lightning's hooks, and modules say theirs, for what is inside of
 * them, too. An operator that is in none of these, or that an optimizer's label holds (its closure
 * may run the forward pass), is a unit, whose phase follows from what comes around it:
 *
 *   forward    it made a node of autograd's graph, which is seen by the next sequence number of its
 *              thread, or is the last one before the backward pass
 *   sync       it reads a value from the device (aten::item and the like)
 *   optimizer  it comes after the backward pass or an update, and no forward operator follows
 *              before the next update, batch or zero_grad: clipping, a gradient scaler, averages of
 *              weights. Inside an optimizer's label so are operators without a sequence number,
 *              which run without gradients, but between forward operators (zero_grad in a closure
 *              lies between the forward and the backward pass, and is none of what comes around)
 *   forward    all others: what is made from a batch, and programs that train nothing
 *
 * What follows is known only later, so phases are found in a walk before the one that needs them.
 * Memory: 16 bytes for each change of a thread's phase, of which there are PHASE_SPANS_FREE and one
 * more for each PHASE_FILE_BYTES of the files; units behind that are forward.
 */
#ifndef GPUPROF_COLLECTOR_OP_PHASES_H
#define GPUPROF_COLLECTOR_OP_PHASES_H

#include "resolve/event_walk.h"

#define PHASE_SPANS_FREE 65536
#define PHASE_FILE_BYTES 16

/* A later one goes before an earlier one where threads are in several. */
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

#define REGION_UNIT 0x80u /* beside a phase: in a unit, which nothing but a label is around */

struct phase_thread;

struct op_phases {
    struct walk *walk;
    struct phase_thread *threads; /* owned, by thread index */
    uint32_t *backwards;          /* owned, by process index: backward operators so far */
    uint64_t room;                /* for further spans */
};

/* 0 or GPUPROF_NO_MEMORY; op_phases_release in both cases, also of zeros. */
int op_phases_init(struct op_phases *p, struct walk *walk);
void op_phases_release(struct op_phases *p);

/* Its `end` leaves the phases complete. */
struct consumer op_phases_consumer(struct op_phases *p);

/* The phase that an operator, label or module says of itself; `text`: its name, or NULL. */
enum step_phase op_phase_said(unsigned scope, const struct kernel_name *text);

/* Inside `outer`, does what says `said` have that phase? A forward pass that the backward pass
 * repeats is a part of that. */
static inline bool op_phase_holds(enum step_phase said, enum step_phase outer)
{
    return said != PHASE_NONE &&
           (said != PHASE_FORWARD || (outer != PHASE_BACKWARD && outer != PHASE_DATA));
}

/* What an operator that opens is in, itself included: a phase, perhaps with REGION_UNIT. */
uint8_t op_phase_region(struct walk *walk, const struct op *op);

/* The phase of the unit of that thread that had begun last by then. */
enum step_phase op_phases_at(const struct op_phases *p, uint32_t thread_index, uint64_t ns);

#endif
