/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cycles.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "file/live_file.h"
#include "rank.h"
#include "read/process.h"

#define WINDOWS_META "windows" /* windows.c says it */
#define WINDOWS_MAX  1000000000u

/* In the command's process. */
static int run_command(void *context)
{
    const struct cycles *c = context;
    char number[24];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf(number, sizeof number, "%" PRIu64, c->begun);
    environ = c->environment;
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
        setenv("GPUPROF_OUT", c->out, 1) != 0 || setenv("GPUPROF_CYCLE", number, 1) != 0)
        return 127;
    execl("/bin/sh", "sh", "-c", c->command, (char *)NULL);
    return 127;
}

static void tell(struct cycles *c, const struct child *child)
{
    int status = child->helper_status;
    if (status == 0 || c->has_failed)
        return;
    c->has_failed = true;
    message("run: --on-cycle: the command for cycle %" PRIu64 " ended with %s %d; later ones that "
            "fail are not told of",
            c->begun, WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Is one running, or has the newest been seen to? */
static bool is_busy(struct cycles *c, struct child *child)
{
    if (child->helper > 0)
        return true;
    tell(c, child);
    child->helper_status = 0;
    return false;
}

static void ask(struct cycles *c)
{
    struct control_command watch = {.is_for_all = true, .what = CONTROL_WATCH};
    uint64_t now_s = (uint64_t)time(NULL);
    if ((!c->asked_s || now_s - c->asked_s >= CONTROL_WATCH_SECONDS / 2) &&
        getrandom(&watch.id, sizeof watch.id, 0) == sizeof watch.id &&
        ctl_folder_tell(&c->folder, &watch, 1) == 0)
        c->asked_s = now_s;
}

/* The last window that is whole for all who have steps. */
static uint64_t whole_now(struct cycles *c)
{
    uint64_t whole = UINT64_MAX;
    for (uint32_t i = 0; i < c->folder.count; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        p->has_ended = p->has_ended || live_owner(&p->header) == LIVE_OWNER_ENDED;
        if (p->has_ended || !ctl_process_read(p) ||
            p->status.figures[FIGURE_STEPS] == CONTROL_UNKNOWN)
            continue;
        uint64_t window = p->status.figures[FIGURE_WINDOW];
        window = window == CONTROL_UNKNOWN ? 0 : window;
        whole = window < whole ? window : whole;
    }
    return whole == UINT64_MAX ? 0 : whole;
}

void cycles_tick(struct cycles *c, struct child *child)
{
    c->folder.path = c->out;
    if (!c->command || is_busy(c, child) || access(c->out, F_OK) != 0 ||
        ctl_folder_look(&c->folder) < 0 || !c->folder.count)
        return;
    ask(c);
    if (whole_now(c) <= c->begun)
        return;
    c->begun++;
    child_begin_helper(child, run_command, c);
}

/* What the files say of the last one. */
static uint64_t last_of(char **paths, uint32_t path_count)
{
    uint64_t last = 0;
    struct reader reader;
    struct process process;
    if (reader_init(&reader) != 0)
        return 0;
    reader.keep_live = true;
    for (uint32_t i = 0; i < path_count; i++)
        if (process_load(&process, &reader, paths[i], 0, NULL, NULL) == 0) {
            uint64_t number = rank_number(process_meta(&process, WINDOWS_META));
            last = number != RANK_NONE && number > last ? number : last;
            process_release(&process, &reader);
        }
    reader_release(&reader);
    return last < WINDOWS_MAX ? last : 0;
}

void cycles_end(struct cycles *c, struct child *child, char **paths, uint32_t path_count)
{
    if (c->command) {
        child_await_helper(child);
        uint64_t last = last_of(paths, path_count);
        while (!is_busy(c, child) && c->begun < last) {
            c->begun++;
            if (!child_begin_helper(child, run_command, c) || !child_await_helper(child))
                break; /* it was interrupted */
        }
    }
    ctl_folder_release(&c->folder);
}
