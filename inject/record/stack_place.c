/* SPDX-License-Identifier: Apache-2.0 */
#include "record/stack_place.h"

#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory_read.h"
#include "record/state.h"
#include "record/thread.h"

#define PAGE_BYTES    4096u
#define OWN_BYTES_MAX (8u << 20) /* of a thread's own stack, as far as is searched */
#define FIRST_BYTES_MAX                                                                            \
    (64u << 20) /* of the first thread's; the kernel maps nothing else there                       \
                 */

/*
 * Are all pages from `low` to `high` readable? Below another stack is an unreadable page, or none.
 */
static bool is_one_piece(uintptr_t low, uintptr_t high)
{
    uint64_t addresses[MEMORY_READS_MAX];
    uint8_t bytes[MEMORY_READS_MAX];
    if (high - low > OWN_BYTES_MAX)
        return false;
    for (uintptr_t at = low; at <= high;) {
        unsigned count = 0;
        for (; count < MEMORY_READS_MAX && at <= high; at = (at | (PAGE_BYTES - 1)) + 1)
            addresses[count++] = at;
        if (!memory_read_many(addresses, count, bytes, 1))
            return false;
    }
    return true;
}

/* Is the address on the stack with which the thread was started? Above the first thread's stack is
 * the kernel's data for the process; other threads have their thread-local variables at its top. */
static bool stack_place_is_own(uintptr_t address)
{
    bool is_first = syscall(SYS_gettid) == syscall(SYS_getpid);
    uintptr_t top = is_first ? (uintptr_t)getauxval(AT_RANDOM) : (uintptr_t)&this_thread;
    if (is_first)
        return top - address < FIRST_BYTES_MAX;
    return address < top && is_one_piece(address, top);
}

static bool stack_place_own_is_gone(uintptr_t outer, uintptr_t inner)
{
    stack_t handlers;
    if (outer == inner)
        return true;
    if (sigaltstack(NULL, &handlers) == 0 && !(handlers.ss_flags & SS_DISABLE)) {
        bool is_on = outer - (uintptr_t)handlers.ss_sp < handlers.ss_size;
        if (handlers.ss_flags & SS_ONSTACK)
            return is_on && outer < inner;
        if (is_on) /* its handler has returned */
            return true;
    }
    return outer < inner && stack_place_is_own(inner) && stack_place_is_own(outer);
}

bool stack_place_is_gone(uintptr_t outer, uintptr_t inner)
{
    int saved = errno;
    bool gone = stack_place_own_is_gone(outer, inner);
    errno = saved;
    return gone;
}

bool stack_place_is_handlers(uintptr_t outer)
{
    int saved = errno;
    stack_t handlers;
    bool is = sigaltstack(NULL, &handlers) == 0 && handlers.ss_flags & SS_ONSTACK &&
              outer - (uintptr_t)handlers.ss_sp >= handlers.ss_size;
    errno = saved;
    return is;
}

uintptr_t stack_place_word(uintptr_t address)
{
    int saved = errno;
    uint64_t word = 0;
    if (!memory_read(address, &word, sizeof word))
        word = 0;
    errno = saved;
    return word;
}
