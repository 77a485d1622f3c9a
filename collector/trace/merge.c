/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: all events of the recordings named, as one trace, or as one for each rank. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "clocks/host_clocks.h"
#include "error.h"
#include "output/verb_output.h"
#include "rank.h"
#include "trace/merge_trace.h"

static bool is_archive_name(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    return length > 4 && strcasecmp(path + length - 4, ".zip") == 0;
}

/* Processes are in the order of their ranks: those that share one, in one job, are near. */
static bool has_rank(const struct recording *rec, uint32_t index)
{
    const struct process *p = rec->processes[index], *other;
    for (uint32_t i = index; i > 0 && (other = rec->processes[i - 1])->rank == p->rank; i--)
        if (other->job == p->job && (other->has_gpu || !p->has_gpu))
            return false;
    for (uint32_t i = index + 1; i < rec->count && (other = rec->processes[i])->rank == p->rank;
         i++)
        if (other->job == p->job && other->has_gpu && !p->has_gpu)
            return false;
    return true;
}

static bool has_several_jobs(const struct recording *rec)
{
    const struct process *first = rec->count ? rec->processes[0] : NULL;
    for (uint32_t i = 1; i < rec->count && rec->processes[i]->job != JOB_NONE; i++)
        if (rec->processes[i]->job != first->job)
            return true;
    return false;
}

/* Puts its name, without the ending, into `f`. */
static void name_file(struct rank_file *f, bool has_jobs)
{
    char job[24] = "";
    if (has_jobs && f->process->job != JOB_NONE)
        snprintf(job, sizeof job, "job_%u/", f->process->job);
    f->stem = (uint32_t)(f->other ? snprintf(f->name, sizeof f->name, "%sothers/process_%u", job,
                                             f->process->shown_pid)
                                  : snprintf(f->name, sizeof f->name, "%srank_%llu", job,
                                             (unsigned long long)f->rank));
}

/* One file per process, in the order in which they are shown; the caller frees. NULL: no memory.
 * `cycle`: the number in their names of the window that they show; 0: none. */
static struct rank_file *rank_files_make(const struct merge *m, uint64_t cycle)
{
    const struct recording *rec = &m->rec;
    const char *ending = m->format->rank_ending ? m->format->rank_ending : m->format->file.ending;
    struct rank_file *files = calloc(rec->count + 1u, sizeof *files);
    bool ranked = rec->count && rec->processes[0]->rank != RANK_NONE;
    bool with_gpu = recording_has_gpu(rec), has_jobs = has_several_jobs(rec);
    uint64_t next = 0;
    for (uint32_t i = 0; files && i < rec->count; i++) {
        struct process *p = rec->processes[i];
        struct rank_file *f = &files[i];
        f->process = p;
        f->rank = p->rank == RANK_NONE ? 0 : p->rank;
        if (ranked)
            f->other = p->rank == RANK_NONE || !has_rank(rec, i);
        else if (!(f->other = with_gpu && !p->has_gpu))
            f->rank = next++; /* nobody has one: in the order of their starts */
        name_file(f, has_jobs);
        if (cycle)
            snprintf(f->name + f->stem, sizeof f->name - f->stem, ".%llu.%s",
                     (unsigned long long)cycle, ending);
        else
            snprintf(f->name + f->stem, sizeof f->name - f->stem, ".%s", ending);
    }
    return files;
}

/* ---- the verb -----------------------------------------------------------------------------------
 */

static bool wants_steps(const struct merge *m, const struct options *options)
{
    return recording_has_ops(&m->rec) || options->step_by != NULL || options->step_range != NULL;
}

/*
 * Traces of ranks share their origin; and what is written cannot be changed any more when a name, a
 * stack or a device is met that was needed for it. Where there may be others than those of
 * gpuprof_step(), a walk also tells what a step is; and of a piece, which of those are in it.
 */
static enum exit_code look_around(struct merge *m, const struct options *options, bool surveys)
{
    m->made_steps = wants_steps(m, options) || m->is_cut;
    if ((m->surveys_each && walk_survey_shared(&m->walk) < 0) ||
        (surveys && !m->made_steps && walk_survey(&m->walk, NULL) < 0))
        return EXIT_ENVIRONMENT;
    if (!m->made_steps)
        return EXIT_OK;
    enum exit_code code =
        steps_find(&m->steps, &m->walk, options->step_by, options->step_range, surveys, "merge");
    m->has_steps = wants_steps(m, options) || m->steps.kind == STEPS_CALLED;
    return code;
}

static enum exit_code find_piece(struct merge *m, const struct options *options, uint64_t cycle)
{
    const struct selection_steps how = {.by = options->step_by,
                                        .pattern = options->step_range,
                                        .found = m->made_steps ? &m->steps : NULL};
    m->wish = options->select;
    m->wish.cycle = cycle;
    m->walk.filter = NULL;
    enum exit_code code = selection_make(&m->selection, &m->rec, &m->walk, &m->wish, &how, "merge");
    m->walk.filter = merge_filter(m);
    return code;
}

