// SPDX-License-Identifier: Apache-2.0
/*
 * What a program can see of the calls that libgpuprof-os.so hooks: cancelled, interrupted, left by
 * siglongjmp, made in signal handlers, in a child of vfork, on locks of every kind. Prints what it
 * saw, which is the same without us. `os_same overflow`: is to be ended by a fortified read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "tiny_cudart.h"

static int pipe_ends[2];
static sem_t semaphore;
static std::atomic<int> tid, is_left;
static pthread_t victim; /* the main thread */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static char folder[300], fifo[320];

static void nap(long ns)
{
    const struct timespec t = {0, ns};
    syscall(SYS_nanosleep, &t, nullptr);
}

/* In the kernel, and asleep? */
static void wait_asleep()
{
    char path[64], text[300] = "";
    while (!tid)
        nap(10000);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid.load());
    for (int i = 0; i < 500 && !strstr(text, ") S"); i++) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
        text[syscall(SYS_read, fd, text, sizeof text - 1) > 0 ? sizeof text - 1 : 0] = 0;
        syscall(SYS_close, fd);
        nap(10000);
    }
    nap(200000);
}

/* ---- cancellation -----------------------------------------------------------------------------
 */

struct frame { /* an unwinder comes by */
    ~frame()
    {
        is_left++;
    }
};

typedef void (*blocked_fn)();

static void *blocked_main(void *blocked)
{
    frame here;
    pthread_cleanup_push([](void *) { is_left++; }, nullptr);
    tid = (int)syscall(SYS_gettid);
    ((blocked_fn)blocked)();
    pthread_cleanup_pop(0);
    return nullptr;
}

static void cancel(const char *name, blocked_fn blocked)
{
    pthread_t thread;
    void *result = nullptr;
    tid = 0;
    is_left = 0;
    pthread_create(&thread, nullptr, blocked_main, (void *)blocked);
    wait_asleep();
    int error = pthread_cancel(thread);
    int joined = pthread_join(thread, &result);
    printf("cancel %s: %d %d %d, %d left\n", name, error, joined, result == PTHREAD_CANCELED,
           is_left.load());
}

static void cancellations()
{
    static char byte;
    victim = pthread_self();
    cancel("read", [] { read(pipe_ends[0], &byte, 1); });
    cancel("poll", [] { poll(nullptr, 0, -1); });
    cancel("select", [] { select(0, nullptr, nullptr, nullptr, nullptr); });
    cancel("nanosleep", [] { sleep(100); });
    cancel("pause", [] { pause(); });
    cancel("open", [] { open(fifo, O_RDONLY); });
    cancel("sem_wait", [] { sem_wait(&semaphore); });
    cancel("join", [] { pthread_join(victim, nullptr); });
    cancel("cond", [] {
        pthread_mutex_lock(&mutex);
        pthread_cleanup_push([](void *) { pthread_mutex_unlock(&mutex); }, nullptr);
        pthread_cond_wait(&condition, &mutex);
        pthread_cleanup_pop(1);
    });
    printf("mutex is free: %d\n", pthread_mutex_trylock(&mutex));
    pthread_mutex_unlock(&mutex);
    cancel("disabled", [] {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        struct pollfd none = {-1, 0, 0};
        poll(&none, 1, 3);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
        pause();
    });
    /* Due when it begins: acted on although there is nothing to wait for. */
    cancel("due", [] {
        pthread_cancel(pthread_self());
        sem_post(&semaphore);
        sem_wait(&semaphore);
        pause();
    });
    printf("semaphore: %d\n", sem_trywait(&semaphore));
}

/* ---- signals -----------------------------------------------------------------------------------
 */

static std::atomic<int> handled;
static sigjmp_buf jump;
static bool does_jump;

static void on_signal(int)
{
    int before = errno;
    char byte = 'h';
    struct pollfd none = {-1, 0, 0};
    errno = 77;
    poll(&none, 1, 0);
    if (read(-1, &byte, 1) != -1 || errno != EBADF)
        abort();
    sem_post(&semaphore);
    sem_trywait(&semaphore);
    handled++;
    errno = before;
    if (does_jump)
        siglongjmp(jump, 1);
}

