/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_verb.h"

#include <string.h>
#include <unistd.h>

#include "analyse/source_report.h"
#include "analyse/step_report.h"
#include "base/message.h"
#include "clocks/host_clocks.h"
#include "error.h"
#include "model/selection.h"
#include "output/verb_output.h"
#include "read/recorded_program.h"
#include "report/part_report.h"
#include "report/part_verb.h"
#include "report/report.h"
#include "report/report_tables.h"
#include "report/shared_report.h"
#include "table/text_width.h"

#define SUMMARY_FUNCTIONS 4

static int print_as(struct report *r, const struct report_view *view, enum report_format format,
                    FILE *text)
{
    int error =
        format == FORMAT_JSON ? report_print_json(r, view, text) : report_print_text(r, view, text);
    say_error("report", error);
    return error;
}

static enum exit_code report_print(struct report *r, const struct report_view *view,
                                   const struct options *options, enum report_format format,
                                   report_page_fn *page)
{
    struct output out;
    const char *path = options->output;
    uint64_t room = verb_output_room(recording_bytes(r->rec));
    enum exit_code code = report_sort_check(r, view, format);
    if (code == EXIT_OK && format == FORMAT_CSV)
        return report_write_csv(r, view, path, &room);
    if (code == EXIT_OK)
        code = verb_output_open(&out, path, &room);
    if (code != EXIT_OK)
        return code;
    int error = format == FORMAT_HTML ? page(r, view, options, out.stream)
                                      : print_as(r, view, format, out.stream);
    return verb_output_close(&out, path, error);
}

/* Who says what a step is, or how large, wants to see them. */
static struct step_wish wish_of(const struct options *options, const struct report_view *view,
                                enum report_format format)
{
    return (struct step_wish){.is_wanted = format == FORMAT_HTML || options->step_by ||
                                           options->step_range || options->step_samples > 0 ||
                                           report_names(view, step_tables, STEP_TABLES),
                              .by = options->step_by,
                              .pattern = options->step_range,
                              .samples = options->step_samples};
}

/* Is a table that is asked for by its name not whole? */
static enum exit_code check_missing(const struct report *r, const struct report_view *view)
{
    static const struct report nothing;
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = report_tables(&nothing, tables);
    char text[PART_MISSING_BYTES];
    for (unsigned i = 0; i < count; i++) {
        unsigned missing = r->missing & part_report_needs(tables[i].info);
        if (missing && report_names(view, tables[i].info, 1))
            return usage_error("report: the table %s is not whole in parts: these recordings have "
                               "%s ('gpuprof report' of the recordings)",
                               tables[i].info->name, part_report_missing(missing, text));
    }
    return EXIT_OK;
}

/* What is in no part, for who did not ask for tables by their names. */
static void say_missing(const struct report *r, const struct report_view *view,
                        enum report_format format)
{
    char text[PART_MISSING_BYTES];
    if (!view->tables && format != FORMAT_TEXT && r->missing)
        message("report: in no part, and not here: %s; 'gpuprof report' of the recordings has it",
                part_report_missing(r->missing, text));
}

static void say_few_times(void)
{
    message("report: more different times than recordings of this size have: some medians and 95th "
            "percentiles are those of the others");
}

static enum exit_code show_combination(struct combination *c, const struct options *options,
                                       const struct report_view *view, enum report_format format,
                                       const struct next_words *next)
{
    report_tell_next(&c->report, next);
    if (c->has_few_times)
        say_few_times();
    if (c->has_more)
        message("report: more places, names or steps than recordings of this size have: some of "
                "them are not told apart");
    enum exit_code code = check_missing(&c->report, view);
    if (code == EXIT_OK)
        code = report_print(&c->report, view, options, format, NULL);
    if (code != EXIT_OK)
        return code;
    say_missing(&c->report, view, format);
    return walk_verdict(&c->report.walk, options->strict);
}

static bool groups_of(const struct options *options, enum report_format format)
{
    bool is_text = format == FORMAT_TEXT || format == FORMAT_HTML;
    return options->groups == GROUPS_ALWAYS || (options->groups == GROUPS_IN_TEXT && is_text);
}

static enum exit_code combine(const struct options *options, const struct report_view *view,
                              enum report_format format)
{
    struct combination c;
    enum exit_code code = combination_make(&c, options->paths, options->path_count, false,
                                           groups_of(options, format));
    if (code == EXIT_OK) {
        struct next_words next;
        next_words_init(&next, options->command, NULL, 0); /* who knows where the recordings are? */
        recorded_program(&c.rec, &next);
        code = show_combination(&c, options, view, format, &next);
        next_words_release(&next);
    }
    combination_release(&c);
    return code;
}

static struct report_view view_of(const struct options *options)
{
    bool is_file = options->output && strcmp(options->output, "-") != 0;
    return (struct report_view){
        options->by,
        options->tables,
        options->is_full,
        {.sort = options->sort,
         .limit = options->limit,
         .rows = options->is_full || options->tables ? 0 : REPORT_ROWS,
         .width = options->is_full || is_file ? 0 : terminal_width(STDOUT_FILENO),
         .is_named = options->tables != NULL,
         .has_colour =
             options->colour == COLOUR_ALWAYS ||
             (options->colour == COLOUR_AUTO && !is_file && terminal_has_colour(STDOUT_FILENO))},
    };
}

