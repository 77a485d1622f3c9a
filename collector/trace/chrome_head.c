/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands before, between and behind the events of a Chrome trace: Kineto's head, names of
 * processes and rows, losses, where it all came from. Small, and made with cJSON.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "model/device_sources.h"
#include "rank.h"
#include "read/process_title.h"
#include "record/gpu_record.h"
#include "record/losses.h"
#include "trace/chrome.h"

#define DEVICE_PLACES_MAX 64                      /* readers know ordinals up to 63 */
#define SORT_PLACES       (1 + DEVICE_PLACES_MAX) /* a process's: its own, then its devices' */

/* Writes an object of cJSON as one element of traceEvents and deletes it. */
static int put_object(struct trace_writer *w, cJSON *object, const char *before)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text)
        return GPUPROF_NO_MEMORY;
    output_write(w->out, before, strlen(before));
    output_write(w->out, text, strlen(text));
    cJSON_free(text);
    return 0;
}

static bool add_text(cJSON *object, const char *key, const char *text)
{
    char *clean = json_clean(text, strlen(text));
    bool added = clean && cJSON_AddStringToObject(object, key, clean);
    free(clean);
    return added;
}

static int put_metadata(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                        const char *name, uint32_t sort_index)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "ph", "M");
    cJSON_AddStringToObject(object, "name", what);
    cJSON_AddNumberToObject(object, "pid", pid);
    cJSON_AddNumberToObject(object, "tid", tid);
    cJSON_AddNumberToObject(object, "ts", 0);
    cJSON *args = cJSON_AddObjectToObject(object, "args");
    const char *key = strcmp(what, "process_labels") == 0 ? "labels" : "name";
    bool ok = name ? add_text(args, key, name)
                   : cJSON_AddNumberToObject(args, "sort_index", sort_index) != NULL;
    if (!ok) {
        cJSON_Delete(object);
        return GPUPROF_NO_MEMORY;
    }
    bool first = w->last_ns == UINT64_MAX;
    w->last_ns = first ? 0 : w->last_ns;
    return put_object(w, object, first ? "\n" : ",\n");
}

static int put_thread(struct trace_writer *w, const struct process *p, const struct thread *t)
{
    char name[THREAD_NAME_BYTES_MAX + 64];
    if (t->tid == t->shown_tid || (t->tid && t->tid == p->header.pid))
        snprintf(name, sizeof name, "%s", t->name[0] ? t->name : "thread");
    else if (t->tid)
        snprintf(name, sizeof name, "%s (tid %u)", t->name[0] ? t->name : "thread", t->tid);
    else
        snprintf(name, sizeof name, "%s (number %u)", t->name[0] ? t->name : "thread", t->number);
    int error = put_metadata(w, "thread_name", p->shown_pid, t->shown_tid, name, 0);
    return error < 0 ? error
                     : put_metadata(w, "thread_sort_index", p->shown_pid, t->shown_tid, NULL,
                                    GPU_LANES_MAX + t->number);
}

int chrome_name_thread(struct trace_writer *w, const struct process *p, uint32_t tid,
                       const char *name)
{
    return put_metadata(w, "thread_name", p->shown_pid, tid, name, 0);
}

int chrome_name_device(struct trace_writer *w, struct process *p, uint64_t device, uint32_t *pid)
{
    struct key key = {p->index, device, 0};
    int error = gpu_rows_pid(&w->gpu_rows, p, device, pid);
    if (error < 0 || key_map_get(&w->named_devices, key))
        return error;
    if (key_map_set(&w->named_devices, key, 1) == GPUPROF_NO_MEMORY)
        return GPUPROF_NO_MEMORY;

    char title[1024 + DEVICE_NAME_BYTES + 64];
    char rank[RANK_TITLE_BYTES], command[1024];
    const struct surveyed_device *d = survey_device(&w->walk->survey, p, device);
    /* What tells it from the others first: viewers cut the end off. */
    snprintf(title, sizeof title, "%sGPU %llu%s%s: %s", process_rank_title(p, rank),
             (unsigned long long)device, d && d->name[0] ? " " : "", d ? d->name : "",
             process_command_title(p, true, command, sizeof command));
    error = put_metadata(w, "process_name", *pid, *pid, title, 0);
    snprintf(title, sizeof title, "GPU %llu", (unsigned long long)device);
    if (error == 0)
        error = put_metadata(w, "process_labels", *pid, *pid, title, 0);
    return error < 0
               ? error
               : put_metadata(w, "process_sort_index", *pid, *pid, NULL,
                              SORT_PLACES * p->index + 1 + (uint32_t)(device % DEVICE_PLACES_MAX));
}

