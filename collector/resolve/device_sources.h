/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device a record of counters is about (run --device): its source, as the walk knows it at
 * that moment, with the record of the same group before, from which counters have grown. Memory:
 * 1 KB for each source, of which DEVICE_SOURCES_MAX are followed; further ones have no device.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_SOURCES_H
#define GPUPROF_COLLECTOR_DEVICE_SOURCES_H

#include "base/key_map.h"
#include "read/recording.h"
#include "record/gpu_record.h"

#define DEVICE_SOURCES_MAX 1024
#define DEVICE_ARGS_MAX    16
#define DEVICE_TITLE_BYTES 64
#define DEVICE_GAP         16 /* periods without a reading: nothing is known of what was between */
#define DEVICE_UUID_BYTES  48

/* Groups of counters, a record each of one reading: by their numbers, from DEVICE_USE on. */
#define DEVICE_GROUPS 5

struct device_before {
    uint64_t at_ns; /* 0: there was none */
    uint64_t args[DEVICE_ARGS_MAX];
};

struct device_source {
    const struct process *process;
    uint32_t place;  /* among all sources of this walk, from 0 on */
    uint64_t device; /* CUDA's number; UINT64_MAX: not known */
    uint64_t uuid_high;
    uint64_t uuid_low;
    uint64_t mig_high; /* of the part of it (MIG) that this is; 0: the whole */
    uint64_t mig_low;
    bool has_part; /* of which its process has readings, too */
    uint64_t period_ns;
    char title[DEVICE_TITLE_BYTES]; /* the device's name */
    struct device_before before[DEVICE_GROUPS];
    uint64_t others; /* what device_others said last, + 1; 0: nothing yet */
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

/* A DEVICE_SOURCE record. 0 or GPUPROF_NO_MEMORY. */
struct event;
int device_sources_learn(struct device_sources *d, const struct event *e);

/* The place + 1 of the source that is the record's first argument; 0: it is not known. */
uint64_t device_sources_place(const struct device_sources *d, const struct event *e);

/* The source of a sample; NULL: it is not known. */
struct device_source *device_sources_find(const struct device_sources *d, const struct event *e);

/* The sample has been told of: the next one of its group grows from it. */
void device_source_pass(struct device_source *source, const struct event *e);

static inline bool device_source_is_part(const struct device_source *source)
{
    return source->mig_high || source->mig_low;
}

/* "GPU-6f3f...", as nvidia-smi has it; nothing if it is not known. Returns `text`. */
char *device_uuid_text(uint64_t high, uint64_t low, char text[static DEVICE_UUID_BYTES]);

/* The same, or "MIG-..." of a part. */
char *device_source_uuid_text(const struct device_source *source,
                              char text[static DEVICE_UUID_BYTES]);

/* When the values of a sample were read. */
uint64_t device_sample_ns(const struct event *e);

/* A value of a sample; false: it is not known. */
static inline bool device_value(const struct record *r, unsigned argument, uint64_t *value)
{
    uint64_t known = record_arg(r, argument);
    *value = known - (known != 0);
    return known != 0;
}

/* What other processes have of the memory, in bytes, of a DEVICE_USE record; false: not known, as
 * it is asked only once a second. */
static inline bool device_others(const struct record *r, uint64_t *bytes)
{
    uint64_t used, own;
    if (!device_value(r, DEVICE_USE_USED, &used) || !device_value(r, DEVICE_USE_OWN, &own))
        return false;
    *bytes = used > own ? used - own : 0;
    return true;
}

/* Of a DEVICE_ABSENT record: does nothing come of its source, or of any, from there on? */
static inline bool device_absent_of_all(const struct record *r)
{
    return !record_arg(r, DEVICE_ABSENT_GROUP) && !record_arg(r, DEVICE_ABSENT_COUNTERS);
}

/* The power of a DEVICE_POWER record, the best of those that are known; false: none is. */
static inline bool device_power_mw(const struct record *r, uint64_t *mw)
{
    return device_value(r, DEVICE_POWER_INSTANT, mw) || device_value(r, DEVICE_POWER_AVERAGE, mw) ||
           device_value(r, DEVICE_POWER_OTHER, mw);
}

/* By how much a counter of the sample has grown since the one before, which was read at *since_ns.
 * False: one of both is not known, or the counter has begun anew. */
bool device_growth(const struct device_source *source, const struct event *e, unsigned argument,
                   uint64_t *growth, uint64_t *since_ns);

/* Why a device was slower than it could be, and for how long between two readings. */
enum throttle { THROTTLE_POWER, THROTTLE_THERMAL, THROTTLE_BRAKE, THROTTLE_SYNC, THROTTLES };

extern const char *const throttle_words[THROTTLES];

enum throttle_known { THROTTLE_UNKNOWN, THROTTLE_COUNTED, THROTTLE_SAMPLED };

/*
 * How long each reason slowed the device down between a DEVICE_CLOCKS record and the one before,
 * which was read at *since_ns. By counters; where there are none, what a reading says holds halfway
 * to its neighbours, and that is THROTTLE_SAMPLED.
 */
enum throttle_known device_throttle(const struct device_source *source, const struct event *e,
                                    uint64_t ns[static THROTTLES], uint64_t *since_ns);

#endif
