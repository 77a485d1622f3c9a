/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/step_waits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"

/* How long a device waited for each process in one step. */
struct sums {
    uint64_t *ns;     /* owned, by process index; 0 except for those in `waited` */
    uint32_t *waited; /* owned: process indexes */
    uint32_t count;
    uint64_t all_ns; /* including waits for an unknown process */
};

static void step_waits_add(struct sums *s, const struct step *step, const struct idle_wait *wait)
{
    uint64_t ns = overlap_ns(wait->begin_ns, wait->end_ns, step->begin_ns, step->end_ns);
    s->all_ns += ns;
    if (!ns || wait->process == IDLE_NONE)
        return;
    if (!s->ns[wait->process])
        s->waited[s->count++] = wait->process;
    s->ns[wait->process] += ns;
}

/* Ends a step: updates its longest wait, and clears the sums. */
static void step_waits_settle(struct sums *s, struct process *const *processes, struct step *step)
{
    for (; s->count; s->count--) {
        uint32_t process = s->waited[s->count - 1];
        if (s->ns[process] > step->awaited_ns) {
            step->awaited = processes[process];
            step->awaited_ns = s->ns[process];
        }
        s->ns[process] = 0;
    }
    step->all_awaited_ns = max_of(s->all_ns, step->all_awaited_ns);
    s->all_ns = 0;
}

/* Adds a device's waits; steps and waits are in time order. */
static int step_waits_take_device(const struct steps *steps, struct idle *idle, uint32_t device,
                                  struct sums *sums)
{
    struct process *const *processes = steps->walk->rec->processes;
    uint32_t process = idle->devices[device].process->index;
    uint32_t at = steps->firsts[process], end = steps->firsts[process + 1];
    uint64_t place = 0;
    struct idle_wait wait;
    int more = 1;
    while (at < end && (more = idle_wait_at(idle, device, place, &wait)) > 0) {
        const struct step *step = &steps->list[at];
        step_waits_add(sums, step, &wait);
        if (wait.end_ns <= step->end_ns)
            place++;
        else
            step_waits_settle(sums, processes, &steps->list[at++]);
    }
    if (at < end)
        step_waits_settle(sums, processes, &steps->list[at]);
    return more < 0 ? more : 0;
}

int step_waits_find(struct steps *steps, struct idle *idle)
{
    steps->has_waits = steps->count && idle && idle->waits.count;
    if (!steps->has_waits)
        return 0;
    uint32_t count = steps->walk->rec->count;
    struct sums sums = {.ns = calloc(count, sizeof *sums.ns),
                        .waited = calloc(count, sizeof *sums.waited)};
    int error = sums.ns && sums.waited ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < idle->device_count && error == 0; i++)
        error = step_waits_take_device(steps, idle, i, &sums);
    free(sums.ns);
    free(sums.waited);
    return error;
}

const struct step *step_awaited(const struct steps *steps, const struct step *step)
{
    uint64_t middle_ns = step->begin_ns + (step->end_ns - step->begin_ns) / 2;
    const struct step *other = step->awaited ? steps_at(steps, step->awaited, middle_ns) : NULL;
    return other && other != step && other->number == step->number ? other : NULL;
}

bool step_has_only_waited(const struct steps *steps, const struct step *step)
{
    const struct step *other = step_awaited(steps, step);
    uint64_t ns = step->end_ns - step->begin_ns;
    return other && !other->is_partial && other->end_ns - other->begin_ns >= ns - ns / 100 &&
           other->awaited_ns < step->awaited_ns;
}

char *step_wait_text(const struct step *step)
{
    char who[RANK_TITLE_BYTES], time[UNIT_TEXT_BYTES];
    if (!step->awaited || step->awaited_ns < STEP_WAIT_NS)
        return NULL;
    return text_printf("%s, %s", process_who(step->awaited, who),
                       time_text(time, step->awaited_ns));
}
