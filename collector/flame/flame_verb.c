/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `flame`: where the time of calls with a stack goes, by their stacks. */
#include "flame/flame_verb.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "error.h"
#include "flame/flame.h"
#include "model/selection.h"
#include "output/verb_output.h"

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
    if (path != text)
        length = output_plain_length(path, length);
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

static enum exit_code write_out(const struct flame *f, const struct recording *rec,
                                const struct options *options)
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
    flame_say(f, rec); /* not before: of a graph that cannot be written nothing is missing */
    int error = writers[format_of(options)](f, &out);
    if (error < 0)
        message("flame: %s", gpuprof_error_text(error));
    return verb_output_close(&out, options->output, error);
}

static enum exit_code flame_recording(struct recording *rec, const struct options *options)
{
    struct walk walk;
    struct selection selection;
    const struct selection_steps steps = {.by = options->step_by, .pattern = options->step_range};
    struct flame f = {.weight = options->weight, .name = options->paths[0]};
    enum exit_code code = EXIT_ENVIRONMENT;
    int error = walk_init(&walk, rec);
    if (error == 0)
        error = stack_costs_init(&f.costs, &walk);
    f.costs.split_processes = true;
    f.costs.split_threads = options->threads;
    f.costs.merges_ranks = options->merges_ranks;
    f.costs.only_own = options->is_mine;
    f.costs.only_named = options->folds_unnamed;
    f.costs.split_work = options->weight == WEIGHT_GPU;
    enum exit_code found = selection_make(&selection, rec, NULL, &options->select, &steps, "flame");
    walk.filter = selection_filter(&selection, true);
    if (error < 0)
        message("flame: %s", gpuprof_error_text(error));
    else if (found != EXIT_OK)
        code = found;
    else if (flame_gather(&f, options->symbols) == 0)
        code = EXIT_OK;
    if (code == EXIT_OK)
        code = write_out(&f, rec, options);
    if (code == EXIT_OK) {
        selection_say(&selection, "flame");
        code = walk_verdict(&walk, options->strict);
    }
    selection_release(&selection);
    stack_costs_release(&f.costs);
    free(f.nodes);
    walk_release(&walk);
    return code;
}

enum exit_code flame_verb(const struct options *options)
{
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
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
    struct progress progress;
    rec.progress = progress_begin(&progress, "flame");
    progress.total = recording_bytes(&rec);
    if (code == EXIT_OK)
        code = flame_recording(&rec, options);
    recording_release(&rec);
    return code;
}
