/* SPDX-License-Identifier: Apache-2.0 */
#include "mix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ONE_IN 100
#define LONG_FACTOR 10
#define KIND_COUNT  6

static const struct {
    const char *name;
    unsigned words;
} kinds[KIND_COUNT] = {{"launch", 9}, {"copy", 6}, {"set", 4},
                       {"record", 2}, {"wait", 2}, {"sync", 1}};

static void give_up(const char *what, const char *detail)
{
    fprintf(stderr, "bench: %s: %s\n", what, detail);
    exit(2);
}

static void read_call(struct mix *m, char *line)
{
    struct mix_call *c = &m->calls[m->call_count];
    char *rest, *word = strtok_r(line, " \n", &rest);
    unsigned kind = 0;
    while (kind < KIND_COUNT && strcmp(kinds[kind].name, word) != 0)
        kind++;
    if (kind == KIND_COUNT || m->call_count == MIX_CALLS_MAX)
        give_up("not a line of a mix", word);
    c->kind = (enum mix_kind)kind;
    for (unsigned i = 0; i < 2 + kinds[kind].words; i++) {
        word = strtok_r(NULL, " \n", &rest);
        if (!word)
            give_up("a line is too short", kinds[kind].name);
        if (i < 2)
            *(i ? &c->duration_ns : &c->gap_ns) = atof(word);
        else
            c->words[i - 2] = strtoull(word, NULL, 10);
    }
    m->call_count++;
}

struct mix *mix_read(const char *path)
{
    struct mix *m = calloc(1, sizeof *m);
    FILE *file = fopen(path, "re");
    char line[1024];
    if (!m || !file)
        give_up("cannot read", path);
    m->random_state = 0x9E3779B97F4A7C15u;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (strncmp(line, "noise ", 6) == 0) {
            char *end;
            m->gap_sigma = strtod(line + 6, &end);
            m->duration_sigma = strtod(end, NULL);
        } else if (strncmp(line, "kernel ", 7) == 0 && m->kernel_count < MIX_KERNELS_MAX) {
            line[strcspn(line, "\n")] = '\0';
            m->kernels[m->kernel_count++] = strdup(line + 7);
        } else {
            read_call(m, line);
        }
    }
    fclose(file);
    if (!m->call_count)
        give_up("no calls in", path);
    return m;
}

/* splitmix64 */
static uint64_t random_bits(struct mix *m)
{
    uint64_t z = (m->random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double uniform(struct mix *m)
{
    return ((double)(random_bits(m) >> 11) + 0.5) / 9007199254740992.0;
}

uint64_t mix_time(struct mix *m, double median_ns, double sigma)
{
    double normal = sqrt(-2 * log(uniform(m))) * cos(6.283185307179586 * uniform(m));
    double ns = median_ns * exp(sigma * normal);
    return (uint64_t)(random_bits(m) % LONG_ONE_IN == 0 ? LONG_FACTOR * ns : ns);
}

uint64_t mix_copy_source(const struct mix_call *c, uint64_t step)
{
    return c->words[1] + step % c->words[5] * c->words[2];
}
