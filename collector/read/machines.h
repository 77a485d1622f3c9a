/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes share one CLOCK_MONOTONIC: those of one boot of a machine. Machines that were
 * cloned while they ran (from a snapshot) say that they are of the same boot; what their wall
 * clocks are ahead of the monotonic one tells them apart, since that changes only when a wall clock
 * is set. Processes of one boot whose clocks differ by MACHINE_APART_NS are apart if their hosts
 * have different names (containers of one machine have, but the same clocks), or if a clock would
 * have been set there and back again and again.
 */
#ifndef GPUPROF_COLLECTOR_MACHINES_H
#define GPUPROF_COLLECTOR_MACHINES_H

#include <stdint.h>

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

#endif
