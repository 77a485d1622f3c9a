/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome trace format, JSON object form, as Perfetto, catapult and the Kineto-based tools read
 * it. Head and metadata are small and made with cJSON; calls are put together from pieces of text
 * made once per function and once per thread. Order at an equal time: the outer call first, and
 * slices of one row nest or stay 1 ns apart, since viewers swallow or drop what does not.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "cuda_error.h"
#include "error.h"
#include "json_text.h"
#include "losses.h"
#include "trace_writer.h"
#include "value_text.h"

#define ROW_DEPTH_MAX    8   /* slices open at a time in a row */
#define CALL_FIXED_BYTES 768 /* of a call without its arguments */
#define ARG_FIXED_BYTES  160 /* of an argument without its label and kernel name */
#define CALL_KERNELS_MAX 4   /* kernels named in one call; more are shown as handles */
_Static_assert(CALL_FIXED_BYTES + 6 * 2 * FUNCTION_BYTES_MAX + RECORD_ARGS_MAX * ARG_FIXED_BYTES +
                       CALL_KERNELS_MAX * (6 * KERNEL_NAME_BYTES_MAX + 2) <
                   OUTPUT_BUFFER_BYTES,
               "a call fits into the buffer");

/* Text that is copied 16 bytes at a time: its memory reaches to a multiple of that. */
struct piece {
    char *text; /* owned */
    uint32_t length;
};

struct function_pieces {
    struct piece head;                    /* up to the pid */
    struct piece labels[RECORD_ARGS_MAX]; /* "label": and the string's opening quote, if any */
    struct piece symbol;                  /* ,"symbol":"..." where the name does not say it */
    uint8_t kinds[RECORD_ARGS_MAX];       /* enum api_arg_kind of each argument, described or not */
    uint32_t bytes_max;                   /* of a call, written out */
};

struct row {
    char ids[48]; /* pid, tid and the name of ts */
    uint32_t ids_bytes;
    uint64_t begin_ns; /* of the last slice */
    uint64_t ends_ns[ROW_DEPTH_MAX];
    uint32_t depth;
};

struct trace_writer {
    struct output *out;
    struct recording *rec;
    struct function_pieces **functions; /* owned, by function index */
    uint32_t function_count;
    struct row *rows; /* owned, by thread index */
    uint64_t origin_ns;
    uint64_t last_ns;
    uint64_t calls;
    struct value_cache values;
};

static struct trace_writer *chrome_create(struct output *out, struct recording *rec)
{
    struct trace_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    w->rec = rec;
    w->rows = calloc(rec->thread_count + 1u, sizeof *w->rows);
    if (!w->rows) {
        free(w);
        return NULL;
    }
    return w;
}

static void pieces_free(struct function_pieces *f)
{
    if (!f)
        return;
    free(f->head.text);
    free(f->symbol.text);
    for (unsigned i = 0; i < RECORD_ARGS_MAX; i++)
        free(f->labels[i].text);
    free(f);
}

static void chrome_free(struct trace_writer *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; i < w->function_count; i++)
        pieces_free(w->functions[i]);
    free(w->functions);
    free(w->rows);
    free(w);
}

/* before + text as a JSON string + behind; false: no memory. */
static bool piece_make(struct piece *p, const char *before, const char *text, const char *behind)
{
    size_t before_bytes = strlen(before);
    size_t behind_bytes = strlen(behind);
    size_t text_bytes = strlen(text);
    char *out =
        malloc(before_bytes + json_escape_bytes_max(text_bytes) + behind_bytes + JSON_COPY_BYTES);
    p->text = out;
    if (!out)
        return false;
    memcpy(out, before, before_bytes);
    out = json_escape(out + before_bytes, text, text_bytes);
    memcpy(out, behind, behind_bytes);
    p->length = (uint32_t)((size_t)(out - p->text) + behind_bytes);
    return true;
}

/* Is an argument of this kind written as a hexadecimal string? */
static bool is_hex(unsigned kind)
{
    return kind == API_ADDRESS || kind == API_HANDLE || kind == API_STREAM || kind == API_EVENT ||
           kind == API_FLAGS;
}

