/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which forward operator a backward one belongs to, as PyTorch's own traces have it: of those that
 * share its sequence number on its forward thread, the last to begin. Sequence numbers of a thread
 * go up, so the last OP_PAIRS_MAX of all threads are known, in 3 MiB from the first one on.
 */
#ifndef GPUPROF_COLLECTOR_OP_PAIRS_H
#define GPUPROF_COLLECTOR_OP_PAIRS_H

#include "model/op_stack.h"

#define OP_PAIRS_MAX (1u << 16)

struct forward_op {
    uint32_t process;
    uint32_t number; /* struct op; 0: free */
    uint64_t thread; /* PyTorch's number of it */
    uint64_t sequence;
    uint64_t begin_ns;
    uint32_t row; /* for its user */
};

struct op_pairs {
    struct forward_op *slots; /* owned, OP_PAIRS_MAX; NULL: there was none yet */
};

void op_pairs_release(struct op_pairs *pairs);

/*
 * An operator has ended that began on PyTorch's thread of that number (0: not known). If it may be
 * a forward one, and is the last of its number, it is kept: 1 and its slot in *slot, which is
 * another's from the next call on perhaps. 0: it is not; or GPUPROF_NO_MEMORY.
 */
int op_pairs_keep(struct op_pairs *pairs, const struct op *op, uint64_t thread, uint32_t *slot);

/* The forward operator of `op`, whose name is NULL if it is not known: a view until the next call
 * of op_pairs_keep. NULL: it is no backward operator, or too much came between. */
const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct op *op,
                                       const struct kernel_name *name);

#endif
