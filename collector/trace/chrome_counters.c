/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter tracks of a Chrome trace, written at its end. Of a device: how busy it was, unfinished
 * launches, copy speed, memory, and the driver's readings (run --device). Of a process: its
 * launches and its resident memory.
 * Time is divided into buckets of 2^n ns; the width doubles when an event is later than the last
 * bucket. So nothing must be known in advance, and output is bounded. A selection's buckets begin
 * with it; the first one includes earlier values (for a level, the last). Memory: 2 KiB for each
 * series, of which there are at most SERIES_MAX.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/device_sources.h"
#include "trace/chrome.h"

#define VALUES_BYTES     192  /* for the values of a counter */
#define VALUE_MAX        1e15 /* larger values come from damaged files */
#define KEYS_MAX         4
#define BUCKETS          512
#define BUCKETS_MIN      16
#define TIME_MAX         (1ull << 62) /* ns; later events are not counted */
#define SERIES_MAX       8192
#define EVENTS_A_COUNTER 10 /* a counter value takes a fifth of an event's text: about 2 % */

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
    bool is_level;              /* a state that lasts until the next value; else sums */
    bool is_read;               /* a mean of readings, over the time that has readings */
    bool is_late;               /* level: unknown before its first value */
} infos[COUNTERS] = {
    [COUNT_BUSY] = {"GPU busy", {"%"}, 0.01, 100, false},
    [COUNT_FLYING] = {"kernels launched, not finished", {"mean"}, 1, 10, false},
    [COUNT_COPIES] = {"copies (GB/s)", {"HtoD", "DtoH", "other"}, 1, 1, false},
    [COUNT_MEMORY] = {"GPU memory", {"MiB"}, 1024 * 1024, 100, true},
    [COUNT_TENSORS] = {"PyTorch's memory (MiB)", {"allocated", "reserved"}, 1024 * 1024, 100, true},
    [COUNT_RESIDENT] = {"resident memory", {"MiB"}, 1024 * 1024, 100, true, false, true},
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

struct series {
    bool is_level;
    double last;          /* level: current value */
    uint32_t next;        /* level: the first bucket after its last value */
    float parts[BUCKETS]; /* amount per bucket; level: highest value, NAN if unknown */
};

/* The tracks of a place. */
struct counted {
    uint64_t busy_until_ns;
    struct series *series[COUNTERS][KEYS_MAX]; /* NULL: no values yet */
    struct series *read[COUNTERS][KEYS_MAX];   /* time with readings, for means of readings */
};

void chrome_counters_release(struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->counters.count; i++)
        free(w->counters.series[i]);
    free(w->counters.series);
}

/* ---- series ---------------------------------------------------------------------------------- */

/* Returns NULL if there are too many. */
static struct series *add_series(struct chrome_counters *c, bool is_level)
{
    if (c->count == SERIES_MAX)
        return NULL;
    struct series *s = memory_new(1, sizeof *s);
    ARRAY_PUSH(c->series, c->count, &s);
    s->is_level = is_level;
    for (uint32_t i = 0; is_level && i < BUCKETS; i++)
        s->parts[i] = NAN;
    return s;
}

/* Returns NULL if there are too many series. */
static struct series *series_of(struct trace_writer *w, struct counted *c, enum counter which,
                                unsigned key)
{
    const struct track_info *info = &infos[which];
    bool is_new = !c->series[which][0];
    for (unsigned i = 0; is_new && i < KEYS_MAX && info->keys[i]; i++) {
        c->series[which][i] = add_series(&w->counters, info->is_level);
        c->read[which][i] = info->is_read ? add_series(&w->counters, false) : NULL;
    }
    return c->series[which][key];
}

static void widen(struct chrome_counters *c)
{
    for (uint32_t k = 0; k < c->count; k++) {
        struct series *s = c->series[k];
        float *parts = s->parts;
        for (uint32_t i = 0; i < BUCKETS / 2; i++)
            parts[i] = s->is_level ? fmaxf(parts[2 * i], parts[2 * i + 1])
                                   : parts[2 * i] + parts[2 * i + 1];
        for (uint32_t i = BUCKETS / 2; i < BUCKETS; i++)
            parts[i] = s->is_level ? NAN : 0;
        s->next = (s->next + 1) / 2;
    }
    c->shift++;
}

/* Returns the bucket that contains the time; widens the buckets if necessary. */
static inline uint32_t bucket_of(struct chrome_counters *c, uint64_t ns)
{
    while (ns >> c->shift >= BUCKETS)
        widen(c);
    return (uint32_t)(ns >> c->shift);
}

/* Returns the time since the first bucket's begin. */
static uint64_t since(const struct chrome_counters *c, uint64_t ns)
{
    return ns > c->from_ns ? ns - c->from_ns : 0;
}

