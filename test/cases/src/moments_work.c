/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moments_work LOG SEED MS WORDS: three threads copy for so long, in bursts, at moments that SEED
 * decides; the first one also makes steps, opens and closes the door of cudaProfilerStart, and, if
 * the words have f, forks half-way: both go on, the child with three threads of its own; if they
 * have d it asks for dumps.
 *
 * Each process keeps the truth in LOG.PID, a shared mapping, which a SIGKILL leaves as it was: for
 * each thread a piece of ENTRIES entries, of four words: begin, end (CLOCK_MONOTONIC ns; 0: had not
 * returned), what, number. Of a copy the number is that of the thread's copy, which stands in its
 * address, too, behind what BEGIN's number says; its size is 64 and more, by the thread.
 */
#include "gpuprof.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_runtime_api.h"

enum { THREADS = 3, ENTRIES = 1 << 15, ROOM = 1 << 16 };
enum what { BEGIN = 1, COPY, STEP, OPEN, CLOSE, FORK };

struct entry {
    _Atomic uint64_t begin, end, what, number;
};

static struct entry *book;
static unsigned count[THREADS];
static uint64_t copies[THREADS];
static char *memory;
static const char *log_name;
static uint64_t seed, until_ns, fork_ns;
static bool dumps;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct entry *begin(unsigned thread, enum what what, uint64_t number)
{
    if (count[thread] == ENTRIES)
        _exit(6);
    struct entry *e = &book[thread * ENTRIES + count[thread]++];
    e->what = what;
    e->number = number;
    atomic_store(&e->begin, now_ns());
    return e;
}

static void open_book(void)
{
    char path[4096];
    size_t bytes = sizeof *book * THREADS * ENTRIES;
    snprintf(path, sizeof path, "%s.%d", log_name, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes))
        _exit(7);
    book = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (book == MAP_FAILED)
        _exit(7);
    close(fd);
    memset(count, 0, sizeof count);
    memset(copies, 0, sizeof copies);
    begin(0, BEGIN, (uintptr_t)memory)->end = now_ns();
}

static uint32_t chance(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

static void copy_some(unsigned thread, uint32_t some)
{
    while (some--) {
        uint64_t number = copies[thread]++;
        struct entry *e = begin(thread, COPY, number);
        cudaMemset(memory + number % ROOM, 0, 64 + thread); /* refused in a child */
        atomic_store(&e->end, now_ns());
    }
}

static void *work(void *place)
{
    unsigned thread = (unsigned)(uintptr_t)place;
    uint64_t state = seed + thread;
    while (now_ns() < until_ns && !(thread == 0 && fork_ns && now_ns() >= fork_ns)) {
        uint32_t turn = thread ? 0 : chance(&state, 20);
        copy_some(thread, chance(&state, 8));
        if (turn == 11 && dumps)
            gpuprof_dump("now");
        if (turn > 11) {
            static uint64_t step;
            struct entry *e = begin(thread,
                                    turn < 16   ? STEP
                                    : turn < 18 ? OPEN
                                                : CLOSE,
                                    turn < 16 ? step : 0);
            if (turn < 16)
                gpuprof_step(step++);
            else if (turn < 18)
                cudaProfilerStart();
            else
                cudaProfilerStop();
            atomic_store(&e->end, now_ns());
        }
        if (chance(&state, 4))
            usleep(chance(&state, 1500));
    }
    return NULL;
}

/* Until the end, or, of the first thread, until it is to fork. */
static void work_all(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 1; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    work(NULL);
    if (fork_ns) {
        struct entry *e = begin(0, FORK, 0);
        fork_ns = 0;
        pid_t child = fork();
        if (child == 0) {
            seed += 77;
            open_book();
            work_all();
            exit(0);
        }
        atomic_store(&e->end, now_ns());
        copy_some(0, 50);
        work(NULL);
        waitpid(child, NULL, 0);
    }
    for (uintptr_t i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    log_name = argv[1];
    seed = strtoull(argv[2], NULL, 10) * 1000003;
    uint64_t ns = strtoull(argv[3], NULL, 10) * 1000000u;
    if (cudaMalloc((void **)&memory, ROOM + 4096))
        return 3;
    dumps = strchr(argv[4], 'd');
    open_book();
    until_ns = now_ns() + ns;
    fork_ns = strchr(argv[4], 'f') ? now_ns() + ns / 2 : 0;
    work_all();
    return 0;
}
