/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyse/device_report.h"
#include "analyse/memory_peaks.h"
#include "analyse/place_lines.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "record/gpu_record.h"
#include "resolve/range_text.h"

#define GRAPH_NAME    "CUDA graph"
#define FACT_BYTES    512
#define LIBRARIES_MAX 256 /* in all processes */

/* ---- the kernels of kept steps, by name and place of launch ---------------------------------- */

/* A row; its key comes first. The texts are views into the walk. */
struct run_work_row {
    const struct kernel_name *name; /* NULL: not known, or work of a graph */
    const struct kernel_name *op;
    const struct kernel_name *range;
    uint32_t kind;    /* of library_calls.h; 0: none */
    uint32_t process; /* process index of the stack */
    uint32_t stack;   /* number of the stack in that process; 0: none */
    uint32_t is_graph;
    uint64_t count;
    uint64_t ns;
};

/* A run in the making. */
struct parts {
    struct walk walk;
    struct memory_peaks peaks;
    struct run_steps steps;
    struct device_report devices;
    struct run_work_row *list; /* owned */
    uint32_t count;
    struct number_set numbers;
};

/* ---- the walk -------------------------------------------------------------------------------- */

/* Fills in the place of a call. */
static void run_make_place_of(struct walk *walk, const struct correlated_call *call,
                              struct run_work_row *row)
{
    struct survey *survey = &walk->survey;
    uint32_t number = call->span;
    const struct span_node *node;
    const struct kernel_name *label = NULL;
    row->process = call->process;
    row->stack = call->stack;
    while ((node = survey_span(survey, call, ~0u, &number, false))) {
        if (node->type == SPAN_LIBRARY)
            row->kind = row->kind ? row->kind : node->kind;
        else if (node->type == SPAN_RANGE)
            row->range = row->range ? row->range : node->text;
        else if (op_scope_works(node->scope))
            row->op = row->op ? row->op : node->text;
        else if (!label && !row->op)
            label = node->text;
    }
    if (!row->range)
        row->range = label;
}

/* Adds work to its row. If there is no room for another row, it loses its place, or is left out. */
static int run_make_take_work(void *context, const struct slice *s)
{
    struct parts *p = context;
    const struct event *e = &s->event;
    static const struct number_kind kind = NUMBER_KEY(struct run_work_row, is_graph);
    struct run_work_row row = {.is_graph = e->record->type == RECORD_GRAPH};
    struct run_step *step =
        run_step_at(&p->steps, e->process, s->is_called ? s->call.begin_ns : e->begin_ns);
    if (!step || (!row.is_graph && e->record->type != RECORD_KERNEL))
        return 0;
    if (!row.is_graph) {
        row.name = walk_kernel(&p->walk, e->process, record_arg(e->record, KERNEL_NAME_INDEX));
        step->values[RUN_KERNELS]++;
    }
    if (s->is_called)
        run_make_place_of(&p->walk, &s->call, &row);
    uint32_t number = NUMBER_ADD(&p->numbers, &kind, p->list, p->count, RUN_KERNELS_MAX, &row);
    if (number == 0) {
        row = (struct run_work_row){.name = row.name, .is_graph = row.is_graph};
        number = NUMBER_ADD(&p->numbers, &kind, p->list, p->count, RUN_KERNELS_MAX, &row);
    }
    if (number > 0) {
        p->list[number - 1].count++;
        p->list[number - 1].ns += e->end_ns - e->begin_ns;
    }
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the range with '*' for its numbers, in new memory. */
static char *pattern_of(const struct kernel_name *range)
{
    char *text = memory_text(range->shown);
    uint32_t length =
        range_text_pattern(range->shown, (uint32_t)strlen(range->shown), NUMBERS_ALL, text);
    if (length)
        text[length] = '\0';
    return text;
}

static void run_make_name_row(struct parts *p, struct place_lines *lines,
                              const struct run_work_row *row, struct run_kernels *kernels)
{
    const char *line = place_line(lines, row->process, row->stack);
    const struct kernel_name *library =
        row->kind ? library_kind_text(&p->walk.kinds, row->kind) : NULL;
    char *range = row->range ? pattern_of(row->range) : NULL;
    /* run_kernel_add does not write to them */
    struct run_kernel kernel = {
        .texts = {[RUN_NAME] = (char *)(uintptr_t)(row->is_graph ? GRAPH_NAME : row->name->raw),
                  [RUN_OPERATOR] = (char *)(uintptr_t)(row->op ? row->op->shown : NULL),
                  [RUN_LIBRARY] = (char *)(uintptr_t)(library ? library->shown : NULL),
                  [RUN_RANGE] = range,
                  [RUN_LINE] = (char *)(uintptr_t)line},
        .count = row->count,
        .ns = row->ns};
    run_kernel_add(kernels, &kernel);
    free(range);
}

/* Adds the rows to the kernels after the walk, with lines from `symbols` (symbols.h). */
static void run_work_name(struct parts *p, const char *symbols, struct run_kernels *kernels)
{
    struct place_lines lines = {.stacks = &p->walk.survey.stacks};
    for (uint32_t i = 0; i < p->count; i++)
        place_lines_add(&lines, p->list[i].process, p->list[i].stack, false);
    place_lines_find(&lines, p->walk.rec, symbols);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->list[i].name || p->list[i].is_graph)
            run_make_name_row(p, &lines, &p->list[i], kernels);
    place_lines_release(&lines);
}

