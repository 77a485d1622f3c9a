/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `stats`: report tables and event rows under the names of nsys stats. options->paths[0]
 * names the reports, a,b,c. */

#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "export/export_writer.h"
#include "output/output.h"
#include "report/report.h"

/* The options that only `stats` has. */
struct stats_options {
    struct table_options table;
    const char *reports; /* comma-separated; NULL: the first path has them */
};

#define TABLES_BYTES 1024
#define NAMES_BYTES  1024

static const struct stats_report {
    const char *name;
    const char *old_name;
    const char *tables; /* "": none */
    const char *kinds;  /* a row per event of these kinds; "": no such rows */
    enum report_by by;
    const char *note;
} reports[] = {
#define STATS_REPORT(name, old_name, tables, by, note) {#name, old_name, tables, "", by, note},
#define STATS_TRACE(name, old_name, kinds, note)       {#name, old_name, "", kinds, BY_NAME, note},
#include "export/stats_reports.def"
};
#define REPORT_COUNT (sizeof reports / sizeof reports[0])

static const struct stats_report *report_named(const char *word, size_t length)
{
    for (size_t i = 0; length && i < REPORT_COUNT; i++) /* some have no old name */
        if (word_is(word, length, reports[i].name) || word_is(word, length, reports[i].old_name))
            return &reports[i];
    return NULL;
}

/* Returns the name of a report that is available; NULL: no more. */
static const char *report_name(unsigned index)
{
    for (size_t i = 0; i < REPORT_COUNT; i++)
        if ((*reports[i].tables || *reports[i].kinds) && !index--)
            return reports[i].name;
    return NULL;
}

static enum exit_code unknown(const char *word, size_t length)
{
    char names[NAMES_BYTES] = "", hint[NEAREST_TEXT_BYTES];
    struct nearest nearest = nearest_to(word, length);
    size_t used = 0;
    for (size_t i = 0; i < REPORT_COUNT; i++)
        nearest_offer(&nearest, reports[i].name);
    for (unsigned i = 0; report_name(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 report_name(i));
    return usage_error("stats: unknown report '%.*s'%s; the reports are %s", (int)length, word,
                       nearest_text(&nearest, "", hint), names);
}

/* Collects the tables of the reports in `list` and how their rows are grouped. What follows a name,
 * ":base" (how nsys shows kernel names), changes nothing. */
static enum exit_code find_tables(const char *list, char *tables, enum report_by *by)
{
    size_t at = 0;
    bool has_by = false;
    for (const char *word = list; word;) {
        size_t all = strcspn(word, ","), length = strcspn(word, ",:");
        const struct stats_report *r = report_named(word, length);
        if (!r)
            return unknown(word, length);
        if (*r->kinds)
            return usage_error(
                "stats: %.*s is not a table, and cannot be combined with others; ask for it alone",
                (int)length, word);
        if (!*r->tables)
            return usage_error("stats: %s is not available: %s", r->name, r->note);
        if (has_by && r->by != *by)
            return usage_error("stats: %s cannot be combined with the others; ask for it alone",
                               r->name);
        if (*r->note)
            message("stats: %s: %s", r->name, r->note);
        *by = r->by;
        has_by = true;
        at += (size_t)snprintf(tables + at, TABLES_BYTES - at, "%s%s", at ? "," : "", r->tables);
        if (at >= TABLES_BYTES)
            return usage_error("stats: %s: too many reports; ask for fewer", list);
        word = word[all] ? word + all + 1 : NULL;
    }
    return EXIT_OK;
}

/* Exports a row per event, as csv or on request JSON. */
static enum exit_code export_trace(const struct stats_report *t, const struct options *options)
{
    const struct stats_options *own = options->own;
    struct export_options export = {.format = "csv"};
    struct options of_export = *options;
    bool is_json = own->table.format == FORMAT_JSON ||
                   (own->table.format == FORMAT_BY_NAME && verb_output_is(options->output, "json"));
    if (own->table.sort || own->table.limit != ROWS_UNLIMITED || options->select.kinds ||
        own->table.format == FORMAT_TEXT)
        return usage_error("stats: %s has one row per event of the kinds %s, as csv or json; "
                           "--sort, --limit and --kind do not apply (--step does)",
                           t->name, t->kinds);
    message("stats: %s: %s", t->name, t->note);
    if (is_json)
        export.format = "jsonl";
    of_export.own = &export;
    of_export.output = options->output ? options->output : "-";
    enum exit_code code = select_kinds_take(&of_export.select, "stats", t->kinds);
    return code == EXIT_OK ? export_verb.run(&of_export) : code;
}

static enum exit_code stats_verb_run(const struct options *options)
{
    const struct stats_options *own = options->own;
    struct report_options report = {.table = own->table};
    struct options of_report = *options;
    const char *names = own->reports ? own->reports : options->paths[0];
    size_t length = strcspn(names, ":");
    const struct stats_report *trace = report_named(names, length);
    char tables[TABLES_BYTES];
    if (trace && !*trace->kinds)
        trace = NULL;
    if (!trace && find_tables(names, tables, &report.by) != EXIT_OK)
        return EXIT_USAGE;
    if (!own->reports && options->path_count < 2)
        return usage_error("stats: name recordings (folders or files) after the report");
    if (verb_output_is(options->output, "html") || verb_output_is(options->output, "htm"))
        return usage_error("stats: %s: cannot write a page; use 'gpuprof report'", options->output);
    report.table.names = tables;
    if (!own->reports) {
        of_report.paths++;
        of_report.path_count--;
    }
    if (trace)
        return export_trace(trace, &of_report);
    of_report.own = &report;
    return report_run(&of_report, NULL);
}

/* Accepts nsys' words too. */
static enum exit_code take_format(const struct given *g)
{
    struct given in_ours = *g;
    if (strcmp(g->value, "column") == 0 || strcmp(g->value, "table") == 0)
        in_ours.value = "text";
    return option_choice(&in_ours);
}

static const struct option own_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the tables to this file, compressed if its name ends in .gz, or as csv files into a "
     "folder, DIR/; default: standard output",
     .in = HELP_OUTPUT},
    {'f', "format", "text|json|csv", OPTION_OWN(take_format, struct stats_options, table.format),
     "Write the tables in this format (nsys' column and table mean text); default: as the file's "
     "name ends: .json, .csv or DIR/, or else text",
     .in = HELP_OUTPUT},
    {'r', "report", "REPORT[,REPORT..]", OPTION_OWN(option_once, struct stats_options, reports),
     "Print these reports, as with nsys stats; all operands are then recordings",
     .word_at = report_name, .in = HELP_SHOW},
    {OPTIONS_OF(table_options, 0), .at = offsetof(struct stats_options, table)},
    {OPTIONS_OF(read_options, READ_JOBS | READ_PIECE | READ_CLOCK | READ_STEPS | READ_SYMBOLS |
                                  READ_STRICT | READ_KEEP_LIVE)},
    {0},
};

VERB_IS(stats, stats_verb_run, own_options,
        VERB_OWN(struct stats_options, .table = TABLE_OPTIONS_USUAL), TAKES_RECORDINGS | VERB_MORE,
        "REPORT[,REPORT..] DIR|FILE...",
        "print tables of the report, or one row per event, by their names in nsys stats",
        {PART_EXAMPLE, "gpuprof stats cuda_gpu_kern_sum data", "print the time of each kernel"},
        {PART_EXAMPLE, "gpuprof stats cuda_api_sum,nvtx_sum --format=csv data",
         "print two tables for a script"});
