/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/analyses.h"

#define ANALYSIS(info) &info,
static const struct sums_info *const analyses[] = {
#include "analyse/analyses.def"
};

void analyses_start(struct sums *sums, struct walk *walk, enum report_by by, bool groups,
                    unsigned leaves, uint64_t only, uint64_t *histogram_rows)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++) {
        enum report_by its = analyses[i]->table.by;
        if (analyses[i]->parts & leaves || (only && !(only >> i & 1)) ||
            (its != BY_NAME && its != by))
            continue;
        sums_init(&sums[i], analyses[i], walk, histogram_rows);
        sums[i].by = by;
        sums[i].groups = groups;
    }
}

_Static_assert(ANALYSES_COUNT <= 64, "each has a bit");

bool analyses_are_of_rows(uint64_t tables)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (tables >> i & 1 && !sums_is_of_rows(analyses[i]))
            return false;
    return tables;
}

unsigned analyses_find(const struct table_info *table)
{
    unsigned i = 0;
    while (i < ANALYSES_COUNT && &analyses[i]->table != table)
        i++;
    return i;
}

void analyses_consumers(struct sums *sums, struct resolver *resolver, struct consumer *consumers,
                        unsigned *count)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++) {
        if (sums[i].info)
            sums_read_rows(&sums[i], resolver);
        if (sums_has_consumer(&sums[i]))
            consumers[(*count)++] = sums_consumer(&sums[i]);
    }
}

int analyses_finish(struct sums *sums)
{
    int error = 0;
    for (unsigned i = 0; i < ANALYSES_COUNT && error == 0; i++)
        error = sums[i].info ? sums_finish(&sums[i]) : 0;
    return error;
}

void analyses_leave(struct sums *sums, unsigned leaves)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (analyses[i]->parts & leaves)
            sums[i].info = NULL;
}

void analyses_release(struct sums *sums)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        sums_release(&sums[i]);
}

void analyses_put(struct sums *sums, struct part *p)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (analyses[i]->table.by == BY_NAME)
            sums_put(&sums[i], p); /* no rows, if the table was not started */
}

void analyses_add(struct sums *sums, struct part *p)
{
    for (unsigned i = 0; i < ANALYSES_COUNT && !p->has_failed; i++)
        if (sums[i].info)
            sums_add(&sums[i], p);
}
