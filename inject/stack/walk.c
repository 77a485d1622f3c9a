/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/walk.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory_read.h"
#include "base/objects.h"
#include "python/python.h"
#include "record/thread.h"
#include "stack/cfi.h"
#include "stack/modules.h"
#include "stack/unwinder.h"

#define RULES           16384u /* power of two; a large program calls CUDA from about 1000 places */
#define PAGE_BYTES      4096u
#define STACK_BYTES_MAX (1ull << 30) /* of a stack that is walked */
#define FIRST_BYTES_MAX (1u << 20)   /* of the first thread's stack, without asking the kernel */
#define NEAR_FRAMES     8            /* how far walk_caller_of looks */
#define SYSCALL_BYTES   4u           /* longest system call instruction */

/* A rule for one address and age of the list of modules. The first of its words tells a complete
 * entry from one being written: all words must fit together. Used by any thread that walks. */
static struct {
    _Atomic uint64_t check;
    _Atomic uint64_t words[2];
} kept_rules[RULES];

/* Registers of a frame: where its code continues, and where its stack is. */
struct registers {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    uintptr_t link;
};

static uint64_t walk_key_of(uintptr_t address)
{
    uint64_t age = atomic_load_explicit(&modules_age, memory_order_relaxed) +
                   (uint64_t)atomic_load_explicit(&modules_list_age, memory_order_relaxed);
    return address ^ age << 48 ^ age >> 16;
}

static void unpack(uint64_t a, uint64_t b, struct cfi_rule *rule)
{
    rule->flags = (uint8_t)a;
    rule->pointer_place = a >> 8 & 0xf;
    rule->return_place = a >> 12 & 0xf;
    rule->cfa_further = (int16_t)(a >> 16);
    rule->pointer_offset = (int32_t)(a >> 32);
    rule->cfa_offset = (int32_t)b;
    rule->return_offset = (int32_t)(b >> 32);
}

static unsigned walk_slot_of(uint64_t key)
{
    return (unsigned)(key * 0x9E3779B97F4A7C15u >> 50) % RULES;
}

/* `now`: in a signal handler, which must not wait. */
static __attribute__((noinline)) bool find_rule(uintptr_t address, struct cfi_rule *rule, bool now)
{
    if (!(now ? modules_rule_now(address, rule, false) : modules_rule(address, rule)))
        return false;
    uint64_t key =
        walk_key_of(address); /* modules_rule may have noticed that the list has changed */
    unsigned slot = walk_slot_of(key);
    uint64_t a = rule->flags | (uint64_t)rule->pointer_place << 8 |
                 (uint64_t)rule->return_place << 12 | (uint64_t)(uint16_t)rule->cfa_further << 16 |
                 (uint64_t)(uint32_t)rule->pointer_offset << 32;
    uint64_t b = (uint32_t)rule->cfa_offset | (uint64_t)(uint32_t)rule->return_offset << 32;
    atomic_store_explicit(&kept_rules[slot].words[0], a, memory_order_relaxed);
    atomic_store_explicit(&kept_rules[slot].words[1], b, memory_order_relaxed);
    atomic_store_explicit(&kept_rules[slot].check, key ^ a ^ b * 3, memory_order_relaxed);
    return true;
}

static inline bool rule_at(uintptr_t address, struct cfi_rule *rule, bool now)
{
    uint64_t key = walk_key_of(address);
    unsigned slot = walk_slot_of(key);
    uint64_t a = atomic_load_explicit(&kept_rules[slot].words[0], memory_order_relaxed);
    uint64_t b = atomic_load_explicit(&kept_rules[slot].words[1], memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&kept_rules[slot].check, memory_order_relaxed);
    if (unlikely(check != (key ^ a ^ b * 3)))
        return find_rule(address, rule, now);
    unpack(a, b, rule);
    return true;
}

static inline bool rule_of(uintptr_t address, struct cfi_rule *rule)
{
    return rule_at(address, rule, false);
}

