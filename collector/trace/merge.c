/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: all events of the recordings named, as one trace, or as one for each rank. */
#include "trace/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/message.h"
#include "base/options.h"
#include "base/unit_text.h"
#include "error.h"
#include "model/host_clocks.h"
#include "output/verb_output.h"
#include "output/zip_writer.h"
#include "rank.h"
#include "record/gpu_record.h"
#include "trace/gpu_rows.h"
#include "trace/merge_ranks.h"
#include "trace/trace_writer.h"

#define MANIFEST_NAME "perfetto_manifest.json"
#define FITS_MAX      5
#define FIT_PERCENT   98
#define VIEWER_BYTES  500000000u /* of text; a string of V8 ends at 536,870,888 */

static uint64_t written(const struct merge *m)
{
    return m->format->bytes ? m->format->bytes(m->writer) : output_bytes(m->out);
}

/* The first event shown is the traces' origin, unless they share an earlier one. */
static int take_slice(void *context, const struct slice *s)
{
    struct merge *m = context;
    int error = 0;
    uint64_t before = written(m);
    m->is_hidden = s->is_hidden;
    if (!m->begun && event_is_visible(s->event.record->type)) {
        m->begun = true;
        error = m->format->begin(m->writer, m->walk.survey.origin_ns);
    }
    if (error == 0 && m->begun)
        error = m->format->take(m->writer, s);
    if (m->thinning.weighs)
        thinning_weigh(&m->thinning, s, written(m) - before);
    else if (m->max_size && m->is_hidden && m->left_out != LEFT_OUT_KINDS)
        m->left_out_count++;
    return error == 0 && m->out->error ? WALK_STOP : error; /* output_finish reports it */
}

static int end(void *context)
{
    struct merge *m = context;
    int error = m->begun ? 0 : m->format->begin(m->writer, m->walk.survey.origin_ns);
    return error < 0 ? error : m->format->end(m->writer);
}

/* ---- no larger than asked for ---------------------------------------------------------------- */

static bool has(void *context, const struct slice *s)
{
    struct merge *m = context;
    const struct walk_filter *f = &m->selection.filter;
    uint64_t ns;
    m->left_out = LEFT_OUT_KINDS;
    return (!f->has || f->has(f->context, s)) &&
           !thinning_leaves_out(&m->thinning, s, &m->left_out, &ns);
}

static bool has_call(void *context, const struct slice *s)
{
    const struct merge *m = context;
    const struct walk_filter *f = &m->selection.filter;
    return (!f->has_call || f->has_call(f->context, s)) &&
           !thinning_leaves_out_call(&m->thinning, &s->call);
}

static bool wants(void *context, const struct process *p, uint64_t begin_ns, uint64_t end_ns,
                  uint64_t types)
{
    const struct merge *m = context;
    const struct walk_filter *f = &m->selection.filter;
    return f->wants(f->context, p, begin_ns, end_ns, types);
}

static const struct walk_filter *filter_of(struct merge *m)
{
    const struct walk_filter *piece = selection_filter(&m->selection, true);
    if (!m->max_size)
        return piece;
    m->filter = (struct walk_filter){
        .context = m, .has = has, .has_call = has_call, .wants = piece ? wants : NULL};
    return &m->filter;
}

/* ---- one trace ------------------------------------------------------------------------------- */

/* Writes one trace of the processes in scope; says what went wrong. 0 or an error. */
static int write_once(struct merge *m, struct output *out, struct trace_scope *scope)
{
    bool has_work = m->split || recording_expects_gpu(&m->rec);
    struct consumer consumer = {.context = m,
                                .needs = WALK_RANGES | WALK_OPS | WALK_LIBRARIES,
                                .sees_hidden = true, /* memory is counted from the begin */
                                .take = take_slice,
                                .tied = NULL,
                                .end = end};
    scope->survey = has_work ? &m->walk.survey : NULL;
    scope->tree = m->has_stacks ? &m->tree : NULL;
    scope->steps = m->has_steps ? &m->steps : NULL;
    scope->sync_streams = m->sync_streams;
    scope->counters = m->counters;
    scope->memory_events = m->memory_events;
    scope->is_hidden = m->is_cut || m->max_size ? &m->is_hidden : NULL;
    scope->thinning = m->max_size ? &m->thinning : NULL;
    scope->left_out = m->max_size ? &m->left_out : NULL;
    m->left_out_count = 0;
    scope->selection = m->is_cut ? &m->selection : NULL;
    consumer.needs |= has_work ? m->format->needs : 0;
    m->begun = false;
    m->out = out;
    m->writer = m->format->create(out, &m->walk, scope);
    int error = m->writer ? walk_run(&m->walk, scope->only, &consumer, 1) : GPUPROF_NO_MEMORY;
    m->bytes = m->writer ? written(m) : 0;
    if (m->writer)
        m->format->free(m->writer);
    return error < 0 ? error : 0;
}

