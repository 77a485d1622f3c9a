/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_spans.h"

#include <stdio.h>
#include <stdlib.h>

#define SPANS_SHOWN 8

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

char *number_spans_text(uint64_t *numbers, uint32_t count, char text[static NUMBER_SPANS_BYTES])
{
    size_t at = 0;
    *text = '\0';
    if (count)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
    for (uint32_t first = 0, end, spans = 0; first < count; first = end, spans++) {
        if (spans == SPANS_SHOWN) {
            snprintf(text + at, NUMBER_SPANS_BYTES - at, " and more");
            break;
        }
        for (end = first + 1; end < count && numbers[end] - numbers[end - 1] <= 1;)
            end++;
        at += (size_t)snprintf(text + at, NUMBER_SPANS_BYTES - at, "%s%llu", first ? ", " : "",
                               (unsigned long long)numbers[first]);
        if (numbers[end - 1] > numbers[first])
            at += (size_t)snprintf(text + at, NUMBER_SPANS_BYTES - at, "-%llu",
                                   (unsigned long long)numbers[end - 1]);
    }
    return text;
}
