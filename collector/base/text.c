/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"

char *text_vprintf(const char *format, va_list list)
{
    char *text = NULL;
    if (vasprintf(&text, format, list) < 0)
        memory_missing();
    return text;
}

char *text_printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = text_vprintf(format, list);
    va_end(list);
    return text;
}

FILE *new_text_begin(struct new_text *t)
{
    *t = (struct new_text){0};
    return memory_from(open_memstream(&t->text, &t->length));
}

char *new_text_end(struct new_text *t, FILE *out)
{
    if (fclose(out) != 0)
        memory_missing();
    return t->text;
}

/* ---- with units ------------------------------------------------------------------------------ */

/* Writes the value in the first unit, each `step` times the last, where it is below `most`. */
static const char *scaled_text(char *text, double value, double step, double most,
                               const char *const *units, const char *format)
{
    for (; value >= most && units[1]; units++)
        value /= step;
    snprintf(text, UNIT_TEXT_BYTES, format, value, *units);
    return text;
}

const char *time_text(char *text, uint64_t ns)
{
    static const char *const units[] = {"us", "ms", "s", NULL};
    if (ns >= 1000)
        return scaled_text(text, (double)ns / 1e3, 1e3, 999.9995, units, "%.3f %s");
    snprintf(text, UNIT_TEXT_BYTES, "%u ns", (unsigned)ns);
    return text;
}

const char *bytes_text(char *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
    if (bytes >= 1024)
        return scaled_text(text, (double)bytes / 1024, 1024, 1023.95, units, "%.1f %s");
    snprintf(text, UNIT_TEXT_BYTES, "%u B", (unsigned)bytes);
    return text;
}

/* 1,234,567 */
const char *count_text(char *text, uint64_t count)
{
    char digits[UNIT_TEXT_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *out = text;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

const char *amount_text(char *text, uint64_t amount)
{
    static const char *const units[] = {"k", "M", "G", "T", "P", "E", NULL};
    if (amount >= 1000)
        return scaled_text(text, (double)amount / 1e3, 1e3, 999.9995, units, "%.3f %s");
    snprintf(text, UNIT_TEXT_BYTES, "%u", (unsigned)amount);
    return text;
}

const char *power_text(char *text, uint64_t mw)
{
    snprintf(text, UNIT_TEXT_BYTES, "%.1f W", (double)mw / 1e3);
    return text;
}

const char *energy_text(char *text, uint64_t mj)
{
    static const char *const units[] = {"J", "kJ", "MJ", "GJ", NULL};
    return scaled_text(text, (double)mj / 1e3, 1e3, 999.9995, units, "%.3f %s");
}

/* ---- several numbers ------------------------------------------------------------------------- */

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

/* ---- words ----------------------------------------------------------------------------------- */

struct nearest nearest_to(const char *word, size_t length)
{
    return (struct nearest){.word = word, .length = length, .distance = length / 4 + 2};
}

/* Returns the letters that differ between a common begin and a common end; 1 for two neighbours
 * that changed places. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    for (; a_length && b_length && *a == *b; a_length--, b_length--)
        a++, b++;
    while (a_length && b_length && a[a_length - 1] == b[b_length - 1])
        a_length--, b_length--;
    bool is_swap = a_length == 2 && b_length == 2 && a[0] == b[1] && a[1] == b[0];
    return is_swap ? 1 : max_of(a_length, b_length);
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    size_t length = strlen(candidate);
    size_t changes = distance(n->word, n->length, candidate, length);
    if (n->length >= 4 && length > n->length && memcmp(n->word, candidate, n->length) == 0)
        changes = 1; /* the word was cut to fit */
    if (changes < n->distance && changes < n->length) {
        n->distance = changes;
        n->found = candidate;
    }
}

const char *nearest_text(const struct nearest *n, const char *before, char *text)
{
    text[0] = '\0';
    if (n->found)
        snprintf(text, NEAREST_TEXT_BYTES, " (did you mean %s%s?)", before, n->found);
    return text;
}

unsigned word_in(const char *list, const char *name)
{
    for (unsigned i = 0; name && list && *list; i++) {
        list += strspn(list, " ");
        size_t word = strcspn(list, ",|");
        if (word_is(list, word, name))
            return i;
        list += word + (list[word] != '\0');
    }
    return UINT_MAX;
}
