/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter tracks of a Chrome trace, written at its end. Of a device: how busy it was, unfinished
 * launches, copy speed, memory, and the driver's readings (run --device). Of a process: its
 * launches and its resident memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "record/gpu_record.h"
#include "resolve/device_sources.h"
#include "trace/chrome.h"

#define VALUES_BYTES 192  /* for the values of a counter */
#define VALUE_MAX    1e15 /* larger values come from damaged files */
#define KEYS_MAX     4

enum counter {
    COUNT_BUSY,
    COUNT_FLYING,
    COUNT_COPIES,
    COUNT_MEMORY,
    COUNT_TENSORS,
    COUNT_LAUNCHES,
    COUNT_RESIDENT,
    COUNT_NVML_BUSY,
    COUNT_NVML_MEMORY,
    COUNT_POWER,
    COUNT_ENERGY,
    COUNT_CLOCKS,
    COUNT_TEMPERATURE,
    COUNT_THROTTLED,
    COUNT_PCIE,
    COUNT_NVLINK,
    COUNT_GPM,
    COUNTERS
};

/* Some viewers show a key after the counter's name, others in a legend. */
static const struct track_info {
    const char *name;
    const char *keys[KEYS_MAX]; /* ended by NULL if fewer than KEYS_MAX */
    double unit;                /* factor from the amount per ns, or from a level's own unit */
    unsigned thousandths;       /* values are rounded to this; smaller changes are not written */
    bool is_level;
    bool is_read; /* a mean of readings, over the time that has readings */
} infos[COUNTERS] = {
    [COUNT_BUSY] = {"GPU busy", {"%"}, 0.01, 100, false},
    [COUNT_FLYING] = {"kernels launched, not finished", {"mean"}, 1, 10, false},
    [COUNT_COPIES] = {"copies (GB/s)", {"HtoD", "DtoH", "other"}, 1, 1, false},
    [COUNT_MEMORY] = {"GPU memory", {"MiB"}, 1024 * 1024, 100, true},
    [COUNT_TENSORS] = {"PyTorch's memory (MiB)", {"allocated", "reserved"}, 1024 * 1024, 100, true},
    [COUNT_RESIDENT] = {"resident memory", {"MiB"}, 1024 * 1024, 100, true},
    [COUNT_LAUNCHES] = {"launches", {"per second"}, 1e-9, 1000, false},
    [COUNT_NVML_BUSY] = {"NVML: busy (%)", {"kernels", "memory"}, 10000, 100, false, true},
    [COUNT_NVML_MEMORY] =
        {"NVML: memory (MiB)", {"used", "by others"}, 1024 * 1024, 100, false, true},
    [COUNT_POWER] = {"power (W)", {"read"}, 1000, 100, false, true},
    [COUNT_ENERGY] = {"power by energy (W)", {"counted"}, 1e-6, 100, false},
    [COUNT_CLOCKS] = {"clocks (MHz)", {"SM", "memory"}, 1, 1000, false, true},
    [COUNT_TEMPERATURE] = {"temperature (C)", {"GPU", "memory"}, 1, 100, false, true},
    [COUNT_THROTTLED] =
        {"throttled (%)", {"power", "thermal", "power brake", "sync boost"}, 0.01, 100, false},
    [COUNT_PCIE] = {"PCIe (GB/s)", {"sent", "received"}, 1, 1, false},
    [COUNT_NVLINK] = {"NVLink (GB/s)", {"sent", "received"}, 1, 1, false},
    [COUNT_GPM] =
        {"GPM (%)", {"SMs", "occupancy", "tensor cores", "DRAM"}, 10000, 100, false, true},
};

struct counted {
    uint64_t busy_until_ns;
    uint32_t pid;                              /* of the track */
    struct series *series[COUNTERS][KEYS_MAX]; /* NULL: no values yet */
    struct series *read[COUNTERS][KEYS_MAX];   /* time with readings, for means of readings */
};