/* Each window's number is where TensorBoard looks for it. */
static enum exit_code write_cycles(struct merge *m, const struct options *options)
{
    bool is_all = options->select.cycle == CYCLE_ALL;
    enum exit_code code = EXIT_OK;
    for (uint64_t cycle = m->wish.cycle;; cycle++) {
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
    m->split = options->per_rank || is_archive_name(options->output);
    m->is_cut = options->select.is_given;
    m->room = verb_output_room(recording_bytes(&m->rec));
    struct trace_scope scope = {.rank = RANK_NONE};
    bool stacks = recording_has_stacks(&m->rec);
    bool learns = stacks || recording_has_ops(&m->rec) || recording_expects_gpu(&m->rec) ||
                  m->memory_events || m->is_cut;
    m->surveys_each = m->split && !m->is_cut; /* a piece is cut where all is known */
    m->rec.progress = progress_begin(&m->progress, "merge");
    bool surveys = !m->surveys_each && (m->split || learns);
    m->progress.total = recording_bytes(&m->rec) * (surveys || wants_steps(m, options) ? 2u : 1u);
    if (walk_init(&m->walk, &m->rec) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    uint64_t cycle = options->select.cycle == CYCLE_ALL ? 1 : options->select.cycle;
    enum exit_code code = look_around(m, options, surveys);
    if (code == EXIT_OK)
        code = find_piece(m, options, cycle);
    if (code != EXIT_OK)
        return code;
    m->has_stacks = stacks && m->walk.survey.stacks.stack_count;
    if (m->has_stacks && call_tree_init(&m->tree, &m->walk.survey, options->symbols) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    if (cycle && options->per_rank)
        return write_cycles(m, options);
    if (!m->split) {
        code = merge_write_file(m, options->output, &scope);
        if (code == EXIT_OK)
            merge_say_written(m, options->output);
        return code;
    }
    struct rank_file *files = rank_files_make(m, 0);
    if (!files)
        code = verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    else if (options->per_rank)
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

/* As the options say, or else the file's name, which need not say it; NULL: there is none such. */
static const struct trace_format *format_of(const struct options *options)
{
    bool is_file = !options->per_rank && !is_archive_name(options->output);
    const struct file_format *found = *trace_formats;
    if (options->trace_format)
        found = file_format_named(trace_formats, options->trace_format);
    else if (is_file && !verb_output_is(options->output, ""))
        found = file_format_of_file(trace_formats, options->output);
    return (const struct trace_format *)found;
}

enum exit_code merge_verb(const struct options *options)
{
    char names[FILE_FORMAT_NAMES_BYTES];
    struct merge m = {.format = format_of(options),
                      .max_size = options->max_size,
                      .sync_streams = options->sync_streams,
                      .counters = !options->no_counters,
                      .memory_events = options->memory_events};
    if (options->per_rank && (!options->output || strcmp(options->output, "-") == 0))
        return usage_error("merge: --per-rank writes several files; name a folder: -o traces");
    if (options->per_rank && is_archive_name(options->output))
        return usage_error("merge: an archive has a file per rank without --per-rank");
    if (options->select.cycle == CYCLE_ALL && !options->per_rank)
        return usage_error("merge: --cycle=all writes a file for each window; say --per-rank and "
                           "name a folder: -o traces");
    if (!m.format && options->trace_format)
        return usage_error("merge: --format: no format is named '%s'; the formats are: %s",
                           options->trace_format, file_format_names(trace_formats, names));
    if (!m.format)
        return usage_error("merge: %s: not a kind that can be written; the formats are: %s, also "
                           ".gz, .zst and .zip",
                           options->output, file_format_names(trace_formats, names));
    if (!options->output && isatty(STDOUT_FILENO))
        return usage_error("merge: the trace would go to the terminal; name a file: -o trace.json "
                           "(or -o - if you mean it)");
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum exit_code code = recording_open(&m.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = host_clocks_align(&m.rec, options->clock, "merge");
    if (code == EXIT_OK)
        code = merge_write(&m, options);
    if (code == EXIT_OK)
        merge_say_large(&m);
    free(m.large_path);
    if (code == EXIT_OK && options->per_rank)
        code = selection_check(&m.selection, "merge");
    if (code == EXIT_OK)
        code = walk_verdict(&m.walk, options->strict);
    if (m.has_stacks) {
        call_tree_say(&m.tree);
        call_tree_release(&m.tree);
    }
    if (m.made_steps)
        steps_release(&m.steps);
    selection_release(&m.selection);
    if (m.walk.rec)
        walk_release(&m.walk);
    recording_release(&m.rec);
    return code;
}
