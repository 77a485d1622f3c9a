/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>
#include <stdlib.h>

#include "error.h"

/* Are all devices that the process reads counted for other ones? */
static bool is_counted(const struct device_report *devices, const struct process *p)
{
    uint32_t i = devices->firsts[p->index];
    bool is_read = i != 0, has_own = false;
    for (; i; i = devices->rows[i - 1]->next)
        has_own |= !devices->rows[i - 1]->is_double;
    return is_read && !has_own;
}

struct kept {
    uint32_t first, end;
};

/* The kept steps of a process that lie within. */
static struct kept kept_between(const struct run_steps *r, const struct process *p,
                                uint64_t from_ns, uint64_t to_ns)
{
    const struct step *list = r->steps.list;
    struct kept k = {r->steps.firsts[p->index], r->steps.firsts[p->index + 1]};
    while (k.first < k.end && (!r->list[k.first].is_kept || list[k.first].begin_ns < from_ns))
        k.first++;
    while (k.end > k.first && (!r->list[k.end - 1].is_kept || list[k.end - 1].end_ns > to_ns))
        k.end--;
    return k;
}

/* What a step of the process burnt, NAN if that is not known; how many steps it is of. */
static double of_process(const struct run_steps *r, const struct device_report *devices,
                         const struct process *p, uint64_t *count)
{
    const struct step *list = r->steps.list;
    uint64_t from_ns, to_ns;
    struct curve_growth energy;
    *count = 0;
    if (!device_report_read_for(devices, p, &from_ns, &to_ns))
        return NAN;
    struct kept k = kept_between(r, p, from_ns, to_ns);
    if (k.first == k.end ||
        !device_report_energy(devices, p, list[k.first].begin_ns, list[k.end - 1].end_ns, &energy))
        return NAN;
    *count = k.end - k.first;
    return energy.value / (double)*count;
}

/* The steps of a process whose devices all count for others that those have read. */
static uint64_t read_by_others(const struct run_steps *r, const struct device_report *devices,
                               const struct process *p)
{
    uint64_t begin_ns = 0, end_ns = UINT64_MAX, from_ns, to_ns;
    for (uint32_t i = devices->firsts[p->index]; i; i = devices->rows[i - 1]->next) {
        const struct device_row *row = device_report_counted(devices, devices->rows[i - 1]);
        if (!device_report_read_for(devices, row->process, &from_ns, &to_ns))
            return 0;
        begin_ns = from_ns > begin_ns ? from_ns : begin_ns;
        end_ns = to_ns < end_ns ? to_ns : end_ns;
    }
    struct kept k = kept_between(r, p, begin_ns, end_ns);
    return k.end - k.first;
}

int run_energy_find(struct run_summary *r, const struct run_steps *steps,
                    struct device_report *devices)
{
    const struct recording *rec = steps->walk->rec;
    double mj = 0;
    bool *has_kept = calloc(rec->count + 1u, sizeof *has_kept);
    if (!has_kept)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct kept k = kept_between(steps, rec->processes[i], 0, UINT64_MAX);
        has_kept[i] = k.first < k.end;
    }
    device_report_count_once(devices, has_kept);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        uint64_t count;
        if (!has_kept[i])
            continue;
        if (is_counted(devices, p))
            count = read_by_others(steps, devices, p);
        else
            mj += of_process(steps, devices, p, &count);
        r->energy_steps += count;
    }
    r->metrics[RUN_ENERGY] = mj > 0 ? mj : NAN;
    r->energy_steps = mj > 0 ? r->energy_steps : 0;
    free(has_kept);
    return 0;
}
