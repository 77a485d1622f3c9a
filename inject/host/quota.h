/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that the process's cgroup may have the processors (docker's --cpus, limits.cpu of
 * Kubernetes): once it is used up, all threads stop until the next period, ours too. HOST_COUNTERS
 * records say when that was.
 */
#ifndef GPUPROF_INJECT_QUOTA_H
#define GPUPROF_INJECT_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/descriptor.h"

struct thread;

/* A cgroup that has such a limit. */
struct quota {
    struct kept_file stat;
    bool is_v2;
    uint64_t milli_processors;
};

/* How often it was stopped, and for how long in all. */
struct quota_counts {
    uint64_t periods; /* in which it wanted to run */
    uint64_t throttled;
    uint64_t throttled_ns; /* each processor's added up */
};

/*
 * The nearest group of the process that has a limit, by what `groups` lists (/proc/self/cgroup),
 * below `mounts` (/sys/fs/cgroup). False: none has.
 */
bool quota_find(struct quota *q, const char *groups, const char *mounts);

bool quota_read(const struct quota *q, struct quota_counts *c);

/* As host_pulse of host_thread.h. */
uint64_t quota_pulse(struct thread *me, uint64_t now_ns);

/* By the writer: META record "cpu_throttled", how often and in how many periods, and the limit. */
void quota_describe(struct thread *writer, bool is_last);

/* In the child of a fork. */
void quota_forget(void);

#endif