static void *interrupt(void *)
{
    wait_asleep();
    pthread_kill(victim, SIGUSR1);
    return nullptr;
}

template <typename Call> static void interrupted(const char *name, int flags, Call call)
{
    struct sigaction action = {};
    pthread_t thread;
    action.sa_handler = on_signal;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, nullptr);
    victim = pthread_self();
    tid = (int)syscall(SYS_gettid);
    handled = 0;
    pthread_create(&thread, nullptr, interrupt, nullptr);
    errno = 0;
    long result = call();
    int error = result < 0 ? errno : 0;
    pthread_join(thread, nullptr);
    printf("%s%s: %ld %s, %d handled\n", name, flags & SA_RESTART ? " restarts" : "", result,
           strerror(error), handled.load());
}

static void *write_later(void *)
{
    nap(20000000);
    syscall(SYS_write, pipe_ends[1], "x", 1);
    return nullptr;
}

static void interruptions()
{
    static char byte;
    pthread_t thread;
    const struct timespec second = {1, 0};
    interrupted("read", 0, [] { return read(pipe_ends[0], &byte, 1); });
    interrupted("poll", 0, [] { return poll(nullptr, 0, -1); });
    interrupted("poll", SA_RESTART, [] { return poll(nullptr, 0, -1); });
    interrupted("sem_wait", 0, [] { return sem_wait(&semaphore); });
    interrupted("nanosleep", 0, [&] { return nanosleep(&second, nullptr); });
    interrupted("clock_nanosleep", 0,
                [&] { return clock_nanosleep(CLOCK_MONOTONIC, 0, &second, nullptr); });
    interrupted("sleep", 0, [] { return (long)sleep(2) > 0; });
    interrupted("pause", SA_RESTART, [] { return pause(); });
    interrupted("open", 0, [] { return open(fifo, O_RDONLY); });
    pthread_create(&thread, nullptr, write_later, nullptr);
    interrupted("read", SA_RESTART, [] { return read(pipe_ends[0], &byte, 1); });
    pthread_join(thread, nullptr);
    does_jump = true;
    for (int i = 0; i < 3; i++)
        interrupted("jump", 0, [] {
            if (sigsetjmp(jump, 1))
                return 5l;
            return (long)read(pipe_ends[0], &byte, 1);
        });
    does_jump = false;
    cancel("after jumps", [] { read(pipe_ends[0], &byte, 1); });
}

/* Handlers at any moment, beside calls of CUDA's. */
static void storm()
{
    struct sigaction action = {};
    struct itimerval often = {{0, 300}, {0, 300}}, off = {};
    int wrong = 0, p[2];
    char byte;
    if (pipe(p))
        abort();
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    handled = 0;
    setitimer(ITIMER_REAL, &often, nullptr);
    for (int i = 0; i < 3000 || handled < 50; i++) {
        errno = 12345;
        cudaMemset(nullptr, 0, 1);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        wrong += write(p[1], "s", 1) != 1 || read(p[0], &byte, 1) != 1 || byte != 's';
        wrong += errno != 12345;
    }
    setitimer(ITIMER_REAL, &off, nullptr);
    printf("storm: %d wrong\n", wrong);
}

/* ---- locks -------------------------------------------------------------------------------------
 */

