/* SPDX-License-Identifier: Apache-2.0 */
#include "record/gpu_record.h"

#include <stdio.h>

#define VOLUME_MAX (1ull << 62)

#define CHOOSE(table, value, other)                                                                \
    ((value) < sizeof(table) / sizeof(table)[0] ? (table)[value] : (other))

const char *copy_kind_text(uint64_t kind)
{
    static const char *const names[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    return CHOOSE(names, kind, "unknown");
}

const char *memory_kind_text(uint64_t kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return CHOOSE(names, kind, "Unknown");
}

const char *sync_kind_text(uint64_t kind)
{
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    return CHOOSE(names, kind, "Sync");
}

const char *overhead_kind_text(uint64_t kind)
{
    /* CUPTI numbers its first one 1 and all others in steps of 65536. */
    static const char *const names[] = {"Overhead",
                                        "Buffer Flush",
                                        "Instrumentation",
                                        "Resource",
                                        "Runtime Triggered Module Loading",
                                        "Lazy Function Loading",
                                        "Command Buffer Full",
                                        "Activity Buffer Request",
                                        "UVM Activity Init"};
    if (kind == 1)
        return "Driver Compiler";
    return kind & 0xffff ? names[0] : CHOOSE(names, kind >> 16, names[0]);
}

const char *memory_operation_text(uint64_t operation)
{
    static const char *const names[] = {"unknown", "allocate", "release"};
    return CHOOSE(names, operation, "unknown");
}

const char *pool_operation_text(uint64_t operation)
{
    static const char *const names[] = {"unknown", "create", "destroy", "trim"};
    return CHOOSE(names, operation, "unknown");
}

const char *object_kind_text(uint64_t kind)
{
    static const char *const names[] = {"unknown", "process", "thread",
                                        "device",  "context", "stream"};
    return CHOOSE(names, kind, "unknown");
}

const char *payload_type_text(uint64_t type)
{
    static const char *const names[] = {"none", "u64", "i64", "double", "u32", "i32", "float"};
    return CHOOSE(names, type, "unknown");
}

const char *label_kind_text(uint64_t kind)
{
    static const char *const names[] = {"unknown", "domain", "string", "category", "thread"};
    return CHOOSE(names, kind, kind >= 0x10000 ? "resource" : "unknown");
}

bool memory_is_device(uint64_t kind)
{
    return kind >= 3 && kind <= 7;
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

uint64_t dim3_volume(uint64_t dim3)
{
    unsigned __int128 volume = (unsigned __int128)(uint32_t)dim3 * (dim3 >> 32 & 0xffff);
    volume *= dim3 >> 48;
    return volume < VOLUME_MAX ? (uint64_t)volume : VOLUME_MAX;
}
