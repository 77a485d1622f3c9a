/* SPDX-License-Identifier: Apache-2.0 */
/* What a finding says is to be done, by what is known of its places. */
#include <stdio.h>
#include <string.h>

#include "base/next_words.h"
#include "find/findings.h"

/* Of "train (train.py:17)" what is in the brackets, not a caller's; NULL: there are none. */
static const char *brackets_of(const char *place, size_t *length)
{
    const char *called = place ? strstr(place, PLACE_CALLED) : NULL;
    size_t bytes = called ? (size_t)(called - place) : place ? strlen(place) : 0;
    const char *in = bytes && place[bytes - 1] == ')' ? memrchr(place, '(', bytes) : NULL;
    if (!in || in == place || in[-1] != ' ')
        return NULL;
    *length = (size_t)(place + bytes - in) - 2;
    return in + 1;
}

/* Its colon; NULL: it has no line. */
static const char *line_in(const char *place)
{
    size_t length;
    const char *in = brackets_of(place, &length);
    const char *colon = in ? memrchr(in, ':', length) : NULL;
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    return digits && colon + 1 + digits == in + length ? colon : NULL;
}

/* Is it "train (train)", of an object that has no lines? */
static bool is_function(const char *place)
{
    size_t length;
    const char *in = brackets_of(place, &length);
    return in && !memchr(in, ' ', length) && !line_in(place);
}

/* What is to be recorded for the lines of it; NULL: something else is to be run. */
static const char *recorded_next(const struct finding *f)
{
    const char *next = f->next ? f->next : f->kind->next;
    return strstr(next, "--backtrace=") ? next : NULL;
}

static bool is_of(const struct finding *f, enum finding_id id)
{
    return f->kind == &finding_kinds[id];
}

const char *finding_next(const struct finding *f)
{
    const char *next = recorded_next(f), *line = line_in(f->where);
    if (!next)
        return f->next ? f->next : f->kind->next;
    if (f->row_count && f->rows[0].is_of_minor) /* what did the others do meanwhile? */
        return "gpuprof merge -o trace.json DATA";
    if (!line && !is_function(f->where))
        return next;
    /* What costs is beside the calls: tables of these have their time alone. */
    if (is_of(f, FINDING_HOST_BOUND) || is_of(f, FINDING_SYNC_IN_LOOP))
        return "gpuprof report --table=idle DATA";
    bool is_python = line && line - f->where > 3 && memcmp(line - 3, ".py", 3) == 0;
    if (is_python && is_of(f, FINDING_LAUNCH_BOUND)) /* operators are to be known, too */
        return next;
    return is_python ? "gpuprof report --mine DATA" : "gpuprof report --by=stack DATA";
}

char *finding_next_line(const struct findings *f, const struct finding *found)
{
    return next_line(f->next, finding_next(found));
}

const char *finding_title(const struct finding *f)
{
    return f->is_awaited ? "the other ranks wait in a call for this one" : f->kind->title;
}

char *finding_advice(const struct finding *f)
{
    char *text = NULL;
    int length = asprintf(&text, "%s%s%s", f->kind->advice,
                          f->is_lineless && recorded_next(f)
                              ? " Its lines are known once the program is compiled with -g."
                              : "",
                          f->lacks_ranks ? " Or ranks that are not here came late: a report "
                                           "of all of them says which."
                                         : "");
    return length < 0 ? NULL : text;
}

void findings_judge_lines(struct findings *f)
{
    bool has_line = false, has_function = false;
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t k = 0; k < f->list[i].row_count; k++) {
            has_line |= line_in(f->list[i].rows[k].where) != NULL;
            has_function |= is_function(f->list[i].rows[k].where);
        }
    for (uint32_t i = 0; i < f->count; i++)
        f->list[i].is_lineless = is_function(f->list[i].where) ||
                                 (has_function && !has_line && !line_in(f->list[i].where));
}
