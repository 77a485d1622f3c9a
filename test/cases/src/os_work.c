/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_work FOLDER [free]: a call of CUDA's, then each of the C library's functions that
 * libgpuprof-os.so hooks, once, blocked for NAP_NS where that can be had. Prints of each its name,
 * how long it took (CLOCK_MONOTONIC), whether it had the processor to itself, its errno, and what
 * it moved or returned. With `free` instead a million locks that nobody else wants, and reads of
 * what is there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define NAP_NS    3000000
#define CALLS_MAX 300
#define BIG       (2u << 20)

/* Fortified twins, which the headers name only where they are meant. */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off_t, size_t);
int __open_2(const char *, int), __open64_2(const char *, int);
int __openat_2(int, const char *, int), __openat64_2(int, const char *, int);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

static struct {
    const char *name;
    long ns;
    int error;
    int disturbed; /* another thread had the processor meanwhile: its time is not the call's alone
                    */
    long result;
} logged[CALLS_MAX];
static unsigned count;

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(long ns)
{
    const struct timespec t = {.tv_nsec = ns};
    syscall(SYS_nanosleep, &t, NULL);
}

static long disturbances(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

#define TELL(symbol, its_result)                                                                   \
    do {                                                                                           \
        long before_ = disturbances();                                                             \
        errno = 0;                                                                                 \
        long begin_ = now_ns();                                                                    \
        long result_ = (long)(its_result);                                                         \
        logged[count].ns = now_ns() - begin_;                                                      \
        logged[count].error = errno;                                                               \
        logged[count].name = #symbol;                                                              \
        logged[count].disturbed = disturbances() != before_;                                       \
        logged[count++].result = result_;                                                          \
    } while (0)
#define CALL(symbol, ...) TELL(symbol, symbol(__VA_ARGS__))

/* ---- somebody who ends a wait -----------------------------------------------------------------
 */

struct later {
    void (*before)(void *); /* first of all; NULL: nothing */
    void (*after)(void *);  /* after a nap */
    void *data;
    _Atomic int is_ready, is_over;
    pthread_t thread;
};
static struct later other;

static void *other_main(void *unused)
{
    if (other.before)
        other.before(other.data);
    atomic_store(&other.is_ready, 1);
    nap(NAP_NS);
    other.after(other.data);
    return unused;
}

static void begin(void (*before)(void *), void (*after)(void *), void *data)
{
    other.before = before, other.after = after, other.data = data;
    atomic_store(&other.is_ready, 0);
    atomic_store(&other.is_over, 0);
    pthread_create(&other.thread, NULL, other_main, NULL);
    while (!atomic_load(&other.is_ready))
        sched_yield();
}

static void end(void)
{
    void *none;
    atomic_store(&other.is_over, 1);
    CALL(pthread_join, other.thread, &none);
}

/* Calls that wait for what another thread does meanwhile. */
#define WAITS(before, after, data, symbol, ...)                                                    \
    do {                                                                                           \
        begin(before, after, data);                                                                \
        CALL(symbol, __VA_ARGS__);                                                                 \
        end();                                                                                     \
    } while (0)

static void put_byte(void *fd)
{
    if (syscall(SYS_write, *(int *)fd, "x", 1) != 1)
        abort();
}

static void drain(void *fd)
{
    static char all[1 << 20];
    if (syscall(SYS_read, *(int *)fd, all, sizeof all) < 1)
        abort();
}

static void nothing(void *unused)
{
    (void)unused;
}

/* ---- files ------------------------------------------------------------------------------------
 */

static char data[1 << 16];
static const char *folder;

/* Nothing more goes into it without waiting. */
static void fill(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while (syscall(SYS_write, fd, data, sizeof data) > 0 || syscall(SYS_write, fd, data, 1) > 0)
        ;
    fcntl(fd, F_SETFL, flags);
}

static void unlock_file(void *fd)
{
    flock(*(int *)fd, LOCK_UN);
}

static void unlock_range(void *fd)
{
    struct flock none = {.l_type = F_UNLCK, .l_len = 1};
    fcntl(*(int *)fd, F_OFD_SETLK, &none);
}

static void pipes(void)
{
    int p[2], full[2], into[2];
    struct iovec piece = {data, 1};
    if (pipe(p) || pipe(full) || pipe(into))
        abort();
    WAITS(NULL, put_byte, &p[1], read, p[0], data, 1);
    WAITS(NULL, put_byte, &p[1], readv, p[0], &piece, 1);
    WAITS(NULL, put_byte, &p[1], __read_chk, p[0], data, 1, sizeof data);
    WAITS(NULL, put_byte, &p[1], splice, p[0], NULL, into[1], NULL, 1, 0);
    fill(full[1]);
    WAITS(NULL, drain, &full[0], write, full[1], data, 8192);
    fill(full[1]);
    WAITS(NULL, drain, &full[0], writev, full[1], &piece, 1);
    FILE *from = fdopen(p[0], "r"), *to = fdopen(full[1], "w");
    WAITS(NULL, put_byte, &p[1], fread, data, 1, 1, from);
    WAITS(NULL, put_byte, &p[1], __fread_chk, data, sizeof data, 1, 1, from);
    fill(full[1]);
    setvbuf(to, NULL, _IONBF, 0);
    WAITS(NULL, drain, &full[0], fwrite, "y", 1, 1, to);
    setvbuf(to, NULL, _IOFBF, 4096);
    fill(full[1]);
    fputc('z', to);
    WAITS(NULL, drain, &full[0], fflush, to);
}

static char path[300], fifo[300];

static void open_to_write(void *unused)
{
    (void)unused;
    close((int)syscall(SYS_openat, AT_FDCWD, fifo, O_WRONLY));
}

static void open_to_read(void *unused)
{
    (void)unused;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, fifo, O_RDONLY);
    nap(100000); /* or the writer's open ends in the middle of that */
    close(fd);
}

