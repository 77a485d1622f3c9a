/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a process that records contain, and what follows from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "client_note.h"
#include "error.h"
#include "rank.h"
#include "read/process.h"
#include "record/gpu_record.h"

/* Linux gives process start times in hundredths of a second. */
#define TICK_NS 10000000u

static char *copy_text(const struct record *r)
{
    return r->bytes ? memory_from(strndup((const char *)r->bytes, r->byte_count)) : NULL;
}

static void take_meta(struct process *p, const struct record *r)
{
    const char *equals = r->bytes ? memchr(r->bytes, '=', r->byte_count) : NULL;
    if (!equals || p->meta_count == META_ENTRIES_MAX ||
        p->meta_bytes + r->byte_count > META_BYTES_MAX)
        return;
    char *text = memory_new(r->byte_count + 1u, 1);
    /* A command line may have zeros between its words. */
    for (uint32_t i = 0; i < r->byte_count; i++)
        text[i] = r->bytes[i] ? (char)r->bytes[i] : ' ';
    for (uint32_t i = 0; i < p->meta_count; i++)
        if (strcmp(p->meta[i].text, text) ==
            0) { /* both a program thread and the writer may record it */
            p->meta[i].begin = max_of(p->meta[i].begin, r->begin);
            free(text);
            return;
        }
    struct process_meta made = {.text = text, .begin = r->begin};
    ARRAY_PUSH(p->meta, p->meta_count, &made);
    p->meta_bytes += r->byte_count;
}

static void take_note(struct process *p, const struct record *r)
{
    char *text = p->note_count < NOTES_MAX ? copy_text(r) : NULL;
    if (text)
        ARRAY_PUSH(p->notes, p->note_count, &text);
}

static void take_dump(struct process *p, const struct record *r)
{
    if (p->dump_count == DUMPS_MAX)
        return;
    struct process_dump dump = {.number = record_arg(r, DUMP_NUMBER),
                                .reason = record_arg(r, DUMP_REASON),
                                .value = record_arg(r, DUMP_VALUE),
                                .ns = record_arg(r, DUMP_NS),
                                .median_ns = record_arg(r, DUMP_MEDIAN_NS),
                                .begin_ns = record_arg(r, DUMP_BEGIN_NS),
                                .at_ns = r->begin,
                                .lost = record_arg(r, DUMP_LOST),
                                .text = copy_text(r)};
    ARRAY_PUSH(p->dumps, p->dump_count, &dump);
}

void process_set_counter(struct process *p, unsigned index, uint64_t value, uint64_t end_ns)
{
    struct losses *losses = &p->losses;
    if (value > losses_believable(end_ns))
        losses->counters_damaged = 1;
    else if (value > losses->counters[index])
        losses->counters[index] = value;
}

/* Takes a counter's largest value. The name identifies it, as numbers may change. */
static void take_counter(struct process *p, const struct record *r, uint64_t end_ns)
{
    unsigned index = r->code;
    if (r->bytes)
        for (index = 0; index < COUNTER_COUNT; index++)
            if (word_is((const char *)r->bytes, r->byte_count, counter_infos[index].name))
                break;
    if (index < COUNTER_COUNT && r->arg_count >= 1)
        process_set_counter(p, index, r->args[COUNTER_VALUE], max_of(r->begin, end_ns));
}

static void take_thread(struct process *p, uint32_t number, const struct record *r)
{
    struct thread *thread = thread_find(&p->threads, number);
    if (!thread)
        return;
    if (record_arg(r, THREAD_TID) <= UINT32_MAX && record_arg(r, THREAD_TID))
        thread->tid = (uint32_t)r->args[THREAD_TID];
    if (r->bytes) {
        size_t length =
            r->byte_count < THREAD_NAME_BYTES_MAX ? r->byte_count : THREAD_NAME_BYTES_MAX;
        memcpy(thread->name, r->bytes, length);
        thread->name[length] = '\0';
        thread->gpu = strcmp(thread->name, GPU_THREAD_NAME) == 0;
        thread->own = thread->gpu || strcmp(thread->name, DEVICE_THREAD_NAME) == 0 ||
                      strcmp(thread->name, HOST_THREAD_NAME) == 0;
        p->has_gpu |= thread->gpu;
    }
}

