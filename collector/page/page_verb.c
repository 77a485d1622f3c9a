/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page_verb.h"

#include "base/message.h"
#include "diff/diff_verb.h"
#include "memory/memory_verb.h"
#include "output/verb_output.h"
#include "page/page.h"
#include "report/report_verb.h"

enum exit_code page_verb(const struct options *options)
{
    return report_verb(options, page_write);
}

enum exit_code memory_page_verb(const struct options *options)
{
    if (options->format != FORMAT_BY_NAME ||
        !(verb_output_is(options->output, "html") || verb_output_is(options->output, "htm")))
        return memory_verb(options);
    if (options->tables || options->sort || options->limit != ROWS_UNLIMITED || options->is_full ||
        options->memory_at != MEMORY_AT_PEAK || options->memory_by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a page has all tables, which it sorts and filters: leave "
                           "--table, --sort, --limit, --full, --by and --at out",
                           options->output);
    return page_verb(options);
}

enum exit_code diff_page_verb(const struct options *options)
{
    return diff_verb(options, page_write_comparison);
}
