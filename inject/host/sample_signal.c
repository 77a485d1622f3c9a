/* SPDX-License-Identifier: Apache-2.0 */
#include "host/sample_signal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "record/state.h"
#include "sample_signals.h"

#define RESTORER    0x04000000u
#define STACK_BYTES 5120u /* needed for taking a stack */

/* The kernel's structure, for the system call. The C library's function may be a sanitizer's, which
 * would delay our handler until the interrupted code is gone. */
struct action {
    uintptr_t handler;
    unsigned long flags;
#if defined(__x86_64__)
    void (*restorer)(void);
#endif
    uint64_t mask;
};

#if defined(__x86_64__)
/* The return address of a handler; the C library does not export its own. */
extern HIDDEN void sample_signal_return(void);
__asm__(".pushsection .text\n"
        ".type sample_signal_return, @function\n"
        ".hidden sample_signal_return\n"
        "sample_signal_return:\n"
        "\tmov $15, %eax\n" /* rt_sigreturn */
        "\tsyscall\n"
        ".size sample_signal_return, . - sample_signal_return\n"
        ".popsection\n");
#endif

static _Atomic int number; /* set by the thread that takes one */
static sample_tick_fn tick_fn;
static bool (*is_tick)(union sigval value);

static bool sample_signal_ask(int n, struct action *found)
{
    return syscall(SYS_rt_sigaction, n, NULL, found, sizeof found->mask) == 0;
}

/* Another sender's signal of that number, for which the program has no handler: after our return it
 * ends the process as it would without us. */
static void pass_on(int n, siginfo_t *info)
{
    const struct action none = {.handler = (uintptr_t)SIG_DFL};
    syscall(SYS_rt_sigaction, n, &none, NULL, sizeof none.mask);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)thread_id(), n, info);
}

/* The stack for handlers that the program has set may be as small as the kernel allows. */
static bool has_stack(const ucontext_t *context)
{
    const stack_t *handlers = &context->uc_stack;
    uintptr_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)handlers->ss_sp;
    return left >= handlers->ss_size || left >= STACK_BYTES;
}

static void handle(int n, siginfo_t *info, void *context)
{
    int saved = errno;
    if (info->si_code == SI_TIMER && is_tick(info->si_value))
        tick_fn(info->si_value, 1 + (unsigned)info->si_overrun,
                has_stack(context) ? context : NULL);
    else
        pass_on(n, info);
    errno = saved;
}

bool sample_signal_is_kept(void)
{
    struct action found;
    return number && sample_signal_ask(number, &found) && found.handler == (uintptr_t)handle;
}

int sample_signal_number(void)
{
    return atomic_load_explicit(&number, memory_order_relaxed);
}

int sample_signal_take(sample_tick_fn tick, bool (*is_ours)(union sigval value), int taken)
{
    /* All signals, also the C library's two, so that nothing leaves our handler by a jump. */
    const struct action ours = {
        .handler = (uintptr_t)handle,
        .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER,
#if defined(__x86_64__)
        .restorer = sample_signal_return,
#endif
        .mask = UINT64_MAX
    };
    struct action found;
    int dump = (int)gp.settings.numbers[SETTING_DUMP_SIGNAL];
    tick_fn = tick;
    is_tick = is_ours;
    if (number != taken && sample_signal_is_kept()) /* set by the parent, before a fork */
        return number;
    for (int n = SAMPLE_SIGNAL_LAST; n >= SAMPLE_SIGNAL_FIRST; n--)
        if (n != dump && n != taken && sample_signal_ask(n, &found) &&
            found.handler == (uintptr_t)SIG_DFL &&
            syscall(SYS_rt_sigaction, n, &ours, NULL, sizeof ours.mask) == 0)
            return number = n;
    return number = 0;
}