/* Closed again: one that has a reader is opened at once. */
#define OPENS(after, symbol, ...)                                                                  \
    do {                                                                                           \
        WAITS(NULL, after, NULL, symbol, __VA_ARGS__);                                             \
        close((int)logged[count - 2].result);                                                      \
    } while (0)

static void opens(void)
{
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    mkfifo(fifo, 0600);
    OPENS(open_to_write, open, fifo, O_RDONLY);
    OPENS(open_to_write, open64, fifo, O_RDONLY);
    OPENS(open_to_write, openat, AT_FDCWD, fifo, O_RDONLY);
    OPENS(open_to_write, openat64, AT_FDCWD, fifo, O_RDONLY);
    OPENS(open_to_write, __open_2, fifo, O_RDONLY);
    OPENS(open_to_write, __open64_2, fifo, O_RDONLY);
    OPENS(open_to_write, __openat_2, AT_FDCWD, fifo, O_RDONLY);
    OPENS(open_to_write, __openat64_2, AT_FDCWD, fifo, O_RDONLY);
    OPENS(open_to_read, creat, fifo, 0600);
    OPENS(open_to_read, creat64, fifo, 0600);
    WAITS(NULL, open_to_write, NULL, fopen, fifo, "r");
    fclose((FILE *)logged[count - 2].result);
    WAITS(NULL, open_to_write, NULL, fopen64, fifo, "r");
    fclose((FILE *)logged[count - 2].result);
}

