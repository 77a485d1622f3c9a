/* SPDX-License-Identifier: Apache-2.0 */
#include "host/quota.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ticks.h"
#include "record/thread.h"
#include "store/meta.h"

#define TEXT_BYTES 4096
#define PATH_BYTES 1024
#define SECOND_NS  1000000000u
/* if our thread runs this much later than planned, it may have been throttled */
#define LATE_NS 15000000u

/* Used only by the thread. */
static struct {
    struct quota quota;
    bool is_looked_for, is_found;
    uint64_t read_ns; /* CLOCK_MONOTONIC time of the last reading */
    uint64_t seen_ns; /* when our thread last came here */
    struct quota_counts counts;
} own;

/* Written by the thread for the writer: totals of the recording so far. */
static struct {
    _Atomic uint64_t throttled, periods, milli_processors;
    uint64_t reported; /* of the first reading; used by the writer */
} sums;

/* Returns false if the file does not exist. */
static bool read_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool quota_read_number(const char *folder, const char *name, long long *number)
{
    char path[PATH_BYTES], text[64];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || length >= (int)sizeof path || !read_text(path, text, sizeof text))
        return false;
    char *end;
    *number = strtoll(text, &end, 10); /* "max": no limit */
    return end > text;
}

/* Does the group have a limit? Version 2 has both numbers in one file. */
static bool take_group(struct quota *q, const char *folder)
{
    char path[PATH_BYTES], text[64], *rest;
    long long quota = 0, period = 0;
    if (q->is_v2) {
        int length = snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (length >= (int)sizeof path || !read_text(path, text, sizeof text))
            return false;
        quota = strtoll(text, &rest, 10);
        period = strtoll(rest, NULL, 10);
    } else if (!quota_read_number(folder, "cpu.cfs_quota_us", &quota) ||
               !quota_read_number(folder, "cpu.cfs_period_us", &period)) {
        return false;
    }
    if (quota <= 0 || period <= 0)
        return false;
    q->milli_processors = (uint64_t)quota * 1000 / (uint64_t)period;
    int length = snprintf(path, sizeof path, "%s/cpu.stat", folder);
    return length < (int)sizeof path && kept_file_open(&q->stat, path);
}

/* Finds the group `name`, or the nearest one around it, below `mount`. In a container, the mount
 * may begin with the group itself. */
static bool take_nearest(struct quota *q, const char *mount, const char *name)
{
    char folder[PATH_BYTES];
    size_t root = strlen(mount);
    int length = snprintf(folder, sizeof folder, "%s%s", mount, name);
    if (length < 0 || length >= (int)sizeof folder)
        return false;
    for (char *end = folder + length; end;) {
        *end = '\0';
        if (take_group(q, folder))
            return true;
        end = strlen(folder) > root ? strrchr(folder + root, '/') : NULL;
    }
    return false;
}

/* Does a comma-separated list have the word? */
static bool has_word(const char *list, size_t length, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *p = list; p + bytes <= list + length; p++)
        if (memcmp(p, word, bytes) == 0 && (p == list || p[-1] == ',') &&
            (p + bytes == list + length || p[bytes] == ','))
            return true;
    return false;
}

/* A line is NUMBER:CONTROLLERS:/GROUP; for version 2 CONTROLLERS is empty. */
static bool quota_take_line(struct quota *q, const char *line, const char *mounts)
{
    char mount[PATH_BYTES];
    const char *list = strchr(line, ':'), *name = list ? strchr(list + 1, ':') : NULL;
    if (!name)
        return false;
    size_t bytes = (size_t)(name - ++list);
    name++;
    q->is_v2 = bytes == 0;
    if (q->is_v2)
        return take_nearest(q, mounts, name);
    if (!has_word(list, bytes, "cpu") ||
        snprintf(mount, sizeof mount, "%s/%.*s", mounts, (int)bytes, list) >= (int)sizeof mount)
        return false;
    return take_nearest(q, mount, name);
}

