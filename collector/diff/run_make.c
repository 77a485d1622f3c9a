/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/message.h"
#include "diff/run_work.h"
#include "error.h"
#include "report/device_report.h"
#include "report/memory_peaks.h"

#define FACT_BYTES 512

/* ---- facts ----------------------------------------------------------------------------------- */

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* "2 x NVIDIA H100": the devices that did something. */
static void name_devices(const struct run_steps *steps, char text[FACT_BYTES])
{
    const struct walk *walk = steps->walk;
    const char **names = calloc(steps->device_count + 1u, sizeof *names);
    uint32_t count = 0;
    size_t at = 0;
    for (uint32_t i = 0; names && i < steps->device_count; i++) {
        const struct run_device *d = &steps->devices[i];
        const struct surveyed_device *known =
            survey_device(&walk->survey, walk->rec->processes[d->process], d->device);
        names[count++] = known && *known->name ? known->name : "unknown GPU";
    }
    if (count)
        qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 0, next; i < count && at < FACT_BYTES; i = next) {
        for (next = i; next < count && strcmp(names[next], names[i]) == 0;)
            next++;
        at += (size_t)snprintf(text + at, FACT_BYTES - at, "%s%u x %s", i ? ", " : "", next - i,
                               names[i]);
    }
    free(names);
}

/* Each thing once that was given up to cost less. */
static void name_given_up(const struct recording *rec, char text[FACT_BYTES])
{
    size_t at = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        for (uint32_t k = 0; k < rec->processes[i]->costs.step_count; k++) {
            const char *what = rec->processes[i]->costs.steps[k].text;
            if (at < FACT_BYTES && !strstr(text, what))
                at += (size_t)snprintf(text + at, FACT_BYTES - at, "%s%s", at ? ", " : "", what);
        }
}

static void name_losses(const struct walk *walk, char text[FACT_BYTES])
{
    struct losses all = {0};
    for (uint32_t i = 0; i < walk->rec->count; i++)
        losses_add(&all, &walk->losses[i]);
    if (losses_weight(&all) >= LOSS_COUNTED)
        losses_text(&all, text, FACT_BYTES);
    else if (walk->rec->unread_files)
        snprintf(text, FACT_BYTES, "%u files could not be read", walk->rec->unread_files);
}

static void measure_cost(struct run_summary *r, const struct recording *rec)
{
    uint64_t wall_ns = 0, cost_ns = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        wall_ns += rec->processes[i]->costs.sum[COST_SUM_WALL_NS];
        cost_ns += rec->processes[i]->costs.sum[COST_SUM_COST_NS];
    }
    r->cost = wall_ns ? cost_share(cost_ns, wall_ns) : NAN;
}

/* Processes that have steps. */
static uint32_t process_count(const struct run_steps *steps)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < steps->walk->rec->count; i++)
        count += steps->steps.firsts[i + 1] > steps->steps.firsts[i];
    return count;
}

/* Where the rows of the GPU come from: of a libcupti its version, wherever it lies. */
static void name_gpu_rows(const struct recording *rec, char text[FACT_BYTES])
{
    for (uint32_t i = 0; !*text && i < rec->count; i++) {
        const char *said = process_meta(rec->processes[i], "gpu_rows");
        bool is_cupti = said && strncmp(said, "from CUPTI ", 11) == 0;
        int length = said ? (int)(is_cupti ? strcspn(said, ",") : strlen(said)) : 0;
        snprintf(text, FACT_BYTES, "%.*s", length, said ? said : "");
    }
}

/* Steps of the same kind are the same steps if they have the same names, too. */
static void name_steps(const struct steps *steps, char text[FACT_BYTES])
{
    const char *name = steps->pattern ? steps->pattern : steps->class;
    snprintf(text, FACT_BYTES, "%s%s%s", step_kind_word(steps->kind), name ? " " : "",
             name ? name : "");
}

