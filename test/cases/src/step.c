/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step SIGNAL FIRST STRIDE LEAD PROGRAM ARGUMENTS...: runs the program and sends it the signal in
 * the middle of a call. The program raises SIGTRAP before each round of calls and SIGSTOP after it.
 * In the first round the signal comes before the instruction FIRST of libgpuprof.so (and the
 * libunwind beside it), counted from SIGTRAP on, in the next one STRIDE later, and so on; when a
 * round ends before its signal came, SIGUSR2 tells the program that this was the last. SIGKILL:
 * only the first round, of course. Prints how many signals it sent. Exit status: the program's; 9:
 * tracing is not allowed here. What the program and its libcudart do by themselves runs up to the
 * next breakpoint, where it is known how: at our functions, and where theirs return to ours. So
 * does a round up to the last of these places that the round before has come to, and that lies LEAD
 * instructions or more before the signal's.
 */
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OURS, UNWINDER, PROGRAM, CUDART, CODES };
enum { BREAKPOINTS_MAX = 64, PLACES_MAX = 4096 };

struct code {
    uint64_t low, high;
};

/* The functions that the program calls. They lie here as they do there: this is preloaded, too. */
int cudaMalloc(void) __attribute__((weak));
int cudaMemset(void) __attribute__((weak));
int cudaLaunchKernel(void) __attribute__((weak));

static struct code codes[CODES];
static struct {
    uint64_t address, word;
} breakpoints[BREAKPOINTS_MAX];
static unsigned breakpoint_count;
static long places[PLACES_MAX]; /* instructions of the library before each, by the last round */
static unsigned place_count;

static int is_in(uint64_t address, int first, int last)
{
    int found = 0;
    for (int i = first; i <= last; i++)
        found |= address >= codes[i].low && address < codes[i].high;
    return found;
}

#if defined(__x86_64__)
static uint64_t next_instruction(pid_t child)
{
    return (uint64_t)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);
}

/* Where it goes on when the function returns at whose beginning it stands. */
static uint64_t return_address(pid_t child)
{
    long stack = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rsp), NULL);
    return (uint64_t)ptrace(PTRACE_PEEKDATA, child, stack, NULL);
}
#else
static struct user_regs_struct all_registers(pid_t child)
{
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &all);
    return registers;
}

static uint64_t next_instruction(pid_t child)
{
    return all_registers(child).pc;
}

static uint64_t return_address(pid_t child)
{
    return all_registers(child).regs[30];
}
#endif

static void find_code(pid_t child, const char *program, struct code *found)
{
    char path[64], line[4096];
    const char *name = strrchr(program, '/') ? strrchr(program, '/') : program;
    const char *const names[CODES] = {"libgpuprof.so", "libgpuprof-unwind.so", name, "tiny_cudart"};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)child);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps))
        for (int i = 0; i < CODES; i++)
            if (strstr(line, names[i]) && strstr(line, " r-xp "))
                sscanf(line, "%lx-%lx", &found[i].low, &found[i].high);
    if (maps)
        fclose(maps);
}

static int is_breakpoint(uint64_t address)
{
    for (unsigned i = 0; i < breakpoint_count; i++)
        if (breakpoints[i].address == address)
            return 1;
    return 0;
}

static void add_breakpoint(uint64_t address)
{
    if (is_breakpoint(address))
        return;
    if (breakpoint_count == BREAKPOINTS_MAX)
        exit(7);
    breakpoints[breakpoint_count++].address = address;
}

static void find_functions(pid_t child, const char *program)
{
    struct code here[CODES] = {{0, 0}};
    int (*const functions[])(void) = {cudaMalloc, cudaMemset, cudaLaunchKernel};
    find_code(child, program, codes);
    find_code(getpid(), program, here);
    for (unsigned i = 0; i < sizeof functions / sizeof functions[0]; i++)
        add_breakpoint((uint64_t)(uintptr_t)functions[i] - here[OURS].low + codes[OURS].low);
}

static int step_once(pid_t child)
{
    int status;
    ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status))
        exit(8);
    return WSTOPSIG(status);
}

