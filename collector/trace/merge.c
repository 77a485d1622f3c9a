/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: all events of the recordings named, as one trace, or as one for each rank. */
#include "trace/merge.h"

#include <errno.h>
#include <sched.h>
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
#include "output/verb_output.h"
#include "output/zip_writer.h"
#include "rank.h"
#include "record/gpu_record.h"
#include "trace/gpu_rows.h"
#include "trace/rank_files.h"
#include "trace/trace_writer.h"

#define MANIFEST_NAME "perfetto_manifest.json"
#define VIEWER_BYTES  500000000u /* of text; a string of V8 ends at 536,870,888 */

struct cycle_span {
    uint64_t begin_ns; /* 0: it has not begun */
    uint64_t end_ns;
};

struct merge {
    struct recording rec;
    struct progress progress;
    struct walk walk;
    struct call_tree tree;
    bool has_stacks;
    bool split; /* a file per rank */
    struct steps steps;
    bool has_steps;  /* that are shown */
    bool made_steps; /* at all */
    struct selection selection;
    bool is_cut;      /* by it */
    bool is_parallel; /* more than one processor may be used */
    bool sync_streams;
    bool counters;
    bool memory_events;
    uint64_t cycle;           /* the window that is shown; 0: all that there is */
    struct cycle_span *spans; /* owned, by process index: where it was */
    uint64_t *windows;        /* owned, likewise: how many there were */
    bool is_hidden;
    const struct trace_format *format;
    struct trace_writer *writer; /* of the trace being written, and where it goes */
    struct output *out;
    uint64_t room; /* for the text of all traces */
    bool is_large; /* one is more than viewers open, and that is said */
    bool begun;
};

static void see_window(const struct merge *m, const struct slice *s)
{
    const struct recorded_now *now = &s->walk->recorded[s->event.process->index];
    struct cycle_span *span = &m->spans[s->event.process->index];
    if (now->window == m->cycle && !now->is_closed && !span->begin_ns)
        *span = (struct cycle_span){s->event.begin_ns, UINT64_MAX};
    else if (span->begin_ns && span->end_ns == UINT64_MAX)
        span->end_ns = s->event.begin_ns;
}

/* Ranges, operators and calls of libraries that reach into it are in it; work whose call is. */
static bool is_in_cycle(const struct merge *m, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct cycle_span *span = &m->spans[e->process->index];
    bool reaches = true;
    uint64_t begin_ns = e->begin_ns;
    if (e->record->type == RECORD_WINDOW) {
        see_window(m, s);
        return span->begin_ns && (begin_ns == span->begin_ns || begin_ns == span->end_ns);
    }
    if (s->change == RANGE_CLOSED || s->change == RANGE_LEFT)
        begin_ns = s->range->begin_ns;
    else if (s->op_change != OP_SAME)
        begin_ns = s->op->begin_ns;
    else if (s->library_change != LIBRARY_SAME)
        begin_ns = s->library->begin_ns;
    else
        reaches = false;
    if (!reaches && s->is_called)
        begin_ns = s->call.begin_ns;
    return span->begin_ns && begin_ns < span->end_ns && (reaches || begin_ns >= span->begin_ns);
}

/* The first event shown is the traces' origin, unless they share an earlier one. */
static int take_slice(void *context, const struct slice *s)
{
    struct merge *m = context;
    int error = 0;
    m->is_hidden = (m->cycle && !is_in_cycle(m, s)) || s->is_hidden;
    if (!m->begun && event_is_visible(s->event.record->type)) {
        m->begun = true;
        error = m->format->begin(m->writer, m->walk.survey.origin_ns);
    }
    if (error == 0 && m->begun)
        error = m->format->take(m->writer, s);
    return error == 0 && m->out->error ? WALK_STOP : error; /* output_finish reports it */
}

static int end(void *context)
{
    struct merge *m = context;
    int error = m->begun ? 0 : m->format->begin(m->writer, m->walk.survey.origin_ns);
    return error < 0 ? error : m->format->end(m->writer);
}

/* Writes one trace of the processes in scope; says what went wrong. 0 or an error. */
static int write_trace(struct merge *m, struct output *out, struct trace_scope *scope)
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
    scope->is_hidden = m->cycle || m->is_cut ? &m->is_hidden : NULL;
    scope->selection = m->is_cut ? &m->selection : NULL;
    if (m->cycle)
        memset(m->spans, 0, m->rec.count * sizeof *m->spans);
    consumer.needs |= has_work ? m->format->needs : 0;
    m->begun = false;
    m->out = out;
    m->writer = m->format->create(out, &m->walk, scope);
    int error = m->writer ? walk_run(&m->walk, scope->only, &consumer, 1) : GPUPROF_NO_MEMORY;
    if (m->writer)
        m->format->free(m->writer);
    return error < 0 ? error : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

