/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `memory`: who holds the memory of devices, and of the host what is pinned. */
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "error.h"
#include "memory/memory_print.h"
#include "memory/snapshot.h"
#include "model/selection.h"
#include "output/verb_output.h"
#include "table/text_width.h"

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
    struct memory_report report;
    struct memory_rows rows = {0};
    struct selection piece;
    enum exit_code code = selection_make(&piece, rec, NULL, &options->select, NULL, "memory");
    uint64_t from_ns = piece.from_ns, to_ns = piece.to_ns;
    selection_release(&piece);
    if (code != EXIT_OK)
        return code;
    struct memory_wish wish = {.by = options->memory_by,
                               .at_seconds =
                                   options->memory_at == MEMORY_AT_TIME ? options->at_seconds : -1,
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
        (error = memory_rows_make(&rows, &report, options->memory_at, options->symbols)) < 0) {
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
    return options->format == FORMAT_BY_NAME &&
           (verb_output_is(options->output, "pickle") || verb_output_is(options->output, "pkl"));
}

/* What is said of tables says nothing of a snapshot. */
static enum exit_code check_snapshot(const struct options *options)
{
    if (options->tables || options->sort || options->limit != ROWS_UNLIMITED || options->is_full ||
        options->memory_by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a snapshot has no tables: leave --table, --sort, --limit, "
                           "--full and --by out",
                           options->output);
    return EXIT_OK;
}

enum exit_code memory_verb(const struct options *options)
{
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum report_format format = verb_output_format(options);
    bool is_file = options->output && strcmp(options->output, "-") != 0;
    struct memory_view view = {
        .tables = options->tables,
        .is_full = options->is_full,
        .is_piece = options->select.is_given,
        .how = {.sort = options->sort,
                .limit = options->limit,
                .rows = options->is_full || options->tables ? 0 : SCREEN_ROWS,
                .width = options->is_full || is_file ? 0 : terminal_width(STDOUT_FILENO),
                .is_named = options->tables != NULL,
                .has_colour = options->colour == COLOUR_ALWAYS ||
                              (options->colour == COLOUR_AUTO && !is_file &&
                               terminal_has_colour(STDOUT_FILENO))}};
    bool has_tables = format != FORMAT_BY_NAME;
    if (!has_tables && !is_snapshot(options))
        return usage_error("memory: %s: not a kind that can be written; name it .txt, .csv, .json, "
                           ".html or .pickle, or say --format",
                           options->output);
    if (view.is_piece && (!has_tables || !view.tables || options->memory_at == MEMORY_AT_TIME))
        return usage_error("memory: --from and --to need --table=places,owners,curve (or some of "
                           "these; without --at=TIME) or a page (-o page.html); --at=TIME alone "
                           "says who held the memory at a moment");
    enum exit_code code = has_tables ? memory_view_check(&view, format) : check_snapshot(options);
    if (code != EXIT_OK)
        return code;
    code = recording_open(&rec, options->paths, options->path_count, &how);
    struct progress progress;
    rec.progress = progress_begin(&progress, "memory");
    progress.total = 2 * recording_bytes(&rec);
    if (code == EXIT_OK)
        code = is_snapshot(options) ? snapshot_files(&rec, options)
                                    : memory_recording(&rec, &view, options, format);
    recording_release(&rec);
    return code;
}
