/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs `report`, `memory` and `diff`, which write a page, too. */

#include "base/message.h"
#include "base/options.h"
#include "diff/diff_verb.h"
#include "output/verb_output.h"
#include "page/page.h"
#include "report/report_verb.h"

static bool is_named_page(const struct options *options)
{
    return options->format == FORMAT_BY_NAME &&
           (verb_output_is(options->output, "html") || verb_output_is(options->output, "htm"));
}

/* Its sections draw what many tables have, of all rows. */
static bool wants_some(const struct options *options)
{
    return options->tables || options->sort || options->limit != ROWS_UNLIMITED;
}

enum exit_code page_verb(const struct options *options)
{
    if ((options->format == FORMAT_HTML || is_named_page(options)) && wants_some(options))
        return usage_error("report: a page has all tables, which it sorts and filters: leave "
                           "--table, --sort and --limit out");
    return report_verb(options, page_write);
}

enum exit_code memory_page_verb(const struct options *options)
{
    if (!is_named_page(options))
        return memory_verb(options);
    if (wants_some(options) || options->is_full || options->memory_at != MEMORY_AT_PEAK ||
        options->memory_by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a page has all tables, which it sorts and filters: leave "
                           "--table, --sort, --limit, --full, --by and --at out",
                           options->output);
    return page_verb(options);
}

enum exit_code diff_page_verb(const struct options *options)
{
    return diff_verb(options, page_write_comparison);
}