bool quota_find(struct quota *q, const char *groups, const char *mounts)
{
    char text[TEXT_BYTES], *rest = NULL;
    *q = (struct quota){.stat = {.fd = -1}};
    if (!read_text(groups, text, sizeof text))
        return false;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (quota_take_line(q, line, mounts))
            return true;
    return false;
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

bool quota_read(const struct quota *q, struct quota_counts *c)
{
    char text[TEXT_BYTES];
    if (!kept_file_read(&q->stat, text, sizeof text))
        return false;
    c->periods = number_after(text, "nr_periods ");
    c->throttled = number_after(text, "nr_throttled ");
    c->throttled_ns = q->is_v2 ? 1000 * number_after(text, "throttled_usec ")
                               : number_after(text, "throttled_time ");
    return true;
}

/*
 * Records the last `ns`. The record begins with them, so that a reader has it before later events.
 */
static void quota_report(struct thread *me, const struct quota_counts *now, uint64_t ns)
{
    uint64_t ticks =
        (uint64_t)(((unsigned __int128)ns << CLOCK_SCALE_SHIFT) / gp.header.scale.mult);
    struct record r = {
        RECORD_WITH(HOST_COUNTERS, [HOST_COUNTERS_QUOTA] = own.quota.milli_processors,
                    [HOST_COUNTERS_THROTTLED] = now->throttled - own.counts.throttled,
                    [HOST_COUNTERS_THROTTLED_NS] = now->throttled_ns - own.counts.throttled_ns),
        .begin = ticks_now() - ticks, .duration = ticks};
    thread_append(me, &r);
}

uint64_t quota_pulse(struct thread *me, uint64_t now_ns)
{
    struct quota_counts now;
    bool is_first = !own.is_looked_for;
    if (is_first) {
        own.is_looked_for = true;
        own.is_found = quota_find(&own.quota, "/proc/self/cgroup", "/sys/fs/cgroup") &&
                       quota_read(&own.quota, &own.counts);
        own.read_ns = own.seen_ns = now_ns;
        if (own.is_found)
            atomic_store(&sums.milli_processors, own.quota.milli_processors);
    }
    if (!own.is_found)
        return UINT64_MAX;
    uint64_t late_ns = now_ns - own.seen_ns;
    own.seen_ns = now_ns;
    bool is_late = late_ns >= LATE_NS;
    if (!is_first && !is_late && now_ns - own.read_ns < SECOND_NS)
        return own.read_ns + SECOND_NS;
    if (quota_read(&own.quota, &now)) {
        if (is_first || now.throttled != own.counts.throttled ||
            now.throttled_ns != own.counts.throttled_ns)
            quota_report(me, &now, is_late ? late_ns : now_ns - own.read_ns);
        atomic_fetch_add(&sums.periods, now.periods - own.counts.periods);
        atomic_fetch_add(&sums.throttled, now.throttled - own.counts.throttled);
        own.counts = now;
    }
    own.read_ns = now_ns;
    return now_ns + SECOND_NS;
}

/* Not each time, since readers keep all of them. */
void quota_describe(struct thread *writer, bool is_last)
{
    char text[100];
    uint64_t throttled = atomic_load(&sums.throttled), reported = sums.reported;
    if (throttled == reported || (!is_last && throttled < reported + reported / 8 + 1))
        return;
    sums.reported = throttled;
    snprintf(text, sizeof text, "%llu %llu %llu", (unsigned long long)throttled,
             (unsigned long long)atomic_load(&sums.periods),
             (unsigned long long)atomic_load(&sums.milli_processors));
    meta_append_text(writer, "cpu_throttled", text);
}

void quota_forget(void)
{
    memset(&sums, 0, sizeof sums);
    kept_file_close(&own.quota.stat);
    memset(&own, 0, sizeof own);
    own.quota.stat.fd = -1;
}
