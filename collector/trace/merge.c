/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: writes all events of the recordings as one trace, or as one per rank. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "clocks/host_clocks.h"
#include "error.h"
#include "output/output.h"
#include "rank.h"
#include "trace/merge_trace.h"

static bool is_archive_name(const char *path)
{
    return verb_output_is(path, "zip");
}

/* Returns true if the process gets its rank's file: of a job's processes with that rank, the first
 * with GPU work, or else the first. */
static bool has_rank(const struct recording *rec, const struct process *p)
{
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *other = rec->processes[i];
        if (other->rank == p->rank && other->job == p->job && other->has_gpu >= p->has_gpu &&
            (other->has_gpu > p->has_gpu || other->index < p->index))
            return false;
    }
    return true;
}

/* False where --job=N selected one. */
static bool has_several_jobs(const struct recording *rec)
{
    for (uint32_t i = 1; i < rec->count && rec->processes[i]->job != JOB_NONE; i++)
        if (rec->processes[i]->job != rec->processes[0]->job)
            return true;
    return false;
}

/* Returns one file per process, in display order; the caller frees it. NULL: no memory. `cycle` is
 * the window number for their names; 0: none. */
static struct rank_file *rank_files_make(const struct merge *m, uint64_t cycle)
{
    const struct recording *rec = &m->rec;
    const char *ending = m->format->rank_ending ? m->format->rank_ending : m->format->file.ending;
    struct rank_file *files = calloc(rec->count + 1u, sizeof *files);
    bool ranked = rec->count && rec->processes[0]->rank != RANK_NONE;
    bool with_gpu = recording_any(rec, process_has_gpu), has_jobs = has_several_jobs(rec);
    uint64_t next = 0;
    for (uint32_t i = 0; files && i < rec->count; i++) {
        struct process *p = rec->processes[i];
        struct rank_file *f = &files[i];
        char job[24] = "", number[32] = "";
        f->process = p;
        f->rank = p->rank == RANK_NONE ? 0 : p->rank;
        if (ranked)
            f->other = p->rank == RANK_NONE || !has_rank(rec, p);
        else if (!(f->other = with_gpu && !p->has_gpu))
            f->rank = next++; /* no process has a rank: numbered by start time */
        if (has_jobs && p->job != JOB_NONE)
            snprintf(job, sizeof job, "job_%u/", p->job);
        if (cycle)
            snprintf(number, sizeof number, ".%llu", (unsigned long long)cycle);
        f->stem = (uint32_t)snprintf(f->name, sizeof f->name, "%s%s%llu", job,
                                     f->other ? "others/process_" : "rank_",
                                     f->other ? p->shown_pid : (unsigned long long)f->rank);
        snprintf(f->name + f->stem, sizeof f->name - f->stem, "%s.%s", number, ending);
    }
    return files;
}

/* ---- the verb -----------------------------------------------------------------------------------
 */

/*
 * Walks the recording before writing: traces of ranks share an origin, and names, stacks, devices
 * and steps must be known in advance.
 */
static enum exit_code merge_look_around(struct merge *m, const struct options *options)
{
    enum exit_code code =
        steps_find(&m->steps, &m->walk, options->step_by, options->step_range, true, "merge");
    m->with_steps = recording_any(&m->rec, process_may_have_ops) || options->step_by ||
                    options->step_range || m->steps.kind == STEPS_CALLED;
    return code;
}

static enum exit_code find_piece(struct merge *m, const struct options *options, uint64_t cycle)
{
    const struct selection_steps how = {
        .by = options->step_by, .pattern = options->step_range, .found = &m->steps};
    m->request = options->select;
    m->request.cycle = cycle;
    m->walk.filter = NULL;
    enum exit_code code =
        selection_make(&m->selection, &m->rec, &m->walk, &m->request, &how, "merge");
    m->walk.filter = merge_filter(m);
    return code;
}

