/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler_stack WHEN BYTES: a handler that calls CUDA on a stack of its own of so many bytes, with
 * memory below it that nobody may touch, every 0.1 ms. WHEN: first, the process's first call comes
 * from there; later, it does not. Ends after HANDLED calls of the handler and prints how many
 * others there were.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "tiny_cudart.h"

#define HANDLED     200
#define SPINS       10000 /* between two calls that are interrupted, now and then */
#define GUARD_BYTES 65536

static volatile sig_atomic_t handled;

static void handle(int number)
{
    if (handled < HANDLED) {
        handled++;
        cudaMemset(NULL, 0, (size_t)number);
    }
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 0;
    const struct itimerval timer = {{0, 100}, {0, 100}};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    char *memory =
        mmap(NULL, GUARD_BYTES + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 3 || memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE))
        return 2;
    stack_t stack = {.ss_sp = memory + GUARD_BYTES, .ss_size = bytes};
    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    int calls = strcmp(argv[1], "later") == 0;
    if (calls)
        cudaMemset(NULL, 0, 1000);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (handled < HANDLED) {
        for (volatile int i = 0; i < SPINS; i++)
            ;
        if (calls || handled) {
            cudaMemset(NULL, 0, 1000);
            calls++;
        }
    }
    printf("%d\n", calls);
    return 0;
}
