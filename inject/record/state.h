/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's one global: everything that outlives a call. Threads read it; who writes what is
 * said at each part.
 */
#ifndef GPUPROF_INJECT_STATE_H
#define GPUPROF_INJECT_STATE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api/api.h"
#include "base/compiler.h"
#include "live.h"
#include "record.h"
#include "settings.h"
#include "stream.h"

/* Epochs: a recording (one per process, one more in each child of a fork) has a number from 2 on.
 */
#define EPOCH_NONE   0           /* in the page: nothing is being recorded here */
#define EPOCH_THREAD 1           /* in a thread: it has no chunk yet; never equal to the page's */
#define EPOCH_PAUSED 0x80000000u /* in the page: calls are off (OFF_CALLS); equals no thread's */
#define EPOCH_MASK   0x7fffffffu

/* What the ends of calls have to see to, counted above the epoch, in units that do not meet. */
#define ATTENTION_COST    (1ull << 32) /* a number: when it changes, threads time calls; thread.c */
#define ATTENTION_CAPTURE (1ull << 48) /* a stream is capturing; see capture.c */
#define ATTENTION_LATE    (1ull << 62) /* the live file goes: store each event at once; finish.c */

#define ATTENTION_COSTS    (ATTENTION_CAPTURE - ATTENTION_COST) /* the bits of that number */
#define ATTENTION_CAPTURES (ATTENTION_LATE - ATTENTION_CAPTURE)

/* What can be left out; recorded.h. */
enum off_bits {
    OFF_CALLS = 1,  /* calls, ranges, marks; but for what must not be missed, see call.c, kept.h */
    OFF_WORK = 2,   /* what the device does */
    OFF_LEDGER = 4, /* what CUPTI tells of memory, devices, contexts and streams */
    OFF_STACKS = 8, /* who made a call */
    OFF_QUERIES = 16,     /* event records and queries: their calls are passed by */
    OFF_CALLBACKS = 32,   /* calls that only CUPTI's callbacks see */
    OFF_TENTH = 64,       /* of launches and copies, nine of ten are passed by ... */
    OFF_HUNDREDTH = 128,  /* ... or 99 of 100 */
    OFF_CUPTI = 256,      /* CUPTI as a whole, for good */
    OFF_SHAPES = 512,     /* what PyTorch's operators are called with ... */
    OFF_OPERATORS = 1024, /* ... and they themselves, but for labels */
    OFF_OP_STACKS = 2048, /* who called them */
    OFF_ARGUMENTS = 4096, /* what libraries that use CUDA are called with ... */
    OFF_LIBRARIES = 8192, /* ... and their calls */
};

#define OFF_PROGRAM (OFF_CALLS | OFF_WORK)                    /* what gpuprof_stop() means */
#define OFF_DEVICE  (OFF_WORK | OFF_LEDGER)                   /* all of CUPTI's records */
#define OFF_PASSING (OFF_QUERIES | OFF_TENTH | OFF_HUNDREDTH) /* calls are passed by */

/*
 * Who may ask for that: the one with more to say first. What the first ones have asked for holds in
 * the child of a fork, too: they are the program, which does not begin anew there. The others have
 * found something out about one process.
 */
enum asker {
    ASKER_PROGRAM, /* gpuprof_stop(), --start-paused */
    ASKER_LASTING_COUNT,
    ASKER_WINDOW = ASKER_LASTING_COUNT, /* --schedule and the like; windows.h */
    ASKER_CONTROL,                      /* gpuprof ctl; control.h */
    ASKER_CLIENT,                       /* another client of CUPTI's has the device's records */
    ASKER_GOVERNOR,                     /* --overhead-max */
    ASKER_COUNT,
};

#if defined(__aarch64__)
#define FORK_PAGE_BYTES 65536 /* the largest pages that its kernels use */
#else
#define FORK_PAGE_BYTES 4096
#endif

/*
 * The page that the kernel empties in the child of a fork (MADV_WIPEONFORK). One comparison of its
 * first word with the thread's epoch tells "recording, this thread takes part, and the call has
 * nothing to see to but its record" from everything else: not started, ended, and being such a
 * child, by fork, _Fork or raw clone alike.
 */
struct fork_page {
    _Atomic uint64_t recording; /* epoch, EPOCH_PAUSED (low half) + attention */
    _Atomic uint32_t phase;     /* enum start_phase, futex while START_RUNNING */
    _Atomic uint32_t owner;     /* pid; 0 = wiped; another's = we are a vfork child in its memory */
    _Atomic uint64_t slow_ticks[API_CLASS_COUNT]; /* calls that last so long get a stack; stack.c */
    _Atomic uint64_t silent_ticks; /* who made no call for so long is looked at; silence.c */
    _Atomic uint64_t
        memory_bytes;             /* who gets so much has a stack, who less, by chance; 0: nobody */
    _Atomic uint32_t waited;      /* a thread has waited in vain for the start: no other one does */
    _Atomic uint32_t off;         /* what is not recorded: enum off_bits; recorded.c writes it */
    _Atomic uint32_t turn_due;    /* the features are to follow what was asked for; recorded.c */
    _Atomic uint32_t has_windows; /* windows.c has looked at what this process is to record */
    _Atomic uint32_t has_steps;   /* step_count.c has begun to count in this process */
    _Atomic uint32_t untold;      /* askers of whose word the stream has nothing: a bit each */
    _Atomic uint64_t asked[ASKER_COUNT - ASKER_LASTING_COUNT]; /* likewise, by asker; recorded.c */
} __attribute__((aligned(FORK_PAGE_BYTES)));

