/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of losses and of processes, in words. */
#include <stdarg.h>
#include <string.h>

#include "message.h"
#include "recording.h"
#include "verbs.h"

struct text {
    char *data;
    size_t length;
    size_t capacity;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int more = vsnprintf(t->data + t->length, t->capacity - t->length, format, list);
    va_end(list);
    if (more > 0) {
        size_t room = t->capacity - 1 - t->length;
        t->length += (size_t)more < room ? (size_t)more : room;
    }
}

static void put_count(struct text *t, uint64_t count, const char *what)
{
    if (count)
        put(t, "%s%llu %s", t->length ? ", " : "", (unsigned long long)count, what);
}

char *losses_text(const struct losses *l, char *text, size_t capacity)
{
    struct text t = {.data = text, .capacity = capacity};
    text[0] = '\0';
    if (l->header_lost)
        put(&t, "the file's header is damaged");
    put_count(&t, l->damaged_blocks, "blocks damaged");
    put_count(&t, l->damaged_records, "records in them");
    put_count(&t, l->missing_blocks, "blocks missing");
    put_count(&t, l->skipped_bytes, "bytes that are no block");
    put_count(&t, l->torn_bytes, "bytes of a block that was cut off");
    put_count(&t, l->missing_bytes, "bytes of raw records missing");
    put_count(&t, l->repeated_blocks, "blocks that repeat records");
    if (l->live_damaged)
        put(&t, "%sthe live file cannot be read", t.length ? ", " : "");
    put_count(&t, l->live_damaged_bytes, "bytes of the live file damaged");
    put_count(&t, l->unknown_functions, "calls of functions that are not described");
    if (l->not_ended)
        put(&t, "%sno end and no live file: the last second or so may be missing",
            t.length ? ", " : "");
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        if (counter_infos[i].loss)
            put_count(&t, l->counters[i], counter_infos[i].meaning);
    return text;
}

const char *process_rank(const struct process *p)
{
    static const char *const keys[] = {"env.RANK", "env.OMPI_COMM_WORLD_RANK", "env.PMI_RANK",
                                       "env.SLURM_PROCID"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *rank = process_meta(p, keys[i]);
        if (rank && rank[0])
            return rank;
    }
    return NULL;
}

char *process_title(const struct process *p, char *text, size_t capacity)
{
    const char *rank = process_rank(p);
    const char *command = process_meta(p, "cmdline");
    if (!command || !command[0])
        command = process_meta(p, "exe");
    if (!command || !command[0])
        command = "process";
    struct text t = {.data = text, .capacity = capacity};
    text[0] = '\0';
    if (rank)
        put(&t, "rank %.16s: ", rank);
    size_t length = strnlen(command, 120);
    while (length && command[length - 1] == ' ')
        length--;
    put(&t, "%.*s%s (pid %u", (int)length, command, strlen(command) > 120 ? "..." : "",
        p->header.pid);
    if (p->header.host[0])
        put(&t, " %s", p->header.host);
    put(&t, ")");
    return text;
}

int recording_verdict(const struct recording *rec, bool strict)
{
    int code = rec->unread_files ? EXIT_DAMAGED : EXIT_OK;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        const struct losses *l = &p->losses;
        char text[2048];
        if (l->live_records || l->open_calls)
            message("%s: %llu events and %llu unfinished calls read from the live file (%s)",
                    p->file.path, (unsigned long long)l->live_records,
                    (unsigned long long)l->open_calls,
                    l->running ? "the process still runs: this is a snapshot"
                               : "the process was killed");
        if (losses_any(l))
            message("%s: lost: %s", p->file.path, losses_text(l, text, sizeof text));
        if (losses_damage(l) || (strict && losses_any(l)))
            code = EXIT_DAMAGED;
    }
    return code;
}
