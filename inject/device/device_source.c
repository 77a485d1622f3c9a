/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device_source.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/ticks.h"
#include "record/thread.h"

#define FAILURES_MAX    10 /* consecutive failures of a query that may only be busy */
#define NAME_BYTES_MAX  96 /* limit defined by NVML */
#define UUID_BYTES_MAX  96
#define UUID_DIGITS     32
#define PROCESSES_MAX   256 /* longer lists are not read */
#define NOT_AVAILABLE   ULLONG_MAX
#define PPM_PER_PERCENT 10000u
#define KIB             1024u

struct reading {
    uint64_t begin, end; /* in ticks; 0: nothing was read */
    uint64_t args[RECORD_ARGS_MAX];
};

static const struct {
    uint8_t type;
    uint8_t arg_count;
} groups[DEVICE_GROUP_COUNT] = {
    [DEVICE_GROUP_USE] = {RECORD_DEVICE_USE, RECORD_DEVICE_USE_ARGS},
    [DEVICE_GROUP_POWER] = {RECORD_DEVICE_POWER, RECORD_DEVICE_POWER_ARGS},
    [DEVICE_GROUP_CLOCKS] = {RECORD_DEVICE_CLOCKS, RECORD_DEVICE_CLOCKS_ARGS},
    [DEVICE_GROUP_LINKS] = {RECORD_DEVICE_LINKS, RECORD_DEVICE_LINKS_ARGS},
    [DEVICE_GROUP_GPM] = {RECORD_DEVICE_GPM, RECORD_DEVICE_GPM_ARGS},
};

/* Fields read together, of a whole device, with the driver's major version since which the number
 * has this meaning. */
static const struct {
    uint16_t id;
    uint16_t driver;
    uint8_t group;
    uint8_t argument;
    uint16_t unit;
    uint32_t scope;
} fields[] = {
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0, DEVICE_GROUP_POWER, DEVICE_POWER_ENERGY, 1, 0},
    {NVML_FI_DEV_POWER_INSTANT, 535, DEVICE_GROUP_POWER, DEVICE_POWER_INSTANT, 1, 0},
    {NVML_FI_DEV_POWER_AVERAGE, 535, DEVICE_GROUP_POWER, DEVICE_POWER_AVERAGE, 1, 0},
    {NVML_FI_DEV_POWER_CURRENT_LIMIT, 535, DEVICE_GROUP_POWER, DEVICE_POWER_LIMIT, 1, 0},
    {NVML_FI_DEV_MEMORY_TEMP, 0, DEVICE_GROUP_POWER, DEVICE_POWER_MEMORY_TEMPERATURE, 1, 0},
    {NVML_FI_DEV_PERF_POLICY_POWER, 0, DEVICE_GROUP_CLOCKS, DEVICE_CLOCKS_POWER_NS, 1, 0},
    {NVML_FI_DEV_PERF_POLICY_THERMAL, 0, DEVICE_GROUP_CLOCKS, DEVICE_CLOCKS_THERMAL_NS, 1, 0},
    {NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, 0, DEVICE_GROUP_CLOCKS, DEVICE_CLOCKS_SYNC_NS, 1, 0},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 580, DEVICE_GROUP_CLOCKS,
     DEVICE_CLOCKS_SW_THERMAL_NS, 1, 0},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, 580, DEVICE_GROUP_CLOCKS,
     DEVICE_CLOCKS_HW_THERMAL_NS, 1, 0},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, 580, DEVICE_GROUP_CLOCKS,
     DEVICE_CLOCKS_BRAKE_NS, 1, 0},
    {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 560, DEVICE_GROUP_LINKS, DEVICE_LINKS_PCIE_SENT, 1, 0},
    {NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 560, DEVICE_GROUP_LINKS, DEVICE_LINKS_PCIE_RECEIVED, 1, 0},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 450, DEVICE_GROUP_LINKS, DEVICE_LINKS_NVLINK_SENT, KIB,
     UINT_MAX},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 450, DEVICE_GROUP_LINKS, DEVICE_LINKS_NVLINK_RECEIVED,
     KIB, UINT_MAX},
};

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

