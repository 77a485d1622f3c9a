/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, copies, sets, synchronisations and overheads as rows of a Chrome trace, laid out like
 * Kineto's, with arrows from their calls; and throttling of devices. */
#include <stdlib.h>

#include "base/array.h"
#include "record/gpu_record.h"
#include "resolve/device_sources.h"
#include "trace/chrome.h"

#define BIND_PROCESS_SHIFT 32  /* above the ids that Perfetto gives to other arrows */
#define CALL_ARROW_NS      100 /* latest begin of an arrow inside its call */

_Static_assert(CHROME_EVENT_BYTES + 6 * KERNEL_NAME_BYTES_MAX < OUTPUT_BUFFER_BYTES,
               "an event fits into the buffer");

struct gpu_slice {
    const struct slice *of;
    const struct record *record;
    struct shown at;
    uint64_t device;
    uint64_t stream; /* GPU_STREAM_NONE: none */
};

/* Writes ns in microseconds; a hostile file can have any times. */
static char *put_time(char *out, uint64_t ns)
{
    return json_microseconds(out, min_of(ns, JSON_EXACT_MAX));
}

char *chrome_put_binding(struct trace_writer *w, char *out, uint32_t process, uint32_t call,
                         bool is_call)
{
    out = PUT(out - (sizeof(",\"args\":") - 1), ",\"bind_id\":");
    out = json_decimal(out, (process + 1ull) << BIND_PROCESS_SHIFT | call);
    out = is_call ? PUT(out, ",\"flow_out\":true") : PUT(out, ",\"flow_in\":true");
    return w->arguments = PUT(out, ",\"args\":");
}

static bool has_arrow(const struct trace_writer *w, const struct slice *s)
{
    return s->is_called && !s->is_call_filtered && chrome_has_row(w, s->call.thread);
}

static bool is_bound(const struct trace_writer *w, const struct slice *s)
{
    return chrome_binds(w, w->walk->rec->reader.functions.functions[s->call.function]);
}

/* Finds the row and the times in it. */
static const struct gpu_row *chrome_gpu_place(struct trace_writer *w, struct gpu_slice *s,
                                              enum row_kind kind, uint32_t lane)
{
    const struct event *e = &s->of->event;
    s->at.begin_ns = chrome_time(w, e->begin_ns);
    s->at.end_ns = chrome_time(w, e->end_ns);
    const struct gpu_row *row = chrome_place(w, e->process, kind, s->device,
                                             kind == ROW_STREAM ? s->stream : 0, lane, 0, &s->at);
    chrome_reach(w, e->process, s->at.begin_ns, s->at.end_ns);
    w->totals.gpu_events++;
    return row;
}

/* Writes {"ph":"X",... up to the first member of args. */
static char *chrome_gpu_put_head(struct trace_writer *w, const struct gpu_slice *s,
                                 const struct kernel_name *name, const char *text, size_t bytes)
{
    const char *category = select_kind_word(selection_kind_of(s->record, NULL));
    char *out = chrome_begin_slice(w, category, name, text, &s->at, bytes);
    return has_arrow(w, s->of) && is_bound(w, s->of)
               ? chrome_put_binding(w, out, s->of->call.process, s->of->call.id, false)
               : out;
}

/* Writes the ids that all device slices have: first that of the operator or range around the
 * call. */
static char *put_identity(struct trace_writer *w, const struct gpu_slice *s, char *out,
                          uint64_t context)
{
    struct survey *survey = w->scope.survey;
    const struct correlated_call *call = &s->of->call;
    const struct span_node *node = s->of->is_called ? survey_op(survey, call) : NULL;
    if (!node && s->of->is_called)
        node = survey_innermost(survey, call, SPAN_RANGE);
    out = json_decimal(PUT(out, ",\"External id\":"), node ? node->number : 0);
    out = PUT_FIELD(out, "device", s->device);
    out = PUT_FIELD(out, "context", context);
    if (s->stream == GPU_STREAM_NONE)
        out = PUT(out, ",\"stream\":-1");
    else
        out = PUT_FIELD(out, "stream", s->stream ? s->stream : GPU_STREAM_DEFAULT);
    return PUT_FIELD(out, "correlation", s->record->correlation);
}

/* Writes the members after those of `put_own`: delay after the call, wait for other work, graph
 * ids. */
static char *put_latency(const struct gpu_slice *s, char *out, uint64_t graph, uint64_t node)
{
    const struct slice *of = s->of;
    if (of->is_called) {
        out = PUT(out, ",\"launch latency (us)\":");
        if (of->call.begin_ns > of->event.begin_ns)
            out = put_time(PUT(out, "-"), of->call.begin_ns - of->event.begin_ns);
        else
            out = put_time(out, of->event.begin_ns - of->call.begin_ns);
        bool waited = of->event.begin_ns > of->call.end_ns;
        out = put_time(PUT(out, ",\"queue time (us)\":"),
                       waited ? of->event.begin_ns - of->call.end_ns : 0);
    }
    out = PUT_SOME(out, "graph id", graph);
    return PUT_SOME(out, "graph node id", node);
}

