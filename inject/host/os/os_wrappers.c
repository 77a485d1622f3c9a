/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuprof-os.so: the wrappers of os_functions.def. A call shorter than the threshold costs two
 * readings of the clock, and a free lock not even these. Longer calls are reported to
 * libgpuprof.so. The C library does its work unchanged: with the caller's arguments, its errno, its
 * interruptions by signals, and its cancellation points.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/objects.h"
#include "base/ticks.h"
#include "host/os/search_path.h"
#include "host/os_table.h"
#include "record.h"

/* ---- the real functions -------------------------------------------------------------------- */

enum os_index {
#define OS(symbol, ...)      AT_##symbol,
#define OS_LOCK(symbol, ...) AT_##symbol,
#define OS_WAIT(symbol, ...) AT_##symbol,
#include "host/os/os_functions.def"
    FUNCTION_COUNT, /* of the rows; other functions are not recorded */
    AT_NOWHERE = FUNCTION_COUNT - 1,
#define OS_SIGNAL(symbol)    AT_##symbol,
#define OS_REAL(symbol, ...) AT_##symbol,
#include "host/os/os_functions.def"
    AT_COUNT
};

static const char *const symbols[AT_COUNT] = {
#define OS(symbol, ...)      [AT_##symbol] = #symbol,
#define OS_LOCK(symbol, ...) [AT_##symbol] = #symbol,
#define OS_WAIT(symbol, ...) [AT_##symbol] = #symbol,
#define OS_SIGNAL(symbol)    [AT_##symbol] = #symbol,
#define OS_REAL(symbol, ...) [AT_##symbol] = #symbol,
#include "host/os/os_functions.def"
};

static const struct os_function functions[FUNCTION_COUNT] = {
#define OS(symbol, class, ...)      {#symbol, OS_##class},
#define OS_LOCK(symbol, class, ...) {#symbol, OS_##class},
#define OS_WAIT(symbol, ...)        {#symbol, OS_CONDITION},
#include "host/os/os_functions.def"
};

/* Set by our constructor, or by another library's that runs before it; always to the same value. */
static _Atomic(void *) reals[AT_COUNT];

/* Used until the C library's syscall() is found, which takes system calls. */
static long raw_syscall(long number, long first, long second, long third, long fourth, long fifth,
                        long sixth)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = fourth, r8 __asm__("r8") = fifth, r9 __asm__("r9") = sixth;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x1 __asm__("x1") = second,
                     x2 __asm__("x2") = third, x3 __asm__("x3") = fourth, x4 __asm__("x4") = fifth,
                     x5 __asm__("x5") = sixth;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    long result = x0;
#endif
    if ((unsigned long)result <= -4096ul)
        return result;
    errno = (int)-result;
    return -1;
}

/* Finds the first definition of each after ours, as RTLD_NEXT does: libc's, or a sanitizer's. dlsym
 * is not used, since it takes locks, allocates, and changes dlerror(). */
static int find_in(const struct object *o, void *data)
{
    bool *past_self = data;
    for (unsigned i = 0; *past_self && i < AT_COUNT; i++) {
        void *known = atomic_load_explicit(&reals[i], memory_order_relaxed);
        void *found = !known || known == (void *)raw_syscall ? object_symbol(o, symbols[i]) : NULL;
        if (found)
            atomic_store_explicit(&reals[i], found, memory_order_relaxed);
    }
    *past_self |= object_is_ours(o);
    return 0;
}

static void find_all(void)
{
    bool past_self = false;
    void *none = NULL;
    atomic_compare_exchange_strong(&reals[AT_syscall], &none, (void *)raw_syscall);
    objects_each(find_in, &past_self);
}

static long missing(void)
{
    errno = ENOSYS;
    return -1;
}

static int missing_by_number(void)
{
    return ENOSYS;
}

static void *missing_pointer(void)
{
    errno = ENOSYS;
    return NULL;
}

enum fails { FAILS_ERRNO, FAILS_NULL, FAILS_NUMBER, FAILS_NOT };

/* Never returns NULL. An older C library may lack the function, and one that is loaded later may
 * have it. */
static __attribute__((noinline, cold)) void *os_wrappers_find(enum os_index index, enum fails fails)
{
    int saved = errno;
    find_all();
    errno = saved;
    void *real = atomic_load_explicit(&reals[index], memory_order_relaxed);
    return real                    ? real
           : fails == FAILS_NUMBER ? (void *)missing_by_number
           : fails == FAILS_NULL   ? (void *)missing_pointer
                                   : (void *)missing;
}

