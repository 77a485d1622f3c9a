/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of steps and of phases (step_report.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/report_make.h"
#include "analyse/step_report.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"

#define NS_PER_S 1e9

static struct cell rate_of(double samples, uint64_t ns)
{
    return samples > 0 && ns ? cell_real(samples * NS_PER_S / (double)ns)
                             : (struct cell){.kind = CELL_NONE};
}

/* Returns the rate of all processes: they run at the same time, so rates are added. */
static double rate_of_all(const struct step_report *r)
{
    double rate = 0;
    for (uint32_t i = 0; i < r->walk->rec->count; i++) {
        uint64_t ns = 0, count = 0;
        for (uint32_t k = r->steps.firsts[i]; k < r->steps.firsts[i + 1]; k++) {
            const struct step *step = &r->steps.list[k];
            ns += step->is_partial ? 0 : step_ns(step);
            count += !step->is_partial;
        }
        rate += ns ? r->samples * (double)count * NS_PER_S / (double)ns : 0;
    }
    return rate;
}

/* ---- statistics ------------------------------------------------------------------------------ */

enum { STAT_NAME, STAT_NS, STAT_RATE, STAT_STEP, STAT_HOST, STAT_PID };

static const struct column stat_columns[] = {
    [STAT_NAME] = {"name", "", .doc = "mean, median, p95, p99, or one of the slowest"},
    [STAT_NS] = {"duration_ns", "duration", COLUMN_NS, 12, .doc = "the duration"},
    [STAT_RATE] = {"samples_per_second", "samples/s", COLUMN_RATE, 14,
                   .doc = "samples a second in all processes together (--samples-per-step)"},
    [STAT_STEP] = {"step", NULL, COLUMN_NUMBER, .doc = "the number of the step, for the slowest"},
    [STAT_HOST] = {"host", NULL, .doc = "the host of the step"},
    [STAT_PID] = {"pid", NULL, COLUMN_NUMBER, .doc = "the process of the step"},
};

static const struct {
    const char *name;
    double fraction; /* 0: mean */
} stats[] = {{"mean", 0}, {"median", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
enum { STATS = sizeof stats / sizeof stats[0] };

static void fill_stat(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct step_report *r = t->source;
    uint64_t ns;
    if (index < STATS) {
        ns = stats[index].fraction > 0 ? step_report_quantile(r, stats[index].fraction)
                                       : r->all.total_ns / r->all.whole;
        cells[STAT_NAME] = cell_text(stats[index].name);
    } else {
        const struct step *step = r->differs.slowest[index - STATS];
        char *which = step_text(r, step);
        ns = step_ns(step);
        cells[STAT_NAME] =
            t->format == FORMAT_JSON ? cell_text("slowest") : cell_printf("slowest: %s", which);
        free(which);
        cells[STAT_STEP] = cell_number(step->number);
        cells[STAT_HOST] = cell_text(step->process->header.host);
        cells[STAT_PID] = cell_number(step->process->header.pid);
    }
    cells[STAT_NS] = cell_number(ns);
    cells[STAT_RATE] = rate_of(r->samples, ns);
}

static void say_definition(const struct step_report *r, FILE *out)
{
    enum step_kind kind = r->steps.kind;
    bool has_name = kind == STEPS_OPTIMIZER || kind == STEPS_LOADER || kind == STEPS_NAMED;
    const struct kernel_name *name = has_name ? r->steps.list[0].made_of : NULL;
    char *clean = name ? json_line(name->shown) : NULL;
    fprintf(out, "%s%s%s%s\n", kind == STEPS_NONE ? "no steps: " : "a step is ",
            step_kinds[kind].definition, clean ? ": " : "", clean ? clean : "");
    free(clean);
}

/* Says how many steps have no parts and phases. */
static void say_blind(const struct step_report *r, FILE *out)
{
    char count[UNIT_TEXT_BYTES];
    if (r->all.blind)
        fprintf(out, "GPU time is incomplete for %s step%s%s\n", count_text(count, r->all.blind),
                plural_end(r->all.blind),
                r->all.blind < r->all.whole ? "; parts and phases leave them out" : "");
}

static void stats_before(const struct table *t, FILE *out)
{
    const struct step_report *r = t->source;
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES];
    say_definition(r, out);
    if (!r->steps.count)
        return;
    fprintf(out, "%s whole step%s in %u of %u process%s", count_text(a, r->all.whole),
            plural_end(r->all.whole), r->processes, r->walk->rec->count,
            r->walk->rec->count == 1 ? "" : "es");
    if (r->steps.count > r->all.whole)
        fprintf(out, "; %s partial, not in the means",
                count_text(a, r->steps.count - r->all.whole));
    if (r->steps.overlapping)
        fprintf(out, "; %s that began inside another step do not count",
                count_text(b, r->steps.overlapping));
    if (r->steps.beyond)
        fprintf(out, "; %s later step%s did not fit", count_text(b, r->steps.beyond),
                plural_end(r->steps.beyond));
    fprintf(out, "\n");
    say_blind(r, out);
    if (r->samples > 0 && r->all.whole)
        fprintf(out, "%.3f samples/s in all processes together\n", rate_of_all(r));
}

static void stats_json(const struct table *t, FILE *out)
{
    const struct step_report *r = t->source;
    if (!r)
        return;
    fprintf(out,
            "\"steps_by\": \"%s\",\n\"steps_whole\": %u,\n\"steps_partial\": %u,\n"
            "\"steps_blind\": %u,\n\"steps_overlapping\": %llu,\n\"steps_beyond\": %llu,\n",
            step_kinds[r->steps.kind].word, r->all.whole, r->steps.count - r->all.whole,
            r->all.blind, (unsigned long long)r->steps.overlapping,
            (unsigned long long)r->steps.beyond);
    if (r->samples > 0)
        fprintf(out, "\"samples_per_second\": %.6f,\n", rate_of_all(r));
}

/* ---- parts ----------------------------------------------------------------------------------- */

enum { PART_NAME, PART_TOTAL, PART_MEAN, PART_SHARE };

static const struct column part_columns[] = {
    [PART_NAME] = {"name", "of the steps' time",
                   .doc = "the activity: the first in this order that was under way: kernels, "
                          "copies, communication ..."},
    [PART_TOTAL] = {"total_ns", "total", COLUMN_NS, 12, .spare = 1,
                    .doc = "total in all whole steps"},
    [PART_MEAN] = {"mean_ns", "a step", COLUMN_NS, 12, .doc = "mean time in a step"},
    [PART_SHARE] = {"share", "share", COLUMN_SHARE, 7,
                    .doc = "that total as a share of the steps' time"},
};

static void fill_part(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct step_report *r = t->source;
    cells[PART_NAME] =
        cell_text(t->format == FORMAT_TEXT ? step_parts[index].title : step_parts[index].name);
    cells[PART_TOTAL] = cell_number(r->all.parts[index]);
    cells[PART_MEAN] = cell_number(r->all.parts[index] / r->all.split);
    cells[PART_SHARE] = cell_share(r->all.parts[index], r->all.split_ns);
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum { NAME, BEGIN = 5, DURATION, BUSY, RATE = 16, MADE_OF = 19, ENERGY, ENERGY_ERROR, THROTTLED };
enum { THROTTLED_BY = THROTTLED + 1, WAITED_FOR, WAITED_FOR_NS };

static const struct column columns[] = {
    [NAME] = {NULL, "which", .doc = "the step, and its process if there are several"},
    {"step", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(struct step, number),
     .doc = "the number of the step"},
    COLUMN_RANK(struct step, process),
    COLUMN_HOST(struct step, process),
    COLUMN_PID(struct step, process),
    [BEGIN] = {"begin_ns", "begin", COLUMN_NS, 12, true, 2,
               .doc = "when the step began, since the first event"},
    [DURATION] = {"duration_ns", "duration", COLUMN_NS, 12, .doc = "the duration of the step"},
    [BUSY] = {"gpu_busy_ns", "GPU busy", COLUMN_NS, 12, .spare = 1,
              .doc = "the GPU was busy: compute, copies and communication"},
    {"kernels_ns", "compute", COLUMN_NS, 12, .spare = 3, MEMBER(struct step, parts[STEP_KERNELS]),
     .doc = "a kernel or graph ran, other than NCCL's"},
    {"copies_ns", "copies", COLUMN_NS, 12, .spare = 3, MEMBER(struct step, parts[STEP_COPIES]),
     .doc = "else a copy or set ran"},
    {"communication_ns", "comm. + waits", COLUMN_NS, 13, .spare = 3,
     MEMBER(struct step, parts[STEP_COMMUNICATION]),
     .doc = "else an NCCL kernel ran, or waited for other ranks"},
    {"runtime_ns", "CUDA calls", COLUMN_NS, 12, .spare = 2,
     MEMBER(struct step, parts[STEP_RUNTIME]), .doc = "else a CUDA call was open"},
    {"dataloader_ns", "data loader", COLUMN_NS, 12, .spare = 3,
     MEMBER(struct step, parts[STEP_LOADER_WAIT]), .doc = "else a batch was fetched"},
    {"operators_ns", "operators", COLUMN_NS, 12, .spare = 3,
     MEMBER(struct step, parts[STEP_OPERATORS]), .doc = "else a PyTorch operator ran"},
    {"other_ns", "other", COLUMN_NS, 12, .spare = 4, MEMBER(struct step, parts[STEP_OTHER]),
     .doc = "the rest"},
    {"batches", "batches", COLUMN_COUNT, 7, .spare = 1, MEMBER(struct step, batches),
     .doc = "fetches of batches that began in the step"},
    [RATE] = {"samples_per_second", NULL, COLUMN_RATE,
              .doc = "samples a second (--samples-per-step)"},
    {"partial", NULL, COLUMN_BOOL, MEMBER(struct step, is_partial),
     .doc = "1: the start or the end of the step is unknown; no sum includes it"},
    {"blind", NULL, COLUMN_BOOL, MEMBER(struct step, is_blind),
     .doc = "1: GPU time is unknown for a part of the step"},
    [MADE_OF] = {"made_of", .doc = "the range, label or graph that marks the step"},
    [ENERGY] = {"energy_mj", "energy", COLUMN_ENERGY, 11, .is_filled = true,
                .doc = "energy that the devices of its process used in the step, in millijoules"},
    [ENERGY_ERROR] = {"energy_error_mj", "+-", COLUMN_ENERGY, 10, .spare = 1, .is_filled = true,
                      .doc = "uncertainty of the energy"},
    [THROTTLED] = {"throttled_ns", NULL, COLUMN_NS, .doc = "time in which a device was throttled"},
    [THROTTLED_BY] = {"throttled_by", "throttled", COLUMN_TEXT, 16, .is_filled = true,
                      .doc = "why the device was throttled"},
    [WAITED_FOR] = {"waited_for", "waited for", COLUMN_TEXT, 20, .is_filled = true,
                    .doc = "the rank that its process waited for longest"},
    [WAITED_FOR_NS] = {"waited_for_ns", NULL, COLUMN_NS, .doc = "how long it waited for that rank"},
};

/* Fills the energy of all devices of the process, and the throttling of the worst one. */
static void fill_devices(const struct step_report *r, const struct step *step,
                         enum report_format format, struct cell *cells)
{
    struct curve_growth energy;
    enum throttle why;
    uint64_t ns;
    if (step->is_partial)
        return;
    if (device_report_energy(r->report->devices, step->process, step->begin_ns, step->end_ns,
                             &energy)) {
        cells[ENERGY] = cell_number(curve_whole(energy.value));
        cells[ENERGY].estimated = true;
        cells[ENERGY_ERROR] = cell_number(curve_whole(ceil(energy.error)));
    }
    if (!device_report_throttle(r->report->devices, step->process, step->begin_ns, step->end_ns,
                                &why, &ns))
        return;
    double share = (double)ns / (double)step_ns(step);
    cells[THROTTLED] = cell_number(ns);
    if (format != FORMAT_TEXT)
        cells[THROTTLED_BY] = cell_text(throttle_words[why]);
    else if (share >= THROTTLED_SHARE_MIN)
        cells[THROTTLED_BY] = cell_printf("%s %.0f%%", throttle_words[why], 100 * share);
}

/* Fills the rank that the process waited for. */
static void fill_wait(const struct step *step, enum report_format format, struct cell *cells)
{
    char who[RANK_TITLE_BYTES];
    if (!step->awaited)
        return;
    cells[WAITED_FOR] =
        cell_owned(format == FORMAT_TEXT ? step_wait_text(step)
                                         : memory_text(process_who(step->awaited, who)));
    cells[WAITED_FOR_NS] = cell_number(step->awaited_ns);
}

static void step_report_print_fill_step(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct step_report *r = t->source;
    const struct step *step = &r->steps.list[index];
    bool is_text = t->format == FORMAT_TEXT;
    char *text = step_text(r, step);
    cells[NAME] = cell_printf("%s%s%s", text, is_text && step->is_partial ? ", partial" : "",
                              is_text && step->is_blind ? ", GPU not known" : "");
    free(text);
    uint64_t origin_ns = r->walk->survey.origin_ns;
    cells[BEGIN] = cell_number(step->begin_ns > origin_ns ? step->begin_ns - origin_ns : 0);
    cells[DURATION] = cell_number(step_ns(step));
    cells[BUSY] = cell_number(step->parts[STEP_KERNELS] + step->parts[STEP_COPIES] +
                              step->parts[STEP_COMMUNICATION]);
    if (!step->is_partial)
        cells[RATE] = rate_of(r->samples, step_ns(step));
    cells[MADE_OF] = cell_text(step->made_of ? step->made_of->shown : NULL);
    fill_devices(r, step, t->format, cells);
    fill_wait(step, t->format, cells);
}

/* Explains "busy": the table of ranks counts the same time as idle. */
static void say_busy(const struct table *t, FILE *out)
{
    const struct step_report *r = t->source;
    if (r->steps.has_waits)
        fputs("GPU busy includes waits for other ranks; the table 'ranks' counts them as idle\n",
              out);
}

/* ---- phases ---------------------------------------------------------------------------------- */

enum { PHASE_NAME, HOST_TOTAL, HOST_MEAN, HOST_SHARE, GPU_TOTAL, GPU_MEAN, GPU_SHARE, PHASE_STEPS };

static const struct column phase_columns[] = {
    [PHASE_NAME] = {"name", "phase",
                    .doc = "data, forward, backward, optimizer, zero_grad, sync, other"},
    [HOST_TOTAL] = {"host_ns", "host", COLUMN_NS, 12, .spare = 1,
                    .doc = "host time in all whole steps"},
    [HOST_MEAN] = {"host_mean_ns", "host a step", COLUMN_NS, 12, .doc = "mean host time in a step"},
    [HOST_SHARE] = {"host_share", "of host", COLUMN_SHARE, 7,
                    .doc = "host time as a share of the steps' time"},
    [GPU_TOTAL] = {"gpu_ns", "GPU", COLUMN_NS, 12, .spare = 1,
                   .doc = "GPU time of the work that it launched"},
    [GPU_MEAN] = {"gpu_mean_ns", "GPU a step", COLUMN_NS, 12, .doc = "mean GPU time in a step"},
    [GPU_SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7,
                   .doc = "GPU time as a share of all GPU time in steps"},
    [PHASE_STEPS] = {"steps", NULL, COLUMN_COUNT, .doc = "whole steps in the figures"},
};

static bool knows_phases(const struct step_report *r)
{
    return r->all.host_ns[PHASE_NONE] != r->all.split_ns;
}

static void fill_phase(const struct table *t, uint32_t index, struct cell *cells)
{
    static const struct {
        enum step_phase phase;
        const char *name;
    } rows[PHASES] = {{PHASE_DATA, "data"},           {PHASE_FORWARD, "forward"},
                      {PHASE_BACKWARD, "backward"},   {PHASE_OPTIMIZER, "optimizer"},
                      {PHASE_ZERO_GRAD, "zero_grad"}, {PHASE_SYNC, "sync"},
                      {PHASE_NONE, "other"}};
    const struct step_report *r = t->source;
    enum step_phase phase = rows[index].phase;
    uint64_t gpu_ns = 0;
    for (unsigned i = 0; i < PHASES; i++)
        gpu_ns += r->all.gpu_ns[i];
    cells[PHASE_NAME] = cell_text(rows[index].name);
    cells[HOST_TOTAL] = cell_number(r->all.host_ns[phase]);
    cells[HOST_MEAN] = cell_number(r->all.host_ns[phase] / r->all.split);
    cells[HOST_SHARE] = cell_share(r->all.host_ns[phase], r->all.split_ns);
    cells[GPU_TOTAL] = cell_number(r->all.gpu_ns[phase]);
    cells[GPU_MEAN] = cell_number(r->all.gpu_ns[phase] / r->all.split);
    cells[GPU_SHARE] = cell_share(r->all.gpu_ns[phase], gpu_ns);
    cells[PHASE_STEPS] = cell_number(r->all.split);
}

static void phases_before(const struct table *t, FILE *out)
{
    const struct step_report *r = t->source;
    say_definition(r, out);
    say_blind(r, out);
    if (!knows_phases(r))
        fputs("no phase is known: record a PyTorch program with 'gpuprof run --pytorch=names';\n"
              "  any other can name the parts of a step with ranges (--table=nvtx_sum)\n",
              out);
}

static void step_tables_begin(struct table *t)
{
    const struct step_report *r = t->source;
    if (!r)
        return;
    bool has_whole = r->all.whole, has_phases = t->format != FORMAT_TEXT || knows_phases(r);
    const struct {
        bool is_there;
        uint32_t count;
    } all[STEP_TABLES] = {{true, has_whole ? STATS + r->differs.slowest_count : 0}, /* says why */
                          {has_whole, has_whole ? STEP_PARTS : 0},
                          {r->steps.count, r->steps.count},
                          {has_whole, has_whole && has_phases ? PHASES : 0}};
    t->is_there = all[t->info - step_tables].is_there;
    t->count = all[t->info - step_tables].count;
}

#define STEP_TABLE(NAME, KEY, COLUMNS, FILL)                                                       \
    .name = NAME, .key = KEY, .place = PLACE_STEPS, TABLE_COLUMNS(COLUMNS),                        \
    .begin = step_tables_begin, .row = FILL

const struct table_info step_tables[STEP_TABLES] = {
    {STEP_TABLE("steps", "step_stats", stat_columns, fill_stat),
     .about = "each step of the program: its duration and how the time was spent", .title = "steps",
     .is_bare = true, .is_summary = true, .text_before = stats_before, .json_before = stats_json},
    {STEP_TABLE("steps", "step_parts", part_columns, fill_part),
     .text = {PART_SHARE, PART_MEAN, PART_TOTAL}, .is_summary = true, .is_further = true},
    {STEP_TABLE("steps", "steps", columns, step_report_print_fill_step),
     .rows = {ROWS_IN(struct step_report, steps.list, steps.count)},
     .name_width = 26, /* "step 102 of rank 7, partial" */
     .text_limit = 100, .is_further = true, .text_behind = say_busy},
    {STEP_TABLE("phases", "phases", phase_columns, fill_phase), .title = "phases of the steps",
     .text = {HOST_SHARE, HOST_MEAN, HOST_TOTAL, GPU_SHARE, GPU_MEAN, GPU_TOTAL},
     .is_summary = true, .text_none = ": no whole step was recorded", .text_before = phases_before},
};
