/* SPDX-License-Identifier: Apache-2.0 */
/* The library's one global: everything that outlives a call. All threads read it; comments name the
 * writers. */
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

/*
 * Epochs: each recording (one per process, one more in each child of a fork) has a number, from 2.
 */
#define EPOCH_NONE 0 /* in the page: nothing is recorded here */
/* in a thread: it has no chunk yet; never equal to the page's value */
#define EPOCH_THREAD 1
/* in the page: calls are off (OFF_CALLS); equals no thread's value */
#define EPOCH_PAUSED 0x80000000u
#define EPOCH_MASK   0x7fffffffu

/* What the end of a call must handle, counted above the epoch in separate bit ranges. */
#define ATTENTION_COST    (1ull << 32) /* a number: when it changes, threads time calls; thread.c */
#define ATTENTION_CAPTURE (1ull << 48) /* a stream is capturing; capture.c */
/* the live file is being removed: store each event at once; finish.c */
#define ATTENTION_LATE (1ull << 62)

#define ATTENTION_COSTS    (ATTENTION_CAPTURE - ATTENTION_COST) /* the bits of that number */
#define ATTENTION_CAPTURES (ATTENTION_LATE - ATTENTION_CAPTURE)

/* What can be turned off; recorded.h. */
enum off_bits {
    /* calls, ranges, marks; except those that must not be missed, see call.c, deferred_ranges.h */
    OFF_CALLS = 1,
    OFF_WORK = 2,         /* what the device does */
    OFF_LEDGER = 4,       /* CUPTI's records of memory, devices, contexts and streams */
    OFF_STACKS = 8,       /* stacks of calls */
    OFF_QUERIES = 16,     /* event records and queries: these calls are passed by */
    OFF_CALLBACKS = 32,   /* calls that only CUPTI's callbacks see */
    OFF_TENTH = 64,       /* nine of ten launches and copies are passed by ... */
    OFF_HUNDREDTH = 128,  /* ... or 99 of 100 */
    OFF_CUPTI = 256,      /* all of CUPTI, for good */
    OFF_SHAPES = 512,     /* inputs of PyTorch's operators ... */
    OFF_OPERATORS = 1024, /* ... and the operators, but not labels */
    OFF_OP_STACKS = 2048, /* stacks of operators */
    OFF_ARGUMENTS = 4096, /* arguments of calls of libraries that use CUDA ... */
    OFF_LIBRARIES = 8192, /* ... and these calls */
};

#define OFF_PROGRAM (OFF_CALLS | OFF_WORK)                    /* what gpuprof_stop() turns off */
#define OFF_DEVICE  (OFF_WORK | OFF_LEDGER)                   /* all CUPTI records */
#define OFF_PASSING (OFF_QUERIES | OFF_TENTH | OFF_HUNDREDTH) /* calls are passed by */

/*
 * Who may turn things off, in order of precedence. Requests of the first ones also hold in the
 * child of a fork: they come from the program, which continues there. The others have detected
 * something in one process.
 */
enum asker {
    ASKER_PROGRAM, /* gpuprof_stop(), --start-paused */
    ASKER_LASTING_COUNT,
    ASKER_WINDOW = ASKER_LASTING_COUNT, /* --schedule and similar settings; windows.h */
    ASKER_CONTROL,                      /* gpuprof ctl; control.h */
    ASKER_CLIENT,                       /* another CUPTI client has the device records */
    ASKER_GOVERNOR,                     /* --overhead-max */
    ASKER_COUNT,
};

#if defined(__aarch64__)
#define FORK_PAGE_BYTES 65536 /* the largest page size of supported kernels */
#else
#define FORK_PAGE_BYTES 4096
#endif

/*
 * The page that the kernel zeroes in the child of a fork (MADV_WIPEONFORK). Comparing its first
 * word with the thread's epoch distinguishes "recording, this thread takes part, and the call only
 * needs its record" from everything else: not started, ended, or in such a child, whether by fork,
 * _Fork or raw clone.
 */
struct fork_page {
    _Atomic uint64_t recording; /* epoch or EPOCH_PAUSED (low half), plus attention bits */
    _Atomic uint32_t phase;     /* enum start_phase; a futex while START_RUNNING */
    _Atomic uint32_t owner;     /* pid; 0: wiped; another pid: we are a vfork child in its memory */
    _Atomic uint64_t slow_ticks[API_CLASS_COUNT]; /* calls this long get a stack; stack.c */
    _Atomic uint64_t silent_ticks; /* a thread without calls for this long is observed; silence.c */
    /* allocations of this size get a stack, smaller ones at random; 0: none does */
    _Atomic uint64_t memory_bytes;
    /* a thread has waited in vain for the start: others do not wait */
    _Atomic uint32_t waited;
    _Atomic uint32_t off;         /* what is not recorded: enum off_bits; written by recorded.c */
    _Atomic uint32_t turn_due;    /* features must apply a change; recorded.c */
    _Atomic uint32_t has_windows; /* windows.c has checked what this process is to record */
    _Atomic uint32_t has_steps;   /* step_count.c has started to count in this process */
    _Atomic uint32_t untold;      /* askers whose word is not in the stream yet, one bit each */
    _Atomic uint64_t asked[ASKER_COUNT - ASKER_LASTING_COUNT]; /* likewise, by asker; recorded.c */
} __attribute__((aligned(FORK_PAGE_BYTES)));

