/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to encode a block whose records do not come in the order of their begins:
 * sort_cost ROUNDS. Prints "NAME ratio R ns N" for each case: the medians of R, its time over that
 * of the sorted case in the same round, and N, ns of processor time a record.
 *
 * The records are kernels as CUPTI delivers them: of one device, in order; of several, whose
 * batches follow each other; of two streams in turns, of which one is some kernels behind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "block.h"

#define ARGS       16
#define WORDS      (RECORD_HEAD_WORDS + ARGS)
#define RECORDS    6400 /* as many as go into a block; a multiple of all that they are dealt to */
#define ROUNDS_MAX 1000

static const struct {
    const char *name;
    unsigned devices; /* each with a batch of its own */
    unsigned behind;  /* kernels of one stream that come before the other's of their time */
} cases[] = {
    {"sorted", 1, 0},      {"2-devices", 2, 0},    {"4-devices", 4, 0},      {"8-devices", 8, 0},
    {"16-devices", 16, 0}, {"500-behind", 1, 500}, {"1000-behind", 1, 1000},
};
#define CASES (sizeof cases / sizeof cases[0])

static uint64_t records[RECORDS][WORDS];
static struct block_encoder encoder;
static uint8_t payload[BLOCK_PAYLOAD_BYTES_MAX];
static double ratios[CASES][ROUNDS_MAX], times[CASES][ROUNDS_MAX];
static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

/* When the i-th record's kernel begins: kernels follow each other every 10 us, more or less. */
static uint64_t begin_of(unsigned c, unsigned i)
{
    unsigned batch = RECORDS / cases[c].devices;
    uint64_t turn = i % batch * (uint64_t)cases[c].devices + i / batch;
    if (cases[c].behind)
        turn = i % 2 ? i : i + 2 * cases[c].behind;
    return 1000000 + 10000 * turn + draw(cases[c].devices == 1 && !cases[c].behind ? 9000 : 30000);
}

static void fill(unsigned c)
{
    uint64_t last[16] = {0};
    for (unsigned i = 0; i < RECORDS; i++) {
        unsigned its = cases[c].behind ? i % 2 : i / (RECORDS / cases[c].devices);
        uint64_t begin = begin_of(c, i), name = draw(60);
        begin = begin > last[its] ? begin : last[its] + 1; /* a device's own are in order */
        last[its] = begin;
        records[i][0] = record_word0(RECORD_KERNEL, 0, WORDS, 0, ARGS);
        records[i][1] = begin;
        records[i][2] = 2000 + draw(7000);
        records[i][3] = (uint64_t)(i + 1) << 32;
        for (unsigned a = 0; a < ARGS; a++)
            records[i][RECORD_HEAD_WORDS + a] = a < 10 ? name * (a + 1) % 40 : 0;
    }
}

static double encode_ns(void)
{
    static const struct clock_scale scale = {.mult = 1ull << CLOCK_SCALE_SHIFT};
    struct block_header h = {0};
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    block_encoder_reset(&encoder);
    for (unsigned i = 0; i < RECORDS; i++)
        if (block_encoder_add(&encoder, (const uint8_t *)records[i], sizeof records[i]) <= 0)
            abort();
    if (block_encode(&encoder, &scale, payload, sizeof payload, &h) < 0)
        abort();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
           RECORDS;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 0;
    unsigned rounds = wanted > 0 && wanted < ROUNDS_MAX ? (unsigned)wanted : ROUNDS_MAX;
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned c = 0; c < CASES; c++) {
            fill(c);
            times[c][r] = encode_ns();
            ratios[c][r] = times[c][r] / times[0][r];
        }
    for (unsigned c = 0; c < CASES; c++)
        printf("%s ratio %.3f ns %.1f\n", cases[c].name, median(ratios[c], rounds),
               median(times[c], rounds));
    return 0;
}
