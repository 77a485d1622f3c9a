/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_at N PROGRAM ARGUMENTS...: runs the program and kills it at the Nth stop at a system call's
 * beginning or end, from its first mkdir on: that is where a recording begins; +N: from its own
 * first one on. Prints "killed", or "started" if it made a thread before, or ended. Exit status 9:
 * tracing is not allowed here.
 * -DNO_UNNAMED: a preload under which no file system has files without a name.
 */
#ifdef NO_UNNAMED

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return real(path, flags, mode);
}

#else

#include <errno.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* <sys/ptrace.h> and <linux/ptrace.h> do not go together. */
static long trace(long request, pid_t pid, long address, void *data)
{
    return syscall(SYS_ptrace, request, pid, address, data);
}

static int is_mkdir(uint64_t number)
{
#ifdef SYS_mkdir
    if (number == SYS_mkdir)
        return 1;
#endif
    return number == SYS_mkdirat;
}

int main(int argc, char **argv)
{
    long left = argc > 2 ? atol(argv[1]) : 0;
    int status = 0, begun = argc > 2 && argv[1][0] == '+';
    pid_t child = fork();
    if (child == 0) {
        if (trace(PTRACE_TRACEME, 0, 0, NULL) < 0)
            _exit(9);
        raise(SIGSTOP);
        execv(argv[2], argv + 2);
        _exit(8);
    }
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status))
        return 9;
    trace(PTRACE_SETOPTIONS, child, 0, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    for (int deliver = 0;;) {
        trace(PTRACE_SYSCALL, child, 0, (void *)(intptr_t)deliver);
        if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
            break;
        deliver = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (deliver) {
            deliver = deliver == SIGTRAP ? 0 : deliver; /* after execve */
            continue;
        }
        struct ptrace_syscall_info info = {0};
        trace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        int enters = info.op == PTRACE_SYSCALL_INFO_ENTRY;
        if (enters && begun && (info.entry.nr == SYS_clone || info.entry.nr == SYS_clone3))
            break;
        begun |= enters && is_mkdir(info.entry.nr);
        if (begun && left-- == 0) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            puts("killed");
            return 0;
        }
    }
    kill(child, SIGKILL);
    puts("started");
    return begun ? 0 : 7;
}

#endif
