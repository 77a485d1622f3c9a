/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `memory`: the owners of device memory, and of pinned host memory. */
#include "memory/memory_report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "output/output.h"
#include "rank.h"
#include "resolve/selection.h"

#define SCREEN_ROWS 5 /* of a table, by default */

static bool is_wanted(const struct memory_options *own, const struct table_info *info,
                      enum report_format format)
{
    if (own->table.names)
        return word_in(own->table.names, info->name) != UINT_MAX;
    return format != FORMAT_TEXT || own->table.is_full || info->place != PLACE_ASKED;
}

static const struct table_info *table_at(unsigned index)
{
    return index < MEMORY_TABLES ? memory_tables[index] : NULL;
}

/* EXIT_OK, or EXIT_USAGE after one line: an unknown table or column, or no table for a
 * selection. */
static enum exit_code check_tables(const struct options *options, enum report_format format)
{
    const struct memory_options *own = options->own;
    const char *names = own->table.names;
    const struct table_info *infos[MEMORY_TABLES];
    unsigned words = names != NULL, count = 0;
    for (const char *comma = names; comma && (comma = strchr(comma, ',')); comma++)
        words++;
    for (unsigned i = 0; i < MEMORY_TABLES; i++) {
        const char *name = memory_tables[i]->name;
        if (!is_wanted(own, memory_tables[i], format))
            continue;
        if (options->select.is_given && word_in("places,owners,curve", name) == UINT_MAX)
            return usage_error("memory: --from and --to: the table %s always covers the whole "
                               "recording; name only places, owners and curve",
                               name);
        infos[count++] = memory_tables[i];
    }
    if (names && count < words)
        return usage_error("memory: unknown table in '%s'; 'gpuprof help memory' lists the tables",
                           names);
    return table_sort_check("memory", own->table.sort, infos, count);
}

/* ---- around the tables ----------------------------------------------------------------------- */

/* What the books may lack; `at` leads to a number of the report. */
static const struct {
    size_t at;
    const char *key;
    const char *text;
} doubts[] = {
    {offsetof(struct memory_report, ledger.doubts.replaced), "replaced",
     "blocks whose release was not recorded"},
    {offsetof(struct memory_report, ledger.doubts.strays), "strays",
     "releases of blocks whose allocation was not recorded"},
    {offsetof(struct memory_report, ledger.doubts.beyond), "beyond",
     "blocks that were too many to follow, left out of all sums"},
    {offsetof(struct memory_report, ledger.doubts.in_graphs), "in_graphs",
     "allocations by graph launches, left out of all sums"},
    {offsetof(struct memory_report, ledger.doubts.sampled), "sampled",
     "calls that stand for unrecorded ones, which are left out of all sums"},
    {offsetof(struct memory_report, ranges.beyond), "ranges_beyond",
     "ranges that were too many to follow"},
    {offsetof(struct memory_report, ooms.beyond), "more_out_of_memory", "more failed allocations"},
};

/* Prints them as notes, or as members of JSON. */
static void print_doubts(const struct memory_report *m, bool is_json, FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    for (unsigned i = 0, shown = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        uint64_t count = *(const uint64_t *)((const char *)m + doubts[i].at);
        if (count && is_json)
            fprintf(out, "%s\"%s\": %" PRIu64, shown++ ? ", " : "", doubts[i].key, count);
        else if (count)
            fprintf(out, "%s  %12s  %s\n", shown++ ? "" : "\nnotes\n", count_text(text, count),
                    doubts[i].text);
    }
}

