/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of every API row, and the hook table. A wrapper finds the real function, notes the
 * call as open, makes the call with the caller's own arguments, and records it.
 */
#include "cuda/cuda_abi.h"
#include "hook/call.h"
#include "hook/hook_table.h"
#include "hook/resolve.h"

/* The CUDA error of a function that nothing loaded defines: 302 in both layers. */
#define HOOK_MISSING 302

_Static_assert(HOOK_MISSING == (int)cudaErrorSharedObjectSymbolNotFound, "runtime's code");
_Static_assert(HOOK_MISSING == (int)CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "driver's code");

/* The kinds of each row's arguments. */
#define I(kind, label, expression)          API_##kind,
#define O(kind, label, pointer, expression) API_##kind,
#define API(id, symbol, domain, class, f, l, p, returns, params, names, args)                      \
    static const uint8_t kinds_##id[] = {args API_ARG_KIND_COUNT};
#define API_VARIANT API
#include "api/api.def"
#undef I
#undef O

/* Which of them are known only when the call has returned. */
#define I(kind, label, expression)          0,
#define O(kind, label, pointer, expression) 1,
#define API(id, symbol, domain, class, f, l, p, returns, params, names, args)                      \
    static const uint8_t late_##id[] = {args 0};
#define API_VARIANT API
#include "api/api.def"
#undef I
#undef O

/*
 * The argument words, once at entry (gp_after is 0: results are not there yet) and once after. The
 * trailing 0 keeps the list non-empty.
 */
#define I(kind, label, expression) (uint64_t)(uintptr_t)(expression),
#define O(kind, label, pointer, expression)                                                        \
    (gp_after && (pointer) ? (uint64_t)(uintptr_t)(expression) : 0),
#define UNPACK(...) __VA_ARGS__
#define WORDS(args) /* in parentheses, because I and O have become commas by now */                \
    const uint64_t gp_words[] = {UNPACK args 0}
#define SITE(id, class)                                                                            \
    static const struct call_site site_##id = {API_INDEX_##id, sizeof kinds_##id - 1, kinds_##id,  \
                                               late_##id, API_##class}

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

