/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "error.h"
#include "record/gpu_record.h"

/* ---- the warm-up ----------------------------------------------------------------------------- */

/*
 * How many of a program's first steps are its warm-up (compiling, choosing algorithms, growing
 * pools). A step is slow if it takes longer than the median of the second half by WARM_UP_SHARE,
 * and by WARM_UP_DEVIATIONS median distances from it. The warm-up ends with a slow step; most of
 * its steps are slow, and WARM_UP_REST in a row are not behind it. It is at most a fifth of the
 * steps, or WARM_UP_FEW of them, and at most half: a program that becomes faster all along drifts,
 * and is compared as a whole.
 */
#define WARM_UP_DEVIATIONS 5
#define WARM_UP_SHARE      0.02
#define WARM_UP_REST       4
#define WARM_UP_STEPS      5  /* of fewer steps none is left out */
#define WARM_UP_PART       5  /* a warm-up is at most one in so many steps, */
#define WARM_UP_FEW        10 /* or so many, up to half of all: compilers take a few steps */

/* Returns the number of warm-up steps. `list`: the durations in order; `room`: `count` numbers. */
static uint32_t warm_up_steps(const double *list, uint32_t count, double *room)
{
    uint32_t rest = count - count / 2, end = 0;
    uint32_t most = count / WARM_UP_PART > WARM_UP_FEW ? count / WARM_UP_PART : WARM_UP_FEW;
    if (count < WARM_UP_STEPS)
        return 0;
    memcpy(room, list + count / 2, rest * sizeof *room);
    double usual = array_median(room, rest);
    for (uint32_t i = 0; i < rest; i++)
        room[i] = fabs(room[i] - usual);
    double slow_from =
        usual + fmax(WARM_UP_SHARE * usual, WARM_UP_DEVIATIONS * array_median(room, rest));
    for (uint32_t i = 0, slow = 0, quick = 0; i < count && quick < WARM_UP_REST; i++) {
        bool is_slow = list[i] > slow_from;
        slow += is_slow;
        quick = is_slow ? 0 : quick + 1;
        if (is_slow && 2 * slow > i + 1)
            end = i + 1;
    }
    return end <= most && end <= count / 2 ? end : 0;
}

/* ---- which steps there are ------------------------------------------------------------------- */

static bool run_steps_is_whole(const struct step *s)
{
    return !s->is_partial && s->end_ns > s->begin_ns;
}

/* Marks the complete steps of a process without the warm-up as kept; if there are some with known
 * GPU time, only those. `list` and `room` have room for all. */
static void run_steps_keep(struct run_steps *r, uint32_t first, uint32_t end, double *list,
                           double *room)
{
    uint32_t whole = 0;
    bool knows_some = false;
    for (uint32_t i = first; i < end; i++)
        knows_some |= run_steps_is_whole(&r->steps.list[i]) && !r->steps.list[i].is_blind;
    for (uint32_t i = first; i < end; i++) {
        const struct step *s = &r->steps.list[i];
        r->list[i].is_kept = run_steps_is_whole(s) && !(knows_some && s->is_blind);
        if (r->list[i].is_kept)
            list[whole++] = (double)(s->end_ns - s->begin_ns);
    }
    uint32_t left_out = warm_up_steps(list, whole, room);
    r->warm_up += left_out;
    r->kept += whole - left_out;
    for (uint32_t i = first; left_out; i++)
        if (r->list[i].is_kept) {
            r->list[i].is_kept = false;
            left_out--;
        }
}

/* Makes each process a step, from its first event to its last. */
static void take_processes(struct run_steps *r)
{
    const struct recording *rec = r->walk->rec;
    struct steps *s = &r->steps;
    struct step *list = memory_new(rec->count + 1u, sizeof *list);
    free(s->list);
    s->list = list;
    s->count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        uint64_t begin_ns = r->walk->first_ns[i], end_ns = r->walk->last_ns[i];
        s->firsts[i] = s->count;
        if (begin_ns && end_ns >= begin_ns)
            list[s->count++] = (struct step){
                .begin_ns = begin_ns, .end_ns = end_ns + 1, .process = rec->processes[i]};
    }
    s->firsts[rec->count] = s->count;
}

