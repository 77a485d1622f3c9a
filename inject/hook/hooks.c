/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of all API rows, and the hook table. A wrapper finds the real function, notes the
 * call as open, calls the function with the caller's arguments, and records the call. */
#include "cuda/capture.h"
#include "cuda/cuda_abi.h"
#include "hook/call.h"
#include "hook/hook_table.h"
#include "hook/resolve.h"

/* What a wrapper returns if no loaded object defines its function. */
enum hook_missing {
#define API_DOMAIN(NAME, name, prefix, soname, layer, bound, pending, missing, ...)                \
    HOOK_MISSING_##NAME = (missing),
#include "api/api.def"
};

/* The kinds of each row's arguments. */
#define I(kind, label, expression)          ARG_##kind,
#define O(kind, label, pointer, expression) ARG_##kind,
#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...)                  \
    static const uint8_t kinds_##id[] = {__VA_ARGS__ ARG_CALL_KIND_COUNT};
#define API_VARIANT API
#include "api/api.def"
#undef I
#undef O

/* 1 for arguments that are known only after the call. */
#define I(kind, label, expression)          0,
#define O(kind, label, pointer, expression) 1,
#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...)                  \
    static const uint8_t late_##id[] = {__VA_ARGS__ 0};
#define API_VARIANT API
#include "api/api.def"
#undef I
#undef O

/* The argument words, evaluated at entry (gp_after is 0: results are not there yet) and after the
 * call. The trailing 0 keeps the list non-empty. */
#define I(kind, label, expression) (uint64_t)(uintptr_t)(expression),
#define O(kind, label, pointer, expression)                                                        \
    (gp_after && (pointer) ? (uint64_t)(uintptr_t)(expression) : 0),
#define UNPACK(...) __VA_ARGS__
#define WORDS(args) /* in parentheses, because I and O have become commas by now */                \
    const uint64_t gp_words[] = {UNPACK args 0}
#define API_IS_PIECE(does) (API_DOES_##does == API_DOES_COPY_PIECE)
#define API_WAITS(does)    (API_DOES_##does == API_DOES_SYNC)
#define SITE(id, domain, does)                                                                     \
    static const struct call_site site_##id = {.code = API_CODE_##id,                              \
                                               .count = sizeof kinds_##id - 1,                     \
                                               .kinds = kinds_##id,                                \
                                               .late = late_##id,                                  \
                                               .class = API_CLASS_OF_##does,                       \
                                               .capture = API_CAPTURE_OF_##does,                   \
                                               .cost = API_COST_OF_##does,                         \
                                               .is_piece = API_IS_PIECE(does),                     \
                                               .waits = API_WAITS(does),                           \
                                               .only_ends = IS_RESET(does) || ENDS_STREAM(does),   \
                                               .memory = API_MEMORY_OF_##does,                     \
                                               .pending = API_PENDING_OF_##domain}

#define BEFORE_CALL(args, begin)                                                                   \
    enum { gp_after = 0 };                                                                         \
    WORDS(args);                                                                                   \
    begin

#define AFTER_CALL(args, end)                                                                      \
    {                                                                                              \
        const int gp_after = (int)gp_result == 0;                                                  \
        WORDS(args);                                                                               \
        (void)gp_after;                                                                            \
        end;                                                                                       \
    }

