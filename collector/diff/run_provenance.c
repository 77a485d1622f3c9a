/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/text.h"

#define FACT_BYTES    512
#define LIBRARIES_MAX 256 /* in all processes */

/* Names the devices that did work, each once: "2 x NVIDIA H100". */
static void name_devices(const struct run_steps *steps, char text[FACT_BYTES])
{
    const struct walk *walk = steps->walk;
    const char **names = calloc(steps->device_count + 1u, sizeof *names);
    struct key_map seen = {0};
    uint32_t count = 0;
    size_t at = 0;
    for (uint32_t i = 0; names && i < steps->device_count; i++) {
        const struct run_device *d = &steps->devices[i];
        const struct process *p = walk->rec->processes[d->process];
        const struct surveyed_device *known = survey_device(&walk->survey, p, d->device);
        struct key key = surveyed_device_key(known, p, d->device);
        if (!key_map_get(&seen, key))
            names[count++] = known && *known->name ? known->name : "unknown GPU";
        if (key_map_set(&seen, key, 1) < 0)
            break;
    }
    key_map_release(&seen);
    ARRAY_SORT(names, count, compare_texts);
    for (uint32_t i = 0, next; i < count && at < FACT_BYTES; i = next) {
        for (next = i; next < count && strcmp(names[next], names[i]) == 0;)
            next++;
        at += (size_t)snprintf(text + at, FACT_BYTES - at, "%s%u x %s", i ? ", " : "", next - i,
                               names[i]);
    }
    free(names);
}

static void name_losses(const struct walk *walk, char text[FACT_BYTES])
{
    struct losses all = {0};
    for (uint32_t i = 0; i < walk->rec->count; i++)
        losses_add(&all, &walk->losses[i]);
    all.devices_unread = 0; /* energy does not gate, and has its own note */
    if (losses_weight(&all) >= LOSS_COUNTED)
        losses_text(&all, text, FACT_BYTES);
    else if (walk->rec->unread_files)
        snprintf(text, FACT_BYTES, "%u file%s could not be read", walk->rec->unread_files,
                 plural_end(walk->rec->unread_files));
}

/* Names the source of GPU rows; for CUPTI its version, not its path. */
static void name_gpu_rows(const struct recording *rec, char text[FACT_BYTES])
{
    for (uint32_t i = 0; !*text && i < rec->count; i++) {
        const char *said = process_meta(rec->processes[i], "gpu_rows");
        bool is_cupti = said && strncmp(said, "from CUPTI ", 11) == 0;
        int length = said ? (int)(is_cupti ? strcspn(said, ",") : strlen(said)) : 0;
        snprintf(text, FACT_BYTES, "%.*s", length, said ? said : "");
    }
}

/* Appends the text unless it is in the list already, or there is no room. */
static void add_once(char text[FACT_BYTES], const char *more)
{
    size_t at = strlen(text), length = strlen(more);
    for (const char *found = text; (found = strstr(found, more)); found += length)
        if ((found == text || found[-1] == ' ') && (found[length] == ',' || !found[length]))
            return;
    if (length && at + length + 3 < FACT_BYTES)
        snprintf(text + at, FACT_BYTES - at, "%s%s", at ? ", " : "", more);
}

/* Lists variables that change how CUDA and PyTorch work, not those that assign devices. */
static void name_variables(const struct recording *rec, char text[FACT_BYTES])
{
    static const char *const keys[] = {"env.CUDA_DEVICE_MAX_CONNECTIONS",
                                       "env.CUDA_MODULE_LOADING",
                                       "env.CUDA_CACHE_DISABLE",
                                       "env.CUDA_FORCE_PTX_JIT",
                                       "env.NVIDIA_TF32_OVERRIDE",
                                       "env.PYTORCH_CUDA_ALLOC_CONF",
                                       "env.PYTORCH_NO_CUDA_MEMORY_CACHING"};
    for (uint32_t i = 0; i < rec->count; i++)
        for (unsigned k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const char *value = process_meta(rec->processes[i], keys[k]);
            char set[FACT_BYTES / 2];
            if (value && snprintf(set, sizeof set, "%s=%s", strchr(keys[k], '.') + 1, value) > 0)
                add_once(text, set);
        }
}

