/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings that a verb was given: all processes of the folders and files named, in a fixed
 * order (rank if they have one, start time, process id), put on one clock and with distinct pids
 * and tids; and what went wrong with them.
 */
#ifndef GPUPROF_COLLECTOR_RECORDING_H
#define GPUPROF_COLLECTOR_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/key_map.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/select_wish.h"
#include "base/sha256.h"
#include "block.h"
#include "read/process.h"

/*
 * Where the blocks are and when they begin, for the merge: made while the headers are walked, then
 * sorted by time. Its size is bounded: beyond BLOCK_INDEX_ONE entries (48 bytes each) and
 * BLOCK_INDEX_EACH for each further process, BLOCK_INDEX_MAX at most (3 MB), neighbouring entries
 * of one file become one that stands for a run of blocks; whoever comes to such a run walks its
 * headers again, and has all of its blocks at hand, which would be many where processes are.
 */
#define BLOCK_INDEX_ONE  16384
#define BLOCK_INDEX_EACH 256
#define BLOCK_INDEX_MAX  65536
#define BLOCK_RUN_MAX    (1u << 24)
#define INDEX_THREADS    UINT32_MAX

struct index_entry {
    uint64_t offset;     /* as struct block_place */
    uint64_t time;       /* the least begin: process ns, shared ns once it is sorted */
    uint64_t end;        /* the largest end, likewise */
    uint64_t types;      /* as struct block_header, of all of them; 0: not all say */
    uint32_t process;    /* number in the order of loading */
    uint32_t thread;     /* its number in the process; INDEX_THREADS: blocks of several */
    uint32_t next;       /* once sorted: the place of its process's next, or `count` of the index */
    uint32_t count : 31; /* blocks of the run */
    uint32_t apart : 1;  /* the block before it in the file is not to be used */
};

struct block_index {
    struct index_entry *entries; /* owned */
    uint32_t count;
    uint32_t entries_max; /* in tests; 0: as above */
    uint32_t run_max;     /* blocks that an entry may stand for now */
};

/*
 * Blocks are added in the order in which their files are walked; `apart` if one was left out before
 * this one. 0 or GPUPROF_NO_MEMORY.
 */
int block_index_add(struct block_index *x, uint32_t process, uint64_t offset,
                    const struct block_header *h, bool apart);

/* Takes out the entries of a process that is not used after all. */
void block_index_drop(struct block_index *x, uint32_t process);

/* Gives processes other numbers, by their own; UINT32_MAX: its entries are taken out. */
void block_index_renumber(struct block_index *x, const uint32_t *numbers);

/* By time, then process, then offset. */
void block_index_sort(struct block_index *x);
void block_index_release(struct block_index *x);

/*
 * Which of a recording's processes are read here, where others read the rest (report --partial).
 * All of them come to the same shares without a word between them: each reads the headers of all
 * files, which have the processes' ids, and puts them in order by host and id; share i of n is the
 * i-th n-th of that. A process is in one share, whole; what cannot be read at all is in the first.
 * That clocks of a host have the offset that the first of its processes had holds for all of its
 * processes, whichever share they are in.
 *
 * Memory: 80 bytes a file, its path and the host's name.
 */
#define BOOT_ID_BYTES 16

/* Are both of the same boot of a machine, whose processes share CLOCK_MONOTONIC? Not where the boot
 * is not known, which is all 0. */
static inline bool boots_are_same(const uint8_t *a, const uint8_t *b)
{
    static const uint8_t unknown[BOOT_ID_BYTES];
    return memcmp(a, b, BOOT_ID_BYTES) == 0 && memcmp(a, unknown, BOOT_ID_BYTES) != 0;
}

struct share_file {
    char *path; /* owned */
    uint8_t process_id[16];
    uint8_t boot_id[16];
    uint64_t begin_ns;     /* of the process, by the host's wall clock */
    uint64_t clock_offset; /* as struct clock_map has it; once dealt, that of its boot */
    char *host;            /* owned */
    bool is_named;         /* by the user, and not found in a folder */
    bool is_lost;          /* it has no header */
    bool is_here;          /* it is of this share */
};

struct share {
    uint32_t index;           /* from 0 on ... */
    uint32_t count;           /* ... of so many, to be set before all else */
    struct share_file *files; /* owned */
    uint32_t file_count;
    uint32_t host_count;           /* of all processes, once they are dealt */
    char set[SHA256_BASE64_BYTES]; /* of all processes: the same in all shares */
};

/* One more file of the recording. 0 or GPUPROF_NO_MEMORY. */
int share_add(struct share *s, struct reader *r, const char *path, bool is_named);

/* After the last: which files are of this share. 0 or GPUPROF_NO_MEMORY. */
int share_deal(struct share *s);

/* What the clock of that process is to have; `offset`: it is not known. */
uint64_t share_clock_offset(const struct share *s, const uint8_t *process_id, uint64_t offset);