static void files(void)
{
    snprintf(path, sizeof path, "%s/file", folder);
    int fd, again, all = (int)syscall(SYS_openat, AT_FDCWD, "/proc", O_RDONLY);
    TELL(open, fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    TELL(open, again = open(path, O_RDWR));
    struct iovec piece = {data, 16};
    struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
    off_t zero = 0;
    CALL(pwrite, fd, data, 100, 0);
    CALL(pwrite64, fd, data, 100, 0);
    CALL(pwritev, fd, &piece, 1, 0);
    CALL(pwritev64, fd, &piece, 1, 0);
    CALL(pwritev2, fd, &piece, 1, 0, 0);
    CALL(pwritev64v2, fd, &piece, 1, 0, 0);
    CALL(pread, fd, data, 100, 0);
    CALL(pread64, fd, data, 100, 0);
    CALL(__pread_chk, fd, data, 100, 0, sizeof data);
    CALL(__pread64_chk, fd, data, 100, 0, sizeof data);
    CALL(preadv, fd, &piece, 1, 0);
    CALL(preadv64, fd, &piece, 1, 0);
    CALL(preadv2, fd, &piece, 1, 0, 0);
    CALL(preadv64v2, fd, &piece, 1, 0, 0);
    CALL(copy_file_range, fd, &zero, fd, &(off_t){200}, 10, 0);
    CALL(sendfile, again, fd, &(off_t){0}, 5);
    CALL(sendfile64, again, fd, &(off_t){0}, 5);
    CALL(fsync, fd);
    CALL(fdatasync, fd);
    CALL(syncfs, all);
    CALL(lockf, fd, F_LOCK, 1);
    CALL(lockf64, fd, F_LOCK, 1);
    CALL(fallocate, fd, 0, 0, 4096);
    CALL(fallocate64, fd, 0, 0, 4096);
    CALL(ftruncate, fd, 4096);
    CALL(ftruncate64, fd, 4096);
    CALL(posix_fallocate, fd, 0, 4096);
    CALL(posix_fallocate64, fd, 0, 4096);
    CALL(flock, again, LOCK_EX);
    WAITS(NULL, unlock_file, &again, flock, fd, LOCK_EX);
    fcntl(fd, F_SETLK, &(struct flock){.l_type = F_UNLCK});
    fcntl(again, F_OFD_SETLK, &lock);
    WAITS(NULL, unlock_range, &again, fcntl, fd, F_OFD_SETLKW, &lock);
    unlock_range(&fd);
    fcntl(again, F_OFD_SETLK, &lock);
    WAITS(NULL, unlock_range, &again, fcntl64, fd, F_OFD_SETLKW, &lock);
    CALL(ioctl, fd, FIONREAD, &(int){0});
    void *memory;
    TELL(mmap, memory = mmap(NULL, BIG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    logged[count - 1].result = BIG;
    munmap(memory, 4096); /* too little to be told of */
    TELL(munmap, munmap(memory, BIG));
    TELL(mmap64, memory = mmap64(NULL, BIG, PROT_READ, MAP_SHARED, fd, 0));
    logged[count - 1].result = BIG;
    CALL(msync, memory, 4096, MS_SYNC);
    CALL(dlopen, "libresolv.so.2", RTLD_NOW);
}

/* ---- sockets ----------------------------------------------------------------------------------
 */

static struct sockaddr_in address;

static void connect_to(void *unused)
{
    (void)unused;
    int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    syscall(SYS_connect, fd, &address, sizeof address);
}

static void sockets(void)
{
    int s[2], full[2], server = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t bytes = sizeof address;
    struct iovec piece = {data, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || socketpair(AF_UNIX, SOCK_STREAM, 0, full))
        abort();
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 9) ||
        getsockname(server, (struct sockaddr *)&address, &bytes))
        abort();
    printf("port %u\n", ntohs(address.sin_port));
    WAITS(NULL, connect_to, NULL, accept, server, NULL, NULL);
    WAITS(NULL, connect_to, NULL, accept4, server, NULL, NULL, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CALL(connect, client, (struct sockaddr *)&address, sizeof address);
    WAITS(NULL, put_byte, &s[1], recv, s[0], data, 1, 0);
    WAITS(NULL, put_byte, &s[1], recvfrom, s[0], data, 1, 0, NULL, NULL);
    WAITS(NULL, put_byte, &s[1], recvmsg, s[0], &message, 0);
    WAITS(NULL, put_byte, &s[1], recvmmsg, s[0], &messages, 1, 0, NULL);
    WAITS(NULL, put_byte, &s[1], __recv_chk, s[0], data, 1, sizeof data, 0);
    WAITS(NULL, put_byte, &s[1], __recvfrom_chk, s[0], data, 1, sizeof data, 0, NULL, NULL);
    fill(full[1]);
    WAITS(NULL, drain, &full[0], send, full[1], data, 4096, 0);
    fill(full[1]);
    WAITS(NULL, drain, &full[0], sendto, full[1], data, 4096, 0, NULL, 0);
    fill(full[1]);
    WAITS(NULL, drain, &full[0], sendmsg, full[1], &message, 0);
    fill(full[1]);
    WAITS(NULL, drain, &full[0], sendmmsg, full[1], &messages, 1, 0);
}

static void polls(void)
{
    int p[2], many = epoll_create1(0);
    const struct timespec time = {.tv_nsec = NAP_NS};
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe(p) || epoll_ctl(many, EPOLL_CTL_ADD, p[0], &event))
        abort();
    struct pollfd fds[2] = {{.fd = p[0], .events = POLLIN}, {.fd = -1}};
    fd_set set;
    FD_ZERO(&set);
    WAITS(NULL, put_byte, &p[1], poll, fds, 2, 1000);
    drain(&p[0]);
    CALL(ppoll, fds, 1, &time, NULL);
    CALL(__poll_chk, fds, 1, NAP_NS / 1000000, sizeof fds);
    CALL(__ppoll_chk, fds, 1, &time, NULL, sizeof fds);
    CALL(select, 0, &set, NULL, NULL, &(struct timeval){.tv_usec = NAP_NS / 1000});
    CALL(pselect, 0, &set, NULL, NULL, &time, NULL);
    CALL(epoll_wait, many, &event, 1, NAP_NS / 1000000);
    CALL(epoll_pwait, many, &event, 1, NAP_NS / 1000000, NULL);
    CALL(epoll_pwait2, many, &event, 1, &time, NULL);
}

/* ---- sleeps, processes ------------------------------------------------------------------------
 */

static pthread_t self;

static void on_signal(int number)
{
    (void)number;
}

static void interrupt(void *unused)
{
    (void)unused;
    while (!atomic_load(&other.is_over)) { /* the first may come too early */
        pthread_kill(self, SIGUSR1);
        nap(NAP_NS);
    }
}

static pid_t child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        nap(NAP_NS);
        _exit(0);
    }
    return pid;
}

