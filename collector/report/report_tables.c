/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "analyse/cost_report.h"
#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/gpu_report.h"
#include "analyse/idle.h"
#include "analyse/library_report.h"
#include "analyse/op_report.h"
#include "analyse/rank_report.h"
#include "analyse/source_report.h"
#include "analyse/stack_report.h"
#include "analyse/step_report.h"
#include "base/message.h"
#include "base/text.h"
#include "report/part_report.h"

/* A declaration of analyses.def. */
struct table_list {
    const struct table_info *infos;
    unsigned count;
    const void *source;
    unsigned parts;
};

unsigned report_tables(const struct report *r, struct table *tables)
{
#define TABLES(...)    {__VA_ARGS__},
#define ANALYSIS(info) {&info.table, 1, &r->sums[ANALYSIS_##info], info.parts},
    const struct table_list lists[] = {
#include "analyse/analyses.def"
    };
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (unsigned k = 0; k < lists[i].count; k++) {
            const struct table_info *info = &lists[i].infos[k];
            assert(count < REPORT_TABLES_MAX);
            if (info->columns && !(r->missing & part_report_needs(info)))
                tables[count++] = (struct table){
                    .info = info, .source = lists[i].source, .parts = lists[i].parts};
        }
    return count;
}

/* Returns the table's position in --table, by its name or old name; UINT_MAX: not named. */
static unsigned request_of(const struct report_view *v, const struct table_info *info)
{
    unsigned old = word_in(v->tables, info->old_name), own = word_in(v->tables, info->name);
    return own < old ? own : old;
}

const struct table_info *report_table_at(unsigned index)
{
    static const struct report nothing; /* only the declarations are used */
    struct table tables[REPORT_TABLES_MAX];
    return index < report_tables(&nothing, tables) ? tables[index].info : NULL;
}

bool report_names(const struct report_view *v, const struct table_info *infos, unsigned count)
{
    bool any = false;
    for (unsigned i = 0; v->tables && i < count; i++)
        any |= request_of(v, &infos[i]) != UINT_MAX;
    return any;
}

unsigned report_leaves(const struct report_view *v, const struct recording *rec)
{
    static const struct report nothing; /* only the declarations are used */
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = report_tables(&nothing, tables), parts = 0;
    unsigned missing = report_parts_missing(rec);
    bool is_text = v->format == FORMAT_TEXT;
    if (is_text && !v->tables && !v->is_full)
        return missing | REPORT_UNSEEN | REPORT_HOST;
    if (v->tables && v->format == FORMAT_JSON) /* JSON has sums beside tables without rows */
        return 0;
    if (!v->tables || v->by != BY_NAME || !(is_text || v->format == FORMAT_CSV))
        return missing;
    for (unsigned i = 0; i < count; i++)
        parts |= report_names(v, tables[i].info, 1) ? tables[i].parts : 0;
    if (parts & REPORT_MAKERS)
        parts |= REPORT_LIBRARIES;
    return (REPORT_EVERYTHING & ~parts) | missing;
}

uint64_t report_only(const struct report_view *v)
{
    const struct table_info *info;
    uint64_t only = 0;
    if (!v->tables || (v->format != FORMAT_TEXT && v->format != FORMAT_CSV))
        return 0;
    for (unsigned i = 0; (info = report_table_at(i)); i++) {
        unsigned number = report_names(v, info, 1) ? analyses_find(info) : 64;
        if (number == ANALYSES_COUNT)
            return 0;
        only |= number < 64 ? UINT64_C(1) << number : 0;
    }
    return analyses_are_of_rows(only) ? only : 0;
}

unsigned report_needs(const struct report_view *v)
{
    const struct table_info *info;
    unsigned needs = !v->tables || v->format == FORMAT_HTML ? PART_ALL : 0;
    for (unsigned i = 0; (info = report_table_at(i)); i++)
        needs |= report_names(v, info, 1) ? part_report_needs(info) : 0;
    return v->format == FORMAT_JSON ? needs | PART_OVERVIEW : needs;
}

const struct table_info *report_not_in_parts(const struct report_view *v)
{
    const struct table_info *info;
    for (unsigned i = 0; (info = report_table_at(i)); i++)
        if (report_names(v, info, 1) && (info->by != BY_NAME || info == &step_changes_table ||
                                         (info >= step_tables && info < step_tables + STEP_TABLES)))
            return info;
    return NULL;
}

bool report_leaves_hangs(const struct report_view *v)
{
    return !(report_needs(v) & (PART_HANGS | PART_COLLECTIVES | PART_OVERVIEW));
}

/* Returns whether the table is shown. --by=stack shows its table alone, not among all others. */
bool report_wants(const struct report_view *v, const struct table_info *info,
                  enum report_format format)
{
    if (!info->key && format != FORMAT_CSV)
        return false; /* a part of every text and JSON in another form */
    if (v->tables)
        return report_names(v, info, 1);
    if (info->by != BY_NAME)
        return info->by == v->by;
    if (format != FORMAT_TEXT || info->place == PLACE_URGENT)
        return true;
    return v->by <= BY_RANGE && (v->is_full || info->place != PLACE_ASKED);
}

static unsigned text_rank(const struct report_view *v, const struct table_info *info)
{
    if (v->tables)
        return request_of(v, info);
    return info->place == PLACE_ASKED ? (unsigned)PLACES : info->place;
}

/* Sorts by insertion, which preserves the order of equal ranks. */
void report_tables_order(const struct report_view *v, struct table *tables, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        struct table moved = tables[i];
        unsigned k = i;
        for (; k > 0 && text_rank(v, tables[k - 1].info) > text_rank(v, moved.info); k--)
            tables[k] = tables[k - 1];
        tables[k] = moved;
    }
}

static enum exit_code check_table(const struct report_view *v, const char *word, size_t length)
{
    char text[NEAREST_TEXT_BYTES];
    struct nearest nearest = nearest_to(word, length);
    const struct table_info *info;
    for (unsigned i = 0; (info = report_table_at(i)); i++) {
        nearest_offer(&nearest, info->name);
        if (!word_is(word, length, info->name) &&
            !(info->old_name && word_is(word, length, info->old_name)))
            continue;
        if (info->by == BY_NAME || info->by == v->by)
            return EXIT_OK;
        return usage_error("report: the table %s needs --%s", info->name,
                           info->by == BY_STACK    ? "by=stack"
                           : info->by == BY_THREAD ? "by=thread"
                           : info->by == BY_SOURCE ? "source=DIR"
                                                   : "by=python-line");
    }
    return usage_error("report: unknown table '%.*s'%s; 'gpuprof help report' lists the tables",
                       (int)length, word, nearest_text(&nearest, "", text));
}

static enum exit_code check_sort(const struct report_view *v)
{
    const struct table_info *info, *infos[REPORT_TABLES_MAX];
    unsigned wanted = 0;
    for (unsigned i = 0; (info = report_table_at(i)); i++) {
        if (!report_wants(v, info, v->format))
            continue;
        if (table_column(info, v->how.sort) >= 0)
            return EXIT_OK;
        infos[wanted++] = info;
    }
    return table_sort_unknown("report", v->how.sort, infos, wanted);
}

enum exit_code report_view_check(const struct report_view *v)
{
    for (const char *word = v->tables; word;) {
        size_t length = strcspn(word, ",");
        enum exit_code code = check_table(v, word, length);
        if (code != EXIT_OK)
            return code;
        word = word[length] ? word + length + 1 : NULL;
    }
    return v->how.sort ? check_sort(v) : EXIT_OK;
}
