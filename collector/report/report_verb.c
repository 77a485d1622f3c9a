/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <string.h>
#include <unistd.h>

#include "analyse/source_report.h"
#include "analyse/step_report.h"
#include "base/file_at.h"
#include "base/message.h"
#include "base/workers.h"
#include "clocks/host_clocks.h"
#include "error.h"
#include "output/output.h"
#include "report/part_report.h"
#include "resolve/selection.h"
#include "unit_word.h"

#define SAMPLES_MAX 1e15

static enum exit_code report_print(struct report *r, const struct report_view *view,
                                   const struct options *options, report_page_fn *page)
{
    struct output out;
    const char *path = options->output;
    uint64_t room = verb_output_room(recording_bytes(r->rec));
    if (view->format == FORMAT_CSV)
        return report_write_csv(r, view, path, &room);
    enum exit_code code = verb_output_open(&out, path, &room);
    if (code != EXIT_OK)
        return code;
    int error = 0;
    if (view->format == FORMAT_HTML)
        error = page(r, view, options, out.stream);
    else
        (view->format == FORMAT_JSON ? report_print_json : report_print_text)(r, view, out.stream);
    return verb_output_close(&out, path, error);
}

/* Steps are shown if an option defines them or their size, or names their table. */
static struct step_request request_of(const struct options *options, const struct report_view *view)
{
    const struct report_options *own = options->own;
    return (struct step_request){.is_wanted = view->format == FORMAT_HTML || options->step_by ||
                                              options->step_range || own->step_samples > 0 ||
                                              report_names(view, step_tables, STEP_TABLES),
                                 .by = options->step_by,
                                 .pattern = options->step_range,
                                 .samples = own->step_samples};
}

/* Says what parts lack. Returns an error if a named table is incomplete in these. */
static enum exit_code check_missing(const struct report *r, const struct report_view *view)
{
    const struct table_info *info;
    char text[PART_MISSING_BYTES];
    for (unsigned i = 0; (info = report_table_at(i)); i++) {
        unsigned missing = r->missing & info->needs;
        if (missing && report_names(view, info, 1))
            return usage_error("report: the table %s is incomplete in parts: these recordings have "
                               "%s; run 'gpuprof report' on the recordings",
                               info->name, part_report_missing(missing, text));
    }
    if (!view->tables && r->missing)
        message("report: not available when parts are combined: %s; run 'gpuprof report' on the "
                "recordings",
                part_report_missing(r->missing, text));
    return EXIT_OK;
}

static void say_few_times(void)
{
    message("report: too many different times for a recording of this size: some medians and 95th "
            "percentiles leave times out");
}

static enum exit_code show_combination(struct combination *c, const struct options *options,
                                       const struct report_view *view,
                                       const struct next_words *next)
{
    c->report.next = next;
    if (c->has_few_times)
        say_few_times();
    if (c->has_more)
        message("report: too many places, names or steps for a recording of this size: some of "
                "them share a row");
    enum exit_code code = check_missing(&c->report, view);
    if (code == EXIT_OK)
        code = report_print(&c->report, view, options, NULL);
    return code == EXIT_OK ? walk_verdict(&c->report.walk, options->strict) : code;
}

struct named_parts {
    char **paths;
    int copies; /* a file with copies of all parts, so that they cannot change */
    uint64_t end;
};

static enum exit_code read_named(void *context, uint32_t index, struct part *part)
{
    struct named_parts *named = context;
    return part_read(part, named->paths[index], named->copies, &named->end);
}

static enum exit_code combine(const struct options *options, const struct report_view *view)
{
    struct combination c;
    struct named_parts named = {options->paths, file_unnamed(), 0};
    if (named.copies < 0)
        file_unnamed_failed();
    enum exit_code code = combination_make(&c, (uint32_t)options->path_count, read_named, &named,
                                           false, view->groups);
    if (code == EXIT_OK) {
        struct next_words next;
        next_words_init(&next, options->command, NULL, 0); /* the recordings' place is unknown */
        recorded_program(&c.rec, &next);
        code = show_combination(&c, options, view, &next);
        next_words_release(&next);
    }
    combination_release(&c);
    close(named.copies);
    return code;
}

