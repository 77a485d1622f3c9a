/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recorded process: its stream file, what the live file adds, and what must be known before the
 * first of its events is shown: identity, threads, functions, clock, loss counters. Loading walks
 * all block headers, and decompresses only gpuprof's own blocks (thread 0) and the first of each
 * thread.
 */
#ifndef GPUPROF_COLLECTOR_PROCESS_H
#define GPUPROF_COLLECTOR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/select_wish.h"
#include "block.h"
#include "file/live_file.h"
#include "file/stream_file.h"
#include "record/clock_map.h"
#include "record/cost_table.h"
#include "record/function_table.h"
#include "record/losses.h"
#include "record/thread_table.h"
#include "stream.h"

/*
 * What a live file adds to its stream file, as further blocks in memory: records behind the last
 * position that each thread has in the stream, sorted and compressed as the writer would have done
 * it, and one record with RECORD_OPEN for each call that had not returned. About 5 bytes a call.
 */
struct live_block {
    struct block_header header;
    uint8_t *stored; /* owned */
};

struct live_tail {
    struct live_block *blocks; /* owned */
    uint32_t count;
    uint64_t bytes;   /* of the blocks, as stored */
    uint64_t records; /* that were in the live file only */
    uint64_t open_calls;
    uint64_t damaged_bytes; /* of chunks whose records make no sense */
    uint64_t passed;        /* calls passed by that are in no counter */
    uint64_t missing_bytes; /* of records that are in neither file */
    bool counters_damaged;  /* of `passed`, or of the file's head, something cannot be */
};

/*
 * Reads `l`. `threads` says what the stream holds (position_end) and learns live_end and tids. An
 * open call is shown up to the latest time known: of a record in the live file, or when the process
 * was last seen alive, or `end_ns`. `is_flight`: what the writer has stored is in the stream, or is
 * not to be kept. 0, GPUPROF_IO or GPUPROF_NO_MEMORY.
 */
int live_tail_read(struct live_tail *t, const struct live_file *l, struct thread_table *threads,
                   struct zstandard *codec, bool is_flight, uint64_t end_ns);
void live_tail_release(struct live_tail *t);

#define META_ENTRIES_MAX 256   /* of one process */
#define META_BYTES_MAX   65536 /* of all of them */
#define NOTES_MAX        32
#define DUMPS_MAX        100000

#define PROCESS_RECOVERED "recovered" /* key of the META record that `gpuprof recover` makes */
#define JOB_NONE          UINT32_MAX

struct block_place {
    uint64_t offset; /* in the stream file, or LIVE_BLOCK + index in live.blocks */
    struct block_header header;
    bool is_taken; /* it has no events: what it tells of functions and process is known */
    bool apart;    /* the block before it in the file is left out */
};
#define LIVE_BLOCK (1ull << 63)

struct process_meta {
    char *text;     /* owned "key=value" */
    uint64_t begin; /* when it was last said: ticks */
};

/* A DUMP record: what a flight recorder wrote, and why (flight.h). Times as in records. */
struct process_dump {
    uint64_t number, reason, value, ns, median_ns, begin_ns, at_ns, lost;
    char *text; /* owned; NULL: none */
};

/* There may be tens of thousands: what most have little of is allocated as it comes. */
struct process {
    uint32_t number;       /* in the order of loading */
    uint32_t index;        /* in the order in which they are shown */
    uint32_t shown_pid;    /* unique over all processes */
    uint32_t first_thread; /* `index` of the first of its threads, which are neighbours ... */
    uint32_t thread_count; /* ... with thread 0 */
    uint32_t first_entry;  /* of the block index */
    uint32_t host;         /* its number in the recording */
    uint64_t rank;         /* RANK_NONE: it has none; set when it is put into order */
    uint32_t job;          /* JOB_NONE: of none; likewise, jobs.c */
    bool is_of_several;    /* jobs: where it is shown it is said of which */
    bool is_elsewhere;     /* its events are read by another worker (recording_deal) ... */
    uint32_t worker;       /* ... of this number */
    struct stream_file file;
    struct stream_header header;
    struct thread_table threads;
    struct function_codes codes;
    struct os_functions os;
    bool has_gpu; /* it has work of the device, or a thread for it */
    struct clock_map clock;
    struct live_tail live;
    struct losses losses;
    struct cost_table costs;
    struct blind_times blind;
    uint32_t block_bytes; /* of the block that was read last, header and stored payload */
    uint64_t block_count;
    uint64_t record_count; /* in whole blocks and the live tail, of the program's threads */
    uint64_t min_ns;       /* of the program's threads' blocks; UINT64_MAX if there are none */
    uint64_t max_ns;
    bool is_stopped;           /* it runs, and did nothing just now */
    uint64_t lived_ns;         /* of the last record of any thread, or when it was seen alive */
    uint64_t end_reason;       /* of the END record; 0 = none */
    struct process_meta *meta; /* owned */
    uint32_t meta_count;
    uint32_t meta_bytes;
    struct process_dump *dumps; /* owned */
    uint32_t dump_count;
    char **notes; /* owned, and so are they */
    uint32_t note_count;
};

