/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/stack_cost_cells.h"

void stack_cost_fill(const struct stack_cost *cost, enum report_format format, struct cell *cells)
{
    bool is_text = format == FORMAT_TEXT;
    if (!is_text || cost->calls) {
        cells[0] = cell_number(cost->calls);
        cells[1] = cell_number(cost->host_ns);
    }
    if (!is_text || cost->works) {
        cells[2] = cell_number(cost->works);
        cells[3] = cell_number(cost->gpu_ns);
    }
    if (!is_text || cost->bytes)
        cells[4] = cell_number(cost->bytes);
}

void stack_samples_fill(const struct stack_cost *own, const struct stack_cost *all,
                        enum report_format format, struct cell *cells)
{
    const uint64_t numbers[] = {own->samples,
                                own->cpu_ns,
                                own->time_ns[HOST_PYTHON],
                                own->time_ns[HOST_NATIVE],
                                own->time_ns[HOST_SYSTEM],
                                all->samples,
                                all->cpu_ns};
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (format != FORMAT_TEXT || numbers[i])
            cells[i] = cell_number(numbers[i]);
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
