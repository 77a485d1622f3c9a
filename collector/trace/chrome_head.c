/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a Chrome trace around and between the events: Kineto's head, names of processes and
 * rows, losses, metadata. It is small and made with cJSON. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rank.h"
#include "read/process.h"
#include "record/losses.h"
#include "trace/chrome.h"

/* Writes a cJSON object as an element of traceEvents and deletes it. */
static void put_object(struct trace_writer *w, cJSON *object, const char *before)
{
    char *text = memory_from(cJSON_PrintUnformatted(object));
    cJSON_Delete(object);
    output_write(w->out, before, strlen(before));
    output_write(w->out, text, strlen(text));
    cJSON_free(text);
}

struct number {
    const char *key;
    double value;
};
#define ADD_NUMBERS(object, ...) add_numbers(object, (const struct number[]){__VA_ARGS__, {0}})

static void add_numbers(cJSON *object, const struct number *what)
{
    for (; what->key; what++)
        cJSON_AddNumberToObject(object, what->key, what->value);
}

static void add_text(cJSON *object, const char *key, const char *text)
{
    char *clean = memory_from(json_clean(text, strlen(text)));
    cJSON_AddStringToObject(object, key, clean);
    free(clean);
}

/* Makes an event without a duration, with the members that all kinds have. */
static cJSON *event(const char *phase, const char *name, uint32_t pid, uint32_t tid)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "ph", phase);
    add_text(object, "name", name);
    ADD_NUMBERS(object, {"pid", pid}, {"tid", tid});
    return object;
}

void chrome_put_metadata(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                         const char *name, uint32_t sort_index)
{
    bool first = w->time.last_ns == UINT64_MAX;
    cJSON *object = event("M", what, pid, tid);
    ADD_NUMBERS(object, {"ts", 0});
    cJSON *args = cJSON_AddObjectToObject(object, "args");
    if (name)
        add_text(args, strcmp(what, "process_labels") == 0 ? "labels" : "name", name);
    else
        ADD_NUMBERS(args, {"sort_index", sort_index});
    w->time.last_ns = first ? 0 : w->time.last_ns;
    put_object(w, object, first ? "\n" : ",\n");
}

/* Describes a device with Kineto's keys; without a record, only its number. */
static cJSON *device_object(uint64_t number, const struct surveyed_device *d)
{
    const struct device_limits *l = d ? &d->limits : NULL;
    char uuid[DEVICE_UUID_BYTES];
    cJSON *object = cJSON_CreateObject();
    ADD_NUMBERS(object, {"id", (double)number});
    if (!d)
        return object;
    add_text(object, "name", d->name);
    device_uuid_text(d->uuid_high, d->uuid_low, uuid);
    if (uuid[0])
        cJSON_AddStringToObject(object, "uuid", uuid);
    ADD_NUMBERS(object, {"totalGlobalMem", (double)l->memory}, {"computeMajor", (double)l->major},
                {"computeMinor", (double)l->minor},
                {"maxThreadsPerMultiprocessor", (double)l->threads_max},
                {"maxBlocksPerMultiprocessor", (double)l->blocks_max},
                {"regsPerMultiprocessor", (double)l->registers_max},
                {"sharedMemPerBlock", (double)l->shared_block_max},
                {"sharedMemPerMultiprocessor", (double)l->shared_max},
                {"numSms", (double)l->multiprocessors}, {"warpSize", (double)l->warp});
    return object;
}

/* Puts each device at its ordinal's index, since readers use one for the other. Unrecorded devices
 * before it get a place too; readers know no others. */
static void add_devices(const struct trace_writer *w, const struct process *p, cJSON *devices)
{
    const struct survey *s = w->scope.survey;
    uint64_t places = 0;
    for (uint32_t i = 0; i < s->device_count; i++) {
        uint64_t device = s->devices[i].limits.device;
        if (s->devices[i].process == p->index && device < DEVICES_NUMBERED && device >= places)
            places = device + 1;
    }
    for (uint64_t device = 0; device < places; device++)
        cJSON_AddItemToArray(devices, device_object(device, survey_device(s, p, device)));
}