/* ---- energy ---------------------------------------------------------------------------------- */

/* Returns whether all devices that the process reads are counted in other processes. */
static bool run_make_is_counted(const struct device_report *devices, const struct process *p)
{
    bool is_read = false, has_own = false;
    for (uint32_t i = 0; i < devices->count; i++) {
        is_read |= devices->rows[i].process == p;
        has_own |= devices->rows[i].process == p && !devices->rows[i].is_double;
    }
    return is_read && !has_own;
}

struct kept {
    uint32_t first, end;
};

/* Returns the kept steps of a process that lie within that time. */
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

/*
 * Sets the metric of energy, after the walk: for each process, the energy of its devices from the
 * first to the last kept step that the readings cover, divided by the number of steps. A device
 * that several processes read counts once, which changes `devices`. The metric stays NAN if a
 * process with steps has no reading.
 */
static void find_energy(struct run_summary *r, const struct run_steps *steps,
                        struct device_report *devices)
{
    const struct recording *rec = steps->walk->rec;
    const struct step *list = steps->steps.list;
    double mj = 0;
    bool *has_kept = memory_new(rec->count + 1u, sizeof *has_kept);
    for (uint32_t i = 0; i < rec->count; i++) {
        struct kept k = kept_between(steps, rec->processes[i], 0, UINT64_MAX);
        has_kept[i] = k.first < k.end;
    }
    device_report_count_once(devices, has_kept);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        bool counts = has_kept[i] && !run_make_is_counted(devices, p);
        uint64_t from_ns = 0, to_ns = UINT64_MAX;
        struct curve_growth energy;
        bool is_read = !counts || device_report_read_for(devices, p, &from_ns, &to_ns);
        struct kept k = kept_between(steps, p, from_ns, to_ns);
        if (counts)
            mj += is_read && k.first < k.end &&
                          device_report_energy(devices, p, list[k.first].begin_ns,
                                               list[k.end - 1].end_ns, &energy)
                      ? energy.value / (k.end - k.first)
                      : NAN;
        r->energy_steps += k.end - k.first;
    }
    r->metrics[RUN_ENERGY] = mj > 0 ? mj : NAN;
    r->energy_steps = mj > 0 ? r->energy_steps : 0;
    free(has_kept);
}

/* ---- facts: run_facts.def ---------------------------------------------------------------------
 */

