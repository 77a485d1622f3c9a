/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings and ends of processes and threads, with calls on both sides of them: life SCENARIO. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define DESCRIPTOR_COUNT 1024
#define STAY             1000000 /* bytes of a call that does not return */

extern char **environ;
static const char *self;

static void calls(size_t count)
{
    for (size_t i = 1; i <= count; i++)
        cudaMemset(NULL, 0, i);
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t raw_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* The child calls `in_child` times and ends by exit or _exit. */
static void with_child(pid_t (*make)(void), size_t before, size_t in_child, void (*end)(int))
{
    calls(before);
    pid_t child = make();
    if (child == 0) {
        calls(in_child);
        end(7);
    }
    printf("child %d\n", wait_for(child));
    calls(2);
}

static void leave(int status)
{
    _exit(status);
}

static void double_fork(void)
{
    calls(3);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            calls(5);
            exit(4);
        }
        calls(1);
        exit(wait_for(grandchild));
    }
    printf("child %d\n", wait_for(child));
}

static void fork_inside(const char *symbol, uint64_t argument)
{
    (void)argument;
    if (strcmp(symbol, "cudaStreamSynchronize") != 0)
        return;
    tiny_during = NULL;
    if (fork() == 0) {
        calls(3);
        exit(5);
    }
    wait(NULL);
}

static void vfork_and_spawn(void)
{
    pid_t child;
    char *arguments[] = {(char *)(uintptr_t)self, (char *)(uintptr_t) "calls", NULL};
    calls(4);
    child = vfork();
    if (child == 0)
        _exit(9);
    printf("vfork %d\n", wait_for(child));
    child = vfork();
    if (child == 0) {
        execv(self, arguments);
        _exit(127);
    }
    printf("vfork and exec %d\n", wait_for(child));
    posix_spawn(&child, self, NULL, NULL, arguments, environ);
    printf("spawn %d\n", wait_for(child));
    calls(2);
}

static void *short_life(void *data)
{
    calls(1 + (size_t)data % 3);
    return NULL;
}

static void many_threads(unsigned count)
{
    pthread_t threads[8];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    for (size_t i = 0; i < count; i += 8) {
        for (size_t k = 0; k < 8; k++)
            if (pthread_create(&threads[k], &attributes, short_life, (void *)(i + k)) != 0)
                abort();
        for (size_t k = 0; k < 8; k++)
            pthread_join(threads[k], NULL);
    }
}

static pthread_barrier_t all_called;

static void *idle(void *data)
{
    calls(1);
    pthread_barrier_wait(&all_called);
    pthread_barrier_wait(&all_called);
    calls(2);
    return data;
}

/* Threads that live at the same time, and do nothing for a while. */
static void idle_threads(unsigned count)
{
    pthread_t threads[4096];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&all_called, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, idle, NULL) != 0)
            abort();
    pthread_barrier_wait(&all_called);
    calls(20000);
    pthread_barrier_wait(&all_called);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static pthread_key_t key;

static void at_thread_end(void *value)
{
    size_t round = (size_t)value;
    cudaMalloc(NULL, round);
    if (round < 3)
        pthread_setspecific(key, (void *)(round + 1));
}

static void *with_destructor(void *data)
{
    pthread_setspecific(key, (void *)1);
    if (data)
        calls(2);
    return NULL;
}

static void destructors(void)
{
    pthread_t threads[2];
    pthread_key_create(&key, at_thread_end);
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, with_destructor, (void *)i);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void *call_for_ever(void *data)
{
    for (size_t i = 1;; i++)
        cudaMemset(data, 0, i);
    return NULL;
}

static void start_callers(void)
{
    for (size_t i = 1; i <= 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, call_for_ever, (void *)i);
    }
    calls(100);
    usleep(150000);
}

static void exit_handler(void)
{
    cudaMalloc(NULL, 4001);
}

__attribute__((destructor)) static void last_words(void)
{
    if (getenv("LIFE_DESTRUCTOR"))
        cudaMalloc(NULL, 4002);
}

static void end_by(const char *way)
{
    struct sigaction action = {.sa_handler = leave};
    if (strcmp(way, "exit-handlers") == 0) {
        atexit(exit_handler);
        calls(2);
        exit(3);
    }
    start_callers();
    if (strcmp(way, "return") == 0)
        return;
    if (strcmp(way, "_exit") == 0)
        _exit(3);
    if (strcmp(way, "_Exit") == 0)
        _Exit(3);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(3);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "kill") == 0)
        syscall(SYS_kill, getpid(), SIGKILL);
    if (strcmp(way, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(way, "term") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(way, "handler") == 0) {
        sigaction(SIGTERM, &action, NULL);
        raise(SIGTERM);
    }
    for (;;)
        pause();
}

static useconds_t outlive_us = 300000;

static void *outlive_main(void *data)
{
    for (useconds_t left = outlive_us; left > 0; left -= 100000)
        usleep(100000);
    calls((size_t)data);
    return NULL;
}

static atomic_uint staying;