/* Returns true if an earlier process has all of its devices, at the same ordinals. */
static bool devices_are_there(const struct trace_writer *w, const struct process *p)
{
    const struct survey *s = w->scope.survey;
    for (uint32_t i = 0; i < s->device_count; i++) {
        const struct surveyed_device *mine = &s->devices[i];
        bool found = mine->process != p->index;
        for (uint32_t k = 0; k < s->device_count && !found; k++) {
            const struct surveyed_device *d = &s->devices[k];
            found = d->process < p->index &&
                    (!w->scope.only || w->scope.only == w->walk->rec->processes[d->process]) &&
                    d->uuid_high == mine->uuid_high && d->uuid_low == mine->uuid_low &&
                    d->limits.device == mine->limits.device && (d->uuid_high || d->uuid_low);
        }
        if (!found)
            return false;
    }
    return true;
}

/* Writes the id as hexadecimal digits to `text` and returns it. */
#define PROCESS_ID_BYTES (2 * sizeof((struct process *)0)->header.process_id + 1)
static char *process_id(const struct process *p, char *text)
{
    for (size_t i = 0; i < sizeof p->header.process_id; i++)
        snprintf(text + 2 * i, 3, "%02x", p->header.process_id[i]);
    return text;
}

/* Returns the number after `before` in the first process's value for the key that has it; 0:
 * none. */
static unsigned long meta_number(const struct trace_writer *w, const char *key, const char *before)
{
    unsigned long number = 0;
    for (uint32_t i = 0; i < w->shown.count && !number; i++) {
        const char *text = process_meta(w->shown.list[i], key);
        if (text && strncmp(text, before, strlen(before)) == 0)
            number = strtoul(text + strlen(before), NULL, 10);
    }
    return number <= UINT32_MAX ? number : 0;
}

/*
 * Writes what Kineto's readers need before the first event, and those facts of torch.profiler's
 * traces that hold for this one. A reader finds the rank by a pattern that needs white space after
 * the colon; the first match counts.
 */
static void kineto_head(struct trace_writer *w)
{
    uint64_t rank = w->scope.rank;
    bool has_shapes = false;
    char id[PROCESS_ID_BYTES];
    for (uint32_t i = 0; i < w->shown.count; i++) {
        const char *recorded = process_meta(w->shown.list[i], "pytorch");
        has_shapes |= recorded && strcmp(recorded, "shapes") == 0;
        rank = rank == RANK_NONE ? w->shown.list[i]->rank : rank;
    }
    output_print(w->out, "\"distributedInfo\":{\"rank\": %llu},",
                 (unsigned long long)(rank == RANK_NONE ? 0 : rank));
    if (w->shown.count == 1)
        output_print(w->out, "\"trace_id\":\"%s\",", process_id(w->shown.list[0], id));
    if (has_shapes)
        output_print(w->out, "\"record_shapes\":1,");
    unsigned long cupti = meta_number(w, "gpu_rows", "from CUPTI ");
    unsigned long driver = meta_number(w, "cuda_driver", "");
    if (cupti)
        output_print(w->out, "\"cupti_version\":%lu,", cupti);
    if (driver)
        output_print(w->out, "\"cuda_driver_version\":%lu,", driver);
    char *name = w->scope.name ? json_string(w->scope.name, strlen(w->scope.name)) : NULL;
    if (name)
        output_print(w->out, "\"traceName\":%s,", name);
    free(name);
    cJSON *devices = cJSON_CreateArray();
    for (uint32_t i = 0; i < w->shown.count; i++)
        if (!devices_are_there(w, w->shown.list[i]))
            add_devices(w, w->shown.list[i], devices);
    put_object(w, devices, "\"deviceProperties\":");
    output_write(w->out, ",", 1);
}

