/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes baseline files, and resolves the operands of a command line. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/json_text.h"
#include "base/text.h"
#include "diff/run_summary.h"
#include "error.h"
#include "read/recording.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Larger numbers in a file are rejected. */
#define STEPS_BELIEVED  (1ll << 40)
#define AMOUNT_BELIEVED 1e18

static const char *const place_keys[RUN_PLACES] = {[RUN_OPERATOR] = "operator",
                                                   [RUN_LIBRARY] = "library",
                                                   [RUN_RANGE] = "range",
                                                   [RUN_LINE] = "line"};

/* Returns whether the value is possible. A metric of the run is left out when it is 0. */
static bool can_be(enum run_metric m, double number)
{
    return number <= AMOUNT_BELIEVED &&
           (run_metric_infos[m].of == RUN_OF_RUN ? number > 0 : number >= 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

void run_put_json(const struct run_summary *run, const char *name, bool has_all, FILE *out)
{
    const char *separator = "";
    json_printf(out, "{\"name\": %s, \"steps\": %" PRIu64 ", \"warm_up\": %" PRIu64, name,
                run->steps, run->warm_up);
    if (has_all || run->energy_steps)
        json_printf(out, ", \"energy_steps\": %" PRIu64, run->energy_steps);
    if (has_all || !isnan(run->cost))
        json_printf(out, ", \"cost\": %.15g", run->cost);
    fputs(", \"metrics\": {", out);
    for (enum run_metric i = 0; i < RUN_METRICS; i++)
        if (has_all || can_be(i, run->metrics[i])) {
            fputs(separator, out);
            json_printf(out, "%s: %.15g", run_metric_infos[i].key, run->metrics[i]);
            separator = ", ";
        }
    fputs("}, \"facts\": {", out);
    separator = "";
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (has_all || run->facts[i]) {
            fputs(separator, out);
            json_printf(out, "%s: %s", run_fact_infos[i].key, run->facts[i]);
            separator = ", ";
        }
    fputs("}}", out);
}

static int longest_first(const void *left, const void *right)
{
    const struct run_kernel *a = left, *b = right;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : strcmp(a->name, b->name);
}

void baseline_write(struct run_set *s, FILE *out)
{
    struct run_summary *t = &s->together;
    fprintf(out, "{\"gpuprof_baseline\": %d,\n\"runs\": [", BASELINE_VERSION);
    for (uint32_t i = 0; i < s->count; i++) {
        fputs(i ? ",\n" : "\n", out);
        run_put_json(&s->runs[i], s->names[i], false, out);
    }
    fprintf(out, "],\n\"kernel_steps\": %" PRIu64 ",\n\"kernels\": [", t->steps);
    ARRAY_SORT(t->kernels, t->kernel_count, longest_first);
    for (uint32_t i = 0; i < t->kernel_count && i < BASELINE_KERNELS_MAX; i++) {
        const struct run_kernel *k = &t->kernels[i];
        fputs(i ? ",\n" : "\n", out);
        json_printf(out, "{\"count\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"name\": %s", k->count,
                    k->ns, k->name);
        for (unsigned place = 0; place < RUN_PLACES; place++)
            if (k->place[place])
                json_printf(out, ", %s: %s", place_keys[place], k->place[place]);
        fputc('}', out);
    }
    fputs("]}\n", out);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The readers set *error unless it is set. */
static uint64_t read_whole(struct json_piece object, const char *key, int64_t most, int *error)
{
    int64_t value = 0;
    if (*error == 0 && (!json_whole(json_member(object, key), &value) || value < 0 || value > most))
        *error = GPUPROF_DAMAGED;
    return (uint64_t)value;
}

/* Reads a text into new memory; NULL: there is none. */
static char *read_text(struct json_piece object, const char *key, bool is_needed, int *error)
{
    struct json_piece piece = json_member(object, key);
    char *text = json_is(piece, '"') ? malloc(piece.length + 1) : NULL;
    if (text)
        text[json_unescape(piece, text)] = '\0';
    else if (*error == 0 && (piece.length || is_needed))
        *error = json_is(piece, '"') ? GPUPROF_NO_MEMORY : GPUPROF_DAMAGED;
    return text;
}

/* Returns the number; NAN: it is none, or negative. */
static double baseline_file_number_of(struct json_piece piece)
{
    return piece.length && *piece.at >= '0' && *piece.at <= '9' ? json_double(piece) : NAN;
}

static void read_numbers(struct json_piece object, struct run_summary *run, int *error)
{
    struct json_piece metrics = json_member(object, "metrics"), cost = json_member(object, "cost");
    bool is_good = json_is(metrics, '{');
    for (enum run_metric i = 0; is_good && i < RUN_METRICS; i++) {
        struct json_piece piece = json_member(metrics, run_metric_infos[i].key);
        run->metrics[i] = baseline_file_number_of(piece);
        is_good = !piece.length || can_be(i, run->metrics[i]);
    }
    run->cost = baseline_file_number_of(cost);
    if (*error == 0 && (!is_good || (cost.length && !(run->cost <= AMOUNT_BELIEVED))))
        *error = GPUPROF_DAMAGED;
}

static int read_run(struct run_set *s, struct json_piece object)
{
    struct json_piece facts = json_member(object, "facts");
    struct run_summary run = {.steps = 0};
    int error = 0;
    char *name = read_text(object, "name", true, &error);
    run.steps = read_whole(object, "steps", STEPS_BELIEVED, &error);
    run.warm_up = read_whole(object, "warm_up", STEPS_BELIEVED, &error);
    if (json_member(object, "energy_steps").length)
        run.energy_steps = read_whole(object, "energy_steps", STEPS_BELIEVED, &error);
    read_numbers(object, &run, &error);
    for (unsigned i = 0; error == 0 && facts.length && i < RUN_FACTS; i++) {
        char *text = read_text(facts, run_fact_infos[i].key, false, &error);
        error = error == 0 ? run_fact_set(&run, (enum run_fact)i, text) : error;
        free(text);
    }
    if (error == 0)
        error = run_set_add(s, &run, name);
    run_summary_release(&run);
    free(name);
    return error;
}

static int read_kernel(struct run_set *s, struct json_piece object)
{
    int error = 0;
    struct run_kernel k = {.name = read_text(object, "name", true, &error)};
    k.count = read_whole(object, "count", INT64_MAX, &error);
    k.ns = read_whole(object, "ns", INT64_MAX, &error);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        k.place[i] = read_text(object, place_keys[i], false, &error);
    if (error == 0)
        error = run_kernel_add(&s->together, &k);
    free(k.name);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        free(k.place[i]);
    return error;
}

static int baseline_file_read_all(struct run_set *s, struct json_piece array, uint32_t most,
                                  int (*read)(struct run_set *, struct json_piece))
{
    struct json_piece key, object;
    const char *at = array.at + 1;
    int error = 0;
    for (uint32_t i = 0; error == 0 && json_next(&at, array.at + array.length, &key, &object); i++)
        error = i == most ? GPUPROF_LIMIT : read(s, object);
    return error;
}

int baseline_read(struct run_set *s, const char *text, size_t length)
{
    struct json_piece file = {text, length}, kernels, runs;
    int64_t version;
    if (!json_is(file, '{') || !json_whole(json_member(file, "gpuprof_baseline"), &version))
        return GPUPROF_NOT_OURS;
    if (version != BASELINE_VERSION)
        return GPUPROF_VERSION;
    runs = json_member(file, "runs");
    kernels = json_member(file, "kernels");
    if (!json_is(runs, '[') || !json_is(kernels, '[') || text[length - 1] != '}')
        return GPUPROF_DAMAGED;
    uint32_t before = s->count;
    int error = 0;
    s->together.steps += read_whole(file, "kernel_steps", STEPS_BELIEVED, &error);
    if (error == 0)
        error = baseline_file_read_all(s, runs, RUNS_MAX, read_run);
    if (error == 0 && s->count == before)
        error = GPUPROF_DAMAGED;
    if (error == 0)
        error = baseline_file_read_all(s, kernels, BASELINE_KERNELS_MAX, read_kernel);
    run_kernels_order(&s->together);
    return error;
}

/* ---- names ----------------------------------------------------------------------------------- */

char *baseline_path(const char *folder, const char *name)
{
    size_t length = strlen(name);
    if (!length || length > BASELINE_NAME_BYTES || strspn(name, NAME_CHARACTERS) != length ||
        *name == '.' || *name == '-')
        return NULL;
    return text_printf("%s/%s.json", folder, name);
}

enum exit_code run_operands_baseline(struct run_set *s, const char *path, const char *verb)
{
    char *text = malloc(BASELINE_BYTES_MAX + 1u);
    ssize_t length = text ? file_head(path, text, BASELINE_BYTES_MAX + 1u) : GPUPROF_NO_MEMORY;
    if (length == GPUPROF_IO || length > (ssize_t)BASELINE_BYTES_MAX) {
        int number = length < 0 ? errno : EFBIG;
        message("%s: %s: %s%s", verb, path, strerror(number), reading_advice(number));
        free(text);
        return EXIT_USAGE;
    }
    while (length > 0 && strchr(" \n\r\t", text[length - 1]))
        length--;
    int error = length > 0    ? baseline_read(s, text, (size_t)length)
                : length == 0 ? GPUPROF_NOT_OURS
                              : (int)length;
    free(text);
    switch (error) {
    case 0: return EXIT_OK;
    case GPUPROF_NO_MEMORY: return say_error(verb, error);
    case GPUPROF_NOT_OURS: return usage_error("%s: %s: not a gpuprof baseline", verb, path);
    case GPUPROF_VERSION:
        return usage_error(
            "%s: %s: this gpuprof cannot read this version of a baseline; save the baseline again",
            verb, path);
    case GPUPROF_LIMIT:
        return usage_error("%s: %s: more than %d runs on a side, or %d kernels", verb, path,
                           RUNS_MAX, BASELINE_KERNELS_MAX);
    default: return usage_error("%s: %s: damaged; save the baseline again", verb, path);
    }
}

static enum exit_code read_recording(struct run_set *s, const char *name, char **paths, int count,
                                     const struct run_reading *how)
{
    struct recording rec;
    struct run_summary run = {.steps = 0};
    const struct recording_options options = {.keep_live = how->options->keep_live};
    enum exit_code code = recording_open(&rec, paths, count, &options);
    rec.progress = progress_begin(how->verb, 3 * recording_bytes(&rec));
    if (code == EXIT_OK)
        code = run_summary_make(&run, &rec, how);
    int error = code == EXIT_OK ? run_set_add(s, &run, name) : 0;
    if (error == GPUPROF_LIMIT)
        code = usage_error("%s: %s: more than %d runs on a side", how->verb, name, RUNS_MAX);
    else if (error < 0)
        code = say_error(how->verb, error);
    run_summary_release(&run);
    recording_release(&rec);
    return code;
}

bool run_operands_same(const char *one, const char *other)
{
    struct stat first, second;
    if (strcmp(one, other) == 0)
        return true;
    return stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Sets *path to the baseline's file that the word names or is, in new memory; NULL: neither. */
static enum exit_code find_baseline(const char *word, const struct run_reading *how, char **path)
{
    struct stat status, other;
    char first, *named = baseline_path(how->folder, word);
    bool is_there = stat(word, &status) == 0;
    bool is_named = named && stat(named, &other) == 0;
    enum exit_code code = EXIT_OK;
    *path = NULL;
    if (is_there && is_named)
        code = usage_error("%s: %s: both %s '%s' and a baseline have this name; write ./%s or %s",
                           how->verb, word, S_ISDIR(status.st_mode) ? "a folder" : "a file", word,
                           word, named);
    else if (is_named || (file_head(word, &first, 1) == 1 && first == '{'))
        *path = is_named ? named : strdup(word);
    if (*path != named)
        free(named);
    return code;
}

/* Reads an operand. If nothing has that name, commas separate files that form one run:
 * "a.gpuprof,b.gpuprof". */
static enum exit_code read_operand(struct run_set *s, const char *word,
                                   const struct run_reading *how)
{
    struct stat status;
    const char *separators = stat(word, &status) == 0 ? "" : ",";
    char *baseline, *text = strdup(word), *rest = text;
    char **paths = calloc(strlen(word) + 2, sizeof *paths); /* with a NULL at the end */
    int count = 0;
    enum exit_code code = find_baseline(word, how, &baseline);
    if (!text || !paths)
        code = say_error(how->verb, GPUPROF_NO_MEMORY);
    for (; code == EXIT_OK && !baseline && (paths[count] = strsep(&rest, separators)); count++)
        if (stat(paths[count], &status) < 0)
            code = usage_error("%s: %s: neither a recording nor a baseline in %s; 'gpuprof "
                               "baseline list' shows the baselines",
                               how->verb, word, how->folder);
    if (code == EXIT_OK)
        code = baseline ? run_operands_baseline(s, baseline, how->verb)
                        : read_recording(s, word, paths, count, how);
    free(baseline);
    free(paths);
    free(text);
    return code;
}

enum exit_code run_operands_read(struct run_set *s, char **words, int count,
                                 const struct run_reading *how)
{
    enum exit_code code = EXIT_OK;
    for (int i = 0; code == EXIT_OK && i < count; i++) {
        for (int k = 0; k < i; k++)
            if (run_operands_same(words[i], words[k]))
                return usage_error("%s: %s: named twice on one side; name each run once", how->verb,
                                   words[i]);
        code = read_operand(s, words[i], how);
    }
    return code;
}
