/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/device_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"

#define CURVES       (THROTTLES + 1) /* curves of a row */
#define POWER_MAX_MW 20000000u       /* no device uses more: its energy counter is wrong */

void device_report_release(struct device_report *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        device_curve_release(&r->rows[i].energy);
        for (unsigned why = 0; why < THROTTLES; why++)
            device_curve_release(&r->rows[i].throttle.curve[why]);
    }
    free(r->rows);
}

/* ---- readings -------------------------------------------------------------------------------- */

static bool is_same_device(const struct device_row *row, const struct device_row *other)
{
    return (row->uuid.high || row->uuid.low) && !row->is_part && !other->is_part &&
           row->uuid.high == other->uuid.high && row->uuid.low == other->uuid.low;
}

/* The row of a source; makes rows up to it. */
static struct device_row *device_report_row_of(struct device_report *r,
                                               const struct device_source *source)
{
    while (r->count <= source->place) {
        const struct device_source *its = r->walk->sources.list[r->count];
        struct device_row row = {.process = its->process,
                                 .device = its->device,
                                 .uuid = {its->uuid_high, its->uuid_low},
                                 .is_part = device_source_is_part(its),
                                 .energy.rate_max = POWER_MAX_MW};
        for (unsigned why = 0; why < THROTTLES; why++)
            row.throttle.curve[why].may_rest = true;
        device_source_uuid_text(its, row.uuid.text);
        ARRAY_PUSH(r->rows, r->count, &row);
    }
    return &r->rows[source->place];
}

/* Adds a value. `before` was read `ns` earlier; 0: the reading before is not known. */
static void add_mean(struct device_row *row, enum device_mean mean, uint64_t value, uint64_t before,
                     uint64_t ns)
{
    row->means[mean].sum += (double)value;
    row->means[mean].count++;
    row->means[mean].max = max_of(row->means[mean].max, value);
    row->means[mean].area += ((double)before + (double)value) / 2 * (double)ns;
    row->means[mean].area_ns += ns;
}

double device_row_mean(const struct device_row *row, enum device_mean which)
{
    uint64_t count = row->means[which].count, ns = row->means[which].area_ns;
    return ns      ? row->means[which].area / (double)ns
           : count ? row->means[which].sum / (double)count
                   : 0;
}

/* Nanoseconds since the reading before; 0: none, or too long ago to interpolate. */
static uint64_t read_since_ns(const struct slice *s)
{
    uint64_t at_ns = device_sample_ns(&s->event), period_ns = s->source->period_ns;
    uint64_t before_ns = s->source->before[s->event.record->type - RECORD_DEVICE_USE].at_ns;
    uint64_t ns = before_ns && before_ns < at_ns ? at_ns - before_ns : 0;
    return period_ns && ns / DEVICE_GAP > period_ns ? 0 : ns;
}

static void add_means(struct device_row *row, const struct slice *s)
{
    static const struct {
        uint8_t type;
        uint8_t argument;
        uint8_t mean;
    } values[] = {
        {RECORD_DEVICE_USE, DEVICE_USE_BUSY, MEAN_BUSY},
        {RECORD_DEVICE_USE, DEVICE_USE_MEMORY_BUSY, MEAN_MEMORY_BUSY},
        {RECORD_DEVICE_USE, DEVICE_USE_USED, MEAN_USED},
        {RECORD_DEVICE_POWER, DEVICE_POWER_TEMPERATURE, MEAN_TEMPERATURE},
        {RECORD_DEVICE_CLOCKS, DEVICE_CLOCKS_SM, MEAN_SM_CLOCK},
        {RECORD_DEVICE_CLOCKS, DEVICE_CLOCKS_MEMORY, MEAN_MEMORY_CLOCK},
        {RECORD_DEVICE_GPM, DEVICE_GPM_SM, MEAN_GPM_SM},
        {RECORD_DEVICE_GPM, DEVICE_GPM_OCCUPANCY, MEAN_GPM_OCCUPANCY},
        {RECORD_DEVICE_GPM, DEVICE_GPM_TENSOR, MEAN_GPM_TENSOR},
        {RECORD_DEVICE_GPM, DEVICE_GPM_DRAM, MEAN_GPM_DRAM},
    };
    const struct record *r = s->event.record;
    const uint64_t *before = s->source->before[r->type - RECORD_DEVICE_USE].args;
    uint64_t value, ns = read_since_ns(s);
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint64_t known = before[values[i].argument];
        if (values[i].type == r->type && device_value(r, values[i].argument, &value))
            add_mean(row, (enum device_mean)values[i].mean, value, known - (known != 0),
                     known ? ns : 0);
    }
}

