/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "base/workers.h"
#include "doctor/checks.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_ADVICE "run 'gpuprof doctor' with the name of the program that uses CUDA"
#define OPTIONS                                                                                    \
    (PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |           \
     PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD)
#define CALL_STOP        (SIGTRAP | 0x80) /* by PTRACE_O_TRACESYSGOOD */
#define LOADER_BYTES_MAX (1u << 20)       /* all other libraries are below it */

struct tracer {
    struct start_probe *probe;
    const char *obstacle; /* why a started program cannot be recorded; NULL: all can */
    pid_t target;
    bool target_is_starter; /* it was a starter before its last exec, or had no exec yet */
    const char *library;
};

/* ---- what a process is ---------------------------------------------------------------------- */

/* Whether the program only starts others, and is not worth recording itself. */
static bool is_starter(const char *name)
{
    return word_in("sh,bash,dash,zsh,ksh,fish,busybox,env,nice,ionice,taskset,chrt,numactl,time,"
                   "timeout,stdbuf,setsid,nohup,xargs,chroot,setpriv,unshare,prlimit,catchsegv,"
                   "mpirun,mpiexec,srun,flock,setarch,tini,dumb-init",
                   name) != UINT_MAX;
}

static FILE *open_of(pid_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return fopen(path, "re");
}

/* Returns where its loader is; 0: a static program has none. */
static uint64_t loader_of(pid_t pid)
{
    Elf64_auxv_t entry;
    uint64_t address = 0;
    FILE *file = open_of(pid, "auxv");
    while (file && fread(&entry, sizeof entry, 1, file) == 1)
        if (entry.a_type == AT_BASE)
            address = entry.a_un.a_val;
    if (file)
        fclose(file);
    return address;
}

/* Whether the library is mapped; also notes libraries of CUDA and Python. */
static bool has_library(struct tracer *t, pid_t pid)
{
    char *line = NULL, last[PATH_MAX] = "";
    size_t bytes = 0;
    bool found = false;
    FILE *file = open_of(pid, "maps");
    while (file && getline(&line, &bytes, file) > 0) {
        char *path = strchr(line, '/');
        if (!path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", path);
        found |= strcmp(path, t->library) == 0;
        cupti_places_add(&t->probe->places, path, basename(path));
        program_python_version(basename(path), &t->probe->python_minor);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

static void set_path(struct start_probe *s, pid_t pid)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(link, s->path, sizeof s->path - 1);
    s->path[length > 0 ? length : 0] = '\0';
}

/* Reports that no program of interest started in time, until more is known. */
static void say_none_yet(struct start_probe *s)
{
    limited(&s->preload, NAME_ADVICE,
            "no program that uses CUDA was started within %d seconds (%s)", START_SECONDS,
            s->via[0] ? s->via : "no program at all");
}

/* Adds a name, once. */
static void add_via(struct start_probe *s, const char *name)
{
    size_t length = strlen(s->via);
    if (word_in(s->via, name) == UINT_MAX)
        snprintf(s->via + length, sizeof s->via - length, "%s%s", length ? ", " : "", name);
    say_none_yet(s);
}

/* Says that the library is loaded (NULL), or why not. Returns true: the answer is known. */
static bool is_done(struct start_probe *s, const char *obstacle)
{
    const char *name = basename(s->path), *by = s->via[0] ? ", started by " : "";
    s->is_loaded = !obstacle;
    if (!obstacle)
        return fine(&s->preload, "libgpuprof.so will be loaded in %s%s%s", name, by, s->via);
    return broken(&s->preload,
                  "put 'gpuprof run' directly before that program's name, inside the script that "
                  "starts it",
                  "libgpuprof.so will not be loaded in %s%s%s: %s", name, by, s->via, obstacle);
}

/* ---- the tracing ---------------------------------------------------------------------------- */

/* Whether its next instruction is the loader's, as before its main function. */
static bool is_in_loader(pid_t pid)
{
    struct user_regs_struct regs;
    struct iovec all = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) != 0)
        return false;
#if defined(__x86_64__)
    uintptr_t at = regs.rip;
#else
    uintptr_t at = regs.pc;
#endif
    return at - loader_of(pid) < LOADER_BYTES_MAX;
}

/* Handles an exec. True: the answer is known; else *is_early says whether to examine the program.
 */