#define REAL(symbol, fails)                                                                        \
    ({                                                                                             \
        void *real_ = atomic_load_explicit(&reals[AT_##symbol], memory_order_relaxed);             \
        (symbol##_fn)(likely(real_) ? real_ : os_wrappers_find(AT_##symbol, fails));               \
    })

/* ---- what is told ---------------------------------------------------------------------------- */

static _Alignas(64) unsigned char kept[OS_KEPT_BYTES], holders[OS_HOLDERS_BYTES];
static struct os_client client = {.threshold = OS_OFF,
                                  .functions = functions,
                                  .function_count = FUNCTION_COUNT,
                                  .kept = kept,
                                  .holders = holders};

static const struct os_host *host; /* set by the constructor; NULL: nobody records */

__attribute__((weak)) const struct os_host *gpuprof_os_v1(struct os_client *its_client);

__attribute__((constructor)) static void os_wrappers_load(void)
{
    find_all();
    ticks_load();
    if (gpuprof_os_v1)
        host = gpuprof_os_v1(&client);
}

/* A call under way. */
struct under_way {
    uintptr_t mark; /* its own address, inverted: identifies the struct on the stack */
    uint64_t begin; /* in ticks */
    enum os_index function;
};

/* of this thread; if it was left by longjmp, it may be over */
static __thread struct under_way *newest;

#define STACK_BYTES_MAX (1u << 20) /* the most stack between an unwinder and the call */

/* The personality routine of our wrappers: an unwinder calls it when it removes their frames. So a
 * call in which its thread was cancelled is reported, and otherwise this costs nothing. */
enum { ACTION_CLEAN_UP = 2, CONTINUE_UNWIND = 8 };
__attribute__((used)) HIDDEN int os_personality(int version, int actions, uint64_t class,
                                                void *exception, void *context);
int os_personality(int version, int actions, uint64_t class, void *exception, void *context)
{
    (void)version, (void)class, (void)exception, (void)context;
    const struct under_way *c = newest;
    if (!(actions & ACTION_CLEAN_UP))
        return CONTINUE_UNWIND;
    newest = NULL;
    if ((uintptr_t)c - (uintptr_t)__builtin_frame_address(0) >= STACK_BYTES_MAX ||
        c->mark != ~(uintptr_t)c || !host)
        return CONTINUE_UNWIND;
    struct os_said said = {.function = c->function,
                           .result = -1,
                           .error = ECANCELED,
                           .begin = c->begin,
                           .end = ticks_now()};
    if (said.end - said.begin >= atomic_load_explicit(&client.threshold, memory_order_relaxed))
        host->call(&said);
    return CONTINUE_UNWIND;
}

#define HAS_PERSONALITY __asm__ volatile(".cfi_personality 0x1b, os_personality")

static __attribute__((noinline, cold)) void os_wrappers_report(struct os_said *said,
                                                               enum fails fails, intptr_t result)
{
    int saved = errno;
    bool has_failed = fails == FAILS_ERRNO  ? result == -1
                      : fails == FAILS_NULL ? result == 0
                                            : fails == FAILS_NUMBER && result > 0;
    said->error = !has_failed ? 0 : fails == FAILS_NUMBER ? (int)result : saved;
    said->result = fails == FAILS_NOT || !has_failed ? 0 : fails == FAILS_NUMBER ? (int)result : -1;
    if (host)
        host->call(said);
    errno = saved;
}

/* The first descriptor that is ready, or the only one; + 1. The kernel has already read and written
 * the list. */
static int32_t ready_fd(const struct pollfd *fds, nfds_t count, int result)
{
    for (nfds_t i = 0; result > 0 && i < count; i++)
        if (fds[i].revents)
            return fds[i].fd;
    return result >= 0 && count == 1 ? fds[0].fd : -1;
}

/* A memory stream has none, and fileno() would set errno. */
static int32_t known_fd_of(FILE *file)
{
    int saved = errno, fd = file ? fileno(file) : -1;
    errno = saved;
    return fd + 1;
}

/* Does it wait on a word in memory, as locks do that are not made of pthread functions? */
static inline bool waits_for_futex(long number, long operation)
{
    if (number != SYS_futex)
        return false;
    operation &= FUTEX_CMD_MASK;
    return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
           operation == FUTEX_LOCK_PI || operation == FUTEX_WAIT_REQUEUE_PI;
}

/* The C library refuses other clocks at once, even if the lock is free. */
static inline bool is_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static inline bool is_time(const struct timespec *t)
{
    return (unsigned long)t->tv_nsec < 1000000000ul;
}

static inline bool is_watched(const void *condition)
{
    return (uintptr_t)condition - atomic_load_explicit(&client.watched, memory_order_relaxed) <
           atomic_load_explicit(&client.watched_bytes, memory_order_relaxed);
}

/* ---- the wrappers ---------------------------------------------------------------------------- */

#define FD(its_fd)       .known_fd = (its_fd) + 1
#define FD_OF(its_file)  .known_fd = known_fd_of(its_file)
#define OBJECT(address)  .object = (uint64_t)(uintptr_t)(address)
#define MOVED(its_bytes) .bytes = (intptr_t)(its_bytes) > 0 ? (uint64_t)(its_bytes) : 0
#define PATH(its_path)   .path = (its_path)

#define THRESHOLD atomic_load_explicit(&client.threshold, memory_order_relaxed)

/* The assembly name: the C library's headers declare, and sometimes define, functions with the C
 * name. */
#define WRAPPER(symbol, returns, params)                                                           \
    typedef returns(*symbol##_fn) params;                                                          \
    EXPORT returns os_##symbol params __asm__(#symbol)

/*
 * Makes the call, with result os_result, and reports it if it lasted. It is a function of its own,
 * to which the wrapper jumps: calls that do not wait then need no stack frame, which is cheaper,
 * and lets syscall() return twice.
 */
#define TIMED(symbol, fails, returns, params, names, is_reported, ...)                             \
    static __attribute__((noinline)) returns timed_##symbol params                                 \
    {                                                                                              \
        HAS_PERSONALITY;                                                                           \
        const symbol##_fn real = REAL(symbol, fails);                                              \
        struct under_way *const before = newest;                                                   \
        struct under_way it = {~(uintptr_t)&it, ticks_now(), AT_##symbol};                         \
        newest = &it;                                                                              \
        returns const os_result = real names;                                                      \
        const uint64_t end = ticks_now();                                                          \
        newest = before;                                                                           \
        if ((is_reported) && unlikely(end - it.begin >= THRESHOLD)) {                              \
            struct os_said said = {.function = AT_##symbol,                                        \
                                   .begin = it.begin,                                              \
                                   .end = end,                                                     \
                                   .caller = (uintptr_t)__builtin_return_address(0),               \
                                   __VA_ARGS__};                                                   \
            os_wrappers_report(&said, fails, (intptr_t)os_result);                                 \
        }                                                                                          \
        return os_result;                                                                          \
    }

#define OS(symbol, class, fails, returns, params, names, when, ...)                                \
    WRAPPER(symbol, returns, params);                                                              \
    TIMED(symbol, FAILS_##fails, returns, params, names, true, __VA_ARGS__)                        \
    returns os_##symbol params                                                                     \
    {                                                                                              \
        const symbol##_fn real = REAL(symbol, FAILS_##fails);                                      \
        if (THRESHOLD == OS_OFF || !(when))                                                        \
            return real names;                                                                     \
        return timed_##symbol names;                                                               \
    }

#define OS_REAL(symbol, params) typedef int(*symbol##_fn) params;
#include "host/os/os_functions.def"

#define OS_LOCK(symbol, class, try_symbol, params, names, its_lock, is_usual)                      \
    WRAPPER(symbol, int, params);                                                                  \
    TIMED(symbol, FAILS_NUMBER, int, params, names, true, OBJECT(its_lock))                        \
    int os_##symbol params                                                                         \
    {                                                                                              \
        const symbol##_fn real = REAL(symbol, FAILS_NUMBER);                                       \
        if (THRESHOLD == OS_OFF || !(is_usual))                                                    \
            return real names;                                                                     \
        const int tried = REAL(try_symbol, FAILS_NUMBER)(its_lock);                                \
        return likely(tried != EBUSY) ? tried : timed_##symbol names;                              \
    }

/* A wait on a watched condition variable may be recorded in another way. */
static bool is_news(bool watched, const void *condition, uint64_t end, int result)
{
    return likely(!watched) || !host->condition(OS_CONDITION_WAITED, condition, end, result);
}

#define OS_WAIT(symbol, params, names)                                                             \
    WRAPPER(symbol, int, params);                                                                  \
    TIMED(symbol, FAILS_NUMBER, int, params, names,                                                \
          is_news(is_watched(condition), condition, end, os_result), OBJECT(condition))            \
    int os_##symbol params                                                                         \
    {                                                                                              \
        const symbol##_fn real = REAL(symbol, FAILS_NUMBER);                                       \
        const bool watched = is_watched(condition);                                                \
        if (THRESHOLD == OS_OFF && !watched)                                                       \
            return real names;                                                                     \
        if (unlikely(watched))                                                                     \
            host->condition(OS_CONDITION_WAITS, condition, ticks_now(), 0);                        \
        return timed_##symbol names;                                                               \
    }

#define OS_SIGNAL(symbol)                                                                          \
    WRAPPER(symbol, int, (pthread_cond_t * condition));                                            \
    int os_##symbol(pthread_cond_t *condition)                                                     \
    {                                                                                              \
        const symbol##_fn real = REAL(symbol, FAILS_NUMBER);                                       \
        if (unlikely(is_watched(condition)))                                                       \
            host->condition(OS_CONDITION_SIGNALS, condition, ticks_now(), 0);                      \
        return real(condition);                                                                    \
    }
#include "host/os/os_functions.def"