/* Puts each window's number where TensorBoard looks for it. */
static enum exit_code write_cycles(struct merge *m, const struct options *options)
{
    bool is_all = options->select.cycle == CYCLE_ALL;
    enum exit_code code = EXIT_OK;
    for (uint64_t cycle = m->request.cycle;; cycle++) {
        struct rank_file *files = rank_files_make(m, cycle);
        code = files ? merge_write_folder(m, options->output, files)
                     : verb_output_failed(options->output, GPUPROF_NO_MEMORY);
        free(files);
        if (code != EXIT_OK || !is_all || cycle == m->selection.cycle_last)
            return code;
        selection_release(&m->selection);
        code = find_piece(m, options, cycle + 1);
        if (code != EXIT_OK)
            return code;
    }
}

static enum exit_code merge_write(struct merge *m, const struct options *options)
{
    const struct merge_options *own = options->own;
    m->split = own->per_rank || is_archive_name(options->output);
    m->cut = options->select.is_given;
    m->room = verb_output_room(recording_bytes(&m->rec));
    struct trace_scope scope = {.rank = RANK_NONE};
    m->rec.progress = progress_begin("merge", recording_bytes(&m->rec) * 2u);
    if (walk_init(&m->walk, &m->rec) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    uint64_t cycle = options->select.cycle == CYCLE_ALL ? 1 : options->select.cycle;
    enum exit_code code = merge_look_around(m, options);
    if (code == EXIT_OK)
        code = find_piece(m, options, cycle);
    if (code != EXIT_OK)
        return code;
    m->with_stacks = m->walk.survey.stacks.stack_count;
    if (m->with_stacks && call_tree_init(&m->tree, &m->walk.survey, NULL, options->symbols) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    if (cycle && own->per_rank)
        return write_cycles(m, options);
    if (!m->split) {
        code = merge_write_file(m, options->output, &scope);
        if (code == EXIT_OK)
            merge_say_left_out(m, options->output);
        return code;
    }
    struct rank_file *files = rank_files_make(m, 0);
    if (!files)
        code = verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    else if (own->per_rank)
        code = merge_write_folder(m, options->output, files);
    else
        code = merge_write_archive(m, options->output, files);
    free(files);
    return code;
}

#define TRACE_FORMAT(name) &name##_format.file,
const struct file_format *const trace_formats[] = {
#include "trace/trace_formats.def"
    NULL};
#undef TRACE_FORMAT

/* Returns the format of --format, or of the file name's ending, which need not have one; NULL:
 * unknown. */
static const struct trace_format *merge_format_of(const struct options *options)
{
    const struct merge_options *own = options->own;
    bool is_file = !own->per_rank && !is_archive_name(options->output);
    const struct file_format *found = *trace_formats;
    if (own->format)
        found = file_format_named(trace_formats, own->format);
    else if (is_file && !verb_output_is(options->output, ""))
        found = file_format_of_file(trace_formats, options->output);
    return (const struct trace_format *)found;
}

static enum exit_code merge_run(const struct options *options)
{
    const struct merge_options *own = options->own;
    char names[FILE_FORMAT_NAMES_BYTES];
    struct merge m = {.own = own, .format = merge_format_of(options)};
    if (own->per_rank && (!options->output || strcmp(options->output, "-") == 0))
        return usage_error(
            "merge: --per-rank writes several files; name a folder, such as -o traces");
    if (own->per_rank && is_archive_name(options->output))
        return usage_error("merge: an archive always has one file per rank; leave out --per-rank");
    if (options->select.cycle == CYCLE_ALL && !own->per_rank)
        return usage_error("merge: --cycle=all writes one file per window; add --per-rank and name "
                           "a folder, such as -o traces");
    if (!m.format && own->format)
        return usage_error("merge: --format: unknown format '%s'; the formats are: %s", own->format,
                           file_format_names(trace_formats, names));
    if (!m.format)
        return usage_error(
            "merge: %s: unknown file type; the formats are: %s, also .gz, .zst and .zip",
            options->output, file_format_names(trace_formats, names));
    if (!options->output && isatty(STDOUT_FILENO))
        return usage_error("merge: not written to the terminal; name a file: -o trace.json (or -o "
                           "- to write it anyway)");
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum exit_code code = recording_open(&m.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = host_clocks_align(&m.rec, options->clock, "merge");
    if (code == EXIT_OK)
        code = merge_write(&m, options);
    if (code == EXIT_OK && own->per_rank)
        code = selection_check(&m.selection, "merge");
    if (code == EXIT_OK)
        code = walk_verdict(&m.walk, options->strict);
    if (m.with_stacks) {
        call_tree_say(&m.tree);
        call_tree_release(&m.tree);
    }
    if (m.steps.walk)
        steps_release(&m.steps);
    selection_release(&m.selection);
    if (m.walk.rec)
        walk_release(&m.walk);
    recording_release(&m.rec);
    return code;
}

static const char *format_name(unsigned index)
{
    return trace_formats[index] ? trace_formats[index]->name : NULL;
}

static enum exit_code take_size(const struct given *g)
{
    return option_end(g, settings_size(g->value, g->at) && *(uint64_t *)g->at,
                      "is no size, such as 400M (K, M, G, T; KB and KiB mean the same as K)");
}

static const struct option own_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the trace to this file (.gz and .zst: compressed, .zip: an archive with a file per "
     "rank); "
     "default: standard output",
     .in = HELP_OUTPUT},
    {0, "format", "FORMAT", OPTION_TEXT(struct merge_options, format),
     "Write this trace format: chrome or perfetto; default: by the end of the file's name",
     .word_at = format_name, .in = HELP_OUTPUT},
    {0, "per-rank", NULL, OPTION_FLAG(struct merge_options, per_rank),
     "Write a file for each rank, rank_N.pt.trace.json.gz, into the folder that -o names",
     .in = HELP_OUTPUT},
    {0, "sync-streams", NULL, OPTION_FLAG(struct merge_options, sync_streams),
     "Give synchronisations the stream that they waited for, for HTA's critical path analysis; "
     "HTA's other analyses then mistake waits for work",
     .in = HELP_SHOW | HELP_MORE},
    {0, "no-counters", NULL, OPTION_FLAG(struct merge_options, no_counters),
     "Leave out the counter tracks: GPU utilisation, kernels in flight, copy rate, memory, "
     "launches",
     .in = HELP_SHOW | HELP_MORE},
    {0, "memory-events", NULL, OPTION_FLAG(struct merge_options, memory_events),
     "Add each allocation and release of PyTorch's allocator, as torch.profiler does, for "
     "TensorBoard's memory view",
     .in = HELP_SHOW | HELP_MORE},
    {0, "max-size", "SIZE", OPTION_OWN(take_size, struct merge_options, max_size),
     "Leave out the shortest calls, activities and ranges to limit each trace to this size before "
     "compression, such as 400M. The trace has their number and times.",
     .in = HELP_OUTPUT},
    {OPTIONS_OF(read_options, READ_JOBS | READ_CYCLES | READ_SELECT | READ_CLOCK | READ_STEPS |
                                  READ_SYMBOLS | READ_STRICT | READ_KEEP_LIVE)},
    {0},
};

VERB_IS(merge, merge_run, own_options, VERB_OWN(struct merge_options, 0), TAKES_RECORDINGS,
        "DIR|FILE...", "write a trace for Perfetto, or one for each rank",
        {PART_EXAMPLE, "gpuprof merge data -o trace.json.gz",
         "write one trace of all processes, for ui.perfetto.dev"},
        {PART_EXAMPLE, "gpuprof merge data --per-rank -o traces",
         "write one for each rank, for HTA and TensorBoard"});
