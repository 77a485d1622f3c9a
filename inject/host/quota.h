/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroup's CPU limit (docker's --cpus, limits.cpu of Kubernetes). When the quota of a period is
 * used up, all threads stop until the next period, ours too. HOST_COUNTERS records say when that
 * happened.
 */
#ifndef GPUPROF_INJECT_QUOTA_H
#define GPUPROF_INJECT_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/descriptor.h"

struct thread;

/* A cgroup with such a limit. */
struct quota {
    struct kept_file stat;
    bool is_v2;
    uint64_t milli_processors;
};

/* How often it was throttled, and for how long in total. */
struct quota_counts {
    uint64_t periods; /* periods in which it wanted to run */
    uint64_t throttled;
    uint64_t throttled_ns; /* summed over processors */
};

/* Finds the process's nearest group with a limit, from the list `groups` (/proc/self/cgroup), below
 * `mounts` (/sys/fs/cgroup). Returns false if none has one. */
bool quota_find(struct quota *q, const char *groups, const char *mounts);

bool quota_read(const struct quota *q, struct quota_counts *c);

/* A host_pulse of host_thread.h. */
uint64_t quota_pulse(struct thread *me, uint64_t now_ns);

/* Called by the writer: META record "cpu_throttled" with how often, in how many periods, and the
 * limit. */
void quota_describe(struct thread *writer, bool is_last);

/* Call it in the child of a fork. */
void quota_forget(void);

#endif
