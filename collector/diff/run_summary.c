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

static const char *const place_keys[RUN_PLACES] = {"operator", "library", "range", "line"};

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
    free(k->name);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        free(k->place[i]);
}

void run_kernel_add(struct run_summary *r, const struct run_kernel *kernel)
{
    if (r->kernel_count == RUN_KERNELS_MAX)
        return;
    struct run_kernel copy = {memory_text(kernel->name), {NULL}, kernel->count, kernel->ns};
    for (unsigned i = 0; i < RUN_PLACES; i++)
        copy.place[i] = memory_text(kernel->place[i]);
    ARRAY_PUSH(r->kernels, r->kernel_count, &copy);
}

/* NULL comes first. */
static int compare_or_none(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_kernels(const void *left, const void *right)
{
    const struct run_kernel *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    for (unsigned i = 0; order == 0 && i < RUN_PLACES; i++)
        order = compare_or_none(a->place[i], b->place[i]);
    return order;
}

void run_kernels_order(struct run_summary *r)
{
    uint32_t kept = 0;
    ARRAY_SORT(r->kernels, r->kernel_count, compare_kernels);
    for (uint32_t i = 0; i < r->kernel_count; i++) {
        struct run_kernel *k = &r->kernels[i], *last = kept ? &r->kernels[kept - 1] : NULL;
        if (!last || compare_kernels(last, k) != 0) {
            r->kernels[kept++] = *k;
            continue;
        }
        last->count += k->count;
        last->ns += k->ns;
        kernel_release(k);
    }
    r->kernel_count = kept;
}

static void run_kernels_release(struct run_summary *r)
{
    for (uint32_t i = 0; i < r->kernel_count; i++)
        kernel_release(&r->kernels[i]);
    free(r->kernels);
    r->kernels = NULL;
    r->kernel_count = 0;
}

void run_summary_release(struct run_summary *r)
{
    for (unsigned i = 0; i < RUN_FACTS; i++)
        free(r->facts[i]);
    run_kernels_release(r);
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
        run_summary_release(&s->runs[i]);
        free(s->names[i]);
    }
    run_summary_release(&s->together);
}

/* Moves `run` into the set and its kernels into `together`. Returns false if there are RUNS_MAX
 * already. */
static bool run_set_add(struct run_set *s, struct run_summary *run, const char *name)
{
    if (s->count == RUNS_MAX)
        return false;
    for (uint32_t i = 0; i < run->kernel_count; i++)
        run_kernel_add(&s->together, &run->kernels[i]);
    run_kernels_order(&s->together);
    if (run->kernel_count)
        s->together.steps += run->steps ? run->steps : 1; /* a run without steps counts as one */
    run_kernels_release(run);
    s->names[s->count] = json_line(name); /* a path, which may contain anything */
    s->runs[s->count++] = *run;
    *run = (struct run_summary){.steps = 0};
    return true;
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
    struct run_summary run = {.cost = amount_of(cost)};
    bool is_good = json_is(metrics, '{') && (!cost.length || run.cost <= AMOUNT_BELIEVED);
    char *name = read_text(object, "name", &is_good);
    run.steps = read_whole(object, "steps", STEPS_BELIEVED, &is_good);
    run.warm_up = read_whole(object, "warm_up", STEPS_BELIEVED, &is_good);
    if (json_member(object, "energy_steps").length)
        run.energy_steps = read_whole(object, "energy_steps", STEPS_BELIEVED, &is_good);
    for (enum run_metric i = 0; i < RUN_METRICS; i++) {
        struct json_piece piece = json_member(metrics, run_metric_infos[i].key);
        run.metrics[i] = amount_of(piece);
        is_good &= !piece.length || can_be(i, run.metrics[i]);
    }
    for (enum run_fact i = 0; facts.length && i < RUN_FACTS; i++) {
        char *text = read_text(facts, run_fact_infos[i].key, &is_good);
        run_fact_set(&run, i, text);
        free(text);
    }
    bool has_room = is_good && name && run_set_add(s, &run, name);
    run_summary_release(&run);
    free(name);
    return !is_good || !name ? DAMAGED : has_room ? NULL : TOO_MANY;
}

static const char *read_kernel(struct run_set *s, struct json_piece object)
{
    bool is_good = true;
    struct run_kernel k = {.name = read_text(object, "name", &is_good)};
    k.count = read_whole(object, "count", INT64_MAX, &is_good);
    k.ns = read_whole(object, "ns", INT64_MAX, &is_good);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        k.place[i] = read_text(object, place_keys[i], &is_good);
    is_good &= k.name != NULL;
    if (is_good)
        run_kernel_add(&s->together, &k);
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
    s->together.steps += read_whole(file, "kernel_steps", STEPS_BELIEVED, &is_good);
    if (!is_good || !json_is(runs, '[') || !json_is(kernels, '[') || text[length - 1] != '}')
        return DAMAGED;
    const char *wrong = read_items(s, runs, RUNS_MAX, read_run);
    if (!wrong && s->count == before)
        return DAMAGED;
    if (!wrong)
        wrong = read_items(s, kernels, BASELINE_KERNELS_MAX, read_kernel);
    run_kernels_order(&s->together);
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
    struct run_summary run = {.steps = 0};
    const struct recording_options options = {.keep_live = how->options->keep_live};
    enum exit_code code = recording_open(&rec, paths, count, &options);
    rec.progress = progress_begin(how->verb, 3 * recording_bytes(&rec));
    if (code == EXIT_OK)
        code = run_summary_make(&run, &rec, how);
    if (code == EXIT_OK && !run_set_add(s, &run, name))
        code = usage_error("%s: %s: " TOO_MANY, how->verb, name);
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
        *path = is_named ? named : memory_text(word);
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
    char *baseline, *text = memory_text(word), *rest = text;
    char **paths = memory_new(strlen(word) + 2, sizeof *paths); /* with a NULL at the end */
    int count = 0;
    enum exit_code code = find_baseline(word, how, &baseline);
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
