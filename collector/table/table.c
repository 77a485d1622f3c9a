/* SPDX-License-Identifier: Apache-2.0 */
#include "table/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "read/process.h"
#include "table/screen.h"

#define SORT_NAMES_BYTES 3800 /* bytes of a message */

const struct option table_options[] = {
    {0, "sort", "COLUMN", OPTION_TEXT(struct table_options, sort),
     "Sort by this column, named as in the text or the JSON: numbers in descending order; names, "
     "processes and times in ascending order",
     .parts = TABLE_ROWS, .in = HELP_SHOW},
    {0, "limit", "N",
     OPTION_NUMBER(struct table_options, limit, UINT64_MAX, "is not a number of rows"),
     "Show at most N rows of each table, and the number of rows left out", .parts = TABLE_ROWS,
     .in = HELP_SHOW},
    {0, "full", NULL, OPTION_FLAG(struct table_options, is_full),
     "Show all tables with all rows and columns and whole names, wider than the terminal if needed",
     .parts = TABLE_ROWS, .in = HELP_SHOW},
    {0, "color", "auto|always|never", OPTION_OWN(option_choice, struct table_options, colour),
     "Print headings in bold and problems in red; auto: on a terminal, unless NO_COLOR is set",
     .parts = TABLE_COLOUR, .in = HELP_OUTPUT | HELP_MORE},
    {0},
};

enum exit_code table_output_check(const char *verb, enum report_format format, const char *output)
{
    struct stat status;
    bool is_folder = output && stat(output, &status) == 0 && S_ISDIR(status.st_mode);
    return is_folder && format != FORMAT_CSV
               ? usage_error("%s: %s: is a folder; name a file in it, or give --format=csv, which "
                             "writes one file per table there",
                             verb, output)
               : EXIT_OK;
}

struct table_view table_view_of(const struct table_options *o, const char *output, uint32_t rows)
{
    bool is_file = output && strcmp(output, "-") != 0;
    return (struct table_view){
        .sort = o->sort,
        .limit = o->limit,
        .rows = o->is_full || o->names ? 0 : rows,
        .width = o->is_full || is_file ? 0 : terminal_width(STDOUT_FILENO),
        .is_named = o->names != NULL,
        .has_colour = o->colour == COLOUR_ALWAYS ||
                      (o->colour == COLOUR_AUTO && !is_file && terminal_has_colour(STDOUT_FILENO))};
}

struct cell cell_number(uint64_t number)
{
    return (struct cell){.kind = CELL_NUMBER, .number = number};
}

struct cell cell_known(bool is_known, uint64_t number)
{
    return is_known ? cell_number(number) : (struct cell){.kind = CELL_NULL};
}

struct cell cell_real(double real)
{
    return (struct cell){.kind = CELL_REAL, .real = real};
}

struct cell cell_share(uint64_t part, uint64_t whole)
{
    return cell_real(whole ? (double)part / (double)whole : 0);
}

struct cell cell_text(const char *text)
{
    return (struct cell){.kind = text ? CELL_TEXT : CELL_NULL, .text = text};
}

struct cell cell_owned(char *text)
{
    return (struct cell){.kind = CELL_TEXT, .text = text ? text : "?", .memory = text};
}

struct cell cell_printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = text_vprintf(format, list);
    va_end(list);
    return cell_owned(text);
}

struct cell cell_more(uint64_t count)
{
    char number[UNIT_TEXT_BYTES];
    return cell_printf("... and %s more", count_text(number, count));
}

void cells_release(struct cell cells[static TABLE_COLUMNS_MAX])
{
    for (unsigned i = 0; i < TABLE_COLUMNS_MAX; i++)
        free(cells[i].memory);
}

/* ---- rows of members ------------------------------------------------------------------------- */

/* Fills the cells of a table whose rows are structs in a list (enum column_from). */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number's low bytes come first");

static const char *source_of(const struct table *t)
{
    return t->info->rows.of ? t->info->rows.of(t) : t->source;
}

static uint64_t number_at(const char *member, size_t bytes)
{
    uint64_t number = 0;
    memcpy(&number, member, bytes);
    return number;
}

const void *table_item(const struct table *t, uint32_t index)
{
    const struct table_rows *rows = &t->info->rows;
    const char *list = source_of(t) + rows->list;
    if (!rows->is_inside)
        memcpy(&list, list, sizeof list);
    return list + (size_t)index * rows->bytes;
}

void members_begin(struct table *t)
{
    const char *source = source_of(t);
    if (source)
        t->count = (uint32_t)number_at(source + t->info->rows.count, sizeof t->count);
    t->is_there = t->count || t->format != FORMAT_TEXT;
}

