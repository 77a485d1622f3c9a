/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `export`: converts recordings to files for other programs (export_formats.def). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyse/idle.h"
#include "analyse/report_make.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/options.h"
#include "base/workers.h"
#include "clocks/host_clocks.h"
#include "error.h"
#include "export/export_writer.h"
#include "output/output.h"
#include "trace/merge_trace.h"
#include "trace/trace_writer.h"

#define VERB "export"

#define EXPORT_FORMAT(name) &name##_export.file,
const struct file_format *const export_formats[] = {
#include "export/export_formats.def"
    NULL};
#undef EXPORT_FORMAT

/* Costs by stack: for go tool pprof, as lines for flame graph tools, and for speedscope. */
const struct export_format pprof_export = {.file = {"pprof", "pb"}, .flame = FLAME_PPROF};
const struct export_format folded_export = {.file = {"folded", "folded"}, .flame = FLAME_FOLDED};
const struct export_format speedscope_export = {.file = {"speedscope", "json"},
                                                .flame = FLAME_SPEEDSCOPE};

/* What a worker's walk found. */
struct lane_found {
    struct walk_found walk;          /* of the process with this index */
    struct selection_found selected; /* by the worker with this index */
};

/* The place of a row in the timeline. */
struct row_place {
    uint64_t ns;
    uint64_t process;
};

struct export
{
    struct recording rec;
    struct report report; /* with its walk, and the exported tables */
    struct steps steps;
    struct selection selection;
    bool is_cut;
    const struct export_format *format;
    struct export_writer *writer;
    struct output *out;
    struct consumer consumer; /* of the events */
    struct row_place at;      /* in a worker: of the current event */
    struct lane_found *found; /* shared with the workers */
};

static int export_verb_take(void *context, const struct slice *s)
{
    struct export *x = context;
    if (!s->is_filtered)
        x->format->take(x->writer, s);
    return x->out->error ? WALK_STOP : 0; /* output_finish reports it */
}

/* ---- rows by several workers ------------------------------------------------------------------
 *
 * Each worker (workers.h) makes the rows of some of the processes, and sends behind each row, a
 * line, its place in the timeline. This process merges the lines by it: the result is byte for byte
 * that of a single walk. Memory: 1.5 MiB a worker, besides its walk. A worker waits when that much
 * ahead, so workers run in parallel where processes recorded at the same time.
 */

#define LANE_BYTES (256u << 10) /* read at a time */

static int send_rows(void *context, const char *data, size_t length)
{
    return workers_write(*(const int *)context, data, length) ? 0 : EPIPE;
}

/* If times of a damaged file go back, the last time counts. Slices still open at the end come last,
 * by kind. */
static int lane_take(void *context, const struct slice *s)
{
    struct export *x = context;
    uint64_t before = output_bytes(x->out);
    uint64_t behind = s->change ? s->span->type : 0; /* enum span_type */
    uint64_t ns = s->event.record->type ? s->event.begin_ns : UINT64_MAX - behind;
    int error = export_verb_take(x, s);
    x->at = (struct row_place){max_of(ns, x->at.ns), s->event.process->index};
    if (output_bytes(x->out) != before)
        output_write(x->out, (const char *)&x->at, sizeof x->at);
    return error;
}

static enum exit_code lane_work(void *context, uint32_t index, int to)
{
    struct export *x = context;
    struct walk *w = &x->report.walk;
    x->consumer.take = lane_take;
    x->selection.found = (struct selection_found){0};
    output_divert(x->out, send_rows, &to);
    x->out->room = NULL; /* the parent bounds them all */
    recording_keep_share(w->rec, index);
    if (walk_run(w, NULL, &x->consumer, 1) != 0) /* after a message */
        return EXIT_ENVIRONMENT;
    output_drain(x->out);
    x->found[index].selected = x->selection.found;
    for (uint32_t i = 0; i < w->rec->count; i++)
        if (!w->rec->processes[i]->is_elsewhere)
            x->found[i].walk = walk_found(w, w->rec->processes[i]);
    return x->out->error ? EXIT_ENVIRONMENT : EXIT_OK;
}

/* The rows of a worker as they arrive. */
struct incoming {
    FILE *file;
    char *line; /* owned: the next row */
    size_t room;
    ssize_t bytes; /* 0 or below: the worker has ended */
    struct row_place at;
    char buffer[LANE_BYTES];
};

static void next_row(struct incoming *in)
{
    in->bytes = getline(&in->line, &in->room, in->file);
    if (in->bytes > 0 && fread(&in->at, sizeof in->at, 1, in->file) != 1)
        in->bytes = 0;
}