static struct function_pieces *pieces_make(const struct function *f)
{
    struct function_pieces *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    const char *category = f->domain == API_DRIVER ? "cuda_driver" : "cuda_runtime";
    char before[64];
    snprintf(before, sizeof before, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category);
    bool ok = piece_make(&made->head, before, f->name, ",\"pid\":");
    if (ok && strcmp(f->symbol, f->name) != 0)
        ok = piece_make(&made->symbol, ",\"symbol\":", f->symbol, "");
    made->bytes_max = CALL_FIXED_BYTES + made->head.length + made->symbol.length;
    unsigned kernels = 0;
    for (unsigned i = 0; ok && i < RECORD_ARGS_MAX; i++) {
        char number[16];
        bool known = i < f->arg_count;
        snprintf(number, sizeof number, "arg%u", i);
        const char *label = known ? f->args[i].label : number;
        /* HTA takes a runtime call with args.stream for GPU work. */
        if (strcmp(label, "stream") == 0)
            label = "cuda_stream";
        made->kinds[i] = known ? f->args[i].kind : API_HANDLE;
        if (made->kinds[i] == API_KERNEL && ++kernels > CALL_KERNELS_MAX)
            made->kinds[i] = API_HANDLE;
        ok = piece_make(&made->labels[i], ",", label, is_hex(made->kinds[i]) ? ":\"" : ":");
        made->bytes_max += ARG_FIXED_BYTES + made->labels[i].length;
        if (made->kinds[i] == API_KERNEL)
            made->bytes_max += (uint32_t)json_escape_bytes_max(KERNEL_NAME_BYTES_MAX);
    }
    if (!ok) {
        pieces_free(made);
        return NULL;
    }
    return made;
}

static struct function_pieces *pieces_of(struct trace_writer *w, const struct function *f)
{
    if (f->index >= w->function_count) {
        uint32_t count = f->index + 256;
        struct function_pieces **grown =
            realloc(w->functions, count * sizeof(struct function_pieces *));
        if (!grown)
            return NULL;
        memset(grown + w->function_count, 0,
               (count - w->function_count) * sizeof(struct function_pieces *));
        w->functions = grown;
        w->function_count = count;
    }
    if (!w->functions[f->index])
        w->functions[f->index] = pieces_make(f);
    return w->functions[f->index];
}

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
    bool ok = name ? add_text(args, "name", name)
                   : cJSON_AddNumberToObject(args, "sort_index", sort_index) != NULL;
    if (!ok) {
        cJSON_Delete(object);
        return GPUPROF_NO_MEMORY;
    }
    bool first = w->last_ns == UINT64_MAX;
    w->last_ns = 0;
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
    return error < 0
               ? error
               : put_metadata(w, "thread_sort_index", p->shown_pid, t->shown_tid, NULL, t->number);
}

static int put_process(struct trace_writer *w, const struct process *p)
{
    char title[1024];
    process_title(p, p->shown_pid != p->header.pid, title, sizeof title);
    int error = put_metadata(w, "process_name", p->shown_pid, p->shown_pid, title, 0);
    if (error == 0)
        error = put_metadata(w, "process_sort_index", p->shown_pid, p->shown_pid, NULL, p->index);
    for (uint32_t i = 0; error == 0 && i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        if (t->number == 0)
            continue;
        struct row *row = &w->rows[t->index];
        row->ids_bytes = (uint32_t)snprintf(row->ids, sizeof row->ids,
                                            "%u,\"tid\":%u,\"ts\":", p->shown_pid, t->shown_tid);
        error = put_thread(w, p, t);
    }
    return error;
}

static int chrome_begin(struct trace_writer *w, uint64_t origin_ns)
{
    char head[256];
    w->origin_ns = origin_ns;
    w->last_ns = UINT64_MAX; /* nothing is written yet */
    int length = snprintf(head, sizeof head,
                          "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\","
                          "\"baseTimeNanoseconds\":%llu,\"traceEvents\":[",
                          (unsigned long long)origin_ns);
    output_write(w->out, head, (size_t)length);
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->rec->count; i++)
        error = put_process(w, w->rec->processes[i]);
    return error;
}

static inline char *put(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}
#define PUT(out, literal) put(out, literal, sizeof(literal) - 1)

static char *put_kernel(struct trace_writer *w, char *out, const struct event *e, uint64_t handle)
{
    const struct kernel_name *name = kernel_name_of(&e->process->kernels, handle);
    if (name)
        return json_copy(out, name->json, name->json_bytes);
    *out++ = '"';
    return value_handle(&w->values, out, handle);
}

