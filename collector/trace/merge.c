/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: writes all events of the recordings as one trace, or as one per rank. */
#include "trace/merge_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "clocks/host_clocks.h"
#include "error.h"
#include "output/output.h"
#include "rank.h"
#include "record/gpu_record.h"

#define SHARE_ALL    (1ull << 32)
#define FITS_MAX     5
#define FIT_PERCENT  98
#define VIEWER_BYTES 500000000u /* of text; V8's longest string has 536,870,888 */

/* ---- what is left out ------------------------------------------------------------------------ */

static uint64_t between(uint64_t begin_ns, uint64_t end_ns)
{
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static bool lasts(const struct slice *s, struct left_out *l)
{
    const struct event *e = &s->event;
    unsigned type = e->record->type;
    uint64_t end_ns = e->end_ns;
    *l = (struct left_out){
        .kind = LEFT_OUT_RANGES, .begin_ns = e->begin_ns, .thread = e->thread->index};
    if (s->change == SPAN_CLOSED) {
        l->begin_ns = s->span->begin_ns;
        end_ns = s->span->end_ns;
    } else if (s->change) {
        return s->change == SPAN_MARKED; /* an opened one ends later */
    } else if (type == RECORD_CALL) {
        l->kind = LEFT_OUT_CALLS;
    } else if (is_host_record(type)) { /* a sample has no duration */
        l->kind = LEFT_OUT_HOST;
    } else if (is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD) {
        l->kind = LEFT_OUT_WORK;
    } else {
        return false;
    }
    l->ns = between(l->begin_ns, end_ns);
    return l->kind != LEFT_OUT_CALLS || !(e->record->result || e->record->flags & RECORD_OPEN);
}

/* Returns the place of eighths of ns, in octaves of 1 ns and more; less is in the first one. */
static unsigned place_of(uint64_t ns)
{
    uint64_t eighths = ns << 3;
    unsigned octave = 60 - (unsigned)__builtin_clzll(eighths | 8);
    return octave * 8 + (eighths >> octave & 7);
}

/* Returns the shortest duration at a place. */
static uint64_t first_of(unsigned place)
{
    return place ? (((place % 8 + 8ull) << place / 8) + 7) / 8 : 0;
}

/* Adds the bytes that the slice took. */
static void weigh_slice(struct thinning *t, const struct slice *s, uint64_t bytes)
{
    struct left_out l;
    if (!bytes || !lasts(s, &l))
        return;
    t->weights[place_of(l.ns)] += bytes;
    t->weighed += bytes;
}

/* Chooses what to leave out of a trace of `total` bytes so that about `size` remain, or only what
 * always stays. */
static void choose(struct thinning *t, uint64_t total, uint64_t size)
{
    unsigned place = THINNING_WEIGHTS;
    uint64_t fixed = total - t->weighed, left = size > fixed ? size - fixed : 0;
    while (place && t->weights[place - 1] <= left)
        left -= t->weights[--place];
    t->all_ns = place == THINNING_WEIGHTS ? UINT64_MAX : first_of(place);
    t->some_ns = place ? first_of(place - 1) : 0;
    t->share = place ? (uint64_t)((unsigned __int128)left * SHARE_ALL / t->weights[place - 1]) : 0;
}

/* The decision for a call is the same for the call itself and for its work. */
static bool leaves_out(const struct thinning *t, uint64_t begin_ns, uint64_t ns, uint32_t thread)
{
    if (t->weighs || ns >= t->all_ns)
        return false;
    uint64_t spread = (begin_ns ^ (uint64_t)thread << 40) * 0x9e3779b97f4a7c15u;
    return ns < t->some_ns || spread >> 32 >= t->share;
}

/* ---- a slice ----------------------------------------------------------------------------------
 */

static uint64_t written(const struct merge *m)
{
    return m->format->bytes ? m->format->bytes(m->one.writer) : output_bytes(m->one.out);
}

static const char *merge_trace_shown(const char *path)
{
    return path && strcmp(path, "-") != 0 ? path : "standard output";
}

void merge_say_large(struct merge *m, const char *path)
{
    m->one.is_large = true;
    if (m->said_large)
        return;
    m->said_large = true;
    progress_clear(m->rec.progress);
    message("%s: more than 500 MB of text, which most viewers cannot load; select less (--step, "
            "--from, --to), or drop the shortest events (--max-size=400M)%s",
            merge_trace_shown(path),
            m->split || m->rec.count < 2 ? "" : ", or write one file per rank (--per-rank)");
}

/* Marks the slice, or its call, as filtered if --max-size leaves it out. */
static void thin(struct merge *m, struct slice *s)
{
    struct merge_fit *fit = &m->fit;
    const struct correlated_call *c = &s->call;
    struct left_out l;
    fit->left_out.kind = LEFT_OUT_KINDS;
    if (s->is_filtered)
        return;
    if (lasts(s, &l) && leaves_out(&fit->thinning, l.begin_ns, l.ns, l.thread)) {
        s->is_filtered = true;
        fit->left_out = l;
        fit->left_out_count++;
    } else if (s->is_called && leaves_out(&fit->thinning, c->begin_ns,
                                          between(c->begin_ns, c->end_ns), c->thread)) {
        s->is_call_filtered = true;
    }
}

static int merge_trace_take_slice(void *context, const struct slice *s)
{
    struct merge *m = context;
    struct slice thinned;
    uint64_t before = written(m);
    if (before > VIEWER_BYTES && m->format->is_text && !m->one.weighs)
        merge_say_large(m, m->one.path);
    if (m->own->max_size) {
        thinned = *s;
        thin(m, &thinned);
        s = &thinned;
    }
    m->format->take(m->one.writer, s);
    if (m->fit.thinning.weighs)
        weigh_slice(&m->fit.thinning, s, written(m) - before);
    return m->one.out->error ? WALK_STOP : 0; /* output_finish reports it */
}

/* ---- one trace ------------------------------------------------------------------------------- */

static int write_once(struct merge *m, struct output *out, struct trace_scope *scope)
{
    bool has_work = m->split || recording_any(&m->rec, process_expects_gpu);
    struct consumer consumer = {.context = m,
                                .needs = WALK_SPANS,
                                .sees_filtered = true, /* memory is counted from the start */
                                .take = merge_trace_take_slice};
    scope->survey = has_work ? &m->walk.survey : NULL;
    scope->tree = m->with_stacks ? &m->tree : NULL;
    scope->steps = m->with_steps ? &m->steps : NULL;
    scope->options = m->own;
    scope->thinning = m->own->max_size ? &m->fit.thinning : NULL;
    scope->left_out = m->own->max_size ? &m->fit.left_out : NULL;
    m->fit.left_out_count = 0;
    scope->selection = m->cut ? &m->selection : NULL;
    consumer.needs |= has_work ? WALK_WORK | WALK_LOSSES : 0;
    m->one.is_large = false;
    m->one.out = out;
    m->one.writer = m->format->create(out, &m->walk, scope);
    int error = walk_run(&m->walk, scope->only, &consumer, 1);
    if (error == 0)
        m->format->end(m->one.writer);
    m->one.bytes = written(m);
    m->format->free(m->one.writer);
    return error < 0 ? error : 0;
}

/* Measures the size of the trace. Returns 0 or an error after a message. */
static int merge_trace_weigh(struct merge *m, struct trace_scope *scope, uint64_t *bytes)
{
    struct output nowhere;
    uint64_t room = m->room;
    int error = output_open(&nowhere, "/dev/null");
    if (error < 0) {
        say_error("merge", error);
        return error;
    }
    nowhere.room = &room;
    m->one.weighs = true;
    error = write_once(m, &nowhere, scope);
    m->one.weighs = false;
    *bytes = m->one.bytes;
    int its = output_finish(&nowhere, 0);
    if (its < 0)
        verb_output_failed(scope->name, its);
    return error < 0 ? error : its;
}

/* Finds what to leave out. One pass weighs each event; further passes are needed for counters, and
 * for arrows, which go with either of their ends. */
static int merge_trace_fit(struct merge *m, struct trace_scope *scope)
{
    struct thinning *t = &m->fit.thinning;
    char text[UNIT_TEXT_BYTES];
    uint64_t all = 0, bytes = 0, most = 0, max = m->own->max_size;
    *t = (struct thinning){.weighs = true};
    int error = merge_trace_weigh(m, scope, &all);
    t->weighs = false;
    if (error < 0 || all <= max)
        return error;
    struct thinning best = *t;
    uint64_t fixed = all - t->weighed; /* what always stays */
    uint64_t wanted = max / 100 * FIT_PERCENT, size = wanted;
    for (unsigned i = 0; error == 0 && i < FITS_MAX && most <= max / 10 * 9; i++) {
        if (size < fixed || (i + 1 == FITS_MAX && !most))
            size = fixed;
        choose(t, all, size);
        error = merge_trace_weigh(m, scope, &bytes);
        if (bytes <= max && bytes > most) {
            most = bytes;
            best = *t;
        }
        if (bytes > max && size == fixed)
            break;
        size = size + wanted > bytes ? size + wanted - bytes : 0;
    }
    *t = best;
    if (error < 0 || most)
        return error;
    /* Requesting the size of what always stays leaves exactly this. */
    message("merge: --max-size: %s is too small%s%s: names, counters, memory, steps and failed "
            "calls are always kept; give --max-size=%lluK or more, or select less (--step, --rank)",
            bytes_text(text, max), m->split ? " for " : "", m->split ? scope->name : "",
            (unsigned long long)(bytes + 1023) / 1024);
    return GPUPROF_USAGE;
}

int merge_write_trace(struct merge *m, struct output *out, struct trace_scope *scope)
{
    int error = m->own->max_size ? merge_trace_fit(m, scope) : 0;
    return error < 0 ? error : write_once(m, out, scope);
}

void merge_say_left_out(const struct merge *m, const char *path)
{
    char text[UNIT_TEXT_BYTES];
    if (m->fit.left_out_count)
        message("%s: --max-size left out %llu calls, ranges and GPU activities: those shorter than "
                "%s%s",
                merge_trace_shown(path), (unsigned long long)m->fit.left_out_count,
                time_text(text, m->fit.thinning.all_ns),
                m->fit.thinning.share ? ", except some of the longest of them" : "");
}

enum exit_code merge_close(const struct merge *m, struct output *out, const char *path, int error,
                           bool all)
{
    bool is_whole = all && error == 0 && !out->error;
    enum exit_code checked = is_whole ? selection_check(&m->selection, "merge") : EXIT_OK;
    enum exit_code code = verb_output_close(out, path, checked == EXIT_OK ? error : GPUPROF_USAGE);
    return error == GPUPROF_USAGE || checked != EXIT_OK ? EXIT_USAGE : code;
}

enum exit_code merge_write_file(struct merge *m, const char *path, struct trace_scope *scope)
{
    struct output out;
    enum exit_code code = verb_output_open(&out, path, &m->room);
    if (code != EXIT_OK)
        return code;
    if (m->rec.is_parallel)
        out.in_background = true;
    const char *slash = path ? strrchr(path, '/') : NULL;
    scope->name = slash ? slash + 1 : path;
    m->one.path = path;
    return merge_close(m, &out, path, merge_write_trace(m, &out, scope), !m->split);
}

/* ---- the verb ----------------------------------------------------------------------------------
 */

static enum exit_code find_piece(struct merge *m, const struct options *options, uint64_t cycle)
{
    const struct selection_steps how = {
        .by = options->step_by, .pattern = options->step_range, .found = &m->steps};
    m->request = options->select;
    m->request.cycle = cycle;
    m->walk.filter = NULL;
    enum exit_code code =
        selection_make(&m->selection, &m->rec, &m->walk, &m->request, &how, "merge");
    m->walk.filter = selection_filter(&m->selection, CALLS_UP_TO);
    return code;
}

static enum exit_code merge_write(struct merge *m, const struct options *options)
{
    const struct merge_options *own = options->own;
    bool is_archive = verb_output_is(options->output, "zip");
    bool is_all = options->select.cycle == CYCLE_ALL;
    uint64_t cycle = is_all ? 1 : options->select.cycle;
    m->split = own->per_rank || is_archive;
    m->cut = options->select.is_given;
    m->room = verb_output_room(recording_bytes(&m->rec));
    struct trace_scope scope = {.rank = RANK_NONE};
    m->rec.progress = progress_begin("merge", recording_bytes(&m->rec) * 2u);
    walk_init(&m->walk, &m->rec);
    /* Walks the recording before writing: traces of ranks share an origin, and names, stacks,
     * devices and steps must be known in advance. */
    enum exit_code code =
        steps_find(&m->steps, &m->walk, options->step_by, options->step_range, true, "merge");
    m->with_steps = recording_any(&m->rec, process_may_have_ops) || options->step_by ||
                    options->step_range || m->steps.kind == STEPS_CALLED;
    if (code == EXIT_OK)
        code = find_piece(m, options, cycle);
    if (code != EXIT_OK)
        return code;
    m->with_stacks = m->walk.survey.stacks.stack_count;
    if (m->with_stacks)
        call_tree_init(&m->tree, &m->walk.survey, NULL, options->symbols);
    if (is_archive)
        return merge_write_archive(m, options->output);
    if (!m->split) {
        code = merge_write_file(m, options->output, &scope);
        if (code == EXIT_OK)
            merge_say_left_out(m, options->output);
        return code;
    }
    for (;; cycle++) { /* puts each window's number where TensorBoard looks for it */
        code = merge_write_folder(m, options->output, cycle);
        if (code != EXIT_OK || !is_all || cycle == m->selection.cycle_last)
            return code;
        selection_release(&m->selection);
        code = find_piece(m, options, cycle + 1);
        if (code != EXIT_OK)
            return code;
    }
}

#define TRACE_FORMAT(name) &name##_format.file,
const struct file_format *const trace_formats[] = {
#include "trace/trace_formats.def"
    NULL};
#undef TRACE_FORMAT

static enum exit_code merge_run(const struct options *options)
{
    const struct merge_options *own = options->own;
    struct merge m = {.own = own};
    bool is_archive = verb_output_is(options->output, "zip");
    if (own->per_rank && (!options->output || strcmp(options->output, "-") == 0))
        return usage_error("merge: --per-rank writes several files; name a folder: -o traces");
    if (own->per_rank && is_archive)
        return usage_error("merge: an archive always has one file per rank; leave out --per-rank");
    if (options->select.cycle == CYCLE_ALL && !own->per_rank)
        return usage_error("merge: --cycle=all writes a file per window; add --per-rank");
    bool has_ending = !own->per_rank && !is_archive && !verb_output_is(options->output, "");
    const struct file_format *format =
        own->format || has_ending
            ? file_format_find("merge", trace_formats, own->format, options->output)
            : *trace_formats;
    m.format = (const struct trace_format *)format;
    if (!format)
        return EXIT_USAGE;
    if (!options->output && isatty(STDOUT_FILENO))
        return usage_error("merge: not written to the terminal; name a file: -o trace.json (or -o "
                           "- to write it anyway)");
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum exit_code code = recording_open(&m.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = host_clocks_align(&m.rec, options->clock, "merge");
    if (code == EXIT_OK)
        code = merge_write(&m, options);
    if (code == EXIT_OK && own->per_rank)
        code = selection_check(&m.selection, "merge");
    if (code == EXIT_OK)
        code = walk_verdict(&m.walk, options->strict);
    if (m.with_stacks) {
        call_tree_say(&m.tree);
        call_tree_release(&m.tree);
    }
    steps_release(&m.steps);
    selection_release(&m.selection);
    if (m.walk.rec)
        walk_release(&m.walk);
    recording_release(&m.rec);
    return code;
}

static const char *format_name(unsigned index)
{
    return trace_formats[index] ? trace_formats[index]->name : NULL;
}

static enum exit_code take_size(const struct given *g)
{
    return option_end(g, settings_size(g->value, g->at) && *(uint64_t *)g->at,
                      "is no size, such as 400M (K, M, G, T; KB and KiB mean the same as K)");
}

static const struct option own_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the trace to this file (.gz and .zst: compressed, .zip: an archive with a file per "
     "rank); "
     "default: standard output",
     .in = HELP_OUTPUT},
    {0, "format", "FORMAT", OPTION_TEXT(struct merge_options, format),
     "Write this trace format: chrome or perfetto; default: by the end of the file's name",
     .word_at = format_name, .in = HELP_OUTPUT},
    {0, "per-rank", NULL, OPTION_FLAG(struct merge_options, per_rank),
     "Write a file for each rank, rank_N.pt.trace.json.gz, into the folder that -o names",
     .in = HELP_OUTPUT},
    {0, "sync-streams", NULL, OPTION_FLAG(struct merge_options, sync_streams),
     "Give synchronisations the stream that they waited for, for HTA's critical path analysis; "
     "HTA's other analyses then mistake waits for work",
     .in = HELP_SHOW | HELP_MORE},
    {0, "no-counters", NULL, OPTION_FLAG(struct merge_options, no_counters),
     "Leave out the counter tracks: GPU utilisation, kernels in flight, copy rate, memory, "
     "launches",
     .in = HELP_SHOW | HELP_MORE},
    {0, "memory-events", NULL, OPTION_FLAG(struct merge_options, memory_events),
     "Add each allocation and release of PyTorch's allocator, as torch.profiler does, for "
     "TensorBoard's memory view",
     .in = HELP_SHOW | HELP_MORE},
    {0, "max-size", "SIZE", OPTION_OWN(take_size, struct merge_options, max_size),
     "Leave out the shortest calls, activities and ranges to limit each trace to this size before "
     "compression, such as 400M. The trace has their number and times.",
     .in = HELP_OUTPUT},
    {OPTIONS_OF(read_options, READ_JOBS | READ_CYCLES | READ_SELECT | READ_CLOCK | READ_STEPS |
                                  READ_SYMBOLS | READ_STRICT | READ_KEEP_LIVE)},
    {0},
};

VERB_IS(merge, merge_run, own_options, VERB_OWN(struct merge_options, 0), TAKES_RECORDINGS,
        "DIR|FILE...", "write a trace for Perfetto, or one for each rank",
        {PART_EXAMPLE, "gpuprof merge data -o trace.json.gz",
         "write one trace of all processes, for ui.perfetto.dev"},
        {PART_EXAMPLE, "gpuprof merge data --per-rank -o traces",
         "write one for each rank, for HTA and TensorBoard"});
