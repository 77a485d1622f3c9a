/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/stack_cost_cells.h"

static void put(const uint64_t *numbers, unsigned count, struct cell *cells)
{
    for (unsigned i = 0; i < count; i++)
        cells[i] = cell_number(numbers[i]);
}

static void put_cost(const struct stack_cost *cost, struct cell *cells)
{
    put((const uint64_t[]){cost->calls, cost->host_ns, cost->works, cost->gpu_ns, cost->bytes}, 5,
        cells);
}

void stack_cost_fill(const struct stack_cost *own, const struct stack_cost *all, bool has_samples,
                     struct cell *cells)
{
    put_cost(own, cells);
    if (all)
        put_cost(all, cells + 5);
    if (has_samples)
        put((const uint64_t[]){own->samples, own->cpu_ns, own->time_ns[HOST_PYTHON],
                               own->time_ns[HOST_NATIVE], own->time_ns[HOST_SYSTEM]},
            5, cells + 10);
    if (has_samples && all)
        put((const uint64_t[]){all->samples, all->cpu_ns}, 2, cells + 15);
}

void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out)
{
    fprintf(out,
            "\"%s\": {\"calls\": %llu, \"host_ns\": %llu, \"gpu_work\": %llu, \"gpu_ns\": %llu, "
            "\"bytes\": %llu",
            key, (unsigned long long)cost->calls, (unsigned long long)cost->host_ns,
            (unsigned long long)cost->works, (unsigned long long)cost->gpu_ns,
            (unsigned long long)cost->bytes);
    if (cost->samples)
        fprintf(out, ", \"samples\": %llu, \"cpu_ns\": %llu", (unsigned long long)cost->samples,
                (unsigned long long)cost->cpu_ns);
    fputs("},\n", out);
}
