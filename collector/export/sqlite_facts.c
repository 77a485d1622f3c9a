/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands beside the events of an SQLite export: enumerations, processes and threads before
 * them; devices, steps, losses and the session behind.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_text.h"
#include "error.h"
#include "export/export_writer.h"
#include "export/sqlite_writer.h"
#include "model/range_stack.h"
#include "rank.h"
#include "read/process_title.h"
#include "record/gpu_record.h"
#include "record/losses.h"

#define SCHEMA_VERSION "3.16.1" /* of the tables that are nsys' */

/* ---- enumerations ---------------------------------------------------------------------------- */

struct enumerator {
    enum sql_table table;
    uint32_t id;
    const char *name;
    const char *label;
};

static const struct enumerator enumerators[] = {
    {SQL_COPY_KINDS, 0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
    {SQL_COPY_KINDS, 1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
    {SQL_COPY_KINDS, 2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
    {SQL_COPY_KINDS, 3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
    {SQL_COPY_KINDS, 4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
    {SQL_COPY_KINDS, 5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
    {SQL_COPY_KINDS, 6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
    {SQL_COPY_KINDS, 7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
    {SQL_COPY_KINDS, 8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
    {SQL_COPY_KINDS, 9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
    {SQL_COPY_KINDS, 10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
    {SQL_COPY_KINDS, 11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
    {SQL_COPY_KINDS, 12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
    {SQL_COPY_KINDS, 13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"},
    {SQL_MEMORY_KINDS, 0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
    {SQL_MEMORY_KINDS, 1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
    {SQL_MEMORY_KINDS, 2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
    {SQL_MEMORY_KINDS, 3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
    {SQL_MEMORY_KINDS, 4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
    {SQL_MEMORY_KINDS, 5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
    {SQL_MEMORY_KINDS, 6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
    {SQL_MEMORY_KINDS, 7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"},
    {SQL_OPERATIONS, 0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"},
    {SQL_OPERATIONS, 1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"},
    {SQL_SYNC_KINDS, 0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    {SQL_SYNC_KINDS, 1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
    {SQL_SYNC_KINDS, 2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
     "Stream wait sync"},
    {SQL_SYNC_KINDS, 3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
    {SQL_SYNC_KINDS, 4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"},
    {SQL_EVENT_TYPES, NSYS_NVTX_CATEGORY, "NvtxCategory", "NvtxCategory"},
    {SQL_EVENT_TYPES, NSYS_NVTX_MARK, "NvtxMark", "NvtxMark"},
    {SQL_EVENT_TYPES, NSYS_NVTX_PUSH_POP, "NvtxPushPopRange", "NvtxPushPopRange"},
    {SQL_EVENT_TYPES, NSYS_NVTX_START_END, "NvtxStartEndRange", "NvtxStartEndRange"},
    {SQL_EVENT_TYPES, NSYS_NVTX_DOMAIN, "NvtxDomainCreate", "NvtxDomainCreate"},
    {SQL_EVENT_CLASSES, NSYS_RUNTIME, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
    {SQL_EVENT_CLASSES, NSYS_DRIVER, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"},
};

static int put_enumerations(struct export_writer *w)
{
    int error = 0;
    for (size_t i = 0; error == 0 && i < sizeof enumerators / sizeof enumerators[0]; i++) {
        struct sql_value row[COPY_KINDS_COLUMNS] = {
            [SQL_COPY_KINDS_ID] = sql_integer(enumerators[i].id),
            [SQL_COPY_KINDS_NAME] = sql_text(enumerators[i].name),
            [SQL_COPY_KINDS_LABEL] = sql_text(enumerators[i].label),
        };
        error = sql_base_insert(w->base, enumerators[i].table, row);
    }
    return error;
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* Those of a machine have its number: they were started since the same boot. */
static void number_machines(struct export_writer *w)
{
    const struct recording *rec = w->walk->rec;
    struct key_map known = {0};
    uint64_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct key key = {0};
        memcpy(&key, rec->processes[i]->header.boot_id, sizeof rec->processes[i]->header.boot_id);
        uint64_t number = key_map_get(&known, key);
        if (!number && count < GLOBAL_MACHINES_MAX)
            number = ++count;
        w->machines[i] = number ? number : GLOBAL_MACHINES_MAX;
        if (key_map_set(&known, key, w->machines[i]) < 0)
            break; /* the others are of machine 0: their pids are distinct all the same */
    }
    key_map_release(&known);
}

static int put_process(struct export_writer *w, const struct process *p)
{
    char title[1200];
    char id[2 * sizeof p->header.process_id + 1];
    uint64_t first_ns = w->walk->first_ns[p->index];
    process_title(p, false, title, sizeof title);
    for (size_t i = 0; i < sizeof p->header.process_id; i++)
        snprintf(id + 2 * i, 3, "%02x", p->header.process_id[i]);
    struct sql_value row[PROCESSES_COLUMNS] = {
        [SQL_PROCESSES_GLOBAL] = sql_integer(sqlite_pid(w, p)),
        [SQL_PROCESSES_PID] = sql_integer(p->header.pid),
        [SQL_PROCESSES_NAME] = sql_recorded(title),
    };
    struct sql_value own[OWN_PROCESSES_COLUMNS] = {
        [SQL_OWN_PROCESSES_PID] = sql_integer(sqlite_pid(w, p)),
        [SQL_OWN_PROCESSES_OWN_PID] = sql_integer(p->header.pid),
        [SQL_OWN_PROCESSES_RANK] =
            p->rank == RANK_NONE ? (struct sql_value){0} : sql_integer(p->rank),
        [SQL_OWN_PROCESSES_HOST] = sql_recorded(p->header.host),
        [SQL_OWN_PROCESSES_COMMAND] = sql_recorded(process_meta(p, "cmdline")),
        [SQL_OWN_PROCESSES_ID] = sql_text(id),
        [SQL_OWN_PROCESSES_GPU_ROWS] = sql_text(process_gpu_rows(p)),
        [SQL_OWN_PROCESSES_LOCAL_RANK] = sql_recorded(process_local_rank(p)),
        [SQL_OWN_PROCESSES_JOB] = p->job == JOB_NONE ? (struct sql_value){0} : sql_integer(p->job),
    };
    if (first_ns) {
        own[SQL_OWN_PROCESSES_START] = sqlite_time(w, first_ns);
        own[SQL_OWN_PROCESSES_END] = sqlite_time(w, w->walk->last_ns[p->index]);
    }
    int error = sql_base_insert(w->base, SQL_PROCESSES, row);
    return error < 0 ? error : sql_base_insert(w->base, SQL_OWN_PROCESSES, own);
}

/* As the program named them by NVTX, or else the system. */
static int put_threads(struct export_writer *w, const struct process *p)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        if (t->number == 0 || t->own)
            continue;
        const struct kernel_name *label =
            t->tid ? ranges_label(&w->walk->ranges, p, LABEL_OF_THREAD, 0, t->tid) : NULL;
        struct sql_value row[THREADS_COLUMNS] = {
            [SQL_THREADS_TID] = sql_integer(sqlite_tid(w, p, t)),
        };
        error = sqlite_name(w, label, t->name[0] ? t->name : "thread", &row[SQL_THREADS_NAME]);
        if (error == 0)
            error = sql_base_insert(w->base, SQL_THREADS, row);
    }
    return error;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static int put_label(struct export_writer *w, const struct range *range, uint64_t at_ns,
                     uint64_t category, const struct kernel_name *text)
{
    struct key key = {range->process->index, range->domain, category};
    if (key_map_get(&w->told, key))
        return 0;
    struct sql_value row[NVTX_COLUMNS] = {
        [SQL_NVTX_START] = sqlite_time(w, at_ns),
        [SQL_NVTX_TYPE] = sql_integer(category ? NSYS_NVTX_CATEGORY : NSYS_NVTX_DOMAIN),
        [SQL_NVTX_CATEGORY] = sql_integer_or_null(category),
        [SQL_NVTX_TID] = sql_integer(sqlite_tid(w, range->process, range->thread)),
        [SQL_NVTX_DOMAIN] = sql_integer(range->domain),
        [SQL_NVTX_TEXT] = sql_recorded(text->shown),
    };
    int error = sqlite_name(w, text, "", &row[SQL_NVTX_TEXT_ID]);
    if (error == 0)
        error = sql_base_insert(w->base, SQL_NVTX, row);
    if (error == 0)
        error = key_map_set(&w->told, key, 1);
    return error == GPUPROF_LIMIT ? 0 : error;
}

int sqlite_range_names(struct export_writer *w, const struct range *range, uint64_t at_ns)
{
    const struct kernel_name *category =
        range->category ? ranges_label(&w->walk->ranges, range->process, LABEL_OF_CATEGORY,
                                       range->domain, range->category)
                        : NULL;
    int error =
        range->domain && range->domain_text ? put_label(w, range, at_ns, 0, range->domain_text) : 0;
    return error < 0 || !category ? error : put_label(w, range, at_ns, range->category, category);
}

/* ---- devices --------------------------------------------------------------------------------- */

struct gpu_numbers {
    struct key_map numbers; /* (machine, UUID) or (machine, process, device) -> number + 1 */
    struct key_map taken;   /* (machine, number) */
};

/*
 * A machine's own number of a device: its ordinal where that is free, so that kernels find their
 * device by theirs; processes to which the driver shows only some of them have others by the same
 * ordinal, and no device has one as large as a file may say. *is_new: nobody had it so far.
 */
static int gpu_number(struct gpu_numbers *g, uint64_t machine, const struct surveyed_device *d,
                      uint64_t *number, bool *is_new)
{
    bool has_uuid = d->uuid_high || d->uuid_low;
    struct key key = {machine, has_uuid ? d->uuid_high : d->process,
                      has_uuid ? d->uuid_low : ~d->limits.device};
    uint64_t known = key_map_get(&g->numbers, key);
    *is_new = !known;
    *number = known ? known - 1 : d->limits.device < SURVEY_DEVICES_MAX ? d->limits.device : 0;
    while (!known && key_map_get(&g->taken, (struct key){machine, *number, 0}))
        ++*number;
    int error = known ? 0 : key_map_set(&g->numbers, key, *number + 1);
    if (error == 0)
        error = key_map_set(&g->taken, (struct key){machine, *number, 0}, 1);
    return error;
}

static int put_gpu(struct export_writer *w, uint64_t machine, const struct surveyed_device *d,
                   uint64_t number, const char *uuid)
{
    const struct device_limits *l = &d->limits;
    struct sql_value row[GPU_COLUMNS] = {
        [SQL_GPU_VM] = sql_integer(machine),
        [SQL_GPU_ID] = sql_integer(number),
        [SQL_GPU_NAME] = sql_recorded(d->name),
        [SQL_GPU_MEMORY] = sql_integer_or_null(l->memory),
        [SQL_GPU_SMS] = sql_integer_or_null(l->multiprocessors),
        [SQL_GPU_UUID] = uuid[0] ? sql_text(uuid) : (struct sql_value){0},
        [SQL_GPU_CUDA] = sql_integer(l->device),
        [SQL_GPU_BLOCK_SHARED] = sql_integer_or_null(l->shared_block_max),
        [SQL_GPU_SM_SHARED] = sql_integer_or_null(l->shared_max),
        [SQL_GPU_SM_REGISTERS] = sql_integer_or_null(l->registers_max),
        [SQL_GPU_WARP] = sql_integer_or_null(l->warp),
        [SQL_GPU_WARPS] = sql_integer_or_null(l->warp ? l->threads_max / l->warp : 0),
        [SQL_GPU_BLOCKS] = sql_integer_or_null(l->blocks_max),
        [SQL_GPU_MAJOR] = sql_integer_or_null(l->major),
        [SQL_GPU_MINOR] = sql_integer(l->minor),
        [SQL_GPU_SM_MAJOR] = sql_integer_or_null(l->major),
        [SQL_GPU_SM_MINOR] = sql_integer(l->minor),
    };
    return sql_base_insert(w->base, SQL_GPU, row);
}

static int put_device(struct export_writer *w, struct gpu_numbers *g,
                      const struct surveyed_device *d)
{
    const struct process *p = w->walk->rec->processes[d->process];
    char uuid[DEVICE_UUID_BYTES];
    uint64_t number;
    bool is_new;
    device_uuid_text(d->uuid_high, d->uuid_low, uuid);
    int error = gpu_number(g, sqlite_machine(w, p), d, &number, &is_new);
    if (error == 0 && is_new)
        error = put_gpu(w, sqlite_machine(w, p), d, number, uuid);
    struct sql_value row[CUDA_DEVICE_COLUMNS] = {
        [SQL_CUDA_DEVICE_GPU] = sql_integer(number),
        [SQL_CUDA_DEVICE_CUDA] = sql_integer(d->limits.device),
        [SQL_CUDA_DEVICE_PID] = sql_integer(p->shown_pid),
        [SQL_CUDA_DEVICE_UUID] = uuid[0] ? sql_text(uuid) : (struct sql_value){0},
        [SQL_CUDA_DEVICE_SMS] = sql_integer_or_null(d->limits.multiprocessors),
    };
    return error < 0 ? error : sql_base_insert(w->base, SQL_CUDA_DEVICE, row);
}

static int put_devices(struct export_writer *w)
{
    struct gpu_numbers g = {0};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->walk->survey.device_count; i++)
        error = put_device(w, &g, &w->walk->survey.devices[i]);
    key_map_release(&g.numbers);
    key_map_release(&g.taken);
    return error;
}

/* ---- steps, losses, the session -------------------------------------------------------------- */

static int put_steps(struct export_writer *w)
{
    const struct steps *steps = w->scope.steps;
    int error = 0;
    for (uint32_t i = 0; error == 0 && steps && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        if (!selection_reaches(w->scope.selection, step->process, step->begin_ns, step->end_ns))
            continue;
        struct sql_value row[STEPS_COLUMNS] = {
            [SQL_STEPS_PID] = sql_integer(sqlite_pid(w, step->process)),
            [SQL_STEPS_NUMBER] = sql_integer(step->number),
            [SQL_STEPS_START] = sqlite_time(w, step->begin_ns),
            [SQL_STEPS_END] = sqlite_time(w, step->end_ns),
            [SQL_STEPS_MADE_OF] = sql_recorded(event_step_name(steps->kind, step)),
            [SQL_STEPS_PARTIAL] = sql_integer(step->is_partial),
        };
        error = sql_base_insert(w->base, SQL_STEPS, row);
    }
    return error;
}

static int put_losses(struct export_writer *w, const struct process *p)
{
    const struct losses *l = &w->walk->losses[p->index];
    int error = 0;
    for (unsigned i = 0; error == 0 && i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        struct sql_value row[LOSSES_COLUMNS] = {
            [SQL_LOSSES_PID] = sql_integer(sqlite_pid(w, p)),
            [SQL_LOSSES_NAME] = sql_text(info.key),
            [SQL_LOSSES_VALUE] = sql_integer(loss_value(l, i)),
            [SQL_LOSSES_TEXT] = sql_text(info.text),
            [SQL_LOSSES_WEIGHT] = sql_integer(info.weight != LOSS_NONE),
        };
        if (loss_value(l, i))
            error = sql_base_insert(w->base, SQL_LOSSES, row);
    }
    return error;
}

static int put_clocks(struct export_writer *w)
{
    const struct recording *rec = w->walk->rec;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < rec->host_count; i++) {
        const struct host *h = &rec->hosts[i];
        struct sql_value row[CLOCKS_COLUMNS] = {
            [SQL_CLOCKS_HOST] = sql_recorded(h->first->header.host),
            [SQL_CLOCKS_PROCESSES] = sql_integer(h->processes),
            [SQL_CLOCKS_REFERENCE] = sql_recorded(rec->hosts[h->reference].first->header.host),
            [SQL_CLOCKS_HOW] = sql_text(host_how(rec->hosts, i)),
        };
        if (h->source == HOST_CLOCK_COLLECTIVES) {
            row[SQL_CLOCKS_OFFSET] = sql_integer((uint64_t)h->offset_ns);
            row[SQL_CLOCKS_DRIFT] = sql_real(1e6 * h->drift);
            row[SQL_CLOCKS_UNCERTAINTY] = sql_integer(h->uncertainty_ns);
            row[SQL_CLOCKS_COLLECTIVES] = sql_integer(h->collectives);
        }
        error = sql_base_insert(w->base, SQL_CLOCKS, row);
    }
    return error;
}

static int put_meta(struct export_writer *w, const char *name, const char *value)
{
    struct sql_value row[META_COLUMNS] = {
        [SQL_META_NAME] = sql_text(name), [SQL_META_VALUE] = sql_text(value)};
    return sql_base_insert(w->base, SQL_META, row);
}

static int put_session(struct export_writer *w)
{
    uint64_t origin = w->walk->survey.origin_ns;
    time_t seconds = (time_t)(origin / 1000000000u);
    struct tm utc;
    char text[64] = "";
    if (gmtime_r(&seconds, &utc))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
    struct sql_value row[SESSION_COLUMNS] = {
        [SQL_SESSION_NS] = sql_integer(origin), [SQL_SESSION_UTC] = sql_text(text)};
    struct sql_value details[ANALYSIS_COLUMNS] = {
        [SQL_ANALYSIS_VM] = sql_integer(1ull << GLOBAL_MACHINE_SHIFT),
        [SQL_ANALYSIS_DURATION] = sql_integer(w->end_ns),
        [SQL_ANALYSIS_START] = sql_integer(0),
        [SQL_ANALYSIS_STOP] = sql_integer(w->end_ns),
    };
    int error = sql_base_insert(w->base, SQL_SESSION, row);
    if (error == 0)
        error = sql_base_insert(w->base, SQL_ANALYSIS, details);
    if (error == 0)
        error = put_meta(w, "EXPORT_PRODUCT_NAME", "gpuprof");
    if (error == 0)
        error = put_meta(w, "EXPORT_PRODUCT_VERSION", GPUPROF_RELEASE);
    if (error == 0)
        error = put_meta(w, "EXPORT_SCHEMA_VERSION", SCHEMA_VERSION);
    return error;
}

/* ---- before and behind the events ------------------------------------------------------------ */

int sqlite_head(struct export_writer *w)
{
    number_machines(w);
    return put_enumerations(w);
}

int sqlite_tail(struct export_writer *w)
{
    const struct recording *rec = w->walk->rec;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        error = put_process(w, p);
        if (error == 0)
            error = put_threads(w, p);
        if (error == 0)
            error = put_losses(w, p);
    }
    if (error == 0)
        error = put_devices(w);
    if (error == 0)
        error = put_steps(w);
    if (error == 0)
        error = put_clocks(w);
    if (error == 0)
        error = sqlite_idle(w);
    for (unsigned i = 0; error == 0 && i < ANALYSES_COUNT; i++)
        error = sqlite_sums(w, &w->scope.report->sums[i]);
    return error < 0 ? error : put_session(w);
}