/* Names the devices that did work, each once: "2 x NVIDIA H100". */
static void name_devices(const struct run_steps *steps, char text[FACT_BYTES])
{
    const struct walk *walk = steps->walk;
    const char **names = memory_new(steps->device_count + 1u, sizeof *names);
    struct key_map seen = {0};
    uint32_t count = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < steps->device_count; i++) {
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

/* Lists variables that change how CUDA and PyTorch work, not those that assign devices; and the
 * files of CUDA libraries: installed ones have their version in the name. */
static void name_metas(const struct recording *rec, char texts[RUN_FACTS][FACT_BYTES])
{
    static const char *const variables[] = {"env.CUDA_DEVICE_MAX_CONNECTIONS=",
                                            "env.CUDA_MODULE_LOADING=",
                                            "env.CUDA_CACHE_DISABLE=",
                                            "env.CUDA_FORCE_PTX_JIT=",
                                            "env.NVIDIA_TF32_OVERRIDE=",
                                            "env.PYTORCH_CUDA_ALLOC_CONF=",
                                            "env.PYTORCH_NO_CUDA_MEMORY_CACHING="};
    const char *files[LIBRARIES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        for (uint32_t k = 0; k < rec->processes[i]->meta_count; k++) {
            const char *text = rec->processes[i]->meta[k].text, *file = strrchr(text, '/');
            for (unsigned v = 0; v < sizeof variables / sizeof variables[0]; v++)
                if (strncmp(text, variables[v], strlen(variables[v])) == 0)
                    add_once(texts[RUN_FACT_VARIABLES], strchr(text, '.') + 1);
            if (strncmp(text, "library=", strlen("library=")) == 0 && file && count < LIBRARIES_MAX)
                files[count++] = file + 1;
        }
    ARRAY_SORT(files, count, compare_texts);
    for (uint32_t i = 0; i < count; i++)
        add_once(texts[RUN_FACT_LIBRARIES], files[i]);
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

/* Sets the facts and gpuprof's own cost, after the walk. */
static void find_facts(struct run_summary *r, const struct run_steps *steps,
                       const struct device_report *devices)
{
    const struct recording *rec = steps->walk->rec;
    const char *step_name = steps->steps.pattern ? steps->steps.pattern : steps->steps.class;
    char texts[RUN_FACTS][FACT_BYTES] = {{0}};
    uint64_t wall_ns = 0, cost_ns = 0;
    uint32_t ranks = 0; /* processes with steps */
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        for (enum run_fact k = 0; k < RUN_FACTS; k++)
            if (run_fact_infos[k].meta)
                run_fact_set(r, k, process_meta(p, run_fact_infos[k].meta));
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
    name_metas(rec, texts);
    name_conditions(devices, texts);
    if (rec->count) {
        const struct stream_header *h = &rec->processes[0]->header;
        time_t seconds = (time_t)(h->realtime_zero_ns / 1000000000u);
        struct tm tm;
        snprintf(texts[RUN_FACT_HOST], FACT_BYTES, "%s", h->host);
        if (gmtime_r(&seconds, &tm))
            strftime(texts[RUN_FACT_TIME], FACT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    for (enum run_fact i = 0; i < RUN_FACTS; i++)
        run_fact_set(r, i, texts[i]);
}

/* ---- the walks ------------------------------------------------------------------------------- */

/* Returns the most device memory that a process held on one device. */
static double peak_of(const struct memory_peaks *peaks)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < memory_peaks_count(peaks); i++)
        if (!peaks->ledger.totals.list[i].is_host)
            most = max_of(most, max_of(peaks->list[i].reserved, peaks->list[i].allocated));
    return most ? (double)most : NAN;
}

/* Returns EXIT_OK, or another exit code after one line on stderr. */
static enum exit_code walk_through(struct parts *p, const struct run_reading *how)
{
    memory_peaks_init(&p->peaks, &p->walk);
    enum exit_code code = walk_survey(&p->walk) == 0 ? EXIT_OK : EXIT_ENVIRONMENT;
    if (code == EXIT_OK)
        code = run_steps_find(&p->steps, &p->walk, how);
    if (code != EXIT_OK)
        return code;
    p->devices.walk = &p->walk;
    const struct consumer consumers[] = {
        ledger_consumer(&p->peaks.ledger),
        {.context = &p->steps, .needs = WALK_WORK, .take = run_steps_take},
        {.context = p,
         .needs = WALK_WORK | WALK_SPANS | WALK_STACKS | WALK_LOSSES,
         .skips = WALK_SKIPS_CALLS | WALK_SKIPS_OTHERS,
         .take_work = run_make_take_work},
        device_report_consumer(&p->devices)};
    return walk_run(&p->walk, NULL, consumers, 4) < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

static void sum_up(struct run_summary *r, struct parts *p)
{
    run_steps_metrics(&p->steps, r->metrics);
    memory_peaks_finish(&p->peaks);
    r->metrics[RUN_PEAK_MEMORY] = peak_of(&p->peaks);
    if (!p->steps.is_whole)
        find_energy(r, &p->steps, &p->devices);
    r->steps = p->steps.is_whole ? 0 : p->steps.kept;
    r->warm_up = p->steps.warm_up;
    find_facts(r, &p->steps, &p->devices);
}

enum exit_code run_summary_make(struct run_set *s, struct run_summary *run, struct recording *rec,
                                const struct run_reading *how)
{
    struct parts p = {.walk = {.rec = NULL}};
    walk_init(&p.walk, rec);
    enum exit_code code = walk_through(&p, how);
    if (code == EXIT_OK) {
        sum_up(run, &p);
        run_work_name(&p, how->options->symbols, &s->kernels);
        run_kernels_order(&s->kernels);
        s->kernels.steps += !p.count ? 0 : run->steps ? run->steps : 1;
    }
    free(p.list);
    number_set_release(&p.numbers);
    run_steps_release(&p.steps);
    device_report_release(&p.devices);
    memory_peaks_release(&p.peaks);
    walk_release(&p.walk);
    return code;
}