void chrome_counters_release(struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->counters.count; i++)
        free(w->counters.list[i]);
    free(w->counters.list);
    key_map_release(&w->counters.places);
    counters_release(&w->counters.series);
}

#define PROCESS_ITSELF UINT64_MAX /* in place of a device */

/* Returns NULL without memory. */
static struct counted *counted_of(struct trace_writer *w, struct process *p, uint64_t device)
{
    struct key key = {p->index, device, 0};
    uint64_t place = key_map_get(&w->counters.places, key);
    if (place)
        return w->counters.list[place - 1];
    uint32_t pid = device == PROCESS_ITSELF ? p->shown_pid : chrome_name_device(w, p, device);
    struct counted *c = w->error ? NULL : calloc(1, sizeof *c);
    if (!chrome_ok(w,
                   c ? ARRAY_PUSH(w->counters.list, w->counters.count, &c) : GPUPROF_NO_MEMORY)) {
        free(c);
        return NULL;
    }
    *c = (struct counted){.pid = pid};
    if (key_map_set(&w->counters.places, key, w->counters.count) == GPUPROF_NO_MEMORY)
        (void)chrome_ok(w, GPUPROF_NO_MEMORY);
    return c;
}

static __attribute__((noinline)) void series_make(struct trace_writer *w, struct counted *c,
                                                  enum counter which)
{
    const struct track_info *info = &infos[which];
    for (unsigned i = 0; i < KEYS_MAX && info->keys[i]; i++) {
        c->series[which][i] = counters_add(&w->counters.series, info->is_level);
        if (info->is_read)
            c->read[which][i] = counters_add(&w->counters.series, false);
    }
}

/* Returns NULL if there are too many series, or no memory. */
static inline struct series *series_of(struct trace_writer *w, struct counted *c,
                                       enum counter which, unsigned key)
{
    if (!c->series[which][0])
        series_make(w, c, which);
    return c->series[which][key];
}

/* Adds `rate` per ns over a span; or `amount` at once, for a level its new value. */
static inline void span(struct trace_writer *w, struct counted *c, enum counter which, unsigned key,
                        uint64_t begin_ns, uint64_t end_ns, double rate)
{
    counters_span(&w->counters.series, series_of(w, c, which, key), begin_ns, end_ns, rate);
}

static inline void instant(struct trace_writer *w, struct counted *c, enum counter which,
                           unsigned key, uint64_t at_ns, double amount)
{
    counters_instant(&w->counters.series, series_of(w, c, which, key), at_ns, amount);
}

static unsigned copy_key(uint64_t kind)
{
    const char *text = copy_kind_text(kind);
    bool from_host = text[0] == 'H', to_host = text[strlen(text) - 1] == 'H';
    return from_host == to_host ? 2 : to_host;
}

static void count_work(struct trace_writer *w, const struct slice *s, struct counted *c)
{
    const struct record *r = s->event.record;
    uint64_t begin_ns = chrome_time(w, s->event.begin_ns);
    uint64_t end_ns = chrome_time(w, s->event.end_ns);
    span(w, c, COUNT_BUSY, 0, begin_ns > c->busy_until_ns ? begin_ns : c->busy_until_ns, end_ns, 1);
    if (end_ns > c->busy_until_ns)
        c->busy_until_ns = end_ns;
    if (r->type == RECORD_KERNEL) {
        uint64_t since_ns = s->is_called ? chrome_time(w, s->call.begin_ns) : begin_ns;
        span(w, c, COUNT_FLYING, 0, since_ns < begin_ns ? since_ns : begin_ns, end_ns, 1);
    } else if (r->type == RECORD_COPY && end_ns > begin_ns) {
        span(w, c, COUNT_COPIES, copy_key(record_arg(r, COPY_KIND)), begin_ns, end_ns,
             (double)record_arg(r, COPY_BYTES) / (double)(end_ns - begin_ns));
    }
}

void chrome_count_work(struct trace_writer *w, const struct slice *s, struct gpu_row *row)
{
    if (!w->scope.options->no_counters && !row->counted)
        row->counted = counted_of(w, row->process, row->device);
    if (row->counted)
        count_work(w, s, row->counted);
}

