/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit_word.h"

#define SECOND_NS UINT64_C(1000000000)
#define NS_MAX    (4000000000u * SECOND_NS) /* the year 2096 */

/* Parses seconds with a fraction. Returns the end; NULL: invalid or too large. */
static const char *take_seconds(const char *text, uint64_t *ns)
{
    struct amount amount;
    const char *end = amount_read(text, text + strlen(text), &amount);
    return end && amount_times(&amount, SECOND_NS, ns) && *ns <= NS_MAX ? end : NULL;
}

/* Parses "Z", "+hh:mm", "-hhmm" or nothing; *is_local is true only for nothing. */
static bool take_zone(const char *text, long *offset_seconds, bool *is_local)
{
    struct tm zone = {0};
    const char *end = *text ? strptime(text, "%z", &zone) : text;
    *is_local = !*text;
    *offset_seconds = zone.tm_gmtoff;
    return end && !*end;
}

bool moment_parse(const char *text, uint64_t *ns)
{
    uint64_t seconds_ns = 0;
    long offset;
    bool is_local;
    struct tm when = {0};
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
    if (!rest || seconds_ns >= 61 * SECOND_NS || !take_zone(rest, &offset, &is_local))
        return false;
    when.tm_sec = 0;
    when.tm_isdst = -1;
    time_t whole = is_local ? mktime(&when) : timegm(&when) - offset;
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
