/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a table of sums, as its columns say (table.h, enum column_shows). */
#include <string.h>

#include "api/api.h"
#include "query/sums.h"
#include "read/process_title.h"

void sums_begin(struct table *t, enum report_format format)
{
    const struct sums *s = t->source;
    t->count = s && s->info ? s->count : 0;
    t->is_there = t->count || (s && s->info && format != FORMAT_TEXT);
}

/* The thread of a key, and its process. */
static const struct thread *find_thread(const struct sums *s, uint64_t key,
                                        const struct process **process)
{
    const struct recording *rec = s->rec;
    uint32_t index = (uint32_t)key, i = 0;
    while (i + 1 < rec->count &&
           index - rec->processes[i]->first_thread >= rec->processes[i]->threads.count)
        i++;
    *process = rec->processes[i];
    return (*process)->threads.threads[index - (*process)->first_thread];
}

static struct cell show_thread(const struct sums *s, uint64_t key, enum column_shows shows)
{
    char title[1200];
    const struct process *p;
    const struct thread *t = find_thread(s, key, &p);
    switch (shows) {
    case SHOWS_HOST: return cell_text(p->header.host);
    case SHOWS_PID: return cell_number(p->header.pid);
    case SHOWS_TID: return cell_number(t->tid);
    case SHOWS_THREAD: return cell_text(t->name);
    default: return cell_owned(strdup(thread_title(p, t, title, sizeof title)));
    }
}

static struct cell show_key(const struct sums *s, const struct sums_row *row, unsigned key)
{
    if (s->info->keys[key] == KEY_THREAD)
        return show_thread(s, row->keys[key], SHOWS_KEY);
    return cell_text(((const struct function *)(uintptr_t)row->keys[key])->name);
}

static struct cell show_quantile(const struct sums_row *row, const struct column *c, double part)
{
    uint64_t least = c->by ? row->values[c->by] : 0;
    return cell_number(histogram_quantile(row->durations, part, least, row->values[c->of]));
}

static struct cell show(const struct sums *s, const struct sums_row *row, const struct column *c)
{
    uint64_t of = c->shows > SHOWS_KEYS ? row->values[c->of] : 0;
    uint64_t by = c->shows > SHOWS_KEYS ? row->values[c->by] : 0;
    switch (c->shows) {
    case SHOWS_KEY: return show_key(s, row, c->of);
    case SHOWS_DOMAIN:
        return cell_text(
            api_domain_name(((const struct function *)(uintptr_t)row->keys[c->of])->domain));
    case SHOWS_VALUE: return cell_number(of);
    case SHOWS_MEAN: return cell_number(of / row->values[0]);
    case SHOWS_MEDIAN: return show_quantile(row, c, 0.5);
    case SHOWS_P95: return show_quantile(row, c, 0.95);
    case SHOWS_SHARE:
        return c->by && by && !of ? (struct cell){0} : cell_share(of, s->whole[c->of]);
    case SHOWS_RECORDED: return row->values[0] > of ? cell_number(of) : (struct cell){0};
    case SHOWS_KEYS:
    case SHOWS_NOTHING: return (struct cell){0};
    default: return show_thread(s, row->keys[c->of], c->shows);
    }
}

void sums_show(const struct table *t, uint32_t index, enum report_format format, struct cell *cells)
{
    const struct sums *s = t->source;
    const struct sums_row *row = &s->rows[index];
    bool is_estimated = s->info->recorded && row->values[0] > row->values[s->info->recorded];
    for (unsigned i = 0; i < t->info->column_count; i++) {
        const struct column *c = &t->info->columns[i];
        if (format == FORMAT_TEXT && c->where && !row->values[c->where])
            continue;
        cells[i] = show(s, row, c);
        cells[i].estimated = is_estimated && c->is_estimated;
    }
}
