/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/merge_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/unit_text.h"
#include "error.h"
#include "output/verb_output.h"

#define FITS_MAX         5
#define FIT_PERCENT      98
#define FIT_LESS_PERCENT 2          /* less for each try that was too large */
#define VIEWER_BYTES     500000000u /* of text; V8's longest string has 536,870,888 */

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
            m->is.split || m->rec.count < 2 ? "" : ", or write one file per rank (--per-rank)");
}

/* The first event shown is the origin, unless traces share an earlier one. */
static int merge_trace_take_slice(void *context, const struct slice *s)
{
    struct merge *m = context;
    int error = 0;
    uint64_t before = written(m);
    m->one.is_filtered = s->is_filtered;
    if (before > VIEWER_BYTES && m->format->is_text && !m->one.weighs)
        merge_say_large(m, m->one.path);
    if (!m->one.begun && event_is_visible(s->event.record->type)) {
        m->one.begun = true;
        error = m->format->begin(m->one.writer, m->walk.survey.origin_ns);
    }
    if (error == 0 && m->one.begun)
        error = m->format->take(m->one.writer, s);
    if (m->fit.thinning.weighs)
        thinning_weigh(&m->fit.thinning, s, written(m) - before);
    else if (m->own->max_size && m->one.is_filtered && m->fit.left_out != LEFT_OUT_KINDS)
        m->fit.left_out_count++;
    return error == 0 && m->one.out->error ? WALK_STOP : error; /* output_finish reports it */
}

static int merge_trace_end(void *context)
{
    struct merge *m = context;
    int error = m->one.begun ? 0 : m->format->begin(m->one.writer, m->walk.survey.origin_ns);
    return error < 0 ? error : m->format->end(m->one.writer);
}

/* ---- no larger than asked for ---------------------------------------------------------------- */

static bool has(void *context, const struct slice *s)
{
    struct merge *m = context;
    const struct walk_filter *f = &m->selection.filter;
    uint64_t ns;
    m->fit.left_out = LEFT_OUT_KINDS;
    return (!f->has || f->has(f->context, s)) &&
           !thinning_leaves_out(&m->fit.thinning, s, &m->fit.left_out, &ns);
}

static bool has_call(void *context, const struct slice *s)
{
    const struct merge *m = context;
    const struct walk_filter *f = &m->selection.filter;
    return (!f->has_call || f->has_call(f->context, s)) &&
           !thinning_leaves_out_call(&m->fit.thinning, &s->call);
}

static bool wants(void *context, const struct process *p, const struct block_span *b)
{
    const struct merge *m = context;
    const struct walk_filter *f = &m->selection.filter;
    return f->wants(f->context, p, b);
}

const struct walk_filter *merge_filter(struct merge *m)
{
    const struct walk_filter *piece = selection_filter(&m->selection, CALLS_UP_TO);
    if (!m->own->max_size)
        return piece;
    m->fit.filter = (struct walk_filter){.context = m,
                                         .has = has,
                                         .has_call = has_call,
                                         .wants = piece ? wants : NULL,
                                         .asks_calls = m->selection.filter.asks_calls,
                                         .first_ns = m->selection.filter.first_ns,
                                         .last_ns = m->selection.filter.last_ns};
    return &m->fit.filter;
}

/* ---- one trace ------------------------------------------------------------------------------- */

