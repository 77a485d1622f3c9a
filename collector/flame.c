/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `flame`: where the time of calls with a stack goes, by their stacks. */
#include "flame.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absence.h"
#include "error.h"
#include "message.h"
#include "unit_text.h"
#include "verb_output.h"

struct sorted_node {
    uint32_t parent;
    uint32_t node;
};

static int compare_nodes(const void *left, const void *right, void *tree)
{
    const struct sorted_node *a = left;
    const struct sorted_node *b = right;
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    int order =
        strcmp(call_tree_frame(tree, a->node)->label, call_tree_frame(tree, b->node)->label);
    return order ? order : a->node < b->node ? -1 : a->node > b->node;
}

uint64_t flame_value(enum flame_weight weight, const struct stack_cost *cost)
{
    switch (weight) {
    case WEIGHT_GPU: return cost->gpu_ns;
    case WEIGHT_CALLS: return cost->calls;
    case WEIGHT_BYTES: return cost->bytes;
    default: return cost->host_ns;
    }
}

const char *flame_value_text(enum flame_weight weight, char *text, uint64_t value)
{
    return weight == WEIGHT_CALLS   ? count_text(text, value)
           : weight == WEIGHT_BYTES ? bytes_text(text, value)
                                    : time_text(text, value);
}

const char *flame_weight_text(enum flame_weight weight)
{
    static const char *const texts[] = {
        [WEIGHT_HOST] = "time of calls on the host",
        [WEIGHT_GPU] = "time of launched work on the GPU",
        [WEIGHT_CALLS] = "calls",
        [WEIGHT_BYTES] = "bytes allocated",
    };
    return texts[weight];
}

char *flame_note(const struct flame *f, const struct stack_cost *without, char *text)
{
    char count[UNIT_TEXT_BYTES], host[UNIT_TEXT_BYTES], value[UNIT_TEXT_BYTES];
    char reason[NO_STACK_BYTES];
    bool bytes = f->weight == WEIGHT_BYTES;
    if (f->weight == WEIGHT_GPU ? !without->works : !without->calls)
        snprintf(text, FLAME_NOTE_BYTES, "every call has a stack");
    else if (f->weight == WEIGHT_GPU)
        snprintf(text, FLAME_NOTE_BYTES,
                 "[no stack]: %s of work on the GPU (%s kernel%s or the like) whose calls have no "
                 "stack; gpuprof run --backtrace=launch,copy,graph_launch has them",
                 flame_value_text(f->weight, value, without->gpu_ns),
                 count_text(count, without->works), without->works == 1 ? "" : "s");
    else
        snprintf(text, FLAME_NOTE_BYTES, "[no stack]: %s call%s without a stack (%s%s%s): %s%s",
                 count_text(count, without->calls), without->calls == 1 ? "" : "s",
                 time_text(host, without->host_ns), bytes ? ", " : "",
                 bytes ? bytes_text(value, without->bytes) : "",
                 stack_costs_reason(without, reason),
                 bytes ? "; gpuprof run --backtrace=alloc has one for each allocation" : "");
    return text;
}

uint32_t flame_next(const struct flame *f, uint32_t from)
{
    if (f->nodes[from].first_child)
        return f->nodes[from].first_child;
    while (from && !f->nodes[from].sibling)
        from = call_tree_node(&f->costs.tree, from)->parent;
    return from ? f->nodes[from].sibling : 0;
}

/* Numbers of all nodes, children in order. 0 or GPUPROF_NO_MEMORY. */
static int arrange(struct flame *f)
{
    const struct call_tree *tree = &f->costs.tree;
    struct sorted_node *sorted = calloc(tree->count + 1u, sizeof *sorted);
    uint32_t count = 0;
    f->nodes = calloc(tree->count + 1u, sizeof *f->nodes);
    if (!f->nodes || !sorted) {
        free(sorted);
        return GPUPROF_NO_MEMORY;
    }
    for (uint32_t n = tree->count; n > 0; n--) { /* parents have smaller numbers */
        struct stack_cost cost = stack_cost_of(&f->costs, n);
        uint32_t parent = call_tree_node(tree, n)->parent;
        f->nodes[n].own = flame_value(f->weight, &cost);
        f->nodes[n].total += f->nodes[n].own;
        f->nodes[parent].total += f->nodes[n].total;
        if (f->nodes[n].total)
            sorted[count++] = (struct sorted_node){.parent = parent, .node = n};
    }
    if (count)
        qsort_r(sorted, count, sizeof *sorted, compare_nodes, (void *)tree);
    for (uint32_t i = count; i > 0; i--) {
        const struct sorted_node *s = &sorted[i - 1];
        f->nodes[s->node].sibling = f->nodes[s->parent].first_child;
        f->nodes[s->parent].first_child = s->node;
    }
    free(sorted);
    return 0;
}

/* Reads everything. 0, or an error that was said. */
static int gather(struct flame *f, struct recording *rec)
{
    struct event event;
    struct timeline *timeline = timeline_create(rec, OPEN_BYTES_MAX);
    int more = timeline ? 1 : GPUPROF_NO_MEMORY;
    while (more > 0 && (more = timeline_next(timeline, &event)) > 0) {
        int error = stack_costs_take(&f->costs, &event);
        more = error < 0 ? error : more;
    }
    if (more == 0)
        more = stack_costs_show_stackless(&f->costs);
    if (more == 0)
        more = arrange(f);
    if (more < 0)
        message("%s: %s", timeline ? timeline_path(timeline) : "flame",
                more == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(more));
    timeline_free(timeline);
    return more;
}

