/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the source, and so the device, of a sample of counters (run --device), as known at that
 * moment of the walk. It has the previous record of the same group, from which growth is computed.
 * Memory: 1 KB for each source, up to DEVICE_SOURCES_MAX; further ones have no device.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_SOURCES_H
#define GPUPROF_COLLECTOR_DEVICE_SOURCES_H

#include "base/key_map.h"
#include "read/recording.h"
#include "record/gpu_record.h"

#define DEVICE_SOURCES_MAX 1024
#define DEVICE_ARGS_MAX    16
#define DEVICE_TITLE_BYTES 64
#define DEVICE_GAP         16 /* periods without a reading; after more, time is unknown */
#define DEVICE_UUID_BYTES  48

/* Groups of counters; each reading writes one record a group. Numbered from DEVICE_USE on. */
#define DEVICE_GROUPS 5

struct device_before {
    uint64_t at_ns; /* 0: none */
    uint64_t args[DEVICE_ARGS_MAX];
};

struct device_source {
    const struct process *process;
    uint32_t place;  /* index among the sources of this walk */
    uint64_t device; /* CUDA's number; UINT64_MAX: not known */
    uint64_t uuid_high;
    uint64_t uuid_low;
    uint64_t mig_high; /* UUID of the MIG instance; 0: the whole device */
    uint64_t mig_low;
    bool has_part; /* the process has readings of a MIG instance of it, too */
    uint64_t period_ns;
    char title[DEVICE_TITLE_BYTES]; /* name of the device */
    struct device_before before[DEVICE_GROUPS];
    uint64_t others; /* last result of device_others + 1; 0: none yet */
};

struct device_sources {
    struct device_source **list; /* owned, and so are they */
    uint32_t count;
    struct key_map places; /* (process, number) -> place + 1 */
};

void device_sources_release(struct device_sources *d);

static inline bool is_device_sample(unsigned type)
{
    return type >= RECORD_DEVICE_USE && type <= RECORD_DEVICE_GPM;
}

/* Takes a DEVICE_SOURCE record. */
struct event;
void device_sources_learn(struct device_sources *d, const struct event *e);

/* Index + 1 of the source in the record's first argument; 0: not known. */
uint64_t device_sources_place(const struct device_sources *d, const struct event *e);

/* The source of a sample; NULL: not known. */
struct device_source *device_sources_find(const struct device_sources *d, const struct event *e);

/* Stores the sample as the previous one of its group. */
void device_source_pass(struct device_source *source, const struct event *e);

static inline bool device_source_is_part(const struct device_source *source)
{
    return source->mig_high || source->mig_low;
}

/* "GPU-6f3f...", as in nvidia-smi; empty if not known. Returns `text`. */
char *device_uuid_text(uint64_t high, uint64_t low, char text[static DEVICE_UUID_BYTES]);

/* The same, or "MIG-..." for a MIG instance. */
char *device_source_uuid_text(const struct device_source *source,
                              char text[static DEVICE_UUID_BYTES]);

/* Time at which the values of a sample were read. */
uint64_t device_sample_ns(const struct event *e);

/* Returns a value of a sample; false: not known. */
static inline bool device_value(const struct record *r, unsigned argument, uint64_t *value)
{
    uint64_t known = record_arg(r, argument);
    *value = known - (known != 0);
    return known != 0;
}

/* The memory used by other processes, in bytes, from a DEVICE_USE record. False: not known, since
 * it is read only once a second. */
static inline bool device_others(const struct record *r, uint64_t *bytes)
{
    uint64_t used, own;
    if (!device_value(r, DEVICE_USE_USED, &used) || !device_value(r, DEVICE_USE_OWN, &own))
        return false;
    *bytes = used > own ? used - own : 0;
    return true;
}

/* Whether a DEVICE_ABSENT record ends all samples of its source, or of every source. */
static inline bool device_missing_of_all(const struct record *r)
{
    return !record_arg(r, DEVICE_ABSENT_GROUP) && !record_arg(r, DEVICE_ABSENT_COUNTERS);
}

/* The power in a DEVICE_POWER record: the best of the known values; false: none is known. */
static inline bool device_power_mw(const struct record *r, uint64_t *mw)
{
    return device_value(r, DEVICE_POWER_INSTANT, mw) || device_value(r, DEVICE_POWER_AVERAGE, mw) ||
           device_value(r, DEVICE_POWER_OTHER, mw);
}

/* Growth of a counter since the previous sample, which was read at *since_ns. False: one of them is
 * not known, or the counter restarted. */
bool device_growth(const struct device_source *source, const struct event *e, unsigned argument,
                   uint64_t *growth, uint64_t *since_ns);

/* Reasons why a device ran below its possible clock. */
enum throttle { THROTTLE_POWER, THROTTLE_THERMAL, THROTTLE_BRAKE, THROTTLE_SYNC, THROTTLES };

extern const char *const throttle_words[THROTTLES];

enum throttle_known { THROTTLE_UNKNOWN, THROTTLE_COUNTED, THROTTLE_SAMPLED };

/*
 * How long each reason slowed the device down between a DEVICE_CLOCKS record and the previous one,
 * which was read at *since_ns. Uses counters (THROTTLE_COUNTED); without them, each reading is
 * taken to hold halfway to its neighbours (THROTTLE_SAMPLED).
 */
enum throttle_known device_throttle(const struct device_source *source, const struct event *e,
                                    uint64_t ns[static THROTTLES], uint64_t *since_ns);

#endif
