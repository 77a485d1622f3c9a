/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings given to a verb: all processes of the named folders and files, and all problems
 * found. Processes are in a fixed order (rank, start time, process id), on one clock and with
 * distinct pids and tids.
 */
#ifndef GPUPROF_COLLECTOR_RECORDING_H
#define GPUPROF_COLLECTOR_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/key_map.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/select_request.h"
#include "block.h"
#include "read/process.h"

/*
 * An index of the blocks and their begins for the merge, built while the headers are walked, then
 * sorted by time. It holds BLOCK_INDEX_ONE entries (56 bytes each) and BLOCK_INDEX_EACH per further
 * process, at most BLOCK_INDEX_MAX (4 MB). Above that, neighbouring entries of a file become one
 * for a run of blocks. The reader of a run walks its headers again and holds all its blocks at
 * once, which would take much memory with many processes.
 */
#define BLOCK_INDEX_ONE  16384
#define BLOCK_INDEX_EACH 256
#define BLOCK_INDEX_MAX  65536
#define BLOCK_RUN_MAX    (1u << 24)
#define INDEX_THREADS    UINT32_MAX

struct index_entry {
    uint64_t offset;  /* as in struct block_place */
    uint64_t time;    /* least begin: process ns; shared ns once sorted */
    uint64_t end;     /* largest end, likewise */
    uint64_t types;   /* union of block_types; 0: a block does not say */
    uint32_t process; /* in loading order */
    uint32_t thread;  /* number in the process; INDEX_THREADS: several threads */
    uint32_t records;
    uint32_t next;       /* once sorted: index of the process's next entry, or `count` */
    uint32_t count : 31; /* blocks of the run */
    uint32_t apart : 1;  /* the block before it in the file is left out */
};

struct block_index {
    struct index_entry *entries; /* owned */
    uint32_t count;
    uint32_t entries_max; /* for tests; 0: as above */
    uint32_t run_max;     /* most blocks per entry so far */
};

/* Adds a block, in file order; `apart`: the one before was left out. */
void block_index_add(struct block_index *x, uint32_t process, uint64_t offset,
                     const struct block_header *h, bool apart);

/* Removes the entries of the newest process, which turned out to be unused. */
void block_index_drop(struct block_index *x, uint32_t process);

/* Renumbers the processes; UINT32_MAX removes the entries of one. */
void block_index_renumber(struct block_index *x, const uint32_t *numbers);

/* Sorts by time, then process, then offset. */
void block_index_sort(struct block_index *x);
void block_index_release(struct block_index *x);

#define BOOT_ID_BYTES 16

/* Returns true for the same boot and thus CLOCK_MONOTONIC. An unknown one (0) equals none. */
static inline bool boots_are_same(const uint8_t *a, const uint8_t *b)
{
    static const uint8_t unknown[BOOT_ID_BYTES];
    return memcmp(a, b, BOOT_ID_BYTES) == 0 && memcmp(a, unknown, BOOT_ID_BYTES) != 0;
}

/*
 * The share of a recording's processes that this run reads; other runs read the rest (report
 * --partial). All runs read all headers and sort the processes by host and process id; share i of n
 * is the i-th n-th. Files without a header count in the first.
 */
struct share {
    uint32_t index, count; /* set by the caller */
    uint32_t file_count;   /* of all shares, like host_count */
    uint32_t host_count;
    uint64_t set; /* hash of all processes: equal in all shares */
};

/* A boot of a machine, whose processes share a clock. An unknown boot is a host of its own. */
enum host_clock {
    HOST_CLOCK_WALL,        /* the machine's CLOCK_REALTIME, unchanged */
    HOST_CLOCK_COLLECTIVES, /* corrected by host_clocks.h */
};

struct host {
    const struct process *first; /* first in display order */
    uint32_t processes;
    enum host_clock source;
    uint32_t reference;   /* the host it was aligned to; itself: to none */
    uint64_t collectives; /* collectives of both hosts with agreeing ends */
    int64_t offset_ns;    /* how far its clock was ahead in the middle of its time ... */
    double drift;         /* ... and how much faster it ran */
    uint64_t uncertainty_ns;
};