static bool members_foot(const struct table *t, struct cell *cells)
{
    if (!t->info->rows.total)
        return false;
    uint64_t total = number_at(source_of(t) + t->info->rows.total, sizeof total);
    uint64_t count = number_at(source_of(t) + t->info->rows.count, sizeof t->count);
    if (total > count)
        cells[0] = cell_more(total - count);
    return total > count;
}

static struct cell show_member(const struct column *c, const char *member)
{
    const char *text;
    if (c->type <= COLUMN_LINES || c->type >= COLUMN_JSON) {
        if (c->bytes == sizeof text)
            memcpy(&text, member, sizeof text);
        else
            text = member; /* an array inside the struct */
        return text || c->lacks != LACKS_ZERO ? cell_text(text) : (struct cell){0};
    }
    uint64_t number = number_at(member, c->bytes);
    uint64_t none = c->lacks == LACKS_MAX ? UINT64_MAX >> (64 - 8 * c->bytes) : 0;
    return c->lacks && number == none ? (struct cell){0} : cell_number(number);
}

static struct cell table_members_show(const struct column *c, const char *item)
{
    const void *pointer = NULL;
    if (c->from >= FROM_HOST || c->from == FROM_POINTER)
        memcpy(&pointer, item + c->at, sizeof pointer);
    const struct process *p = pointer;
    switch (c->from) {
    case FROM_TABLE: return (struct cell){0};
    case FROM_MEMBER: return show_member(c, item + c->at);
    case FROM_SHARE:
        return cell_share(number_at(item + c->at, sizeof(uint64_t)),
                          number_at(item + c->to, sizeof(uint64_t)));
    case FROM_POINTER:
        return pointer ? show_member(c, (const char *)pointer + c->to) : (struct cell){0};
    case FROM_HOST: return cell_text(p ? p->header.host : NULL);
    case FROM_RANK: return cell_text(p ? process_rank(p) : NULL);
    case FROM_JOB: return p && p->is_of_several ? cell_number(p->job) : (struct cell){0};
    case FROM_PID: return p ? cell_number(p->header.pid) : (struct cell){0};
    }
    return (struct cell){0};
}

void members_show(const struct table *t, const void *item, struct cell *cells)
{
    for (unsigned i = 0; i < t->info->column_count; i++)
        if (!(t->without >> i & 1))
            cells[i] = table_members_show(&t->info->columns[i], item);
}

/* ---- sorting and limits ---------------------------------------------------------------------- */

/* Returns true if the key matches, also without its unit: "total" for "total_ns". */
static bool is_key(const char *key, const char *name)
{
    size_t length = strlen(name);
    return key && strncmp(key, name, length) == 0 &&
           (!key[length] || strcmp(key + length, "_ns") == 0 ||
            strcmp(key + length, "_bytes") == 0);
}

int table_column(const struct table_info *info, const char *name)
{
    int found = -1;
    for (int i = 0; i < info->column_count; i++) {
        const struct column *c = &info->columns[i];
        if (c->type == COLUMN_LINES || c->type == COLUMN_LIST)
            continue;
        if ((c->key && strcmp(c->key, name) == 0) || (c->label && strcmp(c->label, name) == 0))
            return i;
        if (found < 0 && is_key(c->key, name))
            found = i;
    }
    return found;
}

enum exit_code table_sort_check(const char *verb, const char *name,
                                const struct table_info *const *infos, unsigned count)
{
    char names[SORT_NAMES_BYTES] = "", text[NEAREST_TEXT_BYTES];
    size_t length = 0;
    for (unsigned i = 0; name && i < count; i++)
        if (table_column(infos[i], name) >= 0)
            return EXIT_OK;
    if (!name)
        return EXIT_OK;
    struct nearest nearest = nearest_to(name, strlen(name));
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < infos[i]->column_count && length < sizeof names; k++) {
            const char *key = infos[i]->columns[k].key;
            if (!key || table_column(infos[i], key) < 0 || word_in(names, key) != UINT_MAX)
                continue;
            nearest_offer(&nearest, key);
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                       length ? ", " : "", key);
        }
    return usage_error("%s: no selected table has a column '%s'%s; the columns are: %s", verb, name,
                       nearest_text(&nearest, "", text), names);
}

struct sort_item {
    struct cell cell;
    uint32_t index;
    bool ascending;
};

