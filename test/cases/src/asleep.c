/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that made a call sleeps while the process ends. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

extern int cudaMalloc(void **memory, size_t bytes);

static int ready[2];

static void *sleep_on(void *unused)
{
    void *memory;
    cudaMalloc(&memory, 8);
    if (write(ready[1], "", 1) == 1)
        pause();
    return unused;
}

int main(void)
{
    pthread_t thread;
    char byte;
    void *memory;
    cudaMalloc(&memory, 8);
    if (pipe(ready) || pthread_create(&thread, NULL, sleep_on, NULL))
        return 1;
    return read(ready[0], &byte, 1) != 1;
}