static void print_json_head(const struct memory_report *m, FILE *out)
{
    static const char *const by[] = {
        [MEMORY_BY_LINE] = "python-line",  [MEMORY_BY_STACK] = "stack",
        [MEMORY_BY_OPERATOR] = "operator", [MEMORY_BY_FUNCTION] = "function",
        [MEMORY_BY_KIND] = "kind",         [MEMORY_BY_LIBRARY] = "library"};
    static const char *const at[] = {
        [MEMORY_AT_PEAK] = "peak", [MEMORY_AT_END] = "end", [MEMORY_AT_TIME] = "time"};
    fprintf(out, "{\n\"processes\": %u,\n\"wall_ns\": %" PRIu64 ",\n", m->rec->count,
            m->times.end_ns - m->times.begin_ns);
    fprintf(out, "\"by\": \"%s\",\n\"at\": \"%s\",\n\"steps_by\": \"%s\",\n", by[m->by], at[m->at],
            step_kinds[m->steps.count ? m->steps.kind : STEPS_NONE].word);
    fputs("\"doubts\": {", out);
    print_doubts(m, true, out);
    fputs("}", out);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static enum exit_code write_out(const struct memory_report *m, const struct options *options,
                                enum report_format format)
{
    const struct memory_options *own = options->own;
    struct table_view view = table_view_of(&own->table, options->output, SCREEN_ROWS);
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(m->rec));
    struct table tables[MEMORY_TABLES];
    unsigned count = 0;
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        if (is_wanted(own, memory_tables[i], format))
            tables[count++] = (struct table){.info = memory_tables[i], .source = m};
    if (format == FORMAT_CSV)
        return tables_write_csv(tables, count, &view, options->output, &room);
    enum exit_code code = verb_output_open(&out, options->output, &room);
    if (code != EXIT_OK)
        return code;
    bool is_json = format == FORMAT_JSON;
    if (is_json)
        print_json_head(m, out.stream);
    else if (!own->table.names)
        memory_overview_print(m, &view, out.stream);
    for (unsigned i = 0; i < count; i++) {
        struct table_view how = view;
        if (strcmp(tables[i].info->name, "leaks") == 0)
            how.rows = 0; /* all rows: each is a failure of its own */
        (is_json ? table_print_json : table_print_text)(&tables[i], &how, out.stream);
    }
    if (is_json)
        fputs("\n}\n", out.stream);
    else
        print_doubts(m, false, out.stream);
    return verb_output_close(&out, options->output, 0);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* "x.pickle" becomes "x_rank3.pickle", or with the pid if other processes have that rank; new
 * text. Of one process, it stays. */
static char *snapshot_path(const struct memory_report *m, const struct process *p, const char *path,
                           uint32_t count)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *ending = strchr(name + 1, '.');
    int stem = (int)(ending ? ending - path : (long)strlen(path));
    uint32_t alike = 0;
    for (uint32_t i = 0; i < m->process_count; i++)
        alike += m->processes[i].gets_memory && m->processes[i].process->rank == p->rank;
    bool has_rank = p->rank != RANK_NONE && alike == 1;
    return count == 1
               ? memory_text(path)
               : text_printf("%.*s_%s%llu%s", stem, path, has_rank ? "rank" : "pid",
                             has_rank ? (unsigned long long)p->rank : p->shown_pid, path + stem);
}

/* Writes a file for each process that allocated. */
static enum exit_code write_snapshots(struct memory_report *m, const char *output)
{
    uint32_t count = 0;
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; i < m->process_count; i++)
        count += m->processes[i].gets_memory;
    if (!count)
        message("memory: no allocation was recorded, so %s is not written", output);
    for (uint32_t i = 0; code == EXIT_OK && i < m->process_count; i++) {
        struct output out;
        uint64_t room = verb_output_room(recording_bytes(m->rec));
        if (!m->processes[i].gets_memory)
            continue;
        char *path = snapshot_path(m, m->processes[i].process, output, count);
        code = verb_output_open(&out, path, &room);
        if (code == EXIT_OK)
            code = verb_output_close(&out, path, snapshot_write(m, m->processes[i].process, &out));
        free(path);
    }
    return count ? code : EXIT_ENVIRONMENT;
}

/* Checks the options of a snapshot, which has no tables. */
static enum exit_code check_snapshot(const struct options *options)
{
    const struct memory_options *own = options->own;
    if (own->table.format != FORMAT_BY_NAME ||
        (!verb_output_is(options->output, "pickle") && !verb_output_is(options->output, "pkl")))
        return usage_error("memory: %s: unknown file type; name it .txt, .csv, .json, .html or "
                           ".pickle, or give --format",
                           options->output);
    if (own->table.names || own->table.sort || own->table.limit != ROWS_UNLIMITED ||
        own->table.is_full || own->by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a snapshot has no tables; leave out --table, --sort, "
                           "--limit, --full and --by",
                           options->output);
    return EXIT_OK;
}

