/* SPDX-License-Identifier: Apache-2.0 */
#include "life/victims.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/proc.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "bytes.h"
#include "live.h"
#include "stream.h"

#define VICTIM_COUNT_MAX 32
#define SIGNALS          32 /* those in the signal masks of /proc/PID/stat, and 0 */
#define STAT_BYTES       768
#define LINK_BYTES       256
#define NUMBER_BYTES     12
/* descriptors to check; a live file is among the first 200 or soon after */
#define FILES_MAX       1024
#define TIME_SHARE      20            /* asking may take this fraction of the process's time, ... */
#define TIME_AT_ONCE_NS 1000000000ull /* ... and this much at once before that limit applies */
#define LIVE_NAME_BYTES (sizeof "/gpuprof-" - 1 + 32 + sizeof STREAM_LIVE_SUFFIX - 1)

struct victim {
    uint8_t *head;     /* first page of its live file, mapped; only the kernel touches it */
    uint32_t answered; /* value of the answer word before the request */
};

struct victims {
    int signal;
    pid_t group; /* only members of this group, except the caller; 0: one process; -1: all */
    uint32_t pid;
    uint32_t begin; /* start time of the process; it may have another pid in its own namespace */
    uint64_t end_ns;
    unsigned files_left; /* for this process */
    unsigned count;
    struct victim all[VICTIM_COUNT_MAX];
};

static _Atomic uint32_t *word(const struct victim *v, uint32_t offset)
{
    return (_Atomic uint32_t *)(void *)(v->head + offset);
}

static bool has_time(const struct victims *all)
{
    return all->count < VICTIM_COUNT_MAX && clock_ns(CLOCK_MONOTONIC) < all->end_ns;
}

/* Is the file of the same effective user, and as long as a live file's head? */
static bool victims_is_ours(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
           (type != S_IFREG || st.st_size >= LIVE_HEAD_BYTES);
}

/* Returns false if the process answers nobody. */
static bool answers(int fd, uint32_t begin, uint32_t *answered, uint32_t *asked)
{
    uint8_t head[LIVE_OFFSET_ANSWERED + 4 - LIVE_OFFSET_MAGIC];
#define HEAD(offset) (head + (offset)-LIVE_OFFSET_MAGIC)
    if (pread(fd, head, sizeof head, LIVE_OFFSET_MAGIC) != sizeof head)
        return false;
    *answered = load_u32(HEAD(LIVE_OFFSET_ANSWERED));
    *asked = load_u32(HEAD(LIVE_OFFSET_ASKED));
    return load_u64(HEAD(LIVE_OFFSET_MAGIC)) == LIVE_MAGIC && begin &&
           load_u32(HEAD(LIVE_OFFSET_FLUSHER)) == begin;
#undef HEAD
}

/* If another process has asked already, waits for that answer: failing ranks kill each other all at
 * once. */
