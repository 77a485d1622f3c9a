/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: which memory each process holds at each moment, from the calls that allocate and free
 * it (enum api_memory), CUPTI's records, and the records of PyTorch's allocator. Its user gets each
 * block as it comes and goes, in time order.
 *
 * A block lives from the end of the allocating call to the begin of the freeing one. A call that
 * failed, or did not return, changes nothing. Physical memory (cuMemCreate) counts once, whatever
 * its addresses, until it is unmapped and released as often as it was retained. Memory of other
 * processes does not count. Of nested calls the outermost counts, until memory is mapped or
 * unmapped at the address that it returned: then the inner calls count. Memory of graphs is
 * allocated at each launch without a call and does not count.
 *
 * Blocks of PyTorch's allocator lie within those of CUDA: a user must not add the two up.
 *
 * The device comes from CUPTI's record during the call, else from the call. If no allocating call
 * is recorded, the blocks come from CUPTI.
 *
 * Memory: 200 bytes a live block and 64 a mapping, up to the maxima below. Blocks beyond them are
 * counted but not followed.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_H
#define GPUPROF_COLLECTOR_LEDGER_H

#include "base/key_map.h"
#include "resolve/event_walk.h"

#define LEDGER_BLOCKS_MAX   (1u << 20) /* live at one time, in all processes together */
#define LEDGER_MAPPINGS_MAX (1u << 20)
#define LEDGER_LATE_MAX     1024 /* calls open at one time */

#define LEDGER_BYTES_MAX (1ull << 43) /* of one block: keeps sums in range for any file */

#define LEDGER_NO_DEVICE UINT32_MAX /* not known */

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

#define LEDGER_NOT_OWN LEDGER_KINDS /* its bytes are those that are mapped at its address */

/* "linear", "managed", ... */
const char *ledger_kind_name(unsigned kind);

/* Name spaces of addresses and handles. Equal numbers in different spaces are unrelated. */
enum ledger_space {
    SPACE_ADDRESS,
    SPACE_HOST,
    SPACE_REGISTERED,
    SPACE_ARRAY,
    SPACE_HANDLE,
    SPACE_STATIC,
    SPACE_TENSOR
};
enum ledger_space ledger_space_of(unsigned kind);

/* Ranges of addresses in a process, and what they are mapped to. They do not overlap. Memory: 24 to
 * 48 bytes a range. */
struct mapping {
    uint64_t address;
    uint64_t bytes; /* not 0; the end is an address, too */
    uint32_t to;    /* for its user */
};

struct mappings {
    struct mapping *list; /* owned; by address */
    uint32_t count;
};

/* Adds one. Returns false if it is not a valid range of addresses, or overlaps another. */
bool mappings_add(struct mappings *m, const struct mapping *added);

/* A mapping that overlaps the range; NULL: none. A view until the next change. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t address, uint64_t bytes);

/* Removes a mapping that mappings_find returned. */
void mappings_remove(struct mappings *m, const struct mapping *found);

struct ledger_block {
    uint64_t address; /* or a handle, depending on its kind */
    uint64_t bytes;
    uint64_t begin_ns;
    uint64_t reserved; /* of a tensor: total reserved by its allocator at the allocation */
    const struct process *process; /* NULL: an unused place */
    uint32_t device; /* where it is; for host memory, the device of the allocating context */
    uint32_t owner;  /* result of the callback `owner` */
    uint32_t totals; /* number of its place in the totals; 0: beyond the maximum */
    uint32_t row;    /* for its user */
    uint32_t refs; /* of physical memory: references left; of an unused place: the next; 0: none */
    uint32_t maps; /* of physical memory: mappings left */
    uint8_t kind;  /* enum ledger_kind */
    bool is_host;
    bool is_pooled; /* in a pool of known size */
    bool is_driver; /* allocated by a driver API function */
};

enum ledger_change {
    LEDGER_GOT,
    LEDGER_GONE,
    LEDGER_MAPPED,   /* physical memory, at the address and with the size of the mapping */
    LEDGER_UNMAPPED, /* likewise; before it is gone */
    LEDGER_FAILED,   /* it was not allocated, for lack of memory */
    LEDGER_ASKED     /* no block: the program asked how much memory of the device is free (bytes) of
                        how much (reserved), whoever has the rest */
};

struct ledger_user {
    void *context;
    void (*change)(void *context, enum ledger_change change, struct ledger_block *block,
                   uint64_t at_ns);
    /* Called at the begin of the allocating call; returns the block's owner. NULL: none. */
    uint32_t (*owner)(void *context, const struct slice *s, unsigned kind);
};

/*
 * Totals of a process's blocks on a device, or of the host. Reserved is allocated memory, and for a
 * pool of stream-ordered allocations with a size from CUPTI that size, including freed memory in
 * it.
 */
#define TOTALS_PLACES_MAX 4096 /* devices of all processes; more are ignored */

struct place_totals {
    const struct process *process;
    uint64_t allocated;
    uint64_t outside;          /* the part outside pools of known size */
    uint64_t pooled;           /* sizes of the pools */
    uint64_t tensors;          /* the part that PyTorch's allocator gave out, ... */
    uint64_t tensors_reserved; /* ... and its last reported reserve */
    uint32_t device;           /* LEDGER_NO_DEVICE: the host, or not known */
    bool is_host;
    bool has_pool;
    bool has_tensors;
};

static inline uint64_t totals_tensors_reserved(const struct place_totals *t)
{
    return t->tensors_reserved > t->tensors ? t->tensors_reserved : t->tensors;
}

