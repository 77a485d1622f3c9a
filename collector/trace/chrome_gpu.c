/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, copies, sets, synchronisations and overheads as rows of a Chrome trace, as Kineto has
 * them, with arrows from the calls that made them. */
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "record/gpu_record.h"
#include "trace/chrome.h"

#define BIND_PROCESS_SHIFT 32  /* behind the numbers that Perfetto gives to other arrows */
#define CALL_ARROW_NS      100 /* how far inside its call an arrow begins, at most */
#define TIME_MAX           (1ll << 62)

_Static_assert(CHROME_EVENT_BYTES + 6 * KERNEL_NAME_BYTES_MAX < OUTPUT_BUFFER_BYTES,
               "an event fits into the buffer");

/* A number that is written twice. */
struct number_text {
    uint32_t bytes;
    char text[2 * JSON_COPY_BYTES];
};
_Static_assert(JSON_DECIMAL_MAX + 4 <= 2 * JSON_COPY_BYTES, "a number fits");

static inline char *put_again(char *out, const struct number_text *number)
{
    memcpy(out, number->text, sizeof number->text);
    return out + number->bytes;
}

/* An event that is being written. */
struct gpu_slice {
    const struct slice *of;
    struct gpu_row *row;
    uint64_t begin_ns; /* as shown: relative to the origin, fitted into the row */
    uint64_t end_ns;
    uint64_t device;
    uint64_t stream;
    struct number_text begin; /* begin_ns as it is written, for the event and its arrow */
};

static char *put_signed_us(char *out, int64_t ns)
{
    if (ns < 0)
        *out++ = '-';
    return json_microseconds(out, ns < 0 ? -(uint64_t)ns : (uint64_t)ns);
}

static char *put_text(char *out, const char *text)
{
    return json_escape(out, text, strlen(text));
}

/* b - a, for times that any file may have made up. */
static int64_t difference(uint64_t a, uint64_t b)
{
    uint64_t distance = b > a ? b - a : a - b;
    int64_t cut = distance < (uint64_t)TIME_MAX ? (int64_t)distance : TIME_MAX;
    return b > a ? cut : -cut;
}

/* Finds the row and the place in it. */
static int place(struct trace_writer *w, const struct slice *of, enum row_kind kind,
                 uint64_t device, uint64_t stream, struct gpu_slice *s)
{
    const struct event *e = &of->event;
    s->of = of;
    s->device = device;
    s->stream = stream;
    s->begin_ns = chrome_time(w, e->begin_ns);
    s->end_ns = chrome_time(w, e->end_ns);
    s->row = kind == ROW_OVERHEAD
                 ? gpu_rows_lane(&w->gpu_rows, e->process, kind, device, stream, 0)
                 : gpu_rows_get(&w->gpu_rows, e->process, kind, device, stream, s->begin_ns);
    if (!s->row)
        return GPUPROF_NO_MEMORY;
    int error = s->row->named ? 0 : chrome_name_row(w, s->row);
    gpu_row_fit(s->row, &s->begin_ns, &s->end_ns);
    chrome_reach(w, e->process, s->begin_ns, s->end_ns);
    w->gpu_events++;
    return error;
}

char *chrome_put_binding(char *out, uint32_t process, uint32_t call, bool is_call)
{
    out = PUT(out, ",\"bind_id\":");
    out = json_decimal(out, (process + 1ull) << BIND_PROCESS_SHIFT | call);
    return is_call ? PUT(out, ",\"flow_out\":true") : PUT(out, ",\"flow_in\":true");
}

static bool has_arrow(const struct trace_writer *w, const struct slice *s)
{
    return s->is_called && !s->is_call_hidden && s->call.thread - w->first_thread < w->thread_count;
}

static bool is_bound(const struct trace_writer *w, const struct slice *s)
{
    return chrome_binds(w, w->rec->reader.functions.functions[s->call.function]);
}

