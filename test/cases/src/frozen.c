/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread waits for room to write a kernel's name, because the writer is held still by a tracer;
 * meanwhile another one registers a kernel. Or, with the argument "killed", it waits inside a call
 * that has not returned, and the process is killed. Exit status 9: tracing is not allowed here.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define NAME_BYTES 4000

static char name[NAME_BYTES + 1];
static char kernels[10000];
static uint64_t config[16];
static _Atomic size_t launched;
static _Atomic int enough;

static void define(const char *kernel)
{
    __cudaRegisterFunction(NULL, kernel, NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static void *launch(void *data)
{
    for (size_t i = 1; i < sizeof kernels && !enough; i++) {
        define(&kernels[i]);
        cudaLaunchKernelExC(config, &kernels[i], NULL);
        launched = i;
    }
    return data;
}

static void fill_inside(const char *symbol, uint64_t argument)
{
    (void)argument;
    if (strcmp(symbol, "cudaStreamSynchronize") == 0)
        for (size_t i = 1;; i++) {
            cudaMemset(NULL, 0, i);
            launched = i;
        }
}

static void *fill(void *data)
{
    tiny_during = fill_inside;
    cudaStreamSynchronize((void *)0x77);
    return data;
}

static pid_t writer(void)
{
    DIR *tasks = opendir("/proc/self/task");
    pid_t found = 0;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300], comm[20] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(comm, sizeof comm, file) && strcmp(comm, "gpuprof\n") == 0)
            found = atoi(entry->d_name);
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return found;
}

/* In a child: holds the thread until the pipe is closed. */
static void hold(pid_t thread, int ready, int until)
{
    char byte = 0;
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) < 0 ||
        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) < 0 || waitpid(thread, NULL, __WALL) < 0)
        _exit(9);
    if (write(ready, &byte, 1) == 1 && read(until, &byte, 1) == 0)
        ptrace(PTRACE_DETACH, thread, NULL, NULL);
    _exit(0);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    int ready[2], until[2], is_killed = argc > 1 && strcmp(argv[1], "killed") == 0;
    char byte;
    pthread_t thread;
    memset(name, 'n', NAME_BYTES);
    cudaMemset(NULL, 0, 1);
    pid_t held = 0;
    for (int i = 0; i < 500 && !(held = writer()); i++) /* until it has its name */
        usleep(10000);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (!held || pipe(ready) < 0 || pipe(until) < 0)
        return 8;
    pid_t child = fork();
    if (child == 0) {
        close(until[1]);
        hold(held, ready[1], until[0]);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        return 9;
    pthread_create(&thread, NULL, is_killed ? fill : launch, NULL);
    for (size_t before = 0; before != launched || launched == 0;) {
        before = launched;
        usleep(300000);
    }
    if (is_killed)
        syscall(SYS_kill, getpid(), SIGKILL);
    double begin = now();
    define(kernels);
    printf("waits after some: %d, defined at once: %d\n", launched > 50, now() - begin < 1);
    enough = 1;
    close(until[1]);
    waitpid(child, NULL, 0);
    pthread_join(thread, NULL);
    cudaLaunchKernelExC(config, kernels, NULL);
    return 3;
}