extern HIDDEN struct fork_page fork_page;

static inline uint32_t passing_now(void)
{
    return atomic_load_explicit(&fork_page.off, memory_order_relaxed) & OFF_PASSING;
}

/* Of how many launches and copies one is recorded; 0: all are. */
static inline uint32_t passing_calls(void)
{
    uint32_t passing = passing_now();
    return passing & OFF_HUNDREDTH ? 100 : passing & OFF_TENTH ? 10 : 0;
}

static inline uint64_t epoch_now(void)
{
    return atomic_load_explicit(&fork_page.recording, memory_order_relaxed) & EPOCH_MASK;
}

static inline uint64_t attention_now(void)
{
    return atomic_load_explicit(&fork_page.recording, memory_order_relaxed) >> 32 << 32;
}

/* Is any stream capturing? */
static inline bool attention_captures(void)
{
    return attention_now() & ATTENTION_CAPTURES;
}

/* How far this process's recording has come; see start.c. */
enum start_phase { START_IDLE, START_RUNNING, START_DONE, START_FAILED };

/*
 * What we know of a chunk. Its head says most of that, too, for readers; but the program can write
 * over the head, so nothing here is ever taken from there.
 */
struct chunk_owner {
    _Atomic uint64_t word; /* enum live_chunk_state | the thread's number << 32 */
    _Atomic uint32_t tid;
    _Atomic uint32_t take; /* which take of a chunk it was */
    _Atomic uint64_t position;
    _Atomic uint64_t sealed;
    _Atomic uint64_t used;   /* bytes of whole records, when its thread has left it; else unknown */
    _Atomic uint32_t cost;   /* place of its thread's costs; thread_cost.h */
    _Atomic uint32_t active; /* when its thread did something, by the writer; cost_sums.h */
};

#define CHUNK_USED_UNKNOWN UINT64_MAX

/* The pool of chunks: the live file as it lies in memory. */
struct pool {
    struct chunk_owner *owners; /* mmap'ed; for each of chunk_max chunks */
    uint8_t *base;              /* of the mapping */
    size_t map_bytes;
    uint32_t chunk_bytes;
    uint32_t owners_max;
    _Atomic uint32_t chunk_max; /* chunks that there is room for; less once there is no storage */
    uint32_t shared_max;        /* of these, what the buffer's size says: see pool_take */
    _Atomic uint32_t allocated; /* chunks backed by storage */
    uint32_t mapped;            /* of these, chunks whose pages the writer has mapped */
    _Atomic bool is_filled;     /* a thread has filled a chunk and gone on in another */
    _Atomic uint32_t grow_lock;
    _Atomic uint32_t hint;       /* where to look for a free one */
    _Atomic uint32_t free_count; /* about: a look through all chunks is worth it */
    _Atomic uint32_t full_count; /* chunks left by their threads, not yet sealed */
    _Atomic uint32_t free_event; /* futex: raised when chunks become free */
    _Atomic uint32_t wanted;     /* a thread waits for one: the next pass is to free what it can */
    _Atomic uint32_t take_count; /* chunks taken so far */
    _Atomic uint32_t thread_count;
    bool is_file; /* survives a kill */
};

/* The writer thread and the way to wait for it. */
struct writer_control {
    _Atomic uint32_t wake;       /* futex: raised to wake the writer */
    _Atomic uint32_t asleep;     /* the writer waits on it */
    _Atomic uint32_t requested;  /* number of the last flush that somebody wants */
    _Atomic uint32_t done;       /* futex: number of the last flush done */
    _Atomic uint32_t end_reason; /* enum end_reason when the flush is the last */
    _Atomic uint32_t running;    /* the thread exists */
    sigset_t program_mask;       /* of the program's thread that started the recording */
};

struct state {
    uint64_t next_epoch;
    bool off;       /* nothing will ever be recorded: AT_SECURE, no page */
    int off_reason; /* errno of the latter */
    bool used;      /* a recording was started here, or in the parent that forked us */
    bool nested;
    _Atomic uint64_t asked[ASKER_LASTING_COUNT]; /* survives a fork; recorded.c */
    struct settings settings;
    char setting_texts[SETTING_COUNT][SETTING_TEXT_BYTES_MAX + 1];
    struct stream_header header;
    struct pool pool;
    struct writer_control writer;
    uint8_t spare_head[LIVE_HEAD_BYTES]; /* counters while no live file exists */
    _Atomic uint64_t *counters;          /* COUNTER_COUNT, in the live file */
};

extern HIDDEN struct state gp;

/* What is not recorded now; in the child of a fork, too. */
static inline uint32_t recorded_off(void)
{
    uint32_t off = atomic_load_explicit(&fork_page.off, memory_order_relaxed);
    for (unsigned i = 0; i < ASKER_LASTING_COUNT; i++)
        off |= (uint32_t)atomic_load_explicit(&gp.asked[i], memory_order_relaxed);
    return off;
}

/* A word of the live file's head that other processes may change at any time. */
static inline _Atomic uint32_t *live_word(uint32_t offset)
{
    uint8_t *head = (uint8_t *)gp.counters - LIVE_OFFSET_COUNTERS;
    return (_Atomic uint32_t *)(void *)(head + offset);
}

static inline void counter_add(enum counter_index index, uint64_t amount)
{
    atomic_fetch_add_explicit(&gp.counters[index], amount, memory_order_relaxed);
}

#endif