/* Equal rows keep their order. Cells that are not numbers come last in a numeric column. */
static int compare_items(const void *left, const void *right)
{
    const struct sort_item *a = left;
    const struct sort_item *b = right;
    int order = (a->cell.kind > CELL_NULL) - (b->cell.kind > CELL_NULL);
    if (order)
        return -order;
    if (a->cell.kind == CELL_TEXT && b->cell.kind == CELL_TEXT)
        order = strcmp(a->cell.text, b->cell.text);
    else if (a->cell.real != b->cell.real) /* 0 in all other cells */
        order = a->cell.real < b->cell.real ? -1 : 1;
    else
        order = (a->cell.number > b->cell.number) - (a->cell.number < b->cell.number);
    if (order)
        return a->ascending ? order : -order;
    return (a->index > b->index) - (a->index < b->index);
}

static void table_fill(const struct table *t, uint32_t index, struct cell *cells)
{
    if (t->info->rows.bytes)
        members_show(t, table_item(t, index), cells);
    if (t->info->row)
        t->info->row(t, index, cells);
}

static void hide_zeros(const struct table_info *info, struct cell *cells)
{
    for (unsigned i = 0; i < info->column_count; i++)
        if (info->columns[i].hides_zero && cells[i].kind == CELL_NUMBER && !cells[i].number)
            cells[i] = (struct cell){0};
}

static void sort_rows(struct table *t, int column)
{
    const struct column *c = &t->info->columns[column];
    struct sort_item *items = memory_new(t->rows + 1u, sizeof *items);
    for (uint32_t i = 0; i < t->rows; i++) {
        struct cell cells[TABLE_COLUMNS_MAX] = {{0}};
        table_fill(t, t->order[i], cells);
        bool is_text = c->type == COLUMN_TEXT || c->type == COLUMN_JSON;
        items[i] = (struct sort_item){cells[column], i, c->ascending || is_text};
        cells[column].memory = NULL;
        cells_release(cells);
    }
    qsort(items, t->rows, sizeof *items, compare_items);
    /* Items become positions in the current order, so it can be replaced. */
    for (uint32_t i = 0; i < t->rows; i++)
        items[i].index = t->order[items[i].index];
    for (uint32_t i = 0; i < t->rows; i++) {
        t->order[i] = items[i].index;
        free(items[i].cell.memory);
    }
    free(items);
}

bool table_is_short(const struct table_info *info, const struct table_view *view)
{
    return view->limit == ROWS_UNLIMITED && view->rows && info->by == BY_NAME &&
           (!info->text_limit || view->rows <= info->text_limit);
}

static uint64_t rows_max(const struct table_info *info, const struct table_view *view,
                         enum report_format format)
{
    if (info->is_summary)
        return ROWS_UNLIMITED;
    if (format == FORMAT_TEXT && table_is_short(info, view))
        return view->rows;
    bool is_own = format == FORMAT_TEXT && info->text_limit;
    return is_own && view->limit == ROWS_UNLIMITED ? info->text_limit : view->limit;
}

void table_begin(struct table *t, const struct table_view *view, enum report_format format)
{
    *t = (struct table){.info = t->info, .source = t->source, .format = format};
    if (t->info->begin)
        t->info->begin(t);
    else
        members_begin(t);
    t->order = memory_new(t->count + 1u, sizeof *t->order);
    for (uint32_t i = 0; i < t->count; i++)
        if (!t->info->has || t->info->has(t, i))
            t->order[t->rows++] = i;
    if (format == FORMAT_TEXT && !t->info->begin)
        t->is_there = t->rows > 0; /* members that text leaves out are no table */
    uint64_t limit = rows_max(t->info, view, format);
    t->shown = limit < t->rows ? (uint32_t)limit : t->rows;
    int column = view->sort && !t->info->is_summary ? table_column(t->info, view->sort) : -1;
    if (column < 0 && t->info->order)
        column = t->info->order;
    if (column >= 0)
        sort_rows(t, column);
}

void table_end(struct table *t)
{
    free(t->order);
    t->order = NULL;
}

bool table_row(const struct table *t, uint32_t place, struct cell cells[static TABLE_COLUMNS_MAX])
{
    memset(cells, 0, TABLE_COLUMNS_MAX * sizeof *cells);
    bool is_there = true;
    if (place < t->shown)
        table_fill(t, t->order[place], cells);
    else if (t->format == FORMAT_TEXT)
        is_there = t->info->foot ? t->info->foot(t, cells) : members_foot(t, cells);
    else
        return false;
    if (t->format == FORMAT_TEXT)
        hide_zeros(t->info, cells);
    return is_there;
}