void share_release(struct share *s);

/*
 * A machine that processes of a recording ran on, which is a boot of it: those share one clock.
 * Where the boot is not known, each process is taken for a host of its own.
 */
enum host_clock {
    HOST_CLOCK_WALL,        /* CLOCK_REALTIME of the machine, as it is */
    HOST_CLOCK_COLLECTIVES, /* that, moved by what host_clocks.h finds */
};

struct host {
    const struct process *first; /* in the order in which they are shown */
    uint32_t processes;
    enum host_clock source;
    uint32_t reference;   /* the host whose clock it was put on; itself: on no other's */
    uint64_t collectives; /* in which both took part, and whose ends agree */
    int64_t offset_ns;    /* by how much its clock was ahead, in the middle of its time ... */
    double drift;         /* ... and by how much it ran faster */
    uint64_t uncertainty_ns;
};

/* How that is, in a word for scripts. */
static inline const char *host_how(const struct host *hosts, uint32_t index)
{
    return hosts[index].source == HOST_CLOCK_COLLECTIVES ? "collectives"
           : index                                       ? "wall"
                                                         : "reference";
}

struct recording {
    struct reader reader;
    struct process **processes; /* owned; in the order in which they are shown */
    struct process **loaded;    /* owned array: the same by number, once all are loaded */
    uint32_t count;
    struct key_map known;      /* the ids of all processes -> 1 */
    uint32_t thread_count;     /* over all processes, with thread 0 of each */
    uint32_t own_thread_count; /* of these: 0, and those that tell of devices (gpu_record.h) */
    uint32_t left_out;         /* processes that are not wanted */
    uint32_t left_out_ranks;   /* of these, that may be ranks of a job that is shown */
    uint32_t repeated;         /* files of a process that another one is of */
    uint32_t others_count;
    uint64_t *others;   /* owned: of those the ranks, or else the pids, as was asked for */
    uint32_t job_count; /* jobs.c; also those that are not wanted */
    struct missing_ranks *missing; /* owned: of which jobs ranks are not here (see above) */
    uint32_t missing_count;
    struct host *hosts; /* owned */
    uint32_t host_count;
    uint32_t unread_files; /* of which nothing is shown: their header is lost, ... */
    bool has_closed;       /* ... or, of one at least, we may not read it */
    struct block_index index;
    const struct share *share; /* a view; NULL: all processes are read here */
    bool is_parallel;          /* another processor may write while this one reads */
    uint32_t processors;       /* that may be used, at most WORKERS_MAX */
    uint32_t workers;          /* processes that may read the recordings; 1: this one only */
    struct key_map said;       /* modules without symbols of which it is said (symbols.h) */
    char *looked_at;           /* owned: texts, each with its zero: where symbols were looked for */
    size_t looked_at_bytes;
    struct progress *progress; /* of those who read the blocks; NULL: nobody wants to see it */
};

struct recording_options {
    bool keep_live;             /* leave the live files of ended processes where they are */
    bool no_index;              /* block_index stays empty: for those who do not merge */
    bool quiet;                 /* say nothing of a folder without recordings */
    bool found;                 /* `paths` were found in a folder, and named by nobody */
    uint32_t index_entries_max; /* 0: as block_index.h says */
    unsigned processors;        /* that may be used; 0: nothing is done by several at a time */
    const struct select_wish
        *select;         /* its jobs, ranks and pids: others are left out; NULL: none is */
    struct share *share; /* only its files, of which there may be none; NULL: all. To be released */
};

/*
 * Loads every recording in `paths` (folders, or files). Says on stderr what cannot be used. Returns
 * EXIT_OK, or the exit code to end with: EXIT_USAGE if a file is not ours or there is nothing,
 * EXIT_DAMAGED if nothing at all could be read, EXIT_ENVIRONMENT. recording_release must follow in
 * every case.
 */
enum exit_code recording_open(struct recording *rec, char **paths, int path_count,
                              const struct recording_options *options);
void recording_release(struct recording *rec);

/* Adds to rec->looked_at. 0 or GPUPROF_NO_MEMORY. */
int recording_note_file(struct recording *rec, const char *path);

/* Which of so many workers, at most WORKERS_MAX, reads the events of which process: each about as
 * many bytes; those of the one that reads the most are returned. Then, in one of them (workers.h):
 * those of others are not read. */
uint64_t recording_deal(struct recording *rec, uint32_t workers);
void recording_keep_share(struct recording *rec, uint32_t worker);

/* Of all files, as stored. */
uint64_t recording_bytes(const struct recording *rec);

/* Orders the processes, puts them on one clock, makes pids and tids distinct (arrange.c). */
int recording_arrange(struct recording *rec);

/* Has `move` move the clocks of processes (clock_map_move), and brings the blocks into the order of
 * their new times. */
