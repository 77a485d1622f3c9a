/* SPDX-License-Identifier: Apache-2.0 */
#include "control/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/ticks.h"
#include "bytes.h"
#include "control/held.h"
#include "control_text.h"
#include "range/step_count.h"
#include "range/windows.h"
#include "rank.h"
#include "record/open_look.h"
#include "record/pool.h"
#include "record/recorded.h"
#include "record/state.h"
#include "store/seal.h"

#define DEVICES_MAX 64u /* devices with figures of their own; others are not counted */
#define SPANS_MAX   64u
#define CUDA_KIND   1u /* TENSOR_DEVICE_KIND */

struct span {
    uint64_t begin_ns, end_ns;
};

struct device {
    uint64_t busy_ns; /* total time of the spans that were dropped from `spans` */
    /* in time order and disjoint; the time before them is summed up */
    struct span spans[SPANS_MAX];
    unsigned span_count;
    uint64_t tensor_bytes, reserved_bytes;
    bool has_worked, has_tensors;
};

static struct {
    bool is_watched;
    bool has_gpu; /* there are device records */
    uint64_t rank;
    uint64_t calls, launches;
    uint64_t last_call; /* in ticks: the end of the last stored call, or of a time in which calls
                           may be missing; 0: none */
    struct device devices[DEVICES_MAX];
} now;

/* ---- what the records show --------------------------------------------------------------------
 */

/* Device records come in no order, but not much out of order. */
static void figures_add_span(struct device *d, struct span s)
{
    unsigned first = 0, last;
    if (d->span_count == SPANS_MAX) /* join the two oldest */
        d->spans[1].begin_ns = d->spans[0].begin_ns;
    if (d->span_count == SPANS_MAX)
        memmove(d->spans, d->spans + 1, --d->span_count * sizeof s);
    while (first < d->span_count && d->spans[first].end_ns < s.begin_ns)
        first++;
    uint64_t before_ns = 0;
    for (last = first; last < d->span_count && d->spans[last].begin_ns <= s.end_ns; last++) {
        struct span *other = &d->spans[last];
        before_ns += other->end_ns - other->begin_ns;
        s.begin_ns = other->begin_ns < s.begin_ns ? other->begin_ns : s.begin_ns;
        s.end_ns = other->end_ns > s.end_ns ? other->end_ns : s.end_ns;
    }
    memmove(&d->spans[first + 1], &d->spans[last], (d->span_count - last) * sizeof s);
    d->span_count += 1 - (last - first);
    d->spans[first] = s;
    d->busy_ns += s.end_ns - s.begin_ns - before_ns;
}

static void see_work(const struct record *r, uint64_t begin_ns)
{
    uint64_t end_ns = clock_scale_ns(&gp.header.scale, r->begin + r->duration);
    /* the KERNEL_DEVICE argument and its equivalents */
    if (!r->arg_count || r->args[0] >= DEVICES_MAX)
        return;
    now.has_gpu = now.devices[r->args[0]].has_worked = true;
    if (now.is_watched)
        figures_add_span(&now.devices[r->args[0]], (struct span){begin_ns, end_ns});
}

static void see_tensor(const struct record *r)
{
    if (r->arg_count <= TENSOR_DEVICE_KIND || r->args[TENSOR_DEVICE_KIND] != CUDA_KIND ||
        r->args[TENSOR_DEVICE] >= DEVICES_MAX)
        return;
    struct device *d = &now.devices[r->args[TENSOR_DEVICE]];
    d->has_tensors = true;
    d->tensor_bytes = r->args[TENSOR_ALLOCATED];
    d->reserved_bytes = r->args[TENSOR_RESERVED];
}

static void see_call(const struct record *r, uint64_t begin_ns)
{
    if (r->code >= API_FUNCTION_COUNT)
        return;
    const struct api_function *f = &api_functions[r->code];
    now.calls++;
    now.launches += f->class == API_LAUNCH || f->class == API_GRAPH_LAUNCH;
    if (f->memory != API_MEMORY_NONE)
        held_see(r, begin_ns);
}

static bool is_of_use(uint8_t type, uint16_t code)
{
    switch (type) {
    case RECORD_CALL:
        return now.is_watched ||
               (code < API_FUNCTION_COUNT && api_functions[code].memory != API_MEMORY_NONE);
    case RECORD_TENSOR: return true;
    case RECORD_KERNEL:
    case RECORD_COPY:
    case RECORD_SET:
    case RECORD_GRAPH: return now.is_watched || !now.has_gpu;
    default: return false;
    }
}

static void see_end(const uint8_t *record, uint64_t head, size_t bytes)
{
    uint64_t type = head & 0xff;
    if ((type != RECORD_CALL && type != RECORD_LIBRARY_BEGIN && type != RECORD_LIBRARY_END &&
         type != RECORD_PAUSE && type != RECORD_WINDOW) ||
        bytes < RECORD_HEAD_WORDS * 8)
        return;
    uint64_t end = load_u64(record + 8) + load_u64(record + 16);
    now.last_call = end > now.last_call ? end : now.last_call;
}

