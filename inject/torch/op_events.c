/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/op_events.h"

#include "base/ticks.h"
#include "hook/call.h"
#include "range/step_count.h"
#include "range/user_ranges.h"
#include "record/text_table.h"
#include "record/thread.h"
#include "stack/stack.h"
#include "torch/op_layout.h"
#include "torch/op_values.h"
#include "torch/torch_abi.h"
#include "torch/torch_library.h"

#define NAMES_MAX         (1u << 16)
#define NAME_TEXT_BYTES   (4u << 20)
#define INPUTS_MAX        (1u << 18)
#define INPUTS_TEXT_BYTES (16u << 20)
#define HINTS             8192u /* a power of two */
/* input sets of an operator; after that its numbers are left out */
#define VARIANTS_MAX      256
#define ARGUMENTS_MAX     5
#define SCOPE_MODULE      254
#define SCOPE_UNKNOWN     255
#define MODULES_DEPTH_MAX 64
/* threads in modules at one time; further threads' modules are not recorded */
#define MODULE_THREADS_MAX 256
#define MODULE_OBJECT      (1ull << 63) /* not an address: the thread's number and the depth */
#define HOOK_OBJECT        (3ull << 62) /* likewise: a unique number */
#define TIMED_SHIFT        26           /* of 32 random bits: 1 of 32 is timed on average */
/* if it took longer, the thread was not scheduled: that is not our cost */
#define TIMED_NS_MAX 100000u

enum { MARK_TRACES = 1, MARK_NUMBERED = 2 }; /* marks of names */

struct begin {
    const void *function; /* at::RecordFunction */
    uint32_t name;        /* 0: use `text` */
    uint32_t inputs;      /* 0: not known */
    uint32_t stack;       /* 0: none */
    uint8_t scope;
    bool is_traced;
    bool is_outermost; /* and stacks are wanted */
    uint64_t stack_ticks;
    uint64_t sequence; /* the number + 1; 0: none */
    uint64_t forward;
    const char *text;
};

static bool ends_with(const char *text, uint32_t byte_count, const char *end, uint32_t end_bytes)
{
    return byte_count >= end_bytes && memcmp(text + byte_count - end_bytes, end, end_bytes) == 0;
}

/*
 * What runs inside such a label is no work but torch.compile tracing; where inputs are recorded,
 * fake tensors show it. Not so PyTorch's operators PythonDispatchMode and PythonSubclass: what
 * FlopCounterMode or a DTensor does there is real. The numbers of a convolution are its shape,
 * which determines its FLOPs, however many sizes it is called with.
 */
static uint32_t mark_name(const uint8_t *bytes, uint32_t byte_count)
{
    const char *text = (const char *)bytes;
    bool traces = ends_with(text, byte_count, "(dynamo_timed)", 14);
    return traces ? MARK_TRACES : strstr(text, "conv") ? MARK_NUMBERED : 0;
}

static struct text_table names = {.record_type = RECORD_OP_NAME,
                                  .entries_max = NAMES_MAX,
                                  .text_max = NAME_TEXT_BYTES,
                                  .mark = mark_name};
static struct text_table inputs = {
    .record_type = RECORD_OP_INPUTS, .entries_max = INPUTS_MAX, .text_max = INPUTS_TEXT_BYTES};
static _Atomic uint32_t hints[HINTS]; /* numbers of names by address; the name must be compared */

/* The open modules of a thread: not thread-local, since space there is short. */
static struct open_modules {
    _Atomic uint32_t owner; /* thread id; 0: free */
    uint32_t count;
    uint32_t deeper;                  /* open modules that are not recorded */
    uint32_t open[MODULES_DEPTH_MAX]; /* a part of their addresses */
    uintptr_t frames[MODULES_DEPTH_MAX];
    uint64_t recorded; /* one bit each: its begin was recorded */
} modules[MODULE_THREADS_MAX];