/* Returns the tables (bits as in report_only) if a selection needs only rows, else 0. The library
 * that launched a kernel is known only after reading everything. */
static uint64_t only_rows(const struct recording *rec, const struct options *options,
                          const struct report_view *view, const struct step_request *steps)
{
    uint64_t only = report_only(view);
    bool has_makers =
        only >> ANALYSIS_kernels_sums & 1 && !(report_parts_missing(rec) & REPORT_LIBRARIES);
    return options->select.is_given && !steps->is_wanted && !has_makers ? only : 0;
}

/* Makes the report of the selection and prints it. */
static enum exit_code show_report(struct recording *rec, struct selection *selection,
                                  const struct options *options, struct report_view *view,
                                  struct step_request *steps, const struct next_words *next,
                                  report_page_fn *page)
{
    const struct report_options *own = options->own;
    struct report report;
    steps->selection = options->select.is_given ? selection : NULL;
    /* A page shows everything, with Python lines beside the other tables. */
    if (view->format == FORMAT_HTML && view->by == BY_NAME &&
        recording_any(rec, process_has_stacks))
        view->by = BY_PYTHON_LINE;
    struct report_request request = {
        .by = view->by,
        .lines.is_mine = own->is_mine,
        .lines.source = own->source,
        .lines.is_sorted = own->table.sort != NULL,
        .groups = view->groups,
        .leaves = steps->is_wanted ? 0 : report_leaves(view, rec),
        .symbols = options->symbols,
        .looks_at_memory = report_needs(view) & PART_MEMORY,
        .leaves_hangs = !(report_needs(view) & PART_OF_HANG),
        .steps = steps,
        .selection = options->select.is_given ? selection : NULL,
        .only = only_rows(rec, options, view, steps),
    };
    struct combination whole;
    bool is_known = selection->filter.is_near && !request.only && !steps->is_wanted &&
                    shared_report_whole(&whole, rec, options);
    if (is_known) {
        selection_read_near(selection, &whole.report.crossings, whole.report.marks);
        request.whole = &whole.report;
    }
    int error = report_make(&report, rec, &request);
    if (error == 0 && request.only &&
        !report.time.piece_events) { /* there may be other events in it */
        report_release(&report);
        request.only = 0;
        error = report_make(&report, rec, &request);
    }
    report.next = next;
    if (error == 0 && !report.making.histogram_rows)
        say_few_times();
    enum exit_code code = error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
    if (code == EXIT_OK && report.steps)
        code = steps_check(&report.steps->steps, "report");
    bool has_devices = report.time.is_selection && report.idle && report.idle->window_ns;
    if (code == EXIT_OK && !(has_devices && selection->filter.is_whole))
        code = selection_check(selection, "report");
    if (code == EXIT_OK)
        code = report_print(&report, view, options, page);
    if (code == EXIT_OK)
        code = walk_verdict(&report.walk, options->strict);
    report_release(&report);
    if (is_known)
        combination_release(&whole);
    return code;
}

static enum exit_code check_options(const struct options *options)
{
    const struct report_options *own = options->own;
    if (own->is_mine && own->by != BY_NAME && own->by != BY_PYTHON_LINE)
        return usage_error("report: --mine needs --by=python-line");
    if (own->source && (own->by != BY_NAME || own->is_mine))
        return usage_error(
            "report: --source cannot be combined with --by or --mine; leave them out");
    if (options->path_count)
        return EXIT_OK;
    return own->is_combined ? usage_error("report: --combine: name the files that --partial made")
                            : usage_error("report: name a data folder or a recording (. is the "
                                          "current folder); try 'gpuprof help report'");
}

