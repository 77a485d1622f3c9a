/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: which memory each process holds at each moment, from the calls that get and release
 * it (enum api_memory), what CUPTI says beside them, and what PyTorch's allocator makes of it. Its
 * user is told of each block as it comes and goes, in the order of time.
 *
 * A block counts from the end of the call that got it to the begin of the one that releases it; a
 * call that failed, or did not return, changes nothing. Counted once: physical memory (cuMemCreate)
 * until it is released as often as it was got, and unmapped, whatever addresses it has; memory of
 * others not at all; of calls inside other calls the outermost, until memory is mapped or unmapped
 * at the address that it gave: what a library does inside counts then. Memory of graphs is got at
 * each launch, of which no call tells: it is not counted.
 *
 * Blocks of PyTorch's allocator lie within those of CUDA: a user keeps them apart.
 *
 * The device is what CUPTI says of the address, else that of the pool, else what the call says.
 * Where no call that gets memory is recorded, the blocks are those that CUPTI tells of.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_H
#define GPUPROF_COLLECTOR_LEDGER_H

#include "memory/ledger_books.h"
#include "model/event_walk.h"

#define LEDGER_LATE_MAX  (1u << 16) /* calls that have not returned at a time */
#define LEDGER_POOLS_MAX (1u << 16)

/* How much of a device is free, whoever has the rest. */
struct ledger_free {
    const struct process *process;
    uint64_t at_ns;
    uint64_t free;
    uint64_t total;
    uint32_t device;
};

struct ledger_pool {
    const struct process *process;
    uint64_t number;
    uint64_t bytes;
    uint32_t device;
};

/* Each returns 0 or an error, which ends the walk. Those behind `gone` may be NULL. */
struct ledger_user {
    void *context;
    int (*got)(void *context, struct ledger_block *block, uint64_t at_ns);
    int (*gone)(void *context, struct ledger_block *block, uint64_t at_ns);
    /* As in struct ledger_told. */
    int (*mapped)(void *context, struct ledger_block *block, const struct mapping *where,
                  bool is_there, uint64_t at_ns);
    /* Asked at the begin of the call, with what is open around it; *owner goes with the block. */
    int (*owner)(void *context, const struct slice *s, unsigned kind, uint32_t *owner);
    /* There was not enough memory for it, at its begin_ns. */
    int (*failed)(void *context, const struct ledger_block *wanted);
    int (*left)(void *context, const struct ledger_free *left);
    /* CUPTI tells the size of a pool, freed memory that stays in it included; 0: it is gone. */
    int (*pooled)(void *context, const struct ledger_pool *pool, uint64_t at_ns);
};

struct ledger_form;
struct ledger_late;

struct ledger {
    struct walk *walk;
    struct ledger_user user;
    struct ledger_books books;
    struct key_map pools;     /* (process, pool) -> device + 1 */
    struct key_map told;      /* (process, address) -> device + 1 and POOLED: by CUPTI, before the
                               * call's end */
    bool *has_calls;          /* owned, by process index: one that gets memory has said where */
    struct ledger_late *late; /* owned: a heap, the earliest first */
    uint32_t late_count;
    uint32_t late_capacity;
    uint64_t late_order;
    struct ledger_form *forms; /* owned, by function index */
    uint32_t form_count;
    uint64_t until_ns; /* the books are those of that moment; 0: of the end. For its user to set */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; ledger_release in both cases. */
int ledger_init(struct ledger *l, struct walk *walk, const struct ledger_user *user);
void ledger_release(struct ledger *l);

/* Is what a device had in that time in the piece? */
static inline bool ledger_reaches(const struct walk_filter *f, const struct process *p,
                                  uint32_t device, uint64_t begin_ns, uint64_t end_ns)
{
    return !f || !f->reaches ||
           f->reaches(f->context, p, device == LEDGER_NO_DEVICE ? UINT64_MAX : device, begin_ns,
                      end_ns);
}

/* To be handed to a walk before consumers that go with it; `l` must stay where it is. What `owner`
 * asks the walk for must be among their needs. */
struct consumer ledger_consumer(struct ledger *l);

#endif