/* Its size if it were written now. 0 or an error, which is said. */
static int weigh(struct merge *m, struct trace_scope *scope, uint64_t *bytes)
{
    struct output nowhere;
    uint64_t room = m->room;
    int error = output_open(&nowhere, "/dev/null");
    if (error < 0) {
        verb_output_failed("/dev/null", error);
        return error;
    }
    output_bound(&nowhere, &room);
    error = write_once(m, &nowhere, scope);
    *bytes = m->bytes;
    int its = output_finish(&nowhere, 0);
    if (its < 0)
        verb_output_failed(scope->name, its);
    return error < 0 ? error : its;
}

/* A size that was asked for, and the bytes that there were then. */
struct fitting {
    uint64_t size;
    uint64_t bytes;
};

/* The size to ask for so that there are about as many bytes as `wanted`, on the line through both.
 */
static uint64_t on_line(struct fitting low, struct fitting high, uint64_t wanted)
{
    if (high.size <= low.size || high.bytes <= low.bytes || wanted <= low.bytes)
        return low.size;
    double share =
        (double)(int64_t)(wanted - low.bytes) / (double)(int64_t)(high.bytes - low.bytes);
    return low.size + (uint64_t)((double)(int64_t)(high.size - low.size) * share);
}

/*
 * Finds what must be left out: what each event weighs is known when all has been made once; what
 * arrows weigh, which go with either of their ends, and counters, when what is left has.
 */
static int fit(struct merge *m, struct trace_scope *scope)
{
    uint64_t all = 0, bytes = 0, most = 0, size = m->max_size;
    uint64_t wanted = size / 100 * FIT_PERCENT;
    struct thinning weighed, best;
    thinning_begin(&m->thinning);
    int error = weigh(m, scope, &all);
    m->thinning.weighs = false;
    best = weighed = m->thinning;
    if (all <= size)
        return error;
    uint64_t fixed = all - weighed.weighed;
    struct fitting least = {.size = fixed, .bytes = fixed}, low = least, high = {0};
    for (unsigned i = 0; error == 0 && i < FITS_MAX && most < m->max_size / 10 * 9; i++) {
        m->thinning = weighed;
        thinning_choose(&m->thinning, all, size);
        error = weigh(m, scope, &bytes);
        if (bytes > m->max_size && size <= fixed)
            break; /* less cannot be left */
        if (bytes <= m->max_size && bytes > most) {
            most = bytes;
            best = m->thinning;
        }
        *(bytes <= m->max_size ? &low : &high) = (struct fitting){size, bytes};
        size = high.size ? on_line(low, high, wanted) : on_line(least, low, wanted);
        size = size < all ? size : all - 1;
    }
    m->thinning = best;
    if (error < 0 || most)
        return error;
    char text[UNIT_TEXT_BYTES];
    message("merge: --max-size: %s is too little for what stays in any case (names, counters, what "
            "failed); say more, or leave something out by --no-counters, --rank or --step",
            bytes_text(text, m->max_size));
    m->is_too_small = true;
    return GPUPROF_USAGE;
}

