/* SPDX-License-Identifier: Apache-2.0 */
#include "base/select_request.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/text.h"

/* In the order of enum select_kind. */
static const char *const kind_words[SELECT_KINDS] = {
    "launch",     "alloc",      "copy",      "sync",      "graph",    "other",  "kernel",
    "gpu_memcpy", "gpu_memset", "gpu_graph", "cuda_sync", "overhead", "memory", "range",
    "mark",       "operator",   "library",   "sample",    "os",       "gil",    "gc"};

/* Parses plain digits and moves *text behind them. */
static bool select_options_read_number(const char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)**text))
        return false;
    *number = strtoull(*text, &end, 10);
    *text = end;
    return !errno && *number < UINT64_MAX;
}

/* The read functions store the value and return what is wrong with it; NULL: nothing. */

static const char *read_list(const struct given *g)
{
    static const char no_list[] = "is not a list of numbers, such as 0,2,4-7";
    struct number_list *l = g->at;
    const char *text = g->value;
    for (l->count = 0; l->count < NUMBER_LIST_MAX; text++) {
        struct number_span *span = &l->spans[l->count++];
        if (!select_options_read_number(&text, &span->first))
            return no_list;
        span->last = span->first;
        if (*text == '-' && (text++, !select_options_read_number(&text, &span->last)))
            return no_list;
        if (span->last < span->first)
            return no_list;
        if (*text != ',')
            return *text ? no_list : NULL;
    }
    return "has more than 64 numbers and ranges";
}

/* Parses "5", "5:8", "5:" or ":8". */
static const char *read_steps(const struct given *g)
{
    struct select_request *w = &g->all->select;
    const char *text = g->value;
    w->has_steps = true;
    w->step_first = 0;
    w->step_end = UINT64_MAX;
    bool has_first = select_options_read_number(&text, &w->step_first), is_span = *text == ':';
    text += is_span;
    bool has_end = is_span && select_options_read_number(&text, &w->step_end);
    if (!is_span)
        w->step_end = w->step_first + 1;
    return !*text && (has_first || has_end) && w->step_end > w->step_first
               ? NULL
               : "is not a step or a range A:B; B is not included, so 4:8 is steps 4 to 7";
}

static uint32_t kinds_of(const char *word, size_t length)
{
    const uint32_t calls = (1u << SELECT_KERNEL) - 1, work = (1u << SELECT_WAIT) - 1 - calls;
    for (unsigned i = 0; i < SELECT_KINDS; i++)
        if (word_is(word, length, kind_words[i]))
            return 1u << i;
    return word_is(word, length, "call") ? calls : word_is(word, length, "work") ? work : 0;
}

const char *select_kind_word(enum select_kind kind)
{
    return kind_words[kind];
}

const char *select_option_name(unsigned place)
{
    return select_options[place].name;
}

#define KIND_PLACE 11 /* of --kind, in `said` */

enum exit_code select_kinds_take(struct select_request *w, const char *verb, const char *text)
{
    w->is_given = true;
    w->said[KIND_PLACE] = text;
    for (w->kinds = 0;; text++) {
        size_t length = strcspn(text, ",");
        uint32_t kinds = kinds_of(text, length);
        if (!kinds)
            return usage_error("%s: --kind: '%.*s' is not a kind; 'gpuprof help report' lists them",
                               verb, (int)length, text);
        w->kinds |= kinds;
        text += length;
        if (!*text)
            return EXIT_OK;
    }
}

/* Requires a unit: other times default to seconds, but few mean seconds here. */
static const char *read_least(const struct given *g)
{
    uint64_t *min_ns = g->at;
    bool is_time = duration_parse(g->value, min_ns) &&
                   (!*min_ns || isalpha((unsigned char)g->value[strlen(g->value) - 1]));
    return is_time ? NULL : "is not a time with a unit, such as 10us (ns, us, ms, s, m, h)";
}

static const char *read_moment(const struct given *g)
{
    struct select_moment *m = g->at;
    m->is_given = true;
    m->text = g->value;
    m->is_absolute = !duration_parse(g->value, &m->ns);
    if (!m->is_absolute || moment_parse(g->value, &m->ns))
        return NULL;
    return "is not a time since the first event (12.5, 800ms, 2m) or a date (2026-11-23T18:00:00, "
           "@1795456800)";
}

static const char *read_pattern(const struct given *g)
{
    regex_t compiled;
    option_text(g);
    if (regcomp(&compiled, g->value, REG_EXTENDED | REG_NOSUB) != 0)
        return "is not an extended regular expression";
    regfree(&compiled);
    return NULL;
}

static const char *read_cycle(const struct given *g)
{
    bool may_be_all = g->option->parts & READ_CYCLES; /* the verb writes a file for each */
    uint64_t *cycle = g->at;
    if (may_be_all && strcmp(g->value, "all") == 0) {
        *cycle = CYCLE_ALL;
        return NULL;
    }
    return number_parse(g->value, 1, CYCLE_ALL - 1, cycle) ? NULL
           : may_be_all ? "is not a window's number (1 or more) or 'all'"
                        : "is not a window's number (1 or more)";
}

