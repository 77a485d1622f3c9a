/* SPDX-License-Identifier: Apache-2.0 */
#include "base/select_wish.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/moment.h"

static const char *const kind_words[SELECT_KINDS] = {
    [SELECT_LAUNCH] = "launch",     [SELECT_ALLOC] = "alloc",
    [SELECT_COPY] = "copy",         [SELECT_SYNC] = "sync",
    [SELECT_GRAPH] = "graph",       [SELECT_OTHER] = "other",
    [SELECT_KERNEL] = "kernel",     [SELECT_MEMCPY] = "gpu_memcpy",
    [SELECT_MEMSET] = "gpu_memset", [SELECT_GRAPH_RUN] = "gpu_graph",
    [SELECT_WAIT] = "cuda_sync",    [SELECT_OVERHEAD] = "overhead",
    [SELECT_MEMORY] = "memory",     [SELECT_RANGE] = "range",
    [SELECT_MARK] = "mark",         [SELECT_OPERATOR] = "operator",
    [SELECT_LIBRARY] = "library",
};

static const char *const option_names[SELECT_OPTIONS] = {
    "from", "to",  "step",   "cycle", "range", "job",         "rank",
    "pid",  "tid", "device", "kind",  "name",  "min-duration"};

/* Words for several of them. */
static const struct {
    const char *word;
    uint32_t kinds;
} kind_groups[] = {
    {"call", 1u << SELECT_LAUNCH | 1u << SELECT_ALLOC | 1u << SELECT_COPY | 1u << SELECT_SYNC |
                 1u << SELECT_GRAPH | 1u << SELECT_OTHER},
    {"work",
     1u << SELECT_KERNEL | 1u << SELECT_MEMCPY | 1u << SELECT_MEMSET | 1u << SELECT_GRAPH_RUN},
};

/* Plain digits, behind which *text then is. */
static bool take_number(const char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)**text))
        return false;
    *number = strtoull(*text, &end, 10);
    *text = end;
    return !errno && *number < UINT64_MAX;
}

/* Of this and the next: what is wrong with the text, to be said behind it; NULL: nothing. */
static const char *take_list(struct number_list *l, const char *text)
{
    static const char no_list[] = "is not a list of numbers such as 0,2,4-7";
    for (l->count = 0; l->count < NUMBER_LIST_MAX; text++) {
        struct number_span *span = &l->spans[l->count++];
        if (!take_number(&text, &span->first))
            return no_list;
        span->last = span->first;
        if (*text == '-' && (text++, !take_number(&text, &span->last)))
            return no_list;
        if (span->last < span->first)
            return "goes from a number to a smaller one; the smaller stands first, as in 4-7";
        if (*text != ',')
            return *text ? no_list : NULL;
    }
    return "is a list of more than 64 numbers and spans such as 4-7";
}

/* "5", "5:8", "5:", ":8". */
static const char *take_steps(struct select_wish *w, const char *text)
{
    static const char no_steps[] = "is not a step, or steps A:B, of which B is the first left out "
                                   "(steps 4 to 7 are 4:8)";
    w->step_first = 0;
    w->step_end = UINT64_MAX;
    bool has_first = take_number(&text, &w->step_first);
    w->has_steps = true;
    if (has_first && !*text) {
        w->step_end = w->step_first + 1;
        return NULL;
    }
    if (*text++ != ':' || (!has_first && !*text))
        return no_steps;
    if (*text && (!take_number(&text, &w->step_end) || *text))
        return no_steps;
    return w->step_end > w->step_first
               ? NULL
               : "has no step in it: of steps A:B, A is the first and B the first left out";
}

static uint32_t kinds_of(const char *word, size_t length)
{
    uint32_t kinds = 0;
    for (unsigned i = 0; i < SELECT_KINDS; i++)
        if (strlen(kind_words[i]) == length && memcmp(kind_words[i], word, length) == 0)
            kinds |= 1u << i;
    for (unsigned i = 0; i < sizeof kind_groups / sizeof kind_groups[0]; i++)
        if (strlen(kind_groups[i].word) == length && memcmp(kind_groups[i].word, word, length) == 0)
            kinds |= kind_groups[i].kinds;
    return kinds;
}

const char *select_kind_word(enum select_kind kind)
{
    return kind_words[kind];
}