static void keep_all(struct run_steps *r)
{
    struct steps *s = &r->steps;
    double *list = memory_new(2 * (s->count + 1u), sizeof *list);
    free(r->list);
    r->list = memory_new(s->count + 1u, sizeof *r->list);
    for (uint32_t i = 0; i < r->walk->rec->count; i++)
        run_steps_keep(r, s->firsts[i], s->firsts[i + 1], list, list + s->count + 1);
    free(list);
}

enum exit_code run_steps_find(struct run_steps *r, struct walk *walk, const struct run_reading *how)
{
    const struct options *options = how->options;
    const char *by = options->step_by, *pattern = options->step_range;
    *r = (struct run_steps){.walk = walk};
    enum exit_code code = steps_find(&r->steps, walk, by, pattern, false, how->verb);
    if (code != EXIT_OK)
        return code;
    keep_all(r);
    /* If steps were requested, nothing else is compared instead. */
    if (!r->kept && (by || pattern))
        return usage_error("%s: %s%s: no such step was recorded from start to end", how->verb,
                           pattern ? "--step-range=" : "--step-by=", pattern ? pattern : by);
    if (!r->kept) {
        r->is_whole = true;
        take_processes(r);
        keep_all(r);
    }
    return EXIT_OK;
}

void run_steps_release(struct run_steps *r)
{
    if (r->walk)
        steps_release(&r->steps);
    free(r->list);
    free(r->devices);
    key_map_release(&r->device_places);
}

struct run_step *run_step_at(const struct run_steps *r, const struct process *p, uint64_t ns)
{
    const struct step *s = steps_at(&r->steps, p, ns);
    struct run_step *step = s && ns < s->end_ns ? &r->list[s - r->steps.list] : NULL;
    return step && step->is_kept ? step : NULL;
}

/* ---- events in steps ------------------------------------------------------------------------- */

static struct run_device *run_steps_device_of(struct run_steps *r, const struct event *e)
{
    uint64_t device = record_arg(e->record, KERNEL_DEVICE);
    struct key key = {e->process->index, device, 0};
    struct run_device made = {.process = e->process->index, .device = device};
    uint32_t place = KEY_MAP_ITEM(&r->device_places, key, r->devices, r->device_count,
                                  SURVEY_DEVICES_MAX, &made);
    return &r->devices[(place ? place : SURVEY_DEVICES_MAX) - 1];
}

/* Adds the time that the device was not busy before to the steps in which it passes. */
static void run_steps_take_work(struct run_steps *r, const struct event *e)
{
    struct run_device *d = run_steps_device_of(r, e);
    uint64_t at_ns = max_of(e->begin_ns, d->until_ns);
    if (e->end_ns <= at_ns)
        return;
    const struct steps *steps = &r->steps;
    const struct step *s = steps_at(steps, e->process, at_ns);
    uint32_t i = s ? (uint32_t)(s - steps->list) : steps->firsts[e->process->index];
    for (uint32_t end = steps->firsts[e->process->index + 1]; i < end; i++) {
        s = &steps->list[i];
        if (s->begin_ns >= e->end_ns)
            break;
        r->list[i].values[RUN_GPU_BUSY] += overlap_ns(s->begin_ns, s->end_ns, at_ns, e->end_ns);
    }
    d->until_ns = e->end_ns;
}

