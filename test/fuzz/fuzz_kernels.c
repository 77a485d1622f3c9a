/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_kernels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diff/comparison.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void add_line(struct run_kernels *sides, char *line)
{
    struct run_kernel kernel = {.texts = {line + 1}, .count = 1};
    for (unsigned i = 1; i < RUN_TEXTS; i++) {
        char *tab = strchr(kernel.texts[i - 1], '\t');
        if (!tab)
            break;
        *tab = '\0';
        kernel.texts[i] = tab + 1;
    }
    for (unsigned i = 1; i < RUN_TEXTS; i++)
        if (kernel.texts[i] && !*kernel.texts[i])
            kernel.texts[i] = NULL;
    kernel.ns = strlen(kernel.texts[RUN_NAME]);
    run_kernel_add(&sides[*line == '>'], &kernel);
}

static bool is_kind_of(const struct match_row *row, uint32_t base, uint32_t other)
{
    switch (row->kind) {
    case MATCH_SAME: return base > 0 && other > 0 && row->by;
    case MATCH_RENAMED: return base == 1 && other == 1;
    case MATCH_FUSED: return base > other && other > 0;
    case MATCH_SPLIT: return base < other && base > 0;
    case MATCH_REPLACED: return base == other && base > 1;
    case MATCH_NEW: return base == 0 && other == 1;
    case MATCH_SELDOM: return base + other == 1;
    default: return base == 1 && other == 0;
    }
}

/* What is in the rows of each kind. Together they have each name, launch and nanosecond once. */
static void check_rows(const struct kernel_match *m, uint32_t kinds[MATCH_KINDS])
{
    for (unsigned side = 0; side < MATCH_SIDES; side++) {
        uint64_t names = 0, count = 0, ns = 0;
        for (uint32_t r = 0; r < m->count; r++) {
            names += m->rows[r].side[side].names;
            count += m->rows[r].side[side].count;
            ns += m->rows[r].side[side].ns;
            check(!m->rows[r].side[side].name == !m->rows[r].side[side].names);
        }
        for (uint32_t i = 0; i < m->sides[side]->count; i++) {
            const struct run_kernel *k = &m->sides[side]->list[i];
            names -= i == 0 || strcmp(k[-1].texts[RUN_NAME], k->texts[RUN_NAME]) != 0;
            count -= k->count;
            ns -= k->ns;
        }
        check(!names && !count && !ns);
    }
    for (uint32_t r = 0; r < m->count; r++) {
        const struct match_row *row = &m->rows[r];
        check(is_kind_of(row, row->side[MATCH_BASE].names, row->side[MATCH_OTHER].names));
        kinds[row->kind]++;
    }
}

void fuzz_kernels(const uint8_t *data, size_t size)
{
    struct run_kernels sides[MATCH_SIDES] = {{.steps = 0}};
    struct kernel_match match, swapped;
    uint32_t kinds[MATCH_KINDS] = {0}, others[MATCH_KINDS] = {0};
    char *text = strndup((const char *)data, size);
    check(text != NULL);
    for (char *next = text, *line; (line = strsep(&next, "\n"));)
        if (*line && line[1])
            add_line(sides, line);
    for (unsigned i = 0; i < MATCH_SIDES; i++)
        run_kernels_order(&sides[i]);
    kernel_match_make(&match, &sides[0], &sides[1]);
    kernel_match_make(&swapped, &sides[1], &sides[0]);
    check_rows(&match, kinds);
    check_rows(&swapped, others);
    for (unsigned i = 0; i < MATCH_KINDS; i++) {
        static const uint8_t mirrored[MATCH_KINDS] = {MATCH_SAME,  MATCH_RENAMED,  MATCH_SPLIT,
                                                      MATCH_FUSED, MATCH_REPLACED, MATCH_GONE,
                                                      MATCH_NEW,   MATCH_SELDOM};
        check(kinds[i] == others[mirrored[i]]);
    }
    kernel_match_release(&match);
    kernel_match_release(&swapped);
    run_kernels_release(&sides[0]);
    run_kernels_release(&sides[1]);
    free(text);
}
