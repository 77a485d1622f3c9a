/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "base/memory.h"
#include "unit_word.h"

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

/* Writes the value in the first of the units, each `step` times the last, where it is below that;
 * with `digits` behind the point, except in the first unit. */
static const char *scaled_text(char *text, uint64_t value, unsigned step, int digits,
                               const char *const *units)
{
    double scaled = (double)value, most = step - 0.5 * pow(10, -digits);
    int shown = 0;
    for (; scaled >= most && units[1]; units++, shown = digits)
        scaled /= step;
    snprintf(text, UNIT_TEXT_BYTES, "%.*f%s", shown, scaled, *units);
    return text;
}

const char *time_text(char *text, uint64_t ns)
{
    static const char *const units[] = {" ns", " us", " ms", " s", NULL};
    return scaled_text(text, ns, 1000, 3, units);
}

const char *bytes_text(char *text, uint64_t bytes)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB", NULL};
    return scaled_text(text, bytes, 1024, 1, units);
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
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E", NULL};
    return scaled_text(text, amount, 1000, 3, units);
}

const char *power_text(char *text, uint64_t mw)
{
    snprintf(text, UNIT_TEXT_BYTES, "%.1f W", (double)mw / 1e3);
    return text;
}

const char *energy_text(char *text, uint64_t mj)
{
    static const char *const units[] = {" mJ", " J", " kJ", " MJ", " GJ", NULL};
    return scaled_text(text, mj, 1000, 3, units);
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

/* ---- times ----------------------------------------------------------------------------------- */

#define SECOND_NS UINT64_C(1000000000)
#define NS_MAX    (4000000000u * SECOND_NS) /* the year 2096 */

/* Parses seconds with a fraction. Returns the end; NULL: invalid or too large. */
static const char *take_seconds(const char *text, uint64_t *ns)
{
    struct amount amount;
    const char *end = amount_read(text, text + strlen(text), &amount);
    return end && amount_times(&amount, SECOND_NS, ns) && *ns <= NS_MAX ? end : NULL;
}

bool moment_parse(const char *text, uint64_t *ns)
{
    uint64_t seconds_ns = 0;
    struct tm when = {0}, zone = {0};
    time_t now = time(NULL);
    if (*text == '@') {
        const char *end = take_seconds(text + 1, ns);
        return end && !*end;
    }
    const char *rest = strptime(text, "%Y-%m-%d", &when);
    if (!rest) /* a failed strptime may have set some members */
        localtime_r(&now, &when);
    rest = !rest ? text : *rest == 'T' || *rest == ' ' ? rest + 1 : *rest ? NULL : "00:00";
    rest = rest ? strptime(rest, "%H:%M", &when) : NULL;
    if (rest && *rest == ':')
        rest = take_seconds(rest + 1, &seconds_ns);
    const char *end = rest && *rest ? strptime(rest, "%z", &zone) : rest;
    if (!end || *end || seconds_ns >= 61 * SECOND_NS)
        return false;
    when.tm_sec = 0;
    when.tm_isdst = -1;
    time_t whole = *rest ? timegm(&when) - zone.tm_gmtoff : mktime(&when);
    *ns = (uint64_t)whole * SECOND_NS + seconds_ns;
    return whole > 0 && (uint64_t)whole <= NS_MAX / SECOND_NS;
}

bool duration_parse(const char *text, uint64_t *ns)
{
    struct amount amount;
    const char *word = amount_read(text, text + strlen(text), &amount);
    return word && amount_times(&amount, *word ? unit_ns(word, strlen(word)) : SECOND_NS, ns) &&
           *ns <= NS_MAX;
}

uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double monotonic_seconds(void)
{
    return (double)monotonic_ns() / 1e9;
}