static void victims_own_ask(struct victims *all, int fd)
{
    struct victim *v = &all->all[all->count];
    uint32_t asked;
    if (!victims_is_ours(fd, S_IFREG) || !answers(fd, all->begin, &v->answered, &asked))
        return;
    v->head = mmap(NULL, LIVE_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (v->head == MAP_FAILED)
        return;
    if (asked != v->answered || (futex_add_shared(word(v, LIVE_OFFSET_ASKED)) &&
                                 futex_add_shared(word(v, LIVE_OFFSET_WAKE))))
        all->count++;
    else
        munmap(v->head, LIVE_HEAD_BYTES);
}

/* The child of a fork may have its parent's live file open, too: the start time in the file tells
 * them apart. */
static bool visit_file(int files, const char *name, void *data)
{
    struct victims *all = data;
    char link[LINK_BYTES];
    ssize_t length = readlinkat(files, name, link, sizeof link - 1);
    link[length > 0 ? length : 0] = '\0';
    const char *base = strrchr(link, '/');
    if (!base || strlen(base) != LIVE_NAME_BYTES || strncmp(base, "/gpuprof-", 9) != 0 ||
        strcmp(base + LIVE_NAME_BYTES - strlen(STREAM_LIVE_SUFFIX), STREAM_LIVE_SUFFIX) != 0)
        return --all->files_left && has_time(all);
    int fd = openat(files, name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    unsigned before = all->count;
    if (fd >= 0) {
        victims_own_ask(all, fd);
        close(fd);
    }
    return all->count == before && --all->files_left && has_time(all);
}

/* The kernel's file shows signals 1 to 31, and the first thread's mask. */
static bool would_end(struct victims *all, const char *stat)
{
    const char *state = proc_stat_field(stat, PROC_STAT_STATE);
    const char *caught = proc_stat_field(stat, PROC_STAT_CAUGHT);
    if (!caught || strchr("TtZX", *state) || all->pid == (uint32_t)getpid())
        return false;
    all->begin = (uint32_t)strtoull(proc_stat_field(stat, PROC_STAT_START_TIME), NULL, 10);
    if (all->signal == SIGKILL)
        return true;
    for (unsigned f = PROC_STAT_BLOCKED; f <= PROC_STAT_CAUGHT; f++)
        if (strtoul(proc_stat_field(stat, f), NULL, 10) >> (all->signal - 1) & 1)
            return false;
    /* the first process of a namespace, which only SIGKILL from outside ends */
    return all->pid != 1;
}

static bool visit_process(int proc, const char *name, void *data)
{
    struct victims *all = data;
    char stat[STAT_BYTES];
    all->pid = (uint32_t)strtoul(name, NULL, 10);
    if (all->group > 0 && getpgid((pid_t)all->pid) != all->group)
        /* not most of the machine's processes, since opening each takes long */
        return has_time(all);
    int dir = openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return has_time(all);
    int fd = victims_is_ours(dir, S_IFDIR) ? openat(dir, "stat", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
    stat[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
    fd = would_end(all, stat) ? openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        all->files_left = FILES_MAX;
        proc_each(fd, visit_file, all);
        close(fd);
    }
    close(dir);
    return has_time(all);
}

static void visit_all(struct victims *all, pid_t pid)
{
    char digits[NUMBER_BYTES] = "", *name = digits + sizeof digits - 1;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return;
    if (pid > 0) {
        for (; pid > 0; pid /= 10)
            *--name = (char)('0' + pid % 10);
        visit_process(proc, name, all);
    } else {
        all->group = pid == 0 ? getpgrp() : pid == -1 ? -1 : -pid;
        proc_each(proc, visit_process, all);
    }
    close(proc);
}

void victims_ask(pid_t pid, int number)
{
    /* When the time spent on asking is made up for. A program may often send a signal that ends
     * nothing, or kill hanging processes; each signal has its own budget. */
    static _Atomic uint64_t even_ns[SIGNALS];
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), now_ns = begin_ns;
    uint64_t owed_ns = atomic_load(&even_ns[number]);
    owed_ns = owed_ns > begin_ns ? owed_ns - begin_ns : 0;
    if (owed_ns > TIME_SHARE * TIME_AT_ONCE_NS)
        return;
    int error = errno;
    /* A handler that leaves by longjmp would leave descriptors open. */
    uint64_t mask = block_signals();
    struct victims all = {.signal = number, .end_ns = begin_ns + VICTIMS_WAIT_NS};
    visit_all(&all, pid);
    for (unsigned i = 0; i < all.count; i++) {
        const struct victim *v = &all.all[i];
        while ((now_ns = clock_ns(CLOCK_MONOTONIC)) < all.end_ns &&
               futex_wait_shared(word(v, LIVE_OFFSET_ANSWERED), v->answered, all.end_ns - now_ns))
            ;
        munmap(v->head, LIVE_HEAD_BYTES);
    }
    restore_signals(mask);
    now_ns = clock_ns(CLOCK_MONOTONIC);
    atomic_store(&even_ns[number], begin_ns + owed_ns + TIME_SHARE * (now_ns - begin_ns));
    errno = error;
}