#define LONG_WAY(id, returns, binding, caller, names, args)                                        \
    struct call gp_call = {0, NULL};                                                               \
    if (call_is_inner(&gp_call, caller))                                                           \
        return ((id##_fn)(binding)->real)names;                                                    \
    {                                                                                              \
        BEFORE_CALL(args, call_begin(&gp_call, &site_##id, gp_words, caller));                     \
    }                                                                                              \
    returns gp_result = ((id##_fn)(binding)->real)names;                                           \
    AFTER_CALL(args, return (returns)call_end(&gp_call, &site_##id, (int)gp_result, gp_words))

/* True: the call takes the fast path, and is open. */
#define SHORT_WAY_BEGINS(id, args)                                                                 \
    ({ BEFORE_CALL(args, call_open(&gp_call, &site_##id, gp_words)); })

/*
 * A dim3 is taken and passed on as two registers, as both processors' calling conventions pass a
 * structure of 12 bytes. As a structure it would be stored to memory and read back. No row has
 * enough arguments to pass one on the stack. The bits above z are undefined.
 */
#define DIM3(name)      uint64_t name##_xy, uint64_t name##_z
#define DIM3_NAME(name) name##_xy, name##_z
#define DIM3_LOW(name)  name##_xy
#define DIM3_HIGH(name) ((uint32_t)(name##_z))

/* Everything in a context is destroyed: the slow path handles that. */
#define IS_RESET(does) ((int)API_MEMORY_OF_##does == (int)API_MEMORY_RESET)

/*
 * A capture ends with the stream on which it began. That is noted before the call: after it,
 * another thread may have reused the handle, and an error that the call returns may be an earlier
 * call's.
 */
#define ENDS_STREAM(does) ((int)API_DOES_##does == (int)API_DOES_STREAM_END)

/* The program controls recording here: takes the slow path, too. */
#define IS_DOOR(does)                                                                              \
    ((int)API_DOES_##does == (int)API_DOES_DOOR_OPEN ||                                            \
     (int)API_DOES_##does == (int)API_DOES_DOOR_CLOSE)

/* Outside of all calls it is 0: an exception may have skipped the code that resets it. */
#define STAND_IN (this_thread.stand_in = this_thread.open ? this_thread.stand_in : 0)

/*
 * The wrapper takes the fast path, or calls the general version of itself. The caller's address is
 * passed in the thread's state; a signal handler's call restores what it finds there. It is the
 * same for the stand-in that the general version may call for CUDA (resolve.h). A call left by
 * longjmp may have been at the address of gp_call: the slow path notices that it is over.
 */
#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...)                  \
    typedef returns(*id##_fn) params;                                                              \
    SITE(id, domain, does);                                                                        \
    static __attribute__((noinline)) returns long_##id params                                      \
    {                                                                                              \
        const uintptr_t gp_caller = this_thread.caller;                                            \
        struct binding gp_unbound;                                                                 \
        const struct binding *gp_binding =                                                         \
            resolve(API_CODE_##id, API_##domain, #symbol, gp_caller, &gp_unbound);                 \
        if (unlikely(!gp_binding))                                                                 \
            return (returns)HOOK_MISSING_##domain;                                                 \
        if (IS_RESET(does)) {                                                                      \
            BEFORE_CALL((__VA_ARGS__), call_resets(&site_##id, gp_words));                         \
        }                                                                                          \
        if (IS_DOOR(does))                                                                         \
            call_door((int)API_DOES_##does == (int)API_DOES_DOOR_OPEN);                            \
        LONG_WAY(id, returns, gp_binding, gp_caller, names, (__VA_ARGS__));                        \
    }                                                                                              \
    EXPORT returns symbol params;                                                                  \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        const uintptr_t gp_caller = (uintptr_t)__builtin_return_address(0);                        \
        const struct binding *gp_binding = resolve_known(API_CODE_##id, gp_caller);                \
        struct call gp_call;                                                                       \
        if (ENDS_STREAM(does)) {                                                                   \
            BEFORE_CALL((__VA_ARGS__), capture_drop_stream(gp_words[0]));                          \
        }                                                                                          \
        if (likely(gp_binding) && !api_bounds_capture(API_CAPTURE_OF_##does) && !IS_RESET(does) && \
            !IS_DOOR(does) &&                                                                      \
            !((int)API_COST_OF_##does == (int)COST_QUERY && unlikely(passing_now())) &&            \
            likely(SHORT_WAY_BEGINS(id, (__VA_ARGS__)))) {                                         \
            returns gp_result = ((id##_fn)gp_binding->real)names;                                  \
            AFTER_CALL((__VA_ARGS__),                                                              \
                       return (returns)call_close(&gp_call, &site_##id, (int)gp_result, gp_words)) \
        }                                                                                          \
        if (likely(gp_binding) && !IS_DOOR(does) && call_is_off(&gp_call, &site_##id)) {           \
            returns gp_result = ((id##_fn)gp_binding->real)names;                                  \
            call_was_off(&gp_call);                                                                \
            return gp_result;                                                                      \
        }                                                                                          \
        *(volatile uintptr_t *)&gp_call.mark = 0;                                                  \
        volatile uintptr_t gp_before = this_thread.caller, gp_stand_in = STAND_IN;                 \
        this_thread.caller = gp_caller;                                                            \
        returns gp_result = long_##id names;                                                       \
        this_thread.caller = gp_before;                                                            \
        this_thread.stand_in = gp_stand_in;                                                        \
        return gp_result;                                                                          \
    }
#define API_VARIANT(id, symbol, name, domain, does, f, l, p, returns, params, names, ...)          \
    typedef returns(*id##_fn) params;                                                              \
    SITE(id, domain, does);                                                                        \
    static returns variant_##id(const struct binding *gp_binding, uintptr_t gp_caller,             \
                                UNPACK params)                                                     \
    {                                                                                              \
        LONG_WAY(id, returns, gp_binding, gp_caller, names, (__VA_ARGS__));                        \
    }
#include "api/api.def"
#undef I
#undef O

/*
 * One symbol with two ABIs: which one holds is known only when the caller's libcudart is. All
 * arguments are of the integer class, so the longer list of words serves both: a word that a
 * shorter form does not have is read from some register or stack slot, and not used.
 */
#define DISPATCH(symbol, domain, returns, params, names, low_id, high_id, high_first, high_since)  \
    typedef returns (*symbol##_words_fn)(const struct binding *, uintptr_t, UNPACK params);        \
    EXPORT returns symbol params;                                                                  \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        const uintptr_t gp_caller = (uintptr_t)__builtin_return_address(0);                        \
        volatile uintptr_t gp_stand_in = STAND_IN;                                                 \
        struct binding gp_unbound;                                                                 \
        const struct binding *gp_binding =                                                         \
            resolve(API_CODE_##low_id, API_##domain, #symbol, gp_caller, &gp_unbound);             \
        if (unlikely(!gp_binding))                                                                 \
            return (returns)HOOK_MISSING_##domain;                                                 \
        void *gp_variant =                                                                         \
            gp_binding->major < high_first ? (void *)variant_##low_id : (void *)variant_##high_id; \
        returns gp_result = ((symbol##_words_fn)gp_variant)(gp_binding, gp_caller, UNPACK names);  \
        this_thread.stand_in = gp_stand_in;                                                        \
        return gp_result;                                                                          \
    }
#include "api/api.def"

const struct call_site *const call_sites[API_FUNCTION_COUNT] = {
#define API(id, ...)         &site_##id,
#define API_VARIANT(id, ...) &site_##id,
#include "api/api.def"
};

#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    EXPORT returns symbol params;
#include "api/api.def"

const struct hook hooks[] = {
#define API(id, symbol, name, domain, does, f, l, proc, ...)                                       \
    {#symbol, (void *)symbol, API_CODE_##id, API_##domain, UNPACK proc},
#define DISPATCH(symbol, domain, returns, params, names, low_id, ...)                              \
    {#symbol, (void *)symbol, API_CODE_##low_id, API_##domain, NULL, 0, 0},
#define HOOK(symbol, domain, proc, returns, params)                                                \
    {#symbol, (void *)symbol, HOOK_SLOT_##symbol, API_##domain, UNPACK proc},
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    {#symbol, (void *)symbol, API_CODE_##symbol, API_##domain, NULL, 0, 0},
#include "api/api.def"
};
const uint32_t hook_count = sizeof hooks / sizeof hooks[0];

#define TABLE_SLOTS 4096 /* power of two, more than three times the rows */
_Static_assert(sizeof hooks / sizeof hooks[0] * 2 < TABLE_SLOTS, "the table stays sparse");

/* Built at the first look-up. Several threads may build it at once: all store the same. */
static _Atomic uint16_t table[TABLE_SLOTS]; /* row + 1 */
static _Atomic uint32_t table_made;

static unsigned table_slot(const char *symbol)
{
    uint32_t hash = 2166136261u;
    for (const char *p = symbol; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return hash & (TABLE_SLOTS - 1);
}

/* Threads may race through it: they store the same values. */
static void table_make(void)
{
    for (uint32_t i = 0; i < hook_count; i++) {
        unsigned slot = table_slot(hooks[i].symbol);
        for (;; slot = (slot + 1) & (TABLE_SLOTS - 1)) {
            uint16_t row = atomic_load(&table[slot]);
            if (row == i + 1)
                break;
            if (row == 0 && atomic_compare_exchange_strong(&table[slot], &row, (uint16_t)(i + 1)))
                break;
            if (row == i + 1)
                break;
        }
    }
    atomic_store_explicit(&table_made, 1, memory_order_release);
}

const struct hook *hook_find(const char *symbol)
{
    if (!atomic_load_explicit(&table_made, memory_order_acquire))
        table_make();
    for (unsigned slot = table_slot(symbol);; slot = (slot + 1) & (TABLE_SLOTS - 1)) {
        uint16_t row = atomic_load_explicit(&table[slot], memory_order_relaxed);
        if (row == 0)
            return NULL;
        if (strcmp(hooks[row - 1].symbol, symbol) == 0)
            return &hooks[row - 1];
    }
}

const struct hook *hook_of_wrapper(const void *address)
{
    for (uint32_t i = 0; i < hook_count; i++)
        if (hooks[i].wrapper == address)
            return &hooks[i];
    return NULL;
}
