/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/device_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "resolve/timeline.h"

void device_sources_release(struct device_sources *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        free(d->list[i]);
    free(d->list);
    key_map_release(&d->places);
    *d = (struct device_sources){0};
}

static struct key device_sources_key_of(const struct event *e)
{
    return (struct key){e->process->index, record_arg(e->record, DEVICE_SOURCE_NUMBER), 0};
}

static struct device_source *device_sources_add(struct device_sources *d, const struct event *e)
{
    struct device_source *source = memory_new(1, sizeof *source);
    source->process = e->process;
    source->place = d->count;
    ARRAY_PUSH(d->list, d->count, &source);
    key_map_set(&d->places, device_sources_key_of(e), d->count);
    return source;
}

/* Notes that a process reads a device and a MIG instance of it, in whichever order they came. */
static void note_part(struct device_sources *d, struct device_source *source)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct device_source *other = d->list[i];
        bool is_part = device_source_is_part(source);
        if (other->process == source->process && other->uuid_high == source->uuid_high &&
            other->uuid_low == source->uuid_low && device_source_is_part(other) != is_part)
            *(is_part ? &other->has_part : &source->has_part) = true;
    }
}

void device_sources_learn(struct device_sources *d, const struct event *e)
{
    const struct record *r = e->record;
    struct device_source *source = device_sources_find(d, e);
    bool is_new = !source;
    if (!source && d->count == DEVICE_SOURCES_MAX)
        return;
    source = source ? source : device_sources_add(d, e);
    if (!device_value(r, DEVICE_SOURCE_DEVICE, &source->device))
        source->device = UINT64_MAX;
    source->uuid_high = record_arg(r, DEVICE_SOURCE_UUID_HIGH);
    source->uuid_low = record_arg(r, DEVICE_SOURCE_UUID_LOW);
    source->mig_high = record_arg(r, DEVICE_SOURCE_MIG_HIGH);
    source->mig_low = record_arg(r, DEVICE_SOURCE_MIG_LOW);
    if (is_new)
        note_part(d, source);
    source->period_ns = record_arg(r, DEVICE_SOURCE_PERIOD_NS);
    snprintf(source->title, sizeof source->title, "%.*s", (int)r->byte_count,
             r->bytes ? (const char *)r->bytes : "");
}

_Static_assert((int)DEVICE_SOURCE_NUMBER == (int)DEVICE_USE_SOURCE &&
                   (int)DEVICE_SOURCE_NUMBER == (int)DEVICE_POWER_SOURCE &&
                   (int)DEVICE_SOURCE_NUMBER == (int)DEVICE_CLOCKS_SOURCE &&
                   (int)DEVICE_SOURCE_NUMBER == (int)DEVICE_LINKS_SOURCE &&
                   (int)DEVICE_SOURCE_NUMBER == (int)DEVICE_GPM_SOURCE &&
                   (int)DEVICE_SOURCE_NUMBER == (int)DEVICE_ABSENT_SOURCE &&
                   RECORD_DEVICE_GPM - RECORD_DEVICE_USE + 1 == DEVICE_GROUPS,
               "all samples begin alike, and their numbers follow one another");

uint64_t device_sources_place(const struct device_sources *d, const struct event *e)
{
    return key_map_get(&d->places, device_sources_key_of(e));
}

struct device_source *device_sources_find(const struct device_sources *d, const struct event *e)
{
    uint64_t place = device_sources_place(d, e);
    return place ? d->list[place - 1] : NULL;
}