/* Adds `rate` per ns over a span; `counted` may be NULL. */
static void span(struct trace_writer *w, struct counted *counted, enum counter which, unsigned key,
                 uint64_t begin_ns, uint64_t end_ns, double rate)
{
    struct chrome_counters *c = &w->counters;
    struct series *s = counted ? series_of(w, counted, which, key) : NULL;
    struct series *read = s ? counted->read[which][key] : NULL;
    begin_ns = since(c, begin_ns);
    end_ns = since(c, end_ns);
    if (!s || begin_ns >= end_ns || end_ns > TIME_MAX)
        return;
    uint32_t last = bucket_of(c, end_ns);
    while (begin_ns < end_ns) {
        uint32_t at = bucket_of(c, begin_ns);
        uint64_t until_ns = at < last ? (at + 1ull) << c->shift : end_ns;
        double ns = (double)(int64_t)(until_ns - begin_ns);
        s->parts[at] += (float)(rate * ns);
        if (read)
            read->parts[at] += (float)ns;
        begin_ns = until_ns;
    }
}

/* The level stays until bucket `end`. */
static void hold(struct series *s, uint32_t end)
{
    for (; s->next < end; s->next++)
        s->parts[s->next] = (float)s->last;
}

/* Adds `amount` at once; for a level, its value from now on. `counted` may be NULL. */
static void instant(struct trace_writer *w, struct counted *counted, enum counter which,
                    unsigned key, uint64_t at_ns, double amount)
{
    struct chrome_counters *c = &w->counters;
    struct series *s = counted ? series_of(w, counted, which, key) : NULL;
    bool is_before = at_ns < c->from_ns;
    at_ns = since(c, at_ns);
    if (!s || at_ns > TIME_MAX)
        return;
    uint32_t at = bucket_of(c, at_ns);
    if (!s->is_level) {
        s->parts[at] += (float)amount;
        return;
    }
    if (infos[which].is_late && !s->next)
        s->next = at;
    hold(s, at + 1); /* where a level changes, the old value counts too */
    s->parts[at] = is_before ? (float)amount : fmaxf(s->parts[at], (float)amount);
    s->last = amount;
}

/* Returns NULL if counters are not wanted. */
static struct counted *counted_of(struct trace_writer *w, struct process *p, uint64_t device)
{
    if (w->scope.options->no_counters)
        return NULL;
    struct trace_place *place = chrome_place_of(w, p, device);
    if (!place->counted)
        place->counted = memory_new(1, sizeof *place->counted);
    return place->counted;
}

static unsigned copy_key(uint64_t kind)
{
    const char *text = copy_kind_text(kind);
    bool from_host = text[0] == 'H', to_host = text[strlen(text) - 1] == 'H';
    return from_host == to_host ? 2 : to_host;
}

void chrome_count_work(struct trace_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    struct counted *c = counted_of(w, s->event.process, record_arg(r, KERNEL_DEVICE));
    uint64_t begin_ns = chrome_time(w, s->event.begin_ns);
    uint64_t end_ns = chrome_time(w, s->event.end_ns);
    if (!c)
        return;
    span(w, c, COUNT_BUSY, 0, max_of(begin_ns, c->busy_until_ns), end_ns, 1);
    c->busy_until_ns = max_of(end_ns, c->busy_until_ns);
    if (r->type == RECORD_KERNEL) {
        uint64_t since_ns = s->is_called ? chrome_time(w, s->call.begin_ns) : begin_ns;
        span(w, c, COUNT_FLYING, 0, min_of(since_ns, begin_ns), end_ns, 1);
    } else if (r->type == RECORD_COPY && end_ns > begin_ns) {
        span(w, c, COUNT_COPIES, copy_key(record_arg(r, COPY_KIND)), begin_ns, end_ns,
             (double)record_arg(r, COPY_BYTES) / (double)(end_ns - begin_ns));
    }
}

void chrome_count_memory(struct trace_writer *w, const struct place_totals *now, uint64_t at_ns)
{
    uint64_t ns = chrome_time(w, at_ns);
    if (now->is_host || now->device == LEDGER_NO_DEVICE)
        return;
    struct counted *c = counted_of(w, w->walk->rec->processes[now->process->index], now->device);
    instant(w, c, COUNT_MEMORY, 0, ns, (double)now->allocated);
    if (!now->has_tensors)
        return;
    instant(w, c, COUNT_TENSORS, 0, ns, (double)now->tensors);
    instant(w, c, COUNT_TENSORS, 1, ns, (double)totals_tensors_reserved(now));
}