static void merge_rows(struct output *out, struct incoming *lanes, uint32_t count)
{
    for (struct incoming *next = lanes; next && !out->error;) {
        next = NULL;
        for (struct incoming *in = lanes; in < lanes + count; in++)
            if (in->bytes > 0 && (!next || (ORDER(in->at.ns, next->at.ns)
                                                ?: ORDER(in->at.process, next->at.process)) < 0))
                next = in;
        if (next) {
            output_write(out, next->line, (size_t)next->bytes);
            next_row(next);
        }
    }
}

/* Merges the rows of all workers, and then what they found. Returns 0, or an error after a
 * message. */
static int gather_rows(struct export *x, struct workers *workers)
{
    struct walk *w = &x->report.walk;
    uint32_t count = workers->count;
    struct incoming *lanes = memory_new(count, sizeof *lanes);
    for (uint32_t i = 0; i < count; i++) {
        lanes[i].file = memory_from(fdopen(workers->list[i].from, "r"));
        workers->list[i].from = -1; /* fclose closes it */
        setvbuf(lanes[i].file, lanes[i].buffer, _IOFBF, LANE_BYTES);
        next_row(&lanes[i]);
    }
    merge_rows(x->out, lanes, count);
    for (uint32_t i = 0; i < count; i++) {
        fclose(lanes[i].file);
        free(lanes[i].line);
    }
    free(lanes);
    enum exit_code code = workers_end(workers, x->out->error ? WORKERS_UNWANTED : WORKERS_DONE);
    for (uint32_t i = 0; i < w->rec->count; i++) {
        selection_add_found(&x->selection.found, &x->found[i].selected);
        walk_add_found(w, w->rec->processes[i], &x->found[i].walk);
    }
    return code == EXIT_OK ? 0 : GPUPROF_IO;
}

/* Writes a row per event. Returns 0, or an error after a message, also if the output has an
 * error. */
static int write_rows(struct export *x)
{
    struct walk *w = &x->report.walk;
    struct workers workers;
    size_t bytes = w->rec->count * sizeof *x->found;
    if (w->rec->workers <= 1)
        return walk_run(w, NULL, &x->consumer, 1);
    recording_deal(w->rec);
    x->found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (x->found == MAP_FAILED)
        memory_missing();
    int error = workers_start(&workers, w->rec->workers, lane_work, x)
                    ? gather_rows(x, &workers)
                    : walk_run(w, NULL, &x->consumer, 1);
    munmap(x->found, bytes);
    return error;
}

/* ---- the verb ----------------------------------------------------------------------------------
 */

/* Returns 0, or an error after a message. */
static int write_events(struct export *x, const struct options *options)
{
    struct report *r = &x->report;
    const struct report_request request = {
        .use = USE_EXPORT,
        .by = BY_THREAD,
        /* Leaves out tables of the host without data for them. */
        .leaves = report_parts_missing(&x->rec) & REPORT_HOST,
        .symbols = options->symbols,
        .found = &x->steps};
    r->making.histogram_rows = histogram_rows_max(recording_bytes(&x->rec));
    int error;
    if (!x->format->is_rows)
        report_begin(r, &x->rec, &request);
    struct export_scope scope = {.options = options,
                                 .format = x->format,
                                 .steps = &x->steps,
                                 .selection = x->is_cut ? &x->selection : NULL,
                                 .report = r};
    unsigned work = recording_any(&x->rec, process_expects_gpu) ? WALK_WORK | WALK_LOSSES : 0;
    x->consumer =
        (struct consumer){.context = x, .needs = WALK_SPANS | work, .take = export_verb_take};
    x->writer = x->format->create(x->out, &r->walk, &scope);
    error = x->format->is_rows ? write_rows(x) : report_walk(r, &x->consumer);
    /* Tables are complete only after this walk or a second one, so the last rows come behind. */
    if (error == 0 && !x->format->is_rows)
        error = report_end(r);
    if (error == 0 && !x->out->error)
        x->format->end(x->writer);
    x->format->free(x->writer);
    return error < 0 ? error : 0;
}

static enum exit_code export_recording(struct export *x, const struct options *options)
{
    const struct selection_steps how = {
        .by = options->step_by, .pattern = options->step_range, .found = &x->steps};
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(&x->rec));
    x->is_cut = options->select.is_given;
    x->rec.progress = progress_begin(VERB, recording_bytes(&x->rec) * 2u);
    walk_init(&x->report.walk, &x->rec);
    /* Names must be known before they are written, so a survey comes first. */
    enum exit_code code =
        steps_find(&x->steps, &x->report.walk, options->step_by, options->step_range, true, VERB);
    if (code == EXIT_OK)
        code =
            selection_make(&x->selection, &x->rec, &x->report.walk, &options->select, &how, VERB);
    if (code != EXIT_OK)
        return code;
    bool has_idle = !x->format->is_rows && recording_any(&x->rec, process_expects_gpu);
    if (has_idle && options->select.is_given)
        selection_keep_work(&x->selection);
    x->report.walk.filter = selection_filter(&x->selection, has_idle ? CALLS_OF_ALL : CALLS_UP_TO);
    code = verb_output_open(&out, options->output, &room);
    if (code != EXIT_OK)
        return code;
    if (x->rec.is_parallel)
        out.in_background = true;
    x->out = &out;
    int error = write_events(x, options);
    if (error == 0 && !x->out->error)
        code = selection_check(&x->selection, VERB);
    enum exit_code closed =
        verb_output_close(&out, options->output, code == EXIT_OK ? error : GPUPROF_USAGE);
    return code == EXIT_OK ? closed : code;
}