static inline char *put_arg(struct trace_writer *w, char *out, const struct event *e, unsigned kind,
                            uint64_t value)
{
    switch (kind) {
    case API_KERNEL: return put_kernel(w, out, e, value);
    case API_DIM3: return value_dim3(&w->values, out, value);
    case API_KIND: return value_copy_kind(out, value);
    case API_DEVICE: return value_signed(out, value);
    case API_BYTES:
    case API_COUNT: return value_number(out, value);
    case API_ADDRESS:
        out = json_hex(out, value);
        *out++ = '"';
        return out;
    default: return value_handle(&w->values, out, value);
    }
}

static char *put_flags(char *out, const struct event *e)
{
    const struct record *r = e->record;
    if (r->result && !(r->flags & (RECORD_OPEN | RECORD_STALE))) {
        const char *name = cuda_error_name(e->function->domain, r->result);
        out = PUT(out, ",\"result\":");
        out = value_signed(out, (uint32_t)r->result);
        if (name) {
            out = PUT(out, ",\"error\":\"");
            out = put(out, name, strlen(name));
            *out++ = '"';
        }
    }
    if (r->correlation) {
        out = PUT(out, ",\"correlation\":");
        out = json_decimal(out, r->correlation);
    }
    if (r->weight > 1) {
        out = PUT(out, ",\"weight\":");
        out = json_decimal(out, r->weight);
    }
    if (r->flags & RECORD_CAPTURED)
        out = PUT(out, ",\"captured\":true");
    if (r->flags & RECORD_NESTED)
        out = PUT(out, ",\"nested\":true");
    if (r->flags & RECORD_STALE)
        out = PUT(out, ",\"stale\":true");
    if (r->flags & RECORD_OPEN)
        out = PUT(out, ",\"open\":true");
    return out;
}

/*
 * Fits a slice into its row: inside the one that is open, or at least 1 ns behind it. Real calls
 * of one thread do so by themselves; one left by longjmp is closed only when the next one begins.
 */
static void fit(struct row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    if (*begin_ns < row->begin_ns)
        *begin_ns = row->begin_ns;
    while (row->depth && row->ends_ns[row->depth - 1] <= *begin_ns) {
        if (row->ends_ns[row->depth - 1] == *begin_ns)
            ++*begin_ns;
        row->depth--;
    }
    while (row->depth && *end_ns > row->ends_ns[row->depth - 1]) {
        *begin_ns = row->ends_ns[row->depth - 1] + 1;
        row->depth--;
    }
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    if (row->depth == ROW_DEPTH_MAX) {
        memmove(row->ends_ns, row->ends_ns + 1, sizeof row->ends_ns - sizeof row->ends_ns[0]);
        row->depth--;
    }
    row->ends_ns[row->depth++] = *end_ns;
    row->begin_ns = *begin_ns;
}

static int chrome_call(struct trace_writer *w, const struct event *e)
{
    const struct function_pieces *pieces = pieces_of(w, e->function);
    struct row *row = &w->rows[e->thread->index];
    if (!pieces)
        return GPUPROF_NO_MEMORY;
    /* Only a damaged file can have an event before the first one. */
    uint64_t begin_ns = e->begin_ns > w->origin_ns ? e->begin_ns - w->origin_ns : 0;
    uint64_t end_ns = e->end_ns > w->origin_ns ? e->end_ns - w->origin_ns : 0;
    fit(row, &begin_ns, &end_ns);
    char *out = output_room(w->out, pieces->bytes_max);
    out = PUT(out, ",\n");
    out = json_copy(out, pieces->head.text, pieces->head.length);
    out = json_copy(out, row->ids, row->ids_bytes);
    out = json_microseconds(out, begin_ns);
    out = PUT(out, ",\"dur\":");
    out = json_microseconds(out, end_ns - begin_ns);
    out = PUT(out, ",\"args\":");
    /* Every member begins with a comma; the first one's place is taken by the brace. */
    char *brace = out;
    for (unsigned i = 0; i < e->record->arg_count; i++) {
        out = json_copy(out, pieces->labels[i].text, pieces->labels[i].length);
        out = put_arg(w, out, e, pieces->kinds[i], e->record->args[i]);
    }
    out = put_flags(out, e);
    if (pieces->symbol.length)
        out = json_copy(out, pieces->symbol.text, pieces->symbol.length);
    *brace = '{';
    out += out == brace;
    out = PUT(out, "}}");
    output_advance(w->out, out);
    w->calls++;
    if (end_ns > w->last_ns)
        w->last_ns = end_ns;
    return 0;
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

/* An instant event that shows a process's losses in the trace itself. */
static int put_losses(struct trace_writer *w, const struct process *p)
{
    char text[2048];
    char name[2100];
    char ts[JSON_DECIMAL_MAX + 5];
    if (losses_weight(&p->losses) == LOSS_NONE)
        return 0;
    snprintf(name, sizeof name, "lost: %s", losses_text(&p->losses, text, sizeof text));
    *json_microseconds(ts, w->last_ns) = '\0';
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "ph", "i");
    cJSON_AddStringToObject(object, "s", "p");
    cJSON_AddStringToObject(object, "cat", "gpuprof");
    cJSON_AddStringToObject(object, "name", name);
    cJSON_AddNumberToObject(object, "pid", p->shown_pid);
    cJSON_AddNumberToObject(object, "tid", p->shown_pid);
    cJSON_AddRawToObject(object, "ts", ts);
    cJSON_AddItemToObject(object, "args", losses_object(&p->losses));
    return put_object(w, object, ",\n");
}