#if defined(__x86_64__)
static void set_breakpoints(pid_t child)
{
    for (unsigned i = 0; i < breakpoint_count; i++) {
        void *address = (void *)(uintptr_t)breakpoints[i].address;
        long word = ptrace(PTRACE_PEEKTEXT, child, address, NULL);
        breakpoints[i].word = (uint64_t)word;
        ptrace(PTRACE_POKETEXT, child, address, (void *)((word & ~0xffl) | 0xcc));
    }
}

/* In reverse order, since two may share a word. */
static void remove_breakpoints(pid_t child)
{
    for (unsigned i = breakpoint_count; i-- > 0;)
        ptrace(PTRACE_POKETEXT, child, (void *)(uintptr_t)breakpoints[i].address,
               (void *)(uintptr_t)breakpoints[i].word);
}

/* Runs to the library's next instruction; the signal for which the program stopped. */
static int run_to_library(pid_t child)
{
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    int status;
    set_breakpoints(child);
    do {
        ptrace(PTRACE_CONT, child, NULL, NULL);
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status))
            exit(8);
    } while (WSTOPSIG(status) == SIGCHLD);
    remove_breakpoints(child);
    if (WSTOPSIG(status) == SIGTRAP) {
        ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &all);
        registers.rip--;
        ptrace(PTRACE_SETREGSET, child, (void *)NT_PRSTATUS, &all);
    }
    return WSTOPSIG(status);
}
#else
static int run_to_library(pid_t child)
{
    int stopped;
    do
        stopped = step_once(child);
    while (stopped != SIGSTOP && !is_breakpoint(next_instruction(child)));
    return stopped;
}
#endif

/* On one processor the two take turns several times as fast as on two, which wake each other. */
static void share_processor(pid_t child)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
    sched_setaffinity(child, sizeof set, &set);
}

/* Runs to the last place before that instruction: how many places lie behind it. -1: there are not
 * as many any more. */
static int skip_to(pid_t child, long instruction)
{
    unsigned count = 0;
    while (count < place_count && places[count] <= instruction) {
        if (count > 0 && step_once(child) == SIGSTOP) /* from where the breakpoint will be */
            return -1;
        if (run_to_library(child) == SIGSTOP)
            return -1;
        count++;
    }
    return (int)count;
}

/*
 * Steps until `wanted` instructions of the library lie behind it. 0: the round ended before; -1: it
 * was another than those before, and nothing is known of it.
 */
static int step(pid_t child, long wanted, long lead)
{
    int skipped = skip_to(child, wanted - lead);
    if (skipped < 0) {
        place_count = 0;
        return -1;
    }
    place_count = (unsigned)skipped;
    int is_theirs = skipped == 0, is_ours = 0; /* in raise() */
    for (long count = skipped ? places[skipped - 1] : 0;; count += is_ours) {
        if (count > wanted) /* it stands before the next one */
            return 1;
        if ((is_theirs ? run_to_library(child) : step_once(child)) == SIGSTOP)
            return 0;
        uint64_t next = next_instruction(child), back;
        is_ours = is_in(next, OURS, UNWINDER);
        is_theirs = is_in(next, PROGRAM, CUDART);
        if (is_theirs && is_in(back = return_address(child), OURS, UNWINDER)) /* just now */
            add_breakpoint(back);
        if (is_breakpoint(next) && place_count < PLACES_MAX)
            places[place_count++] = count + 1;
    }
}

int main(int argc, char **argv)
{
    int number = argc > 5 ? atoi(argv[1]) : 0, status, deliver = 0, begun = 0;
    long wanted = argc > 5 ? atol(argv[2]) : 0, sent = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(9);
        raise(SIGSTOP);
        execv(argv[5], argv + 5);
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
            find_functions(child, argv[5]);
            share_processor(child);
            int stands = step(child, wanted, atol(argv[4]));
            deliver = stands > 0 ? number : stands == 0 ? SIGUSR2 : 0;
            sent += stands > 0;
            wanted += stands > 0 ? atol(argv[3]) : 0;
        } else if (deliver == SIGTRAP || deliver == SIGSTOP) {
            deliver = 0;
        }
        if (deliver == SIGKILL)
            kill(child, SIGKILL);
    }
    printf("%ld\n", sent);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
