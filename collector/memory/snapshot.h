/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a process's memory, as PyTorch's snapshots have it (torch.cuda.memory._snapshot):
 * what its viewer at pytorch.org/memory_viz and torch.cuda._memory_viz open. Segments are what CUDA
 * gave, blocks those of PyTorch's allocator; where it has put none, a segment is its own block.
 * Memory of the host and arrays are left out. Of a moment that is asked for it has what happened
 * until then.
 *
 * Memory: 1 bit a segment, up to SNAPSHOT_SEGMENTS_MAX of a device, beside what the ledger takes;
 * 40 bytes for each thing that happened lie in a file without a name (spool.h) until all is known.
 */
#ifndef GPUPROF_COLLECTOR_SNAPSHOT_H
#define GPUPROF_COLLECTOR_SNAPSHOT_H

#include "base/options.h"
#include "base/spool.h"
#include "memory/ledger.h"
#include "memory/memory_report.h"
#include "output/output.h"
#include "resolve/call_tree.h"

#define SNAPSHOT_DEVICES_MAX  64         /* further ones are left out, and counted */
#define SNAPSHOT_SEGMENTS_MAX (1u << 26) /* of which is known whether blocks lie in them */

/* As PyTorch has them, with a block of CUDA's or of PyTorch's. */
enum snapshot_action {
    SNAPSHOT_SEGMENT_GOT,
    SNAPSHOT_SEGMENT_GONE,
    SNAPSHOT_MAPPED,
    SNAPSHOT_UNMAPPED,
    SNAPSHOT_BLOCK_GOT,
    SNAPSHOT_BLOCK_GONE,
    SNAPSHOT_LONE_GOT, /* a block in no segment, which then is its own */
    SNAPSHOT_LONE_GONE,
    SNAPSHOT_OOM,
    SNAPSHOT_REFUSED, /* by CUDA: where PyTorch allocates, it tries otherwise then */
    SNAPSHOT_MADE     /* what comes last */
};

struct snapshot_item {
    uint64_t address; /* of an OOM: bytes that are free, as far as the program knew; else 0 */
    uint64_t bytes;
    uint64_t at_ns;
    uint32_t origin;
    uint32_t segment; /* its number, from 1 on; 0: not known */
    uint8_t action;
};

struct snapshot_device {
    struct spool items;
    struct mappings segments; /* that are there now; each leads to its number */
    uint32_t segment_count;
    uint8_t *used; /* owned: bits by number, has any block been in it? */
    uint32_t used_bytes;
    bool has_blocks;  /* PyTorch's */
    bool maps_blocks; /* some lie in mapped memory: then all that is mapped is for blocks */
    uint64_t free;    /* as the program was told last; 0: it was not */
};

struct snapshot {
    struct memory_report *report;
    const struct process *process;
    struct ledger ledger;
    struct ledger_layout layout;                           /* at the end */
    struct snapshot_device *devices[SNAPSHOT_DEVICES_MAX]; /* owned, by number; NULL: nothing */
    uint64_t left_out; /* things that happened on devices beyond the maximum */
};

/* (snapshot_write.c) Its pickle; `tree` (NULL: there are no stacks) has the frames. 0 or an error.
 */
int snapshot_write(struct snapshot *s, struct call_tree *tree, struct output *out);

/* (snapshot.c) A file for each process that got memory: `output`, or, of several, with rank_N
 * or pid_N in the name. */
enum exit_code snapshot_files(struct recording *rec, const struct options *options,
                              double at_seconds);

/*
 * Writes Python's pickle format, protocol 2: dictionaries, lists, texts and whole numbers, and no
 * opcode that PyTorch's viewer of memory snapshots, which has a reader of its own, does not know.
 * What is used again is remembered under a number (the memo), and then takes three bytes or six.
 *
 * An item is what one of the pickle_... calls puts there; in a dictionary keys and values take
 * turns. Nothing is returned: errors stick to the output.
 */
#define PICKLE_BATCH     1000 /* items of a list that readers have on their stack at a time */
#define PICKLE_DEPTH_MAX 8
#define PICKLE_TEXT_MAX  65536 /* bytes; what is longer is cut */

struct pickle {
    struct output *out;
    uint32_t memo_count;
    unsigned depth;
    struct {
        bool is_list;
        uint32_t items; /* since its last mark */
    } open[PICKLE_DEPTH_MAX];
};

void pickle_begin(struct pickle *p, struct output *out);
void pickle_end(struct pickle *p);

/* From one to the other an item. */
void pickle_open_dict(struct pickle *p);
void pickle_open_list(struct pickle *p);
void pickle_close(struct pickle *p);

/* A text: valid UTF-8. */
void pickle_text(struct pickle *p, const char *text);
void pickle_number(struct pickle *p, uint64_t number);
void pickle_bool(struct pickle *p, bool value);
void pickle_pair(struct pickle *p, uint64_t first, uint64_t second);

/* The item that is complete is remembered, under the number returned, from 1 on, and put there
 * again. */
uint32_t pickle_remember(struct pickle *p);
void pickle_again(struct pickle *p, uint32_t remembered);

#endif
