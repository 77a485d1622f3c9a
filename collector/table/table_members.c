/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the cells of a table whose rows are structs in a list (enum column_from). */
#include <string.h>

#include "read/process.h"
#include "table/table.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number's low bytes come first");

static const char *source_of(const struct table *t)
{
    return t->info->rows.of ? t->info->rows.of(t) : t->source;
}

const void *table_item(const struct table *t, uint32_t index)
{
    const struct table_rows *rows = &t->info->rows;
    const char *list = source_of(t) + rows->list;
    if (!rows->is_inside)
        memcpy(&list, list, sizeof list);
    return list + (size_t)index * rows->bytes;
}

void members_begin(struct table *t, enum report_format format)
{
    const char *source = source_of(t);
    if (source)
        memcpy(&t->count, source + t->info->rows.count, sizeof t->count);
    t->is_there = t->count || format != FORMAT_TEXT;
}

bool members_foot(const struct table *t, struct cell *cells)
{
    uint64_t total;
    uint32_t count;
    if (!t->info->rows.total)
        return false;
    memcpy(&total, source_of(t) + t->info->rows.total, sizeof total);
    memcpy(&count, source_of(t) + t->info->rows.count, sizeof count);
    if (total > count)
        cells[0] = cell_more(total - count);
    return total > count;
}

static struct cell show_member(const struct column *c, const char *member)
{
    const char *text;
    uint64_t number = 0;
    if (c->type <= COLUMN_LINES || c->type >= COLUMN_JSON) {
        if (c->bytes == sizeof text)
            memcpy(&text, member, sizeof text);
        else
            text = member; /* an array inside the struct */
        return text || c->lacks != LACKS_ZERO ? cell_text(text) : (struct cell){0};
    }
    memcpy(&number, member, c->bytes);
    uint64_t none = c->lacks == LACKS_MAX ? UINT64_MAX >> (64 - 8 * c->bytes) : 0;
    return c->lacks && number == none ? (struct cell){0} : cell_number(number);
}

static struct cell show_share(const char *part, const char *whole)
{
    uint64_t a, b;
    memcpy(&a, part, sizeof a);
    memcpy(&b, whole, sizeof b);
    return cell_share(a, b);
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
    case FROM_SHARE: return show_share(item + c->at, item + c->to);
    case FROM_POINTER:
        return pointer ? show_member(c, (const char *)pointer + c->to) : (struct cell){0};
    case FROM_HOST: return cell_text(p ? p->header.host : NULL);
    case FROM_RANK: return cell_text(p ? process_rank(p) : NULL);
    case FROM_JOB: return p && p->is_of_several ? cell_number(p->job) : (struct cell){0};
    case FROM_PID: return p ? cell_number(p->header.pid) : (struct cell){0};
    }
    return (struct cell){0};
}

void members_show(const struct table *t, uint32_t index, struct cell *cells)
{
    const char *item = table_item(t, index);
    for (unsigned i = 0; i < t->info->column_count; i++)
        cells[i] = table_members_show(&t->info->columns[i], item);
}