static int write_once(struct merge *m, struct output *out, struct trace_scope *scope)
{
    bool has_work = m->is.split || recording_expects_gpu(&m->rec);
    struct consumer consumer = {.context = m,
                                .needs = WALK_RANGES | WALK_OPS | WALK_LIBRARIES,
                                .sees_filtered = true, /* memory is counted from the start */
                                .take = merge_trace_take_slice,
                                .end = merge_trace_end};
    scope->survey = has_work ? &m->walk.survey : NULL;
    scope->tree = m->is.with_stacks ? &m->tree : NULL;
    scope->steps = m->is.with_steps ? &m->steps : NULL;
    scope->sync_streams = m->own->sync_streams;
    scope->counters = !m->own->no_counters;
    scope->memory_events = m->own->memory_events;
    scope->is_filtered = m->is.cut || m->own->max_size ? &m->one.is_filtered : NULL;
    scope->thinning = m->own->max_size ? &m->fit.thinning : NULL;
    scope->left_out = m->own->max_size ? &m->fit.left_out : NULL;
    m->fit.left_out_count = 0;
    scope->selection = m->is.cut ? &m->selection : NULL;
    consumer.needs |= has_work ? WALK_WORK | WALK_LOSSES : 0;
    m->one.begun = m->one.is_large = false;
    m->one.out = out;
    m->one.writer = m->format->create(out, &m->walk, scope);
    int error = m->one.writer ? walk_run(&m->walk, scope->only, &consumer, 1) : GPUPROF_NO_MEMORY;
    m->one.bytes = m->one.writer ? written(m) : 0;
    if (m->one.writer)
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
        verb_output_failed("/dev/null", error);
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

/* A requested size and the bytes that resulted. */
struct fitting {
    uint64_t size;
    uint64_t bytes;
};

/* Interpolates the size to request for about `wanted` bytes. */
static uint64_t on_line(struct fitting low, struct fitting high, uint64_t wanted)
{
    if (high.size <= low.size || high.bytes <= low.bytes || wanted <= low.bytes)
        return low.size;
    double share =
        (double)(int64_t)(wanted - low.bytes) / (double)(int64_t)(high.bytes - low.bytes);
    return low.size + (uint64_t)((double)(int64_t)(high.size - low.size) * share);
}

/* Reports the size of what always stays. Requesting that size leaves exactly this. */
static void say_too_small(const struct merge *m, const struct trace_scope *scope, uint64_t least)
{
    char text[UNIT_TEXT_BYTES];
    message("merge: --max-size: %s is too small%s%s: names, counters, memory, steps and failed "
            "calls are always kept; give --max-size=%lluK or more, or select less (--step, --rank)",
            bytes_text(text, m->own->max_size), m->is.split ? " for " : "",
            m->is.split ? scope->name : "", (unsigned long long)(least + 1023) / 1024);
}

/* Finds what to leave out. One pass weighs each event; further passes are needed for counters, and
 * for arrows, which go with either of their ends. */
static int merge_trace_fit(struct merge *m, struct trace_scope *scope)
{
    uint64_t all = 0, bytes = 0, most = 0;
    uint64_t wanted = m->own->max_size / 100 * FIT_PERCENT;
    struct thinning weighed, best;
    thinning_begin(&m->fit.thinning);
    int error = merge_trace_weigh(m, scope, &all);
    m->fit.thinning.weighs = false;
    best = weighed = m->fit.thinning;
    if (all <= m->own->max_size)
        return error;
    uint64_t size = all - weighed.weighed; /* what always stays comes first */
    struct fitting low = {0}, high = {.size = all, .bytes = all};
    for (unsigned i = 0; error == 0 && i < FITS_MAX && most <= m->own->max_size / 10 * 9; i++) {
        m->fit.thinning = weighed;
        thinning_choose(&m->fit.thinning, all, size);
        error = merge_trace_weigh(m, scope, &bytes);
        if (bytes > m->own->max_size) {
            if (i == 0)
                break;
            wanted -= wanted / 100 * FIT_LESS_PERCENT;
            high = (struct fitting){size, bytes};
        } else {
            low = (struct fitting){size, bytes};
        }
        if (bytes <= m->own->max_size && bytes > most) {
            most = bytes;
            best = m->fit.thinning;
        }
        size = on_line(low, high, wanted);
    }
    m->fit.thinning = best;
    if (error < 0 || most)
        return error;
    say_too_small(m, scope, bytes);
    return GPUPROF_USAGE;
}

int merge_write_trace(struct merge *m, struct output *out, struct trace_scope *scope)
{
    int error = m->own->max_size ? merge_trace_fit(m, scope) : 0;
    return error < 0 ? error : write_once(m, out, scope);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
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
    scope->name = base_name(path);
    m->one.path = path;
    return merge_close(m, &out, path, merge_write_trace(m, &out, scope), !m->is.split);
}
