/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACT_SHOWN  150 /* bytes of a fact in a line */
#define NAME_SHOWN  80  /* of a run's name */
#define TEXT_SHOWN  300 /* of what was lost */
#define TEXT_BYTES  (TEXT_SHOWN + 8)
#define SIDE_BYTES  200
#define NOTED_SHARE 0.1

static void __attribute__((format(printf, 2, 3)))
say(struct comparison_lines *lines, const char *format, ...)
{
    va_list list;
    if (lines->count == COMPARISON_LINES)
        return;
    va_start(list, format);
    vsnprintf(lines->texts[lines->count++], COMPARISON_LINE_BYTES, format, list);
    va_end(list);
}

/* Of a longer text its beginning, to the end of a character. Returns `out`. */
static const char *shown(char out[TEXT_BYTES], const char *text, size_t most)
{
    size_t length = strlen(text);
    if (length > most)
        for (length = most; length && (text[length] & 0xC0) == 0x80;)
            length--;
    snprintf(out, TEXT_BYTES, "%.*s%s", (int)length, text, text[length] ? "..." : "");
    return out;
}

/* ---- why they cannot be ---------------------------------------------------------------------- */

static bool same_fact(enum run_fact fact, const char *a, const char *b)
{
    if (!a || !b)
        return a == b || run_fact_infos[fact].matters == FACT_IF_KNOWN;
    return strcmp(a, b) == 0;
}

/* The first run of a side that has this fact; NULL: none has. */
static const char *first_with(const struct run_set *s, enum run_fact fact, const char **name)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->runs[i].facts[fact]) {
            *name = s->names[i];
            return s->runs[i].facts[fact];
        }
    return NULL;
}

/* That one run differs from the first one compared with is enough to know. */
static void compare_fact(struct comparison *c, enum run_fact fact)
{
    const char *name = c->sides[1]->names[0], *first = c->sides[1]->runs[0].facts[fact];
    char texts[2][TEXT_BYTES], names[2][TEXT_BYTES];
    for (unsigned side = 2; run_fact_infos[fact].matters == FACT_IF_KNOWN && !first && side-- > 0;)
        first = first_with(c->sides[side], fact, &name);
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < c->sides[side]->count; i++) {
            const char *other = c->sides[side]->runs[i].facts[fact];
            if (same_fact(fact, first, other))
                continue;
            say(&c->reasons, "%s: %s (%s), %s (%s)", run_fact_infos[fact].text,
                shown(texts[0], other ? other : "none", FACT_SHOWN),
                shown(names[0], c->sides[side]->names[i], NAME_SHOWN),
                shown(texts[1], first ? first : "none", FACT_SHOWN),
                shown(names[1], name, NAME_SHOWN));
            return;
        }
}

/* Numbers of a run with losses are not what they would be. */
static void compare_losses(struct comparison *c)
{
    char texts[2][TEXT_BYTES];
    const char *name = "", *text[2];
    for (unsigned side = 0; side < 2; side++)
        if ((text[side] = first_with(c->sides[side], RUN_FACT_LOSSES, &name)))
            say(&c->reasons, "losses: %s: %s", shown(texts[0], name, NAME_SHOWN),
                shown(texts[1], text[side], TEXT_SHOWN));
    for (unsigned side = 0; side < 2; side++)
        text[side] = first_with(c->sides[side], RUN_FACT_GIVEN_UP, &name);
    if (!text[0] != !text[1])
        say(&c->reasons, "given up to cost less, on one side alone: %s: %s",
            shown(texts[0], name, NAME_SHOWN),
            shown(texts[1], text[0] ? text[0] : text[1], TEXT_SHOWN));
}

/* What gpuprof takes is part of what is compared. */
static void compare_cost(struct comparison *c)
{
    double costs[2];
    for (unsigned side = 0; side < 2; side++) {
        double list[RUNS_MAX];
        uint32_t count = 0;
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            if (!isnan(c->sides[side]->runs[i].cost))
                list[count++] = c->sides[side]->runs[i].cost;
        costs[side] = count ? rank_median(list, count) : NAN;
    }
    double shift = fabs(c->metrics[RUN_STEP_TIME].shift);
    double allowed = isfinite(shift) && shift > c->threshold ? shift : c->threshold;
    if (fabs(costs[0] - costs[1]) > allowed)
        say(&c->reasons,
            "gpuprof's own cost: %.1f %% of the threads' time, %.1f %% in what is compared with",
            100 * costs[0], 100 * costs[1]);
}

