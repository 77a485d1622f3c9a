/* SPDX-License-Identifier: Apache-2.0 */
#include "record/gpu_record.h"

#include <stdio.h>

#include "base/numbers.h"

#define VOLUME_MAX (1ull << 62)

/* Defines NAME_text: the words of values from 0 on; other values have the first word. */
#define WORDS(name, ...)                                                                           \
    const char *name##_text(uint64_t value)                                                        \
    {                                                                                              \
        static const char *const words[] = {__VA_ARGS__};                                          \
        return words[value < sizeof words / sizeof words[0] ? value : 0];                          \
    }
WORDS(copy_kind, "unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH",
      "PtoP")
WORDS(memory_kind, "Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static",
      "Managed Static")
WORDS(sync_kind, "Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
WORDS(memory_operation, "unknown", "allocate", "release")
WORDS(pool_operation, "unknown", "create", "destroy", "trim")
WORDS(object_kind, "unknown", "process", "thread", "device", "context", "stream")
WORDS(payload_type, "none", "u64", "i64", "double", "u32", "i32", "float")
static WORDS(label, "unknown", "domain", "string", "category",
             "thread") static WORDS(later_overhead, "Overhead", "Buffer Flush", "Instrumentation",
                                    "Resource", "Runtime Triggered Module Loading",
                                    "Lazy Function Loading", "Command Buffer Full",
                                    "Activity Buffer Request", "UVM Activity Init")

    const char *overhead_kind_text(uint64_t kind)
{
    /* CUPTI numbers the first kind 1 and all others in steps of 65536. */
    return kind == 1 ? "Driver Compiler" : later_overhead_text(kind & 0xffff ? 0 : kind >> 16);
}

const char *label_kind_text(uint64_t kind)
{
    return kind >= 0x10000 ? "resource" : label_text(kind);
}

char *copy_title(uint64_t kind, uint64_t source, uint64_t destination, char *text)
{
    snprintf(text, GPU_TITLE_BYTES, "Memcpy %s (%s -> %s)", copy_kind_text(kind),
             memory_kind_text(source), memory_kind_text(destination));
    return text;
}

char *set_title(uint64_t kind, char *text)
{
    snprintf(text, GPU_TITLE_BYTES, "Memset (%s)", memory_kind_text(kind));
    return text;
}

uint64_t record_device(const struct record *r)
{
    switch (r->type) {
    case RECORD_MEMORY: return record_arg(r, MEMORY_DEVICE);
    case RECORD_TENSOR: return record_arg(r, TENSOR_DEVICE);
    case RECORD_TENSOR_OOM: return record_arg(r, TENSOR_OOM_DEVICE);
    default: return is_stream_work(r->type) ? record_arg(r, KERNEL_DEVICE) : UINT64_MAX;
    }
}

const char *record_title(const struct record *r, char text[GPU_TITLE_BYTES])
{
    switch (r->type) {
    case RECORD_KERNEL:
        snprintf(text, GPU_TITLE_BYTES, "kernel %llu",
                 (unsigned long long)record_arg(r, KERNEL_NAME_INDEX));
        return text;
    case RECORD_COPY:
        return copy_title(record_arg(r, COPY_KIND), record_arg(r, COPY_SOURCE),
                          record_arg(r, COPY_DESTINATION), text);
    case RECORD_SET: return set_title(record_arg(r, SET_KIND), text);
    case RECORD_GRAPH:
        snprintf(text, GPU_TITLE_BYTES, "CUDA graph %llu",
                 (unsigned long long)record_arg(r, GRAPH_GRAPH));
        return text;
    case RECORD_SYNC: return sync_kind_text(record_arg(r, SYNC_KIND));
    case RECORD_OVERHEAD: return overhead_kind_text(record_arg(r, OVERHEAD_KIND));
    case RECORD_MEMORY: return memory_operation_text(record_arg(r, MEMORY_OPERATION));
    case RECORD_TENSOR: return memory_operation_text(record_arg(r, TENSOR_OPERATION));
    case RECORD_TENSOR_OOM: return "out of memory";
    case RECORD_GIL:
        return r->code == GIL_HELD      ? "GIL held"
               : r->code == GIL_STOPPED ? "stop of the world"
                                        : "wait for the GIL";
    case RECORD_GC: return "garbage collection";
    case RECORD_STEP:
    case RECORD_PAUSE:
    case RECORD_WINDOW:
    case RECORD_DUMP: return event_info(r->type)->name;
    default: return NULL;
    }
}

uint64_t dim3_volume(uint64_t dim3)
{
    unsigned __int128 volume = (unsigned __int128)(uint32_t)dim3 * (dim3 >> 32 & 0xffff);
    volume *= dim3 >> 48;
    return volume < VOLUME_MAX ? (uint64_t)volume : VOLUME_MAX;
}

/* ---- silences -------------------------------------------------------------------------------- */

#define PART_LEAST 10 /* parts below this fraction of a silence are not separated */
#define BURST_MOST 4  /* a thread may wait in calls that take so many times the silence */

enum { RAN, WAITED, DELAYED, OFF, PARTS };

/* Computes the shares; small parts are added to the largest one. */
static struct silence_look shares_of(uint64_t ns[static PARTS], uint64_t all_ns)
{
    uint32_t shares[PARTS], most = RAN;
    for (unsigned i = 0; i < PARTS; i++)
        most = ns[i] > ns[most] ? i : most;
    for (unsigned i = 0; i < PARTS; i++) {
        bool is_small = ns[i] < all_ns / PART_LEAST;
        shares[i] = is_small ? 0 : (uint32_t)((double)SILENCE_ALL * (double)ns[i] / (double)all_ns);
    }
    shares[most] = 0;
    shares[most] = SILENCE_ALL - shares[RAN] - shares[WAITED] - shares[DELAYED] - shares[OFF];
    return (struct silence_look){shares[WAITED], shares[DELAYED], shares[OFF], true};
}

/* Assumes that a thread runs while it makes calls one after another, so it waited in the silence.
 * Preemption is spread over both. */
bool silence_look_of(const struct record *r, struct silence_look *look)
{
    uint64_t silent_ns = record_arg(r, SILENCE_NS), since_ns = record_arg(r, SILENCE_SINCE);
    uint64_t delay_ns = record_arg(r, SILENCE_DELAY), ns[PARTS] = {0};
    if (!silent_ns || since_ns < silent_ns)
        return false;
    uint64_t burst_ns = since_ns - silent_ns;
    uint64_t off_ns = since_ns - min_of(record_arg(r, SILENCE_CPU), since_ns);
    uint64_t most_ns = min_of(off_ns, silent_ns);
    uint64_t least_ns = off_ns > burst_ns ? off_ns - burst_ns : 0;
    if (burst_ns / BURST_MOST > silent_ns && most_ns > least_ns + silent_ns / 2)
        return false;
    if (!delay_ns) {
        ns[OFF] = most_ns;
    } else {
        delay_ns = min_of(delay_ns - 1, off_ns);
        ns[WAITED] = min_of(off_ns - delay_ns, silent_ns);
        ns[DELAYED] = (uint64_t)((unsigned __int128)delay_ns * silent_ns / since_ns);
        ns[DELAYED] = min_of(ns[DELAYED], silent_ns - ns[WAITED]);
    }
    ns[RAN] = silent_ns - ns[WAITED] - ns[DELAYED] - ns[OFF];
    *look = shares_of(ns, silent_ns);
    return true;
}
