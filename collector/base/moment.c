/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit_word.h"

#define SECOND_NS UINT64_C(1000000000)
#define NS_MAX    (4000000000u * SECOND_NS) /* the year 2096 */

#define ZONE_SECONDS_MAX (14 * 3600) /* Kiribati has the largest offset */

/* The form of a date and time; the date need not exist. */
#define FORM                                                                                       \
    "^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$|([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[T ])?[0-9]{1,2}:[0-9]{1,2}" \
    "(:[0-9]{1,2}(\\.[0-9]+)?)?(Z|[-+][0-9]{2}(:?[0-9]{2})?)?$)"

/* Parses seconds: plain digits with a fraction. Returns the end, or NULL if invalid or too
 * large. */
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
    *is_local = !*text;
    *offset_seconds = 0;
    if (!*text || strcmp(text, "Z") == 0)
        return true;
    const char *end = strptime(text, "%z", &zone);
    *offset_seconds = zone.tm_gmtoff;
    return (*text == '+' || *text == '-') && end && !*end &&
           labs(*offset_seconds) <= ZONE_SECONDS_MAX;
}

/* strptime accepts February 30, which timegm would turn into March 2. */
static bool is_day(const struct tm *when)
{
    struct tm day = {.tm_year = when->tm_year, .tm_mon = when->tm_mon, .tm_mday = when->tm_mday};
    return timegm(&day) >= 0 && day.tm_mday == when->tm_mday;
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
    if (!rest || !is_day(&when) || seconds_ns >= 61 * SECOND_NS ||
        !take_zone(rest, &offset, &is_local))
        return false;
    when.tm_sec = 0;
    when.tm_isdst = -1;
    time_t whole = is_local ? mktime(&when) : timegm(&when) - offset;
    *ns = (uint64_t)whole * SECOND_NS + seconds_ns;
    return whole > 0 && (uint64_t)whole <= NS_MAX / SECOND_NS;
}

bool moment_has_form(const char *text)
{
    regex_t form;
    bool is_ready = regcomp(&form, FORM, REG_EXTENDED | REG_NOSUB) == 0;
    bool has_form = is_ready && regexec(&form, text, 0, NULL, 0) == 0;
    if (is_ready)
        regfree(&form);
    return has_form;
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
