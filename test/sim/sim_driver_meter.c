/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML's counters follow: when each device had work, of streams, of graphs, and of collectives
 * that wait for others. Noted from the begin with SIMNVML_LOG, else from NVML's first question on.
 */
#include <pthread.h>
#include <stdlib.h>

#include "sim_driver.h"

enum { METERED_MAX = 1 << 16 };

struct metered {
    uint64_t start_ns, end_ns;
    int device;
};

static struct {
    pthread_mutex_t lock;
    bool is_on;                         /* atomic */
    uint64_t past_ns[DEVICE_COUNT_MAX]; /* of work that found no room any more */
    uint64_t count;
    struct metered work[METERED_MAX];
} meter = {.lock = PTHREAD_MUTEX_INITIALIZER};

void meter_init(void)
{
    if (getenv("SIMNVML_LOG"))
        __atomic_store_n(&meter.is_on, true, __ATOMIC_RELAXED);
}

void meter_work(CUstream stream, uint64_t start_ns, uint64_t end_ns)
{
    if (!SIM_UNLIKELY(__atomic_load_n(&meter.is_on, __ATOMIC_RELAXED)) || end_ns <= start_ns)
        return;
    pthread_mutex_lock(&meter.lock);
    struct metered *at = &meter.work[meter.count++ % METERED_MAX];
    if (meter.count > METERED_MAX)
        meter.past_ns[at->device] += at->end_ns - at->start_ns;
    *at = (struct metered){start_ns, end_ns, stream->context->device->number};
    pthread_mutex_unlock(&meter.lock);
}

SIM_EXPORT void sim_nvml_meter(unsigned device, uint64_t now_ns, uint64_t *work_ns, uint64_t *used)
{
    pthread_mutex_lock(&meter.lock);
    __atomic_store_n(&meter.is_on, true, __ATOMIC_RELAXED);
    *work_ns = meter.past_ns[device];
    for (uint64_t i = 0; i < meter.count && i < METERED_MAX; i++) {
        const struct metered *w = &meter.work[i];
        if (w->device == (int)device && w->start_ns < now_ns)
            *work_ns += (now_ns < w->end_ns ? now_ns : w->end_ns) - w->start_ns;
    }
    pthread_mutex_unlock(&meter.lock);
    *used = 0;
    for (int i = 0; i < sim_config.device_count; i++)
        if (sim_devices[i].number == (int)device)
            *used = __atomic_load_n(&sim_devices[i].used_bytes, __ATOMIC_RELAXED);
}

static int compare_starts(const void *left, const void *right)
{
    const struct metered *a = left, *b = right;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* For how long of that time it had any work at all, of however many pieces at once. */
SIM_EXPORT uint64_t sim_nvml_busy(unsigned device, uint64_t from_ns, uint64_t to_ns)
{
    static struct metered within[METERED_MAX]; /* under the lock */
    uint64_t busy_ns = 0, until_ns = from_ns, count = 0;
    pthread_mutex_lock(&meter.lock);
    for (uint64_t i = 0; i < meter.count && i < METERED_MAX; i++)
        if (meter.work[i].device == (int)device && meter.work[i].start_ns < to_ns &&
            meter.work[i].end_ns > from_ns)
            within[count++] = meter.work[i];
    qsort(within, count, sizeof within[0], compare_starts);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t begin_ns = within[i].start_ns > until_ns ? within[i].start_ns : until_ns;
        uint64_t end_ns = within[i].end_ns < to_ns ? within[i].end_ns : to_ns;
        busy_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
        until_ns = end_ns > until_ns ? end_ns : until_ns;
    }
    pthread_mutex_unlock(&meter.lock);
    return busy_ns;
}