/* What loading and reading needs and many processes share. */
struct reader {
    struct file_pool pool;
    struct zstandard codec;
    struct function_table functions;
    uint32_t api_crc; /* of this build's own table */
    uint8_t *stored;  /* BLOCK_STORED_BYTES_MAX: of a block that is no small one */
    bool keep_live;   /* leave the live files of ended processes where they are */
    const struct select_wish
        *select; /* a view: its ranks and pids; NULL: all processes are wanted */
};

int reader_init(struct reader *r);
void reader_release(struct reader *r);

/*
 * Called for each block in the order of the file, live blocks last. 0, or an error that ends the
 * loading.
 */
typedef int process_block_fn(void *context, struct process *p, struct block_place *place);

/*
 * Loads the process whose stream file is at `path` and calls `on_block` (which may be
 * NULL). `number` is the place in the order of loading. 0; GPUPROF_NOT_OURS, GPUPROF_EMPTY,
 * GPUPROF_VERSION, GPUPROF_TRUNCATED or GPUPROF_DAMAGED if the file's header cannot be used and no
 * live file beside it has it; GPUPROF_IO or GPUPROF_NO_MEMORY. After 0, process_release. Or
 * PROCESS_LEFT_OUT, as soon as its rank or pid is known and not wanted: p->header and p->rank,
 * which may not be known yet, say what it is.
 */
#define PROCESS_LEFT_OUT 1
int process_load(struct process *p, struct reader *r, const char *path, uint32_t number,
                 process_block_fn *on_block, void *context);
void process_release(struct process *p, struct reader *r);

/*
 * Reads the block at place->offset, sets place->header and decompresses the payload into *payload,
 * a malloc'ed buffer of *capacity bytes that is grown as needed. 0, GPUPROF_DAMAGED (not counted),
 * GPUPROF_IO or GPUPROF_NO_MEMORY.
 */
int process_block(struct process *p, struct reader *r, struct block_place *place, uint8_t **payload,
                  size_t *capacity);

/* (process_facts.c) What a record of the thread says about the process; calls say nothing. Counters
 * lie in the program's memory until they are stored: what cannot be by `end_ns` is not taken over.
 * 0 or GPUPROF_NO_MEMORY. */
int process_take(struct process *p, struct reader *reader, uint32_t thread, const struct record *r,
                 uint64_t end_ns);
void process_set_counter(struct process *p, unsigned index, uint64_t value, uint64_t end_ns);

/* When it was started, in the time that all share; 0: nobody knows. */
uint64_t process_start_ns(const struct process *p);

/* Until when it is known to have been there, whatever it did, likewise. */
uint64_t process_lived_ns(const struct process *p);

/* The one of its threads that has that `index`. */
static inline const struct thread *process_thread(const struct process *p, uint32_t index)
{
    return p->threads.threads[index - p->first_thread];
}

/* Does it run now, for all that is known? */
static inline bool process_runs(const struct process *p)
{
    return p->losses.running || p->losses.may_run;
}

/* Has it GPU work, or was CUPTI on, so that its launches' work should be there? */
bool process_expects_gpu(const struct process *p);

/* Were kernels to be recorded (--kinds)? */
bool process_wants_kernels(const struct process *p);

/* Were copies and fills? */
bool process_wants_moves(const struct process *p);

/* The value of the META record of that key that was said last, or NULL. */
const char *process_meta(const struct process *p, const char *key);

/* The value of the first rank variable (rank.h) that the process had, or NULL. */
const char *process_rank(const struct process *p);

/* Likewise, of those on its host. */
const char *process_local_rank(const struct process *p);

/* Of how many ranks its job is, as the launcher that gave it its rank says; 0: nobody knows. */
uint64_t process_world_size(const struct process *p);

/* What the launcher that gave it its rank says of the job: "SLURM_JOB_ID=17 SLURM_STEP_ID=0", in
 * PROCESS_JOB_BYTES; empty: nothing. Returns `text`. */
#define PROCESS_JOB_BYTES 1024
char *process_job(const struct process *p, char *text);

#endif