static void run_steps_take_call(struct run_steps *r, const struct event *e)
{
    const struct record *call = e->record;
    unsigned does = e->function->does;
    if (call->flags & RECORD_NESTED || api_has_failed(e->function->domain, call->result))
        return;
    bool launches = does == API_DOES_LAUNCH || does == API_DOES_GRAPH_LAUNCH;
    bool copies = api_is_copy(does);
    struct run_step *step = launches || copies || does == API_DOES_SYNC
                                ? run_step_at(r, e->process, e->begin_ns)
                                : NULL;
    uint64_t weight = call->weight > 1 ? call->weight : 1;
    if (!step)
        return;
    step->values[RUN_LAUNCHES] += launches ? weight : 0;
    step->values[RUN_COPIES] += copies ? weight : 0;
    step->values[RUN_COPY_BYTES] += copies ? function_bytes(e->function, call) * weight : 0;
    step->values[RUN_SYNCS] += does == API_DOES_SYNC ? weight : 0;
}

int run_steps_take(void *steps, const struct slice *s)
{
    if (s->event.record->type == RECORD_CALL)
        run_steps_take_call(steps, &s->event);
    if (is_stream_work(s->event.record->type))
        run_steps_take_work(steps, &s->event);
    return 0;
}

/* ---- metrics of the run ---------------------------------------------------------------------- */

/* Returns a quantile of a sorted, non-empty list. */
static double quantile(const double *list, uint32_t count, double fraction)
{
    double at = fraction * (count - 1);
    uint32_t low = (uint32_t)at;
    double high = list[low + 1 < count ? low + 1 : low];
    return list[low] + (at - low) * (high - list[low]);
}

/* Returns a quantile of the metric in the kept steps; if steps are processes, their sum. */
static double of_steps(const struct run_steps *r, enum run_metric m, double *list, double fraction)
{
    uint32_t count = 0;
    double sum = 0;
    for (uint32_t i = 0; i < r->steps.count; i++)
        if (r->list[i].is_kept) {
            list[count] = (double)r->list[i].values[m];
            sum += list[count++];
        }
    array_sort(list, count);
    return r->is_whole ? sum : quantile(list, count, fraction);
}

static void fill_in(struct run_steps *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        uint32_t process = r->devices[i].process;
        for (uint32_t k = r->steps.firsts[process]; k < r->steps.firsts[process + 1]; k++)
            r->list[k].values[RUN_GPU_IDLE] += r->steps.list[k].end_ns - r->steps.list[k].begin_ns;
    }
    for (uint32_t i = 0; i < r->steps.count; i++) {
        uint64_t *values = r->list[i].values;
        values[RUN_GPU_IDLE] -= min_of(values[RUN_GPU_IDLE], values[RUN_GPU_BUSY]);
        values[RUN_STEP_TIME] = r->steps.list[i].end_ns - r->steps.list[i].begin_ns;
    }
}

/* Returns the time from the first event of all processes to the last. */
static double whole_time(const struct run_steps *r)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    for (uint32_t i = 0; i < r->steps.count; i++) {
        begin_ns = min_of(begin_ns, r->steps.list[i].begin_ns);
        end_ns = max_of(end_ns, r->steps.list[i].end_ns);
    }
    return end_ns > begin_ns ? (double)(end_ns - begin_ns) : 0;
}

void run_steps_metrics(struct run_steps *r, double metrics[RUN_METRICS])
{
    double *list = memory_new(r->steps.count + 1u, sizeof *list);
    fill_in(r);
    for (unsigned m = 0; m < RUN_METRICS && r->kept; m++)
        if (run_metric_infos[m].of == RUN_OF_STEP)
            metrics[m] = of_steps(r, (enum run_metric)m, list, 0.5);
    if (r->kept && !r->is_whole) {
        metrics[RUN_STEP_TIME] = of_steps(r, RUN_STEP_TIME, list, 0.5);
        metrics[RUN_STEP_P95] = of_steps(r, RUN_STEP_TIME, list, 0.95);
    } else if (r->kept) {
        metrics[RUN_STEP_TIME] = whole_time(r);
    }
    if (!r->device_count)
        metrics[RUN_GPU_BUSY] = metrics[RUN_GPU_IDLE] = metrics[RUN_KERNELS] = NAN;
    free(list);
}