/* Checks what can be checked before anything is read. */
static enum exit_code export_verb_check(const struct export_format *format, const char *path)
{
    bool is_stream = !path || strcmp(path, "-") == 0;
    struct stat status;
    if (format->create && !format->is_rows &&
        (is_stream || output_plain_length(path, strlen(path)) != strlen(path) ||
         (stat(path, &status) == 0 && !S_ISREG(status.st_mode))))
        return usage_error(VERB ": %s needs a regular, uncompressed file; name one, such as -o "
                                "profile.%s",
                           format->file.name, format->file.ending);
    if (!path && isatty(STDOUT_FILENO))
        return usage_error(VERB ": not written to the terminal; name a file: -o profile.%s (or -o "
                                "- to write it anyway)",
                           format->file.ending);
    return EXIT_OK;
}

/* Returns true if the user wants a trace; merge makes it. */
static bool is_trace(const struct options *options)
{
    const struct export_options *own = options->own;
    const char *path = options->output;
    if (own->format)
        return file_format_of(trace_formats, own->format, NULL);
    return path && !verb_output_is(path, "") && !file_format_of(export_formats, NULL, path) &&
           file_format_of(trace_formats, NULL, path);
}

static enum exit_code export_verb_run(const struct options *options)
{
    const struct export_options *own = options->own;
    char names[FILE_FORMAT_NAMES_BYTES];
    if (is_trace(options)) {
        struct options of_merge = *options;
        of_merge.own = &(const struct merge_options){.format = own->format};
        return merge_verb.run(&of_merge);
    }
    if (!own->format && (!options->output || strcmp(options->output, "-") == 0))
        return usage_error(VERB ": name a file, such as -o profile.sqlite, or a format, such as "
                                "--format=csv; the formats are: %s",
                           file_format_names(export_formats, names));
    const struct file_format *format =
        file_format_find(VERB, export_formats, own->format, options->output);
    struct export x = {.format = (const struct export_format *)format};
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum exit_code code = format ? export_verb_check(x.format, options->output) : EXIT_USAGE;
    if (code != EXIT_OK)
        return code;
    if (!x.format->create) {
        struct options of_flame = *options;
        of_flame.own =
            &(const struct flame_options){.format = x.format->flame, .weight = own->weight};
        return flame_verb.run(&of_flame);
    }
    code = recording_open(&x.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = host_clocks_align(&x.rec, options->clock, VERB);
    if (code == EXIT_OK)
        code = export_recording(&x, options);
    if (code == EXIT_OK)
        code = walk_verdict(&x.report.walk, options->strict);
    steps_release(&x.steps);
    selection_release(&x.selection);
    if (x.report.walk.rec)
        report_release(&x.report);
    recording_release(&x.rec);
    return code;
}

static const char *format_name(unsigned index)
{
    return export_formats[index] ? export_formats[index]->name : NULL;
}

static const struct option own_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT, "Write the export to this file", .in = HELP_OUTPUT},
    {0, "format", "FORMAT", OPTION_TEXT(struct export_options, format),
     "Write this format, such as sqlite, pprof or csv; default: by the end of the file's name",
     .word_at = format_name, .in = HELP_OUTPUT},
    {OPTIONS_OF(read_options, READ_JOBS | READ_PIECE | READ_CLOCK | READ_STEPS)},
    {OPTIONS_OF(weight_options, 0), .at = offsetof(struct export_options, weight)},
    {OPTIONS_OF(read_options, READ_SYMBOLS | READ_STRICT | READ_KEEP_LIVE)},
    {0},
};

VERB_IS(export, export_verb_run, own_options, VERB_OWN(struct export_options, 0), TAKES_RECORDINGS,
        "DIR|FILE...", "write a file for other programs: SQLite, pprof, stacks, csv",
        {PART_EXAMPLE, "gpuprof export data -o profile.sqlite",
         "write a database with the tables of nsys export, for sqlite3 and pandas"},
        {PART_EXAMPLE, "gpuprof export data --kind=kernel,launch -o kernels.sqlite",
         "write kernels and the calls that launched them"},
        {PART_EXAMPLE, "gpuprof export data -o profile.pb.gz", "write a file for go tool pprof"});