_Static_assert(FIELD_COUNT <= DEVICE_FIELDS_MAX, "room for them");

static uint64_t device_source_known(uint64_t value)
{
    return value + 1;
}

/* ---- single calls ---------------------------------------------------------------------------- */

static nvmlReturn_t read_rates(struct device_source *s, uint64_t *args)
{
    nvmlUtilization_t rates = {0, 0};
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetUtilizationRates, s->handle, &rates);
    if (result == NVML_SUCCESS) {
        args[DEVICE_USE_BUSY] = device_source_known((uint64_t)rates.gpu * PPM_PER_PERCENT);
        args[DEVICE_USE_MEMORY_BUSY] =
            device_source_known((uint64_t)rates.memory * PPM_PER_PERCENT);
    }
    return result;
}

/* The older form includes reserved memory in used memory. */
static nvmlReturn_t read_memory(struct device_source *s, uint64_t *args)
{
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    nvmlMemory_t plain = {0};
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetMemoryInfo_v2, s->handle, &memory);
    if (result == NVML_SUCCESS) {
        args[DEVICE_USE_TOTAL] = device_source_known(memory.total);
        args[DEVICE_USE_USED] = device_source_known(memory.used);
        args[DEVICE_USE_RESERVED] = device_source_known(memory.reserved);
    } else if (result == NVML_ERROR_FUNCTION_NOT_FOUND ||
               result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH ||
               result == NVML_ERROR_INVALID_ARGUMENT) {
        result = NVML_CALL(nvmlDeviceGetMemoryInfo, s->handle, &plain);
        if (result == NVML_SUCCESS) {
            args[DEVICE_USE_TOTAL] = device_source_known(plain.total);
            args[DEVICE_USE_USED] = device_source_known(plain.used);
        }
    }
    return result;
}

nvmlReturn_t device_processes(nvmlDevice_t handle, uint32_t own_pid, unsigned *count, bool *has_own,
                              uint64_t *own_bytes)
{
    static nvmlProcessInfo_t list[PROCESSES_MAX]; /* used only by the thread that reads */
    *count = PROCESSES_MAX;
    *has_own = false;
    *own_bytes = NOT_AVAILABLE;
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v3, handle, count, list);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count && i < PROCESSES_MAX; i++)
        if (own_pid && list[i].pid == own_pid) {
            *has_own = true;
            *own_bytes = list[i].usedGpuMemory;
        }
    return result == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : result;
}

static nvmlReturn_t read_processes(struct device_source *s, uint32_t own_pid, uint64_t *args)
{
    unsigned count;
    bool has_own;
    uint64_t own_bytes;
    nvmlReturn_t result = device_processes(s->handle, own_pid, &count, &has_own, &own_bytes);
    if (result == NVML_SUCCESS) {
        args[DEVICE_USE_PROCESSES] = device_source_known(count);
        if (own_bytes != NOT_AVAILABLE)
            args[DEVICE_USE_OWN] = device_source_known(own_bytes);
        /* A process that is not listed yet may appear later. */
        if (!own_pid)
            s->own_lack = "NVML lists pids of another PID namespace, so no memory can be assigned "
                          "to this process";
        else if (has_own && own_bytes == NOT_AVAILABLE)
            s->own_lack = "the driver does not report memory by process";
    }
    return result;
}

/* For devices without the fields that say which kind of power is reported. */
static nvmlReturn_t read_power(struct device_source *s, uint64_t *args)
{
    unsigned power = 0;
    if (args[DEVICE_POWER_INSTANT] || args[DEVICE_POWER_AVERAGE])
        return NVML_SUCCESS;
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetPowerUsage, s->handle, &power);
    args[DEVICE_POWER_OTHER] = result == NVML_SUCCESS ? device_source_known(power) : 0;
    return result;
}