/* Tries to extend the known part of this thread's stack up to `address`. */
static __attribute__((noinline)) bool try_more(struct stack_known *known, uintptr_t sp,
                                               uintptr_t address)
{
    if (sp < known->low || sp >= known->high) {
        known->low = sp & ~(uintptr_t)(PAGE_BYTES - 1);
        known->high = known->low + PAGE_BYTES;
    }
    if (address - known->low > STACK_BYTES_MAX)
        return false;
    while (address + sizeof(uint64_t) > known->high) {
        if (!memory_is_readable(known->high))
            return false;
        known->high += PAGE_BYTES;
    }
    return true;
}

/*
 * Of the first thread's own stack, everything up to the data that the kernel put above it at the
 * start is readable: the kernel maps nothing else there. An emulator may, but has larger stacks
 * than this.
 */
static struct stack_known first_stack(uintptr_t sp)
{
    static _Atomic uintptr_t found; /* set by any thread, always to the same value */
    uintptr_t top = atomic_load_explicit(&found, memory_order_relaxed);
    if (unlikely(!top)) {
        top = ((uintptr_t)getauxval(AT_RANDOM) | (PAGE_BYTES - 1)) + 1;
        atomic_store_explicit(&found, top, memory_order_relaxed);
    }
    return sp < top && top - sp < FIRST_BYTES_MAX
               ? (struct stack_known){sp & ~(uintptr_t)(PAGE_BYTES - 1), top}
               : (struct stack_known){0};
}

/* Reads the word at `address`, which must be above `sp` on the stack. */
static inline __attribute__((no_sanitize("address", "thread"))) bool
load_word(struct stack_known *known, uintptr_t sp, uintptr_t address, uintptr_t *word)
{
    if (unlikely(address < sp || address % sizeof *word))
        return false;
    if (unlikely(sp < known->low || address + sizeof *word > known->high) &&
        !try_more(known, sp, address))
        return false;
    *word = *(const volatile uintptr_t *)address;
    return true;
}

/* Steps from a frame to its caller's. Returns false if this is the last one, or if the data makes
 * no sense. */
static inline bool step(struct stack_known *known, uintptr_t floor, struct registers *r,
                        const struct cfi_rule *rule)
{
    uintptr_t cfa = rule->flags & CFI_FROM_STACK ? r->sp : r->fp, fp = r->fp, pc = r->link;
    cfa += (uintptr_t)(intptr_t)rule->cfa_offset;
    if (rule->flags & CFI_LOADED) {
        if (!load_word(known, floor, cfa, &cfa))
            return false;
        cfa += (uintptr_t)(intptr_t)rule->cfa_further;
    }
    if (cfa < r->sp || cfa % sizeof cfa)
        return false;
    if (rule->return_place == CFI_IN_FRAME &&
        !load_word(known, floor, cfa + (uintptr_t)(intptr_t)rule->return_offset, &pc))
        return false;
    if (rule->pointer_place == CFI_IN_FRAME || rule->pointer_place == CFI_AT_BASE) {
        uintptr_t base = rule->pointer_place == CFI_IN_FRAME ? cfa : r->fp;
        if (!load_word(known, floor, base + (uintptr_t)(intptr_t)rule->pointer_offset, &fp))
            return false;
    } else if (rule->pointer_place == CFI_UNDEFINED) {
        fp = 0;
    }
#if defined(__aarch64__)
    pc &= (1ull << 48) - 1; /* it may be signed */
#endif
    bool stays = cfa == r->sp && pc == r->pc;
    *r = (struct registers){.pc = pc, .sp = cfa, .fp = fp};
    return pc != 0 && !stays;
}

/* All registers at one moment, in a frame that is walked like any other. */
#if defined(__x86_64__)
#define TAKE_REGISTERS(r)                                                                          \
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"                          \
                     : "=&r"((r).pc), "=&r"((r).sp), "=&r"((r).fp))
#else
#define TAKE_REGISTERS(r)                                                                          \
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"                       \
                     : "=&r"((r).pc), "=&r"((r).sp), "=&r"((r).fp), "=&r"((r).link))
#endif

