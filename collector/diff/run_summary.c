/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"
#include "read/recording.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Larger numbers in a file are rejected. */
#define STEPS_BELIEVED  (1ll << 40)
#define AMOUNT_BELIEVED 1e18

#define DAMAGED "damaged; save the baseline again"

static const char *const text_keys[RUN_TEXTS] = {"name", "operator", "library", "range", "line"};

/* Returns whether the value is possible. A metric of the run is left out when it is 0. */
static bool can_be(enum run_metric m, double number)
{
    return number <= AMOUNT_BELIEVED &&
           (run_metric_infos[m].of == RUN_OF_RUN ? number > 0 : number >= 0);
}

const struct run_metric_info run_metric_infos[RUN_METRICS] = {
#define RUN_METRIC(id, key, text, unit, of, scale, gates)                                          \
    {key, text, RUN_UNIT_##unit, RUN_OF_##of, RUN_SCALE_##scale, gates},
#include "diff/run_metrics.def"
};

const struct run_fact_info run_fact_infos[RUN_FACTS] = {
#define RUN_FACT(id, key, text, matters, meta) {key, text, FACT_##matters, meta},
#include "diff/run_facts.def"
};

/* ---- kernels --------------------------------------------------------------------------------- */

static void kernel_release(struct run_kernel *k)
{
    for (unsigned i = 0; i < RUN_TEXTS; i++)
        free(k->texts[i]);
}

void run_kernel_add(struct run_kernels *k, const struct run_kernel *kernel)
{
    struct run_kernel copy = {.count = kernel->count, .ns = kernel->ns};
    if (k->count == RUN_KERNELS_MAX)
        return;
    for (unsigned i = 0; i < RUN_TEXTS; i++)
        copy.texts[i] = memory_text(kernel->texts[i]);
    ARRAY_PUSH(k->list, k->count, &copy);
}

/* NULL comes first. */
static int compare_or_none(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_kernels(const void *left, const void *right)
{
    const struct run_kernel *a = left, *b = right;
    int order = 0;
    for (unsigned i = 0; order == 0 && i < RUN_TEXTS; i++)
        order = compare_or_none(a->texts[i], b->texts[i]);
    return order;
}

void run_kernels_order(struct run_kernels *k)
{
    uint32_t kept = 0;
    ARRAY_SORT(k->list, k->count, compare_kernels);
    for (uint32_t i = 0; i < k->count; i++) {
        struct run_kernel *row = &k->list[i], *last = kept ? &k->list[kept - 1] : NULL;
        if (!last || compare_kernels(last, row) != 0) {
            k->list[kept++] = *row;
            continue;
        }
        last->count += row->count;
        last->ns += row->ns;
        kernel_release(row);
    }
    k->count = kept;
}

void run_kernels_release(struct run_kernels *k)
{
    for (uint32_t i = 0; i < k->count; i++)
        kernel_release(&k->list[i]);
    free(k->list);
}

void run_fact_set(struct run_summary *r, enum run_fact fact, const char *text)
{
    if (text && *text && !r->facts[fact])
        r->facts[fact] = json_line(text);
}

/* ---- runs ------------------------------------------------------------------------------------ */

void run_set_release(struct run_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        for (unsigned k = 0; k < RUN_FACTS; k++)
            free(s->runs[i].facts[k]);
        free(s->runs[i].name);
    }
    run_kernels_release(&s->kernels);
}

struct run_summary *run_set_add(struct run_set *s, const char *name)
{
    if (s->count == RUNS_MAX)
        return NULL;
    struct run_summary *run = &s->runs[s->count++];
    *run = (struct run_summary){.name = json_line(name), .cost = NAN}; /* a path may be anything */
    for (unsigned i = 0; i < RUN_METRICS; i++)
        run->metrics[i] = NAN;
    return run;
}

uint32_t run_set_gather(const struct run_set *s, enum run_metric m, double list[static RUNS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!isnan(s->runs[i].metrics[m]))
            list[count++] = s->runs[i].metrics[m];
    return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

void run_put_json(const struct run_summary *run, bool has_all, FILE *out)
{
    const char *separator = "";
    json_printf(out, "{\"name\": %s, \"steps\": %" PRIu64 ", \"warm_up\": %" PRIu64, run->name,
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
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1)
                          : strcmp(a->texts[RUN_NAME], b->texts[RUN_NAME]);
}

void baseline_write(struct run_set *s, FILE *out)
{
    struct run_kernels *all = &s->kernels;
    fprintf(out, "{\"gpuprof_baseline\": %d,\n\"runs\": [", BASELINE_VERSION);
    for (uint32_t i = 0; i < s->count; i++) {
        fputs(i ? ",\n" : "\n", out);
        run_put_json(&s->runs[i], false, out);
    }
    fprintf(out, "],\n\"kernel_steps\": %" PRIu64 ",\n\"kernels\": [", all->steps);
    ARRAY_SORT(all->list, all->count, longest_first);
    for (uint32_t i = 0; i < all->count && i < BASELINE_KERNELS_MAX; i++) {
        const struct run_kernel *k = &all->list[i];
        fputs(i ? ",\n" : "\n", out);
        json_printf(out, "{\"count\": %" PRIu64 ", \"ns\": %" PRIu64, k->count, k->ns);
        for (unsigned text = 0; text < RUN_TEXTS; text++)
            if (k->texts[text])
                json_printf(out, ", %s: %s", text_keys[text], k->texts[text]);
        fputc('}', out);
    }
    fputs("]}\n", out);
}

/* ---- reading --------------------------------------------------------------------------------- */

#define TOO_MANY "more than 50 runs on a side, or 500 kernels"
_Static_assert(RUNS_MAX == 50 && BASELINE_KERNELS_MAX == 500, "as the text says");

/* The readers clear *is_good if something is damaged. */
static uint64_t read_whole(struct json_piece object, const char *key, int64_t most, bool *is_good)
{
    int64_t value = 0;
    *is_good &= json_whole(json_member(object, key), &value) && value >= 0 && value <= most;
    return (uint64_t)value;
}

/* Reads a text into new memory; NULL: there is none. */
static char *read_text(struct json_piece object, const char *key, bool *is_good)
{
    struct json_piece piece = json_member(object, key);
    char *text = json_is(piece, '"') ? memory_new(piece.length + 1, 1) : NULL;
    if (text)
        json_unescape(piece, text);
    *is_good &= text || !piece.length;
    return text;
}

/* Returns the number; NAN: it is none, or negative. */
static double amount_of(struct json_piece piece)
{
    return piece.length && *piece.at >= '0' && *piece.at <= '9' ? json_double(piece) : NAN;
}

static const char *read_run(struct run_set *s, struct json_piece object)
{
    struct json_piece facts = json_member(object, "facts"), cost = json_member(object, "cost");
    struct json_piece metrics = json_member(object, "metrics");
    bool is_good = json_is(metrics, '{');
    char *name = read_text(object, "name", &is_good);
    struct run_summary *run = run_set_add(s, name ? name : "");
    is_good &= name != NULL;
    free(name);
    if (!run)
        return TOO_MANY;
    run->cost = amount_of(cost);
    is_good &= !cost.length || run->cost <= AMOUNT_BELIEVED;
    run->steps = read_whole(object, "steps", STEPS_BELIEVED, &is_good);
    run->warm_up = read_whole(object, "warm_up", STEPS_BELIEVED, &is_good);
    if (json_member(object, "energy_steps").length)
        run->energy_steps = read_whole(object, "energy_steps", STEPS_BELIEVED, &is_good);
    for (enum run_metric i = 0; i < RUN_METRICS; i++) {
        struct json_piece piece = json_member(metrics, run_metric_infos[i].key);
        run->metrics[i] = amount_of(piece);
        is_good &= !piece.length || can_be(i, run->metrics[i]);
    }
    for (enum run_fact i = 0; facts.length && i < RUN_FACTS; i++) {
        char *text = read_text(facts, run_fact_infos[i].key, &is_good);
        run_fact_set(run, i, text);
        free(text);
    }
    return is_good ? NULL : DAMAGED;
}

static const char *read_kernel(struct run_set *s, struct json_piece object)
{
    bool is_good = true;
    struct run_kernel k = {.count = read_whole(object, "count", INT64_MAX, &is_good),
                           .ns = read_whole(object, "ns", INT64_MAX, &is_good)};
    for (unsigned i = 0; i < RUN_TEXTS; i++)
        k.texts[i] = read_text(object, text_keys[i], &is_good);
    is_good &= k.texts[RUN_NAME] != NULL;
    if (is_good)
        run_kernel_add(&s->kernels, &k);
    kernel_release(&k);
    return is_good ? NULL : DAMAGED;
}

/* Reads at most `most` items. */
static const char *read_items(struct run_set *s, struct json_piece array, uint32_t most,
                              const char *(*read)(struct run_set *, struct json_piece))
{
    struct json_piece key, object;
    const char *at = array.at + 1, *wrong = NULL;
    for (uint32_t i = 0; !wrong && json_next(&at, array.at + array.length, &key, &object); i++)
        wrong = i == most ? TOO_MANY : read(s, object);
    return wrong;
}

const char *baseline_read(struct run_set *s, const char *text, size_t length)
{
    struct json_piece file = {text, length}, kernels, runs;
    uint32_t before = s->count;
    bool is_good = true;
    int64_t version;
    if (!json_is(file, '{') || !json_whole(json_member(file, "gpuprof_baseline"), &version))
        return "not a gpuprof baseline";
    if (version != BASELINE_VERSION)
        return "this gpuprof cannot read this version of a baseline; save the baseline again";
    runs = json_member(file, "runs");
    kernels = json_member(file, "kernels");
    s->kernels.steps += read_whole(file, "kernel_steps", STEPS_BELIEVED, &is_good);
    if (!is_good || !json_is(runs, '[') || !json_is(kernels, '[') || text[length - 1] != '}')
        return DAMAGED;
    const char *wrong = read_items(s, runs, RUNS_MAX, read_run);
    if (!wrong && s->count == before)
        return DAMAGED;
    if (!wrong)
        wrong = read_items(s, kernels, BASELINE_KERNELS_MAX, read_kernel);
    run_kernels_order(&s->kernels);
    return wrong;
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
    char *text = memory_new(BASELINE_BYTES_MAX + 1u, 1);
    ssize_t length = file_head(path, text, BASELINE_BYTES_MAX + 1u);
    const char *wrong = "not a gpuprof baseline";
    if (length == GPUPROF_IO || length > (ssize_t)BASELINE_BYTES_MAX) {
        int number = length < 0 ? errno : EFBIG;
        message("%s: %s: %s%s", verb, path, strerror(number), reading_advice(number));
        free(text);
        return EXIT_USAGE;
    }
    while (length > 0 && strchr(" \n\r\t", text[length - 1]))
        length--;
    if (length > 0)
        wrong = baseline_read(s, text, (size_t)length);
    free(text);
    return wrong ? usage_error("%s: %s: %s", verb, path, wrong) : EXIT_OK;
}

static enum exit_code read_recording(struct run_set *s, const char *name, char **paths, int count,
                                     const struct run_reading *how)
{
    struct recording rec;
    struct run_summary *run = run_set_add(s, name);
    const struct recording_options options = {.keep_live = how->options->keep_live};
    if (!run)
        return usage_error("%s: %s: " TOO_MANY, how->verb, name);
    enum exit_code code = recording_open(&rec, paths, count, &options);
    rec.progress = progress_begin(how->verb, 3 * recording_bytes(&rec));
    if (code == EXIT_OK)
        code = run_summary_make(s, run, &rec, how);
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
    char first;
    *path = baseline_path(how->folder, word);
    if (*path && stat(*path, &other) == 0)
        return stat(word, &status) < 0
                   ? EXIT_OK
                   : usage_error("%s: %s: both %s '%s' and a baseline have this name; write ./%s "
                                 "or %s",
                                 how->verb, word, S_ISDIR(status.st_mode) ? "a folder" : "a file",
                                 word, word, *path);
    free(*path);
    *path = file_head(word, &first, 1) == 1 && first == '{' ? memory_text(word) : NULL;
    return EXIT_OK;
}

/* Reads an operand. If nothing has that name, commas separate files that form one run:
 * "a.gpuprof,b.gpuprof". */
static enum exit_code read_operand(struct run_set *s, const char *word,
                                   const struct run_reading *how)
{
    struct stat status;
    const char *separators = stat(word, &status) == 0 ? "" : ",";
    char *baseline, *text = memory_text(word), *rest = text;
    char **paths = memory_new(strlen(word) + 2, sizeof *paths); /* with a NULL at the end */
    int count = 0;
    enum exit_code code = find_baseline(word, how, &baseline);
    for (; code == EXIT_OK && !baseline && (paths[count] = strsep(&rest, separators)); count++)
        if (stat(paths[count], &status) < 0)
            code = usage_error("%s: %s: neither a recording nor a baseline in %s; 'gpuprof "
                               "diff --list' shows the baselines",
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