static nvmlReturn_t read_temperature(struct device_source *s, uint64_t *args)
{
    unsigned degrees = 0;
    nvmlReturn_t result =
        NVML_CALL(nvmlDeviceGetTemperature, s->handle, NVML_TEMPERATURE_GPU, &degrees);
    args[DEVICE_POWER_TEMPERATURE] = result == NVML_SUCCESS ? device_source_known(degrees) : 0;
    return result;
}

static nvmlReturn_t read_sm_clock(struct device_source *s, uint64_t *args)
{
    unsigned mhz = 0;
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetClockInfo, s->handle, NVML_CLOCK_SM, &mhz);
    args[DEVICE_CLOCKS_SM] = result == NVML_SUCCESS ? device_source_known(mhz) : 0;
    return result;
}

static nvmlReturn_t read_memory_clock(struct device_source *s, uint64_t *args)
{
    unsigned mhz = 0;
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetClockInfo, s->handle, NVML_CLOCK_MEM, &mhz);
    args[DEVICE_CLOCKS_MEMORY] = result == NVML_SUCCESS ? device_source_known(mhz) : 0;
    return result;
}

static nvmlReturn_t read_sm_max(struct device_source *s, uint64_t *args)
{
    unsigned mhz = 0;
    nvmlReturn_t result = NVML_SUCCESS;
    if (!s->sm_max) {
        result = NVML_CALL(nvmlDeviceGetMaxClockInfo, s->handle, NVML_CLOCK_SM, &mhz);
        s->sm_max = result == NVML_SUCCESS ? mhz + 1 : 0;
    }
    args[DEVICE_CLOCKS_SM_MAX] = s->sm_max;
    return result;
}

static nvmlReturn_t read_reasons(struct device_source *s, uint64_t *args)
{
    unsigned long long reasons = 0;
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetCurrentClocksEventReasons, s->handle, &reasons);
    args[DEVICE_CLOCKS_REASONS] = result == NVML_SUCCESS ? device_source_known(reasons) : 0;
    return result;
}

#define BIT(argument) (1u << (argument))

/* Queries made after the fields; those of one group follow each other. */
static const struct {
    uint8_t group;
    bool is_of_parts;   /* also works for MIG instances */
    uint16_t arguments; /* the arguments that it fills, one bit each */
    nvmlReturn_t (*read)(struct device_source *s, uint64_t *args);
} calls[] = {
    {DEVICE_GROUP_POWER, false, BIT(DEVICE_POWER_OTHER), read_power},
    {DEVICE_GROUP_POWER, false, BIT(DEVICE_POWER_TEMPERATURE), read_temperature},
    {DEVICE_GROUP_CLOCKS, false, BIT(DEVICE_CLOCKS_SM), read_sm_clock},
    {DEVICE_GROUP_CLOCKS, false, BIT(DEVICE_CLOCKS_MEMORY), read_memory_clock},
    {DEVICE_GROUP_CLOCKS, false, BIT(DEVICE_CLOCKS_SM_MAX), read_sm_max},
    {DEVICE_GROUP_CLOCKS, false, BIT(DEVICE_CLOCKS_REASONS), read_reasons},
    {DEVICE_GROUP_USE, false, BIT(DEVICE_USE_BUSY) | BIT(DEVICE_USE_MEMORY_BUSY), read_rates},
    {DEVICE_GROUP_USE, true,
     BIT(DEVICE_USE_TOTAL) | BIT(DEVICE_USE_USED) | BIT(DEVICE_USE_RESERVED), read_memory},
};

/* Two more queries need further parameters. */
#define CALL_COUNT     (sizeof calls / sizeof calls[0])
#define ITEM_PROCESSES (FIELD_COUNT + CALL_COUNT)
#define ITEM_GPM       (ITEM_PROCESSES + 1)
#define ITEM_COUNT     (ITEM_GPM + 1)