static struct registers registers_of(const ucontext_t *context)
{
    const mcontext_t *m = &context->uc_mcontext;
#if defined(__x86_64__)
    return (struct registers){.pc = (uintptr_t)m->gregs[REG_RIP],
                              .sp = (uintptr_t)m->gregs[REG_RSP],
                              .fp = (uintptr_t)m->gregs[REG_RBP]};
#else
    return (struct registers){.pc = m->pc, .sp = m->sp, .fp = m->regs[29], .link = m->regs[30]};
#endif
}

/* Was the processor's last instruction a system call? */
bool walk_is_in_kernel(const ucontext_t *context)
{
    uintptr_t pc = registers_of(context).pc;
    if (pc % PAGE_BYTES < SYSCALL_BYTES) /* the page before may be unmapped */
        return false;
#if defined(__x86_64__)
    return *(const volatile uint8_t *)(pc - 2) == 0x0f &&
           *(const volatile uint8_t *)(pc - 1) == 0x05;
#else
    return *(const volatile uint32_t *)(pc - 4) == 0xd4000001;
#endif
}

/* An interrupted address rarely comes again, but often the code around it, which has the same rule.
 * Finding the rule takes longer than the rest of a stack, so it is cached by range. */
static bool exact_rule(uintptr_t pc, struct walk_past *past, struct cfi_rule *rule)
{
    uint64_t age = walk_key_of(0);
    if (past->age != age)
        *past = (struct walk_past){.age = age};
    for (unsigned i = 0; i < WALK_PAST_RULES; i++) {
        *rule = past->rules[i];
        if (pc >= rule->low && pc < rule->high)
            return true;
    }
    if (!modules_rule_now(pc, rule, true))
        return false;
    if (rule->high)
        past->rules[past->next++ % WALK_PAST_RULES] = *rule;
    return true;
}

enum walk_way {
    WALK_ALL,
    WALK_INNER,       /* only the program's innermost frame */
    WALK_INTERRUPTED, /* the code was interrupted anywhere: CUDA's frames are kept, ours are not;
                         uses `past` */
};

/* Walks with our own reader, from `r` on. */
static inline __attribute__((always_inline)) void
walk_from(struct registers r, struct stack_known *known, struct walk *w, unsigned max,
          enum walk_way way, struct walk_past *past)
{
    bool now = way == WALK_INTERRUPTED, is_exact = true;
    uintptr_t floor = r.sp;
    w->count = 0;
    w->is_cut = w->is_short = w->is_signal = w->is_borrowed = false;
    w->has_ends = true;
    for (unsigned inner = 0; inner < WALK_INNER_MAX; is_exact = false) {
        struct cfi_rule rule;
        /* A return address is after its call, and may already be in the next function. */
        if (!(now && is_exact ? exact_rule(r.pc, past, &rule)
                              : rule_at(is_exact ? r.pc : r.pc - 1, &rule, now))) {
            if (!now)
                break;
            rule = (struct cfi_rule){.flags = CFI_NONE | CFI_STRANGE};
        }
        if (rule.flags & CFI_SIGNAL) {
            w->is_signal = true;
            break;
        }
        if (now ? rule.flags & CFI_OURS : w->count == 0 && rule.flags & (CFI_OURS | CFI_CUDA)) {
            inner++;
        } else if (w->count == max) {
            w->is_cut = true;
            break;
        } else {
            if (w->count == 0)
                w->begin = r.sp;
            w->ends[w->count] = r.sp; /* nothing is known to be in it, unless it has a caller */
            /* as if it had made a call */
            w->frames[w->count++] = now && is_exact ? r.pc + 1 : r.pc;
            if (way == WALK_INNER)
                break;
        }
        if (rule.flags & CFI_NONE || rule.return_place == CFI_UNDEFINED ||
            !step(known, floor, &r, &rule)) {
            w->is_short = rule.flags & CFI_STRANGE;
            break;
        }
        if (w->count)
            w->ends[w->count - 1] = r.sp;
    }
}

static __attribute__((noinline)) void walk_walk(struct thread *t, struct walk *w, unsigned max,
                                                bool inner_only)
{
    struct registers r = {0};
    TAKE_REGISTERS(r);
    walk_from(r, &t->stack_known, w, max, inner_only ? WALK_INNER : WALK_ALL, NULL);
}