/* {"ph":"X",... up to the first member of args. */
static inline __attribute__((always_inline)) char *put_head(const struct trace_writer *w,
                                                            struct gpu_slice *s, char *out,
                                                            const char *category, const char *name,
                                                            size_t name_bytes)
{
    out = PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"");
    out = chrome_put(out, category, strlen(category));
    out = PUT(out, "\",\"name\":");
    out = chrome_put(out, name, name_bytes);
    out = PUT(out, ",\"pid\":");
    out = chrome_put_ids(out, &s->row->row);
    s->begin.bytes = (uint32_t)(json_microseconds(s->begin.text, s->begin_ns) - s->begin.text);
    out = put_again(out, &s->begin);
    out = PUT(out, ",\"dur\":");
    out = json_microseconds(out, s->end_ns - s->begin_ns);
    if (w->scope.binds_slices && has_arrow(w, s->of) && is_bound(w, s->of))
        out = chrome_put_binding(out, s->of->call.process, s->of->call.id, false);
    return PUT(out, ",\"args\":{");
}

/* What work and synchronisations have in common; a stream of -1 is none. */
static int put_identity(struct trace_writer *w, const struct gpu_slice *s, uint64_t context,
                        char **end)
{
    uint32_t sequence;
    int error = chrome_op_of(w, s->of, &sequence);
    if (error == 0 && !sequence && s->of->is_called && s->of->call.range) {
        const struct range_node *node = survey_range(w->scope.survey, s->of->call.range, &error);
        if (!node)
            return error;
        sequence = node->sequence;
    }
    char *out = json_decimal(PUT(*end, "\"External id\":"), sequence);
    out = PUT_FIELD(out, "device", s->device);
    out = PUT_FIELD(out, "context", context);
    if (s->stream == GPU_STREAM_NONE)
        out = PUT(out, ",\"stream\":-1");
    else
        out = PUT_FIELD(out, "stream", s->stream ? s->stream : GPU_STREAM_DEFAULT);
    *end = PUT_FIELD(out, "correlation", s->of->event.record->correlation);
    return error;
}

/* How long after its call it began, and how long it waited for others. */
static char *put_latency(const struct gpu_slice *s, char *out)
{
    if (!s->of->is_called)
        return out;
    int64_t latency = difference(s->of->call.begin_ns, s->of->event.begin_ns);
    int64_t queue = difference(s->of->call.end_ns, s->of->event.begin_ns);
    out = put_signed_us(PUT(out, ",\"launch latency (us)\":"), latency);
    return put_signed_us(PUT(out, ",\"queue time (us)\":"), queue > 0 ? queue : 0);
}

static char *put_graph(char *out, uint64_t graph, uint64_t node)
{
    if (graph)
        out = PUT_FIELD(out, "graph id", graph);
    if (node)
        out = PUT_FIELD(out, "graph node id", node);
    return out;
}

static char *put_traffic(const struct gpu_slice *s, char *out, uint64_t bytes)
{
    uint64_t ns = s->of->event.end_ns - s->of->event.begin_ns;
    out = PUT_FIELD(out, "bytes", bytes);
    out = PUT(out, ",\"memory bandwidth (GB/s)\":");
    unsigned __int128 milli = ns ? ((unsigned __int128)bytes * 1000 + ns / 2) / ns : 0;
    return json_microseconds(out, milli < JSON_EXACT_MAX ? (uint64_t)milli : JSON_EXACT_MAX);
}

