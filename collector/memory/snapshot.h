/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory history of a process in the format of PyTorch's snapshots
 * (torch.cuda.memory._snapshot), which pytorch.org/memory_viz and torch.cuda._memory_viz open.
 * Segments come from CUDA, blocks from PyTorch's allocator; a segment without blocks is its own
 * block. Host memory and arrays are left out. If a moment is requested, the history ends there.
 *
 * Memory: 1 byte a segment, up to SNAPSHOT_SEGMENTS_MAX of a device, beside the ledger's. An
 * unnamed file (spool.h) stores 40 bytes for each action.
 */
#ifndef GPUPROF_COLLECTOR_SNAPSHOT_H
#define GPUPROF_COLLECTOR_SNAPSHOT_H

#include "base/options.h"
#include "base/spool.h"
#include "memory/ledger.h"
#include "memory/memory_report.h"
#include "output/output.h"
#include "resolve/call_tree.h"

#define SNAPSHOT_DEVICES_MAX  32
#define SNAPSHOT_SEGMENTS_MAX (1u << 23) /* beyond that, blocks in them are not tracked */

/* PyTorch's actions, on a block of CUDA's or of PyTorch's. */
enum snapshot_action {
    SNAPSHOT_SEGMENT_GOT,
    SNAPSHOT_SEGMENT_GONE,
    SNAPSHOT_MAPPED,
    SNAPSHOT_UNMAPPED,
    SNAPSHOT_BLOCK_GOT,
    SNAPSHOT_BLOCK_GONE,
    SNAPSHOT_OOM,
    SNAPSHOT_REFUSED /* refused by CUDA: PyTorch's allocator then tries another way */
};

struct snapshot_item {
    uint64_t address; /* for an OOM: free bytes, if the program knew; else 0 */
    uint64_t bytes;
    uint64_t at_ns;
    uint32_t origin;
    uint32_t segment; /* segment number, from 1 on; 0: not known, or mapped */
    uint8_t action;
};

struct snapshot_device {
    bool is_used;
    struct spool items;
    struct mappings segments; /* live segments that are not mapped; each leads to its number */
    uint32_t segment_count;
    bool *used; /* owned, by number: a block has been in it */
    uint32_t used_count;
    bool has_blocks;  /* it has PyTorch blocks */
    bool maps_blocks; /* some blocks lie in mapped memory: then all mapped memory is for blocks */
    uint64_t free;    /* free bytes at the program's last query; 0: no query */
};

struct snapshot {
    struct memory_report *report;
    const struct process *process;
    struct ledger ledger;
    struct ledger_layout layout; /* at the end */
    int error;                   /* of a spool */
    struct snapshot_device devices[SNAPSHOT_DEVICES_MAX];
};

/* One that is not known, or beyond the maximum, counts as the first. */
static inline struct snapshot_device *snapshot_device(struct snapshot *s, uint32_t number)
{
    return &s->devices[number < SNAPSHOT_DEVICES_MAX ? number : 0];
}

/* (snapshot_write.c) Writes its pickle, with frames from the report's tree. 0 or an error. */
int snapshot_write(struct snapshot *s, struct output *out);

/* (snapshot.c) Writes a file for each process that allocated: `output`, with rank_N or pid_N in the
 * name if there are several. */
enum exit_code snapshot_files(struct recording *rec, const struct options *options,
                              double at_seconds);

#endif