static void stay(const char *symbol, uint64_t argument)
{
    (void)symbol;
    if (argument != STAY)
        return;
    atomic_fetch_add(&staying, 1);
    for (;;)
        pause();
}

static void *call_and_stay(void *data)
{
    calls((size_t)data);
    cudaMemset(NULL, 0, STAY);
    return NULL;
}

/* To be killed while three threads are in calls, after as many others as are wanted. */
static void stay_in_calls(size_t count, int is_killed)
{
    tiny_during = stay;
    for (size_t i = 1; i <= 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, call_and_stay, (void *)count);
    }
    while (atomic_load(&staying) < 3)
        usleep(1000);
    calls(100);
    if (is_killed)
        syscall(SYS_kill, getpid(), SIGKILL);
    puts("called");
    fflush(stdout);
    pause();
}

/* The first thread ends, the others later, and the process with the last of them. */
static void leave_main(const char *way)
{
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    calls(2);
    atexit(exit_handler);
    if (strcmp(way, "for-long") == 0)
        outlive_us = 600000000;
    for (size_t i = 1; i <= 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, outlive_main, (void *)(3 * i));
    }
    kill(getpid(),
         SIGUSR1); /* pending for ever: only a thread that blocks it may end the process */
    if (strcmp(way, "alone") != 0)
        pthread_exit((void *)7);
    usleep(600000);
    pthread_exit((void *)7);
}

/* Closes what it does not know, as daemons do, and counts on the numbers that it then gets. */
static void daemonise(const char *folder)
{
    char path[4096], text[64];
    calls(5);
    if (fork() != 0)
        _exit(3);
    setsid();
    calls(3);
    for (int round = 0; round < 20; round++) {
        for (int fd = 3; fd < DESCRIPTOR_COUNT; fd++)
            close(fd);
        int files[40];
        for (int i = 0; i < 40; i++) {
            snprintf(path, sizeof path, "%s/own.%d", folder, i);
            files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        }
        calls(50);
        usleep(20000);
        for (int i = 0; i < 40; i++) {
            int length = snprintf(text, sizeof text, "file %d round %d\n", i, round);
            if (write(files[i], text, (size_t)length) != length)
                abort();
        }
    }
    snprintf(path, sizeof path, "%s/done", folder);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    exit(0);
}

/* Whoever asks for the process's number is killed from here on: a program that has no need of it.
 */
static void forbid_getpid(void)
{
    struct sock_filter rows[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the call's number */
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {sizeof rows / sizeof *rows, rows};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        puts("no filters here");
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "";
    int count;
    self = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(scenario, "queries") == 0)
        return cudaGetDeviceCount(&count) == 0 ? 3 : 1;
    if (strcmp(scenario, "calls") == 0)
        calls(6);
    else if (strcmp(scenario, "fork-after") == 0)
        with_child(fork, 3, 4, exit);
    else if (strcmp(scenario, "fork-before") == 0)
        with_child(fork, 0, 4, exit);
    else if (strcmp(scenario, "fork-_exit") == 0)
        with_child(fork, 3, 4, leave);
    else if (strcmp(scenario, "fork-silent") == 0)
        with_child(fork, 3, 0, exit);
    else if (strcmp(scenario, "_Fork") == 0)
        with_child(_Fork, 3, 4, leave);
    else if (strcmp(scenario, "clone") == 0)
        with_child(raw_clone, 3, 4, leave);
    else if (strcmp(scenario, "double-fork") == 0)
        double_fork();
    else if (strcmp(scenario, "fork-inside") == 0)
        tiny_during = fork_inside, cudaStreamSynchronize((void *)0x55);
    else if (strcmp(scenario, "vfork") == 0)
        vfork_and_spawn();
    else if (strcmp(scenario, "exec") == 0)
        calls(4), execl(self, self, "calls", NULL);
    else if (strcmp(scenario, "threads") == 0)
        many_threads((unsigned)atoi(argv[2]));
    else if (strcmp(scenario, "idle") == 0)
        idle_threads((unsigned)atoi(argv[2]));
    else if (strcmp(scenario, "destructors") == 0)
        destructors();
    else if (strcmp(scenario, "end") == 0)
        end_by(argv[2]);
    else if (strcmp(scenario, "stay") == 0)
        stay_in_calls((size_t)atol(argv[2]), argc > 3);
    else if (strcmp(scenario, "leave-main") == 0)
        leave_main(argv[2]);
    else if (strcmp(scenario, "sandbox") == 0)
        forbid_getpid(), _exit(3);
    else if (strcmp(scenario, "daemon") == 0)
        daemonise(argv[2]);
    else if (strcmp(scenario, "chdir") == 0)
        calls(1), count = chdir("/"), calls(atoi(argv[2])), usleep(50000), calls(2);
    else if (strcmp(scenario, "pause") == 0)
        calls((size_t)atol(argv[2])), puts("called"), fflush(stdout), pause();
    else if (strcmp(scenario, "many") == 0)
        calls((size_t)atol(argv[2]));
    else
        return 2;
    return 3;
}