/* Remembered by each thread. */
static __thread struct {
    uint64_t epoch;        /* the thread's epoch when it was last checked */
    uint16_t tracing;      /* open operators inside which torch.compile traces */
    uint16_t modules;      /* index of its open modules + 1; 0: none is open */
    uint16_t untimed;      /* begins and ends until the next one is timed */
    uint16_t marks;        /* open labels that may be steps */
    uint32_t chance;       /* random state for that; the same in each run */
    uint32_t moved;        /* `moved_count` when it was last checked */
    const void *outermost; /* the open operator inside which none gets a stack; NULL: none */
} own;

/* Outermost operators that ended on another thread than they began on. */
static _Atomic uint32_t moved_count;

/* ---- What a start hands to its end ----------------------------------------------------------- */

static void destroy(struct torch_context *context)
{
    (void)context;
}

/* A class's functions as the compiler lays them out: two nulls, and both destructors. */
static void (*const context_functions[])(struct torch_context *) = {NULL, NULL, destroy, destroy};
static struct torch_context recorded = {&context_functions[2]};
static struct torch_context traces = {&context_functions[2]};
static struct torch_context outermost = {&context_functions[2]};
/* Labels that may be steps: recorded or not, inside another one or not. */
static struct torch_context marked[2][2] = {{{&context_functions[2]}, {&context_functions[2]}},
                                            {{&context_functions[2]}, {&context_functions[2]}}};

/* ---- Records --------------------------------------------------------------------------------- */

/* Not while the process ends: each event would be stored at once, and operators are many. */
static __attribute__((noinline)) bool is_recorded(struct thread *t, bool ends)
{
    if (epoch_now() == EPOCH_NONE || attention_now() >= ATTENTION_LATE)
        return false;
    if (recorded_off() & OFF_CALLS && !ends)
        return false;
    if (!thread_takes_part(t) && !thread_attach(t))
        return false;
    if (thread_is_asked(t))
        thread_follow(t);
    return true;
}

/* Returns false if nothing is to be recorded now; otherwise call_leave must follow. */
static inline bool op_events_enter(struct thread *t, struct call *c, bool ends)
{
    if (!call_enter_own(t, c))
        return false;
    if (likely(t->epoch == atomic_load_explicit(&fork_page.recording, memory_order_relaxed)) ||
        is_recorded(t, ends))
        return true;
    call_leave(t);
    return false;
}

/*
 * Begins and ends are many, and differ more than calls do. So some are timed all the time, and not
 * only in bursts: in a short program the burst would be its first ones, which are slow, since
 * names, inputs and layouts are new. Their distance varies, since a program's operators repeat in
 * the same order.
 */
static inline bool is_timed(void)
{
    return unlikely(own.untimed-- == 0);
}

static void choose_next(void)
{
    own.chance = own.chance * 1664525u + 1013904223u;
    own.untimed = (uint16_t)(own.chance >> TIMED_SHIFT);
}

static __attribute__((noinline)) void time_one(struct thread *t, uint64_t begin)
{
    uint64_t ticks = ticks_now() - begin;
    choose_next();
    if (ticks * (unsigned __int128)gp.header.scale.mult >> 32 <= TIMED_NS_MAX)
        thread_cost_time(t->cost, COST_OPERATOR, ticks);
}

static inline bool op_events_append(struct thread *t, unsigned type, unsigned flags, unsigned code,
                                    uint64_t begin, const uint64_t *args, unsigned count)
{
    uint64_t word0 = record_word0(type, flags, RECORD_HEAD_WORDS + count, code, count);
    return thread_append_words(t, word0, begin, 0, args);
}

/* Adds its text, if its name had no space in the table, or its stack. */
static __attribute__((noinline)) bool append_more(struct thread *t, const struct begin *b,
                                                  unsigned flags, const uint64_t *args,
                                                  unsigned count)
{
    struct record r = {.type = RECORD_OP_BEGIN,
                       .flags = (uint8_t)flags,
                       .code = b->scope,
                       .begin = ticks_now(),
                       .stack_id = b->stack,
                       .arg_count = (uint8_t)count,
                       .bytes = b->name ? NULL : (const uint8_t *)b->text,
                       .byte_count = b->name ? 0 : range_text_bytes(b->text)};
    memcpy(r.args, args, count * sizeof *args);
    return thread_append(t, &r);
}

