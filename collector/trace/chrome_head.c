/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands before, between and behind the events of a Chrome trace: Kineto's head, names of
 * processes and rows, losses, where it all came from.
 */
#include <float.h>
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

/* Writes `before`, then the number, exactly where 15 digits do not tell it. */
static void put_number(const struct trace_writer *w, const char *before, double number)
{
    char text[40];
    snprintf(text, sizeof text, "%.15g", number);
    if (fabs(strtod(text, NULL) - number) > fabs(number) * DBL_EPSILON)
        snprintf(text, sizeof text, "%.17g", number);
    output_print(w->out, "%s%s", before, text);
}

static void put_text(const struct trace_writer *w, const char *text)
{
    output_write(w->out, text, strlen(text));
}

/* Up to the metadata's argument. */
static void begin_metadata(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid)
{
    bool is_first = w->last_ns == UINT64_MAX;
    w->last_ns = is_first ? 0 : w->last_ns;
    output_print(w->out,
                 "%s{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":0,\"args\":{",
                 is_first ? "\n" : ",\n", what, pid, tid);
}

static void put_name(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                     const char *name)
{
    begin_metadata(w, what, pid, tid);
    output_json(w->out, strcmp(what, "process_labels") == 0 ? "\"labels\":" : "\"name\":", name);
    put_text(w, "}}");
}

static void put_sort_index(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                           uint32_t index)
{
    begin_metadata(w, what, pid, tid);
    output_print(w->out, "\"sort_index\":%u}}", index);
}

static void put_thread(struct trace_writer *w, const struct process *p, const struct thread *t)
{
    char name[THREAD_NAME_BYTES_MAX + 64];
    if (t->tid == t->shown_tid || (t->tid && t->tid == p->header.pid))
        snprintf(name, sizeof name, "%s", t->name[0] ? t->name : "thread");
    else if (t->tid)
        snprintf(name, sizeof name, "%s (tid %u)", t->name[0] ? t->name : "thread", t->tid);
    else
        snprintf(name, sizeof name, "%s (number %u)", t->name[0] ? t->name : "thread", t->number);
    put_name(w, "thread_name", p->shown_pid, t->shown_tid, name);
    put_sort_index(w, "thread_sort_index", p->shown_pid, t->shown_tid, GPU_LANES_MAX + t->number);
}

void chrome_name_thread(struct trace_writer *w, const struct process *p, uint32_t tid,
                        const char *name)
{
    put_name(w, "thread_name", p->shown_pid, tid, name);
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
    put_name(w, "process_name", *pid, *pid, title);
    snprintf(title, sizeof title, "GPU %llu", (unsigned long long)device);
    put_name(w, "process_labels", *pid, *pid, title);
    put_sort_index(w, "process_sort_index", *pid, *pid,
                   SORT_PLACES * p->index + 1 + (uint32_t)(device % DEVICE_PLACES_MAX));
    return 0;
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
        [ROW_THROTTLE] = "throttled",
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
    else if (row->lane)
        snprintf(lane, sizeof lane, " (overlapping %u)", row->lane);
    if (row->kind == ROW_STREAM || row->kind == ROW_ANNOTATION)
        snprintf(name, sizeof name, "%s%sstream %llu%s",
                 row->kind == ROW_STREAM ? "" : kinds[row->kind],
                 row->kind == ROW_STREAM ? "" : " ", (unsigned long long)row->stream, lane);
    else
        snprintf(name, sizeof name, "%s%s", kinds[row->kind], lane);
    if (error < 0)
        return error;
    put_name(w, "thread_name", row->pid, row->tid, name);
    put_sort_index(w, "thread_sort_index", row->pid, row->tid, row_sort_index(row));
    return 0;
}

static void put_process(struct trace_writer *w, const struct process *p)
{
    char title[1024];
    process_title(p, p->shown_pid != p->header.pid, title, sizeof title);
    put_name(w, "process_name", p->shown_pid, p->shown_pid, title);
    if (w->scope.survey)
        put_name(w, "process_labels", p->shown_pid, p->shown_pid, "CPU");
    put_sort_index(w, "process_sort_index", p->shown_pid, p->shown_pid, SORT_PLACES * p->index);
    for (uint32_t i = 0; i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        if (t->number == 0)
            continue;
        trace_row_name(chrome_row(w, t->index), p->shown_pid, t->shown_tid);
        if (!t->own)
            put_thread(w, p, t);
    }
}