/* Checks that the requested moment lies in the recording, if it has events and a known end. */
static enum exit_code check_moment(const struct memory_report *m)
{
    uint64_t origin_ns = m->walk.survey.origin_ns;
    char whole[UNIT_TEXT_BYTES], asked[UNIT_TEXT_BYTES];
    if (m->times.asked_ns == UINT64_MAX || m->times.asked_ns <= m->times.end_ns ||
        m->times.end_ns <= origin_ns)
        return EXIT_OK;
    return usage_error(
        "memory: --at: nothing was recorded %s after the first event; the last event is at %s",
        time_text(asked, m->times.asked_ns - origin_ns),
        time_text(whole, m->times.end_ns - origin_ns));
}

static enum exit_code memory_recording(struct recording *rec, const struct options *options,
                                       enum report_format format)
{
    const struct memory_options *own = options->own;
    struct selection selected;
    enum exit_code code = selection_make(&selected, rec, NULL, &options->select, NULL, "memory");
    bool has_tables = format != FORMAT_BY_NAME;
    const struct memory_request request = {.by = has_tables ? own->by : MEMORY_BY_STACK,
                                           .at = own->at,
                                           .at_seconds = own->at_seconds,
                                           .step_by = options->step_by,
                                           .step_pattern = options->step_range,
                                           .from_ns = selected.from_ns,
                                           .to_ns = selected.to_ns,
                                           .learns_only = !has_tables};
    int error;
    selection_release(&selected);
    if (code != EXIT_OK)
        return code;
    struct memory_report *m = memory_report_create(rec, &request, options->symbols, &error);
    if (!m)
        return EXIT_ENVIRONMENT;
    code = steps_check(&m->steps, "memory");
    if (code == EXIT_OK)
        code = check_moment(m);
    if (code == EXIT_OK)
        code = has_tables ? write_out(m, options, format) : write_snapshots(m, options->output);
    if (code == EXIT_OK)
        code = walk_verdict(&m->walk, options->strict);
    memory_report_free(m);
    return code;
}

enum exit_code memory_run(const struct options *options)
{
    const struct memory_options *own = options->own;
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum report_format format = verb_output_format(own->table.format, options->output);
    bool has_tables = format != FORMAT_BY_NAME;
    enum exit_code code = has_tables ? EXIT_OK : check_snapshot(options);
    if (code == EXIT_OK && options->select.is_given &&
        (!has_tables || !own->table.names || own->at == MEMORY_AT_TIME))
        code = usage_error("memory: --from and --to need a page (-o page.html) or "
                           "--table=places,owners,curve; for one moment use --at=TIME alone");
    if (code == EXIT_OK)
        code = table_output_check("memory", format, options->output);
    if (code == EXIT_OK && has_tables)
        code = check_tables(options, format);
    if (code != EXIT_OK)
        return code;
    code = recording_open(&rec, options->paths, options->path_count, &how);
    rec.progress = progress_begin("memory", 2 * recording_bytes(&rec));
    if (code == EXIT_OK)
        code = memory_recording(&rec, options, format);
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
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the tables to this file, compressed if it ends in .gz, or as csv into a folder, DIR/. "
     ".html: the page of 'gpuprof report'; .pickle: a PyTorch snapshot of each process. Default: "
     "standard output.",
     .in = HELP_OUTPUT},
    {0, "format", "text|json|csv", OPTION_OWN(option_choice, struct memory_options, table.format),
     "Write the tables in this format; default: by the end of the file's name: .json, .csv or "
     "DIR/, "
     "or else text",
     .in = HELP_OUTPUT},
    {0, "by", "python-line|stack|operator|function|kind|library",
     OPTION_OWN(option_choice, struct memory_options, by),
     "Group memory by the innermost Python line, the stack or the operator that allocated it, the "
     "function called, the kind of memory, or the library. Default: the first of python-line, "
     "stack, operator and function that was recorded.",
     .in = HELP_SHOW},
    {0, "at", "peak|end|SECONDS", .take = take_at, .at = 0,
     "Show the owners at this time: each device's peak, the end, or SECONDS after the first event; "
     "-o x.pickle writes that snapshot; default: peak",
     .in = HELP_SHOW},
    {0, "table", "NAME[,NAME..]", OPTION_OWN(option_once, struct memory_options, table.names),
     "Show only these tables, by the names listed below, which JSON uses too", .table_at = table_at,
     .in = HELP_SHOW},
    {OPTIONS_OF(table_options, 0), .at = offsetof(struct memory_options, table)},
    {OPTIONS_OF(read_options, READ_JOBS | READ_TIME | READ_PROCESSES | READ_STEPS | READ_SYMBOLS |
                                  READ_STRICT | READ_KEEP_LIVE)},
    {0},
};
