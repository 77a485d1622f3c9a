/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include <stddef.h>
#include <string.h>

/* Parses digits up to one of `ends`; NULL: none, or too large. */
static const char *parse_number(const char *text, const char *ends, uint64_t *number)
{
    uint64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = 10 * n + (uint64_t)(*p - '0');
        if (n > SCHEDULE_STEPS_MAX)
            return NULL;
    }
    if (p == text || (*p && !strchr(ends, *p)))
        return NULL;
    *number = n;
    return p;
}

static bool parse_steps(const char *text, struct schedule *s)
{
    uint64_t first, last;
    const char *p = parse_number(text, "-", &first);
    if (!p || *p != '-' || !parse_number(p + 1, "", &last) || last < first)
        return false;
    s->warmup = first > 0;
    s->skip_first = first - s->warmup;
    s->active = last - first + 1;
    s->repeat = 1;
    return true;
}

bool schedule_parse(const char *text, struct schedule *s)
{
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"skip_first=", &s->skip_first}, {"wait=", &s->wait},
                   {"warmup=", &s->warmup},         {"active=", &s->active},
                   {"repeat=", &s->repeat},         {"skip_first_wait=", &s->skip_first_wait}};
    *s = (struct schedule){0};
    if (*text >= '0' && *text <= '9')
        return parse_steps(text, s);
    for (const char *p = text;; p++) {
        const char *after = NULL;
        for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0] && !after; i++) {
            size_t length = strlen(numbers[i].name);
            if (strncmp(p, numbers[i].name, length) == 0)
                after = parse_number(p + length, ",", numbers[i].number);
        }
        if (!after)
            return false;
        p = after;
        if (!*p)
            return s->active > 0;
    }
}

enum schedule_action schedule_action(const struct schedule *s, uint64_t step, uint64_t *cycle)
{
    uint64_t length = s->wait + s->warmup + s->active;
    *cycle = 0;
    if (step < s->skip_first)
        return SCHEDULE_NONE;
    step -= s->skip_first;
    if (s->skip_first_wait)
        step += s->wait;
    uint64_t place = step % length;
    if ((s->repeat && step / length >= s->repeat) || place < s->wait)
        return SCHEDULE_NONE;
    *cycle = step / length + 1;
    return place < s->wait + s->warmup ? SCHEDULE_WARMUP
           : place < length - 1        ? SCHEDULE_RECORD
                                       : SCHEDULE_RECORD_AND_SAVE;
}

bool capture_parse(const char *text, struct capture *c)
{
    *c = (struct capture){.kind = CAPTURE_NONE};
    if (!*text)
        return true;
    if (strcmp(text, "cudaProfilerApi") == 0) {
        c->kind = CAPTURE_PROFILER;
        return true;
    }
    if (strncmp(text, "nvtx:", 5) != 0)
        return false;
    const char *at = strrchr(text, '@');
    c->kind = CAPTURE_NVTX;
    c->name = text + 5;
    c->name_bytes = (unsigned)(at ? at - c->name : (ptrdiff_t)strlen(c->name));
    c->domain = at ? at + 1 : NULL;
    return c->name_bytes && (!at || at[1]);
}

bool capture_end_parse(const char *text, enum capture_end *end, uint64_t *count)
{
    static const char *const words[] = {"none", "stop", "repeat", "exit"};
    *count = 0;
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        *end = (enum capture_end)i;
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    *end = CAPTURE_END_REPEAT;
    return strncmp(text, "repeat:", 7) == 0 && parse_number(text + 7, "", count) && *count;
}