static char *uuid_text(const char *head, uint64_t high, uint64_t low,
                       char text[static DEVICE_UUID_BYTES])
{
    text[0] = '\0';
    if (high || low)
        snprintf(text, DEVICE_UUID_BYTES, "%s-%08x-%04x-%04x-%04x-%012llx", head,
                 (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
                 (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
    return text;
}

char *device_uuid_text(uint64_t high, uint64_t low, char text[static DEVICE_UUID_BYTES])
{
    return uuid_text("GPU", high, low, text);
}

char *device_source_uuid_text(const struct device_source *source,
                              char text[static DEVICE_UUID_BYTES])
{
    return device_source_is_part(source)
               ? uuid_text("MIG", source->mig_high, source->mig_low, text)
               : device_uuid_text(source->uuid_high, source->uuid_low, text);
}

uint64_t device_sample_ns(const struct event *e)
{
    return e->begin_ns + (e->end_ns > e->begin_ns ? (e->end_ns - e->begin_ns) / 2 : 0);
}

void device_source_pass(struct device_source *source, const struct event *e)
{
    struct device_before *before = &source->before[e->record->type - RECORD_DEVICE_USE];
    uint64_t others;
    before->at_ns = device_sample_ns(e);
    if (e->record->type == RECORD_DEVICE_USE && device_others(e->record, &others))
        source->others = others + 1;
    for (unsigned i = 0; i < DEVICE_ARGS_MAX; i++)
        before->args[i] = record_arg(e->record, i);
}

bool device_growth(const struct device_source *source, const struct event *e, unsigned argument,
                   uint64_t *growth, uint64_t *since_ns)
{
    const struct device_before *before = &source->before[e->record->type - RECORD_DEVICE_USE];
    uint64_t now;
    if (!before->at_ns || !before->args[argument] || !device_value(e->record, argument, &now) ||
        now < before->args[argument] - 1)
        return false;
    *growth = now - (before->args[argument] - 1);
    *since_ns = before->at_ns;
    return *since_ns < device_sample_ns(e);
}

/* ---- throttling ------------------------------------------------------------------------------ */

/* Bits of nvmlClocksEventReasons. */
enum {
    REASON_POWER_CAP = 0x4,
    REASON_HARDWARE = 0x8, /* one of the two hardware reasons below, or one without a bit */
    REASON_SYNC_BOOST = 0x10,
    REASON_SW_THERMAL = 0x20,
    REASON_HW_THERMAL = 0x40,
    REASON_POWER_BRAKE = 0x80,
};

const char *const throttle_words[THROTTLES] = {
    [THROTTLE_POWER] = "power",
    [THROTTLE_THERMAL] = "thermal",
    [THROTTLE_BRAKE] = "power brake",
    [THROTTLE_SYNC] = "sync boost",
};

static bool has_reason(uint64_t reasons, unsigned why)
{
    static const uint64_t bits[THROTTLES] = {
        [THROTTLE_POWER] = REASON_POWER_CAP,
        [THROTTLE_THERMAL] = REASON_SW_THERMAL | REASON_HW_THERMAL,
        [THROTTLE_BRAKE] = REASON_POWER_BRAKE | REASON_HARDWARE,
        [THROTTLE_SYNC] = REASON_SYNC_BOOST,
    };
    bool is_of_heat = why == THROTTLE_BRAKE && reasons & REASON_HW_THERMAL;
    return reasons & (is_of_heat ? REASON_POWER_BRAKE : bits[why]);
}

enum throttle_known device_throttle(const struct device_source *source, const struct event *e,
                                    uint64_t ns[static THROTTLES], uint64_t *since_ns)
{
    static const uint8_t counters[THROTTLES] = {
        [THROTTLE_POWER] = DEVICE_CLOCKS_POWER_NS,
        [THROTTLE_THERMAL] = DEVICE_CLOCKS_THERMAL_NS,
        [THROTTLE_BRAKE] = DEVICE_CLOCKS_BRAKE_NS,
        [THROTTLE_SYNC] = DEVICE_CLOCKS_SYNC_NS,
    };
    const struct device_before *before = &source->before[RECORD_DEVICE_CLOCKS - RECORD_DEVICE_USE];
    uint64_t reasons, growth, at_ns = device_sample_ns(e);
    bool is_counted = false;
    for (unsigned why = 0; why < THROTTLES; why++) {
        bool is_known = device_growth(source, e, counters[why], &growth, since_ns);
        ns[why] = !is_known ? 0 : growth < at_ns - *since_ns ? growth : at_ns - *since_ns;
        is_counted |= is_known;
    }
    if (is_counted)
        return THROTTLE_COUNTED;
    if (!device_value(e->record, DEVICE_CLOCKS_REASONS, &reasons) || !before->at_ns ||
        before->at_ns >= at_ns || !before->args[DEVICE_CLOCKS_REASONS])
        return THROTTLE_UNKNOWN;
    *since_ns = before->at_ns;
    for (unsigned why = 0; why < THROTTLES; why++) {
        uint64_t halves = (uint64_t)has_reason(reasons, why) +
                          has_reason(before->args[DEVICE_CLOCKS_REASONS] - 1, why);
        ns[why] = (at_ns - before->at_ns) * halves / 2;
    }
    return THROTTLE_SAMPLED;
}