void chrome_count_left_out(struct trace_writer *w, const struct slice *s, const struct left_out *l)
{
    const struct event *e = &s->event;
    w->totals.left_out[l->kind]++;
    w->totals.left_out_ns[l->kind] += l->ns;
    chrome_reach(w, e->process, chrome_time(w, l->begin_ns), chrome_time(w, l->begin_ns + l->ns));
    struct counted *c = !w->scope.options->no_counters && is_stream_work(e->record->type)
                            ? counted_of(w, e->process, record_arg(e->record, KERNEL_DEVICE))
                            : NULL;
    if (c)
        count_work(w, s, c);
}

void chrome_count_memory(struct trace_writer *w, const struct place_totals *now, uint64_t at_ns)
{
    uint64_t ns = chrome_time(w, at_ns);
    if (w->scope.options->no_counters || now->is_host || now->device == LEDGER_NO_DEVICE)
        return;
    struct counted *c = counted_of(w, w->walk->rec->processes[now->process->index], now->device);
    if (c)
        instant(w, c, COUNT_MEMORY, 0, ns, (double)now->allocated);
    if (!c || !now->has_tensors)
        return;
    instant(w, c, COUNT_TENSORS, 0, ns, (double)now->tensors);
    instant(w, c, COUNT_TENSORS, 1, ns, (double)totals_tensors_reserved(now));
}

/* Ignores captured launches, which run later, and nested ones, which are part of another. */
void chrome_count_launch(struct trace_writer *w, const struct event *e, uint64_t begin_ns)
{
    const struct record *r = e->record;
    if (w->scope.options->no_counters || r->result != 0 ||
        r->flags & (RECORD_CAPTURED | RECORD_NESTED))
        return;
    struct counted *c = counted_of(w, e->process, PROCESS_ITSELF);
    if (c)
        instant(w, c, COUNT_LAUNCHES, 0, begin_ns, r->weight > 1 ? (double)(int64_t)r->weight : 1);
}

void chrome_count_resident(struct trace_writer *w, const struct event *e)
{
    struct counted *c =
        !w->scope.options->no_counters ? counted_of(w, e->process, PROCESS_ITSELF) : NULL;
    struct series *series = c ? series_of(w, c, COUNT_RESIDENT, 0) : NULL;
    if (series)
        series->is_late = true;
    counters_instant(&w->counters.series, series, chrome_time(w, e->begin_ns),
                     (double)record_arg(e->record, RESIDENT_BYTES));
}

/* ---- what the driver said of a device ---- */

/* The mean of two readings stands for the time between them, unless there is a gap. */
#define SAMPLE_WEIGHT 10 /* events that a reading counts as in the bound on counters */

static const struct {
    uint8_t type;
    uint8_t argument;
    uint8_t which; /* enum counter */
    uint8_t key;
    bool counts; /* a counter that grows; its rate is shown */
} sampled[] = {
    {RECORD_DEVICE_USE, DEVICE_USE_BUSY, COUNT_NVML_BUSY, 0, false},
    {RECORD_DEVICE_USE, DEVICE_USE_MEMORY_BUSY, COUNT_NVML_BUSY, 1, false},
    {RECORD_DEVICE_USE, DEVICE_USE_USED, COUNT_NVML_MEMORY, 0, false},
    {RECORD_DEVICE_POWER, DEVICE_POWER_ENERGY, COUNT_ENERGY, 0, true},
    {RECORD_DEVICE_POWER, DEVICE_POWER_TEMPERATURE, COUNT_TEMPERATURE, 0, false},
    {RECORD_DEVICE_POWER, DEVICE_POWER_MEMORY_TEMPERATURE, COUNT_TEMPERATURE, 1, false},
    {RECORD_DEVICE_CLOCKS, DEVICE_CLOCKS_SM, COUNT_CLOCKS, 0, false},
    {RECORD_DEVICE_CLOCKS, DEVICE_CLOCKS_MEMORY, COUNT_CLOCKS, 1, false},
    {RECORD_DEVICE_LINKS, DEVICE_LINKS_PCIE_SENT, COUNT_PCIE, 0, true},
    {RECORD_DEVICE_LINKS, DEVICE_LINKS_PCIE_RECEIVED, COUNT_PCIE, 1, true},
    {RECORD_DEVICE_LINKS, DEVICE_LINKS_NVLINK_SENT, COUNT_NVLINK, 0, true},
    {RECORD_DEVICE_LINKS, DEVICE_LINKS_NVLINK_RECEIVED, COUNT_NVLINK, 1, true},
    {RECORD_DEVICE_GPM, DEVICE_GPM_SM, COUNT_GPM, 0, false},
    {RECORD_DEVICE_GPM, DEVICE_GPM_OCCUPANCY, COUNT_GPM, 1, false},
    {RECORD_DEVICE_GPM, DEVICE_GPM_TENSOR, COUNT_GPM, 2, false},
    {RECORD_DEVICE_GPM, DEVICE_GPM_DRAM, COUNT_GPM, 3, false},
};