/* As Kineto names them. */
static void put_device(const struct trace_writer *w, const char *before,
                       const struct surveyed_device *d)
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
    output_print(w->out, "%s{\"id\":%llu", before, (unsigned long long)l->device);
    output_json(w->out, ",\"name\":", d->name);
    if (d->uuid_high || d->uuid_low)
        output_print(w->out, ",\"uuid\":\"GPU-%08x-%04x-%04x-%04x-%012llx\"",
                     (unsigned)(d->uuid_high >> 32), (unsigned)(d->uuid_high >> 16 & 0xffff),
                     (unsigned)(d->uuid_high & 0xffff), (unsigned)(d->uuid_low >> 48),
                     (unsigned long long)(d->uuid_low & 0xffffffffffffu));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        output_print(w->out, ",\"%s\":%llu", fields[i].key, (unsigned long long)fields[i].value);
    put_text(w, "}");
}

/*
 * The devices of a process, each at the place of its ordinal: readers take the one for the other.
 * So those before it that no record describes have a place, too. Returns what is to separate the
 * next.
 */
static const char *put_devices(const struct trace_writer *w, const struct process *p,
                               const char *separator)
{
    const struct survey *s = w->scope.survey;
    uint64_t places = 0;
    for (uint32_t i = 0; i < s->device_count; i++) {
        uint64_t device = s->devices[i].limits.device;
        if (s->devices[i].process == p->index && device < DEVICE_PLACES_MAX && device >= places)
            places = device + 1;
    }
    for (uint64_t device = 0; device < places; device++, separator = ",") {
        const struct surveyed_device *d = survey_device(s, p, device);
        if (d)
            put_device(w, separator, d);
        else
            output_print(w->out, "%s{\"id\":%llu}", separator, (unsigned long long)device);
    }
    for (uint32_t i = 0; i < s->device_count; i++)
        if (s->devices[i].process == p->index && s->devices[i].limits.device >= DEVICE_PLACES_MAX) {
            put_device(w, separator, &s->devices[i]);
            separator = ",";
        }
    return separator;
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
    char id[PROCESS_ID_BYTES];
    unsigned long cupti = meta_number(w, "gpu_rows", "from CUPTI ");
    unsigned long driver = meta_number(w, "cuda_driver", "");
    if (w->process_count == 1)
        output_print(w->out, "\"trace_id\":\"%s\",", process_id(w->processes[0], id));
    if (has_shapes(w))
        put_text(w, "\"record_shapes\":1,");
    if (cupti)
        output_print(w->out, "\"cupti_version\":%lu,", cupti);
    if (driver)
        output_print(w->out, "\"cuda_driver_version\":%lu,", driver);
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
static void kineto_head(struct trace_writer *w)
{
    output_print(w->out, "\"distributedInfo\":{\"rank\": %llu},",
                 (unsigned long long)shown_rank(w));
    torch_head(w);
    if (w->scope.name) {
        output_json(w->out, "\"traceName\":", w->scope.name);
        put_text(w, ",");
    }
    const char *separator = "";
    put_text(w, "\"deviceProperties\":[");
    for (uint32_t i = 0; i < w->process_count; i++)
        if (!devices_are_there(w, w->processes[i]))
            separator = put_devices(w, w->processes[i], separator);
    put_text(w, "],");
}

void chrome_head(struct trace_writer *w)
{
    w->last_ns = UINT64_MAX; /* nothing is written yet */
    output_print(w->out,
                 "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%llu,",
                 (unsigned long long)w->origin_ns);
    if (w->scope.survey)
        kineto_head(w);
    put_text(w, "\"traceEvents\":[");
    for (uint32_t i = 0; i < w->process_count; i++)
        put_process(w, w->processes[i]);
}

static void put_losses(struct trace_writer *w, const struct losses *l)
{
    const char *separator = "";
    put_text(w, "{");
    for (unsigned row = 0; row < LOSS_COUNT; row++) {
        uint64_t value = loss_value(l, row);
        if (!value)
            continue;
        output_print(w->out, "%s\"%s\":", separator, loss_info(row).key);
        put_number(w, "", (double)value);
        separator = ",";
    }
    put_text(w, "}");
}

/* An instant event of gpuprof's own, up to its arguments, shown for the process ("p") or everywhere
 * ("g"). */
static void begin_note(struct trace_writer *w, const struct process *p, const char *scope,
                       uint64_t at_ns, const char *name)
{
    char ts[JSON_DECIMAL_MAX + 5];
    *json_microseconds(ts, at_ns) = '\0';
    output_print(w->out, ",\n{\"ph\":\"i\",\"s\":\"%s\",\"cat\":\"gpuprof\",", scope);
    output_json(w->out, "\"name\":", name);
    output_print(w->out, ",\"pid\":%u,\"tid\":%u,\"ts\":%s,\"args\":", p->shown_pid, p->shown_pid,
                 ts);
}

/* A process's losses, in the trace itself. */
static void note_losses(struct trace_writer *w, const struct process *p)
{
    char text[2048];
    char name[2100];
    const struct losses *losses = &w->walk->losses[p->index];
    if (losses_weight(losses) == LOSS_NONE)
        return;
    snprintf(name, sizeof name, "lost: %s", losses_text(losses, text, sizeof text));
    begin_note(w, p, "p", w->last_ns, name);
    put_losses(w, losses);
    put_text(w, "}");
}

/* One for each thing that was given up to cost less. */
static void note_steps(struct trace_writer *w, struct process *p)
{
    for (uint32_t i = 0; i < p->costs.step_count; i++) {
        const struct step_down *s = &p->costs.steps[i];
        char name[STEP_DOWN_TEXT_BYTES + 32];
        uint64_t at_ns = s->begin_ns < CLOCK_NS_MAX ? s->begin_ns : CLOCK_NS_MAX;
        snprintf(name, sizeof name, "--overhead-max: %s", s->text);
        begin_note(w, p, "g", chrome_time(w, clock_map_ns(&p->clock, at_ns)), name);
        put_number(w, "{\"share\":", (double)s->share / COST_PER_MILLION);
        put_number(w, ",\"budget\":", (double)s->budget / COST_PER_MILLION);
        put_text(w, "}}");
    }
}

static bool has_key(const char *meta, const char *key, size_t bytes)
{
    return strncmp(meta, key, bytes) == 0 && meta[bytes] == '=';
}

/* Key and value of the META records; a key that occurs more than once has an array, where it occurs
 * for the second time. */
static void put_meta(struct trace_writer *w, const struct process *p)
{
    const char *before = "{";
    for (uint32_t i = 0; i < p->meta_count; i++) {
        const char *text = p->meta[i].text;
        size_t bytes = (size_t)(strchr(text, '=') - text);
        uint32_t all = 0, earlier = 0, put = 0;
        for (uint32_t k = 0; k < p->meta_count; k++) {
            all += has_key(p->meta[k].text, text, bytes);
            earlier += k < i && has_key(p->meta[k].text, text, bytes);
        }
        char *key = earlier == (all > 1) ? strndup(text, bytes) : NULL;
        if (!key)
            continue;
        output_json(w->out, before, key);
        for (uint32_t k = 0; put < all; k++)
            if (has_key(p->meta[k].text, text, bytes))
                output_json(w->out,
                            put++     ? ","
                            : all > 1 ? ":["
                                      : ":",
                            p->meta[k].text + bytes + 1);
        put_text(w, all > 1 ? "]" : "");
        free(key);
        before = ",";
    }
    put_text(w, *before == '{' ? "{}" : "}");
}

/* What gpuprof itself has cost the process. */
static void put_cost(struct trace_writer *w, const struct cost_table *costs)
{
    const uint64_t *sum = costs->sum;
    bool is_blind = cost_table_is_blind(costs);
    const char *separator = "";
    put_number(w, "{\"threads\":", (double)sum[COST_SUM_THREADS]);
    put_number(w, ",\"wall_ns\":", (double)sum[COST_SUM_WALL_NS]);
    if (is_blind)
        put_text(w, ",\"cost_ns\":null,\"worst_share\":null");
    else {
        put_number(w, ",\"cost_ns\":", (double)sum[COST_SUM_COST_NS]);
        put_number(w, ",\"worst_share\":",
                   cost_share(sum[COST_SUM_WORST_COST_NS], sum[COST_SUM_WORST_WALL_NS]));
    }
    put_number(w, ",\"own_ns\":", (double)sum[COST_SUM_OWN_NS]);
    put_text(w, ",\"classes\":{");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &costs->rows[i];
        if (!row->count && !row->total_ns)
            continue;
        output_print(w->out, "%s\"%s\":{", separator, cost_infos[i].name);
        put_number(w, "\"count\":", (double)row->count);
        if (row->unmeasured)
            put_text(w, ",\"total_ns\":null");
        else
            put_number(w, ",\"total_ns\":", (double)row->total_ns);
        put_text(w, "}");
        separator = ",";
    }
    put_text(w, "}}");
}