/* Key and value of the META records; a key that occurs more than once has an array. */
static cJSON *meta_object(const struct process *p)
{
    cJSON *object = cJSON_CreateObject();
    for (uint32_t i = 0; i < p->meta_count; i++) {
        const char *equals = strchr(p->meta[i], '=');
        char *key = json_clean(p->meta[i], (size_t)(equals - p->meta[i]));
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

static cJSON *process_object(const struct process *p)
{
    char id[2 * sizeof p->header.process_id + 1];
    char title[1024];
    for (size_t i = 0; i < sizeof p->header.process_id; i++)
        snprintf(id + 2 * i, 3, "%02x", p->header.process_id[i]);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "pid", p->shown_pid);
    cJSON_AddNumberToObject(object, "real_pid", p->header.pid);
    cJSON_AddNumberToObject(object, "parent_pid", p->header.parent_pid);
    add_text(object, "host", p->header.host);
    add_text(object, "title", process_title(p, true, title, sizeof title));
    if (process_rank(p))
        add_text(object, "rank", process_rank(p));
    cJSON_AddStringToObject(object, "process_id", id);
    cJSON_AddItemToObject(object, "meta", meta_object(p));
    cJSON *notes = cJSON_AddArrayToObject(object, "notes");
    for (uint32_t i = 0; i < p->note_count; i++) {
        char *note = json_clean(p->notes[i], strlen(p->notes[i]));
        cJSON_AddItemToArray(notes, cJSON_CreateString(note ? note : ""));
        free(note);
    }
    cJSON_AddItemToObject(object, "losses", losses_object(&p->losses));
    return object;
}

static int chrome_end(struct trace_writer *w)
{
    struct losses sum = {0};
    char origin[JSON_DECIMAL_MAX + 1];
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->rec->count; i++) {
        losses_add(&sum, &w->rec->processes[i]->losses);
        error = put_losses(w, w->rec->processes[i]);
    }
    *json_decimal(origin, w->origin_ns) = '\0';
    cJSON *other = cJSON_CreateObject();
    cJSON_AddStringToObject(other, "gpuprof", GPUPROF_RELEASE);
    cJSON_AddStringToObject(other, "origin_ns", origin);
    cJSON_AddStringToObject(other, "origin_clock", "CLOCK_REALTIME, nanoseconds since 1970");
    add_text(other, "gpu_rows", recording_gpu_rows(w->rec));
    cJSON_AddNumberToObject(other, "calls", (double)w->calls);
    cJSON_AddNumberToObject(other, "unread_files", w->rec->unread_files);
    cJSON_AddItemToObject(other, "losses", losses_object(&sum));
    cJSON *processes = cJSON_AddArrayToObject(other, "processes");
    for (uint32_t i = 0; i < w->rec->count; i++)
        cJSON_AddItemToArray(processes, process_object(w->rec->processes[i]));
    if (error == 0)
        error = put_object(w, other, "\n],\"otherData\":");
    else
        cJSON_Delete(other);
    output_write(w->out, "}\n", 2);
    return error;
}

const struct trace_format chrome_format = {
    .name = "chrome",
    .create = chrome_create,
    .begin = chrome_begin,
    .call = chrome_call,
    .end = chrome_end,
    .free = chrome_free,
};