void walk_interrupted(const ucontext_t *context, struct walk_past *past, struct walk *w,
                      unsigned max)
{
    struct registers r = registers_of(context);
    /* the thread's cached value may just be changing */
    struct stack_known known = first_stack(r.sp);
    for (unsigned i = 0; i < w->count; i++)
        __builtin_prefetch(&kept_rules[walk_slot_of(walk_key_of(w->frames[i] - 1))]);
    walk_from(r, &known, w, max, WALK_INTERRUPTED, past);
    past->low = known.low;
    past->high = known.high;
}

uintptr_t walk_caller_of(uintptr_t low, uintptr_t high)
{
    struct walk w;
    int saved = errno;
    unsigned i = 0;
    walk_walk(&this_thread, &w, NEAR_FRAMES, false);
    while (i < w.count && w.frames[i] - low >= high - low)
        i++;
    errno = saved;
    return i + 1 < w.count ? (uintptr_t)w.frames[i + 1] : 0;
}

static bool has_signal_frame(const struct walk *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct cfi_rule rule;
        if (rule_of(w->frames[i] - 1, &rule) && rule.flags & CFI_SIGNAL)
            return true;
    }
    return false;
}

/* Is that frame ours or CUDA's? */
static bool is_inner(uint64_t address)
{
    struct cfi_rule rule;
    return rule_of(address - 1, &rule) && rule.flags & (CFI_OURS | CFI_CUDA);
}

/*
 * Walks with libunwind from the program's innermost frame on, which our own reader finds if it can.
 */
static bool walk_by_libunwind(struct thread *t, struct walk *w, unsigned max)
{
    walk_walk(t, w, 1, true);
    if (w->is_signal)
        return true;
    uint64_t innermost = w->count ? w->frames[0] : 0;
    unsigned count = unwinder_take(t, w->frames, max + WALK_INNER_MAX), inner = 0;
    while (inner < count &&
           (innermost ? w->frames[inner] != innermost : is_inner(w->frames[inner])))
        inner++;
    w->count = count - inner;
    if (w->count == 0)
        return false;
    memmove(w->frames, w->frames + inner, w->count * sizeof w->frames[0]);
    w->is_cut = w->count > max;
    w->count = w->is_cut ? max : w->count;
    w->is_signal = has_signal_frame(w);
    w->has_ends = false;
    return true;
}

/* Walks with libunwind the whole stack that our own reader could not follow; uses that if it is
 * longer. */
static void walk_further(struct thread *t, struct walk *w, unsigned max)
{
    unsigned count = w->count;
    if (!walk_by_libunwind(t, w, max) || (w->count <= count && !w->is_signal))
        walk_walk(t, w, max, false);
}

/* The place of Python's frames depends on where the native ones are on the stack. */
static unsigned way_now(void)
{
    return python_is_here() ? UNWINDER_OWN : (unsigned)gp.settings.numbers[SETTING_UNWINDER];
}

bool walk_whole(struct thread *t, struct walk *w, unsigned max)
{
    w->is_cut = w->is_short = w->is_signal = w->is_borrowed = w->has_ends = false;
    w->count = 0;
    if (way_now() == UNWINDER_LIBUNWIND && t->has_unwound)
        w->count = unwinder_take(t, w->frames, max + WALK_INNER_MAX);
    return w->count > 0;
}

void walk_stack(struct thread *t, struct walk *w, unsigned max)
{
    uint64_t none[1];
    unsigned way = way_now();
    if (way == UNWINDER_LIBUNWIND && t->has_unwound && walk_by_libunwind(t, w, max))
        return;
    walk_walk(t, w, max, false);
    if (w->is_signal || way == UNWINDER_OWN || (way == UNWINDER_OWN_FIRST && !w->is_short))
        return;
    /* Only now, when it is known that no handler has interrupted malloc: its first use allocates.
     * Not where the thread may hold the allocator's lock, either. */
    if (!t->has_unwound && !t->is_hurried)
        unwinder_take(t, none, 1);
    if (w->is_short && t->has_unwound)
        walk_further(t, w, max);
}