extern HIDDEN struct fork_page fork_page;

static inline uint32_t passing_now(void)
{
    return atomic_load_explicit(&fork_page.off, memory_order_relaxed) & OFF_PASSING;
}

/* One of this many launches and copies is recorded; 0: all are. */
static inline uint32_t passing_calls(void)
{
    uint32_t passing = passing_now();
    return passing & OFF_HUNDREDTH ? 100 : passing & OFF_TENTH ? 10 : 0;
}

static inline uint64_t epoch_now(void)
{
    return atomic_load_explicit(&fork_page.recording, memory_order_relaxed) & EPOCH_MASK;
}

/* Only calls that memory depends on are recorded now. */
static inline bool calls_are_off(void)
{
    return atomic_load_explicit(&fork_page.recording, memory_order_relaxed) & EPOCH_PAUSED;
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

/* State of this process's recording; see start.c. */
enum start_phase { START_IDLE, START_RUNNING, START_DONE, START_FAILED };

/* Our own data about a chunk. The chunk's head repeats most of it for readers, but the program can
 * overwrite the head, so we never read it from there. */
struct chunk_owner {
    _Atomic uint64_t word; /* enum live_chunk_state | the thread's number << 32 */
    _Atomic uint32_t tid;
    _Atomic uint32_t take; /* counts how often chunks were taken */
    _Atomic uint64_t position;
    _Atomic uint64_t sealed;
    /* bytes of complete records after its thread has left it; undefined before */
    _Atomic uint64_t used;
    _Atomic uint32_t cost;   /* index of its thread's cost sums; thread_cost.h */
    _Atomic uint32_t active; /* when its thread was last active, set by the writer; cost_sums.h */
};

#define CHUNK_USED_UNKNOWN UINT64_MAX

/* The pool of chunks: the live file in memory. */
struct pool {
    struct chunk_owner *owners; /* from mmap; one for each of chunk_max chunks */
    uint8_t *base;              /* start of the mapping */
    size_t map_bytes;
    uint32_t chunk_bytes;
    uint32_t owners_max;
    _Atomic uint32_t chunk_max; /* maximum number of chunks; reduced when storage runs out */
    uint32_t shared_max;        /* the part of these within the buffer's size: see pool_take */
    _Atomic uint32_t allocated; /* chunks with allocated storage */
    uint32_t mapped;            /* chunks whose pages the writer has mapped */
    _Atomic bool is_filled;     /* a thread has filled a chunk and continued in another */
    _Atomic uint32_t grow_lock;
    _Atomic uint32_t hint;       /* where to search for a free one */
    _Atomic uint32_t free_count; /* approximate: is a search worthwhile? */
    _Atomic uint32_t full_count; /* chunks that threads have left and that are not sealed */
    _Atomic uint32_t free_event; /* futex: incremented when chunks become free */
    /* a thread waits for a chunk: the next pass must free what it can */
    _Atomic uint32_t wanted;
    _Atomic uint32_t take_count; /* chunks taken so far */
    _Atomic uint32_t thread_count;
    bool is_file; /* survives a kill */
};

/* Controls the writer thread, and lets threads wait for it. */
struct writer_control {
    _Atomic uint32_t wake;       /* futex: incremented to wake the writer */
    _Atomic uint32_t asleep;     /* the writer is waiting on it */
    _Atomic uint32_t requested;  /* number of the last requested flush */
    _Atomic uint32_t done;       /* futex: number of the last flush done */
    _Atomic uint32_t end_reason; /* enum end_reason if this flush is the last one */
    _Atomic uint32_t running;    /* the thread exists */
    /* signal mask of the program's thread that started the recording */
    sigset_t program_mask;
};

struct state {
    uint64_t next_epoch;
    bool off;       /* nothing will ever be recorded: setuid, or no page */
    int off_reason; /* errno of the latter */
    bool used;      /* a recording was started here, or in the parent that forked us */
    bool nested;
    _Atomic uint64_t asked[ASKER_LASTING_COUNT]; /* survives a fork; recorded.c */
    struct settings settings;
    char setting_texts[SETTING_COUNT][SETTING_TEXT_BYTES_MAX + 1];
    struct stream_header header;
    struct pool pool;
    struct writer_control writer;
    uint8_t spare_head[LIVE_HEAD_BYTES]; /* counters while there is no live file */
    _Atomic uint64_t *counters;          /* COUNTER_COUNT entries, in the live file */
};

extern HIDDEN struct state gp;

/* What is not recorded now; also in the child of a fork. */
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