static bool at_exec(struct tracer *t, pid_t pid, bool *is_early)
{
    struct start_probe *s = t->probe;
    struct program program;
    set_path(s, pid);
    program_look(&program, s->path);
    bool is_target = pid == t->target && t->target_is_starter;
    if (pid == t->target)
        t->target_is_starter = is_starter(basename(s->path));
    if (program.obstacle && is_target && !t->target_is_starter)
        return is_done(s, program.obstacle);
    if (program.obstacle) /* a small tool may be static, and its parent continues */
        t->obstacle = program.obstacle;
    *is_early = !program.obstacle;
    return false;
}

/* Handles the first call of `pid` after the loader's: of a constructor, or of its main function if
 * no library has one. True: the answer is known. */
static bool at_begin(struct tracer *t, pid_t pid)
{
    struct start_probe *s = t->probe;
    set_path(s, pid);
    const char *name = basename(s->path);
    bool is_the_program = (pid == t->target && !t->target_is_starter) ||
                          (!is_starter(name) && program_uses_cuda(s->path));
    if (!has_library(t, pid))
        return is_done(s, "LD_PRELOAD does not name gpuprof in its environment, or has no effect");
    if (is_the_program)
        return is_done(s, NULL);
    add_via(s, name);
    return false;
}

/* Handles an event of `pid` and continues it: up to its next system call if its main function has
 * not begun. True: the answer is known. */
static bool start_probe_follow(struct tracer *t, pid_t pid, int status)
{
    int event = status >> 16, number = WSTOPSIG(status);
    bool is_call = number == CALL_STOP, is_early = false;
    if (!WIFSTOPPED(status))
        return false;
    if (event == PTRACE_EVENT_EXEC && at_exec(t, pid, &is_early))
        return true;
    if (event != PTRACE_EVENT_EXEC)
        is_early = is_in_loader(pid);
    if (is_call && !is_early && at_begin(t, pid))
        return true;
    ptrace(is_early ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, event || is_call ? 0 : number);
    return false;
}

static _Noreturn void become_program(const struct target *p, int go)
{
    char byte, reason[ENVIRONMENT_REASON_BYTES];
    /* This cannot be a folder, so CUDA calls of a starter are not recorded. */
    if (environment_prepare(&p->program, reason) &&
        setenv("GPUPROF_OUT", "/dev/null/doctor", 1) == 0 && read(go, &byte, 1) == 1)
        execvp(p->program.path, p->argv);
    _exit(127);
}

static void cannot_see(struct start_probe *s, const char *what, const char *why)
{
    limited(&s->preload, "allow ptrace (docker run --cap-add=SYS_PTRACE), or record a short run",
            "cannot find out whether libgpuprof.so will be loaded: %s: %s", what, why);
}

/* Runs in a child process: when it ends, the kernel ends all traced processes. */
static void trace(void *result, void *context)
{
    struct start_probe *s = result;
    const struct target *p = context;
    struct tracer t = {.probe = s, .library = p->library, .target_is_starter = true};
    int go[2], status;
    if (pipe2(go, O_CLOEXEC) != 0 || (t.target = fork()) < 0)
        return;
    if (t.target == 0)
        become_program(p, go[0]);
    if (ptrace(PTRACE_SEIZE, t.target, NULL, OPTIONS) != 0) {
        cannot_see(s, "ptrace", strerror(errno));
        kill(t.target, SIGKILL);
        return;
    }
    say_none_yet(s);
    if (write(go[1], "", 1) != 1)
        return;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;)
        if (start_probe_follow(&t, pid, status))
            return;
    if (t.obstacle)
        limited(&s->preload, NAME_ADVICE,
                "one of the started programs cannot be recorded (%s), and none of the others uses "
                "CUDA (%s)",
                t.obstacle, s->via);
    else if (s->via[0])
        fine(&s->preload,
             "libgpuprof.so is loaded in every started program (%s), but none of them uses CUDA",
             s->via);
    else
        broken(&s->preload,
               "start it without gpuprof; if that fails, too, one of its own libraries is missing",
               "%s does not start: the loader refuses it", basename(s->path));
}

void start_probe_take(struct target *p)
{
    cannot_see(&p->start, "fork", "cannot start a process");
    aside_run(trace, &p->start, sizeof p->start, p, START_SECONDS);
}