static inline bool append_begin(struct thread *t, const struct begin *b)
{
    uint64_t args[ARGUMENTS_MAX] = {(uintptr_t)b->function, b->name, b->inputs, b->sequence,
                                    b->forward};
    unsigned count = b->forward ? 5 : b->sequence ? 4 : b->inputs ? 3 : 2;
    unsigned flags = b->is_traced ? RECORD_TRACED : 0;
    if (unlikely(!b->name || b->stack))
        return append_more(t, b, flags, args, count);
    return op_events_append(t, RECORD_OP_BEGIN, flags, b->scope, ticks_now(), args, count);
}

/* Records the thread's number as backward operators use it; once per recording. */
static void report_thread(struct thread *t)
{
    struct record r = {RECORD_WITH(OP_THREAD, [OP_THREAD_NUMBER] = torch_library.thread()),
                       .begin = ticks_now()};
    thread_append(t, &r);
}

static __attribute__((noinline)) void op_events_renew(struct thread *t)
{
    if ((own.epoch ^ t->epoch) & EPOCH_MASK) {
        own.chance = t->number;
        choose_next();
        report_thread(t);
    }
    own.epoch = t->epoch;
}

/* ---- What is known of one -------------------------------------------------------------------- */

static __attribute__((noinline)) uint32_t meet_name(struct thread *t, const char *name,
                                                    uint32_t slot)
{
    uint32_t byte_count = range_text_bytes(name);
    uint64_t hash = text_hash((const uint8_t *)name, byte_count);
    uint32_t number = text_table_find(&names, (const uint8_t *)name, byte_count, hash);
    if (!number)
        number = text_table_add(&names, t, (const uint8_t *)name, byte_count, hash);
    if (number)
        atomic_store_explicit(&hints[slot], number, memory_order_release);
    return number;
}

/* An operator's name is at the same address each time, as are most labels'; another name may be
 * there later. */
static inline uint32_t name_number(struct thread *t, const char *name)
{
    uint32_t slot = (uint32_t)((uintptr_t)name * 0x9E3779B97F4A7C15u >> 51) % HINTS;
    uint32_t number = atomic_load_explicit(&hints[slot], memory_order_acquire);
    if (likely(number)) {
        const struct text_pages *p = atomic_load_explicit(&names.pages, memory_order_relaxed);
        if (likely(strcmp((const char *)p->text + p->entries[number].text_at, name) == 0))
            return number;
    }
    return meet_name(t, name, slot);
}

/* Numbers may differ each time and would fill the table: of an operator with many sets of inputs
 * only sizes are recorded. */
static __attribute__((noinline)) uint32_t meet_inputs(struct thread *t, const uint8_t *bytes,
                                                      uint32_t byte_count, uint64_t hash,
                                                      struct text_entry *of)
{
    uint32_t number = text_table_add(&inputs, t, bytes, byte_count, hash);
    if (!number)
        counter_add(COUNTER_OP_INPUTS_DROPPED, 1);
    else if (of)
        atomic_fetch_add_explicit(&of->variants, 1, memory_order_relaxed);
    return number;
}

/* Inputs that contain fake tensors are not kept. */
static __attribute__((noinline)) uint32_t inputs_number(struct thread *t, const void *values,
                                                        uint64_t count, struct text_entry *of,
                                                        bool *is_fake)
{
    uint8_t bytes[OP_VALUES_BYTES_MAX];
    bool has_numbers =
        of && (atomic_load_explicit(&of->variants, memory_order_relaxed) < VARIANTS_MAX ||
               of->mark & MARK_NUMBERED);
    uint32_t byte_count = op_values_write(bytes, values, count, has_numbers, is_fake);
    if (unlikely(*is_fake))
        return 0;
    uint64_t hash = text_hash(bytes, byte_count);
    uint32_t number = text_table_find(&inputs, bytes, byte_count, hash);
    return likely(number) ? number : meet_inputs(t, bytes, byte_count, hash, of);
}

/* Is it in no other operator of this thread? A remembered one may be over: it ended on another
 * thread, or its object is reused. */