/* Lists the files of CUDA libraries; installed ones have their version in the name. */
static void name_libraries(const struct recording *rec, char text[FACT_BYTES])
{
    const char *names[LIBRARIES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        for (uint32_t k = 0; k < rec->processes[i]->meta_count && count < LIBRARIES_MAX; k++) {
            const char *path = rec->processes[i]->meta[k].text;
            if (strncmp(path, "library=", strlen("library=")) == 0 && strrchr(path, '/'))
                names[count++] = strrchr(path, '/') + 1;
        }
    ARRAY_SORT(names, count, compare_texts);
    for (uint32_t i = 0; i < count; i++)
        add_once(text, names[i]);
}

/* Names power limits, mean clock and mean temperature of all devices that were read. */
static void name_conditions(const struct device_report *devices, char texts[RUN_FACTS][FACT_BYTES])
{
    double clock = 0, temperature = 0;
    uint64_t clocks = 0, temperatures = 0;
    for (uint32_t i = 0; i < devices->count; i++) {
        const struct device_row *row = &devices->rows[i];
        char limit[UNIT_TEXT_BYTES];
        if (row->is_double)
            continue;
        if (row->most.power)
            add_once(texts[RUN_FACT_POWER_LIMIT], power_text(limit, row->most.power));
        clock += row->means[MEAN_SM_CLOCK].sum;
        clocks += row->means[MEAN_SM_CLOCK].count;
        temperature += row->means[MEAN_TEMPERATURE].sum;
        temperatures += row->means[MEAN_TEMPERATURE].count;
    }
    if (clocks)
        snprintf(texts[RUN_FACT_CLOCK], FACT_BYTES, "%.0f", clock / (double)clocks);
    if (temperatures)
        snprintf(texts[RUN_FACT_TEMPERATURE], FACT_BYTES, "%.0f",
                 temperature / (double)temperatures);
}

int run_provenance_find(struct run_summary *r, const struct run_steps *steps,
                        const struct device_report *devices)
{
    const struct recording *rec = steps->walk->rec;
    const char *step_name = steps->steps.pattern ? steps->steps.pattern : steps->steps.class;
    char texts[RUN_FACTS][FACT_BYTES] = {{0}};
    uint64_t wall_ns = 0, cost_ns = 0;
    uint32_t ranks = 0; /* processes with steps */
    int error = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        for (enum run_fact k = 0; error == 0 && k < RUN_FACTS; k++)
            if (run_fact_infos[k].meta)
                error = run_fact_set(r, k, process_meta(p, run_fact_infos[k].meta));
        for (uint32_t k = 0; k < p->costs.step_count; k++)
            add_once(texts[RUN_FACT_GIVEN_UP], p->costs.steps[k].text);
        wall_ns += p->costs.sum[COST_SUM_WALL_NS];
        cost_ns += p->costs.sum[COST_SUM_COST_NS];
        ranks += steps->steps.firsts[i + 1] > steps->steps.firsts[i];
    }
    r->cost = wall_ns ? cost_share(cost_ns, wall_ns) : NAN;
    name_devices(steps, texts[RUN_FACT_GPU]);
    name_losses(steps->walk, texts[RUN_FACT_LOSSES]);
    snprintf(texts[RUN_FACT_RANKS], FACT_BYTES, "%u", ranks);
    name_gpu_rows(rec, texts[RUN_FACT_GPU_ROWS]);
    snprintf(texts[RUN_FACT_STEPS_BY], FACT_BYTES, "%s%s%s", step_kinds[steps->steps.kind].word,
             step_name ? " " : "", step_name ? step_name : "");
    name_variables(rec, texts[RUN_FACT_VARIABLES]);
    name_libraries(rec, texts[RUN_FACT_LIBRARIES]);
    name_conditions(devices, texts);
    if (rec->count) {
        const struct stream_header *h = &rec->processes[0]->header;
        time_t seconds = (time_t)(h->realtime_zero_ns / 1000000000u);
        struct tm tm;
        snprintf(texts[RUN_FACT_HOST], FACT_BYTES, "%s", h->host);
        if (gmtime_r(&seconds, &tm))
            strftime(texts[RUN_FACT_TIME], FACT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    for (enum run_fact i = 0; error == 0 && i < RUN_FACTS; i++)
        error = run_fact_set(r, i, texts[i]);
    return error;
}
