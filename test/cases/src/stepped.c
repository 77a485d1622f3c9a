/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What step.c steps through: stepped LOG HANDLER CALLS. Each call has a number, its stream or
 * bytes, and each that arrives at the runtime is noted in the log: 64-bit words in shared memory,
 * the first their count, the others function << 32 | number. The handler is one of those below;
 * with "alt" in its name it has another stack, with "pass" gpuprof is first given time to find that
 * calls cost too much.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvtx_client.h"
#include "tiny_cudart.h"

#define LOG_WORDS   (16u << 20)
#define FILL_CALLS  25000 /* two chunks of 512 KiB and more */
#define FEW_CALLS   2500  /* some chunks of 16 KiB */
#define LEFT_BYTES  600   /* a round's frames, and too few for a handler's */
#define FILL_WAIT   15000 /* the writer empties the buffer, or drops are counted */
#define CHILD_WAIT  3000
#define PASS_ROUNDS 700 /* of a millisecond each */
#define PASS_CALLS  50
#define START_WAIT  20000 /* the writer stores its first block, by which a kill's rest is read */

static uint64_t *arrived;
static uint64_t number;
static sigjmp_buf back;
static volatile sig_atomic_t last;
static int inner_calls, is_child, fill_calls;

static void allocate(void)
{
    cudaMalloc(NULL, ++number);
}

static void launch(void)
{
    static const char kernel;
    const struct tiny_dim3 one = {1, 1, 1};
    cudaLaunchKernel(&kernel, one, one, NULL, 0, (void *)(uintptr_t)++number);
}

static void set(void)
{
    cudaMemset(NULL, 0, ++number);
}

static void note_arrival(const char *symbol, uint64_t argument)
{
    if (is_child && is_child++ == 2)
        _exit(0);
    if (is_child)
        return;
    uint64_t function = strcmp(symbol, "cudaMalloc") == 0 ? 1
                        : strcmp(symbol, "cudaMemset")    ? 2
                                                          : 3;
    arrived[1 + arrived[0]] = function << 32 | argument;
    arrived[0]++;
    if (inner_calls && function == 2) {
        allocate();
        allocate();
    }
}

static void on_call(int signal_number)
{
    (void)signal_number;
    set();
}

/* In a range, which is named by the call's number. */
static void on_range(int signal_number)
{
    char text[24];
    (void)signal_number;
    snprintf(text, sizeof text, "%llu", (unsigned long long)++number);
    nvtxRangePushA(text);
    cudaMemset(NULL, 1, number);
    nvtxRangePop();
}

static void on_jump(int signal_number)
{
    (void)signal_number;
    siglongjmp(back, 1);
}

static void on_fill(int signal_number)
{
    (void)signal_number;
    for (int i = 0; i < fill_calls; i++)
        allocate();
}

/* The child goes on later than its parent, to the end of a call and to the beginning of another. */
static void on_fork(int signal_number)
{
    (void)signal_number;
    if (fork() == 0) {
        is_child = 1;
        usleep(CHILD_WAIT);
    }
}

/* From a frame whose middle stays as it was: what the handler left there looks as if it went on. */
static __attribute__((noinline)) void set_below(void)
{
    volatile char *frame = __builtin_alloca(LEFT_BYTES);
    frame[0] = frame[LEFT_BYTES - 1] = 1;
    set();
    frame[0] = 2;
}

/* The handler has a stack of its own. */
static void use_other_stack(void)
{
    static char room[1 << 16];
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, NULL, &action);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
}

static void on_last(int signal_number)
{
    (void)signal_number;
    last = 1;
}

static void calls(int count)
{
    for (int i = 0; i < count; i++) {
        launch();
        allocate();
    }
}

static void round_of_calls(int count)
{
    if (!sigsetjmp(back, 1)) {
        raise(SIGTRAP);
        calls(count);
    }
    if (is_child)
        _exit(0);
    raise(SIGSTOP);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 8 * LOG_WORDS) < 0)
        return 2;
    arrived = mmap(NULL, 8 * LOG_WORDS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    int is_fill = strncmp(argv[2], "fill", 4) == 0;
    fill_calls = strcmp(argv[2], "fill-few") == 0 ? FEW_CALLS : FILL_CALLS;
    inner_calls = strstr(argv[2], "inner") != NULL;
    signal(SIGCHLD, SIG_IGN);
    signal(SIGUSR1, is_fill                    ? on_fill
                    : strstr(argv[2], "jump")  ? on_jump
                    : strstr(argv[2], "fork")  ? on_fork
                    : strstr(argv[2], "range") ? on_range
                                               : on_call);
    if (strstr(argv[2], "alt"))
        use_other_stack();
    signal(SIGUSR2, on_last);
    tiny_during = note_arrival;
    calls(1);
    usleep(START_WAIT);
    for (int i = 0; strstr(argv[2], "pass") && i < PASS_ROUNDS; i++)
        calls(PASS_CALLS), usleep(1000);
    while (!last) {
        round_of_calls(atoi(argv[3]));
        if (strstr(argv[2], "below"))
            set_below();
        calls(1);
        set();
        if (is_fill)
            usleep(FILL_WAIT);
    }
    usleep(10 * CHILD_WAIT);
    return 3;
}