static char *put_traffic(const struct gpu_slice *s, char *out, uint64_t bytes)
{
    uint64_t ns = s->of->event.end_ns - s->of->event.begin_ns;
    out = PUT_FIELD(out, "bytes", bytes);
    out = PUT(out, ",\"memory bandwidth (GB/s)\":");
    unsigned __int128 milli = ns ? ((unsigned __int128)bytes * 1000 + ns / 2) / ns : 0;
    return put_time(out, milli < JSON_EXACT_MAX ? (uint64_t)milli : JSON_EXACT_MAX);
}

/* Writes an arrow from the call to the work; its ends share an id. */
static void put_flow(struct trace_writer *w, const struct gpu_slice *s)
{
    const struct correlated_call *call = &s->of->call;
    if (!has_arrow(w, s->of) || is_bound(w, s->of))
        return;
    uint64_t half = (call->end_ns - call->begin_ns) / 2;
    uint64_t begin_ns = chrome_time(w, call->begin_ns + min_of(half, CALL_ARROW_NS));
    /* Viewers ignore arrows that point back in time. */
    begin_ns = max_of(min_of(begin_ns, s->at.begin_ns), chrome_time(w, call->begin_ns));
    chrome_put_arrow(w, s->of->event.process, "ac2g", &chrome_row(w, call->thread)->ids, begin_ns,
                     &s->at);
}

/* ---- kernels, copies, sets, graphs ----------------------------------------------------------- */

static char *put_shape(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    const struct record *r = s->record;
    uint64_t fixed = record_arg(r, KERNEL_STATIC_SHARED);
    uint64_t dynamic = record_arg(r, KERNEL_DYNAMIC_SHARED);
    struct launch_shape shape = {
        .blocks = dim3_volume(record_arg(r, KERNEL_GRID)),
        .threads = dim3_volume(record_arg(r, KERNEL_BLOCK)),
        .registers = record_arg(r, KERNEL_REGISTERS),
        .shared = fixed + dynamic,
    };
    const struct surveyed_device *d =
        survey_device(w->scope.survey, s->of->event.process, s->device);
    struct occupancy o = occupancy_of(d ? &d->limits : NULL, &shape);
    out = argument_json(ARG_DIM3, record_arg(r, KERNEL_GRID), PUT(out, ",\"grid\":"));
    out = argument_json(ARG_DIM3, record_arg(r, KERNEL_BLOCK), PUT(out, ",\"block\":"));
    out = PUT_FIELD(out, "registers per thread", record_arg(r, KERNEL_REGISTERS));
    out = PUT_FIELD(out, "shared memory", fixed + dynamic);
    out = PUT_FIELD(out, "static shared memory", fixed);
    out = PUT_FIELD(out, "dynamic shared memory", dynamic);
    out = PUT_FIELD(out, "local memory", record_arg(r, KERNEL_LOCAL));
    if (o.spread) {
        out = json_microseconds(PUT(out, ",\"blocks per SM\":"), o.blocks_milli);
        out = json_microseconds(PUT(out, ",\"warps per SM\":"), o.warps_milli);
    }
    if (!o.limited)
        return out;
    out = json_decimal(PUT(out, ",\"est. achieved occupancy %\":"), o.percent);
    return json_decimal(PUT(out, ",\"theoretical occupancy %\":"), o.percent_limited);
}