static void take_use(struct device_row *row, const struct record *r)
{
    uint64_t others, value;
    if (device_value(r, DEVICE_USE_TOTAL, &value))
        row->most.bytes = value;
    if (device_value(r, DEVICE_USE_PROCESSES, &value))
        row->most.processes = max_of(row->most.processes, value);
    if (device_others(r, &others))
        add_mean(row, MEAN_OTHERS, others, 0, 0);
}

static void take_power(struct device_row *row, const struct slice *s)
{
    const struct event *e = &s->event;
    uint64_t mw, limit;
    bool is_known = device_power_mw(e->record, &mw);
    if (device_value(e->record, DEVICE_POWER_LIMIT, &limit))
        row->most.power = limit;
    if (is_known)
        add_mean(row, MEAN_POWER, mw, row->power_before - (row->power_before != 0),
                 row->power_before ? read_since_ns(s) : 0);
    row->power_before = is_known ? mw + 1 : 0;
}

static void take_clocks(struct device_report *r, struct device_row *row, const struct slice *s)
{
    uint64_t ns[THROTTLES], since_ns, value, at_ns = device_sample_ns(&s->event);
    enum throttle_known known = device_throttle(s->source, &s->event, ns, &since_ns);
    if (device_value(s->event.record, DEVICE_CLOCKS_SM_MAX, &value))
        row->most.sm_clock = value;
    row->throttle.is_sampled |= known == THROTTLE_SAMPLED;
    for (unsigned why = 0; known != THROTTLE_UNKNOWN && why < THROTTLES; why++) {
        struct device_curve *c = &row->throttle.curve[why];
        if (!c->count)
            device_curve_add(c, since_ns, 0, r->count * CURVES);
        row->throttle.ns[why] += ns[why];
        device_curve_add(c, at_ns, row->throttle.ns[why], r->count * CURVES);
    }
}

_Static_assert(DEVICE_LINKS_PCIE_SENT + LINK_NVLINK_RECEIVED == DEVICE_LINKS_NVLINK_RECEIVED &&
                   DEVICE_GPM_PCIE_SENT + LINK_NVLINK_RECEIVED == DEVICE_GPM_NVLINK_RECEIVED,
               "links stand in one order");

static void take_links(struct device_row *row, const struct slice *s)
{
    uint64_t growth, since_ns;
    for (unsigned link = 0; link < LINKS; link++) {
        if (!device_growth(s->source, &s->event, DEVICE_LINKS_PCIE_SENT + link, &growth, &since_ns))
            continue;
        if (!row->links[link].is_counted)
            row->links[link].bytes = 0;
        row->links[link].is_known = row->links[link].is_counted = true;
        row->links[link].bytes += (double)growth;
    }
}

/* Used only without counters, which are more exact. */
static void take_rates(struct device_row *row, const struct slice *s)
{
    uint64_t at_ns = device_sample_ns(&s->event), rate;
    uint64_t before_ns = s->source->before[RECORD_DEVICE_GPM - RECORD_DEVICE_USE].at_ns;
    for (unsigned link = 0; link < LINKS; link++) {
        if (row->links[link].is_counted || !before_ns || before_ns >= at_ns ||
            !device_value(s->event.record, DEVICE_GPM_PCIE_SENT + link, &rate))
            continue;
        row->links[link].is_known = true;
        row->links[link].bytes += (double)rate * (double)(at_ns - before_ns) / 1e9;
    }
}

static void take_shown(struct device_row *row, const struct slice *s)
{
    const struct record *r = s->event.record;
    uint64_t at_ns = device_sample_ns(&s->event);
    uint64_t *samples = &row->group_samples[r->type - RECORD_DEVICE_USE];
    ++*samples;
    row->samples = max_of(row->samples, *samples);
    row->first_ns = row->first_ns ? row->first_ns : at_ns;
    row->last_ns = at_ns;
    row->span_ns = at_ns - row->first_ns;
    add_means(row, s);
    switch (r->type) {
    case RECORD_DEVICE_USE: take_use(row, r); break;
    case RECORD_DEVICE_POWER: take_power(row, s); break;
    case RECORD_DEVICE_LINKS: take_links(row, s); break;
    case RECORD_DEVICE_GPM: take_rates(row, s); break;
    default: break;
    }
}