_Static_assert(ITEM_COUNT <= DEVICE_ITEMS_MAX, "room for them");

/* Returns the group of an item, and in *arguments the bits of the arguments that it fills. */
static unsigned item_group(unsigned item, uint32_t *arguments)
{
    bool is_field = item < FIELD_COUNT, is_call = !is_field && item < ITEM_PROCESSES;
    *arguments = is_field                 ? BIT(fields[item].argument)
                 : is_call                ? calls[item - FIELD_COUNT].arguments
                 : item == ITEM_PROCESSES ? BIT(DEVICE_USE_PROCESSES) | BIT(DEVICE_USE_OWN)
                                          : 0;
    return is_field                 ? fields[item].group
           : is_call                ? calls[item - FIELD_COUNT].group
           : item == ITEM_PROCESSES ? DEVICE_GROUP_USE
                                    : DEVICE_GROUP_GPM;
}

/* ---- which it is ----------------------------------------------------------------------------- */

/* Formats "GPU-9f2c...", "MIG-...". */
static void uuid_text(char text[static UUID_BYTES_MAX], const char *head, const uint64_t uuid[2])
{
    snprintf(text, UUID_BYTES_MAX, "%s%08x-%04x-%04x-%04x-%012llx", head, (unsigned)(uuid[0] >> 32),
             (unsigned)(uuid[0] >> 16 & 0xffff), (unsigned)(uuid[0] & 0xffff),
             (unsigned)(uuid[1] >> 48), (unsigned long long)(uuid[1] & 0xffffffffffffu));
}

static unsigned hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (unsigned)(at - digits) : UINT_MAX;
}

/* Sets both to 0 if the text is not a UUID. */
static void uuid_parse(const char *text, uint64_t uuid[2])
{
    const char *p = strchr(text, '-'); /* after "GPU" */
    uint64_t parts[2] = {0, 0};
    unsigned count = 0;
    for (; p && *p && count < UUID_DIGITS; p++) {
        unsigned digit = hex_digit(*p);
        if (*p == '-')
            continue;
        if (digit == UINT_MAX)
            break;
        parts[count / 16] = parts[count / 16] << 4 | digit;
        count++;
    }
    uuid[0] = count == UUID_DIGITS ? parts[0] : 0;
    uuid[1] = count == UUID_DIGITS ? parts[1] : 0;
}

static nvmlReturn_t by_uuid(const char *head, const uint64_t uuid[2], nvmlDevice_t *handle)
{
    char text[UUID_BYTES_MAX];
    uuid_text(text, head, uuid);
    return NVML_CALL(nvmlDeviceGetHandleByUUID, text, handle);
}

nvmlReturn_t device_source_find(struct device_source *s, const uint64_t uuid[2],
                                const uint64_t mig[2])
{
    memcpy(s->uuid, uuid, sizeof s->uuid);
    memcpy(s->mig, mig, sizeof s->mig);
    if (!device_is_part(s)) {
        nvmlReturn_t result = by_uuid("GPU-", uuid, &s->handle);
        s->whole = s->handle;
        return result;
    }
    nvmlReturn_t result = by_uuid("MIG-", mig, &s->handle);
    if (result == NVML_SUCCESS)
        result = NVML_CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, s->handle, &s->whole);
    if (result == NVML_SUCCESS)
        result = NVML_CALL(nvmlDeviceGetGpuInstanceId, s->handle, &s->gpu_instance);
    if (result != NVML_SUCCESS)
        s->handle = NULL;
    return result;
}

nvmlReturn_t device_source_take(struct device_source *s, nvmlDevice_t handle)
{
    char text[UUID_BYTES_MAX] = "";
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetUUID, handle, text, sizeof text);
    uuid_parse(text, s->uuid);
    s->handle = s->whole = handle;
    return result;
}

