/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a Chrome trace around and between the events: Kineto's head, names of processes and
 * rows, losses, metadata. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "rank.h"
#include "read/process.h"
#include "record/losses.h"
#include "trace/chrome.h"

#define DEVICE_PLACES_MAX 64 /* readers know ordinals up to 63 */

static void put_clean(const char *text, FILE *out)
{
    char *clean = text ? json_clean(text, strlen(text)) : NULL;
    json_printf(out, "%s", clean);
    free(clean);
}

/* Prints like json_printf, with clean strings. */
static __attribute__((format(printf, 2, 3))) void print(struct trace_writer *w, const char *format,
                                                        ...)
{
    va_list list;
    va_start(list, format);
    json_vprintf(w->out->stream, put_clean, format, list);
    va_end(list);
    fflush(w->out->stream);
}

void chrome_put_metadata(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                         const char *name, uint32_t sort_index)
{
    bool first = w->time.last_ns == UINT64_MAX;
    w->time.last_ns = first ? 0 : w->time.last_ns;
    print(w, first ? "\n" : ",\n");
    print(w, "{\"ph\":\"M\",\"name\":%s,\"pid\":%u,\"tid\":%u,\"ts\":0,\"args\":{", what, pid, tid);
    if (name)
        print(w, "%s:%s}}", strcmp(what, "process_labels") == 0 ? "labels" : "name", name);
    else
        print(w, "\"sort_index\":%u}}", sort_index);
}

