/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes baseline files, and resolves the operands of a command line. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void run_put_number(const char *before, double number, FILE *out)
{
    fputs(before, out);
    if (isfinite(number))
        fprintf(out, "%.15g", number);
    else
        fputs("null", out);
}

void run_put_json(const struct run_summary *run, const char *name, bool has_all, FILE *out)
{
    const char *separator = "";
    json_put("{\"name\": ", name, out);
    fprintf(out, ", \"steps\": %llu, \"warm_up\": %llu", (unsigned long long)run->steps,
            (unsigned long long)run->warm_up);
    if (has_all || run->energy_steps)
        fprintf(out, ", \"energy_steps\": %llu", (unsigned long long)run->energy_steps);
    if (has_all || !isnan(run->cost))
        run_put_number(", \"cost\": ", run->cost, out);
    fputs(", \"metrics\": {", out);
    for (unsigned i = 0; i < RUN_METRICS; i++)
        if (has_all || can_be((enum run_metric)i, run->metrics[i])) {
            fprintf(out, "%s\"%s\"", separator, run_metric_infos[i].key);
            run_put_number(": ", run->metrics[i], out);
            separator = ", ";
        }
    fputs("}, \"facts\": {", out);
    separator = "";
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (has_all || run->facts[i]) {
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
        fputs(i ? ",\n" : "\n", out);
        run_put_json(&s->runs[i], s->names[i], false, out);
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

static int read_whole(struct json_piece object, const char *key, int64_t most, uint64_t *number)
{
    int64_t value;
    if (!json_whole(json_member(object, key), &value) || value < 0 || value > most)
        return GPUPROF_DAMAGED;
    *number = (uint64_t)value;
    return 0;
}

/* Reads a required text into new memory. */
static int read_text(struct json_piece object, const char *key, char **text)
{
    struct json_piece piece = json_member(object, key);
    if (!json_is(piece, '"'))
        return GPUPROF_DAMAGED;
    if (!(*text = malloc(piece.length + 1)))
        return GPUPROF_NO_MEMORY;
    (*text)[json_unescape(piece, *text)] = '\0';
    return 0;
}

/* Reads an optional text. */
static int read_known(struct json_piece object, const char *key, char **text)
{
    return json_member(object, key).length ? read_text(object, key, text) : 0;
}

/* Returns the number; NAN: it is none, or negative. */
static double baseline_file_number_of(struct json_piece piece)
{
    return piece.length && *piece.at >= '0' && *piece.at <= '9' ? json_double(piece) : NAN;
}

static int read_numbers(struct json_piece object, struct run_summary *run)
{
    struct json_piece metrics = json_member(object, "metrics"), cost = json_member(object, "cost");
    if (!json_is(metrics, '{'))
        return GPUPROF_DAMAGED;
    for (unsigned i = 0; i < RUN_METRICS; i++) {
        struct json_piece piece = json_member(metrics, run_metric_infos[i].key);
        run->metrics[i] = baseline_file_number_of(piece);
        if (piece.length && !can_be((enum run_metric)i, run->metrics[i]))
            return GPUPROF_DAMAGED;
    }
    run->cost = baseline_file_number_of(cost);
    return cost.length && !(run->cost <= AMOUNT_BELIEVED) ? GPUPROF_DAMAGED : 0;
}

static int read_facts(struct json_piece object, struct run_summary *run)
{
    struct json_piece facts = json_member(object, "facts");
    int error = 0;
    for (unsigned i = 0; error == 0 && facts.length && i < RUN_FACTS; i++) {
        char *text = NULL;
        error = read_known(facts, run_fact_infos[i].key, &text);
        if (error == 0)
            error = run_fact_set(run, (enum run_fact)i, text);
        free(text);
    }
    return error;
}

static int read_run(struct run_set *s, struct json_piece object)
{
    struct run_summary run = {.steps = 0};
    char *name = NULL;
    int error = read_text(object, "name", &name);
    if (error == 0)
        error = read_whole(object, "steps", STEPS_BELIEVED, &run.steps);
    if (error == 0)
        error = read_whole(object, "warm_up", STEPS_BELIEVED, &run.warm_up);
    if (error == 0 && json_member(object, "energy_steps").length)
        error = read_whole(object, "energy_steps", STEPS_BELIEVED, &run.energy_steps);
    if (error == 0)
        error = read_numbers(object, &run);
    if (error == 0)
        error = read_facts(object, &run);
    if (error == 0)
        error = run_set_add(s, &run, name);
    run_summary_release(&run);
    free(name);
    return error;
}

static int read_kernel(struct run_set *s, struct json_piece object)
{
    struct run_kernel k = {.name = NULL};
    int error = read_text(object, "name", &k.name);
    if (error == 0)
        error = read_whole(object, "count", INT64_MAX, &k.count);
    if (error == 0)
        error = read_whole(object, "ns", INT64_MAX, &k.ns);
    for (unsigned i = 0; error == 0 && i < RUN_PLACES; i++)
        error = read_known(object, place_keys[i], &k.place[i]);
    if (error == 0)
        error = run_kernel_add(&s->together, &k);
    free(k.name);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        free(k.place[i]);
    return error;
}

/* Reads each object of the array. */
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
    uint64_t steps = 0;
    if (!json_is(file, '{') || !json_whole(json_member(file, "gpuprof_baseline"), &version))
        return GPUPROF_NOT_OURS;
    if (version != BASELINE_VERSION)
        return GPUPROF_VERSION;
    runs = json_member(file, "runs");
    kernels = json_member(file, "kernels");
    if (!json_is(runs, '[') || !json_is(kernels, '[') || text[length - 1] != '}')
        return GPUPROF_DAMAGED;
    uint32_t before = s->count;
    int error = read_whole(file, "kernel_steps", STEPS_BELIEVED, &steps);
    if (error == 0)
        error = baseline_file_read_all(s, runs, RUNS_MAX, read_run);
    if (error == 0 && s->count == before)
        error = GPUPROF_DAMAGED;
    if (error == 0)
        error = baseline_file_read_all(s, kernels, BASELINE_KERNELS_MAX, read_kernel);
    s->together.steps += steps;
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

/* Reads a file without trailing white space into new memory. NULL: see errno; EFBIG: too large. */
static char *baseline_file_read_file(const char *path, size_t *length)
{
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* does not wait for a FIFO */
    char *text = fd < 0 ? NULL : malloc(BASELINE_BYTES_MAX + 1u);
    ssize_t got = text ? file_read_at(fd, 0, text, BASELINE_BYTES_MAX + 1u) : -1;
    int number = got > (ssize_t)BASELINE_BYTES_MAX ? EFBIG : errno;
    if (fd >= 0)
        close(fd);
    for (*length = got < 0 ? 0 : (size_t)got; *length && strchr(" \n\r\t", text[*length - 1]);)
        --*length;
    if (got >= 0 && got <= (ssize_t)BASELINE_BYTES_MAX)
        return text;
    free(text);
    errno = number;
    return NULL;
}

enum exit_code run_operands_baseline(struct run_set *s, const char *path, const char *verb)
{
    size_t length;
    char *text = baseline_file_read_file(path, &length);
    if (!text) {
        message("%s: %s: %s%s", verb, path, strerror(errno), reading_advice(errno));
        return EXIT_USAGE;
    }
    int error = length ? baseline_read(s, text, length) : GPUPROF_NOT_OURS;
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

/* Adds the recording in `paths` as one run with the name `name`. */
static enum exit_code read_recording(struct run_set *s, const char *name, char **paths, int count,
                                     const struct run_reading *how)
{
    struct recording rec;
    struct run_summary run = {.steps = 0};
    const struct recording_options options = {.keep_live = how->keep_live};
    enum exit_code code = recording_open(&rec, paths, count, &options);
    rec.progress = progress_begin(how->request.verb, 3 * recording_bytes(&rec));
    if (code == EXIT_OK)
        code = run_summary_make(&run, &rec, &how->request);
    int error = code == EXIT_OK ? run_set_add(s, &run, name) : 0;
    if (error == GPUPROF_LIMIT)
        code =
            usage_error("%s: %s: more than %d runs on a side", how->request.verb, name, RUNS_MAX);
    else if (error < 0)
        code = say_error(how->request.verb, error);
    run_summary_release(&run);
    recording_release(&rec);
    return code;
}

/* Returns whether the file begins like a baseline. */
static bool is_baseline(const char *path)
{
    FILE *file = fopen(path, "re");
    bool is = file && fgetc(file) == '{';
    if (file)
        fclose(file);
    return is;
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
    bool is_there = stat(word, &status) == 0;
    char *named = baseline_path(how->folder, word);
    bool is_named = named && stat(named, &other) == 0;
    enum exit_code code = EXIT_OK;
    *path = NULL;
    if (is_there && is_named)
        code = usage_error("%s: %s: both %s '%s' and a baseline have this name; write ./%s or %s",
                           how->request.verb, word, S_ISDIR(status.st_mode) ? "a folder" : "a file",
                           word, word, named);
    else if (is_named || (is_there && S_ISREG(status.st_mode) && is_baseline(word)))
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
        code = say_error(how->request.verb, GPUPROF_NO_MEMORY);
    for (; code == EXIT_OK && !baseline && (paths[count] = strsep(&rest, separators)); count++)
        if (stat(paths[count], &status) < 0)
            code = usage_error("%s: %s: neither a recording nor a baseline in %s; 'gpuprof "
                               "baseline list' shows the baselines",
                               how->request.verb, word, how->folder);
    if (code == EXIT_OK)
        code = baseline ? run_operands_baseline(s, baseline, how->request.verb)
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
                return usage_error("%s: %s: named twice on one side; name each run once",
                                   how->request.verb, words[i]);
        code = read_operand(s, words[i], how);
    }
    return code;
}