static void append_early(const struct device_source *s, struct thread *t,
                         const struct device_early *early)
{
    struct record r = {RECORD_WITH(DEVICE_POWER, [DEVICE_POWER_SOURCE] = s->number,
                                   [DEVICE_POWER_ENERGY] = device_source_known(early->energy)),
                       .begin = early->begin, .duration = early->end - early->begin};
    thread_append(t, &r);
}

void device_source_describe(const struct device_source *s, struct thread *t, uint64_t period_ns,
                            const struct device_early *early)
{
    char name[NAME_BYTES_MAX] = "";
    if (!s->handle || NVML_CALL(nvmlDeviceGetName, s->handle, name, sizeof name) != NVML_SUCCESS)
        name[0] = '\0';
    struct record r = {
        RECORD_WITH(DEVICE_SOURCE, [DEVICE_SOURCE_NUMBER] = s->number,
                    [DEVICE_SOURCE_DEVICE] = s->device, [DEVICE_SOURCE_UUID_HIGH] = s->uuid[0],
                    [DEVICE_SOURCE_UUID_LOW] = s->uuid[1], [DEVICE_SOURCE_MIG_HIGH] = s->mig[0],
                    [DEVICE_SOURCE_MIG_LOW] = s->mig[1], [DEVICE_SOURCE_PERIOD_NS] = period_ns),
        .begin = early ? early->begin : ticks_now(), .bytes = (const uint8_t *)name,
        .byte_count = (uint32_t)strlen(name)};
    thread_append(t, &r);
    if (early)
        append_early(s, t, early);
}

void device_tell_missing(struct thread *t, const struct device_lack *lack)
{
    struct record r = {
        RECORD_WITH(DEVICE_ABSENT, [DEVICE_ABSENT_SOURCE] = lack->source,
                    [DEVICE_ABSENT_GROUP] = lack->type, [DEVICE_ABSENT_REASON] = lack->reason,
                    [DEVICE_ABSENT_COUNTERS] = lack->counters),
        .begin = ticks_now(), .result = (int32_t)lack->result, .bytes = (const uint8_t *)lack->why,
        .byte_count = (uint32_t)strlen(lack->why)};
    thread_append(t, &r);
}