void chrome_head(struct trace_writer *w)
{
    w->time.last_ns = UINT64_MAX; /* nothing is written yet */
    output_print(w->out,
                 "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\","
                 "\"baseTimeNanoseconds\":%llu,",
                 (unsigned long long)w->time.origin_ns);
    if (w->scope.survey)
        kineto_head(w);
    output_print(w->out, "\"traceEvents\":[");
    for (uint32_t i = 0; i < w->shown.count; i++)
        chrome_name_process(w, w->shown.list[i]);
}

static cJSON *add_losses(cJSON *object, const struct losses *l)
{
    for (unsigned row = 0; row < LOSS_COUNT; row++)
        if (loss_value(l, row))
            cJSON_AddNumberToObject(object, loss_info(row).key, (double)loss_value(l, row));
    return object;
}

/* Writes gpuprof's own instant event, shown for the process ("p") or everywhere ("g"). */
static void put_note(struct trace_writer *w, const struct process *p, const char *scope,
                     uint64_t at_ns, const char *name, cJSON *args)
{
    char ts[JSON_DECIMAL_MAX + 5];
    *json_microseconds(ts, at_ns) = '\0';
    cJSON *object = event("i", name, p->shown_pid, p->shown_pid);
    cJSON_AddStringToObject(object, "s", scope);
    cJSON_AddStringToObject(object, "cat", "gpuprof");
    cJSON_AddRawToObject(object, "ts", ts);
    cJSON_AddItemToObject(object, "args", args);
    put_object(w, object, ",\n");
}

/* Writes a process's losses, and each feature that was given up to reduce overhead. */
static void put_notes(struct trace_writer *w, struct process *p, const struct losses *losses)
{
    char text[2048], name[2100];
    for (uint32_t i = 0; i < p->costs.step_count; i++) {
        const struct step_down *s = &p->costs.steps[i];
        uint64_t at_ns = s->begin_ns < CLOCK_NS_MAX ? s->begin_ns : CLOCK_NS_MAX;
        snprintf(name, sizeof name, "--overhead-max: %s", s->text);
        cJSON *args = cJSON_CreateObject();
        ADD_NUMBERS(args, {"share", (double)s->share / COST_PER_MILLION},
                    {"budget", (double)s->budget / COST_PER_MILLION});
        put_note(w, p, "g", chrome_time(w, clock_map_ns(&p->clock, at_ns)), name, args);
    }
    snprintf(name, sizeof name, "lost: %s", losses_text(losses, text, sizeof text));
    if (losses_weight(losses) != LOSS_NONE)
        put_note(w, p, "p", w->time.last_ns, name, add_losses(cJSON_CreateObject(), losses));
}

