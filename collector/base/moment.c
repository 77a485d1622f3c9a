/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_MAX 4e9 /* the year 2096 */

/* Seconds from here on, plain digits and a fraction. NULL: there are none. */
static const char *take_seconds(const char *text, double *seconds)
{
    char *end;
    if (!isdigit((unsigned char)*text) || strspn(text, "0123456789.") > 40)
        return NULL;
    *seconds = strtod(text, &end);
    return strcspn(text, "eExXpP") < (size_t)(end - text) ? NULL : end;
}

/* "Z", "+hh:mm", "-hhmm" or nothing: *is_local is false but for the last. */
static bool take_zone(const char *text, long *offset_seconds, bool *is_local)
{
    struct tm zone = {0};
    *is_local = !*text;
    *offset_seconds = 0;
    if (!*text || strcmp(text, "Z") == 0)
        return true;
    const char *end = strptime(text, "%z", &zone);
    *offset_seconds = zone.tm_gmtoff;
    return (*text == '+' || *text == '-') && end && !*end;
}

bool moment_parse(const char *text, uint64_t *ns)
{
    double seconds = 0;
    long offset;
    bool is_local;
    struct tm when = {0};
    time_t now = time(NULL);
    if (*text == '@') {
        const char *end = take_seconds(text + 1, &seconds);
        *ns = (uint64_t)llround(seconds * 1e3) * 1000000u;
        return end && !*end && seconds <= SECONDS_MAX;
    }
    const char *rest = strptime(text, "%Y-%m-%d", &when);
    if (!rest) /* it may have read some of it */
        localtime_r(&now, &when);
    rest = !rest ? text : *rest == 'T' || *rest == ' ' ? rest + 1 : NULL;
    rest = rest ? strptime(rest, "%H:%M", &when) : NULL;
    if (rest && *rest == ':')
        rest = take_seconds(rest + 1, &seconds);
    if (!rest || seconds >= 61 || !take_zone(rest, &offset, &is_local))
        return false;
    when.tm_sec = 0;
    when.tm_isdst = -1;
    time_t whole = is_local ? mktime(&when) : timegm(&when) - offset;
    *ns = (uint64_t)whole * 1000000000u + (uint64_t)llround(seconds * 1e9);
    return whole > 0 && (double)whole <= SECONDS_MAX;
}

bool duration_parse(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9},    {"s", 1e9},  {"m", 60e9}, {"min", 60e9},
                 {"h", 36e11}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    double number = 0;
    const char *end = take_seconds(text, &number);
    for (unsigned i = 0; end && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0 && number * units[i].ns <= SECONDS_MAX * 1e9) {
            *ns = (uint64_t)llround(number * units[i].ns);
            return true;
        }
    return false;
}