enum device_missing_reason device_missing_reason_of(nvmlReturn_t result)
{
    switch (result) {
    case NVML_ERROR_NOT_FOUND: return DEVICE_ABSENT_UNKNOWN;
    case NVML_ERROR_INVALID_ARGUMENT:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
    case NVML_ERROR_DEPRECATED:
    case NVML_ERROR_NOT_SUPPORTED: return DEVICE_ABSENT_NOT_SUPPORTED;
    case NVML_ERROR_NO_PERMISSION: return DEVICE_ABSENT_NO_PERMISSION;
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_RESET_REQUIRED: return DEVICE_ABSENT_LOST;
    default: return DEVICE_ABSENT_FAILED;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Notes an answer. Queries that were refused for good are not repeated. Returns true if reading
 * goes on. */
static bool device_source_note(struct device_source *s, unsigned item, nvmlReturn_t result)
{
    enum device_missing_reason reason = device_missing_reason_of(result);
    if (result == NVML_SUCCESS) {
        s->failures[item] = 0;
        return true;
    }
    if (result == NVML_ERROR_UNINITIALIZED || reason == DEVICE_ABSENT_LOST)
        return false;
    s->failures[item] = reason == DEVICE_ABSENT_FAILED ? s->failures[item] + 1 : FAILURES_MAX;
    if (s->failures[item] == FAILURES_MAX && s->refused[item] == NVML_SUCCESS)
        s->refused[item] = result;
    return true;
}

static bool device_source_is_wanted(const struct device_source *s, unsigned item)
{
    return s->failures[item] < FAILURES_MAX;
}

static void took(struct reading *r, uint64_t begin)
{
    r->begin = r->begin ? r->begin : begin;
    r->end = ticks_now();
}

static uint64_t device_source_number_of(const nvmlFieldValue_t *v)
{
    switch (v->valueType) {
    case NVML_VALUE_TYPE_DOUBLE: return v->value.dVal > 0 ? (uint64_t)v->value.dVal : 0;
    case NVML_VALUE_TYPE_UNSIGNED_INT: return v->value.uiVal;
    case NVML_VALUE_TYPE_UNSIGNED_LONG: return v->value.ulVal;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG: return v->value.sllVal > 0 ? v->value.ullVal : 0;
    case NVML_VALUE_TYPE_SIGNED_INT: return v->value.siVal > 0 ? v->value.uiVal : 0;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT: return v->value.usVal;
    default: return v->value.ullVal;
    }
}

nvmlReturn_t device_energy(nvmlDevice_t handle, uint64_t *mj)
{
    nvmlFieldValue_t v = {.fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION};
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetFieldValues, handle, 1, &v);
    *mj = device_source_number_of(&v);
    return result == NVML_SUCCESS ? v.nvmlReturn : result;
}

static nvmlReturn_t read_fields(struct device_source *s, struct reading *readings)
{
    nvmlFieldValue_t values[FIELD_COUNT];
    unsigned item[FIELD_COUNT], count = 0;
    memset(values, 0, sizeof values);
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        if (nvml.driver < fields[i].driver) /* older drivers use the number for something else */
            device_source_note(s, i, NVML_ERROR_NOT_SUPPORTED);
        if (!device_source_is_wanted(s, i))
            continue;
        values[count].fieldId = fields[i].id;
        values[count].scopeId = fields[i].scope;
        item[count++] = i;
    }
    if (!count)
        return NVML_SUCCESS;
    uint64_t begin = ticks_now();
    nvmlReturn_t result = NVML_CALL(nvmlDeviceGetFieldValues, s->handle, (int)count, values);
    for (unsigned i = 0; i < count; i++) {
        unsigned f = item[i], group = fields[f].group;
        nvmlReturn_t its = result == NVML_SUCCESS ? values[i].nvmlReturn : result;
        if (!device_source_note(s, f, its))
            return its;
        if (its != NVML_SUCCESS)
            continue;
        readings[group].args[fields[f].argument] =
            device_source_known(device_source_number_of(&values[i]) * fields[f].unit);
        took(&readings[group], begin);
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t read_calls(struct device_source *s, struct reading *readings)
{
    for (unsigned i = 0; i < CALL_COUNT; i++) {
        unsigned item = FIELD_COUNT + i, group = calls[i].group;
        if (device_is_part(s) && !calls[i].is_of_parts)
            device_source_note(s, item, NVML_ERROR_NOT_SUPPORTED);
        if (!device_source_is_wanted(s, item))
            continue;
        uint64_t begin = ticks_now();
        nvmlReturn_t result = calls[i].read(s, readings[group].args);
        if (!device_source_note(s, item, result))
            return result;
        if (result == NVML_SUCCESS)
            took(&readings[group], begin);
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t read_gpm(struct device_source *s, struct reading *r)
{
    if (!device_source_is_wanted(s, ITEM_GPM))
        return NVML_SUCCESS;
    nvmlReturn_t result = device_gpm_read(&s->gpm, s->whole, device_is_part(s), s->gpu_instance,
                                          r->args, &r->begin, &r->end);
    return device_source_note(s, ITEM_GPM, result) ? NVML_SUCCESS : result;
}

static nvmlReturn_t device_source_read_all(struct device_source *s, struct reading *readings,
                                           uint32_t own_pid, bool lists)
{
    struct reading *use = &readings[DEVICE_GROUP_USE];
    nvmlReturn_t result = NVML_SUCCESS;
    for (unsigned i = 0; i < FIELD_COUNT && device_is_part(s); i++)
        device_source_note(s, i, NVML_ERROR_NOT_SUPPORTED);
    result = read_fields(s, readings);
    if (result == NVML_SUCCESS)
        result = read_calls(s, readings);
    if (result == NVML_SUCCESS && lists && device_source_is_wanted(s, ITEM_PROCESSES)) {
        uint64_t begin = ticks_now();
        nvmlReturn_t listed = read_processes(s, own_pid, use->args);
        result = device_source_note(s, ITEM_PROCESSES, listed) ? NVML_SUCCESS : listed;
        if (listed == NVML_SUCCESS)
            took(use, begin);
    }
    return result == NVML_SUCCESS ? read_gpm(s, &readings[DEVICE_GROUP_GPM]) : result;
}

/* Can anything of the group still be read? */
static bool has_any(const struct device_source *s, unsigned group)
{
    uint32_t arguments;
    for (unsigned item = 0; item < ITEM_COUNT; item++)
        if (item_group(item, &arguments) == group && device_source_is_wanted(s, item))
            return true;
    return false;
}

/* Returns the arguments of the group that were refused with that result and are not reported yet,
 * one bit each. */
static uint32_t take_refused(struct device_source *s, unsigned group, nvmlReturn_t result)
{
    uint32_t all = 0, arguments;
    for (unsigned item = 0; item < ITEM_COUNT; item++)
        if (item_group(item, &arguments) == group && s->refused[item] == result) {
            all |= s->is_reported[item] ? 0 : arguments;
            s->is_reported[item] = true;
        }
    return all;
}

/* Reports each missing value once. A group of which nothing can be read is reported as a whole,
 * with the first reason. */
static void report_missing(struct device_source *s, struct thread *t)
{
    uint32_t arguments;
    for (unsigned item = 0; item < ITEM_COUNT; item++) {
        nvmlReturn_t result = s->refused[item];
        if (result == NVML_SUCCESS || s->is_reported[item])
            continue;
        unsigned group = item_group(item, &arguments);
        uint32_t refused = take_refused(s, group, result);
        bool is_whole = !has_any(s, group);
        bool is_of_wholes =
            device_is_part(s) && result == NVML_ERROR_NOT_SUPPORTED && group != DEVICE_GROUP_GPM;
        struct device_lack lack = {
            .source = s->number,
            .type = groups[group].type,
            .counters = is_whole ? 0 : refused,
            .reason = device_missing_reason_of(result),
            .result = result,
            .why = is_of_wholes ? "NVML reports it for the whole device only"
                                : nvml_result_text(result),
        };
        for (unsigned other = 0; is_whole && other < ITEM_COUNT; other++)
            s->is_reported[other] |= item_group(other, &arguments) == group;
        device_tell_missing(t, &lack);
    }
}

/* The memory of other processes follows from the memory of this one. */
static void report_own(struct device_source *s, struct thread *t)
{
    if (!s->own_lack || s->is_own_reported)
        return;
    s->is_own_reported = true;
    device_tell_missing(t, &(struct device_lack){.source = s->number,
                                                 .type = RECORD_DEVICE_USE,
                                                 .counters = BIT(DEVICE_USE_OWN),
                                                 .reason = DEVICE_ABSENT_UNKNOWN,
                                                 .why = s->own_lack});
}

nvmlReturn_t device_source_read(struct device_source *s, struct thread *t, uint32_t own_pid,
                                bool lists)
{
    struct reading readings[DEVICE_GROUP_COUNT];
    memset(readings, 0, sizeof readings);
    nvmlReturn_t result = device_source_read_all(s, readings, own_pid, lists);
    for (unsigned group = 0; group < DEVICE_GROUP_COUNT; group++) {
        const struct reading *its = &readings[group];
        if (!its->begin)
            continue;
        struct record r = {.type = groups[group].type,
                           .arg_count = groups[group].arg_count,
                           .begin = its->begin,
                           .duration = its->end - its->begin};
        memcpy(r.args, its->args, sizeof r.args);
        r.args[0] = s->number; /* in all records */
        thread_append(t, &r);
    }
    report_missing(s, t);
    report_own(s, t);
    return result;
}
