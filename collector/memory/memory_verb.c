/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `memory`: who holds the memory of devices, and of the host what is pinned. */
#include <string.h>

#include "base/message.h"
#include "error.h"
#include "memory/memory_print.h"
#include "memory/memory_verb.h"
#include "memory/snapshot.h"
#include "model/selection.h"
#include "output/verb_output.h"

#define SCREEN_ROWS 5 /* of a table, unless told more */

static enum exit_code write_out(struct memory_rows *rows, const struct memory_view *view,
                                const struct options *options, enum report_format format)
{
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(rows->report->rec));
    if (format == FORMAT_CSV)
        return memory_write_csv(rows, view, options->output, &room);
    enum exit_code code = verb_output_open(&out, options->output, &room);
    if (code != EXIT_OK)
        return code;
    int error = memory_print(rows, view, format, out.stream);
    say_error("memory", error);
    return verb_output_close(&out, options->output, error);
}

static enum exit_code memory_recording(struct recording *rec, const struct memory_view *view,
                                       const struct options *options, enum report_format format)
{
    const struct memory_options *own = options->own;
    struct memory_report report;
    struct memory_rows rows = {0};
    struct selection piece;
    enum exit_code code = selection_make(&piece, rec, NULL, &options->select, NULL, "memory");
    uint64_t from_ns = piece.from_ns, to_ns = piece.to_ns;
    selection_release(&piece);
    if (code != EXIT_OK)
        return code;
    struct memory_wish wish = {.by = own->by,
                               .at_seconds = own->at_seconds,
                               .step_by = options->step_by,
                               .step_pattern = options->step_range,
                               .from_ns = from_ns,
                               .to_ns = to_ns};
    int error = memory_report_make(&report, rec, &wish);
    code = error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
    if (code == EXIT_OK)
        code = steps_check(&report.steps, "memory");
    if (code == EXIT_OK)
        code = memory_check_moment(&report);
    if (code == EXIT_OK &&
        (error = memory_rows_make(&rows, &report, own->at, options->symbols)) < 0) {
        say_error("memory", error);
        code = EXIT_ENVIRONMENT;
    }
    if (code == EXIT_OK)
        code = write_out(&rows, view, options, format);
    if (code == EXIT_OK)
        code = walk_verdict(&report.walk, options->strict);
    memory_rows_release(&rows);
    memory_report_release(&report);
    return code;
}

static bool is_snapshot(const struct options *options)
{
    const struct memory_options *own = options->own;
    return own->table.format == FORMAT_BY_NAME &&
           (verb_output_is(options->output, "pickle") || verb_output_is(options->output, "pkl"));
}

/* What is said of tables says nothing of a snapshot. */
static enum exit_code check_snapshot(const struct options *options)
{
    const struct memory_options *own = options->own;
    if (own->table.names || own->table.sort || own->table.limit != ROWS_UNLIMITED ||
        own->table.is_full || own->by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a snapshot has no tables: leave --table, --sort, --limit, "
                           "--full and --by out",
                           options->output);
    return EXIT_OK;
}

enum exit_code memory_run(const struct options *options)
{
    const struct memory_options *own = options->own;
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum report_format format = verb_output_format(own->table.format, options->output);
    struct memory_view view = {.tables = own->table.names,
                               .is_full = own->table.is_full,
                               .is_piece = options->select.is_given,
                               .how = table_view_of(&own->table, options->output, SCREEN_ROWS)};
    bool has_tables = format != FORMAT_BY_NAME;
    if (!has_tables && !is_snapshot(options))
        return usage_error("memory: %s: not a kind that can be written; name it .txt, .csv, .json, "
                           ".html or .pickle, or say --format",
                           options->output);
    if (view.is_piece && (!has_tables || !view.tables || own->at == MEMORY_AT_TIME))
        return usage_error("memory: --from and --to need --table=places,owners,curve (or some of "
                           "these; without --at=TIME) or a page (-o page.html); --at=TIME alone "
                           "says who held the memory at a moment");
    enum exit_code code = table_output_check("memory", format, options->output);
    if (code == EXIT_OK)
        code = has_tables ? memory_view_check(&view, format) : check_snapshot(options);
    if (code != EXIT_OK)
        return code;
    code = recording_open(&rec, options->paths, options->path_count, &how);
    struct progress progress;
    rec.progress = progress_begin(&progress, "memory");
    progress.total = 2 * recording_bytes(&rec);
    if (code == EXIT_OK)
        code = is_snapshot(options) ? snapshot_files(&rec, options, own->at_seconds)
                                    : memory_recording(&rec, &view, options, format);
    recording_release(&rec);
    return code;
}

static enum exit_code take_at(const struct given *g)
{
    struct memory_options *own = g->at;
    bool is_end = strcmp(g->value, "end") == 0;
    own->at_seconds = -1;
    own->at = is_end ? MEMORY_AT_END : MEMORY_AT_PEAK;
    if (is_end || strcmp(g->value, "peak") == 0)
        return EXIT_OK;
    own->at = MEMORY_AT_TIME;
    return option_end(g, seconds_parse(g->value, &own->at_seconds),
                      "is neither peak nor end nor a number of seconds, or 500ms");
}

const struct option memory_options[] = {
    {'o', "output", "FILE",
     "write the tables there (compressed if the name ends in .gz; csv into a folder, DIR/, a file "
     "for each); .html: the page of 'gpuprof report', which has a section of the memory, with "
     "pictures; .pickle: a snapshot as PyTorch makes them, a file for each process; default: "
     "standard output",
     OPTION_OUTPUT},
    {0, "format", "text|json|csv",
     "how the tables are written; default: as the name of the file ends: .json or .csv (DIR/: csv, "
     "too), or else text",
     OPTION_OWN(option_choice, struct memory_options, table.format)},
    {0, "by", "python-line|stack|operator|function|kind|library",
     "who an owner is: the innermost line of Python, the stack, or the operator around the call "
     "that got the memory; the function called; the kind of memory; the call of a library (cuBLAS, "
     "NCCL ...) around it; default: the first of the first four that is recorded",
     OPTION_OWN(option_choice, struct memory_options, by)},
    {0, "at", "peak|end|SECONDS",
     "show who held how much at that moment: each device's own peak, the end, or so many seconds "
     "after the first event; with -o x.pickle, the snapshot of that moment; default: peak",
     .take = take_at},
    {0, "table", "NAME[,NAME..]",
     "show these tables only, by their names in the JSON, such as leaks, kinds, steps or curve",
     OPTION_OWN(option_once, struct memory_options, table.names)},
    {OPTIONS_OF(table_options, 0), .at = offsetof(struct memory_options, table)},
    {OPTIONS_OF(read_options, READ_JOBS | READ_TIME | READ_PROCESSES | READ_STEPS | READ_SYMBOLS |
                                  READ_STRICT | READ_KEEP_LIVE)},
    {0},
};
