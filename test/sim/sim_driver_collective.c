/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sim_driver.h"

/*
 * Kernels of NCCL's in several processes: the n-th of each rank is of one collective, begins when
 * its stream has come to it, and ends for all of them a while after the last rank's has begun. When
 * that is another process decides, so a launch of one returns when every rank has made its own: on
 * a GPU the host would go on. Ranks meet in a file that SIMCUDA_NCCL names; RANK and WORLD_SIZE say
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

bool collective_is(CUfunction function)
{
    return board && strncmp(function->name, "ncclDevKernel_", strlen("ncclDevKernel_")) == 0;
}

/* WORK is in STREAM as if it waited for nobody: it is made as long as it waits. */
void collective_meet(CUstream stream, struct work *work)
{
    unsigned number = __atomic_fetch_add(&next_collective, 1, __ATOMIC_RELAXED);
    if (number >= COLLECTIVES_MAX) {
        fprintf(stderr, "simcuda: more than %d collectives\n", COLLECTIVES_MAX);
        abort();
    }
    uint64_t *starts = board->start_ns[number], last_ns = work->start_ns;
    __atomic_store_n(&starts[rank], work->start_ns, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < world; i++) {
        uint64_t start_ns;
        while ((start_ns = __atomic_load_n(&starts[i], __ATOMIC_ACQUIRE)) == 0)
            nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        if (start_ns > last_ns)
            last_ns = start_ns;
    }
    work->end_ns = last_ns + work->duration_ns;
    stream_advance(stream, work->end_ns);
}