/* True: it is the usual call, and it is open. */
#define SHORT_WAY_BEGINS(id, args)                                                                 \
    ({ BEFORE_CALL(args, call_open(&gp_call, &site_##id, gp_words)); })

/*
 * A dim3 is taken and handed on as the two registers in which both processors' conventions pass a
 * structure of 12 bytes: as itself it would be put into memory and read back. No row has so many
 * arguments that one goes over the stack. What lies above z is anything.
 */
#define DIM3(name)      uint64_t name##_xy, uint64_t name##_z
#define DIM3_NAME(name) name##_xy, name##_z
#define DIM3_LOW(name)  name##_xy
#define DIM3_HIGH(name) ((uint32_t)(name##_z))

/* Outside of all calls there is none: an exception may have passed by who was to put it back. */
#define STAND_IN (this_thread.stand_in = this_thread.open ? this_thread.stand_in : 0)

/*
 * The wrapper goes the short way, or calls its twin that can do everything. The caller's address
 * travels by the thread's state, and what a handler's call finds there it puts back; as with whom
 * the twin calls that only stands in for CUDA (resolve.h). A call that was left by longjmp may have
 * lain where gp_call lies: from the long way on it is seen to be over.
 */
#define API(id, symbol, domain, class, f, l, p, returns, params, names, args)                      \
    typedef returns(*id##_fn) params;                                                              \
    SITE(id, class);                                                                               \
    static __attribute__((noinline)) returns long_##id params                                      \
    {                                                                                              \
        const uintptr_t gp_caller = this_thread.caller;                                            \
        struct binding gp_unbound;                                                                 \
        const struct binding *gp_binding =                                                         \
            resolve(API_INDEX_##id, API_##domain, #symbol, gp_caller, &gp_unbound);                \
        if (unlikely(!gp_binding))                                                                 \
            return (returns)HOOK_MISSING;                                                          \
        LONG_WAY(id, returns, gp_binding, gp_caller, names, (args));                               \
    }                                                                                              \
    EXPORT returns symbol params;                                                                  \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        const uintptr_t gp_caller = (uintptr_t)__builtin_return_address(0);                        \
        const struct binding *gp_binding = resolve_known(API_INDEX_##id, gp_caller);               \
        struct call gp_call;                                                                       \
        if (likely(gp_binding) && !capture_starts_or_ends(#symbol) &&                              \
            !(symbol_is_query(#symbol) && unlikely(passing_now())) &&                              \
            likely(SHORT_WAY_BEGINS(id, (args)))) {                                                \
            returns gp_result = ((id##_fn)gp_binding->real)names;                                  \
            AFTER_CALL((args),                                                                     \
                       return (returns)call_close(&gp_call, &site_##id, (int)gp_result, gp_words)) \
        }                                                                                          \
        *(volatile uintptr_t *)&gp_call.mark = 0;                                                  \
        volatile uintptr_t gp_before = this_thread.caller, gp_stand_in = STAND_IN;                 \
        this_thread.caller = gp_caller;                                                            \
        returns gp_result = long_##id names;                                                       \
        this_thread.caller = gp_before;                                                            \
        this_thread.stand_in = gp_stand_in;                                                        \
        return gp_result;                                                                          \
    }
#define API_VARIANT(id, symbol, domain, class, f, l, p, returns, params, names, args)              \
    typedef returns(*id##_fn) params;                                                              \
    SITE(id, class);                                                                               \
    static returns variant_##id(const struct binding *gp_binding, uintptr_t gp_caller,             \
                                UNPACK params)                                                     \
    {                                                                                              \
        LONG_WAY(id, returns, gp_binding, gp_caller, names, (args));                               \
    }
#include "api/api.def"
#undef I
#undef O

/*
 * One symbol, two ABIs: which one holds is known only when the caller's libcudart is. All arguments
 * are of the integer class, so the longer list of words serves both: what a shorter form does not
 * have is read from a register or stack slot and handed on to nobody.
 */
#define WORD_PARAMS_5 uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e
#define WORD_PARAMS_9 WORD_PARAMS_5, uint64_t f, uint64_t g, uint64_t h, uint64_t i
#define WORD_NAMES_5  a, b, c, d, e
#define WORD_NAMES_9  WORD_NAMES_5, f, g, h, i
#define DISPATCH(symbol, words, low_id, high_id, high_first)                                       \
    typedef cudaError_t (*symbol##_words_fn)(const struct binding *, uintptr_t,                    \
                                             WORD_PARAMS_##words);                                 \
    EXPORT cudaError_t symbol(WORD_PARAMS_##words);                                                \
    EXPORT cudaError_t symbol(WORD_PARAMS_##words)                                                 \
    {                                                                                              \
        const uintptr_t gp_caller = (uintptr_t)__builtin_return_address(0);                        \
        volatile uintptr_t gp_stand_in = STAND_IN;                                                 \
        struct binding gp_unbound;                                                                 \
        const struct binding *gp_binding =                                                         \
            resolve(API_INDEX_##low_id, API_RUNTIME, #symbol, gp_caller, &gp_unbound);             \
        if (unlikely(!gp_binding))                                                                 \
            return cudaErrorSharedObjectSymbolNotFound;                                            \
        void *gp_variant = gp_binding->runtime_major < high_first ? (void *)variant_##low_id       \
                                                                  : (void *)variant_##high_id;     \
        cudaError_t gp_result =                                                                    \
            ((symbol##_words_fn)gp_variant)(gp_binding, gp_caller, WORD_NAMES_##words);            \
        this_thread.stand_in = gp_stand_in;                                                        \
        return gp_result;                                                                          \
    }
#include "api/api.def"

const struct call_site *const call_sites[API_FUNCTION_COUNT] = {
#define API(id, ...)         &site_##id,
#define API_VARIANT(id, ...) &site_##id,
#include "api/api.def"
};

#define HOOK(id, symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api.def"

#define PROC(name, version, flags) name, version, flags
const struct hook hooks[] = {
#define API(id, symbol, domain, class, f, l, proc, ...)                                            \
    {#symbol, (void *)symbol, API_INDEX_##id, API_##domain, proc},
#define DISPATCH(symbol, words, low_id, high_id, high_first)                                       \
    {#symbol, (void *)symbol, API_INDEX_##low_id, API_RUNTIME, NULL, 0, 0},
#define HOOK(id, symbol, domain, proc, returns, params)                                            \
    {#symbol, (void *)symbol, HOOK_SLOT_##id, API_##domain, proc},
#include "api/api.def"
};
const uint32_t hook_count = sizeof hooks / sizeof hooks[0];

#define TABLE_SLOTS 2048 /* power of two, over three times the rows */
_Static_assert(sizeof hooks / sizeof hooks[0] * 2 < TABLE_SLOTS, "the table stays sparse");

/* Made at the first look-up, by each thread that comes before it is there: to the same. */
static _Atomic uint16_t table[TABLE_SLOTS]; /* row + 1 */
static _Atomic uint32_t table_made;

static unsigned table_slot(const char *symbol)
{
    uint32_t hash = 2166136261u;
    for (const char *p = symbol; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return hash & (TABLE_SLOTS - 1);
}

/* Idempotent: threads that race through it store the same values. */
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
