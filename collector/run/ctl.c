/* SPDX-License-Identifier: Apache-2.0 */
#include "run/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "error.h"
#include "output/standard_files.h"
#include "read/rank.h"
#include "run/ctl_folder.h"

#define LOOK_US       50000 /* how often answers are looked for; they come once a second */
#define NAMED_MAX     16    /* commands for one process; and processes that get a line each */
#define SECONDS_USUAL 10.0

struct ctl {
    struct ctl_folder folder;
    const struct options *options;
    enum control_what what;
    struct control_command commands[NAMED_MAX];
    size_t command_count;
};

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static enum exit_code folder_error(const struct ctl *c, int error)
{
    if (error == GPUPROF_NOT_OURS)
        return usage_error("ctl: '%s/" CONTROL_NAME "' is no control file; remove it",
                           c->folder.path);
    message("ctl: '%s': %s%s", c->folder.path,
            error == GPUPROF_IO ? strerror(errno) : "too many files, or no memory",
            error == GPUPROF_IO ? reading_advice(errno) : "");
    return EXIT_ENVIRONMENT;
}

static bool is_meant(const struct ctl *c, const struct ctl_process *p)
{
    return !p->has_ended && (!c->options->pid || p->header.pid == c->options->pid) &&
           (c->options->rank == RANK_NONE || p->rank == c->options->rank);
}

/* One for all, or one for each of those that were named. */
static enum exit_code make_commands(struct ctl *c)
{
    bool is_for_all = !c->options->pid && c->options->rank == RANK_NONE;
    size_t meant = 0;
    for (size_t i = 0; i < c->folder.count; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        p->is_meant = is_meant(c, p);
        meant += p->is_meant;
        if (!p->is_meant || (is_for_all && c->command_count))
            continue;
        if (c->command_count == NAMED_MAX)
            return usage_error("ctl: more than %d processes have that number", NAMED_MAX);
        struct control_command *command = &c->commands[c->command_count++];
        *command = (struct control_command){.is_for_all = is_for_all, .what = c->what};
        memcpy(command->process_id, p->header.process_id, sizeof command->process_id);
        if (getrandom(&command->id, sizeof command->id, 0) != sizeof command->id)
            return EXIT_ENVIRONMENT;
        p->command = command->id;
    }
    return meant ? EXIT_OK
                 : usage_error("ctl: no such process records into '%s' now", c->folder.path);
}

/* Those that have appeared meanwhile follow what was said to all. */
static void enrol(struct ctl *c)
{
    for (size_t i = 0; i < c->folder.count && c->commands[0].is_for_all; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        p->is_meant |= !p->has_ended;
        p->command = c->commands[0].id;
    }
}

static bool look_at_all(struct ctl *c)
{
    bool is_all = true;
    for (size_t i = 0; i < c->folder.count; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        if (!p->is_meant)
            continue;
        ctl_process_look(p);
        is_all &= p->has_answered || p->has_ended;
    }
    return is_all;
}

static int wait_for_all(struct ctl *c)
{
    double seconds = c->options->timeout < 0 ? SECONDS_USUAL : c->options->timeout;
    double end = now_seconds() + seconds, next = 0;
    for (;;) {
        if (now_seconds() >= next) {
            int error = ctl_folder_look(&c->folder);
            enrol(c);
            if (error == 0 && !look_at_all(c))
                error = ctl_folder_tell(&c->folder, c->commands, c->command_count);
            if (error < 0)
                return error;
            next = now_seconds() + 1;
        }
        if (look_at_all(c) || now_seconds() >= end)
            return 0;
        usleep(LOOK_US);
    }
}

static void print_who(const struct ctl_process *p)
{
    printf("pid %u on ", p->header.pid);
    for (const char *at = p->header.host; *at; at++) /* out of a file */
        putchar(*at > ' ' && *at <= '~' ? *at : '?');
    if (p->rank != RANK_NONE)
        printf(" (rank %" PRIu64 ")", p->rank);
}

static void print_line(const struct ctl_process *p, enum control_what what)
{
    static const char *const who[] = {"the program", "gpuprof ctl", "its windows"};
    const char *between = ": stopped by ";
    print_who(p);
    if (!p->has_answered) {
        puts(p->has_ended ? ": has ended" : ": did not answer");
        return;
    }
    if (!p->stopped)
        fputs(": recording", stdout);
    for (unsigned i = 0; i < sizeof who / sizeof who[0]; i++)
        if (p->stopped >> i & 1) {
            printf("%s%s", between, who[i]);
            between = " and ";
        }
    if (p->has_flight)
        printf("; its flight recorder has written %" PRIu64 " dumps", p->dumps);
    else if (what == CONTROL_DUMP)
        fputs("; it has no flight recorder: gpuprof run --flight=30s", stdout);
    putchar('\n');
}

static enum exit_code print_answers(const struct ctl *c)
{
    size_t meant = 0, answered = 0, recording = 0, missing = 0, unable = 0;
    for (size_t i = 0; i < c->folder.count; i++) {
        const struct ctl_process *p = &c->folder.processes[i];
        meant += p->is_meant;
        answered += p->is_meant && p->has_answered;
        recording += p->is_meant && p->has_answered && !p->stopped;
        missing += p->is_meant && !p->has_answered && !p->has_ended;
        unable += p->is_meant && p->has_answered && !p->has_flight && c->what == CONTROL_DUMP;
    }
    if (meant > NAMED_MAX)
        printf("%zu processes answered: %zu record, %zu do not; %zu did not answer\n", answered,
               recording, answered - recording, missing);
    for (size_t i = 0; i < c->folder.count; i++) {
        const struct ctl_process *p = &c->folder.processes[i];
        if (p->is_meant && (meant <= NAMED_MAX || (!p->has_answered && !p->has_ended)))
            print_line(p, c->what);
    }
    enum exit_code code = standard_output_end();
    return code != EXIT_OK ? code : missing || unable ? EXIT_ENVIRONMENT : EXIT_OK;
}

enum exit_code ctl_verb(const struct options *options)
{
    static const char *const words[] = {[CONTROL_START] = "start",
                                        [CONTROL_STOP] = "stop",
                                        [CONTROL_STATUS] = "status",
                                        [CONTROL_DUMP] = "dump"};
    struct ctl c = {.options = options};
    unsigned what = 0;
    if (options->path_count != 2)
        return usage_error(
            "ctl: a data folder and start, stop, status or dump are needed; try 'gpuprof "
            "help ctl'");
    while (what <= CONTROL_DUMP && strcmp(words[what], options->paths[1]) != 0)
        what++;
    if (what > CONTROL_DUMP)
        return usage_error("ctl: '%s' is neither start nor stop, status nor dump",
                           options->paths[1]);
    c.what = (enum control_what)what;
    c.folder.path = options->paths[0];
    c.folder.needs_ranks = options->rank != RANK_NONE;
    int error = ctl_folder_look(&c.folder);
    enum exit_code code = error < 0 ? folder_error(&c, error) : make_commands(&c);
    if (code == EXIT_OK) {
        error = wait_for_all(&c);
        code = error < 0 ? folder_error(&c, error) : print_answers(&c);
    }
    ctl_folder_release(&c.folder);
    return code;
}