/* `room`: before it was written. */
static void say_large(struct merge *m, const char *path, uint64_t room)
{
    char text[UNIT_TEXT_BYTES];
    if (m->is_large || room - m->room <= VIEWER_BYTES)
        return;
    m->is_large = true;
    message("%s: %s of text; most viewers stop at 500 MB: --step, or --from and --to, make a trace "
            "of a piece%s",
            path ? path : "standard output", bytes_text(text, room - m->room),
            m->split || m->rec.count < 2 ? "" : ", --per-rank one for each rank");
}

static enum exit_code write_file(struct merge *m, const char *path, struct trace_scope *scope)
{
    struct output out;
    enum exit_code code = verb_output_open(&out, path, &m->room);
    if (code != EXIT_OK)
        return code;
    uint64_t room = m->room;
    if (m->is_parallel)
        output_in_background(&out);
    scope->name = base_name(path);
    code = verb_output_close(&out, path, write_trace(m, &out, scope));
    if (code == EXIT_OK)
        say_large(m, path, room);
    return code;
}

/* ---- a file per rank, in a folder -------------------------------------------------------------
 */

/* A folder that is there already is as good. */
static enum exit_code make_folder(const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0)
        return EXIT_OK;
    if (errno == EEXIST && (stat(path, &status) < 0 || S_ISDIR(status.st_mode)))
        return EXIT_OK; /* of a link that leads nowhere the first file says why */
    if (errno == EEXIST)
        message("%s: is a file; --per-rank needs a folder", path);
    else
        message("%s: %s%s", path, strerror(errno), writing_advice(errno, path));
    return EXIT_ENVIRONMENT;
}

/* Of a process that had no window of that number there is none. */
static bool is_written(const struct merge *m, const struct rank_file *file)
{
    return !m->cycle || m->windows[file->process->index] >= m->cycle;
}

static enum exit_code write_folder(struct merge *m, const char *folder,
                                   const struct rank_file *files)
{
    enum exit_code code = make_folder(folder);
    for (uint32_t i = 0; code == EXIT_OK && i < m->rec.count; i++) {
        if (!is_written(m, &files[i]))
            continue;
        struct trace_scope scope = {.only = files[i].process, .rank = files[i].rank};
        char *path = NULL;
        if (files[i].other && asprintf(&path, "%s/" RANK_FILES_OTHERS, folder) >= 0) {
            code = make_folder(path);
            free(path);
        }
        if (code != EXIT_OK)
            break;
        if (asprintf(&path, "%s/%s.gz", folder, files[i].name) < 0)
            return verb_output_failed(folder, GPUPROF_NO_MEMORY);
        code = write_file(m, path, &scope);
        free(path);
    }
    return code;
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
        if (m->is_parallel)
            output_in_background(&member);
        uint64_t room = m->room;
        failed = write_trace(m, &member, &scope); /* and it has said why */
        error = zip_writer_end(zip, &member);
        if (failed == 0 && error == 0)
            say_large(m, files[i].name, room);
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
    zip_writer_init(&zip, &out);
    int error = write_members(m, &zip, path, files);
    zip_writer_release(&zip);
    return verb_output_close(&out, path, error);
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

/* Each window's number is where TensorBoard looks for it. */
static enum exit_code write_cycles(struct merge *m, const struct options *options)
{
    uint64_t first = options->cycle == CYCLE_ALL ? 1 : options->cycle, last = first;
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; options->cycle == CYCLE_ALL && i < m->rec.count; i++)
        last = m->windows[i] > last ? m->windows[i] : last;
    for (uint64_t cycle = first; code == EXIT_OK && cycle <= last; cycle++) {
        struct rank_file *files = rank_files_make(&m->rec, rank_ending(m), cycle);
        m->cycle = cycle;
        code = files ? write_folder(m, options->output, files)
                     : verb_output_failed(options->output, GPUPROF_NO_MEMORY);
        free(files);
    }
    return code;
}