static bool is_outermost(const void *function)
{
    uint32_t moved = atomic_load_explicit(&moved_count, memory_order_relaxed);
    if (own.moved != moved || own.outermost == function)
        own.outermost = NULL;
    own.moved = moved;
    return !own.outermost;
}

/* Stacks have their own row in gpuprof's cost. */
static __attribute__((noinline)) void op_events_take_stack(struct thread *t, struct begin *b)
{
    uint64_t begin = ticks_now();
    b->stack = stack_take_python(t);
    b->stack_ticks = ticks_now() - begin;
    thread_cost_time(t->cost, COST_OPERATOR_STACK, b->stack_ticks);
}

static void end_outermost(const void *function)
{
    if (own.outermost == function)
        own.outermost = NULL;
    else
        atomic_fetch_add_explicit(&moved_count, 1, memory_order_relaxed);
}

static inline struct torch_context *begin_one(struct thread *t, struct begin *b, bool has_layout,
                                              bool has_inputs, bool has_stack)
{
    b->text = torch_library.name(b->function);
    b->name = name_number(t, b->text);
    struct text_entry *entry = b->name ? text_table_entry(&names, b->name) : NULL;
    bool begins_trace = entry && entry->mark & MARK_TRACES;
    b->is_traced = own.tracing || begins_trace;
    const struct op_layout *l = has_layout ? op_layout_of(b->function, b->text, has_inputs) : NULL;
    if (l) {
        b->scope = ((const uint8_t *)b->function)[OP_SCOPE];
        b->sequence = op_word(b->function, l->sequence) + 1;
        b->forward = op_word(b->function, l->forward);
        uint64_t count = op_word(b->function, l->inputs + 8u);
        if (has_inputs && count && !b->is_traced)
            b->inputs = inputs_number(t, (const void *)(uintptr_t)op_word(b->function, l->inputs),
                                      count, entry, &begins_trace);
        b->is_traced |= begins_trace;
    }
    b->is_outermost = has_stack && !b->is_traced && is_outermost(b->function);
    if (b->is_outermost)
        op_events_take_stack(t, b);
    if (!append_begin(t, b))
        return NULL;
    own.tracing += begins_trace;
    if (b->is_outermost)
        own.outermost = b->function;
    return begins_trace ? &traces : b->is_outermost ? &outermost : &recorded;
}

static inline struct torch_context *op_events_begin(const void *function, uint8_t scope,
                                                    bool has_layout, bool has_inputs,
                                                    bool has_stack)
{
    struct thread *t = &this_thread;
    struct call c;
    struct begin b = {.function = function, .scope = scope};
    if (!op_events_enter(t, &c, false))
        return NULL;
    if (unlikely(own.epoch != t->epoch))
        op_events_renew(t);
    uint64_t now = is_timed() ? ticks_now() : 0;
    struct torch_context *context = begin_one(t, &b, has_layout, has_inputs, has_stack);
    if (unlikely(now))
        time_one(t, now + b.stack_ticks);
    call_leave(t);
    return context;
}

/* Only recorded operators have a context: in a pause only those that began before are ended. */
static void op_events_end(const void *function, struct torch_context *context)
{
    struct thread *t = &this_thread;
    struct call c;
    uint64_t now = ticks_now();
    uint64_t args[] = {(uintptr_t)function};
    if (context == &traces && own.tracing)
        own.tracing--;
    if (context == &outermost)
        end_outermost(function);
    if (!context || !op_events_enter(t, &c, true))
        return;
    op_events_append(t, RECORD_OP_END, 0, 0, now, args, 1);
    if (is_timed())
        time_one(t, now);
    call_leave(t);
}

/* A label may begin or end a step, and so change what is recorded, even while recording is off. Of
 * nested ones the outermost counts; an optimizer's end completes the step. */
static __attribute__((noinline)) struct torch_context *begin_mark(const void *function)
{
    struct thread *t = &this_thread;
    struct call c;
    enum step_source source = step_of_label(torch_library.name(function));
    bool nests = source == STEPS_OF_OPTIMIZER || source == STEPS_OF_LOADER;
    bool is_inner = nests && own.marks++;
    if (source && source != STEPS_OF_OPTIMIZER && !is_inner && call_enter_own(t, &c)) {
        step_begins(t, source, 0);
        call_leave(t);
    }
    struct torch_context *context =
        op_events_begin(function, TORCH_SCOPE_USER, false, false, false);
    return nests ? &marked[context != NULL][source == STEPS_OF_OPTIMIZER && !is_inner] : context;
}

