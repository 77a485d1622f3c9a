/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes over its own live file, which lies in its memory, as a stray pointer would: scribble HOW
 * [killed].
 *
 *   record WORD  the first word of one record becomes WORD, before anything was stored
 *   open WORD    the same, of a record whose call is open
 *   storm KIND   while THREADS threads call: everything but the counters, again and again, by
 *                zeros, by ones or at random; then they go on without that
 *   counters WORD  its counters become WORD, all but that which says that the recording has ended
 *
 * Calls are told apart by the size that they ask for: BEFORE + i, STORM, AFTER + i. Ends with 3.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tiny_cudart.h"
#include "until.h"

#define THREADS     3
#define BEFORE      10000
#define STORM       1000000
#define AFTER       2000000
#define FEW         100
#define MANY        2000 /* some chunks of 16 KiB */
#define STORM_MS    150
#define CHUNK_WORDS (16384 / 8)
#define HEAD_WORDS  512 /* of the file; the counters are its last ones */
#define KEPT_WORD   (2176 / 8)
#define COUNTERS    23
#define ENDED       8 /* of these */

static uint64_t *live; /* the mapping */
static size_t live_words;
static uint64_t new_word;
static atomic_bool is_over;

static void call(uint64_t size)
{
    void *memory;
    if (cudaMalloc(&memory, size) != 0)
        abort();
}

static void find_live(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (strstr(line, " rw-s ") && strstr(line, getenv("GPUPROF_LIVE")) &&
            sscanf(line, "%lx-%lx", &begin, &end) == 2) {
            live = (uint64_t *)begin;
            live_words = (end - begin) / 8;
        }
    }
    if (!maps || fclose(maps) != 0 || !live)
        exit(4);
}

/* The first word of the record of the call that asked for `size`. */
static uint64_t *record_of(uint64_t size)
{
    for (size_t i = HEAD_WORDS; i < (1 << 20) / 8; i++)
        if (live[i] == size)
            return &live[i - 5];
    exit(4);
}

static void scribble_open(const char *symbol, uint64_t size)
{
    (void)symbol;
    tiny_during = NULL;
    *record_of(size) = new_word;
    call(BEFORE + FEW); /* nested in it, as a callback's would be */
}

static void one(bool is_open)
{
    for (unsigned i = 0; i < FEW; i++) {
        if (is_open && i == FEW / 2)
            tiny_during = scribble_open;
        call(BEFORE + i);
    }
    if (!is_open)
        *record_of(BEFORE + FEW / 2) = new_word;
    for (unsigned i = 0; i < MANY; i++)
        call(AFTER + i);
}

static void *call_through(void *unused)
{
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        call(STORM);
        if (i % 16 == 0) /* few enough to be read in Python */
            usleep(100);
    }
    for (unsigned i = 0; i < MANY; i++)
        call(AFTER + i);
    return unused;
}

static void storm(const char *kind)
{
    pthread_t threads[THREADS];
    uint64_t seed = 88172645463325252u, end_ms = now_ms() + STORM_MS;
    size_t words = (1 << 20) / 8; /* as many as have storage from the beginning */
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, call_through, NULL) != 0)
            abort();
    while (!is_until(end_ms))
        for (unsigned i = 0; i < 1000; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            size_t at = (seed >> 20) % words;
            if (seed % 4 == 0) /* chunks' heads */
                at = (at / CHUNK_WORDS * CHUNK_WORDS + HEAD_WORDS + at % 8) % words;
            if (at >= KEPT_WORD && at < HEAD_WORDS)
                continue;
            live[at] = *kind == 'z' ? 0 : *kind == 'o' ? UINT64_MAX : seed * 0x9E3779B97F4A7C15u;
        }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void counters(void)
{
    for (unsigned i = 0; i < COUNTERS; i++)
        if (i != ENDED)
            live[KEPT_WORD + i] = new_word;
    for (unsigned i = 0; i < FEW; i++)
        call(AFTER + i);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    call(1);
    find_live();
    new_word = strtoull(argv[2], NULL, 0);
    if (strcmp(argv[1], "storm") == 0)
        storm(argv[2]);
    else if (strcmp(argv[1], "counters") == 0)
        counters();
    else
        one(strcmp(argv[1], "open") == 0);
    if (argc > 3)
        syscall(SYS_kill, getpid(), SIGKILL);
    return 3;
}
