/* SPDX-License-Identifier: Apache-2.0 */
/* Topics of help and the manual besides verbs. Their rows come from the tables in the code, or from
 * limits.def and json_keys.def. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "analyse/analyses.h"
#include "analyse/collectives.h"
#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/hang.h"
#include "analyse/idle.h"
#include "analyse/idle_ranks.h"
#include "analyse/idle_rows.h"
#include "analyse/library_report.h"
#include "analyse/op_report.h"
#include "analyse/source_report.h"
#include "analyse/step_report.h"
#include "analyse/thread_time.h"
#include "analyse/unfinished.h"
#include "base/file_at.h"
#include "base/text.h"
#include "base/workers.h"
#include "cli/help.h"
#include "clocks/host_clocks.h"
#include "diff/run_summary.h"
#include "output/output.h"
#include "page/page.h"
#include "record/losses.h"
#include "resolve/device_curve.h"
#include "resolve/device_sources.h"
#include "source/source_tree.h"

#define TOPIC_TEXT_BYTES 1536

/* ---- findings -------------------------------------------------------------------------------- */

static void finding_text(const struct finding_kind *kind, char text[TOPIC_TEXT_BYTES])
{
    char floor[UNIT_TEXT_BYTES], threshold[128] = "";
    if (kind->share)
        snprintf(
            threshold, sizeof threshold,
            "\nThreshold: more than %u %% of the time and more than %s (less if only a part of "
            "the run is recorded or selected).",
            kind->share, time_text(floor, kind->floor_ns));
    else if (kind->floor_ns)
        snprintf(threshold, sizeof threshold, "\nThreshold: more than %s.",
                 time_text(floor, kind->floor_ns));
    int length = snprintf(text, TOPIC_TEXT_BYTES, "%s\nMeasures: %s%s\nAdvice: %s\nNext: %s",
                          kind->title, kind->measures, threshold, kind->advice, kind->next);
    assert(length < TOPIC_TEXT_BYTES);
    (void)length;
}

static void each_finding(const struct topic_rows *rows)
{
    char text[TOPIC_TEXT_BYTES];
    for (unsigned i = 0; i < FINDING_KINDS; i++) {
        if (rows->column)
            finding_text(&finding_kinds[i], text);
        rows->item(finding_kinds[i].id, rows->column ? text : finding_kinds[i].title);
    }
}

bool help_finding(const char *name)
{
    char text[TOPIC_TEXT_BYTES];
    unsigned i = 0;
    while (i < FINDING_KINDS && strcmp(finding_kinds[i].id, name) != 0)
        i++;
    if (i == FINDING_KINDS)
        return false;
    finding_text(&finding_kinds[i], text);
    printf("usage: gpuprof report --table=findings ...\n\nfinding %s\n", name);
    print_wrapped(text, 0, 0);
    return true;
}

/* ---- other topics ---------------------------------------------------------------------------- */

static void each_table_of_all(const struct topic_rows *rows)
{
    for (const struct verb *const *verbs = rows->verbs; *verbs; verbs++)
        each_table(*verbs, rows->item, rows->column);
}

static void each_loss(const struct topic_rows *rows)
{
    for (unsigned i = 0; i < LOSS_COUNT; i++)
        rows->item(loss_info(i).key, loss_info(i).text);
}

static const char *const json_keys[][2] = {
#define JSON_KEY(key, meaning) {key, meaning},
#include "cli/json_keys.def"
};

static const char *const event_columns[][2] = {
#define EVENT_COLUMN(NAME, name, meaning) {#name, meaning},
#include "export/event_columns.def"
#undef EVENT_COLUMN
};

static const char *const statuses[][2] = {
    {"0", "everything that was recorded was read"},
    {"1", "input or output failed"},
    {"2", "a wrong option, a missing program, an empty selection, or no recording"},
    {"3", "something is damaged or may not be read, or, with --strict, something was lost; "
          "the rest was used"},
    {"run", "the status of the program"},
    {"diff", "1: worse; 3: inconclusive or not comparable"},
    {"doctor", "4: something is broken, so that nothing that matters would be recorded"},
    {"ctl", "1: a process did not answer, was past the step, or cannot do it; 2: none runs"},
};

