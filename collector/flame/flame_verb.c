/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `flame`: shows the time of calls by stack, of a recording or of two sides compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "flame/flame.h"
#include "output/output.h"
#include "resolve/selection.h"

/* ---- a comparison ---------------------------------------------------------------------------- */

/*
 * Compares two flame graphs: the cost of each stack now and before, averaged over the runs of each
 * side. Runs are added one at a time into one tree. It joins frames by label without line numbers,
 * which every edit changes, and joins a program's ranks. Memory: as in call_tree.h, and 48 bytes a
 * node.
 */
struct flame_diff {
    struct flame graph; /* complete after flame_diff_finish */
    struct call_tree tree;
    struct kernel_names names; /* names of its frames */
    uint32_t node_count;       /* capacity of the graph's nodes */
    uint32_t runs[FLAME_SIDES];
    bool is_shares; /* scales `before` as if both sides had equal totals */
};

static void flame_diff_release(struct flame_diff *d)
{
    call_tree_release(&d->tree);
    kernel_names_release(&d->names);
    free(d->graph.nodes);
    free(d->graph.order);
}

/* Copies a frame's label without its line number, which changes with every edit, or its offset in
 * the module, which changes with every build. */
static void common_label(const struct shown_frame *frame, char text[SHOWN_LABEL_BYTES])
{
    bool is_place = frame->kind <= SHOWN_PYTHON && frame->line;
    bool is_offset = is_place && !frame->name && !frame->file;
    snprintf(text, SHOWN_LABEL_BYTES, "%s",
             frame->kind == SHOWN_ADDRESS ? "[unknown address]" : frame->label);
    char *line = is_place && frame->file ? strrchr(text, ':') : NULL;
    char *offset = is_offset ? strrchr(text, '+') : NULL;
    if (offset)
        *offset = '\0';
    else if (line && strcmp(line + 1 + strspn(line + 1, "0123456789"), ")") == 0)
        strcpy(line, ")");
}

/* Adds a run, which may be released afterwards. */
static void flame_diff_add(struct flame_diff *d, enum flame_side side, const struct flame *f)
{
    const struct call_tree *tree = f->tree;
    /* each frame's node in the combined tree */
    uint32_t *known = memory_new(tree->count + 1u, sizeof *known);
    for (uint32_t n = 1; n <= tree->count; n++) { /* parents have smaller numbers */
        char text[SHOWN_LABEL_BYTES];
        if (!f->nodes[n].width)
            continue;
        common_label(call_tree_frame(tree, n), text);
        struct shown_frame named = {.kind = SHOWN_CALL,
                                    .name = kernel_name_intern(&d->names, text, strlen(text))};
        known[n] = call_tree_child(&d->tree, known[call_tree_node(tree, n)->parent], &named);
    }
    d->graph.nodes =
        array_reach(d->graph.nodes, &d->node_count, d->tree.count, sizeof *d->graph.nodes);
    for (uint32_t n = 1; n <= tree->count; n++)
        if (known[n])
            d->graph.nodes[known[n]].own[side] += f->nodes[n].own[FLAME_NOW];
    d->runs[side]++;
    free(known);
}

/* Averages each node's own number over the runs of its side. */
static void scale(struct flame_diff *d, enum flame_side side, double factor)
{
    for (uint32_t n = 1; n <= d->tree.count; n++) {
        uint64_t *own = &d->graph.nodes[n].own[side];
        *own = (uint64_t)llround((double)*own * factor);
    }
}