static void sleeps(void)
{
    const struct timespec time = {.tv_nsec = NAP_NS};
    struct rusage usage;
    siginfo_t info;
    int status;
    self = pthread_self();
    signal(SIGUSR1, on_signal);
    CALL(nanosleep, &time, NULL);
    CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
    CALL(usleep, NAP_NS / 1000);
    WAITS(NULL, interrupt, NULL, sleep, 5);
    WAITS(NULL, interrupt, NULL, pause);
    child();
    CALL(wait, &status);
    TELL(waitpid, waitpid(child(), &status, 0));
    child();
    CALL(wait3, &status, 0, &usage);
    TELL(wait4, wait4(child(), &status, 0, &usage));
    TELL(waitid, waitid(P_PID, (id_t)child(), &info, WEXITED));
}

/* ---- threads ----------------------------------------------------------------------------------
 */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;

static void take_mutex(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
}

static void drop_mutex(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

static void take_lock(void *unused)
{
    (void)unused;
    pthread_rwlock_wrlock(&lock);
}

static void drop_lock(void *unused)
{
    (void)unused;
    pthread_rwlock_unlock(&lock);
}

static void signal_condition(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}

static void post(void *unused)
{
    (void)unused;
    sem_post(&semaphore);
}

static void meet(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
}

static const struct timespec *in_ns(clockid_t clock, long ns)
{
    static struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return &t;
}

#define SOON  in_ns(CLOCK_REALTIME, 1000000000)
#define MSOON in_ns(CLOCK_MONOTONIC, 1000000000)

static void locks(void)
{
    WAITS(take_mutex, drop_mutex, NULL, pthread_mutex_lock, &mutex);
    pthread_mutex_unlock(&mutex);
    WAITS(take_mutex, drop_mutex, NULL, pthread_mutex_timedlock, &mutex, SOON);
    pthread_mutex_unlock(&mutex);
    WAITS(take_mutex, drop_mutex, NULL, pthread_mutex_clocklock, &mutex, CLOCK_MONOTONIC, MSOON);
    pthread_mutex_unlock(&mutex);
    WAITS(take_lock, drop_lock, NULL, pthread_rwlock_rdlock, &lock);
    pthread_rwlock_unlock(&lock);
    WAITS(take_lock, drop_lock, NULL, pthread_rwlock_timedrdlock, &lock, SOON);
    pthread_rwlock_unlock(&lock);
    WAITS(take_lock, drop_lock, NULL, pthread_rwlock_clockrdlock, &lock, CLOCK_MONOTONIC, MSOON);
    pthread_rwlock_unlock(&lock);
    WAITS(take_lock, drop_lock, NULL, pthread_rwlock_wrlock, &lock);
    pthread_rwlock_unlock(&lock);
    WAITS(take_lock, drop_lock, NULL, pthread_rwlock_timedwrlock, &lock, SOON);
    pthread_rwlock_unlock(&lock);
    WAITS(take_lock, drop_lock, NULL, pthread_rwlock_clockwrlock, &lock, CLOCK_MONOTONIC, MSOON);
    pthread_rwlock_unlock(&lock);
}

static void waits(void)
{
    void *none;
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    pthread_mutex_lock(&mutex);
    WAITS(NULL, signal_condition, NULL, pthread_cond_wait, &condition, &mutex);
    WAITS(NULL, nothing, NULL, pthread_cond_timedwait, &condition, &mutex,
          in_ns(CLOCK_REALTIME, NAP_NS));
    logged[count - 2].error = ETIMEDOUT; /* as it returned it; behind it is a join */
    WAITS(NULL, signal_condition, NULL, pthread_cond_clockwait, &condition, &mutex, CLOCK_MONOTONIC,
          MSOON);
    WAITS(NULL, post, NULL, sem_wait, &semaphore);
    WAITS(NULL, post, NULL, sem_timedwait, &semaphore, SOON);
    CALL(sem_clockwait, &semaphore, CLOCK_MONOTONIC, in_ns(CLOCK_MONOTONIC, NAP_NS));
    WAITS(NULL, meet, NULL, pthread_barrier_wait, &barrier);
    begin(NULL, nothing, NULL);
    CALL(pthread_join, other.thread, &none);
    begin(NULL, nothing, NULL);
    CALL(pthread_timedjoin_np, other.thread, &none, SOON);
    begin(NULL, nothing, NULL);
    CALL(pthread_clockjoin_np, other.thread, &none, CLOCK_MONOTONIC, MSOON);
    int word = 0;
    CALL(syscall, SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){.tv_nsec = NAP_NS},
         NULL, 0);
}

static void free_ones(void)
{
    int p[2];
    if (pipe(p))
        abort();
    for (int i = 0; i < 1000000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < 1000; i++) {
        put_byte(&p[1]);
        if (read(p[0], data, 1) != 1)
            abort();
    }
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : ".";
    cudaMemset(NULL, 0, 1);
    if (argc > 2) {
        free_ones();
        return 0;
    }
    pipes();
    opens();
    files();
    sockets();
    polls();
    sleeps();
    locks();
    waits();
    cudaMemset(NULL, 0, 2);
    for (unsigned i = 0; i < count; i++)
        printf("%s %ld %d %d %ld\n", logged[i].name, logged[i].ns, logged[i].disturbed,
               logged[i].error, logged[i].result);
    return 0;
}