static int find_facts(struct run_summary *r, const struct run_steps *steps)
{
    static const struct {
        enum run_fact fact;
        const char *key;
    } said[] = {{RUN_FACT_DRIVER, "cuda_driver"},
                {RUN_FACT_GPUPROF, "gpuprof"},
                {RUN_FACT_BLOCKING, "env.CUDA_LAUNCH_BLOCKING"},
                {RUN_FACT_PROGRAM, "cmdline"}};
    const struct recording *rec = steps->walk->rec;
    char texts[RUN_FACTS][FACT_BYTES] = {{0}};
    int error = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        for (unsigned k = 0; error == 0 && k < sizeof said / sizeof said[0]; k++)
            error = run_fact_set(r, said[k].fact, process_meta(rec->processes[i], said[k].key));
    name_devices(steps, texts[RUN_FACT_GPU]);
    name_losses(steps->walk, texts[RUN_FACT_LOSSES]);
    name_given_up(rec, texts[RUN_FACT_GIVEN_UP]);
    snprintf(texts[RUN_FACT_RANKS], FACT_BYTES, "%u", process_count(steps));
    name_gpu_rows(rec, texts[RUN_FACT_GPU_ROWS]);
    name_steps(&steps->steps, texts[RUN_FACT_STEPS_BY]);
    if (rec->count) {
        const struct stream_header *h = &rec->processes[0]->header;
        time_t seconds = (time_t)(h->realtime_zero_ns / 1000000000u);
        struct tm tm;
        snprintf(texts[RUN_FACT_HOST], FACT_BYTES, "%s", h->host);
        if (gmtime_r(&seconds, &tm))
            strftime(texts[RUN_FACT_TIME], FACT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    for (unsigned i = 0; error == 0 && i < RUN_FACTS; i++)
        error = run_fact_set(r, (enum run_fact)i, texts[i]);
    measure_cost(r, rec);
    return error;
}

/* ---- the walks ------------------------------------------------------------------------------- */

struct parts {
    struct walk walk;
    struct memory_peaks peaks;
    struct run_steps steps;
    struct run_work work;
    struct device_report devices;
};

/* The most that a process had of a device. */
static double peak_of(const struct memory_peaks *peaks)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < peaks->totals.count && i < peaks->capacity; i++) {
        const struct memory_peak *p = &peaks->list[i];
        uint64_t bytes = p->reserved > p->allocated ? p->reserved : p->allocated;
        if (!peaks->totals.list[i].is_host && bytes > most)
            most = bytes;
    }
    return most ? (double)most : NAN;
}

/* What the devices of all processes burnt in a step: from the first that is kept to the last one,
 * by their number. */
static double energy_of(const struct parts *p)
{
    const struct run_steps *r = &p->steps;
    double mj = 0;
    for (uint32_t i = 0; i < p->walk.rec->count; i++) {
        uint32_t first = r->steps.firsts[i], end = r->steps.firsts[i + 1];
        struct curve_growth energy;
        while (first < end && !r->list[first].is_kept)
            first++;
        while (end > first && !r->list[end - 1].is_kept)
            end--;
        if (first == end)
            continue;
        if (!device_report_energy(&p->devices, p->walk.rec->processes[i],
                                  r->steps.list[first].begin_ns, r->steps.list[end - 1].end_ns,
                                  &energy))
            return NAN;
        mj += energy.value / (end - first);
    }
    return mj > 0 ? mj : NAN;
}

static int say(int error)
{
    if (error < 0)
        message("diff: %s", gpuprof_error_text(error));
    return error;
}

/* 0, or an error after one line on stderr. */
static int walk_through(struct parts *p, const struct run_wish *wish)
{
    int error = say(memory_peaks_init(&p->peaks, &p->walk));
    if (error == 0)
        error = walk_survey(&p->walk);
    if (error == 0)
        error = run_steps_find(&p->steps, &p->walk, wish);
    if (error == 0)
        error = say(device_report_init(&p->devices, &p->walk, NULL));
    run_work_init(&p->work, &p->steps);
    const struct consumer consumers[] = {memory_peaks_consumer(&p->peaks),
                                         run_steps_consumer(&p->steps), run_work_consumer(&p->work),
                                         device_report_consumer(&p->devices)};
    return error == 0 ? walk_run(&p->walk, NULL, consumers, 4) : error;
}

static int sum_up(struct run_summary *r, struct parts *p, const struct run_wish *wish)
{
    int error = run_steps_metrics(&p->steps, r->metrics);
    r->metrics[RUN_PEAK_MEMORY] = peak_of(&p->peaks);
    r->metrics[RUN_ENERGY] = p->steps.is_whole ? NAN : energy_of(p);
    r->steps = p->steps.is_whole ? 0 : p->steps.kept;
    r->warm_up = p->steps.warm_up;
    if (error == 0)
        error = run_work_name(&p->work, wish->symbols, r);
    run_kernels_order(r);
    return error == 0 ? find_facts(r, &p->steps) : error;
}

enum exit_code run_summary_make(struct run_summary *r, struct recording *rec,
                                const struct run_wish *wish)
{
    struct parts p = {.walk = {.rec = NULL}};
    *r = (struct run_summary){.steps = 0};
    for (unsigned i = 0; i < RUN_METRICS; i++)
        r->metrics[i] = NAN;
    int error = say(walk_init(&p.walk, rec));
    if (error == 0)
        error = walk_through(&p, wish);
    enum exit_code code = error < 0 ? EXIT_ENVIRONMENT : steps_check(&p.steps.steps, "diff");
    if (code == EXIT_OK && say(sum_up(r, &p, wish)) < 0)
        code = EXIT_ENVIRONMENT;
    run_work_release(&p.work);
    run_steps_release(&p.steps);
    device_report_release(&p.devices);
    if (p.peaks.ledger.walk)
        memory_peaks_release(&p.peaks);
    walk_release(&p.walk);
    return code;
}
