/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sim_driver.h"
#include "sim_entry.h"
#include "sim_meeting.h"

/*
 * Kernels of NCCL's in several processes: one begins when its stream has come to it, and ends for
 * all ranks a while after the last rank's has begun. When that is another process decides, so a
 * launch of one returns when every rank has made its own: on a GPU the host would go on. Which
 * kernels belong together the simulated NCCL says (sim_meeting.h). Without it the n-th of each rank
 * is of one collective: then ranks meet in a file that SIMCUDA_NCCL names; RANK and WORLD_SIZE say
 * who they are.
 */

enum { RANKS_MAX = 16, COLLECTIVES_MAX = 4096, LOOK_NS = 20000 };

struct board {
    uint64_t start_ns[COLLECTIVES_MAX][RANKS_MAX]; /* 0: that rank has not come */
};

static struct board *board;
static unsigned rank, world;
static unsigned next_collective; /* atomic */

static unsigned number_of(const char *name, unsigned bound)
{
    const char *text = getenv(name);
    unsigned long value = text ? strtoul(text, NULL, 10) : 0;
    if (value >= bound) {
        fprintf(stderr, "simcuda: %s: %lu is too much\n", name, value);
        abort();
    }
    return (unsigned)value;
}

__attribute__((constructor)) static void board_open(void)
{
    const char *path = getenv("SIMCUDA_NCCL");
    if (!path || !*path)
        return;
    rank = number_of("RANK", RANKS_MAX);
    world = number_of("WORLD_SIZE", RANKS_MAX + 1);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0 && ftruncate(file, sizeof *board) == 0)
        board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!board || board == MAP_FAILED) {
        perror(path);
        abort();
    }
    close(file);
}

static __thread const struct sim_meeting *next_meeting;

SIM_EXPORT sim_meeting_next_fn sim_meeting_next;
SIM_EXPORT void sim_meeting_next(const struct sim_meeting *meeting)
{
    next_meeting = meeting;
}

bool collective_is(CUfunction function)
{
    return next_meeting ||
           (board && strncmp(function->name, "ncclDevKernel_", strlen("ncclDevKernel_")) == 0);
}

/* When the last of those has begun. */
static uint64_t await_cells(const uint64_t *const *cells, unsigned count, uint64_t last_ns)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t start_ns;
        while ((start_ns = __atomic_load_n(cells[i], __ATOMIC_ACQUIRE)) == 0)
            nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        if (start_ns > last_ns)
            last_ns = start_ns;
    }
    return last_ns;
}

static uint64_t meeting_end(const struct sim_meeting *meeting, const struct work *work)
{
    if (meeting->is_endless)
        return work->start_ns + ENDLESS_NS;
    for (unsigned i = 0; i < meeting->own_count; i++)
        __atomic_store_n(meeting->own[i], work->start_ns, __ATOMIC_RELEASE);
    return await_cells(meeting->others, meeting->other_count, work->start_ns) + work->duration_ns;
}

/* WORK is in STREAM as if it waited for nobody: it is made as long as it waits. */
void collective_meet(CUstream stream, struct work *work)
{
    uint64_t alone_ns = work->end_ns;
    if (next_meeting) {
        work->end_ns = meeting_end(next_meeting, work);
        next_meeting = NULL;
        meter_work(stream, alone_ns, work->end_ns);
        stream_advance(stream, work->end_ns);
        return;
    }
    unsigned number = __atomic_fetch_add(&next_collective, 1, __ATOMIC_RELAXED);
    if (number >= COLLECTIVES_MAX) {
        fprintf(stderr, "simcuda: more than %d collectives\n", COLLECTIVES_MAX);
        abort();
    }
    uint64_t *starts = board->start_ns[number];
    const uint64_t *cells[RANKS_MAX];
    for (unsigned i = 0; i < world; i++)
        cells[i] = &starts[i];
    __atomic_store_n(&starts[rank], work->start_ns, __ATOMIC_RELEASE);
    work->end_ns = await_cells(cells, world, work->start_ns) + work->duration_ns;
    meter_work(stream, alone_ns, work->end_ns);
    stream_advance(stream, work->end_ns);
}
