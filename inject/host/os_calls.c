/* SPDX-License-Identifier: Apache-2.0 */
#include "host/os_calls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "base/memory_read.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "hook/call.h"
#include "host/gil_wait.h"
#include "host/sampling.h"
#include "python/python.h"
#include "record/recorded.h"
#include "record/start.h"
#include "record/thread.h"
#include "record/wake.h"
#include "stack/stack.h"

#define FUNCTIONS_MAX    256
#define NAME_BYTES_MAX   200       /* of a file's name; of a longer one the end is kept */
#define KEPT_MAX         1024      /* calls of threads that do not take part yet */
#define SURE_NS          10000000u /* after this time the clock's rate is known well enough */
#define CHILD_NS         100000000u
#define TICKS_PER_US_MIN 500u /* of the processor's counter, before its rate is known */

/* What a call was made on. */
struct name {
    uint32_t bytes;
    char text[NAME_BYTES_MAX];
};

/* A call of a thread that does not take part yet. */
struct deferred_call {
    _Atomic uint32_t tid; /* 0: not filled yet, or already written */
    struct os_said said;
    struct name name;
    struct kept_stack stack;
    uint64_t parked; /* result of gil_parked */
};

/* Set by the client's constructor. Kept calls are written by each thread. */
static struct os_client *client;
static struct {
    _Atomic uint32_t pid; /* the process that they belong to */
    _Atomic uint32_t count;
    _Atomic uint32_t lost;
    _Atomic uint64_t first;      /* ticks: end of the first one */
    struct deferred_call *calls; /* DEFERRED_MAX entries in the client's memory */
} kept;
_Static_assert(KEPT_MAX * sizeof(struct deferred_call) <= OS_KEPT_BYTES, "they have room there");

/* epoch of the recording in which the function was described */
static _Atomic uint64_t reported[FUNCTIONS_MAX];
static _Atomic uint64_t stack_ticks; /* calls that last this long get a stack */
static uint64_t wanted_ns;           /* the threshold; set by the constructor */
static uint64_t wanted_stack_ns;     /* the same for calls that get a stack */

/* The library's image in memory; defined by the linker. */
extern HIDDEN const char __ehdr_start[], _end[];

/* ---- which are told of ----------------------------------------------------------------------- */

static uint64_t os_calls_ticks_of(uint64_t ns, const struct clock_scale *scale)
{
    return ns == SETTING_OFF ? OS_OFF : (uint64_t)(((unsigned __int128)ns << 32) / scale->mult);
}

/* An underestimate while the clock's rate is not known. */
static uint64_t few_ticks_of(uint64_t ns)
{
    bool is_ns = process_clock.source == CLOCK_SOURCE_MONOTONIC;
#if defined(__aarch64__)
    uint64_t rate;
    __asm__("mrs %0, cntfrq_el0" : "=r"(rate));
    if (!is_ns)
        return (uint64_t)((unsigned __int128)ns * rate / 1000000000u);
#endif
    return is_ns ? ns : ns / 1000 * TICKS_PER_US_MIN;
}

void os_load(void)
{
    wanted_ns = client ? start_setting(SETTING_OS) : SETTING_OFF;
    wanted_stack_ns = start_setting(SETTING_OS_BACKTRACE);
    if (wanted_ns != SETTING_OFF)
        atomic_store(&client->threshold, few_ticks_of(wanted_ns));
}

void os_start(void)
{
    if (!client)
        return;
    atomic_store(&client->threshold,
                 os_calls_ticks_of(gp.settings.numbers[SETTING_OS], &gp.header.scale));
    atomic_store(&stack_ticks,
                 os_calls_ticks_of(gp.settings.numbers[SETTING_OS_BACKTRACE], &gp.header.scale));
}

/* ---- what it was made on ----------------------------------------------------------------------
 */

static void os_calls_put(struct name *n, const char *text, size_t bytes)
{
    size_t room = sizeof n->text - n->bytes;
    bytes = bytes < room ? bytes : room;
    memcpy(n->text + n->bytes, text, bytes);
    n->bytes += (uint32_t)bytes;
}