typedef void recording_move_fn(const void *context, struct process *p);
void recording_move_clocks(struct recording *rec, recording_move_fn *move, const void *context);

/*
 * Which processes are of one job (jobs.c): several runs may have recorded into one folder, and
 * their ranks are the same. What tells them apart is first what launchers say of themselves
 * (torchrun's run and address, a Slurm step, PMIx's namespace), and of how many ranks the job is;
 * then time, since no rank is there twice, one process behind the other; and, of processes of which
 * no launcher says anything, who started them. A process that has no rank is of no job. Sets `rank`
 * and `job` of all processes, jobs by the begin of their first processes, job_count, and `missing`.
 * Memory, meanwhile: some 200 bytes a process. 0 or GPUPROF_NO_MEMORY.
 */
int recording_find_jobs(struct recording *rec);

/* A line on stderr, if there are several jobs, and how to see one: `how`. */
void recording_say_jobs(const struct recording *rec, const char *how);

/* Only the processes that are wanted, by job, rank and pid, stay. EXIT_OK, or another exit code
 * after a line on stderr. */
enum exit_code recording_select_jobs(struct recording *rec, const struct select_wish *wish);

/* Of a process that is not wanted, what it could be asked for by: 0 or GPUPROF_NO_MEMORY. Then, if
 * none is left, a line on stderr that says what there is. EXIT_USAGE. */
int recording_note_other(struct recording *rec, const struct process *p);
enum exit_code recording_none_wanted(struct recording *rec);

/*
 * Says on stderr, one line per process, what was recovered and what is lost: `losses`, by process
 * index, and names if there were too many to keep. Returns EXIT_OK or EXIT_DAMAGED, as the losses
 * and `strict` have it.
 */
enum exit_code recording_verdict(const struct recording *rec, const struct losses *losses,
                                 bool names_dropped, bool strict);

/* Has any of the processes GPU work? */
bool recording_has_gpu(const struct recording *rec);

/* Or should any have some (process_expects_gpu)? */
bool recording_expects_gpu(const struct recording *rec);

/* May any have PyTorch's operators? */
bool recording_has_ops(const struct recording *rec);

/* Or records of one of these types (block_type_bit), as far as its blocks say? */
bool recording_may_have(const struct recording *rec, uint64_t types);

/* Does any of the processes say that its calls may have stacks? */
bool recording_has_stacks(const struct recording *rec);

/* Where the process's rows of the GPU come from, or "absent: " and why. */
const char *process_gpu_rows(const struct process *p);

/* Where they come from, or "absent: " and why, as the first process that knows says it. */
const char *recording_gpu_rows(const struct recording *rec);

/*
 * Which ranks of a job have no file here: it was lost, lies on another host, or cannot be read, or
 * the process made no call of CUDA's. Known where launchers say of how many ranks a job is
 * (rank.h), if all of its processes say the same, and of ranks that lie below others that are here.
 * Nothing is known where some processes were not looked at, since they were not asked for, or are
 * in another share.
 *
 * Memory: 24 bytes a process, meanwhile; 200 a job.
 */
#define MISSING_SPANS_MAX   8 /* that are kept of a job: the first ones */
#define MISSING_RANKS_BYTES 512

struct missing_ranks {
    uint32_t job;
    uint32_t here;                        /* ranks of it that have one */
    uint64_t size;                        /* ranks of the job; 0: not known */
    uint64_t count;                       /* of those that have none */
    uint64_t spans[MISSING_SPANS_MAX][2]; /* first and last of each */
    uint32_t span_count;                  /* also of those that are not kept */
};

/* Sets `missing`, by job (share.c). 0 or GPUPROF_NO_MEMORY. */
int recording_find_missing(struct recording *rec);

/* Those of a job; NULL: all of it are here, for all that is known. */
const struct missing_ranks *missing_ranks_of(const struct recording *rec, uint32_t job);

/* Is it a job of several processes for sure? One alone may have its variables from a shell, and
 * nothing to do with other ranks. */
static inline bool missing_ranks_are_sure(const struct missing_ranks *m)
{
    return m->size && m->here > 1;
}

/* "ranks 2, 5-7 of 8"; returns `text`. */
char *missing_ranks_text(const struct missing_ranks *m, char text[static MISSING_RANKS_BYTES]);

/* What gpuprof itself has written that is no recording, and who reads it. */
#define PART_MAGIC 0x0054524150555047ull /* "GPUPART\0": a part of a report begins so */

/* What to do with the file at `path`, which is no recording: "; ..." to be put behind the message.
 */
const char *foreign_advice(const char *path);

/* Tells the command line that it is of to `w`, if it is known: where one recorded process is the
 * parent, or theirs, of all others. Of several that something else has started, as a launcher
 * starts ranks, it is not. (recorded_program.c) */
void recorded_program(const struct recording *rec, struct next_words *w);

#endif