static uint32_t shown_tid(const struct process *p, uint32_t thread)
{
    for (uint32_t i = 0; i < p->threads.count; i++)
        if (p->threads.threads[i]->index == thread)
            return p->threads.threads[i]->shown_tid;
    return 0;
}

/* Of a device: ranges above their stream, its overlapping slices below, synchronisations and what
 * slowed it down last. Of a process: steps above its threads, the others below. */
static uint32_t row_sort_index(const struct gpu_row *row)
{
    uint32_t stream = (uint32_t)(row->stream % (1u << 20)) << 8;
    switch (row->kind) {
    case ROW_STREAM: return stream + 128 + row->lane;
    case ROW_ANNOTATION: return stream + row->lane;
    case ROW_SYNC: return (1u << 28) + row->lane;
    case ROW_STEP: return row->lane;
    default: return (1u << 29) + row->lane;
    }
}

int chrome_name_row(struct trace_writer *w, struct gpu_row *row)
{
    static const char *const kinds[] = {
        [ROW_STREAM] = "stream",           [ROW_SYNC] = "synchronisation",
        [ROW_ANNOTATION] = "ranges on",    [ROW_OVERHEAD] = "overhead of CUDA and CUPTI",
        [ROW_RANGE] = "ranges of threads", [ROW_STEP] = "steps",
        [ROW_THROTTLE] = "throttled",      [ROW_HOST] = "host",
        [ROW_GIL] = "GIL: who holds it",
    };
    char name[128];
    char lane[32] = "";
    int error = 0;
    uint32_t pid;
    row->named = true;
    if (row->kind < ROW_OVERHEAD)
        error = chrome_name_device(w, row->process, row->device, &pid);
    if (row->lane && row->kind == ROW_ANNOTATION)
        snprintf(lane, sizeof lane, ", thread %u", shown_tid(row->process, row->thread));
    else if (row->lane && row->kind == ROW_THROTTLE)
        snprintf(lane, sizeof lane, " (%s)", throttle_words[row->lane % THROTTLES]);
    else if (row->kind == ROW_HOST && row->stream)
        snprintf(lane, sizeof lane, ", thread %u", shown_tid(row->process, row->thread));
    else if (row->lane)
        snprintf(lane, sizeof lane, " (overlapping %u)", row->lane);
    if (row->kind == ROW_STREAM || row->kind == ROW_ANNOTATION)
        snprintf(name, sizeof name, "%s%sstream %llu%s",
                 row->kind == ROW_STREAM ? "" : kinds[row->kind],
                 row->kind == ROW_STREAM ? "" : " ", (unsigned long long)row->stream, lane);
    else
        snprintf(name, sizeof name, "%s%s", kinds[row->kind], lane);
    if (error == 0)
        error = put_metadata(w, "thread_name", row->pid, row->tid, name, 0);
    return error < 0 ? error
                     : put_metadata(w, "thread_sort_index", row->pid, row->tid, NULL,
                                    row_sort_index(row));
}

static int put_process(struct trace_writer *w, const struct process *p)
{
    char title[1024];
    process_title(p, p->shown_pid != p->header.pid, title, sizeof title);
    int error = put_metadata(w, "process_name", p->shown_pid, p->shown_pid, title, 0);
    if (error == 0 && w->scope.survey)
        error = put_metadata(w, "process_labels", p->shown_pid, p->shown_pid, "CPU", 0);
    if (error == 0)
        error = put_metadata(w, "process_sort_index", p->shown_pid, p->shown_pid, NULL,
                             SORT_PLACES * p->index);
    for (uint32_t i = 0; error == 0 && i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        if (t->number == 0)
            continue;
        trace_row_name(chrome_row(w, t->index), p->shown_pid, t->shown_tid);
        if (!t->own)
            error = put_thread(w, p, t);
    }
    return error;
}

