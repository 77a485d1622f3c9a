/* SPDX-License-Identifier: Apache-2.0 */
#include "run_sort.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define LEVELS_MAX 17 /* bits of 2 * RUN_SORT_MAX */
#define PILES_MAX  64

struct sort {
    const uint64_t *first;
    const uint64_t *second;
    uint16_t *order;
    uint16_t *room;
    uint64_t moves;
};

struct run {
    uint32_t begin;
    int level; /* level of the merge with the run before it: the higher, the later */
};

static inline bool run_sort_is_before(const struct sort *s, uint32_t a, uint32_t b)
{
    uint64_t x = s->first[a], y = s->first[b];
    /*
     * Equal items are rare; which one is smaller cannot be predicted, so there is no branch for it.
     */
    if (__builtin_expect(x == y, 0))
        return s->second[a] < s->second[b];
    return x < y;
}

/* Counts the runs in the input, up to `most`. */
static uint32_t count_runs(const struct sort *s, uint32_t count, uint32_t most)
{
    uint32_t runs = 1;
    for (uint32_t i = 1; i < count && runs < most; i++)
        runs += run_sort_is_before(s, i, i - 1);
    return runs;
}

/* Checks the order that run_sort has made. */
static inline bool is_sorted(const struct sort *s, uint32_t count)
{
    uint32_t i = 1;
    while (i < count && !run_sort_is_before(s, s->order[i], s->order[i - 1]) &&
           (s->order[i - 1] < s->order[i] || run_sort_is_before(s, s->order[i - 1], s->order[i])))
        i++;
    return i >= count;
}

/* Returns the first pile whose last item is not after `item`: the last items decrease from pile to
 * pile. */
static uint32_t pile_of(const struct sort *s, const uint16_t *lasts, uint32_t count, uint32_t item)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (run_sort_is_before(s, item, lasts[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Separates interleaved sequences: each item goes to the first pile whose last item it may follow.
 * Of two equal items the earlier one is never in a later pile. If that needs too many piles, the
 * order is unchanged.
 */
static void deal(struct sort *s, uint32_t count)
{
    uint16_t lasts[PILES_MAX];
    uint32_t ends[PILES_MAX + 1] = {0};
    uint32_t piles = 0, pile = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_next = pile < piles && !run_sort_is_before(s, i, lasts[pile]) &&
                       (pile == 0 || run_sort_is_before(s, i, lasts[pile - 1]));
        if (!is_next)
            pile = pile_of(s, lasts, piles, i);
        if (pile == PILES_MAX)
            return;
        piles += pile == piles;
        lasts[pile] = (uint16_t)i;
        s->room[i] = (uint16_t)pile;
        ends[pile + 1]++;
    }
    for (uint32_t i = 0; i < piles; i++)
        ends[i + 1] += ends[i];
    for (uint32_t i = 0; i < count; i++)
        s->order[ends[s->room[i]]++] = (uint16_t)i;
    s->moves += count;
}

static uint32_t run_end(const struct sort *s, uint32_t begin, uint32_t count)
{
    uint32_t end = begin + 1;
    while (end < count && !run_sort_is_before(s, s->order[end], s->order[end - 1]))
        end++;
    return end;
}

/* Returns where `item` belongs in order[begin .. end): before its equals, or after them. */
static uint32_t run_sort_place_of(const struct sort *s, uint32_t begin, uint32_t end, uint16_t item,
                                  bool is_behind)
{
    while (begin < end) {
        uint32_t middle = (begin + end) / 2;
        if (is_behind ? !run_sort_is_before(s, item, s->order[middle])
                      : run_sort_is_before(s, s->order[middle], item))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Merges the runs order[begin .. middle) and order[middle .. end), from both ends towards the
 * middle: each step waits for its loads, and two independent steps take hardly longer than one. */
static void run_sort_merge(struct sort *s, uint32_t begin, uint32_t middle, uint32_t end)
{
    uint16_t *order = s->order;
    begin = run_sort_place_of(s, begin, middle, order[middle], true);
    end = run_sort_place_of(s, middle, end, order[middle - 1], false);
    const uint16_t *left = s->room, *left_end = left + (middle - begin);
    const uint16_t *right = left_end, *right_end = right + (end - middle);
    memcpy(s->room, order + begin, (end - begin) * sizeof *order);
    s->moves += end - begin;
    while (left < left_end && right < right_end) {
        bool takes_right = run_sort_is_before(s, *right, *left);
        order[begin++] = takes_right ? *right : *left;
        right += takes_right;
        left += !takes_right;
        if (left == left_end || right == right_end)
            break;
        bool takes_left = run_sort_is_before(s, right_end[-1], left_end[-1]);
        order[--end] = takes_left ? left_end[-1] : right_end[-1];
        left_end -= takes_left;
        right_end -= !takes_left;
    }
    /* One of the runs is used up. */
    memcpy(order + begin, left, (size_t)(left_end - left) * sizeof *order);
    memcpy(order + begin, right, (size_t)(right_end - right) * sizeof *order);
}

uint64_t run_sort(const uint64_t *first, const uint64_t *second, uint32_t count, uint16_t *order,
                  uint16_t *room)
{
    struct sort s = {first, second, order, room, 0};
    struct run runs[LEVELS_MAX + 1];
    uint32_t depth = 0, begin = 0, end = 0, last = 0;
    assert(count <= RUN_SORT_MAX);
    uint32_t come = count_runs(&s, count, PILES_MAX);
    if (come == 1)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        order[i] = (uint16_t)i;
    if (come == PILES_MAX)
        deal(&s, count);
    for (; begin < count; last = begin, begin = end) {
        end = run_end(&s, begin, count);
        /* Compares twice the middles of both runs: which half, quarter ... of the whole separates
         * them? */
        int level = depth ? 31 - __builtin_clz((last + begin) ^ (begin + end)) : 0;
        for (; depth > 1 && runs[depth - 1].level < level; depth--)
            run_sort_merge(&s, runs[depth - 2].begin, runs[depth - 1].begin, begin);
        runs[depth++] = (struct run){begin, level};
    }
    for (; depth > 1; depth--)
        run_sort_merge(&s, runs[depth - 2].begin, runs[depth - 1].begin, count);
    assert(is_sorted(&s, count));
    return s.moves;
}
