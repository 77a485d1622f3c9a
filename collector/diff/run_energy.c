/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_energy.h"

#include <math.h>

/* Are all devices that the process reads counted for other ones? */
static bool is_counted(const struct device_report *devices, const struct process *p)
{
    uint32_t i = devices->firsts[p->index];
    bool is_read = i != 0, has_own = false;
    for (; i; i = devices->rows[i - 1]->next)
        has_own |= !devices->rows[i - 1]->is_double;
    return is_read && !has_own;
}

/* What a step of the process burnt, NAN if that is not known; how many steps it is of. */
static double of_process(const struct run_steps *r, const struct device_report *devices,
                         const struct process *p, uint64_t *count)
{
    const struct step *list = r->steps.list;
    uint32_t first = r->steps.firsts[p->index], end = r->steps.firsts[p->index + 1];
    uint64_t from_ns, to_ns;
    struct curve_growth energy;
    *count = 0;
    if (!device_report_read_for(devices, p, &from_ns, &to_ns))
        return NAN;
    while (first < end && (!r->list[first].is_kept || list[first].begin_ns < from_ns))
        first++;
    while (end > first && (!r->list[end - 1].is_kept || list[end - 1].end_ns > to_ns))
        end--;
    if (first == end ||
        !device_report_energy(devices, p, list[first].begin_ns, list[end - 1].end_ns, &energy))
        return NAN;
    *count = end - first;
    return energy.value / (end - first);
}

static bool has_kept(const struct run_steps *r, const struct process *p)
{
    for (uint32_t i = r->steps.firsts[p->index]; i < r->steps.firsts[p->index + 1]; i++)
        if (r->list[i].is_kept)
            return true;
    return false;
}

void run_energy_find(struct run_summary *r, const struct run_steps *steps,
                     struct device_report *devices)
{
    const struct recording *rec = steps->walk->rec;
    double mj = 0;
    device_report_count_once(devices);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        uint64_t count;
        if (!has_kept(steps, p) || is_counted(devices, p))
            continue;
        mj += of_process(steps, devices, p, &count);
        r->energy_steps += count;
    }
    r->metrics[RUN_ENERGY] = mj > 0 ? mj : NAN;
    r->energy_steps = mj > 0 ? r->energy_steps : 0;
}