/* Ends it with the context that it would have without that. */
static __attribute__((noinline)) void end_mark(const void *function, struct torch_context *context)
{
    struct thread *t = &this_thread;
    struct call c;
    bool was_recorded = context >= marked[1];
    own.marks -= own.marks > 0;
    op_events_end(function, was_recorded ? &recorded : NULL);
    if (context == &marked[was_recorded][1] && call_enter_own(t, &c)) {
        step_begins(t, STEPS_OF_OPTIMIZER, 0);
        call_leave(t);
    }
}

static void end_any(const void *function, struct torch_context *context)
{
    if (unlikely(context >= marked[0] && context <= &marked[1][1]))
        end_mark(function, context);
    else
        op_events_end(function, context);
}

/* ---- Modules --------------------------------------------------------------------------------- */

static uint64_t module_object(const struct thread *t, uint32_t depth)
{
    return MODULE_OBJECT | (uint64_t)t->number << 16 | depth;
}

static bool append_python(struct thread *t, const char *text, uint64_t object, uint8_t scope)
{
    struct begin b = {.function = (const void *)(uintptr_t)object,
                      .scope = scope,
                      .is_traced = own.tracing,
                      .text = text};
    if (unlikely(own.epoch != t->epoch))
        op_events_renew(t);
    uint64_t now = is_timed() ? ticks_now() : 0;
    b.name = name_number(t, text);
    bool is_recorded = append_begin(t, &b);
    if (unlikely(now))
        time_one(t, now);
    return is_recorded;
}

/* Entries of threads that no longer exist are free, too: they ended in the middle of a forward. */
static struct open_modules *take_modules(void)
{
    uint32_t me = thread_id();
    for (unsigned i = 0; i < MODULE_THREADS_MAX; i++) {
        struct open_modules *m = &modules[(me + i) % MODULE_THREADS_MAX];
        uint32_t owner = atomic_load(&m->owner);
        if ((!owner || !thread_exists(owner)) &&
            atomic_compare_exchange_strong(&m->owner, &owner, me)) {
            m->count = m->deeper = 0;
            own.modules = (uint16_t)(m - modules + 1);
            return m;
        }
    }
    return NULL;
}

/* Ends the modules from that depth on. */
static void end_modules(struct open_modules *m, uint32_t depth)
{
    struct thread *t = &this_thread;
    struct call c;
    uint64_t now = ticks_now();
    bool is_entered = depth < m->count && m->recorded >> depth && op_events_enter(t, &c, true);
    for (; m->count > depth; m->count--) {
        uint64_t args[] = {module_object(t, m->count - 1)};
        if (is_entered && m->recorded >> (m->count - 1) & 1)
            op_events_append(t, RECORD_OP_END, 0, 0, now, args, 1);
    }
    if (is_entered)
        call_leave(t);
}

/*
 * PyTorch runs no hook if a KeyboardInterrupt, SystemExit or another exception not derived from
 * Exception leaves a forward. What a forward calls is below it on the stack, since it goes through
 * Python's C code. So a module that is not above the new one is over.
 */
static void end_left(struct open_modules *m, uintptr_t frame)
{
    uint32_t at = m->count;
    while (at > 0 && m->frames[at - 1] <= frame)
        at--;
    if (at == m->count)
        return;
    m->deeper = 0;
    end_modules(m, at);
}

void op_module_begin(const void *module, const char *text)
{
    struct thread *t = &this_thread;
    struct call c;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct open_modules *m = own.modules ? &modules[own.modules - 1] : take_modules();
    if (!m)
        return;
    end_left(m, frame);
    if (m->count == MODULES_DEPTH_MAX) {
        m->deeper++;
        return;
    }
    uint32_t depth = m->count++;
    m->open[depth] = (uint32_t)((uintptr_t)module >> 4);
    m->frames[depth] = frame;
    m->recorded &= ~(1ull << depth);
    if (recorded_off() & OFF_OPERATORS || !op_events_enter(t, &c, false))
        return;
    m->recorded |= (uint64_t)append_python(t, text, module_object(t, depth), SCOPE_MODULE) << depth;
    call_leave(t);
}