/* As Kineto names them. */
static cJSON *device_object(const struct surveyed_device *d)
{
    const struct device_limits *l = &d->limits;
    const struct {
        const char *key;
        uint64_t value;
    } fields[] = {
        {"totalGlobalMem", l->memory},
        {"computeMajor", l->major},
        {"computeMinor", l->minor},
        {"maxThreadsPerMultiprocessor", l->threads_max},
        {"maxBlocksPerMultiprocessor", l->blocks_max},
        {"regsPerMultiprocessor", l->registers_max},
        {"sharedMemPerBlock", l->shared_block_max},
        {"sharedMemPerMultiprocessor", l->shared_max},
        {"numSms", l->multiprocessors},
        {"warpSize", l->warp},
    };
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "id", (double)l->device);
    add_text(object, "name", d->name);
    if (d->uuid_high || d->uuid_low) {
        char uuid[48];
        snprintf(uuid, sizeof uuid, "GPU-%08x-%04x-%04x-%04x-%012llx",
                 (unsigned)(d->uuid_high >> 32), (unsigned)(d->uuid_high >> 16 & 0xffff),
                 (unsigned)(d->uuid_high & 0xffff), (unsigned)(d->uuid_low >> 48),
                 (unsigned long long)(d->uuid_low & 0xffffffffffffu));
        cJSON_AddStringToObject(object, "uuid", uuid);
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        cJSON_AddNumberToObject(object, fields[i].key, (double)fields[i].value);
    return object;
}

/*
 * The devices of a process, each at the place of its ordinal: readers take the one for the other.
 * So those before it that no record describes have a place, too.
 */
static void add_devices(const struct trace_writer *w, const struct process *p, cJSON *devices)
{
    const struct survey *s = w->scope.survey;
    uint64_t places = 0;
    for (uint32_t i = 0; i < s->device_count; i++) {
        uint64_t device = s->devices[i].limits.device;
        if (s->devices[i].process == p->index && device < DEVICE_PLACES_MAX && device >= places)
            places = device + 1;
    }
    for (uint64_t device = 0; device < places; device++) {
        const struct surveyed_device *d = survey_device(s, p, device);
        cJSON *object = d ? device_object(d) : cJSON_CreateObject();
        if (!d)
            cJSON_AddNumberToObject(object, "id", (double)device);
        cJSON_AddItemToArray(devices, object);
    }
    for (uint32_t i = 0; i < s->device_count; i++)
        if (s->devices[i].process == p->index && s->devices[i].limits.device >= DEVICE_PLACES_MAX)
            cJSON_AddItemToArray(devices, device_object(&s->devices[i]));
}

/* Whether a process before this one has each device of it, at the same ordinal. */
static bool devices_are_there(const struct trace_writer *w, const struct process *p)
{
    const struct survey *s = w->scope.survey;
    for (uint32_t i = 0; i < s->device_count; i++) {
        const struct surveyed_device *mine = &s->devices[i];
        bool found = mine->process != p->index;
        for (uint32_t k = 0; k < s->device_count && !found; k++) {
            const struct surveyed_device *d = &s->devices[k];
            found = d->process < p->index &&
                    (!w->scope.only || w->scope.only == w->rec->processes[d->process]) &&
                    d->uuid_high == mine->uuid_high && d->uuid_low == mine->uuid_low &&
                    d->limits.device == mine->limits.device && (d->uuid_high || d->uuid_low);
        }
        if (!found)
            return false;
    }
    return true;
}

/* As hexadecimal digits; returns `text`. */
#define PROCESS_ID_BYTES (2 * sizeof((struct process *)0)->header.process_id + 1)
static char *process_id(const struct process *p, char *text)
{
    for (size_t i = 0; i < sizeof p->header.process_id; i++)
        snprintf(text + 2 * i, 3, "%02x", p->header.process_id[i]);
    return text;
}

/* The number that stands behind `before` in what the first process says that says so; 0: none. */
static unsigned long meta_number(const struct trace_writer *w, const char *key, const char *before)
{
    unsigned long number = 0;
    for (uint32_t i = 0; i < w->process_count && !number; i++) {
        const char *text = process_meta(w->processes[i], key);
        if (text && strncmp(text, before, strlen(before)) == 0)
            number = strtoul(text + strlen(before), NULL, 10);
    }
    return number <= UINT32_MAX ? number : 0;
}

static bool has_shapes(const struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->process_count; i++) {
        const char *recorded = process_meta(w->processes[i], "pytorch");
        if (recorded && strcmp(recorded, "shapes") == 0)
            return true;
    }
    return false;
}

