/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step SIGNAL FIRST STRIDE PROGRAM ARGUMENTS...: runs the program and sends it the signal in the
 * middle of a call. The program raises SIGTRAP before each round of calls and SIGSTOP after it. In
 * the first round the signal comes before the instruction FIRST of libgpuprof.so (and the
 * libunwind beside it), counted from SIGTRAP on, in the next one STRIDE later, and so on; when a
 * round ends before its signal came, SIGUSR2 tells the program that this was the last. SIGKILL:
 * only the first round, of course. Prints how many signals it sent. Exit status: the program's; 9:
 * tracing is not allowed here.
 */
#include <elf.h>
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

static uint64_t low[2], high[2]; /* of our libraries' code: libgpuprof.so, libgpuprof-unwind.so */

static int is_in_code(uint64_t address)
{
    return (address >= low[0] && address < high[0]) || (address >= low[1] && address < high[1]);
}

/* Does its next instruction lie in a library of ours? */
static int is_in_library(pid_t child)
{
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &all);
#if defined(__x86_64__)
    return is_in_code(registers.rip);
#else
    return is_in_code(registers.pc);
#endif
}

static void find_library(pid_t child)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)child);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "libgpuprof.so") && strstr(line, " r-xp "))
            sscanf(line, "%lx-%lx", &low[0], &high[0]);
        else if (strstr(line, "libgpuprof-unwind.so") && strstr(line, " r-xp "))
            sscanf(line, "%lx-%lx", &low[1], &high[1]);
    if (maps)
        fclose(maps);
}

/* Steps until `wanted` instructions of the library lie behind it. 0: the round ended before. */
static int step(pid_t child, long wanted)
{
    int status;
    for (long count = 0;; count += is_in_library(child)) {
        if (count > wanted) /* it stands before the next one */
            return 1;
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status))
            exit(8);
        if (WSTOPSIG(status) == SIGSTOP)
            return 0;
    }
}

int main(int argc, char **argv)
{
    int number = argc > 4 ? atoi(argv[1]) : 0, status, deliver = 0, begun = 0;
    long wanted = argc > 4 ? atol(argv[2]) : 0, sent = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(9);
        raise(SIGSTOP);
        execv(argv[4], argv + 4);
        _exit(8);
    }
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status))
        return 9;
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_EXITKILL);
    for (;;) {
        ptrace(PTRACE_CONT, child, NULL, (void *)(intptr_t)deliver);
        if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
            break;
        deliver = WSTOPSIG(status);
        if (deliver == SIGTRAP && begun++) { /* the first one is execve's */
            find_library(child);
            deliver = step(child, wanted) ? number : SIGUSR2;
            sent += deliver == number;
            wanted += atol(argv[3]);
        } else if (deliver == SIGTRAP || deliver == SIGSTOP) {
            deliver = 0;
        }
        if (deliver == SIGKILL)
            kill(child, SIGKILL);
    }
    printf("%ld\n", sent);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