static char *put_own(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    static const char *const peers[] = {
        ",\"fromDevice\":", ",\"fromContext\":", ",\"toDevice\":", ",\"toContext\":"};
    const struct record *r = s->record;
    bool is_peer;
    switch (r->type) {
    case RECORD_KERNEL:
        out = put_shape(w, s, out);
        out = put_time(PUT(out, ",\"queued\":"), record_arg(r, KERNEL_QUEUED)); /* 0: unknown */
        if (record_arg(r, KERNEL_SUBMITTED))
            out = put_time(PUT(out, ",\"submitted\":"), record_arg(r, KERNEL_SUBMITTED));
        if (record_arg(r, KERNEL_CLUSTER))
            out = argument_json(ARG_DIM3, record_arg(r, KERNEL_CLUSTER), PUT(out, ",\"cluster\":"));
        return put_latency(s, out, record_arg(r, KERNEL_GRAPH), record_arg(r, KERNEL_GRAPH_NODE));
    case RECORD_COPY:
        out = put_traffic(s, out, record_arg(r, COPY_BYTES));
        is_peer = record_arg(r, COPY_SOURCE_DEVICE) || record_arg(r, COPY_DESTINATION_DEVICE);
        if (is_peer)
            out = PUT_FIELD(out, "inDevice", record_arg(r, COPY_DEVICE));
        /* The record has the number + 1; 0: unknown. */
        for (unsigned i = 0; is_peer && i < 4; i++)
            if (record_arg(r, COPY_SOURCE_DEVICE + i))
                out = json_number(mempcpy(out, peers[i], strlen(peers[i])),
                                  record_arg(r, COPY_SOURCE_DEVICE + i) - 1);
        return put_latency(s, out, record_arg(r, COPY_GRAPH), record_arg(r, COPY_GRAPH_NODE));
    case RECORD_SET:
        out = put_traffic(s, out, record_arg(r, SET_BYTES));
        out = PUT_FIELD(out, "value", record_arg(r, SET_VALUE));
        return put_latency(s, out, record_arg(r, SET_GRAPH), record_arg(r, SET_GRAPH_NODE));
    default: return put_latency(s, out, record_arg(r, GRAPH_GRAPH), 0);
    }
}

/* Returns the library call that launched the work, "cublasGemmEx 4096x4096x4096 bf16"; NULL:
 * none. */
static const struct kernel_name *launched_by(struct trace_writer *w, const struct slice *s)
{
    const struct span_node *node =
        s->is_called ? survey_innermost(w->scope.survey, &s->call, SPAN_LIBRARY) : NULL;
    return node ? library_kind_text(&w->walk->kinds, node->kind) : NULL;
}

/* Work records of all types share the places of device, context and stream. */
static void put_work(struct trace_writer *w, struct gpu_slice *s)
{
    const struct record *r = s->record;
    const struct event *e = &s->of->event;
    const struct kernel_name *name = NULL, *by = NULL;
    char title[GPU_TITLE_BYTES];
    s->device = record_arg(r, KERNEL_DEVICE);
    s->stream = record_arg(r, KERNEL_STREAM);
    const struct gpu_row *row = chrome_gpu_place(w, s, ROW_STREAM, FREE_LANE);
    if (r->type == RECORD_KERNEL) {
        name = walk_kernel(w->walk, e->process, record_arg(r, KERNEL_NAME_INDEX));
        by = launched_by(w, s->of);
    }
    char *out = chrome_gpu_put_head(w, s, name, name ? NULL : record_title(r, title),
                                    by ? by->json_bytes : 0);
    out = put_own(w, s, put_identity(w, s, out, record_arg(r, KERNEL_CONTEXT)));
    if (by)
        out = mempcpy(PUT(out, ",\"launched by\":"), by->json, by->json_bytes);
    chrome_end_slice(w, out, 0);
    put_flow(w, s);
    chrome_count_work(w, s->of);
    projections_add(&w->rows.projections, row->place->process, row->place->device, row->stream,
                    s->at.begin_ns, s->at.end_ns, s->of->is_called ? &s->of->call : NULL);
}

/* ---- synchronisations and overheads -----------------------------------------------------------
 */

/* Uses a row of its own, since it overlaps the work that it waits for. */
static void put_sync(struct trace_writer *w, struct gpu_slice *s)
{
    const struct record *r = s->record;
    uint64_t context = record_arg(r, SYNC_CONTEXT), stream = record_arg(r, SYNC_STREAM);
    s->device = survey_context_device(w->scope.survey, s->of->event.process, context);
    chrome_gpu_place(w, s, ROW_SYNC, FREE_LANE);
    bool on_stream = record_arg(r, SYNC_KIND) != SYNC_CONTEXT_HOST && stream != GPU_STREAM_NONE;
    /* Kineto writes the stream only on request. HTA's critical path needs it; other analyses then
     * count the wait as work, so by default it has another name. Without streams, that analysis
     * fails at the name of stream waits. */
    s->stream = on_stream && w->scope.options->sync_streams ? stream : GPU_STREAM_NONE;
    const char *kind = sync_kind_text(record_arg(r, SYNC_KIND));
    bool renamed = record_arg(r, SYNC_KIND) == SYNC_STREAM_WAIT && !w->scope.options->sync_streams;
    char *out = chrome_gpu_put_head(w, s, NULL, renamed ? "Stream Wait" : kind, 0);
    out = put_identity(w, s, out, context);
    out = json_escape(PUT(out, ",\"cuda_sync_kind\":"), kind, strlen(kind));
    if (on_stream)
        out = PUT_FIELD(out, "synchronized stream", stream ? stream : GPU_STREAM_DEFAULT);
    out = PUT_SOME(out, "event id", record_arg(r, SYNC_EVENT));
    chrome_end_slice(w, out, 0);
    put_flow(w, s);
}

