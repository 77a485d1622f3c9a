/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_spans.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

#define SPANS_SHOWN 8

char *number_spans_text(uint64_t *numbers, uint32_t count, char text[static NUMBER_SPANS_BYTES])
{
    size_t at = 0;
    *text = '\0';
    array_sort_whole(numbers, count);
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