const char *select_option_name(unsigned place)
{
    return option_names[place];
}

static void keep_said(struct select_wish *w, const char *option, const char *value)
{
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (strcmp(option_names[i], option) == 0)
            w->said[i] = value;
}

static enum exit_code take_kinds(struct select_wish *w, const char *verb, const char *text)
{
    for (w->kinds = 0;; text++) {
        size_t length = strcspn(text, ",");
        uint32_t kinds = kinds_of(text, length);
        if (!kinds)
            return usage_error("%s: --kind: '%.*s' is not one of these, or some with commas "
                               "between: call, launch, alloc, copy, sync, graph, other; work, "
                               "kernel, gpu_memcpy, gpu_memset, gpu_graph; cuda_sync, overhead, "
                               "memory, range, mark, operator, library",
                               verb, (int)length, text);
        w->kinds |= kinds;
        text += length;
        if (!*text)
            return EXIT_OK;
    }
}

/* Seconds are what other times without a unit are, but few would mean them here. */
static bool take_least(uint64_t *min_ns, const char *text)
{
    return duration_parse(text, min_ns) &&
           (!*min_ns || isalpha((unsigned char)text[strlen(text) - 1]));
}

static const char *take_moment(struct select_moment *m, const char *text)
{
    m->is_given = true;
    m->text = text;
    m->is_absolute = !duration_parse(text, &m->ns);
    if (!m->is_absolute || moment_parse(text, &m->ns))
        return NULL;
    return moment_has_form(text)
               ? "is no day and time that there is (from 1970 to 2096)"
               : "is not a time since the recording's first event such as 12.5, 800ms or 2m, or a "
                 "moment such as 2026-11-23T18:00:00 or @1795456800";
}

static bool take_pattern(const char **pattern, const char *text)
{
    regex_t compiled;
    *pattern = text;
    if (regcomp(&compiled, text, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    regfree(&compiled);
    return true;
}

enum exit_code select_wish_take(struct select_wish *w, const char *verb, const char *option,
                                const char *value)
{
    const char *wrong = NULL;
    keep_said(w, option, value);
    w->is_given |=
        strcmp(option, "job") != 0 && strcmp(option, "rank") != 0 && strcmp(option, "pid") != 0;
    if (strcmp(option, "job") == 0) {
        wrong = take_list(&w->jobs, value);
    } else if (strcmp(option, "rank") == 0) {
        wrong = take_list(&w->ranks, value);
    } else if (strcmp(option, "pid") == 0) {
        wrong = take_list(&w->pids, value);
    } else if (strcmp(option, "tid") == 0) {
        wrong = take_list(&w->tids, value);
    } else if (strcmp(option, "device") == 0) {
        wrong = take_list(&w->devices, value);
    } else if (strcmp(option, "step") == 0) {
        wrong = take_steps(w, value);
    } else if (strcmp(option, "range") == 0) {
        w->range = value;
    } else if (strcmp(option, "kind") == 0) {
        return take_kinds(w, verb, value);
    } else if (strcmp(option, "name") == 0) {
        wrong = take_pattern(&w->name, value) ? NULL : "is not an extended regular expression";
    } else if (strcmp(option, "min-duration") == 0) {
        if (!take_least(&w->min_ns, value))
            wrong = "is not a time with its unit, such as 10us (ns, us, ms, s, m, h)";
    } else {
        wrong = take_moment(option[0] == 'f' ? &w->from : &w->to, value);
    }
    return wrong ? usage_error("%s: --%s: '%s' %s", verb, option, value, wrong) : EXIT_OK;
}

enum exit_code select_cycle_take(struct select_wish *w, const char *verb, bool may_be_all,
                                 const char *value)
{
    const char *rest = value;
    keep_said(w, "cycle", value);
    w->is_given = true;
    w->cycle = 0;
    if (may_be_all && strcmp(value, "all") == 0)
        w->cycle = CYCLE_ALL;
    else if (!take_number(&rest, &w->cycle) || *rest || w->cycle == CYCLE_ALL)
        w->cycle = 0;
    if (w->cycle)
        return EXIT_OK;
    return usage_error(may_be_all
                           ? "%s: --cycle: '%s' is neither a window's number, from 1 on, nor all"
                           : "%s: --cycle: '%s' is no window's number, from 1 on",
                       verb, value);
}