/* Never less than the allocated bytes, whatever a file says. */
static inline uint64_t totals_reserved(const struct place_totals *t)
{
    uint64_t reserved = t->outside + t->pooled;
    return reserved > t->allocated ? reserved : t->allocated;
}

/* What the ledger could not follow. */
struct ledger_doubts {
    uint64_t replaced;  /* blocks without a recorded release: their address was given again */
    uint64_t strays;    /* releases without a recorded allocation */
    uint64_t beyond;    /* blocks beyond the maxima */
    uint64_t in_graphs; /* allocations that a graph makes at each launch */
    uint64_t sampled;   /* sampled calls, which stand for unrecorded ones */
};

struct ledger_late;

struct ledger {
    struct walk *walk;
    struct ledger_user user;
    struct ledger_doubts doubts;
    struct {
        struct key_map places;     /* (process, device, host) -> place in list + 1 */
        struct key_map pools;      /* (process, device, pool) -> bytes + 1 */
        struct place_totals *list; /* owned */
        uint32_t count;
    } totals;
    struct key_map places;       /* (process and space, address) -> place in blocks */
    struct ledger_block *blocks; /* owned; from 1 on */
    uint32_t count;
    uint32_t capacity;
    uint32_t unused;           /* first of the free list */
    struct mappings *mappings; /* owned, by process index; each mapping leads to a place, or to 0 */
    uint32_t mapping_count;    /* of all processes */
    bool *has_calls;           /* owned, by process index: an allocating call reported a device */
    struct ledger_late *late;  /* owned: LEDGER_LATE_MAX, the earliest last */
    uint32_t late_count;
    uint64_t until_ns; /* moment of the books, set by the user; 0: the end */
};

/* `walk` must outlive `l`. */
void ledger_init(struct ledger *l, struct walk *walk, const struct ledger_user *user);
void ledger_release(struct ledger *l);

/* The consumer for a walk; place it before consumers that depend on it. It must request from the
 * walk what `owner` needs. */
struct consumer ledger_consumer(struct ledger *l);

/* True if that time of the device is in the selection. */
static inline bool ledger_reaches(const struct walk_filter *f, const struct process *p,
                                  uint32_t device, uint64_t begin_ns, uint64_t end_ns)
{
    return !f || !f->reaches ||
           f->reaches(f->context, p, device == LEDGER_NO_DEVICE ? UINT64_MAX : device, begin_ns,
                      end_ns);
}

/* The totals where the block is; NULL: beyond the maximum. */
static inline const struct place_totals *ledger_totals_of(const struct ledger *l,
                                                          const struct ledger_block *b)
{
    return b->totals ? &l->totals.list[b->totals - 1] : NULL;
}

/* ---- live blocks by address or handle, for ledger.c (ledger_books.c) ---- */

/* Sets the size of a pool, including freed memory in it; 0: it is gone. Pools beyond the maximum
 * are ignored. */
void books_pool(struct ledger *l, const struct process *process, uint32_t device, uint64_t number,
                uint64_t bytes);

/* Adds a block, from its begin on. */
void books_put_in(struct ledger *l, const struct ledger_block *wanted);

/* Remove blocks: the one at that address (counts a stray if there is none); all of the process on
 * the device, or those from driver functions there (`is_context`). */
void books_release(struct ledger *l, const struct process *p, enum ledger_space space,
                   uint64_t address, uint64_t at_ns);
void books_reset(struct ledger *l, const struct process *p, uint32_t device, bool is_context,
                 uint64_t at_ns);

/* Physical memory: release a reference by handle; map a handle at an address; unmap a range of
 * addresses; retain a reference by address. */
void books_release_physical(struct ledger *l, const struct process *p, uint64_t handle,
                            uint64_t at_ns);
void books_map(struct ledger *l, const struct ledger_block *wanted, uint64_t handle,
               uint64_t at_ns);
void books_unmap(struct ledger *l, const struct process *p, uint64_t address, uint64_t bytes,
                 uint64_t at_ns);
void books_retain(struct ledger *l, const struct process *p, uint64_t address);

/*
 * The layout of a process's memory at a moment: segments, which CUDA gave, and the blocks of
 * PyTorch's allocator, each behind the segment that it lies in. Physical memory lies where it is
 * mapped; adjacent mappings form one segment. Arrays have no address and are left out.
 */
struct layout_range {
    uint64_t address;
    uint64_t bytes;
    uint32_t device; /* LEDGER_NO_DEVICE: not known */
    uint32_t place;  /* place in the books of its first block */
    bool is_tensor;
    bool is_mapped;
};

struct ledger_layout {
    struct layout_range *list; /* owned; by address */
    uint32_t count;
};

/* The caller frees the list. */
void ledger_layout_make(struct ledger_layout *layout, const struct ledger *l,
                        const struct process *process);

/* The range at that index, if it is a tensor within `outer`; else NULL. */
static inline const struct layout_range *
layout_tensor(const struct ledger_layout *layout, const struct layout_range *outer, uint32_t at)
{
    const struct layout_range *inner = &layout->list[at];
    return at < layout->count && inner->is_tensor && inner->address >= outer->address &&
                   inner->bytes <= outer->bytes &&
                   inner->address - outer->address <= outer->bytes - inner->bytes
               ? inner
               : NULL;
}

/* Free memory between blocks of PyTorch's allocator, in the segments of a device that have some. */
struct ledger_holes {
    uint64_t free;
    uint64_t largest;
};
struct ledger_holes ledger_holes(const struct ledger *l, const struct process *process,
                                 uint32_t device);

#endif
