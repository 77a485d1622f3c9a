/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recorded process: its stream file, the live file's additions, and what must be known before
 * the first event: identity, threads, functions, clock, loss counters. Loading walks all block
 * headers and decompresses only gpuprof's own blocks (thread 0) and the first block of each
 * thread.
 */
#ifndef GPUPROF_COLLECTOR_PROCESS_H
#define GPUPROF_COLLECTOR_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
 * What a live file adds to its stream file, as blocks in memory. It has the records after each
 * thread's last position in the stream, sorted and compressed as the writer does it, and one
 * RECORD_OPEN record per call that had not returned. About 5 bytes a call.
 */
struct live_block {
    struct block_header header;
    uint8_t *stored; /* owned */
};

struct live_tail {
    struct live_block *blocks; /* owned */
    uint32_t count;
    uint64_t bytes;  /* of the blocks, as stored */
    uint64_t passed; /* calls passed by that no counter includes */
};

#define META_ENTRIES_MAX 256   /* for one process */
#define META_BYTES_MAX   65536 /* for all of them */
#define NOTES_MAX        32
#define DUMPS_MAX        100000

#define PROCESS_RECOVERED "recovered" /* META key that `gpuprof recover` writes */
#define JOB_NONE          UINT32_MAX

struct process_meta {
    char *text;     /* owned "key=value" */
    uint64_t begin; /* last begin, in ticks */
};

/* A DUMP record: what a flight recorder wrote and why (flight.h). Times as in records. */
struct process_dump {
    uint64_t number, reason, value, ns, median_ns, begin_ns, at_ns, lost;
    char *text; /* owned; NULL: none */
};

/* A recording may have tens of thousands, so rarely large members are allocated as needed. */
struct process {
    uint32_t number;       /* in loading order */
    uint32_t index;        /* in display order */
    uint32_t shown_pid;    /* unique among all processes */
    uint32_t first_thread; /* `index` of its first thread, followed by the others ... */
    uint32_t thread_count; /* ... including thread 0 */
    uint32_t first_entry;  /* in the block index */
    uint32_t host;         /* host number in the recording */
    uint64_t rank;         /* RANK_NONE: none; set by recording_arrange */
    uint32_t job;          /* JOB_NONE: none; set by recording_find_jobs */
    bool is_of_several;    /* there are several jobs, so titles include the job */
    bool is_elsewhere;     /* another worker reads its events (recording_deal) ... */
    uint32_t worker;       /* ... with this number */
    struct stream_file file;
    struct stream_header header;
    struct thread_table threads;
    struct function_codes codes;
    struct os_functions os;
    bool has_gpu; /* it has device activities, or a thread for them */
    struct clock_map clock;
    struct live_tail live;
    struct losses losses;
    struct cost_table costs;
    struct blind_times blind;
    uint64_t block_count;
    uint64_t record_count; /* of the program's threads, in whole blocks and the live tail */
    uint64_t min_ns;       /* least time of the program's threads; UINT64_MAX if no blocks */
    uint64_t max_ns;
    bool is_stopped;           /* it runs, but is stopped now */
    uint64_t lived_ns;         /* last record of any thread, or last sign of life */
    uint64_t end_reason;       /* from the END record; 0: none */
    struct process_meta *meta; /* owned */
    uint32_t meta_count;
    uint32_t meta_bytes;
    struct process_dump *dumps; /* owned */
    uint32_t dump_count;
    char **notes; /* owned, with their texts */
    uint32_t note_count;
};

/* State shared by loading and reading many processes. */
struct reader {
    bool only_headers; /* of stream files: no block is looked at */
    struct file_pool pool;
    struct zstandard codec;
    struct function_table functions;
    uint32_t api_crc; /* of this build's API table */
    uint8_t *stored;  /* owned: BLOCK_STORED_BYTES_MAX, for large blocks */
    bool keep_live;   /* do not move live files of ended processes */
};

void reader_init(struct reader *r);
void reader_release(struct reader *r);

/* Called for each block in file order, live blocks last. Returns 0, or an error that ends it. */
typedef int process_block_fn(void *context, struct process *p, struct block_place *place);

/*
 * Loads the process of the stream file at `path` and calls `on_block` (may be NULL). `number` is
 * its place in loading order. Returns 0; GPUPROF_NOT_OURS, GPUPROF_EMPTY, GPUPROF_VERSION,
 * GPUPROF_TRUNCATED or GPUPROF_DAMAGED if neither the file nor its live file has a usable header;
 * GPUPROF_IO. Call process_release after 0.
 */
