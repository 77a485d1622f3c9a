/* SPDX-License-Identifier: Apache-2.0 */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/say.h"
#include "base/ticks.h"
#include "control/figures.h"
#include "control/orders.h"
#include "control_text.h"
#include "record/recorded.h"
#include "store/flight_sink.h"
#include "store/stream_out.h"

#define PATH_BYTES (STREAM_PATH_BYTES_MAX + 32)

/* Used by the thread that starts a recording, then by the writer. Reset in the child of a fork. */
static struct {
    struct stat file; /* the control file as it was last read */
    uint64_t seen[CONTROL_COMMANDS_MAX];
    enum control_answer answers[CONTROL_COMMANDS_MAX];
    unsigned seen_count;
    uint64_t watch;    /* id of the last watch command */
    uint64_t watch_ns; /* somebody watches this process until then; CLOCK_MONOTONIC */
    uint64_t reported_window;
    bool is_asked;     /* an answer must be written */
    bool has_answered; /* the status file exists */
} now;

static bool is_seen(uint64_t id)
{
    for (unsigned i = 0; i < now.seen_count; i++)
        if (now.seen[i] == id)
            return true;
    return now.watch == id;
}

/* Remembers the answer to command `id`. It replaces one that the file no longer has: the file has
 * fewer other commands than there are places. */
static void remember(const struct control_text *text, uint64_t id, enum control_answer answer)
{
    unsigned place = now.seen_count;
    if (place < CONTROL_COMMANDS_MAX)
        now.seen_count++;
    else
        for (place = 0; place < CONTROL_COMMANDS_MAX - 1; place++)
            if (!control_text_has(text, now.seen[place]))
                break;
    now.seen[place] = id;
    now.answers[place] = answer;
}

/* Who may write the control file decides what is recorded: only its owner and root may. */
static bool is_trusted(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
           !(st->st_mode & (S_IWGRP | S_IWOTH)) && st->st_size <= CONTROL_BYTES_MAX;
}

static bool control_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the file. Returns false if it does not exist or has not changed. */
static bool control_read_file(struct control_text *text)
{
    /* static: the stack of a program's thread may be small */
    static char data[CONTROL_BYTES_MAX + 1];
    char path[PATH_BYTES];
    struct stat st = {0};
    snprintf(path, sizeof path, "%s/" CONTROL_NAME, gp.settings.texts[SETTING_OUT]);
    if (lstat(path, &st) < 0 || control_is_same(&st, &now.file))
        return false; /* the usual case: one system call a second */
    now.file = st;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && is_trusted(&st))
        got = read(fd, data, sizeof data);
    if (fd >= 0)
        close(fd);
    if (got >= 0 && control_text_parse(text, data, (size_t)got))
        return true;
    say(SAY_CONTROL,
        "gpuprof ctl does not reach this process: '%s' is damaged, of another version or another "
        "user, or writable by others; remove it",
        path);
    return false;
}

/* Follows the commands that are new. */
static void control_follow(struct thread *writer)
{
    static struct control_text text;
    if (!control_read_file(&text))
        return;
    for (unsigned i = 0; i < text.count; i++) {
        const struct control_command *c = &text.commands[i];
        if (is_seen(c->id) || (!c->is_for_all && memcmp(c->process_id, gp.header.process_id,
                                                        sizeof c->process_id) != 0))
            continue;
        if (c->what == CONTROL_WATCH) {
            now.watch = c->id;
            now.watch_ns =
                clock_ns(CLOCK_MONOTONIC) + (uint64_t)CONTROL_WATCH_SECONDS * 1000000000u;
            continue;
        }
        now.is_asked = true;
        remember(&text, c->id, orders_take(writer, c));
    }
}

static uint32_t stopped(void)
{
    static const enum asker askers[] = {ASKER_PROGRAM, ASKER_CONTROL, ASKER_WINDOW};
    uint32_t bits = 0;
    for (unsigned i = 0; i < sizeof askers / sizeof askers[0]; i++)
        if (atomic_load(recorded_word(askers[i])) & OFF_CALLS)
            bits |= 1u << i;
    return bits;
}

/* Creates a new file, with a high descriptor that the program does not use. */
static int control_create(const char *path)
{
    return descriptor_move_high(
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

static bool is_watched(void)
{
    return clock_ns(CLOCK_MONOTONIC) < now.watch_ns;
}

static void control_own_answer(void)
{
    static struct control_status status;
    static char data[CONTROL_BYTES_MAX];
    char path[PATH_BYTES], fresh[PATH_BYTES + 4];
    control_status_init(&status);
    status.stopped = stopped();
    status.has_flight = flight_is_on();
    status.dumps = flight_dump_count();
    status.count = now.seen_count;
    status.wait_count = orders_waiting(status.waits);
    memcpy(status.process_id, gp.header.process_id, sizeof status.process_id);
    memcpy(status.answered, now.seen, sizeof status.answered);
    memcpy(status.answers, now.answers, sizeof status.answers);
    figures_fill(&status, is_watched());
    size_t bytes = control_status_write(&status, data);
    snprintf(path, sizeof path, "%s" CONTROL_STATUS_SUFFIX, stream_out.place);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh); /* a full disk may have cut the answer short */
    int fd = control_create(fresh);
    bool is_whole = fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes;
    if (fd >= 0)
        close(fd);
    if (is_whole && rename(fresh, path) == 0)
        now.has_answered = true;
    else
        unlink(fresh);
}

void control_start(void)
{
    memset(&now, 0, sizeof now);
    orders_reset();
    figures_start();
    if (gp.settings.numbers[SETTING_CONTROL] == CONTROL_SETTING_OFF)
        return;
    if (gp.settings.numbers[SETTING_CONTROL] == CONTROL_SETTING_STOPPED)
        recorded_ask(NULL, ASKER_CONTROL, OFF_PROGRAM, NULL);
    control_follow(NULL);
}

void control_tick(struct thread *writer)
{
    if (gp.settings.numbers[SETTING_CONTROL] == CONTROL_SETTING_OFF)
        return;
    control_follow(writer);
    if (now.is_asked ? flight_is_busy() : !is_watched())
        return;
    control_own_answer();
    now.is_asked = false;
}

void control_describe(struct thread *writer, bool is_last)
{
    char path[PATH_BYTES];
    orders_time(writer);
    if (!is_last || !now.has_answered)
        return;
    snprintf(path, sizeof path, "%s" CONTROL_STATUS_SUFFIX, stream_out.place);
    unlink(path);
    now.has_answered = false;
}