/* Counts a record. The program can overwrite the original, so it is copied first. */
static void figures_see(const uint8_t *record, size_t bytes)
{
    static uint8_t copy[8 * (RECORD_HEAD_WORDS + 1 + RECORD_ARGS_MAX)] __attribute__((aligned(8)));
    struct record r;
    uint64_t head = load_u64(record);
    see_end(record, head, bytes);
    if (!is_of_use((uint8_t)head, (uint16_t)(head >> 32)) || bytes > sizeof copy ||
        record_parse(memcpy(copy, record, bytes), bytes, &r) < 0)
        return;
    uint64_t begin_ns = clock_scale_ns(&gp.header.scale, r.begin);
    if (r.type == RECORD_CALL)
        see_call(&r, begin_ns);
    else if (r.type == RECORD_TENSOR)
        see_tensor(&r);
    else
        see_work(&r, begin_ns);
}

void figures_start(void)
{
    memset(&now, 0, sizeof now);
    now.rank = RANK_NONE;
    for (unsigned i = 0; rank_variables[i] && now.rank == RANK_NONE; i++)
        now.rank = rank_number(getenv(rank_variables[i]));
    held_reset();
    seal_report(gp.settings.numbers[SETTING_CONTROL] != CONTROL_SETTING_OFF ? figures_see : NULL);
}

/* ---- what is open -----------------------------------------------------------------------------
 */

static void fill_open(struct control_status *s)
{
    struct call_seen outermost, innermost;
    uint64_t ticks = ticks_now(), oldest = ticks;
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        if (owner_state(&gp.pool.owners[i]) != LIVE_OWNED ||
            !open_calls_look(pool_chunk(&gp.pool, i), &outermost, &innermost) ||
            (uint8_t)outermost.head != RECORD_CALL || outermost.begin >= oldest)
            continue;
        uint64_t code = outermost.head >> 32 & 0xffff;
        oldest = outermost.begin;
        s->figures[FIGURE_OPEN_NS] =
            clock_scale_ns(&gp.header.scale, ticks) - clock_scale_ns(&gp.header.scale, oldest);
        snprintf(s->open_call, sizeof s->open_call, "%s",
                 code < API_FUNCTION_COUNT ? api_functions[code].symbol : "");
    }
}

/* While calls are passed by, there may have been others. */
static void fill_quiet(uint64_t *figures)
{
    uint64_t ticks = ticks_now();
    if (now.last_call && recorded_asked() & OFF_CALLS)
        now.last_call = ticks;
    if (figures[FIGURE_OPEN_NS] == CONTROL_UNKNOWN && now.last_call && now.last_call <= ticks &&
        !passing_now())
        figures[FIGURE_QUIET_NS] = clock_scale_ns(&gp.header.scale, ticks) -
                                   clock_scale_ns(&gp.header.scale, now.last_call);
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static void fill_steps(uint64_t *figures)
{
    struct step_snapshot steps = step_count_now();
    if (!steps.count)
        return;
    figures[FIGURE_STEPS] = steps.count;
    figures[FIGURE_STEP] = steps.number;
    figures[FIGURE_STEP_BEGIN_NS] = steps.begin_ns;
    if (steps.median_ns) {
        figures[FIGURE_STEP_NS] = steps.last_ns;
        figures[FIGURE_STEP_MEDIAN_NS] = steps.median_ns;
    }
}

static void fill_devices(uint64_t *figures)
{
    uint64_t busy_ns = 0, worked = 0, tensors = 0, tensor_bytes = 0, reserved_bytes = 0;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        const struct device *d = &now.devices[i];
        worked += d->has_worked;
        busy_ns += d->busy_ns;
        tensors += d->has_tensors;
        tensor_bytes += d->tensor_bytes;
        reserved_bytes += d->reserved_bytes;
    }
    if (tensors) {
        figures[FIGURE_TENSOR_BYTES] = tensor_bytes;
        figures[FIGURE_RESERVED_BYTES] = reserved_bytes;
    }
    if (worked && now.is_watched)
        figures[FIGURE_DEVICES] = worked;
    /* Nothing is known of the time in which no GPU work is recorded. */
    if (worked && now.is_watched && !(recorded_asked() & (OFF_WORK | OFF_CUPTI)))
        figures[FIGURE_BUSY_NS] = busy_ns;
}

void figures_fill(struct control_status *s, bool is_watched)
{
    uint64_t *figures = s->figures;
    if (is_watched && !now.is_watched)
        now.calls = now.launches = 0; /* these calls were counted only for their memory */
    now.is_watched = is_watched;
    figures[FIGURE_RANK] = now.rank; /* RANK_NONE equals CONTROL_UNKNOWN */
    figures[FIGURE_NOW_NS] = clock_ns(CLOCK_MONOTONIC);
    figures[FIGURE_HELD_BYTES] = held_bytes();
    if (windows_whole())
        figures[FIGURE_WINDOW] = windows_whole();
    fill_steps(figures);
    fill_devices(figures);
    if (!is_watched)
        return;
    figures[FIGURE_CALLS] = now.calls;
    figures[FIGURE_LAUNCHES] = now.launches;
    fill_open(s);
    fill_quiet(figures);
}