static void os_calls_put_number(struct name *n, uint32_t number)
{
    char digits[10];
    unsigned at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    os_calls_put(n, digits + at, sizeof digits - at);
}

/* Writes address:port, as `ss` does, or the path of a local peer. Returns false if there is no
 * peer. */
static bool put_peer(struct name *n, int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un local;
    } peer;
    char text[INET6_ADDRSTRLEN];
    socklen_t bytes = sizeof peer;
    if (getpeername(fd, &peer.any, &bytes) != 0)
        return false;
    bool is_six = peer.any.sa_family == AF_INET6;
    if (is_six || peer.any.sa_family == AF_INET) {
        if (!inet_ntop(peer.any.sa_family,
                       is_six ? (void *)&peer.six.sin6_addr : (void *)&peer.four.sin_addr, text,
                       sizeof text))
            return false;
        os_calls_put(n, "[", is_six);
        os_calls_put(n, text, strlen(text));
        os_calls_put(n, "]:" + !is_six, 1u + is_six);
        os_calls_put_number(n, ntohs(is_six ? peer.six.sin6_port : peer.four.sin_port));
        return true;
    }
    size_t head = offsetof(struct sockaddr_un, sun_path);
    if (peer.any.sa_family != AF_UNIX || bytes <= head)
        return false;
    if (!peer.local.sun_path[0]) /* the name of an abstract socket begins with a zero */
        peer.local.sun_path[0] = '@';
    os_calls_put(n, peer.local.sun_path, strnlen(peer.local.sun_path, bytes - head));
    return n->bytes > 0;
}

static void put_descriptor(struct name *n, int fd)
{
    struct name link = {0};
    char target[4096];
    os_calls_put(&link, "/proc/self/fd/", 14);
    os_calls_put_number(&link, (uint32_t)fd);
    link.text[link.bytes] = '\0';
    ssize_t bytes = readlink(link.text, target, sizeof target);
    if (bytes <= 0 || (bytes > 7 && memcmp(target, "socket:", 7) == 0 && put_peer(n, fd)))
        return;
    size_t head = (size_t)bytes > sizeof n->text ? (size_t)bytes - sizeof n->text : 0;
    os_calls_put(n, target + head, (size_t)bytes - head);
}

/* The path as the program gave it; it may be anything. Read piece by piece, since the memory after
 * it may be unreadable. */
static void put_path(struct name *n, const char *path)
{
    for (uint64_t at = (uint64_t)(uintptr_t)path; n->bytes < sizeof n->text;) {
        char piece[16];
        size_t bytes = sizeof piece - at % sizeof piece;
        if (!memory_read(at, piece, bytes))
            return;
        size_t length = strnlen(piece, bytes);
        os_calls_put(n, piece, length);
        if (length < bytes)
            return;
        at += bytes;
    }
}

static void os_calls_find_name(struct name *n, const struct os_said *s)
{
    n->bytes = 0;
    if (s->known_fd > 0)
        put_descriptor(n, s->known_fd - 1);
    else if (s->path)
        put_path(n, s->path);
}

/* ---- records ----------------------------------------------------------------------------------
 */

/* Writes the function's description before its number is used. If two threads come at once, both
 * write it. */
static bool os_calls_describe(struct thread *t, const struct os_said *s)
{
    const struct os_function *f = &client->functions[s->function];
    _Atomic uint64_t *epoch = &reported[s->function];
    if (likely(atomic_load_explicit(epoch, memory_order_relaxed) == epoch_now()))
        return true;
    struct record r = {RECORD_WITH(OS_FUNCTION, [OS_FUNCTION_CLASS] = f->class),
                       .code = (uint16_t)s->function, .begin = s->begin,
                       .bytes = (const uint8_t *)f->name, .byte_count = (uint32_t)strlen(f->name)};
    if (!thread_append(t, &r))
        return false;
    atomic_store(epoch, epoch_now());
    return true;
}