static void count_read(struct trace_writer *w, struct counted *c, enum counter which, unsigned key,
                       uint64_t begin_ns, uint64_t end_ns, double rate)
{
    span(w, c, which, key, begin_ns, end_ns, rate);
    counters_span(&w->counters.series, c->read[which][key], begin_ns, end_ns, 1);
}

static double mean(uint64_t before, uint64_t now)
{
    return ((double)before + (double)now) / 2;
}

static void count_sample(struct trace_writer *w, const struct slice *s, struct counted *c,
                         const struct record *before, uint64_t begin_ns, uint64_t end_ns)
{
    const struct record *r = s->event.record;
    uint64_t a, b, since_ns, ns[THROTTLES];
    for (unsigned i = 0; i < sizeof sampled / sizeof sampled[0]; i++) {
        unsigned argument = sampled[i].argument;
        if (sampled[i].type == r->type &&
            (sampled[i].counts
                 ? device_growth(s->source, &s->event, argument, &a, &since_ns)
                 : device_value(before, argument, &a) && device_value(r, argument, &b)))
            count_read(w, c, (enum counter)sampled[i].which, sampled[i].key, begin_ns, end_ns,
                       sampled[i].counts ? (double)a / (double)(end_ns - begin_ns) : mean(a, b));
    }
    if (r->type == RECORD_DEVICE_POWER && device_power_mw(before, &a) && device_power_mw(r, &b))
        count_read(w, c, COUNT_POWER, 0, begin_ns, end_ns, mean(a, b));
    if (r->type == RECORD_DEVICE_USE && s->source->others) {
        /* The memory of other processes is read only once a second; until then it is unchanged. */
        a = b = s->source->others - 1;
        (void)device_others(r, &b);
        count_read(w, c, COUNT_NVML_MEMORY, 1, begin_ns, end_ns, mean(a, b));
    }
    if (r->type == RECORD_DEVICE_CLOCKS &&
        device_throttle(s->source, &s->event, ns, &since_ns) != THROTTLE_UNKNOWN)
        for (unsigned why = 0; why < THROTTLES; why++)
            span(w, c, COUNT_THROTTLED, why, begin_ns, end_ns,
                 (double)ns[why] / (double)(end_ns - begin_ns));
}