static void each_nsys_report(const struct topic_rows *rows)
{
    static const char *const reports[][3] = {
#define STATS_REPORT(name, old_name, tables, by, note) {#name, tables, note},
#define STATS_TRACE(name, old_name, kinds, note)       {#name, "a row an event", note},
#include "export/stats_reports.def"
    };
    for (unsigned i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        char text[TOPIC_TEXT_BYTES];
        const char *table = reports[i][1], *note = reports[i][2];
        snprintf(text, sizeof text, "%s%s%s", *table ? table : "not here", *note ? ": " : "", note);
        rows->item(reports[i][0], text);
    }
}

static void each_limit(const struct topic_rows *rows)
{
    enum limit_unit { COUNT, BYTES, SECONDS };
    static const struct {
        enum limit_unit unit;
        uint64_t least, bytes, most;
        const char *name;
        const char *beyond;
    } limits[] = {
#define LIMIT(unit, most, name, beyond)           {unit, 0, 0, most, name, beyond},
#define GROWING(least, bytes, most, name, beyond) {COUNT, least, bytes, most, name, beyond},
#include "cli/limits.def"
    };
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char text[TOPIC_TEXT_BYTES], most[UNIT_TEXT_BYTES], least[UNIT_TEXT_BYTES];
        if (limits[i].unit == BYTES)
            bytes_text(most, limits[i].most);
        else
            count_text(most, limits[i].most);
        if (limits[i].bytes)
            snprintf(text, sizeof text,
                     "%s, and one for each %u byte%s of the files, at most %s. %s",
                     count_text(least, limits[i].least), (unsigned)limits[i].bytes,
                     plural_end(limits[i].bytes), most, limits[i].beyond);
        else
            snprintf(text, sizeof text, "%s%s. %s", most, limits[i].unit == SECONDS ? " s" : "",
                     limits[i].beyond);
        rows->item(limits[i].name, text);
    }
}

static void each_tuning(const struct topic_rows *rows)
{
    each_option(rows->verbs[0], HELP_TUNING, true, rows->item);
}

#define PAIRS(list) .pairs = (list), .pair_bytes = sizeof(list)

const struct topic topics[] = {
    {"tuning", "settings for run --tune NAME=VALUE",
     "They set how gpuprof itself works. The defaults suit most programs.", .each = each_tuning},
    {"tables", "tables of report and memory",
     "--table=NAME,NAME shows only these tables. 'gpuprof help TABLE' explains the columns.",
     .each = each_table_of_all},
    {"findings", "what report can find, and when it says so",
     "A finding is time or memory that a program can get back. Its costs are those of the device "
     "that loses most by it. They must exceed two thresholds: a share of the device's recorded "
     "time after start-up, and a minimum. If only a part of the run is recorded or selected, "
     "the minimum shrinks in proportion. 'gpuprof help FINDING' explains one.",
     .each = each_finding},
    {"losses", "what may be missing from a recording",
     "Each is a row of the table losses and a member of losses in the JSON.", .each = each_loss},
    {"json", "members of report --format=json",
     "Each table is a list of objects under its name; 'gpuprof help TABLE' has their members. "
     "Times are in nanoseconds: durations, or moments since the first event. null means unknown.",
     PAIRS(json_keys)},
    {"events", "columns of export to csv and JSON lines",
     "A row is an event. A column that an event does not have is empty, and left out in JSON.",
     PAIRS(event_columns)},
    {"nsys", "reports of nsys stats and the tables here",
     "'gpuprof stats REPORT DIR' prints the table by nsys' name.", .each = each_nsys_report},
    {"limits", "limits of the collector",
     "A line has the limit, and what happens beyond it. The limits of the recorded program are "
     "options of run: 'gpuprof help run'.",
     .each = each_limit},
    {"exit-status", "exit statuses of all commands", "", PAIRS(statuses)},
    {0}};

const struct topic *topic_find(const char *name)
{
    const struct topic *topic = topics;
    while (topic->name && strcmp(topic->name, name) != 0)
        topic++;
    return topic->name ? topic : NULL;
}

void topic_each(const struct topic *topic, const struct topic_rows *rows)
{
    if (topic->each)
        topic->each(rows);
    for (size_t i = 0; i < topic->pair_bytes / sizeof *topic->pairs; i++)
        rows->item(topic->pairs[i][0], topic->pairs[i][1]);
}