/* Puts all overheads in one row; of overlapping ones, later ones are shortened. */
static void put_overhead(struct trace_writer *w, struct gpu_slice *s)
{
    const struct record *r = s->record;
    const struct event *e = &s->of->event;
    const char *object = object_kind_text(record_arg(r, OVERHEAD_OBJECT));
    chrome_gpu_place(w, s, ROW_OVERHEAD, 0);
    char *out =
        chrome_gpu_put_head(w, s, NULL, overhead_kind_text(record_arg(r, OVERHEAD_KIND)), 0);
    out = json_escape(PUT(out, ",\"object\":"), object, strlen(object));
    if (s->at.end_ns - s->at.begin_ns != e->end_ns - e->begin_ns)
        out = json_microseconds(PUT(out, ",\"took (us)\":"), e->end_ns - e->begin_ns);
    out = PUT_FIELD(out, "process", record_arg(r, OVERHEAD_PROCESS));
    out = PUT_FIELD(out, "thread", record_arg(r, OVERHEAD_THREAD));
    /* Not "correlation": Kineto's readers take an event with it for the launching call. */
    out = PUT_SOME(out, "correlation of call", r->correlation);
    chrome_end_slice(w, out, 0);
    put_flow(w, s);
}

void chrome_gpu(struct trace_writer *w, const struct slice *s)
{
    struct gpu_slice g = {.of = s, .record = s->event.record};
    if (is_stream_work(g.record->type))
        put_work(w, &g);
    else if (g.record->type == RECORD_SYNC)
        put_sync(w, &g);
    else
        put_overhead(w, &g);
}

/* ---- what slowed a device down (run --device) ---------------------------------------------------
 */

/* A slice of throttling for one reason, from the first to the last reading with that reason,
 * whatever its share of the time. Each reason has its own lane, since several can hold at once. */
struct throttled {
    const struct device_source *source; /* NULL: no readings */
    struct {
        uint64_t begin_ns; /* relative to the origin */
        uint64_t end_ns;   /* 0: no open slice */
        uint64_t ns;       /* throttled time in it */
    } open[THROTTLES];
};

static void end_throttled(struct trace_writer *w, struct throttled *t, unsigned why)
{
    struct shown at = {.begin_ns = t->open[why].begin_ns, .end_ns = t->open[why].end_ns};
    uint64_t ns = t->open[why].ns, of_ns = at.end_ns - at.begin_ns;
    char name[64];
    t->open[why].end_ns = t->open[why].ns = 0;
    if (!at.end_ns)
        return;
    chrome_place(w, w->walk->rec->processes[t->source->process->index], ROW_THROTTLE,
                 t->source->device, 0, why, 0, &at);
    snprintf(name, sizeof name, "throttled: %s", throttle_words[why]);
    char *out = chrome_begin_slice(w, "throttle", NULL, name, &at, 0);
    out = json_microseconds(PUT(out, ",\"throttled (us)\":"), ns);
    out = json_microseconds(PUT(out, ",\"of the time (%)\":"),
                            (uint64_t)((double)ns * 1e5 / (double)of_ns));
    chrome_end_slice(w, out, 0);
    chrome_reach(w, t->source->process, at.begin_ns, at.end_ns);
}

void chrome_throttle(struct trace_writer *w, const struct slice *s)
{
    const struct device_source *source = s->source;
    uint64_t ns[THROTTLES], since_ns, at_ns = device_sample_ns(&s->event);
    if (source->device == UINT64_MAX ||
        device_throttle(source, &s->event, ns, &since_ns) == THROTTLE_UNKNOWN)
        return;
    while (w->rows.throttled_count <= source->place)
        ARRAY_PUSH(w->rows.throttled, w->rows.throttled_count, NULL);
    struct throttled *t = &w->rows.throttled[source->place];
    uint64_t begin_ns = chrome_time(w, since_ns), end_ns = chrome_time(w, at_ns);
    bool is_gap = source->period_ns && (end_ns - begin_ns) / DEVICE_GAP > source->period_ns;
    t->source = source;
    for (unsigned why = 0; why < THROTTLES; why++) {
        bool holds = ns[why] && end_ns > begin_ns && !is_gap;
        if (!holds || t->open[why].end_ns != begin_ns)
            end_throttled(w, t, why);
        if (!holds)
            continue;
        t->open[why].begin_ns = t->open[why].end_ns ? t->open[why].begin_ns : begin_ns;
        t->open[why].end_ns = end_ns;
        t->open[why].ns += ns[why];
    }
}

void chrome_throttle_end(struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->rows.throttled_count; i++)
        for (unsigned why = 0; why < THROTTLES; why++)
            end_throttled(w, &w->rows.throttled[i], why);
}