void process_take(struct process *p, struct reader *reader, uint32_t thread, const struct record *r,
                  uint64_t end_ns)
{
    switch (r->type) {
    case RECORD_THREAD: take_thread(p, thread, r); break;
    case RECORD_META: take_meta(p, r); break;
    case RECORD_COUNTER: take_counter(p, r, end_ns); break;
    case RECORD_ANCHOR:
        if (r->arg_count >= 1)
            clock_map_add(&p->clock, r->begin, r->args[ANCHOR_MONOTONIC_NS]);
        break;
    case RECORD_API:
        if (r->bytes)
            function_describe(&reader->functions, &p->codes, r->code, r->bytes, r->byte_count);
        break;
    case RECORD_CALLBACK:
        function_set_callback(&reader->functions, &p->codes, r->code, record_arg(r, CALLBACK_ID));
        break;
    case RECORD_NOTE:
        take_note(p, r);
        blind_times_take(&p->blind, r);
        break;
    case RECORD_OS_FUNCTION: os_functions_take(&p->os, r); break;
    case RECORD_DUMP: take_dump(p, r); break;
    case RECORD_COST:
    case RECORD_COST_SUM: cost_table_take(&p->costs, r); break;
    case RECORD_STEP_DOWN:
        cost_table_take(&p->costs, r);
        blind_times_take(&p->blind, r);
        break;
    case RECORD_END:
        p->end_reason = record_arg(r, END_REASON) ? record_arg(r, END_REASON) : END_EXIT;
        break;
    default: break;
    }
}

/* ---- what is known of it --------------------------------------------------------------------- */

uint64_t process_start_ns(const struct process *p)
{
    const struct stream_header *h = &p->header;
    const char *ahead = process_meta(p, META_CLOCK_AHEAD);
    __int128 ns = (__int128)h->start_time * TICK_NS + (ahead ? strtoll(ahead, NULL, 10) : 0);
    if (!h->start_time || ns <= 0 || ns > (__int128)CLOCK_NS_MAX)
        return 0;
    return (uint64_t)ns - (uint64_t)h->monotonic_shift_ns + p->clock.offset;
}

uint64_t process_lived_ns(const struct process *p)
{
    return clock_map_look(&p->clock, &(struct clock_place){0}, p->lived_ns);
}

bool process_expects_gpu(const struct process *p)
{
    const char *rows = process_meta(p, "gpu_rows");
    return p->has_gpu || (rows && strncmp(rows, "from ", 5) == 0);
}

bool process_wants_kernels(const struct process *p)
{
    const char *kinds = process_meta(p, "gpu_kinds");
    /* Older recordings lack the setting. Only kernel kinds have names with this text. */
    return !kinds || strstr(kinds, "kernel");
}

bool process_wants_moves(const struct process *p)
{
    const char *kinds = process_meta(p, "gpu_kinds");
    return !kinds || (strstr(kinds, "copy") && strstr(kinds, "set"));
}

const char *process_meta(const struct process *p, const char *key)
{
    size_t length = strlen(key);
    const char *value = NULL;
    uint64_t begin = 0;
    for (uint32_t i = 0; i < p->meta_count; i++)
        if (strncmp(p->meta[i].text, key, length) == 0 && p->meta[i].text[length] == '=' &&
            p->meta[i].begin >= begin) {
            value = p->meta[i].text + length + 1;
            begin = p->meta[i].begin;
        }
    return value;
}

/* Returns the value of a nonempty variable of its environment, or NULL. */
static const char *environment_of(const struct process *p, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "env.%s", name);
    const char *value = process_meta(p, key);
    return value && value[0] ? value : NULL;
}

const char *process_local_rank(const struct process *p)
{
    const char *value = NULL;
    for (const char *const *name = local_rank_variables; *name && !value; name++)
        value = environment_of(p, *name);
    return value;
}

/* Returns the name of the variable that has its rank; NULL: none. */
static const char *launcher_of(const struct process *p)
{
    const char *const *name = rank_variables;
    while (*name && !environment_of(p, *name))
        name++;
    return *name;
}

const char *process_rank(const struct process *p)
{
    const char *launcher = launcher_of(p);
    return launcher ? environment_of(p, launcher) : NULL;
}

uint64_t process_world_size(const struct process *p)
{
    const char *launcher = launcher_of(p);
    uint64_t size = RANK_NONE;
    for (const struct size_variable *v = size_variables; v->name && launcher; v++)
        if (strcmp(v->of, launcher) == 0)
            size = rank_number(environment_of(p, v->name));
    return size == RANK_NONE ? 0 : size;
}

/* Returns the host's name and sets *length for "NAME", if it is called NAME-INDEX; else NULL. */
static const char *name_before_index(const struct process *p, const char *index, int *length)
{
    const char *host = p->header.host, *dash = strrchr(host, '-');
    *length = dash ? (int)(dash - host) : 0;
    return dash && dash > host && strcmp(dash + 1, index) == 0 ? host : NULL;
}

