/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs `report`, `memory` and `diff`, which can also write a page. */

#include "base/message.h"
#include "diff/comparison.h"
#include "memory/memory_report.h"
#include "page/page.h"
#include "report/report.h"

static bool is_page(const struct table_options *table, const char *output)
{
    return table->format == FORMAT_HTML ||
           (table->format == FORMAT_BY_NAME &&
            (verb_output_is(output, "html") || verb_output_is(output, "htm")));
}

/* Returns whether an option restricts tables: sections of a page need all rows. */
static bool wants_some(const struct table_options *table)
{
    return table->names || table->sort || table->limit != ROWS_UNLIMITED;
}

static enum exit_code report(const struct options *options)
{
    const struct report_options *own = options->own;
    if (is_page(&own->table, options->output) && wants_some(&own->table))
        return usage_error("report: a page has all tables, and sorts and filters them itself; "
                           "leave out --table, --sort and --limit");
    return report_run(options, page_write);
}

static enum exit_code memory(const struct options *options)
{
    const struct memory_options *own = options->own;
    const struct report_options of_page = {.table = own->table};
    struct options of_report = *options;
    if (!is_page(&own->table, options->output))
        return memory_run(options);
    if (wants_some(&own->table) || own->table.is_full || own->at != MEMORY_AT_PEAK ||
        own->by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a page has all tables, and sorts and filters them itself; "
                           "leave out --table, --sort, --limit, --full, --by and --at",
                           options->output);
    of_report.own = &of_page;
    return report_run(&of_report, page_write);
}

static enum exit_code diff(const struct options *options)
{
    return diff_run(options, page_write_comparison);
}

VERB_IS(report, report, report_options,
        VERB_OWN(struct report_options, .table = TABLE_OPTIONS_USUAL),
        TAKES_RECORDINGS | TAKES_PARTS, "DIR|FILE...",
        "show where the time went, what to change first, and tables",
        {PART_EXAMPLE, "gpuprof report data",
         "show where the time went, then the most important tables"},
        {PART_EXAMPLE, "gpuprof report data --table=cuda_gpu_kern_sum --sort=max --limit=10",
         "show the ten kernels with the slowest single launch"},
        {PART_EXAMPLE, "gpuprof report data --by=python-line",
         "show the Python lines that made the slow calls"},
        {PART_EXAMPLE, "gpuprof report data -o page.html", "write a page for a browser"});

VERB_IS(memory, memory, memory_options, VERB_OWN(struct memory_options, MEMORY_OPTIONS_USUAL),
        TAKES_RECORDINGS, "DIR|FILE...", "show who held device memory, and what grows",
        {PART_EXAMPLE, "gpuprof memory data --by=python-line",
         "show the Python lines that held memory at each device's peak"},
        {PART_EXAMPLE, "gpuprof memory data -o memory.html",
         "write a page with memory over time and its owners at the peak"},
        {PART_EXAMPLE, "gpuprof memory data -o snapshot.pickle",
         "write a snapshot for pytorch.org/memory_viz"},
        {PART_EXAMPLE, "gpuprof memory data --at=end --table=owners",
         "show memory that was never released"});

VERB_IS(diff, diff, diff_options, VERB_OWN(struct diff_options, DIFF_OPTIONS_USUAL),
        TAKES_RECORDINGS | TAKES_PARTS, "NEW... --against OLD...",
        "compare runs, and fail if they became slower or use more",
        {PART_EXAMPLE, "gpuprof diff new? --against old? --gate=3%",
         "compare recordings; exit with status 1 if the new ones are worse by 3 %"},
        {PART_EXAMPLE, "gpuprof diff new? --against main -o diff.txt -o diff.xml -o diff.json",
         "compare with the baseline 'main', and write a text, a JUnit file and JSON"},
        {PART_EXAMPLE, "gpuprof diff --save main run?",
         "save runs as the baseline 'main', in .gpuprof/baselines/main.json"},
        {PART_VARIABLE, "GITHUB_SHA, CI_COMMIT_SHA, GIT_COMMIT",
         "the commit to save with a baseline"},
        {PART_STATUS, "0",
         "no regression found, and one of the gate's size would have been; or --inconclusive=pass"},
        {PART_STATUS, "1", "a regression"},
        {PART_STATUS, "2", "a wrong option, nothing to read, or input or output failed"},
        {PART_STATUS, "3",
         "inconclusive: too few runs, too much noise; or not comparable: other machines, losses"});