/* ---- what is said beside it ------------------------------------------------------------------ */

/* "2 steps of each run", "1 to 47 steps of a run (47 of new3)". */
static void warm_up_text(const struct run_set *s, char text[SIDE_BYTES])
{
    char name[TEXT_BYTES];
    uint32_t most = 0, least = 0;
    for (uint32_t i = 1; i < s->count; i++) {
        most = s->runs[i].warm_up > s->runs[most].warm_up ? i : most;
        least = s->runs[i].warm_up < s->runs[least].warm_up ? i : least;
    }
    unsigned long long high = s->runs[most].warm_up, low = s->runs[least].warm_up;
    const char *plural = high == 1 ? "" : "s";
    if (high == low)
        snprintf(text, SIDE_BYTES, "%llu step%s%s", high, plural,
                 s->count > 1 ? " of each run" : "");
    else
        snprintf(text, SIDE_BYTES, "%llu to %llu step%s of a run (%llu of %.*s)", low, high, plural,
                 high, NAME_SHOWN + 3, shown(name, s->names[most], NAME_SHOWN));
}

static void note_warm_up(struct comparison *c)
{
    char texts[2][SIDE_BYTES];
    bool is_any = false;
    for (unsigned side = 0; side < 2; side++) {
        warm_up_text(c->sides[side], texts[side]);
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            is_any |= c->sides[side]->runs[i].warm_up > 0;
    }
    if (is_any && strcmp(texts[0], texts[1]) == 0)
        say(&c->notes, "left out as warm-up: %s", texts[0]);
    else if (is_any)
        say(&c->notes, "left out as warm-up: %s; before: %s", texts[0], texts[1]);
}

static void note_outweighed(struct comparison *c)
{
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (run_metric_infos[m].gates && !c->metrics[m].gates)
            say(&c->notes,
                "%s is worse by %.1f %% of the time before, of which the whole is better by "
                "%.1f %%: it does not gate",
                run_metric_infos[m].text, 100 * c->metrics[m].shift,
                -100 * c->metrics[RUN_STEP_TIME].shift);
}

/* Readings of the energy may begin late: then it is not of all steps. */
static void note_energy(struct comparison *c)
{
    uint64_t of[2] = {0}, all[2] = {0};
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            if (c->sides[side]->runs[i].energy_steps) {
                of[side] += c->sides[side]->runs[i].energy_steps;
                all[side] += c->sides[side]->runs[i].steps;
            }
    if (of[0] < all[0] || of[1] < all[1])
        say(&c->notes, "energy is of %llu of %llu steps; before: %llu of %llu",
            (unsigned long long)of[0], (unsigned long long)all[0], (unsigned long long)of[1],
            (unsigned long long)all[1]);
}

/* The median of the numbers that the fact is; NAN: no run knows it. */
static double median_of(const struct run_set *s, enum run_fact fact)
{
    double list[RUNS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->runs[i].facts[fact]) {
            char *end;
            double number = strtod(s->runs[i].facts[fact], &end);
            if (!*end && isfinite(number))
                list[count++] = number;
        }
    return count ? rank_median(list, count) : NAN;
}

static void note_fact(struct comparison *c, enum run_fact fact)
{
    double now = median_of(c->sides[0], fact), before = median_of(c->sides[1], fact);
    if (fabs(now - before) > NOTED_SHARE * fmax(fabs(now), fabs(before)))
        say(&c->notes, "%s: %.4g, before: %.4g", run_fact_infos[fact].text, now, before);
}

void comparability_find(struct comparison *c)
{
    compare_losses(c); /* first: of a run that was killed facts may be unknown, too */
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (run_fact_infos[i].matters <= FACT_IF_KNOWN)
            compare_fact(c, (enum run_fact)i);
    compare_cost(c);
    note_warm_up(c);
    note_outweighed(c);
    note_energy(c);
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (run_fact_infos[i].matters == FACT_NOTED)
            note_fact(c, (enum run_fact)i);
}
