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

static const char *const place_keys[RUN_PLACES] = {[RUN_OPERATOR] = "operator",
                                                   [RUN_LIBRARY] = "library",
                                                   [RUN_RANGE] = "range",
                                                   [RUN_LINE] = "line"};

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(const char *before, const char *text, FILE *out)
{
    char *string = json_string(text, strlen(text));
    fprintf(out, "%s%s", before, string ? string : "\"\"");
    free(string);
}

static void put_run(const struct run_summary *run, const char *name, FILE *out)
{
    const char *separator = "";
    put_text("\n{\"name\": ", name, out);
    fprintf(out, ", \"steps\": %llu, \"warm_up\": %llu", (unsigned long long)run->steps,
            (unsigned long long)run->warm_up);
    if (!isnan(run->cost))
        fprintf(out, ", \"cost\": %.6g", run->cost);
    fputs(", \"metrics\": {", out);
    for (unsigned i = 0; i < RUN_METRICS; i++)
        if (!isnan(run->metrics[i])) {
            fprintf(out, "%s\"%s\": %.15g", separator, run_metric_infos[i].key, run->metrics[i]);
            separator = ", ";
        }
    fputs("}, \"facts\": {", out);
    separator = "";
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (run->facts[i]) {
            fprintf(out, "%s\"%s\": ", separator, run_fact_infos[i].key);
            put_text("", run->facts[i], out);
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
    put_text(", \"name\": ", k->name, out);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        if (k->place[i]) {
            fprintf(out, ", \"%s\": ", place_keys[i]);
            put_text("", k->place[i], out);
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

/* What the string says, in new memory; NULL: it is none, or no memory. */
static char *text_of(struct json_piece piece)
{
    char *text = json_is(piece, '"') ? malloc(piece.length + 1) : NULL;
    if (text)
        text[json_unescape(piece, text)] = '\0';
    return text;
}

static bool whole_of(struct json_piece object, const char *key, int64_t most, uint64_t *number)
{
    int64_t value;
    struct json_piece piece = json_member(object, key);
    if (!json_whole(piece, &value) || value < 0 || value > most)
        return false;
    *number = (uint64_t)value;
    return true;
}

/* A number that a metric may have; NAN: there is none. */
static double number_of(struct json_piece piece)
{
    bool is_number = piece.length && *piece.at >= '0' && *piece.at <= '9';
    double number = is_number ? json_double(piece) : NAN;
    return number >= 0 && number <= AMOUNT_BELIEVED ? number : NAN;
}

static int read_facts(struct run_summary *run, struct json_piece facts)
{
    int error = 0;
    for (unsigned i = 0; error == 0 && json_is(facts, '{') && i < RUN_FACTS; i++) {
        char *text = text_of(json_member(facts, run_fact_infos[i].key));
        error = run_fact_set(run, (enum run_fact)i, text);
        free(text);
    }
    return error;
}

static int read_run(struct run_set *s, struct json_piece object, const char **why)
{
    struct run_summary run = {.steps = 0};
    struct json_piece metrics = json_member(object, "metrics");
    char *name = text_of(json_member(object, "name"));
    *why = "a run has no name, metrics or steps";
    int error = !name || !json_is(metrics, '{') ||
                        !whole_of(object, "steps", STEPS_BELIEVED, &run.steps) ||
                        !whole_of(object, "warm_up", STEPS_BELIEVED, &run.warm_up)
                    ? GPUPROF_DAMAGED
                    : 0;
    for (unsigned i = 0; i < RUN_METRICS; i++)
        run.metrics[i] =
            error == 0 ? number_of(json_member(metrics, run_metric_infos[i].key)) : NAN;
    run.cost = number_of(json_member(object, "cost"));
    if (error == 0)
        error = read_facts(&run, json_member(object, "facts"));
    if (error == 0)
        error = run_set_add(s, &run, name);
    run_summary_release(&run);
    free(name);
    return error;
}

static int read_kernel(struct run_set *s, struct json_piece object, const char **why)
{
    struct run_kernel k = {.name = text_of(json_member(object, "name"))};
    *why = "a kernel has no name, count or time";
    int error = k.name && whole_of(object, "count", INT64_MAX, &k.count) &&
                        whole_of(object, "ns", INT64_MAX, &k.ns)
                    ? 0
                    : GPUPROF_DAMAGED;
    for (unsigned i = 0; i < RUN_PLACES; i++)
        k.place[i] = text_of(json_member(object, place_keys[i]));
    if (error == 0)
        error = run_kernel_add(&s->together, &k);
    free(k.name);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        free(k.place[i]);
    return error;
}

/* Each object of the array. */
static int read_all(struct run_set *s, struct json_piece array, uint32_t most, const char **why,
                    int (*read)(struct run_set *, struct json_piece, const char **))
{
    struct json_piece key, object;
    const char *at = array.at + 1;
    int error = 0;
    for (uint32_t i = 0; error == 0 && json_next(&at, array.at + array.length, &key, &object); i++)
        error = i == most              ? GPUPROF_LIMIT
                : json_is(object, '{') ? read(s, object, why)
                                       : GPUPROF_DAMAGED;
    return error;
}

int baseline_read(struct run_set *s, const char *text, size_t length, const char **why)
{
    struct json_piece file = {text, length}, kernels, runs;
    int64_t version;
    uint64_t steps = 0;
    if (!json_is(file, '{') || !json_whole(json_member(file, "gpuprof_baseline"), &version))
        return GPUPROF_NOT_OURS;
    if (version != BASELINE_VERSION)
        return GPUPROF_VERSION;
    runs = json_member(file, "runs");
    kernels = json_member(file, "kernels");
    *why = "it has no runs, or does not end";
    if (!json_is(runs, '[') || !json_is(kernels, '[') ||
        !whole_of(file, "kernel_steps", STEPS_BELIEVED, &steps) || text[length - 1] != '}')
        return GPUPROF_DAMAGED;
    uint32_t before = s->count;
    int error = read_all(s, runs, RUNS_MAX, why, read_run);
    if (error == 0 && s->count == before)
        error = GPUPROF_DAMAGED;
    if (error == 0)
        error = read_all(s, kernels, BASELINE_KERNELS_MAX, why, read_kernel);
    s->together.steps += steps;
    run_kernels_order(&s->together);
    return error;
}
