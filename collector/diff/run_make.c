/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>

#include "analyse/memory_peaks.h"
#include "base/message.h"
#include "diff/run_work.h"

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

/* EXIT_OK, or another exit code after one line on stderr. */
static enum exit_code walk_through(struct parts *p, const struct run_wish *wish)
{
    enum exit_code code = say_error(wish->verb, memory_peaks_init(&p->peaks, &p->walk));
    if (code == EXIT_OK && walk_survey(&p->walk, NULL) != 0)
        code = EXIT_ENVIRONMENT;
    if (code == EXIT_OK)
        code = run_steps_find(&p->steps, &p->walk, wish);
    if (code == EXIT_OK)
        code = say_error(wish->verb, device_report_init(&p->devices, &p->walk, NULL));
    if (code != EXIT_OK)
        return code;
    run_work_init(&p->work, &p->steps);
    const struct consumer consumers[] = {memory_peaks_consumer(&p->peaks),
                                         run_steps_consumer(&p->steps), run_work_consumer(&p->work),
                                         device_report_consumer(&p->devices)};
    return walk_run(&p->walk, NULL, consumers, 4) < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

static int sum_up(struct run_summary *r, struct parts *p, const struct run_wish *wish)
{
    int error = run_steps_metrics(&p->steps, r->metrics);
    memory_peaks_finish(&p->peaks);
    r->metrics[RUN_PEAK_MEMORY] = peak_of(&p->peaks);
    if (error == 0 && !p->steps.is_whole)
        error = run_energy_find(r, &p->steps, &p->devices);
    r->steps = p->steps.is_whole ? 0 : p->steps.kept;
    r->warm_up = p->steps.warm_up;
    if (error == 0)
        error = run_work_name(&p->work, wish->symbols, r);
    run_kernels_order(r);
    return error == 0 ? run_provenance_find(r, &p->steps, &p->devices) : error;
}

enum exit_code run_summary_make(struct run_summary *r, struct recording *rec,
                                const struct run_wish *wish)
{
    struct parts p = {.walk = {.rec = NULL}};
    *r = (struct run_summary){.steps = 0};
    for (unsigned i = 0; i < RUN_METRICS; i++)
        r->metrics[i] = NAN;
    enum exit_code code = say_error(wish->verb, walk_init(&p.walk, rec));
    if (code == EXIT_OK)
        code = walk_through(&p, wish);
    if (code == EXIT_OK)
        code = say_error(wish->verb, sum_up(r, &p, wish));
    run_work_release(&p.work);
    run_steps_release(&p.steps);
    device_report_release(&p.devices);
    if (p.peaks.ledger.walk)
        memory_peaks_release(&p.peaks);
    walk_release(&p.walk);
    return code;
}
