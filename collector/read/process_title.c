/* SPDX-License-Identifier: Apache-2.0 */
#include "read/process.h"

#include <stdio.h>
#include <string.h>

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