static void put_process_facts(struct trace_writer *w, const struct process *p)
{
    char id[PROCESS_ID_BYTES], title[1024];
    output_print(w->out, "{\"pid\":%u,\"real_pid\":%u,\"parent_pid\":%u", p->shown_pid,
                 p->header.pid, p->header.parent_pid);
    output_json(w->out, ",\"host\":", p->header.host);
    output_json(w->out, ",\"title\":", process_title(p, true, title, sizeof title));
    if (process_rank(p))
        output_json(w->out, ",\"rank\":", process_rank(p));
    if (process_local_rank(p))
        output_json(w->out, ",\"local_rank\":", process_local_rank(p));
    if (p->job != JOB_NONE)
        output_print(w->out, ",\"job\":%u", p->job);
    output_print(w->out, ",\"process_id\":\"%s\",\"meta\":", process_id(p, id));
    put_meta(w, p);
    put_text(w, ",\"notes\":[");
    for (uint32_t i = 0; i < p->note_count; i++)
        output_json(w->out, i ? "," : "", p->notes[i]);
    put_text(w, "],\"own_cost\":");
    put_cost(w, &p->costs);
    put_text(w, ",\"losses\":");
    put_losses(w, &w->walk->losses[p->index]);
    put_text(w, "}");
}

/* What --max-size has left out: by kind how many and for how long; the rest as thinning.h has it.
 */