/* An arrow from the call to the work; its two ends have an id of their own. */
static void put_flow(struct trace_writer *w, const struct gpu_slice *s)
{
    if (!has_arrow(w, s->of) || (w->scope.binds_slices && is_bound(w, s->of)))
        return;
    const struct trace_row *row = chrome_row(w, s->of->call.thread);
    uint64_t id = chrome_flow_id(w, s->of->event.process);
    uint64_t half = (s->of->call.end_ns - s->of->call.begin_ns) / 2;
    uint64_t begin_ns =
        chrome_time(w, s->of->call.begin_ns + (half < CALL_ARROW_NS ? half : CALL_ARROW_NS));
    /* Viewers bind no arrow that points back in time. */
    if (begin_ns > s->begin_ns)
        begin_ns = s->begin_ns;
    if (begin_ns < chrome_time(w, s->of->call.begin_ns))
        begin_ns = chrome_time(w, s->of->call.begin_ns);
    char *out = output_room(w->out, CHROME_EVENT_BYTES);
    struct number_text number;
    number.bytes = (uint32_t)(json_decimal(number.text, id) - number.text);
    out = PUT(out, ",\n{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
    out = put_again(out, &number);
    out = PUT(out, ",\"pid\":");
    out = chrome_put_ids(out, row);
    out = json_microseconds(out, begin_ns);
    out = PUT(out, "},\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
    out = put_again(out, &number);
    out = PUT(out, ",\"pid\":");
    out = chrome_put_ids(out, &s->row->row);
    out = put_again(out, &s->begin);
    *out++ = '}';
    output_advance(w->out, out);
}

/* Ends the event; the arrow, counters, and the ranges that the work was made in. */
static int finish(struct trace_writer *w, const struct gpu_slice *s, char *out, bool is_work)
{
    out = PUT(out, "}}");
    output_advance(w->out, out);
    put_flow(w, s);
    int error = is_work ? chrome_count_work(w, s->of, s->row) : 0;
    if (!is_work || error < 0)
        return error;
    return projections_add(&w->projections, s->row->process, s->row->device, s->row->stream,
                           s->begin_ns, s->end_ns, s->of->is_called ? &s->of->call : NULL);
}

static char *put_occupancy(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    const struct record *r = s->of->event.record;
    struct launch_shape shape = {
        .blocks = dim3_volume(record_arg(r, KERNEL_GRID)),
        .threads = dim3_volume(record_arg(r, KERNEL_BLOCK)),
        .registers = record_arg(r, KERNEL_REGISTERS),
        .shared = record_arg(r, KERNEL_STATIC_SHARED) + record_arg(r, KERNEL_DYNAMIC_SHARED),
    };
    const struct surveyed_device *d =
        survey_device(w->scope.survey, s->of->event.process, s->device);
    struct occupancy o = occupancy_of(d ? &d->limits : NULL, &shape);
    if (o.spread) {
        out = json_microseconds(PUT(out, ",\"blocks per SM\":"), o.blocks_milli);
        out = json_microseconds(PUT(out, ",\"warps per SM\":"), o.warps_milli);
    }
    if (!o.limited)
        return out;
    out = json_decimal(PUT(out, ",\"est. achieved occupancy %\":"), o.percent);
    return json_decimal(PUT(out, ",\"theoretical occupancy %\":"), o.percent_limited);
}

/* ns before the kernel's begin, as a file says it. */
static char *put_before(char *out, uint64_t ns)
{
    return json_microseconds(out, ns < JSON_EXACT_MAX ? ns : JSON_EXACT_MAX);
}

static char *make_launch(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    const struct record *r = s->of->event.record;
    uint64_t fixed = record_arg(r, KERNEL_STATIC_SHARED);
    uint64_t dynamic = record_arg(r, KERNEL_DYNAMIC_SHARED);
    out = chrome_put_value(w, PUT(out, ",\"grid\":"), ARG_DIM3, record_arg(r, KERNEL_GRID));
    out = chrome_put_value(w, PUT(out, ",\"block\":"), ARG_DIM3, record_arg(r, KERNEL_BLOCK));
    out = PUT_FIELD(out, "registers per thread", record_arg(r, KERNEL_REGISTERS));
    out = PUT_FIELD(out, "shared memory", fixed + dynamic);
    out = PUT_FIELD(out, "static shared memory", fixed);
    out = PUT_FIELD(out, "dynamic shared memory", dynamic);
    out = PUT_FIELD(out, "local memory", record_arg(r, KERNEL_LOCAL));
    return put_occupancy(w, s, out);
}

/* The same, as it was made for a launch before this one. */
static char *put_shape(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    const struct record *r = s->of->event.record;
    uint64_t keys[LAUNCH_KEYS] = {
        record_arg(r, KERNEL_GRID),           record_arg(r, KERNEL_BLOCK),
        record_arg(r, KERNEL_REGISTERS),      record_arg(r, KERNEL_STATIC_SHARED),
        record_arg(r, KERNEL_DYNAMIC_SHARED), record_arg(r, KERNEL_LOCAL),
        s->of->event.process->index,          s->device};
    uint64_t hash = 0;
    for (unsigned i = 0; i < LAUNCH_KEYS; i++)
        hash = (hash ^ keys[i]) * 0x9E3779B97F4A7C15u;
    struct launch_text *known = &w->launches[hash >> 56];
    _Static_assert(LAUNCH_CACHE_SLOTS == 256, "the hash's top byte is the slot");
    if (!known->length || memcmp(known->keys, keys, sizeof keys) != 0) {
        memcpy(known->keys, keys, sizeof keys);
        known->length = (uint32_t)(make_launch(w, s, known->text) - known->text);
    }
    return json_copy(out, known->text, known->length);
}

static char *put_launch(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    const struct record *r = s->of->event.record;
    out = put_shape(w, s, out);
    out = put_before(PUT(out, ",\"queued\":"), record_arg(r, KERNEL_QUEUED)); /* 0: not measured */
    if (record_arg(r, KERNEL_SUBMITTED))
        out = put_before(PUT(out, ",\"submitted\":"), record_arg(r, KERNEL_SUBMITTED));
    if (record_arg(r, KERNEL_CLUSTER))
        out =
            chrome_put_value(w, PUT(out, ",\"cluster\":"), ARG_DIM3, record_arg(r, KERNEL_CLUSTER));
    out = put_latency(s, out);
    return put_graph(out, record_arg(r, KERNEL_GRAPH), record_arg(r, KERNEL_GRAPH_NODE));
}

/* One more than the number, as copies between devices have it. */
static char *put_peer(char *out, const struct record *r)
{
    static const char *const keys[] = {
        ",\"fromDevice\":", ",\"fromContext\":", ",\"toDevice\":", ",\"toContext\":"};
    if (!record_arg(r, COPY_SOURCE_DEVICE) && !record_arg(r, COPY_DESTINATION_DEVICE))
        return out;
    out = PUT_FIELD(out, "inDevice", record_arg(r, COPY_DEVICE));
    for (unsigned i = 0; i < 4; i++) {
        uint64_t value = record_arg(r, COPY_SOURCE_DEVICE + i);
        if (value)
            out = json_number(chrome_put(out, keys[i], strlen(keys[i])), value - 1);
    }
    return out;
}

/* What only work of that type has. */
static char *put_own(struct trace_writer *w, const struct gpu_slice *s, char *out)
{
    const struct record *r = s->of->event.record;
    switch (r->type) {
    case RECORD_KERNEL: return put_launch(w, s, out);
    case RECORD_COPY:
        out = put_traffic(s, out, record_arg(r, COPY_BYTES));
        out = put_latency(s, put_peer(out, r));
        return put_graph(out, record_arg(r, COPY_GRAPH), record_arg(r, COPY_GRAPH_NODE));
    case RECORD_SET:
        out = put_traffic(s, out, record_arg(r, SET_BYTES));
        out = put_latency(s, PUT_FIELD(out, "value", record_arg(r, SET_VALUE)));
        return put_graph(out, record_arg(r, SET_GRAPH), record_arg(r, SET_GRAPH_NODE));
    default: return put_graph(put_latency(s, out), record_arg(r, GRAPH_GRAPH), 0);
    }
}

/* Device, context and stream stand alike in records of all work. */
static int put_work_slice(struct trace_writer *w, const struct slice *of, const char *category)
{
    const struct record *r = of->event.record;
    const struct kernel_name *name = NULL, *by = NULL;
    struct gpu_slice s;
    char title[GPU_TITLE_BYTES], text[6 * GPU_TITLE_BYTES + 2];
    int error =
        place(w, of, ROW_STREAM, record_arg(r, KERNEL_DEVICE), record_arg(r, KERNEL_STREAM), &s);
    if (error == 0 && r->type == RECORD_KERNEL) {
        name = walk_kernel(w->walk, of->event.process, record_arg(r, KERNEL_NAME_INDEX));
        error = chrome_launched_by(w, of, &by);
    }
    if (error < 0)
        return error;
    size_t length =
        name ? name->json_bytes : (size_t)(put_text(text, record_title(r, title)) - text);
    char *out = output_room(w->out, CHROME_EVENT_BYTES + length + (by ? by->json_bytes : 0));
    out = put_head(w, &s, out, category, name ? name->json : text, length);
    if ((error = put_identity(w, &s, record_arg(r, KERNEL_CONTEXT), &out)) < 0)
        return error;
    out = put_own(w, &s, out);
    if (by)
        out = chrome_put(PUT(out, ",\"launched by\":"), by->json, by->json_bytes);
    return finish(w, &s, out, true);
}

/* On a row of its own: it overlaps the work that it waits for. */
static int put_sync_slice(struct trace_writer *w, const struct slice *of)
{
    const struct record *r = of->event.record;
    struct gpu_slice s;
    char name[64];
    uint64_t context = record_arg(r, SYNC_CONTEXT);
    uint64_t device = survey_context_device(w->scope.survey, of->event.process, context);
    int error = place(w, of, ROW_SYNC, device, 0, &s);
    if (error < 0)
        return error;
    bool on_stream = record_arg(r, SYNC_KIND) != SYNC_CONTEXT_HOST &&
                     record_arg(r, SYNC_STREAM) != GPU_STREAM_NONE;
    /* Kineto says the stream, if it is asked for synchronisations at all. HTA's critical path needs
     * that; but all else in it counts the wait as work, so the stream then has another name. And
     * without streams that analysis fails at the name that waits of streams have. */
    s.stream = on_stream && w->scope.sync_streams ? record_arg(r, SYNC_STREAM) : GPU_STREAM_NONE;
    const char *kind = sync_kind_text(record_arg(r, SYNC_KIND));
    bool renamed = record_arg(r, SYNC_KIND) == SYNC_STREAM_WAIT && !w->scope.sync_streams;
    size_t length = (size_t)(put_text(name, renamed ? "Stream Wait" : kind) - name);
    char *out = output_room(w->out, CHROME_EVENT_BYTES);
    out = put_head(w, &s, out, "cuda_sync", name, length);
    if ((error = put_identity(w, &s, context, &out)) < 0)
        return error;
    out = put_text(PUT(out, ",\"cuda_sync_kind\":"), kind);
    if (on_stream)
        out =
            PUT_FIELD(out, "synchronized stream",
                      record_arg(r, SYNC_STREAM) ? record_arg(r, SYNC_STREAM) : GPU_STREAM_DEFAULT);
    if (record_arg(r, SYNC_EVENT))
        out = PUT_FIELD(out, "event id", record_arg(r, SYNC_EVENT));
    return finish(w, &s, out, false);
}

/* All in one row: of those that overlap, the later ones are shown shorter. */
static int put_overhead_slice(struct trace_writer *w, const struct slice *of)
{
    const struct record *r = of->event.record;
    struct gpu_slice s;
    char name[64];
    int error = place(w, of, ROW_OVERHEAD, 0, 0, &s);
    if (error < 0)
        return error;
    size_t length =
        (size_t)(put_text(name, overhead_kind_text(record_arg(r, OVERHEAD_KIND))) - name);
    char *out = output_room(w->out, CHROME_EVENT_BYTES);
    out = put_head(w, &s, out, "overhead", name, length);
    out = put_text(PUT(out, "\"object\":"), object_kind_text(record_arg(r, OVERHEAD_OBJECT)));
    if (s.end_ns - s.begin_ns != of->event.end_ns - of->event.begin_ns)
        out = json_microseconds(PUT(out, ",\"took (us)\":"), of->event.end_ns - of->event.begin_ns);
    out = PUT_FIELD(out, "process", record_arg(r, OVERHEAD_PROCESS));
    out = PUT_FIELD(out, "thread", record_arg(r, OVERHEAD_THREAD));
    /* Not "correlation": Kineto's readers take what has one for the call that made the work. */
    if (r->correlation)
        out = PUT_FIELD(out, "correlation of call", r->correlation);
    return finish(w, &s, out, false);
}

int chrome_gpu(struct trace_writer *w, const struct slice *s)
{
    switch (s->event.record->type) {
    case RECORD_KERNEL: return put_work_slice(w, s, "kernel");
    case RECORD_COPY: return put_work_slice(w, s, "gpu_memcpy");
    case RECORD_SET: return put_work_slice(w, s, "gpu_memset");
    case RECORD_GRAPH: return put_work_slice(w, s, "gpu_graph");
    case RECORD_SYNC: return put_sync_slice(w, s);
    default: return put_overhead_slice(w, s);
    }
}