/* Describes a device with Kineto's keys; without a record, only its number. */
static void put_device(struct trace_writer *w, uint64_t number, const struct surveyed_device *d)
{
    const struct device_limits *l = d ? &d->limits : NULL;
    char uuid[DEVICE_UUID_BYTES];
    print(w, "{\"id\":%" PRIu64, number);
    if (d) {
        device_uuid_text(d->uuid_high, d->uuid_low, uuid);
        print(w, ",\"name\":%s", d->name);
        if (uuid[0])
            print(w, ",\"uuid\":%s", uuid);
        print(w,
              ",\"totalGlobalMem\":%" PRIu64 ",\"computeMajor\":%" PRIu64
              ",\"computeMinor\":%" PRIu64 ",\"maxThreadsPerMultiprocessor\":%" PRIu64
              ",\"maxBlocksPerMultiprocessor\":%" PRIu64 ",\"regsPerMultiprocessor\":%" PRIu64
              ",\"sharedMemPerBlock\":%" PRIu64 ",\"sharedMemPerMultiprocessor\":%" PRIu64
              ",\"numSms\":%" PRIu64 ",\"warpSize\":%" PRIu64,
              l->memory, l->major, l->minor, l->threads_max, l->blocks_max, l->registers_max,
              l->shared_block_max, l->shared_max, l->multiprocessors, l->warp);
    }
    print(w, "}");
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

/* Puts each device at its ordinal's index, since readers use one for the other. Unrecorded devices
 * before it get a place too; readers know no others. */
static void put_devices(struct trace_writer *w)
{
    const struct survey *s = w->scope.survey;
    uint64_t count = 0;
    print(w, "\"deviceProperties\":[");
    for (uint32_t i = 0; i < w->shown.count; i++) {
        const struct process *p = w->shown.list[i];
        uint64_t places = 0;
        for (uint32_t k = 0; k < s->device_count; k++) {
            uint64_t device = s->devices[k].limits.device;
            if (s->devices[k].process == p->index && device < DEVICE_PLACES_MAX)
                places = max_of(places, device + 1);
        }
        if (devices_are_there(w, p))
            continue;
        for (uint64_t device = 0; device < places; device++) {
            print(w, count++ ? "," : "");
            put_device(w, device, survey_device(s, p, device));
        }
    }
    print(w, "],");
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
    print(w, "\"distributedInfo\":{\"rank\": %" PRIu64 "},", rank == RANK_NONE ? 0 : rank);
    if (w->shown.count == 1)
        print(w, "\"trace_id\":%s,", process_id(w->shown.list[0], id));
    if (has_shapes)
        print(w, "\"record_shapes\":1,");
    unsigned long cupti = meta_number(w, "gpu_rows", "from CUPTI ");
    unsigned long driver = meta_number(w, "cuda_driver", "");
    if (cupti)
        print(w, "\"cupti_version\":%lu,", cupti);
    if (driver)
        print(w, "\"cuda_driver_version\":%lu,", driver);
    if (w->scope.name)
        print(w, "\"traceName\":%s,", w->scope.name);
    put_devices(w);
}

void chrome_head(struct trace_writer *w)
{
    w->time.last_ns = UINT64_MAX; /* nothing is written yet */
    print(w,
          "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\","
          "\"baseTimeNanoseconds\":%" PRIu64 ",",
          w->time.origin_ns);
    if (w->scope.survey)
        kineto_head(w);
    print(w, "\"traceEvents\":[");
    for (uint32_t i = 0; i < w->shown.count; i++)
        chrome_name_process(w, w->shown.list[i]);
}

static void put_losses(struct trace_writer *w, const struct losses *l)
{
    unsigned count = 0;
    print(w, "{");
    for (unsigned row = 0; row < LOSS_COUNT; row++)
        if (loss_value(l, row))
            print(w, count++ ? ",%s:%" PRIu64 : "%s:%" PRIu64, loss_info(row).key,
                  loss_value(l, row));
    print(w, "}");
}

/* Begins gpuprof's own instant event, shown for the process ("p") or everywhere ("g"). */
static void begin_note(struct trace_writer *w, const struct process *p, const char *scope,
                       uint64_t at_ns, const char *name)
{
    print(w,
          ",\n{\"ph\":\"i\",\"name\":%s,\"pid\":%u,\"tid\":%u,\"s\":%s,\"cat\":\"gpuprof\","
          "\"ts\":%.3f,\"args\":",
          name, p->shown_pid, p->shown_pid, scope, (double)at_ns / 1e3);
}

/* Writes a process's losses, and each feature that was given up to reduce overhead. */
static void put_notes(struct trace_writer *w, struct process *p, const struct losses *losses)
{
    char text[2048], name[2100];
    for (uint32_t i = 0; i < p->costs.step_count; i++) {
        const struct step_down *s = &p->costs.steps[i];
        uint64_t at_ns = clock_map_ns(&p->clock, min_of(s->begin_ns, CLOCK_NS_MAX));
        snprintf(name, sizeof name, "--overhead-max: %s", s->text);
        begin_note(w, p, "g", chrome_time(w, at_ns), name);
        print(w, "{\"share\":%.15g,\"budget\":%.15g}}", (double)s->share / COST_PER_MILLION,
              (double)s->budget / COST_PER_MILLION);
    }
    if (losses_weight(losses) == LOSS_NONE)
        return;
    snprintf(name, sizeof name, "lost: %s", losses_text(losses, text, sizeof text));
    begin_note(w, p, "p", w->time.last_ns, name);
    put_losses(w, losses);
    print(w, "}");
}

static bool has_key(const struct process_meta *m, const char *key, size_t length)
{
    return strncmp(m->text, key, length) == 0 && m->text[length] == '=';
}

/* Writes the META records; a key that occurs more than once has an array. */
static void put_meta(struct trace_writer *w, const struct process *p)
{
    print(w, ",\"meta\":{");
    for (uint32_t i = 0, keys = 0; i < p->meta_count; i++) {
        const char *text = p->meta[i].text;
        size_t length = strcspn(text, "=");
        char key[RECORD_BYTES_MAX + 1];
        uint32_t before = 0, count = 0;
        for (uint32_t k = 0; k < p->meta_count; k++) {
            before += k < i && has_key(&p->meta[k], text, length);
            count += has_key(&p->meta[k], text, length);
        }
        if (before)
            continue;
        snprintf(key, sizeof key, "%.*s", (int)length, text);
        print(w, keys++ ? ",%s:" : "%s:", key);
        for (uint32_t k = i; k < p->meta_count; k++)
            if (has_key(&p->meta[k], text, length))
                print(w, before++ ? ",%s" : count > 1 ? "[%s" : "%s", p->meta[k].text + length + 1);
        print(w, count > 1 ? "]" : "");
    }
    print(w, "}");
}

static void put_cost(struct trace_writer *w, const struct cost_table *costs)
{
    const uint64_t *sum = costs->sum;
    bool is_blind = cost_table_is_blind(costs);
    print(w,
          ",\"own_cost\":{\"threads\":%" PRIu64 ",\"wall_ns\":%" PRIu64
          ",\"cost_ns\":%.15g,\"worst_share\":%.17g,\"own_ns\":%" PRIu64 ",\"classes\":{",
          sum[COST_SUM_THREADS], sum[COST_SUM_WALL_NS],
          is_blind ? NAN : (double)sum[COST_SUM_COST_NS],
          is_blind ? NAN : cost_share(sum[COST_SUM_WORST_COST_NS], sum[COST_SUM_WORST_WALL_NS]),
          sum[COST_SUM_OWN_NS]);
    for (unsigned i = 0, count = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &costs->rows[i];
        if (row->count || row->total_ns)
            print(w,
                  count++ ? ",%s:{\"count\":%" PRIu64 ",\"total_ns\":%.15g}"
                          : "%s:{\"count\":%" PRIu64 ",\"total_ns\":%.15g}",
                  cost_infos[i].name, row->count, row->unmeasured ? NAN : (double)row->total_ns);
    }
    print(w, "}}");
}

static void put_process(struct trace_writer *w, const struct process *p)
{
    char id[PROCESS_ID_BYTES], title[1024];
    print(w, "{\"pid\":%u,\"real_pid\":%u,\"parent_pid\":%u,\"host\":%s,\"title\":%s", p->shown_pid,
          p->header.pid, p->header.parent_pid, p->header.host,
          process_title(p, true, title, sizeof title));
    if (process_rank(p))
        print(w, ",\"rank\":%s", process_rank(p));
    if (process_local_rank(p))
        print(w, ",\"local_rank\":%s", process_local_rank(p));
    if (p->job != JOB_NONE)
        print(w, ",\"job\":%u", p->job);
    print(w, ",\"process_id\":%s", process_id(p, id));
    put_meta(w, p);
    print(w, ",\"notes\":[");
    for (uint32_t i = 0; i < p->note_count; i++)
        print(w, i ? ",%s" : "%s", p->notes[i]);
    print(w, "]");
    put_cost(w, &p->costs);
    print(w, ",\"losses\":");
    put_losses(w, &w->walk->losses[p->index]);
    print(w, "}");
}

/* Writes what --max-size left out: count and duration per kind, and the limits. */
static void put_left_out(struct trace_writer *w, const struct thinning *t)
{
    static const char *const names[LEFT_OUT_KINDS] = {"gpu_work", "calls", "ranges", "host"};
    const struct chrome_totals *totals = &w->totals;
    print(
        w,
        ",\"left_out\":{\"rule\":\"calls, work and ranges that lasted less than all_ns, but for a "
        "share of those of some_ns and more\",\"all_ns\":%" PRIu64 ",\"some_ns\":%" PRIu64
        ",\"share\":%.17g",
        t->all_ns, t->some_ns, (double)t->share / (double)(1ull << 32));
    for (unsigned i = 0; i < LEFT_OUT_KINDS; i++)
        if (i != LEFT_OUT_HOST || totals->left_out[i])
            print(w, ",%s:{\"count\":%" PRIu64 ",\"total_ns\":%" PRIu64 "}", names[i],
                  totals->left_out[i], totals->left_out_ns[i]);
    print(w, "}");
}

static void put_clocks(struct trace_writer *w, const struct recording *rec)
{
    for (uint32_t i = 0; i < rec->host_count; i++) {
        const struct host *h = &rec->hosts[i];
        print(w, i ? "," : ",\"clocks\":[");
        print(w, "{\"host\":%s,\"processes\":%u,\"reference\":%s,\"how\":%s", h->first->header.host,
              h->processes, rec->hosts[h->reference].first->header.host, host_how(rec->hosts, i));
        if (h->source == HOST_CLOCK_COLLECTIVES)
            print(w,
                  ",\"offset_us\":%.15g,\"drift_ppm\":%.15g,\"uncertainty_us\":%.15g,"
                  "\"collectives\":%" PRIu64,
                  (double)h->offset_ns / 1e3, rint(1e12 * h->drift) / 1e6,
                  (double)h->uncertainty_ns / 1e3, h->collectives);
        print(w, "}");
    }
    print(w, "]");
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
    for (uint32_t i = 0; i < w->shown.count; i++) {
        struct process *p = w->shown.list[i];
        losses_add(&sum, &w->walk->losses[p->index]);
        put_labels(w, p);
        put_notes(w, p, &w->walk->losses[p->index]);
    }
    print(w,
          "\n],\"otherData\":{\"gpuprof\":\"" GPUPROF_RELEASE "\",\"origin_ns\":\"%" PRIu64
          "\",\"origin_clock\":\"CLOCK_REALTIME, nanoseconds since 1970\",\"gpu_rows\":%s,"
          "\"calls\":%" PRIu64,
          w->time.origin_ns,
          w->scope.only ? process_gpu_rows(w->scope.only) : recording_gpu_rows(rec),
          w->totals.calls);
    if (w->scope.survey)
        print(w, ",\"gpu_events\":%" PRIu64, w->totals.gpu_events);
    print(w, ",\"unread_files\":%u,\"losses\":", rec->unread_files);
    put_losses(w, &sum);
    if (rec->host_count > 1)
        put_clocks(w, rec);
    if (w->scope.thinning)
        put_left_out(w, w->scope.thinning);
    print(w, ",\"processes\":[");
    for (uint32_t i = 0; i < w->shown.count; i++) {
        print(w, i ? "," : "");
        put_process(w, w->shown.list[i]);
    }
    print(w, "]}");
    put_stack_frames(w);
    print(w, "}\n");
}
