/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/baseline_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/json_text.h"
#include "error.h"

/* Of a file: what is more is not true. */
#define STEPS_BELIEVED  (1ll << 40)
#define AMOUNT_BELIEVED 1e18

#define NUMBER_BYTES 40 /* of a number's text: longer ones nobody writes */
#define SHOWN_BYTES  40 /* of a value that is refused */
#define WHERE_BYTES  24

static const char *const place_keys[RUN_PLACES] = {[RUN_OPERATOR] = "operator",
                                                   [RUN_LIBRARY] = "library",
                                                   [RUN_RANGE] = "range",
                                                   [RUN_LINE] = "line"};

/* May the metric be that? What a run has once is not there where it is nothing. */
static bool can_be(enum run_metric m, double number)
{
    return number <= AMOUNT_BELIEVED &&
           (run_metric_infos[m].of == RUN_OF_RUN ? number > 0 : number >= 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_run(const struct run_summary *run, const char *name, FILE *out)
{
    const char *separator = "";
    json_put("\n{\"name\": ", name, out);
    fprintf(out, ", \"steps\": %llu, \"warm_up\": %llu", (unsigned long long)run->steps,
            (unsigned long long)run->warm_up);
    if (run->energy_steps)
        fprintf(out, ", \"energy_steps\": %llu", (unsigned long long)run->energy_steps);
    if (!isnan(run->cost))
        fprintf(out, ", \"cost\": %.6g", run->cost);
    fputs(", \"metrics\": {", out);
    for (unsigned i = 0; i < RUN_METRICS; i++)
        if (can_be((enum run_metric)i, run->metrics[i])) {
            fprintf(out, "%s\"%s\": %.15g", separator, run_metric_infos[i].key, run->metrics[i]);
            separator = ", ";
        }
    fputs("}, \"facts\": {", out);
    separator = "";
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (run->facts[i]) {
            fprintf(out, "%s\"%s\"", separator, run_fact_infos[i].key);
            json_put(": ", run->facts[i], out);
            separator = ", ";
        }
    fputs("}}", out);
}

static int longest_first(const void *left, const void *right)
{
    const struct run_kernel *a = left, *b = right;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : strcmp(a->name, b->name);
}

static void put_kernel(const struct run_kernel *k, FILE *out)
{
    fprintf(out, "\n{\"count\": %llu, \"ns\": %llu", (unsigned long long)k->count,
            (unsigned long long)k->ns);
    json_put(", \"name\": ", k->name, out);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        if (k->place[i]) {
            fprintf(out, ", \"%s\"", place_keys[i]);
            json_put(": ", k->place[i], out);
        }
    fputc('}', out);
}

void baseline_write(struct run_set *s, FILE *out)
{
    struct run_summary *t = &s->together;
    fprintf(out, "{\"gpuprof_baseline\": %d,\n\"runs\": [", BASELINE_VERSION);
    for (uint32_t i = 0; i < s->count; i++) {
        fputs(i ? "," : "", out);
        put_run(&s->runs[i], s->names[i], out);
    }
    fprintf(out, "],\n\"kernel_steps\": %llu,\n\"kernels\": [", (unsigned long long)t->steps);
    if (t->kernel_count)
        qsort(t->kernels, t->kernel_count, sizeof *t->kernels, longest_first);
    for (uint32_t i = 0; i < t->kernel_count && i < BASELINE_KERNELS_MAX; i++) {
        fputs(i ? "," : "", out);
        put_kernel(&t->kernels[i], out);
    }
    fputs("]}\n", out);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct run_set *set;
    char *why;               /* BASELINE_WHY_BYTES: what is damaged */
    char where[WHERE_BYTES]; /* "run 2", "kernel 7": what is being read */
};

/* Says what of it is no `wanted`; the value of length 0: it is not there. */
static int damaged(const struct reader *r, const char *key, struct json_piece value,
                   const char *wanted)
{
    if (value.length)
        snprintf(r->why, BASELINE_WHY_BYTES, "%s: \"%s\" is %.*s, which is no %s", r->where, key,
                 (int)(value.length < SHOWN_BYTES ? value.length : SHOWN_BYTES), value.at, wanted);
    else
        snprintf(r->why, BASELINE_WHY_BYTES, "%s: \"%s\" is missing", r->where, key);
    return GPUPROF_DAMAGED;
}

static int read_whole(const struct reader *r, struct json_piece object, const char *key,
                      int64_t most, uint64_t *number)
{
    int64_t value;
    struct json_piece piece = json_member(object, key);
    if (!json_whole(piece, &value) || value < 0 || value > most)
        return damaged(r, key, piece, "whole number that can be");
    *number = (uint64_t)value;
    return 0;
}

/* A text that must be there. *text is new memory. */
static int read_text(const struct reader *r, struct json_piece object, const char *key, char **text)
{
    struct json_piece piece = json_member(object, key);
    if (!json_is(piece, '"'))
        return damaged(r, key, piece, "text");
    if (!(*text = malloc(piece.length + 1)))
        return GPUPROF_NO_MEMORY;
    (*text)[json_unescape(piece, *text)] = '\0';
    return 0;
}

/* A text that need not be there. */
static int read_known(const struct reader *r, struct json_piece object, const char *key,
                      char **text)
{
    return json_member(object, key).length ? read_text(r, object, key, text) : 0;
}

/* All of the piece, as JSON has numbers; NAN: it is none, or below 0 or beyond belief. */
static double number_of(struct json_piece piece)
{
    char text[NUMBER_BYTES], *end = text;
    if (!piece.length || piece.length >= sizeof text || *piece.at < '0' || *piece.at > '9')
        return NAN;
    memcpy(text, piece.at, piece.length);
    text[piece.length] = '\0';
    double number = strspn(text, "0123456789.eE+-") == piece.length ? strtod(text, &end) : NAN;
    return *end || number > AMOUNT_BELIEVED ? NAN : number;
}

static int read_numbers(const struct reader *r, struct json_piece object, struct run_summary *run)
{
    struct json_piece metrics = json_member(object, "metrics"), cost = json_member(object, "cost");
    if (!json_is(metrics, '{'))
        return damaged(r, "metrics", metrics, "object");
    for (unsigned i = 0; i < RUN_METRICS; i++) {
        struct json_piece piece = json_member(metrics, run_metric_infos[i].key);
        run->metrics[i] = number_of(piece);
        if (piece.length && !can_be((enum run_metric)i, run->metrics[i]))
            return damaged(r, run_metric_infos[i].key, piece,
                           run_metric_infos[i].of == RUN_OF_RUN ? "number above 0 that can be"
                                                                : "number that can be");
    }
    run->cost = number_of(cost);
    return cost.length && isnan(run->cost) ? damaged(r, "cost", cost, "number that can be") : 0;
}

static int read_facts(const struct reader *r, struct json_piece object, struct run_summary *run)
{
    struct json_piece facts = json_member(object, "facts");
    int error = 0;
    if (facts.length && !json_is(facts, '{'))
        return damaged(r, "facts", facts, "object");
    for (unsigned i = 0; error == 0 && facts.length && i < RUN_FACTS; i++) {
        char *text = NULL;
        error = read_known(r, facts, run_fact_infos[i].key, &text);
        if (error == 0)
            error = run_fact_set(run, (enum run_fact)i, text);
        free(text);
    }
    return error;
}

static int read_run(const struct reader *r, struct json_piece object)
{
    struct run_summary run = {.steps = 0};
    char *name = NULL;
    int error = read_text(r, object, "name", &name);
    if (error == 0)
        error = read_whole(r, object, "steps", STEPS_BELIEVED, &run.steps);
    if (error == 0)
        error = read_whole(r, object, "warm_up", STEPS_BELIEVED, &run.warm_up);
    if (error == 0 && json_member(object, "energy_steps").length)
        error = read_whole(r, object, "energy_steps", STEPS_BELIEVED, &run.energy_steps);
    if (error == 0)
        error = read_numbers(r, object, &run);
    if (error == 0)
        error = read_facts(r, object, &run);
    if (error == 0)
        error = run_set_add(r->set, &run, name);
    run_summary_release(&run);
    free(name);
    return error;
}

static int read_kernel(const struct reader *r, struct json_piece object)
{
    struct run_kernel k = {.name = NULL};
    int error = read_text(r, object, "name", &k.name);
    if (error == 0)
        error = read_whole(r, object, "count", INT64_MAX, &k.count);
    if (error == 0)
        error = read_whole(r, object, "ns", INT64_MAX, &k.ns);
    for (unsigned i = 0; error == 0 && i < RUN_PLACES; i++)
        error = read_known(r, object, place_keys[i], &k.place[i]);
    if (error == 0)
        error = run_kernel_add(&r->set->together, &k);
    free(k.name);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        free(k.place[i]);
    return error;
}

/* Each object of the array, of which messages are about `what`. */
static int read_all(struct reader *r, const char *what, struct json_piece array, uint32_t most,
                    int (*read)(const struct reader *, struct json_piece))
{
    struct json_piece key, object;
    const char *at = array.at + 1;
    int error = 0;
    for (uint32_t i = 0; error == 0 && json_next(&at, array.at + array.length, &key, &object);
         i++) {
        snprintf(r->where, WHERE_BYTES, "%s %u", what, i + 1);
        error = i == most              ? GPUPROF_LIMIT
                : json_is(object, '{') ? read(r, object)
                                       : damaged(r, what, object, "object");
    }
    return error;
}

int baseline_read(struct run_set *s, const char *text, size_t length, char why[BASELINE_WHY_BYTES])
{
    struct json_piece file = {text, length}, kernels, runs;
    struct reader r = {.set = s, .why = why, .where = "the file"};
    int64_t version;
    uint64_t steps = 0;
    if (!json_is(file, '{') || !json_whole(json_member(file, "gpuprof_baseline"), &version))
        return GPUPROF_NOT_OURS;
    if (version != BASELINE_VERSION)
        return GPUPROF_VERSION;
    runs = json_member(file, "runs");
    kernels = json_member(file, "kernels");
    snprintf(why, BASELINE_WHY_BYTES, "it has no runs, or does not end");
    if (!json_is(runs, '[') || !json_is(kernels, '[') || text[length - 1] != '}')
        return GPUPROF_DAMAGED;
    uint32_t before = s->count;
    int error = read_whole(&r, file, "kernel_steps", STEPS_BELIEVED, &steps);
    if (error == 0)
        error = read_all(&r, "run", runs, RUNS_MAX, read_run);
    if (error == 0 && s->count == before)
        error = GPUPROF_DAMAGED; /* `why` is as above */
    if (error == 0)
        error = read_all(&r, "kernel", kernels, BASELINE_KERNELS_MAX, read_kernel);
    s->together.steps += steps;
    run_kernels_order(&s->together);
    return error;
}