/* What torch.profiler says of its traces, where it is so of this one. */
static void torch_head(struct trace_writer *w)
{
    char text[192], id[PROCESS_ID_BYTES];
    int at = 0;
    unsigned long cupti = meta_number(w, "gpu_rows", "from CUPTI ");
    unsigned long driver = meta_number(w, "cuda_driver", "");
    if (w->process_count == 1)
        at += snprintf(text + at, sizeof text - (size_t)at, "\"trace_id\":\"%s\",",
                       process_id(w->processes[0], id));
    if (has_shapes(w))
        at += snprintf(text + at, sizeof text - (size_t)at, "\"record_shapes\":1,");
    if (cupti)
        at += snprintf(text + at, sizeof text - (size_t)at, "\"cupti_version\":%lu,", cupti);
    if (driver)
        at += snprintf(text + at, sizeof text - (size_t)at, "\"cuda_driver_version\":%lu,", driver);
    output_write(w->out, text, (size_t)at);
}

static uint64_t shown_rank(const struct trace_writer *w)
{
    if (w->scope.rank != RANK_NONE)
        return w->scope.rank;
    for (uint32_t i = 0; i < w->process_count; i++)
        if (w->processes[i]->rank != RANK_NONE)
            return w->processes[i]->rank;
    return 0;
}

/*
 * What Kineto's readers look for before the first event. One of them finds the rank by a pattern
 * that needs white space behind the colon, at the first place where it fits.
 */
static int kineto_head(struct trace_writer *w)
{
    char text[128];
    int length = snprintf(text, sizeof text, "\"distributedInfo\":{\"rank\": %llu},",
                          (unsigned long long)shown_rank(w));
    output_write(w->out, text, (size_t)length);
    torch_head(w);
    if (w->scope.name) {
        char *name = json_string(w->scope.name, strlen(w->scope.name));
        if (!name)
            return GPUPROF_NO_MEMORY;
        output_write(w->out, "\"traceName\":", 12);
        output_write(w->out, name, strlen(name));
        output_write(w->out, ",", 1);
        free(name);
    }
    cJSON *devices = cJSON_CreateArray();
    for (uint32_t i = 0; i < w->process_count; i++)
        if (!devices_are_there(w, w->processes[i]))
            add_devices(w, w->processes[i], devices);
    int error = put_object(w, devices, "\"deviceProperties\":");
    output_write(w->out, ",", 1);
    return error;
}

int chrome_head(struct trace_writer *w)
{
    char head[256];
    w->last_ns = UINT64_MAX; /* nothing is written yet */
    int length = snprintf(head, sizeof head,
                          "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\","
                          "\"baseTimeNanoseconds\":%llu,",
                          (unsigned long long)w->origin_ns);
    output_write(w->out, head, (size_t)length);
    int error = w->scope.survey ? kineto_head(w) : 0;
    output_write(w->out, "\"traceEvents\":[", 15);
    for (uint32_t i = 0; error == 0 && i < w->process_count; i++)
        error = put_process(w, w->processes[i]);
    return error;
}

static cJSON *losses_object(const struct losses *l)
{
    cJSON *object = cJSON_CreateObject();
    for (unsigned row = 0; row < LOSS_COUNT; row++) {
        uint64_t value = loss_value(l, row);
        if (value)
            cJSON_AddNumberToObject(object, loss_info(row).key, (double)value);
    }
    return object;
}

/* An instant event of gpuprof's own, shown for the process ("p") or everywhere ("g"). */
static int put_note(struct trace_writer *w, const struct process *p, const char *scope,
                    uint64_t at_ns, const char *name, cJSON *args)
{
    char ts[JSON_DECIMAL_MAX + 5];
    *json_microseconds(ts, at_ns) = '\0';
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "ph", "i");
    cJSON_AddStringToObject(object, "s", scope);
    cJSON_AddStringToObject(object, "cat", "gpuprof");
    add_text(object, "name", name);
    cJSON_AddNumberToObject(object, "pid", p->shown_pid);
    cJSON_AddNumberToObject(object, "tid", p->shown_pid);
    cJSON_AddRawToObject(object, "ts", ts);
    cJSON_AddItemToObject(object, "args", args);
    return put_object(w, object, ",\n");
}

/* A process's losses, in the trace itself. */
static int put_losses(struct trace_writer *w, const struct process *p)
{
    char text[2048];
    char name[2100];
    const struct losses *losses = &w->walk->losses[p->index];
    if (losses_weight(losses) == LOSS_NONE)
        return 0;
    snprintf(name, sizeof name, "lost: %s", losses_text(losses, text, sizeof text));
    return put_note(w, p, "p", w->last_ns, name, losses_object(losses));
}