/* Returns how its clock was aligned, in a word for scripts. */
static inline const char *host_how(const struct host *hosts, uint32_t index)
{
    return hosts[index].source == HOST_CLOCK_COLLECTIVES ? "collectives"
           : index                                       ? "wall"
                                                         : "reference";
}

struct recording {
    struct reader reader;
    struct process **processes; /* owned; in display order */
    struct process **loaded;    /* owned array: in loading order, once all are loaded */
    uint32_t count;
    struct key_map known;          /* process ids -> 1 */
    uint32_t thread_count;         /* of all processes, including their threads 0 */
    uint32_t own_thread_count;     /* of these: thread 0 and device threads (gpu_record.h) */
    uint32_t left_out;             /* processes not selected */
    uint32_t left_out_ranks;       /* of these: possible ranks of a shown job */
    uint32_t repeated;             /* duplicate files of a process */
    uint32_t job_count;            /* jobs.c; includes jobs that are not selected */
    struct missing_ranks *missing; /* owned: missing ranks by job (see above) */
    uint32_t missing_count;
    struct host *hosts; /* owned */
    uint32_t host_count;
    uint32_t unread_files; /* files without a usable header ... */
    bool has_closed;       /* ... at least one for lack of permission */
    struct block_index index;
    const struct share *share; /* a view; NULL: all processes are kept */
    bool is_parallel;          /* another processor may write while this one reads */
    uint32_t workers;          /* processes that may read; 1: only this one */
    struct key_map said;       /* modules reported as lacking symbols (symbols.h) */
    char *looked_at;           /* owned: zero-terminated paths of symbol files looked at */
    size_t looked_at_bytes;
    struct progress *progress; /* for readers of blocks; NULL: not shown */
};

struct recording_options {
    bool keep_live;                      /* do not move live files of ended processes */
    bool no_index;                       /* leave block_index empty, for verbs that do not merge */
    bool quiet;                          /* no message for a folder without recordings */
    bool found;                          /* `paths` were found in a folder, not named by the user */
    uint32_t index_entries_max;          /* for tests; 0: the limits above */
    unsigned processors;                 /* processors to use; 0: no parallel work */
    bool all_jobs;                       /* no message if there are several jobs */
    const struct select_request *select; /* keeps only its jobs, ranks and pids; NULL: all */
    struct share *share; /* loads only its processes, and the headers of others; NULL: all */
};

/*
 * Loads every recording in `paths` (folders or files) and reports unusable ones on stderr. Returns
 * EXIT_OK or the verb's exit code: EXIT_USAGE if a file is not ours or nothing was found,
 * EXIT_DAMAGED if nothing could be read, EXIT_ENVIRONMENT. Call recording_release in every case.
 */
enum exit_code recording_open(struct recording *rec, char **paths, int path_count,
                              const struct recording_options *options);
void recording_release(struct recording *rec);

/* Adds a path to rec->looked_at. */
void recording_note_file(struct recording *rec, const char *path);

/* Deals the processes to `rec->workers` workers by bytes. The second function runs in a worker
 * (workers.h) and excludes the others' processes. */
void recording_deal(struct recording *rec);
void recording_keep_share(struct recording *rec, uint32_t worker);

/* Returns the bytes of all files, as stored. */
uint64_t recording_bytes(const struct recording *rec);

/* Orders the processes, puts them on one clock and makes pids and tids distinct (arrange.c). */
void recording_arrange(struct recording *rec);

/* Calls `move` for all clocks (clock_map_move) and sorts the blocks by their new times. */
typedef void recording_move_fn(const void *context, struct process *p);
void recording_move_clocks(struct recording *rec, recording_move_fn *move, const void *context);