static void kinds_of_locks()
{
    for (int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                     PTHREAD_MUTEX_ADAPTIVE_NP}) {
        pthread_mutexattr_t attributes;
        pthread_mutex_t m;
        struct timespec past = {1, 0}, wrong = {1, -1};
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, type);
        pthread_mutex_init(&m, &attributes);
        int first = pthread_mutex_lock(&m), timed = pthread_mutex_timedlock(&m, &past);
        int bad = pthread_mutex_timedlock(&m, &wrong);
        int again = type == PTHREAD_MUTEX_NORMAL || type == PTHREAD_MUTEX_ADAPTIVE_NP
                        ? -1
                        : pthread_mutex_lock(&m);
        printf("mutex %d: %d %d %d %d\n", type, first, timed, bad, again);
    }
    pthread_mutexattr_t attributes;
    pthread_mutex_t m;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &attributes);
    std::thread([&] { pthread_mutex_lock(&m); }).join();
    int dead = pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m); /* not made consistent */
    printf("robust: %d %d\n", dead, pthread_mutex_lock(&m));
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    int write = pthread_rwlock_wrlock(&lock), deadlock = pthread_rwlock_rdlock(&lock);
    int twice = pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    printf("rwlock: %d %d %d %d %d\n", write, deadlock, twice, pthread_rwlock_rdlock(&lock),
           pthread_rwlock_rdlock(&lock));
    /* What some functions refuse even if the lock is free. */
    const struct timespec late = {1l << 33, 0}, wrong = {1, 1000000000};
    const clockid_t other = CLOCK_PROCESS_CPUTIME_ID;
    pthread_rwlock_t is_free[4] = {};
    pthread_mutex_t free_mutex[2] = {};
    printf("refused: %d %d %d %d %d %d\n", pthread_rwlock_timedrdlock(&is_free[0], &wrong),
           pthread_rwlock_timedwrlock(&is_free[1], &wrong),
           pthread_rwlock_clockrdlock(&is_free[2], other, &late),
           pthread_rwlock_clockwrlock(&is_free[3], other, &late),
           pthread_mutex_clocklock(&free_mutex[0], other, &late),
           pthread_mutex_timedlock(&free_mutex[1], &wrong));
    std::mutex shared;
    std::condition_variable changed;
    long sum = 0;
    std::thread threads[4];
    for (auto &t : threads)
        t = std::thread([&] {
            for (int i = 0; i < 2000; i++) {
                std::lock_guard<std::mutex> hold(shared);
                sum++;
            }
            changed.notify_one();
        });
    {
        std::unique_lock<std::mutex> hold(shared);
        changed.wait(hold, [&] { return sum == 8000; });
    }
    for (auto &t : threads)
        t.join();
    printf("sum: %ld\n", sum);
}

/* A stream that has no descriptor. */
static void streams()
{
    char text[64];
    FILE *file = fmemopen(text, sizeof text, "w+");
    errno = 0;
    size_t written = fwrite("abc", 1, 3, file);
    int flushed = fflush(file);
    rewind(file);
    size_t got = fread(text + 32, 1, 3, file);
    printf("stream: %zu %d %zu %d\n", written, flushed, got, errno);
    fclose(file);
}

/* ---- children, raw calls ------------------------------------------------------------------------
 */

static void children()
{
    int p[2], status;
    char byte;
    if (pipe(p))
        abort();
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            nap(2000000);
            usleep(1500);
            if (write(p[1], "v", 1) != 1 || read(p[0], &byte, 1) != 1)
                _exit(1);
            _exit(7);
        }
        waitpid(pid, &status, 0);
        printf("vfork: %d\n", WEXITSTATUS(status));
    }
    errno = 0;
    int word = 0;
    long id = syscall(SYS_gettid), futex = syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr, 0, 0);
    int error = errno;
    void *all = (void *)syscall(SYS_mmap, nullptr, 1 << 20, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("syscall: %d %ld %d %d\n", id == getpid(), futex, error, all != MAP_FAILED);
    printf("mmap: %d %d\n", mmap(nullptr, 0, 0, 0, -1, 0) == MAP_FAILED, errno);
    int fd = open(fifo, O_RDWR | O_NONBLOCK), made = open(fifo, O_CREAT | O_EXCL, 0600);
    printf("open: %d %d %d\n", fd >= 0, made, errno);
    snprintf(fifo, sizeof fifo, "%s/mode", folder);
    struct stat st = {};
    umask(0);
    close(open(fifo, O_CREAT | O_WRONLY, 0624));
    stat(fifo, &st);
    printf("mode: %o, fcntl: %x\n", st.st_mode & 0777, fcntl(fd, F_GETFL));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    snprintf(folder, sizeof folder, "%s", argc > 1 ? argv[1] : ".");
    if (argc > 2) {
        char little[4];
        volatile size_t bytes = 16;
        return (int)read(0, little, bytes);
    }
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    if (pipe(pipe_ends) || mkfifo(fifo, 0600))
        return 1;
    sem_init(&semaphore, 0, 0);
    cudaMemset(nullptr, 0, 1);
    cancellations();
    interruptions();
    storm();
    kinds_of_locks();
    streams();
    children();
    return 0;
}