/* Ignores captured launches, which run later, and nested ones, which are part of another. */
void chrome_count_launch(struct trace_writer *w, const struct event *e, uint64_t begin_ns)
{
    const struct record *r = e->record;
    if (r->result != 0 || r->flags & (RECORD_CAPTURED | RECORD_NESTED))
        return;
    struct counted *c = counted_of(w, e->process, PROCESS_ITSELF);
    instant(w, c, COUNT_LAUNCHES, 0, begin_ns, r->weight > 1 ? (double)(int64_t)r->weight : 1);
}

void chrome_count_resident(struct trace_writer *w, const struct event *e)
{
    struct counted *c = counted_of(w, e->process, PROCESS_ITSELF);
    instant(w, c, COUNT_RESIDENT, 0, chrome_time(w, e->begin_ns),
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
            span(w, c, (enum counter)sampled[i].which, sampled[i].key, begin_ns, end_ns,
                 sampled[i].counts ? (double)a / (double)(end_ns - begin_ns) : mean(a, b));
    }
    if (r->type == RECORD_DEVICE_POWER && device_power_mw(before, &a) && device_power_mw(r, &b))
        span(w, c, COUNT_POWER, 0, begin_ns, end_ns, mean(a, b));
    if (r->type == RECORD_DEVICE_USE && s->source->others) {
        /* The memory of other processes is read only once a second; until then it is unchanged. */
        a = b = s->source->others - 1;
        (void)device_others(r, &b);
        span(w, c, COUNT_NVML_MEMORY, 1, begin_ns, end_ns, mean(a, b));
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
    if (source->device == UINT64_MAX || (source->has_part && is_also_of_parts))
        return;
    struct counted *c =
        counted_of(w, w->walk->rec->processes[source->process->index], source->device);
    if (!c || !last->at_ns || begin_ns >= end_ns ||
        (source->period_ns && (end_ns - begin_ns) / DEVICE_GAP > source->period_ns))
        return;
    memcpy(before.args, last->args, sizeof last->args);
    w->totals.samples++;
    w->time.last_ns = max_of(end_ns, w->time.last_ns);
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
        value = round(value * 1000 / info->thousandths) * info->thousandths / 1000;
        out += sprintf(out, "%s\"%s\":%.3f", i ? "," : "", info->keys[i], value);
    }
    return out;
}

/* Writes values where they change, and at the end, since viewers draw up to the last one. */
static void put_track(struct trace_writer *w, const struct trace_place *place, enum counter which,
                      uint32_t buckets)
{
    char texts[2][VALUES_BYTES] = {"", ""};
    const struct counted *c = place->counted;
    const struct chrome_counters *all = &w->counters;
    const struct series *first = c->series[which][0];
    for (uint32_t i = 0; i <= buckets; i++) {
        uint64_t begin_ns = all->from_ns + ((uint64_t)i << all->shift), last_ns = w->time.last_ns;
        uint64_t end_ns = begin_ns + (1ull << all->shift);
        char *text = texts[i % 2];
        if (i < buckets && first && isnan(first->parts[i]))
            continue;
        end_ns = min_of(end_ns, last_ns);
        *put_values(text, c, which, i == buckets ? END : i,
                    i < buckets && end_ns > begin_ns ? end_ns - begin_ns : 0) = '\0';
        if (i < buckets ? strcmp(texts[0], texts[1]) == 0
                        : last_ns <= begin_ns - (1ull << all->shift))
            continue;
        begin_ns = i < buckets ? begin_ns : last_ns;
        output_print(w->out,
                     ",\n{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
                     "\"ts\":%llu.%03llu,\"args\":{%s}}",
                     infos[which].name, place->pid, place->pid,
                     (unsigned long long)(begin_ns / 1000), (unsigned long long)(begin_ns % 1000),
                     text);
    }
}

/* Chooses fewer, wider buckets for a trace of few events. */
void chrome_put_counters(struct trace_writer *w)
{
    const struct chrome_totals *t = &w->totals;
    struct chrome_counters *c = &w->counters;
    if (!c->count || w->time.last_ns == UINT64_MAX)
        return;
    uint64_t events = t->calls + t->gpu_events + SAMPLE_WEIGHT * t->samples;
    uint32_t buckets = bucket_of(c, min_of(since(c, w->time.last_ns), TIME_MAX)) + 1;
    while (buckets > BUCKETS_MIN && (uint64_t)buckets * c->count > events / EVENTS_A_COUNTER) {
        widen(c);
        buckets = (buckets + 1) / 2;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (c->series[i]->is_level)
            hold(c->series[i], buckets);
    for (uint32_t i = 0; i < w->rows.place_count; i++)
        for (unsigned which = 0; which < COUNTERS && w->rows.places[i]->counted; which++)
            if (w->rows.places[i]->counted->series[which][0])
                put_track(w, w->rows.places[i], which, buckets);
}