/* One for each thing that was given up to cost less. */
static int put_steps(struct trace_writer *w, struct process *p)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->costs.step_count; i++) {
        const struct step_down *s = &p->costs.steps[i];
        char name[STEP_DOWN_TEXT_BYTES + 32];
        uint64_t at_ns = s->begin_ns < CLOCK_NS_MAX ? s->begin_ns : CLOCK_NS_MAX;
        snprintf(name, sizeof name, "--overhead-max: %s", s->text);
        cJSON *args = cJSON_CreateObject();
        cJSON_AddNumberToObject(args, "share", (double)s->share / COST_PER_MILLION);
        cJSON_AddNumberToObject(args, "budget", (double)s->budget / COST_PER_MILLION);
        error = put_note(w, p, "g", chrome_time(w, clock_map_ns(&p->clock, at_ns)), name, args);
    }
    return error;
}

/* Key and value of the META records; a key that occurs more than once has an array. */
static cJSON *meta_object(const struct process *p)
{
    cJSON *object = cJSON_CreateObject();
    for (uint32_t i = 0; i < p->meta_count; i++) {
        const char *text = p->meta[i].text, *equals = strchr(text, '=');
        char *key = json_clean(text, (size_t)(equals - text));
        char *value = json_clean(equals + 1, strlen(equals + 1));
        cJSON *there = key ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
        if (key && value && !there) {
            cJSON_AddStringToObject(object, key, value);
        } else if (key && value) {
            if (!cJSON_IsArray(there)) {
                cJSON *array = cJSON_CreateArray();
                cJSON_AddItemToArray(array, cJSON_DetachItemViaPointer(object, there));
                cJSON_AddItemToObject(object, key, array);
                there = array;
            }
            cJSON_AddItemToArray(there, cJSON_CreateString(value));
        }
        free(key);
        free(value);
    }
    return object;
}

/* What gpuprof itself has cost the process. */
static cJSON *cost_object(const struct cost_table *costs)
{
    const uint64_t *sum = costs->sum;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "threads", (double)sum[COST_SUM_THREADS]);
    cJSON_AddNumberToObject(object, "wall_ns", (double)sum[COST_SUM_WALL_NS]);
    if (cost_table_is_blind(costs)) {
        cJSON_AddNullToObject(object, "cost_ns");
        cJSON_AddNullToObject(object, "worst_share");
    } else {
        cJSON_AddNumberToObject(object, "cost_ns", (double)sum[COST_SUM_COST_NS]);
        cJSON_AddNumberToObject(
            object, "worst_share",
            cost_share(sum[COST_SUM_WORST_COST_NS], sum[COST_SUM_WORST_WALL_NS]));
    }
    cJSON_AddNumberToObject(object, "own_ns", (double)sum[COST_SUM_OWN_NS]);
    cJSON *classes = cJSON_AddObjectToObject(object, "classes");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &costs->rows[i];
        if (!row->count && !row->total_ns)
            continue;
        cJSON *class = cJSON_AddObjectToObject(classes, cost_infos[i].name);
        cJSON_AddNumberToObject(class, "count", (double)row->count);
        if (row->unmeasured)
            cJSON_AddNullToObject(class, "total_ns");
        else
            cJSON_AddNumberToObject(class, "total_ns", (double)row->total_ns);
    }
    return object;
}

static cJSON *process_object(const struct process *p, const struct losses *losses)
{
    char id[PROCESS_ID_BYTES];
    char title[1024];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "pid", p->shown_pid);
    cJSON_AddNumberToObject(object, "real_pid", p->header.pid);
    cJSON_AddNumberToObject(object, "parent_pid", p->header.parent_pid);
    add_text(object, "host", p->header.host);
    add_text(object, "title", process_title(p, true, title, sizeof title));
    if (process_rank(p))
        add_text(object, "rank", process_rank(p));
    if (process_local_rank(p))
        add_text(object, "local_rank", process_local_rank(p));
    if (p->job != JOB_NONE)
        cJSON_AddNumberToObject(object, "job", p->job);
    cJSON_AddStringToObject(object, "process_id", process_id(p, id));
    cJSON_AddItemToObject(object, "meta", meta_object(p));
    cJSON *notes = cJSON_AddArrayToObject(object, "notes");
    for (uint32_t i = 0; i < p->note_count; i++) {
        char *note = json_clean(p->notes[i], strlen(p->notes[i]));
        cJSON_AddItemToArray(notes, cJSON_CreateString(note ? note : ""));
        free(note);
    }
    cJSON_AddItemToObject(object, "own_cost", cost_object(&p->costs));
    cJSON_AddItemToObject(object, "losses", losses_object(losses));
    return object;
}

