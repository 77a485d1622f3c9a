/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slowed a device down (run --device) as slices of a row of its own: one from the first
 * reading to the last between which the same reason held, however much of the time. A row has a
 * lane for each reason, since several may hold at a time.
 */
#include <stdlib.h>

#include "base/array.h"
#include "error.h"
#include "model/device_sources.h"
#include "trace/chrome.h"

struct throttle_open {
    uint64_t begin_ns; /* relative to the origin */
    uint64_t end_ns;   /* 0: none is open */
    uint64_t ns;       /* that it was slowed down in between */
};

struct throttled {
    const struct device_source *source; /* NULL: nothing was read of it */
    struct throttle_open open[THROTTLES];
};

static int put_throttled(struct trace_writer *w, const struct throttled *t, unsigned why)
{
    const struct throttle_open *o = &t->open[why];
    uint64_t begin_ns = o->begin_ns, end_ns = o->end_ns;
    struct gpu_row *row = gpu_rows_lane(&w->gpu_rows, w->rec->processes[t->source->process->index],
                                        ROW_THROTTLE, t->source->device, 0, why);
    if (!row)
        return GPUPROF_NO_MEMORY;
    int error = row->named ? 0 : chrome_name_row(w, row);
    gpu_row_fit(row, &begin_ns, &end_ns);
    char name[64];
    int length = snprintf(name, sizeof name, "\"throttled: %s\"", throttle_words[why]);
    char *out = output_room(w->out, CHROME_EVENT_BYTES);
    out = chrome_begin_slice(w, out, "throttle", name, (size_t)length, &row->row, begin_ns, end_ns);
    out = json_microseconds(PUT(out, ",\"throttled (us)\":"), o->ns);
    out = json_microseconds(PUT(out, ",\"of the time (%)\":"),
                            (uint64_t)((double)o->ns * 1e5 / (double)(o->end_ns - o->begin_ns)));
    chrome_end_slice(w, out, 0);
    chrome_reach(w, t->source->process, begin_ns, end_ns);
    return error;
}

static int end_throttled(struct trace_writer *w, struct throttled *t, unsigned why)
{
    int error = t->open[why].end_ns ? put_throttled(w, t, why) : 0;
    t->open[why] = (struct throttle_open){0};
    return error;
}

/* NULL: no memory. */
static struct throttled *throttled_of(struct trace_writer *w, const struct device_source *source)
{
    while (w->throttled_count <= source->place)
        if (ARRAY_PUSH(w->throttled, w->throttled_count, NULL) < 0)
            return NULL;
    w->throttled[source->place].source = source;
    return &w->throttled[source->place];
}

int chrome_throttle(struct trace_writer *w, const struct slice *s)
{
    uint64_t ns[THROTTLES], since_ns, at_ns = device_sample_ns(&s->event);
    if (s->source->device == UINT64_MAX ||
        device_throttle(s->source, &s->event, ns, &since_ns) == THROTTLE_UNKNOWN)
        return 0;
    struct throttled *t = throttled_of(w, s->source);
    uint64_t begin_ns = chrome_time(w, since_ns), end_ns = chrome_time(w, at_ns);
    uint64_t period_ns = s->source->period_ns;
    bool is_gap = period_ns && (end_ns - begin_ns) / DEVICE_GAP > period_ns;
    int error = t ? 0 : GPUPROF_NO_MEMORY;
    for (unsigned why = 0; error == 0 && why < THROTTLES; why++) {
        struct throttle_open *open = &t->open[why];
        bool holds = ns[why] && end_ns > begin_ns && !is_gap;
        if (open->end_ns && (!holds || open->end_ns != begin_ns))
            error = end_throttled(w, t, why);
        if (!holds)
            continue;
        open->begin_ns = open->end_ns ? open->begin_ns : begin_ns;
        open->end_ns = end_ns;
        open->ns += ns[why];
    }
    return error;
}

int chrome_throttle_end(struct trace_writer *w)
{
    int error = 0;
    for (uint32_t i = 0; i < w->throttled_count; i++)
        for (unsigned why = 0; error == 0 && why < THROTTLES; why++)
            error = end_throttled(w, &w->throttled[i], why);
    return error;
}