/* Makes the report of what was selected, and prints it. */
static enum exit_code show_report(struct recording *rec, struct selection *selection,
                                  const struct options *options, struct report_view *view,
                                  enum report_format format, struct step_wish *steps,
                                  const struct next_words *next, report_page_fn *page)
{
    struct report report;
    steps->selection = options->select.is_given ? selection : NULL;
    /* A page has all that there is, and lines of Python go beside the other tables. */
    if (format == FORMAT_HTML && view->by == BY_NAME && recording_has_stacks(rec))
        view->by = BY_PYTHON_LINE;
    struct report_wish wish = {
        .by = view->by,
        .is_mine = options->is_mine,
        .source = options->source,
        .is_sorted = options->sort != NULL,
        .groups = groups_of(options, format),
        .leaves = steps->is_wanted ? 0 : report_leaves(view, format, rec),
        .symbols = options->symbols,
        .looks_at_memory = report_needs(view, format) & PART_MEMORY,
        .leaves_hangs = report_leaves_hangs(view, format),
        .steps = steps,
        .selection = options->select.is_given ? selection : NULL,
    };
    int error = report_make(&report, rec, &wish);
    report_tell_next(&report, next);
    if (error == 0 && !report.histogram_rows)
        say_few_times();
    enum exit_code code = error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
    if (code == EXIT_OK && report.steps)
        code = steps_check(&report.steps->steps, "report");
    bool has_devices = report.is_piece && report.idle && report.idle->window_ns;
    if (code == EXIT_OK && !(has_devices && selection->filter.is_whole))
        code = selection_check(selection, "report");
    if (code == EXIT_OK)
        code = report_print(&report, view, options, format, page);
    if (code == EXIT_OK)
        code = walk_verdict(&report.walk, options->strict);
    report_release(&report);
    return code;
}

enum exit_code report_verb(const struct options *options, report_page_fn *page)
{
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum report_format format = verb_output_format(options);
    struct report_view view = view_of(options);
    if (format == FORMAT_BY_NAME && !options->is_partial) /* a part has any name */
        return usage_error("report: %s: not a kind that can be written; name it .txt, .csv, "
                           ".json or .html, or say --format",
                           options->output);
    enum exit_code code = report_view_check(&view, format);
    if (code == EXIT_OK && (options->is_partial || options->is_combined || options->share)) {
        code = part_verb_check(options, &view, format);
        if (code != EXIT_OK)
            return code;
        return options->is_partial ? part_verb(options) : combine(options, &view, format);
    }
    if (code == EXIT_OK && options->source)
        code = source_report_check(options->source);
    if (code != EXIT_OK)
        return code;
    struct step_wish steps = wish_of(options, &view, format);
    code = recording_open(&rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = host_clocks_align(&rec, options->clock, "report");
    struct next_words next;
    next_words_init(&next, options->command, options->paths, options->path_count);
    bool is_by_wall = options->clock == CLOCK_BY_WALL && rec.host_count > 1;
    next_words_set_piece(&next, &options->select, options->step_by, options->step_range,
                         is_by_wall ? "wall" : NULL);
    recorded_program(&rec, &next);
    struct combination shared;
    if (code == EXIT_OK &&
        shared_report_make(&shared, &rec, options, &view, format, groups_of(options, format))) {
        code = show_combination(&shared, options, &view, format, &next);
        combination_release(&shared);
        next_words_release(&next);
        recording_release(&rec);
        return code;
    }
    struct progress progress;
    rec.progress = progress_begin(&progress, "report");
    progress.total = recording_bytes(&rec) * (steps.is_wanted ? 2 : 1);
    const struct selection_steps how_steps = {.by = options->step_by,
                                              .pattern = options->step_range};
    struct selection selection = {0};
    if (code == EXIT_OK)
        code = selection_make(&selection, &rec, NULL, &options->select, &how_steps, "report");
    if (code == EXIT_OK)
        code = show_report(&rec, &selection, options, &view, format, &steps, &next, page);
    next_words_release(&next);
    selection_release(&selection);
    recording_release(&rec);
    return code;
}

/* Not all was read: how long all took the block headers say. */
static void say_cut(struct report *r, const struct recording *rec)
{
    uint64_t end_ns = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        uint64_t to_ns = p->min_ns <= p->max_ns ? clock_map_ns(&p->clock, p->max_ns) : 0;
        end_ns = to_ns > end_ns ? to_ns : end_ns;
    }
    r->whole_ns = end_ns > r->wall_begin_ns ? end_ns - r->wall_begin_ns : 1;
    /* Work and the calls that made it were not read equally far. */
    r->losses.gpu_missing = r->losses.gpu_unpaired = 0;
}

enum exit_code report_summary(char **paths, int path_count, uint64_t walk_ns_max,
                              const struct next_words *next, FILE *out)
{
    struct recording rec;
    struct report report;
    struct recording_options how = {.quiet = true, .found = true};
    enum exit_code code = recording_open(&rec, paths, path_count, &how);
    if (code == EXIT_OK) {
        struct report_wish wish = {.by = BY_NAME,
                                   .leaves = REPORT_UNSEEN,
                                   .looks_at_memory = true,
                                   .walk_ns_max = walk_ns_max};
        int error = report_make(&report, &rec, &wish);
        report_tell_next(&report, next);
        if (error == 0 && report.walk.is_cut)
            say_cut(&report, &rec);
        if (error == 0)
            error = report_print_summary(&report, SUMMARY_FUNCTIONS, out);
        bool damaged = rec.unread_files || losses_weight(&report.losses) == LOSS_DAMAGE;
        code = error < 0 ? EXIT_ENVIRONMENT : damaged ? EXIT_DAMAGED : EXIT_OK;
        report_release(&report);
    }
    recording_release(&rec);
    return code;
}
