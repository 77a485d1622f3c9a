/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: which memory each process holds at each moment, from the calls that get and release
 * it (enum api_memory), what CUPTI says beside them, and what PyTorch's allocator makes of it. Its
 * user is told of each block as it comes and goes, in the order of time.
 *
 * A block counts from the end of the call that got it to the begin of the one that releases it; a
 * call that failed, or did not return, changes nothing. Counted once: physical memory (cuMemCreate)
 * until it is released as often as it was got, and unmapped, whatever addresses it has; memory of
 * others not at all; of calls inside other calls the outermost. Memory of graphs is got at each
 * launch, of which no call tells: it is not counted.
 *
 * Blocks of PyTorch's allocator lie within those of CUDA: a user keeps them apart.
 *
 * The device is what CUPTI says of the address, else that of the pool, else what the call says.
 *
 * Memory: 200 bytes a live block, and 64 a mapping, up to the maxima below. Blocks beyond them are
 * counted and not followed.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_H
#define GPUPROF_COLLECTOR_LEDGER_H

#include "base/key_map.h"
#include "model/event_walk.h"
#include "model/mappings.h"

#define LEDGER_BLOCKS_MAX   (1u << 20) /* that live at a time, in all processes together */
#define LEDGER_MAPPINGS_MAX (1u << 20)
#define LEDGER_LATE_MAX     (1u << 16) /* calls that have not returned at a time */
#define LEDGER_POOLS_MAX    (1u << 16)

#define LEDGER_BYTES_MAX (1ull << 43) /* of one block: sums stay in range, whatever files say */

#define LEDGER_NO_DEVICE UINT32_MAX /* nobody says which */

/* What a block is. */
enum ledger_kind {
    LEDGER_LINEAR,
    LEDGER_MANAGED,
    LEDGER_POOLED,
    LEDGER_PHYSICAL,
    LEDGER_ARRAY,
    LEDGER_STATIC, /* variables of modules */
    LEDGER_PINNED,
    LEDGER_REGISTERED, /* the program's own memory, pinned */
    LEDGER_TENSOR,     /* of PyTorch's allocator, within blocks of the other kinds */
    LEDGER_KINDS
};

struct ledger_block {
    uint64_t address; /* or a handle, by its kind */
    uint64_t bytes;
    uint64_t begin_ns;
    uint64_t reserved; /* of a tensor: by its allocator, when it was got */
    const struct process *process;
    uint32_t device; /* where it is, or, of the host's, by whose context it was got */
    uint32_t owner;  /* as `owner` has said */
    uint32_t row;    /* for its user, and so the next */
    uint32_t step;
    uint32_t refs; /* of physical memory: references and mappings that are left */
    uint32_t maps;
    uint32_t next; /* in its chain, or of those that are free; 0: none */
    uint32_t before;
    uint8_t kind;  /* enum ledger_kind */
    uint8_t space; /* where its address is one */
    bool is_host;
    bool is_moved;  /* it comes from, or goes to, another device: it is the same block */
    bool is_driver; /* a function of the driver has got it */
    bool is_named;  /* its address leads to it */
    bool is_live;
};

/* How much of a device is free, whoever has the rest. */
struct ledger_free {
    const struct process *process;
    uint64_t at_ns;
    uint64_t free;
    uint64_t total;
    uint32_t device;
};

/* Each returns 0 or an error, which ends the walk. The last three may be NULL. */
struct ledger_user {
    void *context;
    int (*got)(void *context, struct ledger_block *block, uint64_t at_ns);
    int (*gone)(void *context, struct ledger_block *block, uint64_t at_ns);
    /* Asked at the begin of the call, with what is open around it; *owner goes with the block. */
    int (*owner)(void *context, const struct slice *s, unsigned kind, uint32_t *owner);
    /* There was not enough memory for it, at its begin_ns. */
    int (*failed)(void *context, const struct ledger_block *wanted);
    int (*left)(void *context, const struct ledger_free *left);
};

/* What the ledger cannot know of. */
struct ledger_doubts {
    uint64_t replaced;     /* blocks whose release nobody saw: their address was given again */
    uint64_t strays;       /* releases of what nobody saw come */
    uint64_t beyond;       /* blocks that were not followed */
    uint64_t beyond_bytes; /* of these */
    uint64_t in_graphs;    /* allocations that a graph makes at each launch */
    uint64_t sampled;      /* calls that stand for others, too, of which nothing is known */
};

struct ledger_form;
struct ledger_late;

struct ledger {
    struct walk *walk;
    struct ledger_user user;
    struct ledger_doubts doubts;
    uint32_t blocks_max;    /* LEDGER_BLOCKS_MAX; fewer in tests */
    uint64_t live;          /* blocks, foreign ones included */
    struct key_map places;  /* (process and space, address) -> place in blocks */
    struct key_map aliases; /* (process, further handle) -> likewise, of physical memory */
    struct key_map chains;  /* (process and domain, device) -> the first of its blocks */
    struct key_map pools;   /* (process, pool) -> device + 1 */
    struct key_map told;    /* (process, address) -> device + 1: by CUPTI, before the call's end */
    struct ledger_block *blocks; /* owned; from 1 on */
    uint32_t count;
    uint32_t capacity;
    uint32_t unused;           /* the first of those that are free */
    struct mappings *mappings; /* owned, by process index */
    uint32_t mapping_count;    /* of all processes */
    struct ledger_late *late;  /* owned: a heap, the earliest first */
    uint32_t late_count;
    uint32_t late_capacity;
    uint64_t late_order;
    struct ledger_form *forms; /* owned, by function index */
    uint32_t form_count;
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; ledger_release in both cases. */
int ledger_init(struct ledger *l, struct walk *walk, const struct ledger_user *user);
void ledger_release(struct ledger *l);

/* To be handed to a walk before consumers that go with it; `l` must stay where it is. What `owner`
 * asks the walk for must be among their needs. */
struct consumer ledger_consumer(struct ledger *l);

/* "linear", "managed", ... */
const char *ledger_kind_name(unsigned kind);

#endif
