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
 *
 * Memory: 200 bytes a live block, and 64 a mapping, up to the maxima below. Blocks beyond them are
 * counted and not followed.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_H
#define GPUPROF_COLLECTOR_LEDGER_H

#include "base/key_map.h"
#include "resolve/event_walk.h"
#include "resolve/mappings.h"

#define LEDGER_BLOCKS_MAX   (1u << 20) /* that live at a time, in all processes together */
#define LEDGER_MAPPINGS_MAX (1u << 20)
#define LEDGER_CHAINS_MAX   (1u << 16)
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

#define LEDGER_NOT_OWN LEDGER_KINDS /* a block that nobody is told of: its bytes are others' */

/* "linear", "managed", ... */
const char *ledger_kind_name(unsigned kind);

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
    /* Physical memory has that address, or has it no more; what is gone is unmapped before. */
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

/* ---- the blocks that are live at a moment, found by address or handle (ledger_books.c) ---- */

/* What the ledger cannot know of. */
struct ledger_doubts {
    uint64_t replaced;  /* blocks whose release nobody saw: their address was given again */
    uint64_t strays;    /* releases of what nobody saw come */
    uint64_t beyond;    /* blocks that were not followed */
    uint64_t in_graphs; /* allocations that a graph makes at each launch */
    uint64_t sampled;   /* calls that stand for others, too, of which nothing is known */
};

struct ledger_books {
    const struct ledger_user *user; /* a view */
    struct ledger_doubts doubts;
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
int books_init(struct ledger_books *l, uint32_t process_count, const struct ledger_user *user);
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

/*
 * How the memory of a process lies at a moment: segments, which are what CUDA gave, in the order of
 * addresses, and the blocks of PyTorch's allocator within them. Physical memory lies where it is
 * mapped, neighbours as one segment. Arrays have no address, and are in none.
 */
struct layout_range {
    uint64_t address;
    uint64_t bytes;
    uint32_t device; /* LEDGER_NO_DEVICE: not known */
    uint32_t place;  /* in the books: its block, the first of several */
    bool is_mapped;
    bool has_tensors; /* of a segment: at least one, now */
};

struct ledger_layout {
    struct layout_range *segments; /* owned, and so `tensors`; by address */
    uint32_t segment_count;
    struct layout_range *tensors;
    uint32_t tensor_count;
};

/* 0 or GPUPROF_NO_MEMORY; ledger_layout_release in both cases. */
int ledger_layout_make(struct ledger_layout *layout, const struct ledger_books *books,
                       const struct process *process);
void ledger_layout_release(struct ledger_layout *layout);

/* The first of the tensors that do not begin below `address`. */
uint32_t layout_tensor_from(const struct ledger_layout *layout, uint64_t address);

/* Does the whole of `inner` lie in it? */
static inline bool layout_has(const struct layout_range *outer, const struct layout_range *inner)
{
    return inner->address >= outer->address &&
           inner->address - outer->address <= outer->bytes - inner->bytes &&
           inner->bytes <= outer->bytes;
}

/* What is free between the blocks of PyTorch's allocator, in segments of a device that have some.
 */
struct layout_holes {
    uint64_t free;
    uint64_t largest;
};
struct layout_holes layout_holes_of(const struct ledger_layout *layout, uint32_t device);

/* ---- the ledger ---- */

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
    uint64_t late_order;
    uint64_t until_ns; /* the books are those of that moment; 0: of the end. For its user to set */
};

/* `walk` must stay, and so must `l` where it is. 0 or GPUPROF_NO_MEMORY; ledger_release in both
 * cases. */
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

/* To be handed to a walk before consumers that go with it. What `owner` asks the walk for must be
 * among their needs. */
struct consumer ledger_consumer(struct ledger *l);

/*
 * How much memory each process has on each device, and of the host: sums of the ledger's blocks, to
 * be told of each as it comes and goes. Reserved is what is allocated, and of a pool of stream-
 * ordered allocations whose size CUPTI tells that size, with what was freed and stays in it.
 */
#define TOTALS_PLACES_MAX 4096 /* devices of all processes; of more nothing is kept */

struct place_totals {
    const struct process *process;
    uint64_t allocated;
    uint64_t outside;          /* the part of it that is in no pool of known size */
    uint64_t pooled;           /* sizes of the pools */
    uint64_t tensors;          /* what PyTorch's allocator gave of it, ... */
    uint64_t tensors_reserved; /* ... and what it had when it said so last */
    uint32_t device;           /* LEDGER_NO_DEVICE: the host, or not known */
    bool is_host;
    bool has_pool;
    bool has_tensors;
};

struct ledger_totals {
    struct key_map places;     /* (process, device, host) -> place in list + 1 */
    struct key_map pools;      /* (process, device, pool) -> bytes + 1 */
    struct place_totals *list; /* owned */
    uint32_t count;
};

void ledger_totals_init(struct ledger_totals *t);
void ledger_totals_release(struct ledger_totals *t);

/* A block comes, or goes; a pool has that size. *changed, a view until the next call, is NULL if
 * its place is beyond the maximum. 0 or GPUPROF_NO_MEMORY. */
int ledger_totals_block(struct ledger_totals *t, const struct ledger_block *b, bool comes,
                        struct place_totals **changed);
int ledger_totals_pool(struct ledger_totals *t, const struct ledger_pool *pool,
                       struct place_totals **changed);

static inline uint64_t totals_tensors_reserved(const struct place_totals *t)
{
    return t->tensors_reserved > t->tensors ? t->tensors_reserved : t->tensors;
}

/* At least what is allocated, whatever a file says. */
static inline uint64_t totals_reserved(const struct place_totals *t)
{
    uint64_t reserved = t->outside + t->pooled;
    return reserved > t->allocated ? reserved : t->allocated;
}

#endif
