/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program sees of signals, with all of them blocked while it burns CPU time, and of calls
 * that wait while another thread does. It must say the same with samples as without.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int cudaMalloc(void **, size_t);
extern int cudaDeviceSynchronize(void);

enum { MS = 1000000, FIRST = 34, LAST = 64 };

static volatile sig_atomic_t caught;
static volatile int burning = 1;

static void on_signal(int number)
{
    caught = number;
}

static void burn(long ms)
{
    struct timespec t;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec * 1000L + t.tv_nsec / MS < ms);
}

static void *burn_beside(void *unused)
{
    for (volatile unsigned long n = 0; burning; n++)
        ;
    return unused;
}

static void say_actions(const char *when)
{
    for (int n = 1; n <= LAST; n++) {
        struct sigaction action;
        if (sigaction(n, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("%s: %d has a handler\n", when, n);
    }
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* siginterrupt */

/* Calls that signal()'s handlers interrupt restart, until siginterrupt() says otherwise. */
static void say_restarts(void)
{
    struct sigaction action;
    for (int ends = 0; ends < 2; ends++) {
        siginterrupt(SIGUSR1, ends);
        signal(SIGUSR1, on_signal);
        sigaction(SIGUSR1, NULL, &action);
        printf("signal() after siginterrupt(%d): %x\n", ends, (unsigned)action.sa_flags);
    }
    signal(SIGUSR1, SIG_DFL);
}

static void say_waiting(void)
{
    sigset_t all, pending;
    const struct timespec soon = {.tv_nsec = 20 * MS};
    siginfo_t info;
    struct signalfd_siginfo one;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    burn(60);
    sigpending(&pending);
    for (int n = 1; n <= LAST; n++)
        if (sigismember(&pending, n) == 1)
            printf("%d is pending\n", n);
    int fd = signalfd(-1, &all, SFD_NONBLOCK);
    printf("signalfd %zd\n", read(fd, &one, sizeof one));
    close(fd);
    printf("sigtimedwait %d %d\n", sigtimedwait(&all, &info, &soon), errno);
    raise(SIGUSR1);
    printf("sigwaitinfo %d\n", sigwaitinfo(&all, &info));
    raise(SIGUSR2);
    int number = 0;
    sigwait(&all, &number);
    printf("sigwait %d\n", number);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
}

/* Each real-time signal is the program's, whichever of them we have. */
static void use_all(void)
{
    for (int n = FIRST; n <= LAST; n++) {
        struct sigaction action = {.sa_handler = on_signal}, old;
        sigset_t one;
        int got = 0;
        sigaction(n, &action, &old);
        if (old.sa_handler != SIG_DFL)
            printf("%d had a handler\n", n);
        raise(n);
        sigemptyset(&one);
        sigaddset(&one, n);
        pthread_sigmask(SIG_BLOCK, &one, NULL);
        raise(n);
        sigwait(&one, &got);
        pthread_sigmask(SIG_UNBLOCK, &one, NULL);
        if (caught != n || got != n)
            printf("%d: caught %d, waited for %d\n", n, caught, got);
        burn(60 + n / 2);
        if (caught != n)
            printf("%d: a tick of somebody's\n", n);
        signal(n, SIG_DFL);
    }
}

static void say_defaults(void)
{
    for (int n = LAST - 5; n <= LAST; n++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            raise(n);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        printf("%d ends a child by %d\n", n, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

/* None may end early. */
static void say_waits(void)
{
    const struct timespec wait = {.tv_nsec = 30 * MS};
    const struct timeval limit = {.tv_usec = 30000};
    struct timespec end;
    struct epoll_event event;
    sem_t sem;
    int pair[2];
    char byte;
    sem_init(&sem, 0, 0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int epoll = epoll_create1(0);
    for (int i = 0; i < 3; i++) {
        burn(95 + 12 * i); /* a tick is near */
        printf("poll %d\n", poll(NULL, 0, 30));
        printf("nanosleep %d\n", nanosleep(&wait, NULL));
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += 30 * MS;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        errno = 0;
        int result = sem_timedwait(&sem, &end);
        printf("sem_timedwait %d %s\n", result, strerror(errno));
        errno = 0;
        ssize_t bytes = read(pair[0], &byte, 1);
        printf("read %zd %s\n", bytes, strerror(errno));
        printf("epoll_wait %d\n", epoll_wait(epoll, &event, 1, 30));
    }
}

/* On a stack for handlers as small as the kernel lets it be, behind memory that nobody has. */
static void *burn_above(void *page)
{
    const stack_t handlers = {.ss_sp = page, .ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ)};
    sigaltstack(&handlers, NULL);
    burn(60);
    return page;
}

static void say_small_stack(void)
{
    pthread_t thread;
    long bytes = sysconf(_SC_PAGESIZE);
    char *pages =
        mmap(NULL, (size_t)bytes * 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, (size_t)bytes, PROT_NONE);
    pthread_create(&thread, NULL, burn_above, pages + bytes);
    pthread_join(thread, NULL);
    puts("small stack");
}

int main(void)
{
    void *memory;
    pthread_t thread;
    say_actions("before");
    cudaMalloc(&memory, 64);
    pthread_create(&thread, NULL, burn_beside, NULL);
    say_actions("after");
    say_restarts();
    say_waiting();
    say_waits();
    say_defaults();
    say_small_stack();
    use_all();
    burning = 0;
    pthread_join(thread, NULL);
    cudaDeviceSynchronize();
    puts("done");
    return 0;
}