static void take_missing(struct device_report *r, const struct event *e)
{
    const struct record *record = e->record;
    struct device_missing *a = &r->missing_reasons[r->missing_reason_count];
    uint64_t place = device_sources_place(&r->walk->sources, e);
    if (r->missing_reason_count == DEVICE_MISSING_REASONS_MAX)
        return;
    if (place)
        device_report_row_of(r, r->walk->sources.list[place - 1]);
    *a = (struct device_missing){.process = e->process,
                                 .row = (uint32_t)place,
                                 .group = record_arg(record, DEVICE_ABSENT_GROUP),
                                 .counters = record_arg(record, DEVICE_ABSENT_COUNTERS)};
    snprintf(a->text, sizeof a->text, "%.*s", (int)record->byte_count,
             record->bytes ? (const char *)record->bytes : "");
    struct device_missing *first = r->missing_reasons;
    while (first->group != a->group || first->counters != a->counters || !first->row != !a->row ||
           strcmp(first->text, a->text) != 0)
        first++;
    first->alike++;
    r->missing_reason_count++;
}

/* Counters are added outside the selection, too: a step at its border needs readings around it. */
static int device_report_take(void *context, const struct slice *s)
{
    struct device_report *r = context;
    const struct record *record = s->event.record;
    uint64_t mj;
    if (r->is_refused && (s->source || record->type == RECORD_DEVICE_ABSENT))
        return GPUPROF_LIMIT;
    if (record->type == RECORD_DEVICE_ABSENT)
        take_missing(r, &s->event);
    if (record->type == RECORD_DEVICE_ABSENT || !s->source)
        return 0;
    struct device_row *row = device_report_row_of(r, s->source);
    if (!s->is_filtered)
        take_shown(row, s);
    if (record->type == RECORD_DEVICE_CLOCKS)
        take_clocks(r, row, s);
    else if (record->type == RECORD_DEVICE_POWER && device_value(record, DEVICE_POWER_ENERGY, &mj))
        device_curve_add(&row->energy, device_sample_ns(&s->event), mj, r->count * CURVES);
    return 0;
}

struct consumer device_report_consumer(struct device_report *r)
{
    return (struct consumer){.context = r,
                             .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK,
                             .sees_filtered = true,
                             .take = device_report_take};
}

static void device_report_analysis_begin(struct report *r)
{
    *r->devices = (struct device_report){
        .walk = &r->walk, .idle = r->idle, .is_refused = r->request.refused & PART_COUNTERS};
    report_hear(r, device_report_consumer(r->devices));
}

ANALYSIS_FREES(device_report_analysis_release, device_report_release(r->devices))

const struct analysis devices_analysis = {ANALYSIS_STATE(devices), .uses = USE_PARTS,
                                          .begin = device_report_analysis_begin,
                                          .release = device_report_analysis_release};

/* ---- values in an interval ------------------------------------------------------------------- */

/* Does the row's energy count for the process? A part (MIG) has none; its device has a row. */
static bool burns(const struct device_row *row, const struct process *p)
{
    return row->process == p && !row->is_double && row->samples && !row->is_part;
}

bool device_report_read_for(const struct device_report *r, const struct process *p,
                            uint64_t *begin_ns, uint64_t *end_ns)
{
    *begin_ns = 0;
    *end_ns = UINT64_MAX;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct device_curve *c = &r->rows[i].energy;
        uint64_t lag_ns = device_curve_lag_ns(c), last_ns;
        if (!burns(&r->rows[i], p))
            continue;
        if (!c->count)
            return false;
        last_ns = c->points[c->count - 1].at_ns;
        *begin_ns = max_of(*begin_ns, c->first_ns);
        *end_ns = min_of(*end_ns, last_ns - min_of(last_ns, lag_ns));
    }
    return *begin_ns && *begin_ns < *end_ns;
}

