/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device_throttle.h"

#include "model/timeline.h"

/* Bits of nvmlClocksEventReasons. */
enum {
    REASON_POWER_CAP = 0x4,
    REASON_HARDWARE = 0x8, /* one of the two of the hardware below, or another one of its own */
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