char *process_job(const struct process *p, char *text)
{
    size_t at = 0;
    const char *launcher = launcher_of(p);
    text[0] = '\0';
    for (const struct job_variable *v = job_variables; v->name && launcher; v++) {
        const char *value = strcmp(v->of, launcher) == 0 ? environment_of(p, v->name) : NULL;
        const char *name = v->name;
        int length = value ? (int)strnlen(value, 250) : 0;
        if (value && v->kind == JOB_HOST_INDEX) {
            name = "Job";
            value = name_before_index(p, value, &length);
        }
        if (!value || at >= PROCESS_JOB_BYTES)
            continue;
        length = snprintf(text + at, PROCESS_JOB_BYTES - at, "%s%s=%.*s", at ? " " : "", name,
                          length, value);
        at += length > 0 ? (size_t)length : 0;
        /* A local address: each host then has a job of its own. */
        if (at < PROCESS_JOB_BYTES && v->kind == JOB_ADDRESS &&
            (strcmp(value, "localhost") == 0 || strncmp(value, "127.", 4) == 0))
            at += (size_t)snprintf(text + at, PROCESS_JOB_BYTES - at, " on %.64s", p->header.host);
    }
    return text;
}

/* ---- titles ---------------------------------------------------------------------------------- */

#define COMMAND_BYTES_MAX 120 /* longest command line shown */

/* Returns *length bytes of the command line or a substitute; *behind is "..." or "". */
static const char *command_of(const struct process *p, size_t *length, const char **behind)
{
    const char *command = process_meta(p, "cmdline");
    if (!command || !command[0])
        command = process_meta(p, "exe");
    if (!command || !command[0])
        command = "process";
    *length = strnlen(command, COMMAND_BYTES_MAX);
    *behind = command[*length] ? "..." : "";
    while (*length && command[*length - 1] == ' ')
        --*length;
    return command;
}

char *process_program(const struct process *p, char *text, size_t capacity)
{
    const char *behind;
    size_t length, at = 0;
    const char *command = command_of(p, &length, &behind);
    for (size_t i = 0; i < length && at + 8 < capacity; i++) {
        bool is_rank = i >= 5 && strncmp(command + i - 5, "rank", 4) == 0 &&
                       (command[i - 1] == '=' || command[i - 1] == ' ');
        size_t digits = is_rank ? strspn(command + i, "0123456789") : 0;
        text[at++] = digits ? '*' : command[i];
        i += digits ? digits - 1 : 0;
    }
    snprintf(text + at, capacity - at, "%s", behind);
    return text;
}

char *process_who(const struct process *p, char text[static RANK_TITLE_BYTES])
{
    const char *rank = process_rank(p);
    if (!rank)
        snprintf(text, RANK_TITLE_BYTES, "process %u", p->header.pid);
    else if (p->is_of_several && p->job != JOB_NONE)
        snprintf(text, RANK_TITLE_BYTES, "rank %.16s of job %u", rank, p->job);
    else
        snprintf(text, RANK_TITLE_BYTES, "rank %.16s", rank);
    return text;
}

char *process_rank_title(const struct process *p, char *text)
{
    *text = '\0';
    if (process_rank(p))
        strcat(process_who(p, text), ": ");
    return text;
}

char *process_command_title(const struct process *p, bool with_pid, char *text, size_t capacity)
{
    const char *host = p->header.host, *cut;
    size_t length;
    const char *command = command_of(p, &length, &cut);
    char pid[24] = "";
    if (with_pid)
        snprintf(pid, sizeof pid, "%spid %u", host[0] ? ", " : "", p->header.pid);
    bool is_bare = !host[0] && !with_pid;
    snprintf(text, capacity, "%.*s%s%s%s%s%s", (int)length, command, cut, is_bare ? "" : " (", host,
             pid, is_bare ? "" : ")");
    return text;
}

char *process_title(const struct process *p, bool with_pid, char *text, size_t capacity)
{
    char rank[RANK_TITLE_BYTES], command[1024];
    snprintf(text, capacity, "%s%s", process_rank_title(p, rank),
             process_command_title(p, with_pid, command, sizeof command));
    return text;
}

char *thread_title(const struct process *p, const struct thread *t, char *text, size_t capacity)
{
    char title[1024];
    snprintf(text, capacity, "thread %u%s%s%s of %s", t->tid ? t->tid : t->number,
             t->name[0] ? " (" : "", t->name, t->name[0] ? ")" : "",
             process_title(p, true, title, sizeof title));
    return text;
}
