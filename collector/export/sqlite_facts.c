/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an SQLite export around the events. Before them: enumerations. After them:
 * processes, threads, devices, steps, losses, device time, the report's sums and the session. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/sqlite_tables.h"
#include "trace/trace_writer.h"

#define SCHEMA_VERSION "3.16.1" /* of nsys' tables */
#define COLUMNS_BYTES  2048     /* "calls INTEGER, ..." */

/* ---- enumerations ---------------------------------------------------------------------------- */

static const struct enumerator {
    void (*put)(struct export_writer *w, uint64_t id, const char *word, const char *label);
    uint32_t id;
    const char *name;
    const char *label;
} enumerators[] = {
    {put_COPY_KINDS, 0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
    {put_COPY_KINDS, 1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
    {put_COPY_KINDS, 2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
    {put_COPY_KINDS, 3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
    {put_COPY_KINDS, 4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
    {put_COPY_KINDS, 5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
    {put_COPY_KINDS, 6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
    {put_COPY_KINDS, 7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
    {put_COPY_KINDS, 8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
    {put_COPY_KINDS, 9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
    {put_COPY_KINDS, 10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
    {put_COPY_KINDS, 11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
    {put_COPY_KINDS, 12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
    {put_COPY_KINDS, 13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"},
    {put_MEMORY_KINDS, 0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
    {put_MEMORY_KINDS, 1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
    {put_MEMORY_KINDS, 2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
    {put_MEMORY_KINDS, 3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
    {put_MEMORY_KINDS, 4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
    {put_MEMORY_KINDS, 5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
    {put_MEMORY_KINDS, 6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
    {put_MEMORY_KINDS, 7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"},
    {put_OPERATIONS, 0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"},
    {put_OPERATIONS, 1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"},
    {put_SYNC_KINDS, 0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    {put_SYNC_KINDS, 1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
    {put_SYNC_KINDS, 2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
     "Stream wait sync"},
    {put_SYNC_KINDS, 3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
    {put_SYNC_KINDS, 4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"},
    {put_EVENT_TYPES, NSYS_NVTX_CATEGORY, "NvtxCategory", "NvtxCategory"},
    {put_EVENT_TYPES, NSYS_NVTX_MARK, "NvtxMark", "NvtxMark"},
    {put_EVENT_TYPES, NSYS_NVTX_PUSH_POP, "NvtxPushPopRange", "NvtxPushPopRange"},
    {put_EVENT_TYPES, NSYS_NVTX_START_END, "NvtxStartEndRange", "NvtxStartEndRange"},
    {put_EVENT_TYPES, NSYS_NVTX_DOMAIN, "NvtxDomainCreate", "NvtxDomainCreate"},
    {put_EVENT_CLASSES, NSYS_RUNTIME, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
    {put_EVENT_CLASSES, NSYS_DRIVER, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"},
    {put_EVENT_CLASSES, NSYS_OS, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OS runtime"},
};

/* ---- processes and threads ------------------------------------------------------------------- */

static void sqlite_facts_put_process(struct export_writer *w, const struct process *p)
{
    char title[1200], id[2 * sizeof p->header.process_id + 1];
    process_title(p, false, title, sizeof title);
    for (size_t i = 0; i < sizeof p->header.process_id; i++)
        snprintf(id + 2 * i, 3, "%02x", p->header.process_id[i]);
    put_PROCESSES(w, p, title);
    put_OWN_PROCESSES(w, p, id);
    for (uint32_t i = 0; i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        /* The name from NVTX, or else the system's. */
        if (t->number && !t->own)
            put_THREADS(w, p, t,
                        t->tid ? spans_label(&w->walk->spans, p, LABEL_OF_THREAD, 0, t->tid)
                               : NULL);
    }
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        uint64_t value = loss_value(&w->walk->losses[p->index], i);
        if (value)
            put_LOSSES(w, p, loss_info(i), value);
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

/*
 * Finds a device's number on its machine (`known`: (machine, UUID) or (machine, process, device) ->
 * number + 1, and (~machine, number) -> 1): its ordinal if that is free, so that kernels match.
 * Processes that see only some devices reuse ordinals for others, and a damaged file may have huge
 * ordinals. *is_new: first use of this device.
 */
static uint64_t gpu_number(struct key_map *known, uint64_t machine, const struct surveyed_device *d,
                           bool *is_new)
{
    bool has_uuid = d->uuid_high || d->uuid_low;
    struct key key = {machine, has_uuid ? d->uuid_high : d->process,
                      has_uuid ? d->uuid_low : ~d->limits.device};
    uint64_t found = key_map_get(known, key);
    *is_new = !found;
    if (found)
        return found - 1;
    uint64_t number = d->limits.device < SURVEY_DEVICES_MAX ? d->limits.device : 0;
    while (key_map_get(known, (struct key){~machine, number, 0}))
        number++;
    key_map_set(known, key, number + 1);
    key_map_set(known, (struct key){~machine, number, 0}, 1);
    return number;
}

static void sqlite_facts_put_devices(struct export_writer *w)
{
    struct key_map known = {0};
    for (uint32_t i = 0; i < w->walk->survey.device_count; i++) {
        const struct surveyed_device *d = &w->walk->survey.devices[i];
        const struct process *p = w->walk->rec->processes[d->process];
        char uuid[DEVICE_UUID_BYTES];
        bool is_new;
        uint64_t machine = sqlite_machine(p), number = gpu_number(&known, machine, d, &is_new);
        device_uuid_text(d->uuid_high, d->uuid_low, uuid);
        if (is_new)
            put_GPU(w, machine, number, d, uuid);
        put_CUDA_DEVICE(w, number, d, p->shown_pid, uuid);
    }
    key_map_release(&known);
}

/* ---- where the devices' time went: the report's gpu_time, idle and arrivals -------------------
 */

static void put_idle(struct export_writer *w, struct idle *d)
{
    struct idle_wait wait;
    for (uint32_t i = 0; i < d->device_count; i++) {
        put_GPU_TIME(w, &d->devices[i]);
        for (uint64_t k = 0; idle_wait_at(d, i, k, &wait); k++)
            put_RANK_WAITS(w, &d->devices[i], &wait);
    }
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        if (!row->did)
            put_IDLE(w, &d->devices[row->device], row, row->text);
    }
    for (uint32_t i = 0; i < d->arrivals.row_count; i++) {
        const struct arrival_row *row = &d->arrivals.rows[i];
        char communicator[sizeof "0x0123456789abcdef"];
        snprintf(communicator, sizeof communicator, "0x%016" PRIx64, row->communicator);
        put_ARRIVALS(w, d, row, communicator);
    }
}

/* ---- the report's tables of sums: GPUPROF_ and their name, with the columns of their JSON ------
 */

static const char *type_of(const struct column *c)
{
    switch (c->type) {
    case COLUMN_TEXT:
    case COLUMN_LINES:
    case COLUMN_JSON:
    case COLUMN_LIST: return "TEXT";
    case COLUMN_SHARE:
    case COLUMN_FINE_SHARE:
    case COLUMN_RATE: return "REAL";
    default: return "INTEGER";
    }
}

static bool has_column(const struct column *c)
{
    return c->key && c->doc;
}

static void sqlite_facts_make_table(struct export_writer *w, const struct table_info *info)
{
    char name[SQL_NAME_BYTES] = "", columns[COLUMNS_BYTES] = "";
    size_t length = 0;
    snprintf(name, sizeof name, "GPUPROF_%s", info->is_further ? info->key : info->name);
    for (char *p = name; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    for (unsigned i = 0; i < info->column_count && length < sizeof columns; i++)
        if (has_column(&info->columns[i]))
            length += (size_t)snprintf(columns + length, sizeof columns - length, "%s%s %s",
                                       length ? ", " : "", info->columns[i].key,
                                       type_of(&info->columns[i]));
    sql_base_add_table(w->base, name, columns);
}

static void put_sums_row(struct export_writer *w, const struct table *t, uint32_t place)
{
    struct cell cells[TABLE_COLUMNS_MAX];
    struct sql_value row[TABLE_COLUMNS_MAX] = {0}, *v = row;
    table_row(t, place, cells);
    for (unsigned i = 0; i < t->info->column_count; i++)
        if (has_column(&t->info->columns[i]))
            *v++ = cells[i].kind == CELL_NUMBER ? sql_integer(cells[i].number)
                   : cells[i].kind == CELL_REAL
                       ? sql_real(cells[i].real)
                       : IF(cells[i].kind == CELL_TEXT, sql_recorded(cells[i].text));
    sql_base_add_row(w->base, row, (unsigned)(v - row));
    cells_release(cells);
}

static void put_sums(struct export_writer *w, struct sums *s)
{
    if (!s->info || !*s->info->table.name) /* sums that are not shown */
        return;
    struct table t = {.info = &s->info->table, .source = s};
    sqlite_facts_make_table(w, t.info);
    table_begin(&t, &(struct table_view){.limit = ROWS_UNLIMITED}, FORMAT_JSON);
    for (uint32_t i = 0; i < t.shown; i++)
        put_sums_row(w, &t, i);
    table_end(&t);
}

/* ---- steps, hosts, the session ----------------------------------------------------------------
 */

static void put_steps(struct export_writer *w, const struct steps *steps)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        if (selection_reaches(w->scope.selection, step->process, step->begin_ns, step->end_ns))
            put_STEPS(w, step, step_made_of(steps, step));
    }
}

static void put_session(struct export_writer *w)
{
    uint64_t origin = w->walk->survey.origin_ns;
    time_t seconds = (time_t)(origin / 1000000000u);
    struct tm utc;
    char text[64] = "";
    if (gmtime_r(&seconds, &utc))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
    put_SESSION(w, origin, text);
    put_ANALYSIS(w, 1ull << GLOBAL_MACHINE_SHIFT);
    put_META(w, "EXPORT_PRODUCT_NAME", "gpuprof");
    put_META(w, "EXPORT_PRODUCT_VERSION", GPUPROF_RELEASE);
    put_META(w, "EXPORT_SCHEMA_VERSION", SCHEMA_VERSION);
}

/* ---- before and behind the events ------------------------------------------------------------ */

void sqlite_head(struct export_writer *w)
{
    for (size_t i = 0; i < sizeof enumerators / sizeof enumerators[0]; i++)
        enumerators[i].put(w, enumerators[i].id, enumerators[i].name, enumerators[i].label);
}

void sqlite_tail(struct export_writer *w)
{
    const struct recording *rec = w->walk->rec;
    for (uint32_t i = 0; i < rec->count; i++)
        sqlite_facts_put_process(w, rec->processes[i]);
    sqlite_facts_put_devices(w);
    put_steps(w, w->scope.steps);
    for (uint32_t i = 0; i < rec->host_count; i++) {
        const struct host *h = &rec->hosts[i];
        put_CLOCKS(w, h, &rec->hosts[h->reference], host_how(rec->hosts, i),
                   h->source == HOST_CLOCK_COLLECTIVES);
    }
    if (w->scope.report->idle)
        put_idle(w, w->scope.report->idle);
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        put_sums(w, &w->scope.report->sums[i]);
    put_session(w);
}