static int write_trace(struct merge *m, struct output *out, struct trace_scope *scope)
{
    int error = m->surveys_each ? walk_survey_rest(&m->walk, scope->only) : 0;
    if (error == 0 && m->max_size)
        error = fit(m, scope);
    return error < 0 ? error : write_once(m, out, scope);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static const char *shown(const char *path)
{
    return path && strcmp(path, "-") != 0 ? path : "standard output";
}

static void note_large(struct merge *m, const char *path, uint64_t bytes)
{
    if (!m->format->is_text || bytes <= VIEWER_BYTES)
        return;
    if (!m->large_count++)
        m->large_path = strdup(shown(path));
    m->large_bytes = bytes > m->large_bytes ? bytes : m->large_bytes;
}

static void say_large(const struct merge *m)
{
    char text[UNIT_TEXT_BYTES], others[40] = "";
    if (m->large_count > 1)
        snprintf(others, sizeof others, " and %u more: up to", m->large_count - 1);
    if (m->large_count)
        message("%s%s %s of text; most viewers stop at 500 MB: --step, or --from and --to, make a "
                "trace of a piece, --max-size=400M leaves the shortest out%s",
                m->large_path ? m->large_path : "?", m->large_count > 1 ? others : ":",
                bytes_text(text, m->large_bytes),
                m->split || m->rec.count < 2 ? "" : ", --per-rank one for each rank");
}

static void say_left_out(const struct merge *m, const char *path)
{
    char text[UNIT_TEXT_BYTES];
    if (m->left_out_count)
        message("%s: %llu calls, ranges and pieces of GPU work are left out (--max-size): those "
                "that lasted less than %s%s",
                shown(path), (unsigned long long)m->left_out_count,
                time_text(text, m->thinning.all_ns),
                m->thinning.share ? ", but for a share of the longer of these" : "");
}

/* Of a piece in which nothing is nothing is kept; is it `all` that is written? */
static enum exit_code close_checked(const struct merge *m, struct output *out, const char *path,
                                    int error, bool all)
{
    bool is_whole = all && error == 0 && !out->error;
    enum exit_code checked = is_whole ? selection_check(&m->selection, "merge") : EXIT_OK;
    enum exit_code code = verb_output_close(out, path, checked == EXIT_OK ? error : GPUPROF_USAGE);
    return m->is_too_small || checked != EXIT_OK ? EXIT_USAGE : code;
}

enum exit_code merge_write_file(struct merge *m, const char *path, struct trace_scope *scope)
{
    struct output out;
    enum exit_code code = scope->only ? verb_output_open_one(&out, path, &m->room)
                                      : verb_output_open(&out, path, &m->room);
    if (code != EXIT_OK)
        return code;
    out.stays_plain = !m->format->is_text; /* it packs what it writes */
    uint64_t room = m->room;
    if (m->rec.is_parallel)
        output_in_background(&out);
    scope->name = base_name(path);
    code = close_checked(m, &out, path, write_trace(m, &out, scope), !m->split);
    m->text_bytes = room - m->room;
    return code;
}

void merge_say_written(struct merge *m, const char *path)
{
    note_large(m, path, m->text_bytes);
    say_left_out(m, path);
}

/* ---- a file per rank, in an archive -----------------------------------------------------------
 */

/*
 * Perfetto takes all members for one trace, in which each has a machine of its own; versions that
 * do not know that go by pids alone, which therefore differ. It must be the archive's first member
 * in the order of names or of places: it is in both.
 */
static int write_manifest(struct merge *m, struct zip_writer *zip, const struct rank_file *files)
{
    struct output member;
    static const char head[] = "{\"perfetto_manifest\":{\"version\":1,\"files\":[";
    int error = zip_writer_begin(zip, MANIFEST_NAME, &member);
    if (error < 0)
        return error;
    output_write(&member, head, sizeof head - 1);
    for (uint32_t i = 0; i < m->rec.count; i++) {
        const struct rank_file *f = &files[i];
        char machine[RANK_FILE_BYTES + STREAM_HOST_BYTES_MAX + 8];
        char *text = output_room(&member, 8192);
        int length = snprintf(machine, sizeof machine, "%.*s (%s)", (int)f->stem, f->name,
                              f->process->header.host);
        text += sprintf(text, "%s\n{\"path\":", i ? "," : "");
        text = json_escape(text, f->name, strlen(f->name));
        text += sprintf(text, ",\"machine\":{\"name\":");
        text = json_escape(text, machine, (size_t)length);
        text += sprintf(text, "}}");
        output_advance(&member, text);
    }
    output_write(&member, "\n]}}\n", 5);
    return zip_writer_end(zip, &member);
}

static int write_members(struct merge *m, struct zip_writer *zip, const char *path,
                         const struct rank_file *files)
{
    struct device_pids pids;
    device_pids_init(&pids, m->rec.processes, m->rec.count);
    int error = m->format->for_perfetto ? write_manifest(m, zip, files) : 0, failed = 0;
    for (uint32_t i = 0; error == 0 && failed == 0 && i < m->rec.count; i++) {
        struct trace_scope scope = {.only = files[i].process,
                                    .rank = files[i].rank,
                                    .pids = &pids,
                                    .name = base_name(files[i].name)};
        struct output member;
        if ((error = zip_writer_begin(zip, files[i].name, &member)) < 0)
            break;
        output_bound(&member, &m->room);
        if (m->rec.is_parallel)
            output_in_background(&member);
        uint64_t room = m->room;
        failed = write_trace(m, &member, &scope); /* and it has said why */
        error = zip_writer_end(zip, &member);
        if (failed == 0 && error == 0) {
            note_large(m, files[i].name, room - m->room);
            say_left_out(m, files[i].name);
        }
    }
    device_pids_release(&pids);
    if (failed < 0)
        return failed;
    if (error < 0)
        verb_output_failed(path, error);
    else
        zip_writer_finish(zip);
    return error;
}

static enum exit_code write_archive(struct merge *m, const char *path,
                                    const struct rank_file *files)
{
    struct output out;
    struct zip_writer zip;
    enum exit_code code = verb_output_open(&out, path, NULL); /* its members are bounded */
    if (code != EXIT_OK)
        return code;
    out.stays_plain = true;
    zip_writer_init(&zip, &out);
    int error = write_members(m, &zip, path, files);
    zip_writer_release(&zip);
    return close_checked(m, &out, path, error, true);
}

static bool is_archive_name(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    return length > 4 && strcasecmp(path + length - 4, ".zip") == 0;
}

static const char *rank_ending(const struct merge *m)
{
    return m->format->rank_ending ? m->format->rank_ending : m->format->ending;
}

static bool wants_steps(const struct merge *m, const struct options *options)
{
    return recording_has_ops(&m->rec) || options->step_by != NULL || options->step_range != NULL;
}

/* Where there may be others than those of gpuprof_step(), one more walk tells what a step is; and
 * of a piece, which of those are in it. */
static enum exit_code find_steps(struct merge *m, const struct options *options)
{
    struct consumer marks = steps_consumer(&m->steps);
    if (!wants_steps(m, options) && !m->is_cut)
        return EXIT_OK;
    m->made_steps = true;
    if (steps_init(&m->steps, &m->walk, options->step_by, options->step_range) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    if (walk_run(&m->walk, NULL, &marks, 1) < 0)
        return EXIT_ENVIRONMENT;
    m->has_steps = wants_steps(m, options) || m->steps.kind == STEPS_CALLED;
    return steps_check(&m->steps, "merge");
}

static enum exit_code find_piece(struct merge *m, const struct options *options, uint64_t cycle)
{
    const struct selection_steps how = {.by = options->step_by, .pattern = options->step_range};
    m->wish = options->select;
    m->wish.cycle = cycle;
    m->walk.filter = NULL;
    enum exit_code code = selection_make(&m->selection, &m->rec, &m->walk, &m->wish, &how, "merge");
    m->walk.filter = filter_of(m);
    return code;
}

/* Each window's number is where TensorBoard looks for it. */
static enum exit_code write_cycles(struct merge *m, const struct options *options)
{
    bool is_all = options->select.cycle == CYCLE_ALL;
    enum exit_code code = EXIT_OK;
    for (uint64_t cycle = m->wish.cycle;; cycle++) {
        struct rank_file *files = rank_files_make(&m->rec, rank_ending(m), cycle);
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
    m->progress.total =
        recording_bytes(&m->rec) * (1u + (m->split || learns) + wants_steps(m, options));
    if (walk_init(&m->walk, &m->rec) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    /* Traces of ranks share their origin; and what is written cannot be changed any more when a
     * name, a stack or a device is met that was needed for it. */
    int error = m->surveys_each      ? walk_survey_shared(&m->walk)
                : m->split || learns ? walk_survey(&m->walk)
                                     : 0;
    if (error < 0)
        return EXIT_ENVIRONMENT;
    uint64_t cycle = options->select.cycle == CYCLE_ALL ? 1 : options->select.cycle;
    enum exit_code code = find_steps(m, options);
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
    struct rank_file *files = rank_files_make(&m->rec, rank_ending(m), 0);
    if (!files)
        code = verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    else if (options->per_rank)
        code = merge_write_folder(m, options->output, files);
    else
        code = write_archive(m, options->output, files);
    free(files);
    return code;
}

/* As the options say, or else the file's name; NULL: there is none such. */
static const struct trace_format *format_of(const struct options *options)
{
    bool is_file = !options->per_rank && !is_archive_name(options->output);
    return options->trace_format ? trace_format_named(options->trace_format)
                                 : trace_format_of_file(is_file ? options->output : NULL);
}

enum exit_code merge_verb(const struct options *options)
{
    char names[TRACE_FORMAT_NAMES_BYTES];
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
                           options->trace_format, trace_format_names(names));
    if (!m.format)
        return usage_error("merge: %s: not a kind that can be written; the formats are: %s, also "
                           ".gz, .zst and .zip",
                           options->output, trace_format_names(names));
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
        say_large(&m);
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
