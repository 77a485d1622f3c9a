/* SPDX-License-Identifier: Apache-2.0 */
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
#ifndef GPUPROF_COLLECTOR_SHARE_H
#define GPUPROF_COLLECTOR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "read/process.h"

/*
 * Which processes share one CLOCK_MONOTONIC: those of one boot of a machine. Machines that were
 * cloned while they ran (from a snapshot) say that they are of the same boot; what their wall
 * clocks are ahead of the monotonic one tells them apart, since that changes only when a wall clock
 * is set. Processes of one boot whose clocks differ by MACHINE_APART_NS are apart if their hosts
 * have different names (containers of one machine have, but the same clocks), or if a clock would
 * have been set there and back again and again.
 */
#define MACHINE_APART_NS 100000000

/* What a process says of its machine; all are views. */
struct machine_claim {
    const uint8_t *boot_id; /* 16 bytes; all 0: not known, such a process is alone */
    const char *host;
    uint64_t offset;   /* CLOCK_REALTIME - CLOCK_MONOTONIC, modulo 2^64 */
    uint64_t begin_ns; /* CLOCK_REALTIME then */
    uint32_t machine;  /* found: the same for processes of one clock */
};

/* 0 or GPUPROF_NO_MEMORY. */
int machines_find(struct machine_claim *claims, uint32_t count);

struct share_file {
    char *path; /* owned */
    uint8_t process_id[16];
    uint8_t boot_id[16];
    uint64_t begin_ns;     /* of the process, by the host's wall clock */
    uint64_t clock_offset; /* as struct clock_map has it; once dealt, that of its machine */
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

#endif