bool device_report_energy(const struct device_report *r, const struct process *p, uint64_t begin_ns,
                          uint64_t end_ns, struct curve_growth *energy)
{
    bool any = false;
    *energy = (struct curve_growth){0};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct device_row *row = &r->rows[i];
        struct curve_growth growth;
        if (!burns(row, p))
            continue;
        any = true;
        if (!device_curve_between(&row->energy, begin_ns, end_ns, &growth)) {
            *energy = growth;
            return false;
        }
        energy->value += growth.value;
        energy->error += growth.error;
    }
    *energy = any ? curve_reported(*energy) : (struct curve_growth){.known = CURVE_UNREAD};
    return energy->known == CURVE_KNOWN;
}

void device_report_count_once(struct device_report *r, const bool *is_wanted)
{
    for (uint32_t i = 1; i < r->count; i++)
        for (uint32_t k = 0; k < i && !r->rows[i].is_double; k++) {
            struct device_row *row = &r->rows[i], *before = &r->rows[k];
            bool is_better = is_wanted[row->process->index] && !is_wanted[before->process->index];
            if (!before->is_double && is_same_device(row, before))
                *(is_better ? &before->is_double : &row->is_double) = true;
        }
}

bool device_throttled_between(const struct device_row *row, enum throttle why, uint64_t begin_ns,
                              uint64_t end_ns, uint64_t *ns)
{
    struct curve_growth growth;
    if (!device_curve_between(&row->throttle.curve[why], begin_ns, end_ns, &growth))
        return false;
    *ns = min_of(curve_whole(growth.value), end_ns - begin_ns);
    return true;
}

bool device_report_throttle(const struct device_report *r, const struct process *p,
                            uint64_t begin_ns, uint64_t end_ns, enum throttle *why, uint64_t *ns)
{
    *ns = 0;
    for (uint32_t i = 0; r && i < r->count; i++)
        for (unsigned reason = 0; reason < THROTTLES; reason++) {
            uint64_t one_ns;
            if (r->rows[i].process != p ||
                !device_throttled_between(&r->rows[i], (enum throttle)reason, begin_ns, end_ns,
                                          &one_ns) ||
                one_ns <= *ns)
                continue;
            *ns = one_ns;
            *why = (enum throttle)reason;
        }
    return *ns > 0;
}

/* ---- values of a row ------------------------------------------------------------------------- */

char *device_row_title(const struct device_row *row)
{
    char who[RANK_TITLE_BYTES], name[DEVICE_UUID_BYTES] = "GPU ?";
    if (row->device != UINT64_MAX)
        snprintf(name, sizeof name, "GPU %llu", (unsigned long long)row->device);
    else if (row->uuid.high || row->uuid.low)
        device_uuid_text(row->uuid.high, row->uuid.low, name);
    return text_printf("%s, %s%s", process_who(row->process, who), name,
                       row->is_part ? " (MIG)" : "");
}

/* The growth of a counter; in a selection between its first and last reading. */
static struct curve_growth grown(const struct device_row *row, const struct device_curve *c,
                                 uint64_t *ns)
{
    struct curve_growth growth, whole = device_curve_whole(c, ns);
    if (!c->count || c->points[c->count - 1].at_ns <= row->last_ns)
        if (c->first_ns >= row->first_ns)
            return whole;
    if (!device_curve_between(c, row->first_ns, row->last_ns, &growth)) {
        *ns = 0;
        return growth;
    }
    *ns = row->span_ns;
    return growth;
}

uint64_t device_row_throttled_ns(const struct device_row *row, enum throttle why)
{
    uint64_t ns, value = curve_whole(grown(row, &row->throttle.curve[why], &ns).value);
    return min_of(value, ns);
}

struct curve_growth device_row_energy(const struct device_row *row, uint64_t *ns)
{
    return grown(row, &row->energy, ns);
}

const struct device_row *device_report_worst(const struct device_report *r, enum throttle *why,
                                             double *share)
{
    const struct device_row *worst = NULL;
    *share = 0;
    for (uint32_t i = 0; r && i < r->count; i++)
        for (unsigned reason = 0; reason < THROTTLES; reason++) {
            const struct device_row *row = &r->rows[i];
            uint64_t ns = device_row_throttled_ns(row, (enum throttle)reason);
            double part = row->span_ns ? (double)ns / (double)row->span_ns : 0;
            if (part <= *share)
                continue;
            *share = part;
            *why = (enum throttle)reason;
            worst = row;
        }
    return worst;
}