/* The hook after a module's forward also runs if another hook has raised an exception before ours,
 * so that its begin is not known; and modules inside it may have ended without one. */
void op_module_end(const void *module)
{
    struct open_modules *m = own.modules ? &modules[own.modules - 1] : NULL;
    if (!m || m->deeper) {
        if (m)
            m->deeper--;
        return;
    }
    uint32_t at = m->count;
    while (at > 0 && m->open[at - 1] != (uint32_t)((uintptr_t)module >> 4))
        at--;
    if (at > 0)
        end_modules(m, at - 1);
    if (!m->count) {
        own.modules = 0;
        atomic_store(&m->owner, 0);
    }
}

uint64_t op_hook_begin(const char *text)
{
    static _Atomic uint64_t count; /* changed by each thread that begins one */
    struct thread *t = &this_thread;
    struct call c;
    uint64_t hook = HOOK_OBJECT | atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    if (recorded_off() & OFF_OPERATORS || !op_events_enter(t, &c, false))
        return 0;
    bool is_recorded = append_python(t, text, hook, TORCH_SCOPE_USER);
    call_leave(t);
    return is_recorded ? hook : 0;
}

void op_hook_end(uint64_t hook)
{
    struct thread *t = &this_thread;
    struct call c;
    uint64_t now = ticks_now();
    if (!hook || !op_events_enter(t, &c, true))
        return;
    op_events_append(t, RECORD_OP_END, 0, 0, now, &hook, 1);
    call_leave(t);
}

/* ---- As PyTorch calls them ------------------------------------------------------------------- */

/*
 * A start function returns a std::unique_ptr, which is not a plain value: it is written where the
 * caller says, through a hidden first argument; on aarch64 through x8, which C cannot access
 * (op_start_aarch64.S).
 */
#if defined(__aarch64__)
#define START(name)                                                                                \
    extern HIDDEN char name##_stub[];                                                              \
    HIDDEN struct torch_context *name##_begin(const void *function);                               \
    uintptr_t name(void)                                                                           \
    {                                                                                              \
        return (uintptr_t)name##_stub;                                                             \
    }                                                                                              \
    struct torch_context *name##_begin(const void *function)
#else
#define START(name)                                                                                \
    static inline struct torch_context *name##_begin(const void *function);                        \
    static struct torch_context **name##_called(struct torch_context **result,                     \
                                                const void *function)                              \
    {                                                                                              \
        *result = name##_begin(function);                                                          \
        return result;                                                                             \
    }                                                                                              \
    uintptr_t name(void)                                                                           \
    {                                                                                              \
        return (uintptr_t)name##_called;                                                           \
    }                                                                                              \
    static inline struct torch_context *name##_begin(const void *function)
#endif

START(op_start_mark)
{
    if (steps_watch(WATCH_LABELS))
        return begin_mark(function);
    return op_events_begin(function, TORCH_SCOPE_USER, false, false, false);
}

START(op_start_plain)
{
    return op_events_begin(function, SCOPE_UNKNOWN, true, false, false);
}

START(op_start_full)
{
    return op_events_begin(function, SCOPE_UNKNOWN, true, true, false);
}

START(op_start_stacks)
{
    return op_events_begin(function, SCOPE_UNKNOWN, true, true, true);
}

#undef START

uintptr_t op_end(void)
{
    return (uintptr_t)end_any;
}

void op_events_reset(void)
{
    for (unsigned i = 0; i < HINTS; i++)
        atomic_store_explicit(&hints[i], 0, memory_order_relaxed);
    for (unsigned i = 0; i < MODULE_THREADS_MAX; i++)
        atomic_store(&modules[i].owner, i + 1 == own.modules ? thread_id() : 0);
    text_table_reset(&names);
    text_table_reset(&inputs);
}
