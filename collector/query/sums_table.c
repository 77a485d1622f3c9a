/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the cells of a table of sums (table.h, enum column_shows). */
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "query/sums.h"
#include "read/process.h"

void sums_begin(struct table *t)
{
    const struct sums *s = t->source;
    t->count = s && s->info ? s->shown : 0;
    t->is_there = t->count || (s && s->info && t->format != FORMAT_TEXT && !s->info->is_left_out);
}

/* Returns the thread of a key, and its process. */
static const struct thread *find_thread(const struct sums *s, uint64_t key,
                                        const struct process **process)
{
    const struct recording *rec = s->rec;
    uint32_t index = (uint32_t)key, i = 0;
    while (i + 1 < rec->count &&
           index - rec->processes[i]->first_thread >= rec->processes[i]->threads.count)
        i++;
    *process = rec->processes[i];
    return process_thread(*process, index);
}

/* Shows a process (`t` is NULL), or one of its threads. */
static struct cell show_owner(const struct process *p, const struct thread *t,
                              enum column_shows shows)
{
    char title[1200];
    switch (shows) {
    case SHOWS_HOST: return cell_text(p->header.host);
    case SHOWS_PID: return cell_number(p->header.pid);
    case SHOWS_TID: return cell_number(t->tid);
    case SHOWS_THREAD: return cell_text(t->name);
    default:
        return cell_owned(memory_text(t ? thread_title(p, t, title, sizeof title)
                                        : process_title(p, true, title, sizeof title)));
    }
}

/* Shows a key, or a value that stands for one (SUMS_OF_VALUE). */
static struct cell show_key(const struct sums *s, const struct sums_row *row,
                            const struct column *c)
{
    char text[SUMS_NAME_BYTES];
    bool is_value = c->of >= SUMS_KEYS;
    enum sums_key kind = is_value ? s->info->is[c->of - SUMS_KEYS] : s->info->keys[c->of];
    uint64_t key = is_value ? row->values[c->of - SUMS_KEYS] : row->keys[c->of];
    const struct process *p;
    const struct thread *t;
    const char *name = is_value ? NULL : sums_name(s, row, c->of, text);
    if (c->shows == SHOWS_KEY && name)
        return name == text ? cell_owned(memory_text(text)) : cell_text(name);
    bool is_others = !is_value && sums_is_others(row);
    if (is_others && kind != KEY_TEXT)
        return (struct cell){0};
    switch (kind) {
    case KEY_DOMAIN: return cell_text(api_domain_name((uint8_t)key));
    case KEY_TEXT: return cell_text(is_others ? NULL : sums_shown(key));
    case KEY_THREAD: t = find_thread(s, key, &p); return show_owner(p, t, c->shows);
    case KEY_PROCESS: return show_owner(s->rec->processes[key], NULL, c->shows);
    default: return cell_number(key);
    }
}

static struct cell show_quantile(const struct sums_row *row, const struct column *c, double part)
{
    uint64_t least = c->by ? row->values[c->by] : 0;
    return cell_number(histogram_quantile(row->durations, part, least, row->values[c->of]));
}

/* Shows FLOPs, with the calls that have a number, of those that should. */
static struct cell show_flops(const uint64_t *values)
{
    struct cell cell = values[1] ? cell_number(values[0]) : (struct cell){.kind = CELL_NULL};
    cell.at_least = values[1] < values[2];
    return values[2] ? cell : (struct cell){0};
}

static struct cell sums_table_show(const struct sums *s, const struct sums_row *row,
                                   const struct column *c)
{
    uint64_t of = c->shows > SHOWS_KEYS ? row->values[c->of] : 0;
    uint64_t by = c->shows > SHOWS_KEYS ? row->values[c->by] : 0;
    switch (c->shows) {
    case SHOWS_VALUE: return cell_number(of);
    case SHOWS_MOMENT: return cell_number(of > s->begin_ns ? of - s->begin_ns : 0);
    case SHOWS_MEAN: return cell_number(by ? of / by : 0);
    case SHOWS_RATE: return cell_real(by ? (double)of / (double)by : 0);
    case SHOWS_MEDIAN: return show_quantile(row, c, 0.5);
    case SHOWS_P95: return show_quantile(row, c, 0.95);
    case SHOWS_SHARE:
        return c->by && by && !of ? (struct cell){0} : cell_share(of, s->whole[c->of]);
    case SHOWS_PART: return cell_share(of, *s->all);
    case SHOWS_FLOPS: return show_flops(&row->values[c->of]);
    case SHOWS_RECORDED: return row->values[0] > of ? cell_number(of) : (struct cell){0};
    case SHOWS_TEXT:
        return cell_text(sums_is_others(row) ? "(others)" : sums_shown(row->keys[c->of]));
    case SHOWS_KEYS:
    case SHOWS_NOTHING: return (struct cell){0};
    default: return show_key(s, row, c);
    }
}

void sums_show(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct sums *s = t->source;
    const struct sums_row *row = &s->rows[index];
    bool is_estimated = s->info->recorded && row->values[0] > row->values[s->info->recorded];
    for (unsigned i = 0; i < t->info->column_count; i++) {
        const struct column *c = &t->info->columns[i];
        if ((t->format == FORMAT_TEXT && c->where && !row->values[c->where]) ||
            (c->only && !row->values[c->only]))
            continue;
        cells[i] = sums_table_show(s, row, c);
        cells[i].estimated = is_estimated && c->is_estimated;
    }
    if (s->info->fill)
        s->info->fill(t, row, cells);
}