static void put_left_out(const struct trace_writer *w)
{
    const struct thinning *t = w->scope.thinning;
    put_text(w,
             ",\"left_out\":{\"rule\":\"calls, work and ranges that lasted less than all_ns, but "
             "for a share of those of some_ns and more\"");
    put_number(w, ",\"all_ns\":", (double)t->all_ns);
    put_number(w, ",\"some_ns\":", (double)t->some_ns);
    put_number(w, ",\"share\":", (double)t->share / (double)(1ull << 32));
    for (unsigned i = 0; i < LEFT_OUT_KINDS; i++) {
        output_print(w->out, ",\"%s\":{", left_out_names[i]);
        put_number(w, "\"count\":", (double)w->left_out[i]);
        put_number(w, ",\"total_ns\":", (double)w->left_out_ns[i]);
        put_text(w, "}");
    }
    put_text(w, "}");
}

/* How well the hosts of this trace stand on one clock. */
static void put_clocks(const struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->rec->host_count; i++) {
        const struct host *h = &w->rec->hosts[i];
        output_json(w->out, i ? ",{\"host\":" : ",\"clocks\":[{\"host\":", h->first->header.host);
        output_print(w->out, ",\"processes\":%u", h->processes);
        output_json(w->out, ",\"reference\":", w->rec->hosts[h->reference].first->header.host);
        output_print(w->out, ",\"how\":\"%s\"", host_how(w->rec->hosts, i));
        if (h->source == HOST_CLOCK_COLLECTIVES) {
            put_number(w, ",\"offset_us\":", (double)h->offset_ns / 1e3);
            put_number(w, ",\"drift_ppm\":", rint(1e12 * h->drift) / 1e6);
            put_number(w, ",\"uncertainty_us\":", (double)h->uncertainty_ns / 1e3);
            put_number(w, ",\"collectives\":", (double)h->collectives);
        }
        put_text(w, "}");
    }
    put_text(w, "]");
}

void chrome_tail(struct trace_writer *w)
{
    struct losses sum = {0};
    for (uint32_t i = 0; i < w->process_count; i++) {
        losses_add(&sum, &w->walk->losses[w->processes[i]->index]);
        note_steps(w, w->processes[i]);
        note_losses(w, w->processes[i]);
    }
    output_print(w->out,
                 "\n],\"otherData\":{\"gpuprof\":\"" GPUPROF_RELEASE "\",\"origin_ns\":\"%llu\","
                 "\"origin_clock\":\"CLOCK_REALTIME, nanoseconds since 1970\"",
                 (unsigned long long)w->origin_ns);
    output_json(w->out, ",\"gpu_rows\":",
                w->scope.only ? process_gpu_rows(w->scope.only) : recording_gpu_rows(w->rec));
    output_print(w->out, ",\"calls\":%llu", (unsigned long long)w->calls);
    if (w->scope.survey)
        output_print(w->out, ",\"gpu_events\":%llu", (unsigned long long)w->gpu_events);
    output_print(w->out, ",\"unread_files\":%u,\"losses\":", w->rec->unread_files);
    put_losses(w, &sum);
    if (w->rec->host_count > 1)
        put_clocks(w);
    if (w->scope.thinning)
        put_left_out(w);
    put_text(w, ",\"processes\":[");
    for (uint32_t i = 0; i < w->process_count; i++) {
        put_text(w, i ? "," : "");
        put_process_facts(w, w->processes[i]);
    }
    put_text(w, "]}");
    chrome_stack_frames(w);
    put_text(w, "}\n");
}