int process_load(struct process *p, struct reader *r, const char *path, uint32_t number,
                 process_block_fn *on_block, void *context);
void process_release(struct process *p, struct reader *r);

/*
 * Reads `l` into p->live, p->losses and the threads, which get live_end and tids. An open call
 * lasts until the latest known time: a live record, the last sign of life, or `end_ns`. If the
 * process has dumps, stored chunks are in the stream or dropped on purpose. Returns 0 or
 * GPUPROF_IO. (live_tail.c)
 */
int live_tail_read(struct process *p, const struct live_file *l, struct zstandard *codec,
                   uint64_t end_ns);
void live_tail_release(struct live_tail *t);

/*
 * Reads the block at place->offset, sets place->header and decompresses the payload into *payload,
 * a malloc'ed buffer of *capacity bytes that grows as needed. Returns 0, GPUPROF_DAMAGED (not
 * counted) or GPUPROF_IO.
 */
int process_block(struct process *p, struct reader *r, struct block_place *place, uint8_t **payload,
                  size_t *capacity);

/* (process_facts.c) Takes facts about the process from a thread's record; ignores calls. Damaged
 * counters with values impossible by `end_ns` are ignored. */
void process_take(struct process *p, struct reader *reader, uint32_t thread, const struct record *r,
                  uint64_t end_ns);
void process_set_counter(struct process *p, unsigned index, uint64_t value, uint64_t end_ns);

/* Returns the shared time at which it started; 0: unknown. */
uint64_t process_start_ns(const struct process *p);

/* Returns the shared time until which it certainly lived; 0: unknown. */
uint64_t process_lived_ns(const struct process *p);

static inline const struct thread *process_thread(const struct process *p, uint32_t index)
{
    return p->threads.threads[index - p->first_thread];
}

/* Returns true if it still runs, as far as known. */
static inline bool process_runs(const struct process *p)
{
    return p->losses.running || p->losses.may_run;
}

/* Returns true if it has device activities, or CUPTI was on for its launches. */
bool process_expects_gpu(const struct process *p);

/* Return true if kernels, or copies and fills, were to be recorded (--kinds). */
bool process_wants_kernels(const struct process *p);
bool process_wants_moves(const struct process *p);

/* Returns the latest value of the META key, or NULL. */
const char *process_meta(const struct process *p, const char *key);

/* Whether there is a value that does not say "absent: REASON". */
static inline bool process_has(const struct process *p, const char *key)
{
    const char *text = process_meta(p, key);
    return text && strncmp(text, "absent", 6) != 0;
}

static inline bool process_has_gpu(const struct process *p)
{
    return p->has_gpu;
}

/* Whether it may have PyTorch operators. */
static inline bool process_may_have_ops(const struct process *p)
{
    return process_meta(p, "pytorch");
}

/* Whether its calls may have stacks. */
static inline bool process_has_stacks(const struct process *p)
{
    return process_has(p, "stacks");
}

/* Return the value of its first rank variable or local rank variable (rank.h), or NULL. */
const char *process_rank(const struct process *p);
const char *process_local_rank(const struct process *p);

/* Returns the number of ranks of its job according to its launcher; 0: unknown. */
uint64_t process_world_size(const struct process *p);

/* Writes what its launcher says of the job, "SLURM_JOB_ID=17 SLURM_STEP_ID=0", to `text`, of
 * PROCESS_JOB_BYTES; "" if nothing. Returns `text`. */
#define PROCESS_JOB_BYTES 1024
char *process_job(const struct process *p, char *text);

/* The names under which processes and threads are shown; all return `text`.
 * "rank 3: train.py --x (host, pid 12)". `with_pid`: use it if the viewer does not add the pid
 * itself, or adds one that is not real. */
char *process_title(const struct process *p, bool with_pid, char *text, size_t capacity);

/* "train.py --x": the same for all processes of a program, so a rank in "--local-rank=3" is
 * removed. */
char *process_program(const struct process *p, char *text, size_t capacity);

/* The title in two parts: "rank 3: " ("rank 3 of job 1: " with several jobs) or "", in
 * RANK_TITLE_BYTES, and the rest. */
#define RANK_TITLE_BYTES 48
char *process_rank_title(const struct process *p, char *text);
char *process_command_title(const struct process *p, bool with_pid, char *text, size_t capacity);

/* "rank 3", "rank 3 of job 1" with several jobs, or else "process 4711". */
char *process_who(const struct process *p, char text[static RANK_TITLE_BYTES]);

/* "thread 13 (loader) of rank 3: train.py --x (host, pid 12)". */
char *thread_title(const struct process *p, const struct thread *t, char *text, size_t capacity);

#endif
