/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that processes of a recording ran on, which is a boot of it: those share one clock.
 * Where the boot is not known, each process is taken for a host of its own.
 */
#ifndef GPUPROF_COLLECTOR_HOST_H
#define GPUPROF_COLLECTOR_HOST_H

#include <stdint.h>

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

#endif
