/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/host_facts.h"

#include <sys/syscall.h>

#include "frame.h"
#include "symbol/shown_frame.h"

bool host_sample(const struct slice *s, struct host_sample *sample)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    uint64_t tid = record_arg(r, SAMPLE_TID), call = record_arg(r, SAMPLE_SYSCALL);
    uint64_t flags = record_arg(r, SAMPLE_FLAGS), count = r->weight > 1 ? r->weight : 1, ns;
    if (r->type != RECORD_SAMPLE)
        return false;
    if (__builtin_mul_overflow(record_arg(r, SAMPLE_PERIOD), count, &ns) || ns > CLOCK_NS_MAX)
        ns = CLOCK_NS_MAX; /* a file can contain anything */
    *sample = (struct host_sample){
        .thread = tid ? host_thread(e, tid) : e->thread,
        .tid = tid ? tid : e->thread->tid,
        .at_ns = e->begin_ns,
        .count = count,
        .ns = ns,
        .is_cpu = r->code == SAMPLE_CPU,
        .in_kernel = flags & SAMPLE_IN_KERNEL,
        .in_gpuprof = flags & SAMPLE_IN_GPUPROF,
        .is_torn = flags & SAMPLE_TORN,
        .state = (char)record_arg(r, SAMPLE_STATE),
        .syscall = call && call <= INT32_MAX ? (int32_t)call - 1 : -1,
        .stack = r->stack_id,
        .holder = record_arg(r, SAMPLE_HOLDER),
        .holder_stack = (uint32_t)record_arg(r, SAMPLE_HOLDER_STACK),
        .is_silent = flags & SAMPLE_SILENT,
        .ran_ns = record_arg(r, SAMPLE_RAN),
        .delay_ns = record_arg(r, SAMPLE_DELAY),
        .faults = record_arg(r, SAMPLE_FAULTS),
        .major_faults = record_arg(r, SAMPLE_MAJOR_FAULTS),
    };
    return true;
}

bool host_stop(const struct slice *s, uint64_t *begin_ns, uint64_t *end_ns, uint64_t *ns)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (r->type != RECORD_HOST_COUNTERS)
        return false;
    uint64_t late_ns = record_arg(r, HOST_COUNTERS_LATE);
    uint64_t before_ns = r->duration ? 0 : late_ns ? late_ns : record_arg(r, HOST_COUNTERS_SINCE);
    *begin_ns = e->begin_ns - (before_ns < e->begin_ns ? before_ns : e->begin_ns);
    *end_ns = e->end_ns;
    *ns = record_arg(r, HOST_COUNTERS_THROTTLED_NS);
    *ns = *ns < *end_ns - *begin_ns ? *ns : *end_ns - *begin_ns;
    return *ns > 0;
}

enum host_time host_time_of(const struct stack_table *t, uint32_t process, uint32_t stack,
                            bool in_kernel)
{
    uint64_t words[FRAME_COUNT_MAX];
    const struct recorded_stack *recorded = stack_table_stack(t, process, stack);
    uint32_t count = recorded ? stack_table_words(t, recorded, words) : 0;
    if (in_kernel || !count)
        return in_kernel ? HOST_SYSTEM : HOST_UNKNOWN;
    bool is_python = false;
    for (uint32_t i = 0; i < count && frame_kind(words[i]) != FRAME_PYTHON; i++) {
        const struct stack_module *module =
            frame_kind(words[i]) == FRAME_MODULE
                ? stack_table_module(t, process, frame_module(words[i]))
                : NULL;
        enum serves_python serves =
            module && module->path ? serves_python(module->path->raw) : SERVES_ALL;
        if (serves == SERVES_OTHERS)
            return HOST_NATIVE;
        is_python |= serves == SERVES_PYTHON;
    }
    return is_python || stack_table_has_python(t, recorded) ? HOST_PYTHON : HOST_NATIVE;
}

#define CALL(name, class)                                                                          \
    {                                                                                              \
        SYS_##name, class, #name                                                                   \
    }

static const struct system_call calls[] = {
    CALL(read, 0),
    CALL(readv, 0),
    CALL(write, 0),
    CALL(writev, 0),
    CALL(futex, OS_FUTEX),
    CALL(pread64, OS_FILE),
    CALL(pwrite64, OS_FILE),
    CALL(openat, OS_FILE),
    CALL(fsync, OS_FILE),
    CALL(fdatasync, OS_FILE),
    CALL(recvfrom, OS_SOCKET),
    CALL(recvmsg, OS_SOCKET),
    CALL(sendto, OS_SOCKET),
    CALL(sendmsg, OS_SOCKET),
    CALL(connect, OS_SOCKET),
    CALL(accept, OS_SOCKET),
    CALL(accept4, OS_SOCKET),
#ifdef SYS_poll
    CALL(poll, OS_POLL),
    CALL(select, OS_POLL),
    CALL(epoll_wait, OS_POLL),
#endif
    CALL(ppoll, OS_POLL),
    CALL(pselect6, OS_POLL),
    CALL(epoll_pwait, OS_POLL),
    CALL(nanosleep, OS_SLEEP),
    CALL(clock_nanosleep, OS_SLEEP),
    CALL(wait4, OS_PROCESS),
    CALL(waitid, OS_PROCESS),
    CALL(mmap, OS_MEMORY),
    CALL(munmap, OS_MEMORY),
    CALL(mprotect, OS_MEMORY),
    CALL(madvise, OS_MEMORY),
    CALL(brk, OS_MEMORY),
    CALL(ioctl, OS_DEVICE),
};

const struct system_call *system_call_of(int32_t number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number)
            return &calls[i];
    return NULL;
}
