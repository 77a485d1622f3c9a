/* SPDX-License-Identifier: Apache-2.0 */
/* What a finding says is to be done, by what is known of its places. */
#include <stdio.h>
#include <string.h>

#include "base/next_words.h"
#include "find/findings.h"

/* "train (train.py:17)": its colon; NULL: it is none. */
static const char *line_in(const char *place)
{
    const char *colon = place ? strrchr(place, ':') : NULL;
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    return digits && strcmp(colon + 1 + digits, ")") == 0 ? colon : NULL;
}

/* Is it "train (train)", of an object that has no lines? */
static bool is_function(const char *place)
{
    const char *in = place ? strrchr(place, '(') : NULL;
    return in > place && in[-1] == ' ' && !strchr(in, ' ') && in[strlen(in) - 1] == ')' &&
           !line_in(place);
}

/* What is to be recorded for the lines of it; NULL: something else is to be run. */
static const char *recorded_next(const struct finding *f)
{
    static const char again[] = "gpuprof run --backtrace=";
    const char *next = f->next ? f->next : f->kind->next;
    return strncmp(next, again, sizeof again - 1) == 0 ? next : NULL;
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
    bool is_python = line && line - f->where > 3 && memcmp(line - 3, ".py", 3) == 0;
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