static void say_absences(const struct recording *rec, const char *key, const char *what)
{
    struct absence found[ABSENCES_MAX];
    unsigned count = absences_find(rec, key, found);
    for (unsigned i = 0; i < count; i++) {
        char *text = absence_text(&found[i], rec, what);
        message("flame: %s", text ? text : "?");
        free(text);
    }
}

static void say(const struct flame *f, const struct recording *rec)
{
    char note[FLAME_NOTE_BYTES];
    struct stack_cost without = stack_costs_without(&f->costs);
    bool gpu = f->weight == WEIGHT_GPU;
    call_tree_say(&f->costs.tree);
    if (gpu ? without.works : without.calls)
        message("flame: %s", flame_note(f, &without, note));
    say_absences(rec, "stacks", "stacks");
    say_absences(rec, "python", "Python frames");
    if (f->nodes[0].total == flame_value(f->weight, &without))
        message("flame: nothing to show: no stack with %s", flame_weight_text(f->weight));
}

static bool ends_with(const char *text, size_t length, const char *suffix)
{
    size_t end = strlen(suffix);
    return length > end && strncasecmp(text + length - end, suffix, end) == 0;
}

/*
 * The name of the file that is written, of standard output, too, where a shell has opened one for
 * it: whoever writes `> f.svg` wants what `-o f.svg` makes. NULL: it has none. It is cut to fit.
 */
static const char *name_of(const struct options *options, char *text, size_t bytes)
{
    struct stat status;
    if (options->output && strcmp(options->output, "-") != 0)
        return options->output;
    if (fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    ssize_t length = readlink("/proc/self/fd/1", text, bytes - 1);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? text : NULL;
}

/* As the options say, or else the file's name, which may say that it is compressed, too. */
static enum flame_format format_of(const struct options *options)
{
    char text[PATH_MAX];
    const char *path = name_of(options, text, sizeof text);
    if (options->flame_format != FLAME_BY_NAME || !path)
        return options->flame_format != FLAME_BY_NAME ? options->flame_format : FLAME_FOLDED;
    size_t length = strlen(path);
    length -= path != text && ends_with(path, length, ".gz") ? 3 : 0;
    if (ends_with(path, length, ".svg"))
        return FLAME_SVG;
    return ends_with(path, length, ".json") ? FLAME_SPEEDSCOPE : FLAME_FOLDED;
}

/* What is written would be another thing than its name says: that name, or NULL. */
static const char *of_another_kind(const struct options *options, char *text, size_t bytes)
{
    static const char *const endings[] = {".html", ".htm", ".png", ".pdf", ".pb", ".perf"};
    const char *path = name_of(options, text, bytes);
    if (options->flame_format != FLAME_BY_NAME || !path)
        return NULL;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(path, strlen(path), endings[i]))
            return path;
    return NULL;
}

static enum exit_code write_out(const struct flame *f, const struct options *options)
{
    static int (*const writers[])(const struct flame *, struct output *) = {
        [FLAME_FOLDED] = flame_write_folded,
        [FLAME_SPEEDSCOPE] = flame_write_speedscope,
        [FLAME_SVG] = flame_write_svg,
    };
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(f->costs.rec));
    enum exit_code code = verb_output_open(&out, options->output, &room);
    if (code != EXIT_OK)
        return code;
    int error = writers[format_of(options)](f, &out);
    if (error < 0)
        message("flame: %s", gpuprof_error_text(error));
    return verb_output_close(&out, options->output, error);
}

static enum exit_code flame_recording(struct recording *rec, const struct options *options)
{
    struct survey survey;
    struct flame f = {.weight = options->weight, .name = options->paths[0]};
    enum exit_code code = EXIT_ENVIRONMENT;
    if (survey_make(&survey, rec) == 0) {
        int error = stack_costs_init(&f.costs, &survey, options->symbols);
        f.costs.split_processes = true;
        f.costs.split_threads = options->threads;
        f.costs.split_work = options->weight == WEIGHT_GPU;
        if (error < 0)
            message("flame: %s", gpuprof_error_text(error));
        else if (gather(&f, rec) == 0)
            code = EXIT_OK;
        if (code == EXIT_OK) {
            say(&f, rec);
            code = write_out(&f, options);
        }
        stack_costs_release(&f.costs);
        free(f.nodes);
    }
    survey_release(&survey);
    return code;
}

enum exit_code flame_verb(const struct options *options)
{
    struct recording rec;
    struct recording_options how = {.keep_live = options->keep_live};
    if (!options->output && isatty(STDOUT_FILENO) && options->flame_format > FLAME_FOLDED)
        return usage_error("flame: the graph would go to the terminal; name a file: -o flame.svg "
                           "(or -o - if you mean it)");
    char text[PATH_MAX];
    const char *other = of_another_kind(options, text, sizeof text);
    if (other)
        return usage_error("flame: %s: not a kind that can be written; name it .svg (for a "
                           "browser), .json (speedscope) or .folded",
                           other);
    enum exit_code code = recording_open(&rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = flame_recording(&rec, options);
    if (code == EXIT_OK)
        code = recording_verdict(&rec, options->strict);
    recording_release(&rec);
    return code;
}