/*
 * Finds the processes of each job (jobs.c), since several runs may have recorded the same ranks
 * into one folder. Criteria, in order: what launchers say (torchrun's run and address, a Slurm
 * step, PMIx's namespace) and the job's size; time, as a rank's processes follow each other. A
 * process without a rank has no job. Sets the processes' `rank` and `job` (numbered by begin),
 * job_count and `missing`. Memory meanwhile: about 150 bytes a process.
 */
void recording_find_jobs(struct recording *rec);

/* If there are several jobs, prints a line on stderr that says how to select one: `how`. */
void recording_say_jobs(const struct recording *rec, const char *how);

/* Removes the processes that are elsewhere. */
void recording_drop(struct recording *rec);

/* Finds the processes of the share: others are elsewhere. */
void recording_find_share(struct recording *rec, struct share *s);

/* Once all is loaded: keeps only the processes of the share, perhaps none. `s` must stay. */
void recording_share(struct recording *rec, struct share *s);

/* Removes what job, rank or pid exclude. Returns EXIT_OK, or another code after one line. */
enum exit_code recording_select(struct recording *rec, const struct select_request *request);

/*
 * Prints, one line per process, what was recovered and lost: `losses` by process index, and names
 * dropped because there were too many. Returns EXIT_OK or EXIT_DAMAGED, by the losses and
 * `strict`.
 */
enum exit_code recording_verdict(const struct recording *rec, const struct losses *losses,
                                 bool names_dropped, bool strict);

/* Returns true if it holds for any process: process_has_gpu, ... */
bool recording_any(const struct recording *rec, bool (*is_one)(const struct process *p));

/* Returns true if there may be records of these types (block_type_bit), according to the blocks. */
bool recording_may_have(const struct recording *rec, uint64_t types);

/* Returns the source of the process's GPU rows, or "absent: " and the reason. */
const char *process_gpu_rows(const struct process *p);

/* The same for the first process that has GPU rows, or else for the first. */
const char *recording_gpu_rows(const struct recording *rec);

/*
 * The ranks of a job without a file here: lost, on another host, unreadable, or without CUDA calls.
 * Known if launchers give the job's size (rank.h) and all its processes agree; also for ranks below
 * others that are here. Unknown if some processes were not selected or are in another share.
 * Memory: 24 bytes a process, meanwhile; 200 a job.
 */
#define MISSING_SPANS_MAX   8 /* per job: the first ones */
#define MISSING_RANKS_BYTES 512

struct missing_ranks {
    uint32_t job;
    uint32_t here;                        /* ranks with a file */
    uint64_t size;                        /* ranks of the job; 0: unknown */
    uint64_t count;                       /* ranks without a file */
    uint64_t spans[MISSING_SPANS_MAX][2]; /* first and last rank of each span */
    uint32_t span_count;                  /* includes spans beyond MISSING_SPANS_MAX */
};

/* Sets `missing`, by job. */
void recording_find_missing(struct recording *rec);

/* Returns the missing ranks of a job; NULL: none, as far as known. */
const struct missing_ranks *missing_ranks_of(const struct recording *rec, uint32_t job);

/* Returns true if the job certainly has several processes. A single one may have inherited its
 * variables from a shell. */
static inline bool missing_ranks_are_sure(const struct missing_ranks *m)
{
    return m->size && m->here > 1;
}

/* "ranks 2, 5-7 of 8"; returns `text`. */
char *missing_ranks_text(const struct missing_ranks *m, char text[static MISSING_RANKS_BYTES]);

/* Files that gpuprof wrote and that are not recordings. */
#define PART_MAGIC 0x0054524150555047ull /* "GPUPART\0": begin of a part of a report */

/* Returns advice for a file that is not a recording: "; ..." to append to the message. */
const char *foreign_advice(const char *path);

/* Gives `w` the recorded command line, if it is known: one recorded process must be the ancestor of
 * all others. It is unknown for ranks that an unrecorded launcher started. */
void recorded_program(const struct recording *rec, struct next_words *w);

#endif