void chrome_count_device(struct trace_writer *w, const struct slice *s)
{
    const struct device_source *source = s->source;
    const struct record *r = s->event.record;
    const struct device_before *last = &source->before[r->type - RECORD_DEVICE_USE];
    uint64_t end_ns = chrome_time(w, device_sample_ns(&s->event));
    uint64_t begin_ns = chrome_time(w, last->at_ns);
    struct record before = {.arg_count = DEVICE_ARGS_MAX};
    /* With MIG, if both the part of a process and the whole device are read, these tracks show the
     * part. */
    bool is_also_of_parts = r->type == RECORD_DEVICE_USE || r->type == RECORD_DEVICE_GPM;
    if (w->scope.options->no_counters || source->device == UINT64_MAX ||
        (source->has_part && is_also_of_parts))
        return;
    struct counted *c =
        counted_of(w, w->walk->rec->processes[source->process->index], source->device);
    if (!c || !last->at_ns || begin_ns >= end_ns ||
        (source->period_ns && (end_ns - begin_ns) / DEVICE_GAP > source->period_ns))
        return;
    memcpy(before.args, last->args, sizeof last->args);
    w->totals.samples++;
    w->totals.sampled_ns = end_ns > w->totals.sampled_ns ? end_ns : w->totals.sampled_ns;
    count_sample(w, s, c, &before, begin_ns, end_ns);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes the values of a bucket of that length, or the last levels at the END, as members. */
#define END UINT32_MAX
static char *put_values(char *out, const struct counted *c, enum counter which, uint32_t bucket,
                        uint64_t ns)
{
    const struct track_info *info = &infos[which];
    for (unsigned i = 0; i < KEYS_MAX && info->keys[i]; i++) {
        const struct series *s = c->series[which][i];
        const struct series *read = c->read[which][i];
        double value = !s ? 0 : (bucket == END ? s->last : s->parts[bucket]) / info->unit;
        double over_ns = read && bucket != END ? read->parts[bucket] : (double)ns;
        value = info->is_level ? value : over_ns >= 1 ? value / over_ns : 0;
        value = fmin(fmax(value, 0), VALUE_MAX); /* rounding may yield slightly less than 0 */
        out = i ? PUT(out, ",\"") : PUT(out, "\"");
        out = chrome_put(out, info->keys[i], strlen(info->keys[i]));
        out =
            json_microseconds(PUT(out, "\":"), (uint64_t)llround(value * 1000 / info->thousandths) *
                                                   info->thousandths);
    }
    return out;
}

/* Writes values where they change, and at the end, since viewers draw up to the last one. */
static void put_track(struct trace_writer *w, const struct counted *c, enum counter which,
                      uint32_t buckets)
{
    char texts[2][VALUES_BYTES] = {"", ""};
    const struct counters *all = &w->counters.series;
    const struct series *first = c->series[which][0];
    for (uint32_t i = 0; i <= buckets; i++) {
        uint64_t begin_ns = all->from_ns + ((uint64_t)i << all->shift), last_ns = w->time.last_ns;
        uint64_t end_ns = begin_ns + (1ull << all->shift);
        char *text = texts[i % 2];
        if (i < buckets && first && isnan(first->parts[i]))
            continue;
        end_ns = end_ns > last_ns ? last_ns : end_ns;
        *put_values(text, c, which, i == buckets ? END : i,
                    i < buckets && end_ns > begin_ns ? end_ns - begin_ns : 0) = '\0';
        if (i < buckets ? strcmp(texts[0], texts[1]) == 0
                        : last_ns <= begin_ns - (1ull << all->shift))
            continue;
        begin_ns = i < buckets ? begin_ns : last_ns;
        output_print(w->out,
                     ",\n{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
                     "\"ts\":%llu.%03llu,\"args\":{%s}}",
                     infos[which].name, c->pid, c->pid, (unsigned long long)(begin_ns / 1000),
                     (unsigned long long)(begin_ns % 1000), text);
    }
}

void chrome_put_counters(struct trace_writer *w)
{
    const struct chrome_totals *t = &w->totals;
    if (!w->counters.series.count || w->time.last_ns == UINT64_MAX)
        return;
    w->time.last_ns = t->sampled_ns > w->time.last_ns ? t->sampled_ns : w->time.last_ns;
    uint32_t buckets = counters_finish(&w->counters.series, w->time.last_ns,
                                       t->calls + t->gpu_events + SAMPLE_WEIGHT * t->samples);
    for (uint32_t i = 0; i < w->counters.count; i++)
        for (unsigned which = 0; which < COUNTERS; which++)
            if (w->counters.list[i]->series[which][0])
                put_track(w, w->counters.list[i], which, buckets);
}