/* What --max-size has left out: by kind how many and for how long; the rest as thinning.h has it.
 */
static cJSON *left_out_object(const struct trace_writer *w)
{
    const struct thinning *t = w->scope.thinning;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "rule",
                            "calls, work and ranges that lasted less than all_ns, but "
                            "for a share of those of some_ns and more");
    cJSON_AddNumberToObject(object, "all_ns", (double)t->all_ns);
    cJSON_AddNumberToObject(object, "some_ns", (double)t->some_ns);
    cJSON_AddNumberToObject(object, "share", (double)t->share / (double)(1ull << 32));
    for (unsigned i = 0; i < LEFT_OUT_KINDS; i++) {
        if (i == LEFT_OUT_HOST && !w->left_out[i])
            continue;
        cJSON *kind = cJSON_AddObjectToObject(object, left_out_names[i]);
        cJSON_AddNumberToObject(kind, "count", (double)w->left_out[i]);
        cJSON_AddNumberToObject(kind, "total_ns", (double)w->left_out_ns[i]);
    }
    return object;
}

/* How well the hosts of this trace stand on one clock. */
static void add_clocks(const struct trace_writer *w, cJSON *other)
{
    cJSON *clocks = cJSON_AddArrayToObject(other, "clocks");
    for (uint32_t i = 0; i < w->rec->host_count; i++) {
        const struct host *h = &w->rec->hosts[i];
        cJSON *object = cJSON_CreateObject();
        add_text(object, "host", h->first->header.host);
        cJSON_AddNumberToObject(object, "processes", h->processes);
        add_text(object, "reference", w->rec->hosts[h->reference].first->header.host);
        cJSON_AddStringToObject(object, "how", host_how(w->rec->hosts, i));
        if (h->source == HOST_CLOCK_COLLECTIVES) {
            cJSON_AddNumberToObject(object, "offset_us", (double)h->offset_ns / 1e3);
            cJSON_AddNumberToObject(object, "drift_ppm", rint(1e12 * h->drift) / 1e6);
            cJSON_AddNumberToObject(object, "uncertainty_us", (double)h->uncertainty_ns / 1e3);
            cJSON_AddNumberToObject(object, "collectives", (double)h->collectives);
        }
        cJSON_AddItemToArray(clocks, object);
    }
}

int chrome_tail(struct trace_writer *w)
{
    struct losses sum = {0};
    char origin[JSON_DECIMAL_MAX + 1];
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->process_count; i++) {
        losses_add(&sum, &w->walk->losses[w->processes[i]->index]);
        error = put_steps(w, w->processes[i]);
        if (error == 0)
            error = put_losses(w, w->processes[i]);
    }
    *json_decimal(origin, w->origin_ns) = '\0';
    cJSON *other = cJSON_CreateObject();
    cJSON_AddStringToObject(other, "gpuprof", GPUPROF_RELEASE);
    cJSON_AddStringToObject(other, "origin_ns", origin);
    cJSON_AddStringToObject(other, "origin_clock", "CLOCK_REALTIME, nanoseconds since 1970");
    add_text(other, "gpu_rows",
             w->scope.only ? process_gpu_rows(w->scope.only) : recording_gpu_rows(w->rec));
    cJSON_AddNumberToObject(other, "calls", (double)w->calls);
    if (w->scope.survey)
        cJSON_AddNumberToObject(other, "gpu_events", (double)w->gpu_events);
    cJSON_AddNumberToObject(other, "unread_files", w->rec->unread_files);
    cJSON_AddItemToObject(other, "losses", losses_object(&sum));
    if (w->rec->host_count > 1)
        add_clocks(w, other);
    if (w->scope.thinning)
        cJSON_AddItemToObject(other, "left_out", left_out_object(w));
    cJSON *processes = cJSON_AddArrayToObject(other, "processes");
    for (uint32_t i = 0; i < w->process_count; i++)
        cJSON_AddItemToArray(
            processes, process_object(w->processes[i], &w->walk->losses[w->processes[i]->index]));
    if (error == 0)
        error = put_object(w, other, "\n],\"otherData\":");
    else
        cJSON_Delete(other);
    chrome_stack_frames(w);
    output_write(w->out, "}\n", 2);
    return error;
}