/* How many windows each process had, as the survey has seen them. */
static enum exit_code find_windows(struct merge *m, const struct options *options)
{
    uint64_t most = 0;
    if (!options->cycle)
        return EXIT_OK;
    m->spans = calloc(m->rec.count + 1u, sizeof *m->spans);
    m->windows = calloc(m->rec.count + 1u, sizeof *m->windows);
    if (!m->spans || !m->windows)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    for (uint32_t i = 0; i < m->rec.count; i++) {
        m->windows[i] = m->walk.recorded[i].window;
        most = m->windows[i] > most ? m->windows[i] : most;
    }
    if (most >= (options->cycle == CYCLE_ALL ? 1 : options->cycle))
        return EXIT_OK;
    if (!most)
        return usage_error("merge: --cycle: these recordings have no windows; run --schedule or "
                           "--capture-range makes them");
    return usage_error("merge: --cycle: there is no window %llu; the last one is %llu",
                       (unsigned long long)options->cycle, (unsigned long long)most);
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

static enum exit_code find_piece(struct merge *m, const struct options *options)
{
    const struct selection_steps how = {.by = options->step_by, .pattern = options->step_range};
    return selection_make(&m->selection, &m->rec, &m->walk, &options->select, &how, "merge");
}

static enum exit_code merge_write(struct merge *m, const struct options *options)
{
    m->split = options->per_rank || is_archive_name(options->output);
    m->is_cut = options->select.is_given;
    m->room = verb_output_room(recording_bytes(&m->rec));
    struct trace_scope scope = {.rank = RANK_NONE};
    bool stacks = recording_has_stacks(&m->rec);
    bool learns = stacks || recording_has_ops(&m->rec) || recording_expects_gpu(&m->rec) ||
                  m->memory_events || options->cycle || m->is_cut;
    m->rec.progress = progress_begin(&m->progress, "merge");
    m->progress.total =
        recording_bytes(&m->rec) * (1u + (m->split || learns) + wants_steps(m, options));
    if (walk_init(&m->walk, &m->rec) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    /* Traces of ranks share their origin; and what is written cannot be changed any more when a
     * name, a stack or a device is met that was needed for it. */
    if ((m->split || learns) && walk_survey(&m->walk) < 0)
        return EXIT_ENVIRONMENT;
    enum exit_code code = find_windows(m, options);
    if (code == EXIT_OK)
        code = find_steps(m, options);
    if (code == EXIT_OK)
        code = find_piece(m, options);
    if (code != EXIT_OK)
        return code;
    m->walk.filter = selection_filter(&m->selection, true);
    m->has_stacks = stacks && m->walk.survey.stacks.stack_count;
    if (m->has_stacks && call_tree_init(&m->tree, &m->walk.survey, options->symbols) < 0)
        return verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    if (options->cycle && options->per_rank)
        return write_cycles(m, options);
    m->cycle = options->cycle;
    if (!m->split)
        return write_file(m, options->output, &scope);
    struct rank_file *files = rank_files_make(&m->rec, rank_ending(m), 0);
    if (!files)
        code = verb_output_failed(options->output, GPUPROF_NO_MEMORY);
    else if (options->per_rank)
        code = write_folder(m, options->output, files);
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

static unsigned processors(const struct options *options)
{
    cpu_set_t usable;
    if (options->jobs)
        return options->jobs;
    return sched_getaffinity(0, sizeof usable, &usable) == 0 ? (unsigned)CPU_COUNT(&usable) : 2;
}

enum exit_code merge_verb(const struct options *options)
{
    char names[TRACE_FORMAT_NAMES_BYTES];
    struct merge m = {.format = format_of(options),
                      .is_parallel = processors(options) > 1,
                      .sync_streams = options->sync_streams,
                      .counters = !options->no_counters,
                      .memory_events = options->memory_events};
    if (options->per_rank && (!options->output || strcmp(options->output, "-") == 0))
        return usage_error("merge: --per-rank writes several files; name a folder: -o traces");
    if (options->per_rank && is_archive_name(options->output))
        return usage_error("merge: an archive has a file per rank without --per-rank");
    if (options->cycle == CYCLE_ALL && !options->per_rank)
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
    struct recording_options how = {.keep_live = options->keep_live, .select = &options->select};
    enum exit_code code = recording_open(&m.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = merge_write(&m, options);
    if (code == EXIT_OK) {
        selection_say(&m.selection, "merge");
        code = walk_verdict(&m.walk, options->strict);
    }
    if (m.has_stacks) {
        call_tree_say(&m.tree);
        call_tree_release(&m.tree);
    }
    if (m.made_steps)
        steps_release(&m.steps);
    selection_release(&m.selection);
    free(m.spans);
    free(m.windows);
    if (m.walk.rec)
        walk_release(&m.walk);
    recording_release(&m.rec);
    return code;
}