/* Appends the record. One without space is counted among calls, and here. */
static void os_calls_append(struct thread *t, const struct os_said *s, const struct name *n,
                            uint32_t stack)
{
    struct record r = {
        RECORD_WITH(OS_CALL, [OS_CALL_FD] = (uint64_t)s->known_fd, [OS_CALL_OBJECT] = s->object,
                    [OS_CALL_BYTES] = s->bytes, [OS_CALL_ERROR] = (uint64_t)s->error),
        .code = (uint16_t)s->function,
        .begin = s->begin,
        .duration = s->end - s->begin,
        .result = s->result,
        .stack_id = stack,
        .bytes = (const uint8_t *)n->text,
        .byte_count = n->bytes};
    if (os_calls_describe(t, s) && thread_append(t, &r))
        return;
    counter_add(COUNTER_DROPPED, (uint64_t)-1);
    counter_add(COUNTER_OS_DROPPED, 1);
}

/* ---- before the thread takes part --------------------------------------------------------------
 */

/* As far as the clock's rate is known; checked again when it is written. */
static bool has_lasted(const struct os_said *s, uint64_t ns)
{
    uint64_t ticks, now_ns;
    ticks_sample(&ticks, &now_ns);
    uint64_t passed_ns = now_ns - process_clock.load_monotonic_ns;
    if (passed_ns < SURE_NS || ticks <= process_clock.load_ticks)
        return true;
    return s->end - s->begin >=
           (uint64_t)((unsigned __int128)ns * (ticks - process_clock.load_ticks) / passed_ns);
}

static bool is_semaphore(const struct os_said *s)
{
    return client->functions[s->function].class == OS_SEMAPHORE;
}

static void os_calls_keep(const struct os_said *s, uint32_t pid)
{
    uint32_t before = atomic_load(&kept.pid);
    if (before != pid && atomic_compare_exchange_strong(&kept.pid, &before, pid)) {
        uint32_t parents = atomic_exchange(&kept.count, 0);
        for (uint32_t i = 0; i < parents && i < KEPT_MAX; i++)
            atomic_store(&kept.calls[i].tid, 0);
        atomic_store(&kept.lost, 0);
        atomic_store(&kept.first, s->end);
    }
    uint32_t place = atomic_fetch_add(&kept.count, 1);
    if (place >= KEPT_MAX) {
        atomic_store(&kept.count, KEPT_MAX);
        atomic_fetch_add(&kept.lost, 1);
        return;
    }
    struct deferred_call *k = &kept.calls[place];
    k->said = *s;
    k->said.path = NULL;
    os_calls_find_name(&k->name, s);
    k->parked = is_semaphore(s) ? gil_parked(s->object) : 0;
    k->stack.count = 0;
    if (has_lasted(s, wanted_stack_ns))
        sampling_keep_stack(&k->stack);
    atomic_store_explicit(&k->tid, thread_id(), memory_order_release);
}

void os_attached(struct thread *t)
{
    uint32_t count = atomic_load(&kept.count);
    if (!count || atomic_load(&kept.pid) != atomic_load(&fork_page.owner))
        return;
    uint64_t threshold = atomic_load(&client->threshold);
    struct gil_wait wait = {0};
    for (uint32_t i = 0; i < count && i < KEPT_MAX; i++) {
        struct deferred_call *k = &kept.calls[i];
        uint32_t tid = t->tid;
        if (atomic_load(&k->tid) != tid || !atomic_compare_exchange_strong(&k->tid, &tid, 0))
            continue;
        if (k->said.end - k->said.begin < threshold)
            continue;
        uint32_t stack = sampling_number(t, &k->stack);
        if (!gil_take_call(t, &wait, &k->said, k->parked, stack))
            os_calls_append(t, &k->said, &k->name, stack);
    }
    gil_report_wait(t, &wait);
}

/* The calls of threads that never took part are lost. */
void os_end(uint64_t ns)
{
    (void)ns;
    uint64_t lost = atomic_exchange(&kept.lost, 0);
    if (!client || atomic_load(&kept.pid) != atomic_load(&fork_page.owner))
        return;
    uint64_t threshold = atomic_load(&client->threshold);
    for (uint32_t i = 0; i < KEPT_MAX; i++) {
        struct deferred_call *k = &kept.calls[i];
        lost += atomic_exchange(&k->tid, 0) && k->said.end - k->said.begin >= threshold;
    }
    if (lost)
        counter_add(COUNTER_OS_DROPPED, lost);
}