/* Returns the META records; a key that occurs more than once has an array. */
static cJSON *meta_object(const struct process *p)
{
    cJSON *object = cJSON_CreateObject();
    for (uint32_t i = 0; i < p->meta_count; i++) {
        const char *text = p->meta[i].text, *equals = strchr(text, '=');
        char *key = memory_from(json_clean(text, (size_t)(equals - text)));
        char *value = memory_from(json_clean(equals + 1, strlen(equals + 1)));
        cJSON *there = cJSON_GetObjectItemCaseSensitive(object, key);
        if (!there) {
            cJSON_AddStringToObject(object, key, value);
        } else {
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

static cJSON *cost_object(const struct cost_table *costs)
{
    const uint64_t *sum = costs->sum;
    cJSON *object = cJSON_CreateObject();
    ADD_NUMBERS(object, {"threads", (double)sum[COST_SUM_THREADS]},
                {"wall_ns", (double)sum[COST_SUM_WALL_NS]});
    if (cost_table_is_blind(costs)) {
        cJSON_AddNullToObject(object, "cost_ns");
        cJSON_AddNullToObject(object, "worst_share");
    } else {
        ADD_NUMBERS(
            object, {"cost_ns", (double)sum[COST_SUM_COST_NS]},
            {"worst_share", cost_share(sum[COST_SUM_WORST_COST_NS], sum[COST_SUM_WORST_WALL_NS])});
    }
    ADD_NUMBERS(object, {"own_ns", (double)sum[COST_SUM_OWN_NS]});
    cJSON *classes = cJSON_AddObjectToObject(object, "classes");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &costs->rows[i];
        if (!row->count && !row->total_ns)
            continue;
        cJSON *class = cJSON_AddObjectToObject(classes, cost_infos[i].name);
        ADD_NUMBERS(class, {"count", (double)row->count},
                    {row->unmeasured ? NULL : "total_ns", (double)row->total_ns});
        if (row->unmeasured)
            cJSON_AddNullToObject(class, "total_ns");
    }
    return object;
}

static cJSON *process_object(const struct process *p, const struct losses *losses)
{
    char id[PROCESS_ID_BYTES], title[1024];
    cJSON *object = cJSON_CreateObject();
    ADD_NUMBERS(object, {"pid", p->shown_pid}, {"real_pid", p->header.pid},
                {"parent_pid", p->header.parent_pid});
    add_text(object, "host", p->header.host);
    add_text(object, "title", process_title(p, true, title, sizeof title));
    if (process_rank(p))
        add_text(object, "rank", process_rank(p));
    if (process_local_rank(p))
        add_text(object, "local_rank", process_local_rank(p));
    if (p->job != JOB_NONE)
        ADD_NUMBERS(object, {"job", p->job});
    cJSON_AddStringToObject(object, "process_id", process_id(p, id));
    cJSON_AddItemToObject(object, "meta", meta_object(p));
    cJSON *notes = cJSON_AddArrayToObject(object, "notes");
    for (uint32_t i = 0; i < p->note_count; i++) {
        char *note = memory_from(json_clean(p->notes[i], strlen(p->notes[i])));
        cJSON_AddItemToArray(notes, cJSON_CreateString(note));
        free(note);
    }
    cJSON_AddItemToObject(object, "own_cost", cost_object(&p->costs));
    cJSON_AddItemToObject(object, "losses", add_losses(cJSON_CreateObject(), losses));
    return object;
}

/* Adds what --max-size left out: count and duration per kind, and the limits. */
static void add_left_out(const struct trace_writer *w, cJSON *other)
{
    static const char *const names[LEFT_OUT_KINDS] = {"gpu_work", "calls", "ranges", "host"};
    const struct thinning *t = w->scope.thinning;
    const struct chrome_totals *totals = &w->totals;
    cJSON *object = cJSON_AddObjectToObject(other, "left_out");
    cJSON_AddStringToObject(object, "rule",
                            "calls, work and ranges that lasted less than all_ns, but "
                            "for a share of those of some_ns and more");
    ADD_NUMBERS(object, {"all_ns", (double)t->all_ns}, {"some_ns", (double)t->some_ns},
                {"share", (double)t->share / (double)(1ull << 32)});
    for (unsigned i = 0; i < LEFT_OUT_KINDS; i++)
        if (i != LEFT_OUT_HOST || totals->left_out[i])
            ADD_NUMBERS(cJSON_AddObjectToObject(object, names[i]),
                        {"count", (double)totals->left_out[i]},
                        {"total_ns", (double)totals->left_out_ns[i]});
}

static void add_clocks(const struct recording *rec, cJSON *other)
{
    cJSON *clocks = cJSON_AddArrayToObject(other, "clocks");
    for (uint32_t i = 0; i < rec->host_count; i++) {
        const struct host *h = &rec->hosts[i];
        cJSON *object = cJSON_CreateObject();
        add_text(object, "host", h->first->header.host);
        ADD_NUMBERS(object, {"processes", h->processes});
        add_text(object, "reference", rec->hosts[h->reference].first->header.host);
        cJSON_AddStringToObject(object, "how", host_how(rec->hosts, i));
        if (h->source == HOST_CLOCK_COLLECTIVES)
            ADD_NUMBERS(object, {"offset_us", (double)h->offset_ns / 1e3},
                        {"drift_ppm", rint(1e12 * h->drift) / 1e6},
                        {"uncertainty_us", (double)h->uncertainty_ns / 1e3},
                        {"collectives", (double)h->collectives});
        cJSON_AddItemToArray(clocks, object);
    }
}

/* Writes the member stackFrames, if any event has a stack. */
static void put_stack_frames(struct trace_writer *w)
{
    const struct chrome_frames *f = &w->frames;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct shown_frame *frame = call_tree_frame(w->scope.tree, f->nodes[i]);
        const struct kernel_name *category =
            frame->kind == SHOWN_PYTHON || !frame->module ? frame->file : frame->module;
        uint32_t parent = call_tree_node(w->scope.tree, f->nodes[i])->parent;
        output_print(w->out, "%s\n\"%u\":{\"category\":", i ? "," : ",\n\"stackFrames\":{",
                     f->numbers[f->nodes[i] - 1]);
        output_write(w->out, category ? category->json : "\"\"",
                     category ? category->json_bytes : 2);
        output_write(w->out, ",\"name\":", 8);
        output_write(w->out, frame->json, frame->json_bytes);
        if (parent)
            output_print(w->out, ",\"parent\":\"%u\"", f->numbers[parent - 1]);
        output_write(w->out, "}", 1);
    }
    output_write(w->out, "}", f->count != 0);
}

/* Names threads as NVTX does. */
static void put_labels(struct trace_writer *w, const struct process *p)
{
    for (uint32_t i = 0; i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        const struct kernel_name *text =
            t->tid ? spans_label(&w->walk->spans, p, LABEL_OF_THREAD, 0, t->tid) : NULL;
        if (t->number && text)
            chrome_put_metadata(w, "thread_name", p->shown_pid, t->shown_tid, text->shown, 0);
    }
}

void chrome_tail(struct trace_writer *w)
{
    const struct recording *rec = w->walk->rec;
    struct losses sum = {0};
    char origin[JSON_DECIMAL_MAX + 1];
    cJSON *other = cJSON_CreateObject();
    *json_decimal(origin, w->time.origin_ns) = '\0';
    cJSON_AddStringToObject(other, "gpuprof", GPUPROF_RELEASE);
    cJSON_AddStringToObject(other, "origin_ns", origin);
    cJSON_AddStringToObject(other, "origin_clock", "CLOCK_REALTIME, nanoseconds since 1970");
    add_text(other, "gpu_rows",
             w->scope.only ? process_gpu_rows(w->scope.only) : recording_gpu_rows(rec));
    ADD_NUMBERS(other, {"calls", (double)w->totals.calls});
    if (w->scope.survey)
        ADD_NUMBERS(other, {"gpu_events", (double)w->totals.gpu_events});
    ADD_NUMBERS(other, {"unread_files", rec->unread_files});
    cJSON *losses = cJSON_AddObjectToObject(other, "losses");
    if (rec->host_count > 1)
        add_clocks(rec, other);
    if (w->scope.thinning)
        add_left_out(w, other);
    cJSON *processes = cJSON_AddArrayToObject(other, "processes");
    for (uint32_t i = 0; i < w->shown.count; i++) {
        struct process *p = w->shown.list[i];
        losses_add(&sum, &w->walk->losses[p->index]);
        put_labels(w, p);
        put_notes(w, p, &w->walk->losses[p->index]);
        cJSON_AddItemToArray(processes, process_object(p, &w->walk->losses[p->index]));
    }
    add_losses(losses, &sum);
    put_object(w, other, "\n],\"otherData\":");
    put_stack_frames(w);
    output_write(w->out, "}\n", 2);
}