enum exit_code report_run(const struct options *options, report_page_fn *page)
{
    const struct report_options *own = options->own;
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum report_format format = verb_output_format(own->table.format, options->output);
    struct report_view view = {.by = own->source    ? BY_SOURCE
                                     : own->is_mine ? BY_PYTHON_LINE
                                                    : own->by,
                               .tables = own->table.names,
                               .is_full = own->table.is_full,
                               .groups = own->groups == GROUPS_ALWAYS ||
                                         (own->groups == GROUPS_IN_TEXT &&
                                          (format == FORMAT_TEXT || format == FORMAT_HTML)),
                               .format = format,
                               .how = table_view_of(&own->table, options->output, REPORT_ROWS)};
    enum exit_code code = check_options(options);
    if (code != EXIT_OK)
        return code;
    if (format == FORMAT_BY_NAME && !own->is_partial) /* a part may have any name */
        return usage_error("report: %s: unknown file type; name it .txt, .csv, .json or .html, or "
                           "give --format; 'gpuprof export' and 'gpuprof merge' write other types",
                           options->output);
    code = table_output_check("report", own->is_partial ? FORMAT_TEXT : format, options->output);
    if (code == EXIT_OK)
        code = report_view_check(&view);
    if (code == EXIT_OK && (own->is_partial || own->is_combined || own->share)) {
        code = part_verb_check(options, &view);
        if (code != EXIT_OK)
            return code;
        return own->is_partial ? part_verb(options) : combine(options, &view);
    }
    if (code == EXIT_OK && own->source)
        code = source_report_check(own->source);
    if (code != EXIT_OK)
        return code;
    struct step_request steps = request_of(options, &view);
    code = recording_open(&rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = host_clocks_align(&rec, options->clock, "report");
    struct next_words next;
    next_words_init(&next, options->command, options->paths, options->path_count);
    bool is_by_wall = options->clock == CLOCK_BY_WALL && rec.host_count > 1;
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        next_words_add_option(&next, select_option_name(i), options->select.said[i], false);
    next_words_add_option(&next, "step-by", options->step_by, false);
    next_words_add_option(&next, "step-range", options->step_range, false);
    next_words_add_option(&next, "clock", is_by_wall ? "wall" : NULL, false);
    recorded_program(&rec, &next);
    struct combination shared;
    struct selection selection = {0};
    const struct selection_steps by = {.by = options->step_by, .pattern = options->step_range};
    rec.progress = progress_begin("report", recording_bytes(&rec) * (steps.is_wanted ? 2 : 1));
    if (code == EXIT_OK && shared_report_make(&shared, &rec, options, &view)) {
        code = show_combination(&shared, options, &view, &next);
        combination_release(&shared);
    } else if (code == EXIT_OK) {
        code = selection_make(&selection, &rec, NULL, &options->select, &by, "report");
        if (code == EXIT_OK)
            code = show_report(&rec, &selection, options, &view, &steps, &next, page);
    }
    next_words_release(&next);
    selection_release(&selection);
    recording_release(&rec);
    return code;
}

/* Estimates the whole time from the block headers if the walk was cut short. */
static void say_cut(struct report *r, const struct recording *rec)
{
    uint64_t end_ns = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        uint64_t to_ns = p->min_ns <= p->max_ns ? clock_map_ns(&p->clock, p->max_ns) : 0;
        end_ns = to_ns > end_ns ? to_ns : end_ns;
    }
    r->time.whole_ns = end_ns > r->time.wall_begin_ns ? end_ns - r->time.wall_begin_ns : 1;
    /* GPU work and its calls were not read equally far. */
    r->total.losses.gpu_missing = r->total.losses.gpu_unpaired = 0;
}

enum exit_code report_summary(char **paths, int path_count, uint64_t walk_ns_max,
                              const struct next_words *next, FILE *out)
{
    struct recording rec;
    struct report report;
    struct recording_options how = {.quiet = true, .found = true};
    enum exit_code code = recording_open(&rec, paths, path_count, &how);
    if (code == EXIT_OK) {
        struct report_request request = {.by = BY_NAME,
                                         .leaves = REPORT_UNSEEN | REPORT_OPS | REPORT_LIBRARIES,
                                         .looks_at_memory = true,
                                         .walk_ns_max = walk_ns_max};
        int error = report_make(&report, &rec, &request);
        report.next = next;
        if (error == 0 && report.walk.is_cut)
            say_cut(&report, &rec);
        if (error == 0)
            report_print_summary(&report, out);
        bool damaged = rec.unread_files || losses_weight(&report.total.losses) == LOSS_DAMAGE;
        code = error < 0 ? EXIT_ENVIRONMENT : damaged ? EXIT_DAMAGED : EXIT_OK;
        report_release(&report);
    }
    recording_release(&rec);
    return code;
}