/* Completes the graph after the last run; its note must be set. */
static void flame_diff_finish(struct flame_diff *d)
{
    struct flame *f = &d->graph;
    char now[UNIT_TEXT_BYTES], before[UNIT_TEXT_BYTES], change[FLAME_CHANGE_BYTES];
    double runs = d->runs[FLAME_NOW], earlier = d->runs[FLAME_BEFORE];
    uint64_t sums[FLAME_SIDES] = {0};
    for (uint32_t n = 1; n <= d->tree.count; n++)
        for (unsigned side = 0; side < FLAME_SIDES; side++)
            sums[side] += f->nodes[n].own[side];
    scale(d, FLAME_NOW, 1 / runs);
    scale(d, FLAME_BEFORE,
          d->is_shares && sums[FLAME_BEFORE]
              ? (double)sums[FLAME_NOW] / (double)sums[FLAME_BEFORE] / runs
              : 1 / earlier);
    flame_arrange(f);
    snprintf(f->title, sizeof f->title, "%s%s: %s, %s before, %s", flame_weights[f->weight].text,
             d->is_shares ? ", as shares of all" : " of the average run",
             flame_value_text(f->weight, now, f->nodes[0].total[FLAME_NOW]),
             flame_value_text(f->weight, before, f->nodes[0].total[FLAME_BEFORE]),
             flame_change_text(change, f->nodes[0].total));
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Returns the format of the option, or else of the file's name; FLAME_BY_NAME: the name promises a
 * format that flame cannot write. */
static enum flame_format flame_verb_format_of(const struct options *options)
{
    const struct flame_options *own = options->own;
    const char *file = options->output;
    bool is_other = verb_output_is(file, "html") || verb_output_is(file, "png");
    return own->format != FLAME_BY_NAME   ? own->format
           : is_other                     ? FLAME_BY_NAME
           : verb_output_is(file, "svg")  ? FLAME_SVG
           : verb_output_is(file, "json") ? FLAME_SPEEDSCOPE
                                          : FLAME_FOLDED;
}

/* Writes the graph of recordings of `bytes`. */
static enum exit_code write_graph(const struct options *options, const struct flame *f,
                                  uint64_t bytes)
{
    static void (*const writers[])(const struct flame *, struct output *) = {
        [FLAME_FOLDED] = flame_write_folded,
        [FLAME_SPEEDSCOPE] = flame_write_speedscope,
        [FLAME_SVG] = flame_write_svg,
        [FLAME_PPROF] = flame_write_pprof,
    };
    struct output out;
    uint64_t room = verb_output_room(bytes);
    enum exit_code code = verb_output_open(&out, options->output, &room);
    if (code != EXIT_OK)
        return code;
    if (!f->compares) /* only now: a graph that cannot be written needs no remarks */
        flame_say(f, options->command);
    writers[flame_verb_format_of(options)](f, &out);
    return verb_output_close(&out, options->output, 0);
}

/* Adds the graph of an open recording to the comparison, or writes it (NULL). */
static enum exit_code flame_recording(struct recording *rec, const struct options *options,
                                      struct flame_diff *compared, enum flame_side side)
{
    const struct flame_options *own = options->own;
    struct walk walk;
    struct selection selection;
    const struct selection_steps steps = {.by = options->step_by, .pattern = options->step_range};
    struct stack_costs costs = {0};
    struct flame f = {0};
    bool is_all = own->format == FLAME_PPROF;
    walk_init(&walk, rec);
    stack_costs_init(&costs, &walk);
    costs.split_processes = true;
    costs.split_threads = own->threads || is_all;
    costs.split_work = own->weight == WEIGHT_GPU || is_all;
    costs.has_samples = own->weight == WEIGHT_CPU || own->weight == WEIGHT_WALL || is_all;
    costs.has_waits = own->weight == WEIGHT_OFF_CPU || own->weight == WEIGHT_WALL || is_all;
    costs.merges_ranks = own->merges_ranks || compared; /* process numbers differ between runs */
    costs.only_own = own->is_mine;
    costs.only_named = own->folds_unnamed;
    enum exit_code code = selection_make(&selection, rec, NULL, &options->select, &steps, "flame");
    walk.filter = selection_filter(&selection, CALLS_UP_TO);
    struct consumer consumer = stack_costs_consumer(&costs);
    consumer.needs |= WALK_LOSSES;
    if (code == EXIT_OK && walk_run(&walk, NULL, &consumer, 1) < 0)
        code = EXIT_ENVIRONMENT;
    if (code == EXIT_OK) {
        flame_make(&f, &costs, own->weight, options->symbols);
        code = selection_check(&selection, "flame");
    }
    if (code == EXIT_OK && compared) {
        flame_diff_add(compared, side, &f);
        flame_say(&f, NULL);
    } else if (code == EXIT_OK) {
        code = write_graph(options, &f, recording_bytes(rec));
    }
    if (code == EXIT_OK)
        code = walk_verdict(&walk, options->strict);
    selection_release(&selection);
    stack_costs_release(&costs);
    free(f.nodes);
    free(f.order);
    walk_release(&walk);
    return code;
}

/* Reads the `count` paths as one recording; adds its size to *bytes. */
static enum exit_code read_paths(const struct options *options, char **paths, int count,
                                 struct flame_diff *compared, enum flame_side side, uint64_t *bytes)
{
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum exit_code code = recording_open(&rec, paths, count, &how);
    rec.progress = progress_begin("flame", recording_bytes(&rec));
    *bytes += recording_bytes(&rec);
    if (code == EXIT_OK)
        code = flame_recording(&rec, options, compared, side);
    recording_release(&rec);
    return code;
}

/* Each path is a run. Damage is handled as for a single recording. */
static enum exit_code flame_verb_compare(const struct options *options)
{
    const struct flame_options *own = options->own;
    struct flame_diff compared = {
        .graph = {.tree = &compared.tree, .weight = own->weight, .compares = true},
        .tree.nodes_max = TREE_NODES_MAX,
        .names.plain = true,
        .is_shares = own->is_shares};
    uint64_t bytes = 0;
    enum exit_code code = EXIT_OK, verdict = EXIT_OK;
    snprintf(compared.graph.note, sizeof compared.graph.note, "now: %.200s%s; before: %.200s%s",
             options->paths[0], options->against > 1 ? " and others" : "",
             options->paths[options->against],
             options->path_count > options->against + 1 ? " and others" : "");
    for (int i = 0; code == EXIT_OK && i < options->path_count; i++) {
        enum flame_side side = i < options->against ? FLAME_NOW : FLAME_BEFORE;
        uint32_t runs = compared.runs[side];
        code = read_paths(options, options->paths + i, 1, &compared, side, &bytes);
        if (code == EXIT_DAMAGED && compared.runs[side] > runs) {
            verdict = code;
            code = EXIT_OK;
        }
    }
    if (code == EXIT_OK)
        flame_diff_finish(&compared);
    if (code == EXIT_OK)
        code = write_graph(options, &compared.graph, bytes);
    flame_diff_release(&compared);
    return code == EXIT_OK ? verdict : code;
}

static enum exit_code check_sides(const struct options *options)
{
    const struct flame_options *own = options->own;
    if (options->against < 0 && own->is_shares)
        return usage_error("flame: --shares needs two sides; name the old runs after --against");
    if (options->against == 0 || options->against == options->path_count)
        return usage_error("flame: name recordings both before and after --against");
    if (options->against > 0 && flame_verb_format_of(options) == FLAME_SPEEDSCOPE)
        return usage_error(
            "flame: speedscope cannot show comparisons; name the file .svg or .folded");
    return EXIT_OK;
}

static enum exit_code flame_verb_run(const struct options *options)
{
    const struct flame_options *own = options->own;
    uint64_t bytes = 0;
    if (!options->output && isatty(STDOUT_FILENO) && own->format > FLAME_FOLDED)
        return usage_error("flame: not written to the terminal; name a file: -o flame.svg (or -o - "
                           "to write it anyway)");
    if (flame_verb_format_of(options) == FLAME_BY_NAME)
        return usage_error("flame: %s: unknown file type; name it .svg (for a browser), .json "
                           "(speedscope) or .folded",
                           options->output);
    enum exit_code code = check_sides(options);
    if (code != EXIT_OK)
        return code;
    if (options->against > 0)
        return flame_verb_compare(options);
    return read_paths(options, options->paths, options->path_count, NULL, FLAME_NOW, &bytes);
}

const struct option weight_options[] = {
    {0, "weight", "host|gpu|calls|bytes|cpu|off-cpu|wall", .take = option_choice, .at = 0,
     "Choose what a frame's width shows: time in calls (host), time of the GPU work launched, "
     "number of calls, or bytes allocated. CPU time needs run --sample, off-cpu run --os, wall "
     "both. Default: host.",
     .in = HELP_SHOW},
    {0},
};

static const struct option own_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the graph to this file, compressed if its name ends in .gz; default: standard output",
     .in = HELP_OUTPUT},
    {0, "format", "folded|speedscope|svg", OPTION_OWN(option_choice, struct flame_options, format),
     "Write the graph in this format; default: by the end of the file's name: .svg, .json "
     "(speedscope), or else folded",
     .in = HELP_OUTPUT},
    {OPTIONS_OF(weight_options, 0), .at = offsetof(struct flame_options, weight)},
    {0, "mine", NULL, OPTION_FLAG(struct flame_options, is_mine),
     "Show only frames of your own code, none of installed packages, Python or system libraries",
     .in = HELP_SHOW},
    {0, "fold-unnamed", NULL, OPTION_FLAG(struct flame_options, folds_unnamed),
     "Leave out frames without a name, and attach their callees to their caller",
     .in = HELP_SHOW | HELP_MORE},
    {0, "merge-ranks", NULL, OPTION_FLAG(struct flame_options, merges_ranks),
     "Merge the processes of one program into one graph", .in = HELP_SHOW},
    {0, "threads", NULL, OPTION_FLAG(struct flame_options, threads), "Show each thread separately",
     .in = HELP_SHOW},
    {OPTIONS_OF(read_options, READ_JOBS | READ_PIECE | READ_STEPS | READ_SYMBOLS | READ_AGAINST)},
    {0, "shares", NULL, OPTION_FLAG(struct flame_options, is_shares),
     "With --against, compare shares of the total instead of amounts, for runs of different length",
     .in = HELP_SELECT},
    {OPTIONS_OF(read_options, READ_STRICT | READ_KEEP_LIVE)},
    {0},
};

VERB_IS(flame, flame_verb_run, own_options, VERB_OWN(struct flame_options, .format = FLAME_BY_NAME),
        TAKES_RECORDINGS, "DIR|FILE...", "draw a flame graph of the stacks that made the calls",
        {PART_EXAMPLE, "gpuprof flame data -o flame.svg", "draw call time, for a browser"},
        {PART_EXAMPLE, "gpuprof flame data --weight=gpu -o flame.json",
         "write GPU time, for speedscope"},
        {PART_EXAMPLE, "gpuprof flame data --weight=wall -o host.svg",
         "draw the host's CPU time and waiting time"});
