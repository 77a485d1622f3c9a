/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that are live at a moment, found by address or handle: what the ledger writes down of
 * each call. Whoever uses the ledger is told of each as it comes and goes.
 *
 * Memory: 200 bytes a live block, and 64 a mapping, up to the maxima below. Blocks beyond them are
 * counted and not followed.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_BOOKS_H
#define GPUPROF_COLLECTOR_LEDGER_BOOKS_H

#include "base/key_map.h"
#include "model/mappings.h"
#include "read/recording.h"

#define LEDGER_BLOCKS_MAX   (1u << 20) /* that live at a time, in all processes together */
#define LEDGER_MAPPINGS_MAX (1u << 20)
#define LEDGER_CHAINS_MAX   (1u << 16)

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

#define LEDGER_NOT_OWN LEDGER_KINDS /* a block that nobody is told of: its bytes are others' */

/* What addresses and handles are looked up among: those of one kind do not tell of another. */
enum ledger_space {
    SPACE_ADDRESS,
    SPACE_HOST,
    SPACE_REGISTERED,
    SPACE_ARRAY,
    SPACE_HANDLE,
    SPACE_STATIC,
    SPACE_TENSOR
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
    uint8_t space; /* enum ledger_space: where its address is one */
    bool is_host;
    bool is_pooled; /* in a pool whose size is told */
    bool is_moved;  /* it comes from, or goes to, another device: it is the same block */
    bool is_driver; /* a function of the driver has got it */
    bool is_named;  /* its address leads to it */
    bool is_live;
};

/* Each returns 0 or an error, which ends the walk. `mapped` may be NULL. */
struct ledger_told {
    void *context;
    int (*got)(void *context, struct ledger_block *block, uint64_t at_ns);
    int (*gone)(void *context, struct ledger_block *block, uint64_t at_ns);
    /* Physical memory has that address, or has it no more; what is gone is unmapped before. */
    int (*mapped)(void *context, struct ledger_block *block, const struct mapping *where,
                  bool is_there, uint64_t at_ns);
};

/* What the ledger cannot know of. */
struct ledger_doubts {
    uint64_t replaced;  /* blocks whose release nobody saw: their address was given again */
    uint64_t strays;    /* releases of what nobody saw come */
    uint64_t beyond;    /* blocks that were not followed */
    uint64_t in_graphs; /* allocations that a graph makes at each launch */
    uint64_t sampled;   /* calls that stand for others, too, of which nothing is known */
};

struct ledger_books {
    struct ledger_told told;
    struct ledger_doubts doubts;
    uint32_t blocks_max;         /* LEDGER_BLOCKS_MAX; fewer in tests */
    uint64_t live;               /* blocks, foreign ones included */
    struct key_map places;       /* (process and space, address) -> place in blocks */
    struct key_map aliases;      /* (process, further handle) -> likewise, of physical memory */
    struct key_map chains;       /* (process and domain, device) -> the first of its blocks */
    struct ledger_block *blocks; /* owned; from 1 on */
    uint32_t count;
    uint32_t capacity;
    uint32_t unused;           /* the first of those that are free */
    struct mappings *mappings; /* owned, by process index; each leads to a place, or to 0 */
    uint32_t process_count;
    uint32_t mapping_count; /* of all processes */
};

/* 0 or GPUPROF_NO_MEMORY; books_release_all in both cases. */
int books_init(struct ledger_books *l, uint32_t process_count, const struct ledger_told *told);
void books_release_all(struct ledger_books *l);

/* The place of a block; 0: there is none. */
uint32_t books_find(const struct ledger_books *l, const struct process *p, unsigned space,
                    uint64_t address);

/* From now on it is there. This and all below return 0 or an error. */
int books_put_in(struct ledger_books *l, const struct ledger_block *wanted, uint64_t at_ns);

/* It is on another device than was thought, or in a pool. */
int books_move(struct ledger_books *l, uint32_t place, uint32_t device, bool is_pooled,
               uint64_t at_ns);

/* What is at that place goes; whatever lives at that address, or nothing, which is counted; all
 * that the process has on the device, or that the driver's functions got there (`is_context`). */
int books_take_out(struct ledger_books *l, uint32_t place, uint64_t at_ns);
int books_release(struct ledger_books *l, const struct process *p, unsigned space, uint64_t address,
                  uint64_t at_ns);
int books_reset(struct ledger_books *l, const struct process *p, uint32_t device, bool is_context,
                uint64_t at_ns);

/* Physical memory, by its handle: one reference less; an address more, or for a range of addresses
 * none any more; one reference more, by the address, under a handle that may be another. */
int books_release_physical(struct ledger_books *l, const struct process *p, uint64_t handle,
                           uint64_t at_ns);
int books_map(struct ledger_books *l, const struct ledger_block *wanted, uint64_t handle,
              uint64_t at_ns);
int books_unmap(struct ledger_books *l, const struct process *p, uint64_t address, uint64_t bytes,
                uint64_t at_ns);
int books_retain(struct ledger_books *l, const struct process *p, uint64_t address,
                 uint64_t handle);

/* "linear", "managed", ... */
const char *ledger_kind_name(unsigned kind);

#endif