/* ---- a call ------------------------------------------------------------------------------------
 */

/* Allocators wait with these while they hold their lock, and starting a thread allocates. */
#define OF_ALLOCATORS (1u << OS_LOCK | 1u << OS_CONDITION | 1u << OS_FUTEX | 1u << OS_MEMORY)

/* Is this the child of a recording process that has lived for a while, and is not about to exec
 * another program? `owner` is 0 in it. */
static bool is_worker(const struct os_said *s, uint32_t owner)
{
    return !owner && gp.used && atomic_load(&fork_page.phase) == START_IDLE &&
           !(OF_ALLOCATORS >> client->functions[s->function].class & 1) &&
           s->end - atomic_load(&kept.first) >= os_calls_ticks_of(CHILD_NS, &gp.header.scale) &&
           !signal_stack_bytes();
}

static void os_calls_take(struct thread *t, const struct os_said *s, uint32_t pid)
{
    uint32_t owner = atomic_load(&fork_page.owner);
    if (owner && owner != pid)
        return; /* a vfork child, which runs in its parent's memory */
    if (epoch_now() == EPOCH_NONE) {
        if (atomic_load(&fork_page.phase) == START_FAILED || gp.off)
            return;
        if (!has_lasted(s, wanted_ns))
            return;
        os_calls_keep(s, pid);
        if (is_worker(s, owner))
            thread_attach(t);
        return;
    }
    if (recorded_off() & OFF_CALLS)
        return;
    if (!thread_takes_part(t) && !thread_attach(t))
        return;
    uint32_t stack =
        s->end - s->begin >= atomic_load_explicit(&stack_ticks, memory_order_relaxed) &&
                stacks_are_on() && !(recorded_off() & OFF_STACKS)
            ? stack_take(t)
            : 0;
    struct gil_wait wait = {0};
    uint64_t parked = python_has_stops() && is_semaphore(s) ? gil_parked(s->object) : 0;
    struct name name;
    if (gil_take_call(t, &wait, s, parked, stack)) {
        gil_report_wait(t, &wait);
        return;
    }
    os_calls_find_name(&name, s);
    os_calls_append(t, s, &name, stack);
}

/* Calls of our own threads, and those made in our code, are not the program's. */
static void call(const struct os_said *s)
{
    struct thread *t = &this_thread;
    struct call own;
    if (t->inside == CALL_FOR_GOOD ||
        s->caller - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start) ||
        !call_enter_quietly(t, &own))
        return;
    bool before = thread_hurry(t, true), took_part = thread_takes_part(t);
    os_calls_take(t, s, (uint32_t)syscall(SYS_getpid));
    if (took_part && thread_takes_part(t)) /* otherwise the recording is just starting */
        thread_cost_time(t->cost, COST_OS, ticks_now() - s->end);
    if (unlikely(attention_now() >= ATTENTION_LATE) && thread_takes_part(t))
        writer_flush(0, gp.settings.numbers[SETTING_EXIT_WAIT]);
    thread_hurry(t, before);
    call_leave(t);
}

static bool no_condition(enum os_condition_event event, const void *condition, uint64_t ticks,
                         int result)
{
    (void)event, (void)condition, (void)ticks, (void)result;
    return false;
}

static struct os_host host = {call, no_condition};

void os_watch_conditions(bool (*condition)(enum os_condition_event, const void *, uint64_t, int))
{
    host.condition = condition;
}

struct os_client *os_client(void)
{
    return client;
}

EXPORT const struct os_host *gpuprof_os_v1(struct os_client *its_client)
{
    if (its_client->function_count > FUNCTIONS_MAX || !start_is_possible())
        return NULL;
    kept.calls = its_client->kept;
    client = its_client;
    os_load();
    return &host;
}
