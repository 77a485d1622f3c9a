/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/op_layout.h"

#include <errno.h>
#include <stddef.h>

#include "base/futex.h"
#include "base/memory_read.h"
#include "torch/torch_abi.h"
#include "torch/torch_library.h"

#define LOOKS          16 /* operators that must match before a layout is accepted */
#define OP_NAME        160
#define OP_BYTES       312 /* bytes read: up to the last field of the longest row */
#define VARIANT_BYTES  8   /* the bytes before `sequence` say which form the name has */
#define INPUT_BYTES    16  /* size of the field `inputs` */
#define KEYWORDS_BYTES 56  /* a std::unordered_map; in some rows between inputs and outputs */
#define VALUES_MAX     16u /* at most this many inputs of an operator are checked */
#define STACK_MAX      (1u << 20)
#define SEQUENCE_MAX   (1ull << 48)
#define THREAD_MAX     (1ull << 32)

/* Old or new form of std::string; since 2.4 keyword arguments follow the others. */
static const struct op_layout rows[] = {
    {200, 208, 304}, {200, 208, 248}, {176, 184, 280}, {176, 184, 224}};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

_Atomic(const struct op_layout *) op_layout_known[2];

static struct {
    struct lock lock;
    uint32_t fits;     /* rows that every operator so far matched */
    uint32_t looks[2]; /* index 1: operators with inputs */
    _Atomic bool is_refused;
} looked = {.fits = (1u << ROW_COUNT) - 1};

/* Is this the address that name() returned: a string's, or the schema's name it points to? */
static bool has_name(const struct op_layout *l, const uint8_t *op, const char *name)
{
    uint64_t address = op_word(op, OP_NAME);
    if (op[l->sequence - VARIANT_BYTES] == 1 && !memory_read(address, &address, sizeof address))
        return false;
    return op[l->sequence - VARIANT_BYTES] <= 1 && address == (uintptr_t)name;
}

/*
 * Does `inputs` look right? `least` is the number of the operator's arguments. An operator has none
 * if nobody asked for them, and more if the TorchScript interpreter called it: then it has its
 * whole stack.
 */
static bool has_values(const struct op_layout *l, const uint8_t *op, uint64_t least,
                       bool has_inputs)
{
    struct torch_value values[VALUES_MAX];
    uint64_t count = op_word(op, l->inputs + 8u);
    uint64_t look = count < VALUES_MAX ? count : VALUES_MAX;
    if (!count && !has_inputs)
        return !op_word(op, l->inputs);
    if (count < least || count > STACK_MAX ||
        (look && !memory_read(op_word(op, l->inputs), values, look * sizeof values[0])))
        return false;
    for (uint64_t i = 0; i < look; i++)
        if (values[i].tag >= TORCH_TAGS_MAX)
            return false;
    return true;
}

/* Do the other fields look right? Keyword arguments are a hash table, which has buckets even if it
 * is empty, and a load factor of 1. There are no outputs yet. */
static bool has_rest(const struct op_layout *l, const uint8_t *op)
{
    unsigned at = l->inputs + INPUT_BYTES;
    float load = 1.0f;
    if (l->forward - at > KEYWORDS_BYTES) {
        memcpy(&load, op + at + 32, sizeof load);
        if (!op_word(op, at) || !op_word(op, at + 8))
            return false;
        at += KEYWORDS_BYTES;
    }
    return load == 1.0f && !op_word(op, at) && !op_word(op, at + 8) && !op_word(op, at + 16);
}

/* Returns the rows that this operator matches, one bit each. */
static uint32_t fitting(const uint8_t *op, const char *name, uint64_t least, bool has_inputs)
{
    uint32_t fits = 0;
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        const struct op_layout *l = &rows[i];
        if (op[OP_SCOPE] < TORCH_SCOPE_COUNT && has_name(l, op, name) &&
            op_word(op, l->sequence) + 1 < SEQUENCE_MAX && has_values(l, op, least, has_inputs) &&
            has_rest(l, op) && op_word(op, l->forward) < THREAD_MAX)
            fits |= 1u << i;
    }
    return fits;
}

/* The lock must be held. If only one row matches this operator, it is used for it. */
static const struct op_layout *op_layout_own_look(const uint8_t *op, const char *name,
                                                  uint64_t least, bool has_inputs)
{
    looked.fits &= fitting(op, name, least, has_inputs);
    if (!looked.fits) {
        atomic_store(&looked.is_refused, true);
        return NULL;
    }
    if (looked.fits & (looked.fits - 1))
        return NULL;
    const struct op_layout *l = &rows[__builtin_ctz(looked.fits)];
    if (++looked.looks[has_inputs] == LOOKS)
        atomic_store(&op_layout_known[has_inputs], l);
    return l;
}

const struct op_layout *op_layout_look(const void *function, const char *name, bool has_inputs)
{
    uint8_t op[OP_BYTES];
    const struct op_layout *l = NULL;
    int saved = errno;
    if (!op_layout_is_refused() && lock_take(&looked.lock, LOOK_LOCK_NS)) {
        l = atomic_load(&op_layout_known[has_inputs]); /* another thread has decided meanwhile */
        if (!l && memory_read((uintptr_t)function, op, sizeof op))
            l = op_layout_own_look(op, name, torch_library.input_count(function), has_inputs);
        lock_drop(&looked.lock);
    }
    errno = saved;
    return l;
}

bool op_layout_is_refused(void)
{
    return atomic_load_explicit(&looked.is_refused, memory_order_relaxed);
}

void op_layout_reset(void)
{
    atomic_store(&looked.lock.holder, 0);
}