/* ---- the options ----------------------------------------------------------------------------- */

/* Stores the value, also for display; at most once, except for a cycle. */
static enum exit_code take(const struct given *g)
{
    struct select_request *w = &g->all->select;
    const char **said = &w->said[g->option - select_options];
    if (*said && !(g->option->parts & (READ_CYCLE | READ_CYCLES)))
        return option_twice(g);
    *said = g->value;
    w->is_given |= !(g->option->parts & READ_PROCESSES);
    if (!g->option->read)
        return option_text(g);
    const char *wrong = g->option->read(g);
    return option_end(g, !wrong, wrong);
}

static enum exit_code take_kinds(const struct given *g)
{
    struct select_request *w = &g->all->select;
    return w->kinds ? option_twice(g) : select_kinds_take(w, g->all->verb->name, g->value);
}

/* Reads into a member of the request. */
#define SELECTS(its_read, member) .read = (its_read), OPTION_ALL(take, select.member)

const struct option select_options[] = {
    {0, "cycle", "N|all", SELECTS(read_cycle, cycle),
     "Select one window of run --schedule or --capture-range by its number, counted from 1; all, "
     "with --per-rank: write a file for each window",
     .parts = READ_CYCLES, .in = HELP_SELECT | HELP_MORE},
    {0, "cycle", "N", SELECTS(read_cycle, cycle),
     "Select one window of run --schedule or --capture-range by its number, counted from 1",
     .parts = READ_CYCLE, .in = HELP_SELECT | HELP_MORE},
    {0, "from", "TIME", SELECTS(read_moment, from),
     "Select events from this time on, counted from the first event of the selected processes: "
     "12.5, "
     "800ms, 2m. Also: 2026-11-23, 18:00, 2026-11-23T18:00:00 (local, or with Z or +01:00), and "
     "@SECONDS since 1970.",
     .parts = READ_TIME, .in = HELP_SELECT},
    {0, "to", "TIME", SELECTS(read_moment, to), "Select events before this time",
     .parts = READ_TIME, .in = HELP_SELECT},
    {0, "step", "A:B", SELECTS(read_steps, step_first),
     "Select steps A to B - 1, only A, from A on (A:) or before B (:B): their calls, and the GPU "
     "work that these launched",
     .parts = READ_PLACE, .in = HELP_SELECT},
    {0, "range", "NAME", SELECTS(NULL, range),
     "Select what happened while a range or label of this name was open; '*' matches any text, "
     "'?' one byte. Idle time and wall time cover the first range's start to the last one's end.",
     .parts = READ_PLACE, .in = HELP_SELECT},
    {0, "job", "N[,M-K]", SELECTS(read_list, jobs),
     "Select these of several jobs in one folder, numbered from 0 in the order of their start",
     .parts = READ_PROCESSES, .in = HELP_SELECT | HELP_MORE},
    {0, "rank", "N[,M-K]", SELECTS(read_list, ranks), "Select the processes of these ranks",
     .parts = READ_PROCESSES, .in = HELP_SELECT},
    {0, "pid", "N[,M-K]", SELECTS(read_list, pids),
     "Select processes by pid, as seen inside their container", .parts = READ_PROCESSES,
     .in = HELP_SELECT | HELP_MORE},
    {0, "tid", "N[,M-K]", SELECTS(read_list, tids),
     "Select events of these threads, by their system ids, and the GPU work that they launched",
     .parts = READ_EVENTS, .in = HELP_SELECT | HELP_MORE},
    {0, "device", "N[,M-K]", SELECTS(read_list, devices),
     "Select the GPU work of these devices; host events stay", .parts = READ_PLACE,
     .in = HELP_SELECT},
    [KIND_PLACE] =
        {0, "kind", "KIND[,KIND..]", .take = take_kinds, .at = 0,
         "Select events of these kinds. Calls: launch, alloc, copy, sync, graph, other, or all: "
         "call. GPU work: kernel, gpu_memcpy, gpu_memset, gpu_graph, or all: work. Others: "
         "cuda_sync, overhead, memory, range, mark, operator, library.",
         .parts = READ_EVENTS, .in = HELP_SELECT},
    {0, "name", "REGEX", SELECTS(read_pattern, name),
     "Select events with names that match this extended regular expression", .parts = READ_EVENTS,
     .in = HELP_SELECT},
    {0, "min-duration", "TIME", SELECTS(read_least, min_ns),
     "Select events that took at least this long: 10us", .parts = READ_EVENTS,
     .in = HELP_SELECT | HELP_MORE},
    {0},
};
_Static_assert(sizeof select_options / sizeof select_options[0] == SELECT_OPTIONS + 1,
               "a place each");