static enum exit_code take_samples(const struct given *g)
{
    struct amount amount;
    double *samples = g->at;
    const char *end = amount_read(g->value, g->value + strlen(g->value), &amount);
    *samples = end ? (double)amount.whole + amount.billionths / 1e9 : 0;
    return option_end(g, end && !*end && *samples > 0 && *samples <= SAMPLES_MAX,
                      "is not a number of samples");
}

static enum exit_code take_group(const struct given *g)
{
    *(enum report_groups *)g->at = g->option->name[0] == 'n' ? GROUPS_NEVER : GROUPS_ALWAYS;
    return EXIT_OK;
}

const struct option report_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the tables to this file, compressed if its name ends in .gz, or as csv files into a "
     "folder, DIR/; default: standard output",
     .in = HELP_OUTPUT},
    {0, "format", "text|json|csv|html",
     OPTION_OWN(option_choice, struct report_options, table.format),
     "Write the tables in this format; default: as the file's name ends: .json, .csv or DIR/, "
     ".html "
     "(a page for a browser), or else text",
     .in = HELP_OUTPUT},
    {0, "by", "name|grid|shape|range|stack|python-line|thread",
     OPTION_OWN(option_choice, struct report_options, by),
     "Group kernels by name or grid, operators by name, input shape, range or enclosing operators "
     "(stack). With stack, python-line and thread, show calls by these instead of the other tables "
     "(json, csv: in addition).",
     .in = HELP_SHOW},
    {0, "mine", NULL, OPTION_FLAG(struct report_options, is_mine),
     "Like --by=python-line, but attribute a call to its innermost line outside installed packages "
     "and Python's library; lines borrowed from a waiting thread are one row",
     .in = HELP_SHOW},
    {0, "source", "DIR", OPTION_TEXT(struct report_options, source),
     "Show the source lines below this folder that made calls, with their costs, instead of the "
     "tables (json, csv: in addition)",
     .in = HELP_SHOW},
    {0, "no-group", NULL, OPTION_OWN(take_group, struct report_options, groups),
     "Give each range and label its own row, even if only numbers differ (\"iteration 17\"); "
     "default in json and csv",
     .in = HELP_SHOW | HELP_MORE},
    {0, "group", NULL, OPTION_OWN(take_group, struct report_options, groups),
     "Show more than 8 ranges or labels that differ only in numbers as one row (\"iteration *\"); "
     "default in text",
     .in = HELP_SHOW | HELP_MORE},
    {0, "table", "NAME[,NAME..]", OPTION_OWN(option_once, struct report_options, table.names),
     "Show only these tables, by the names listed below, which JSON uses too. The tables steps and "
     "phases take more time, so name them here or set --step-by.",
     .table_at = report_table_at, .in = HELP_SHOW},
    {OPTIONS_OF(table_options, TABLE_ROWS), .at = offsetof(struct report_options, table)},
    {0, "partial", NULL, OPTION_FLAG(struct report_options, is_partial),
     "Read a share of the files, as one of several processes, and write a part of the report to "
     "the "
     "-o file, for --combine",
     .in = HELP_READ | HELP_MORE},
    {0, "share", "I/N", OPTION_TEXT(struct report_options, share),
     "Read share I, counted from 0, of N with --partial. Default: the rank that torchrun, MPI, "
     "Horovod or Slurm gave this process; .I is then added to the file's name.",
     .in = HELP_READ | HELP_MORE},
    {0, "combine", NULL, OPTION_FLAG(struct report_options, is_combined),
     "Combine the parts that --partial wrote into the report of all recordings",
     .in = HELP_READ | HELP_MORE},
    {OPTIONS_OF(table_options, TABLE_COLOUR), .at = offsetof(struct report_options, table)},
    {OPTIONS_OF(read_options, READ_JOBS | READ_PIECE | READ_CLOCK | READ_STEPS)},
    {0, "samples-per-step", "N", OPTION_OWN(take_samples, struct report_options, step_samples),
     "Set the samples per step and process, for throughput in the tables of steps",
     .in = HELP_READ | HELP_MORE},
    {OPTIONS_OF(read_options, READ_SYMBOLS | READ_STRICT | READ_KEEP_LIVE | READ_INDEX)},
    {0},
};
