/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/op_values.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "base/memory_read.h"
#include "torch/op_layout.h"
#include "torch/torch_library.h"

#define TENSOR_LOOKS 8 /* tensors that must match before a layout is accepted ... */
/* ... as long as fewer than this many do not match, which may be of unusual kinds */
#define TENSOR_MISFITS   64
#define VALUE_BYTES_MAX  11 /* of one value, except a tensor */
#define TENSOR_BYTES_MAX (3 + 10 * TORCH_DIMENSIONS_MAX)
#define LISTED_MAX       16u /* at most this many values of a list are read */

/* Offsets in a c10::TensorImpl, from its sizes on: number of sizes, the sizes or their address,
 * strides, offset, element count, type, device, and whether it has a device. */
#define SIZES_AT       8
#define ELEMENTS_AT    96
#define TYPE_AT        104
#define DEVICE_AT      106
#define HAS_DEVICE_AT  108
#define TENSOR_BYTES   (72 + HAS_DEVICE_AT + 1)
#define TYPE_COUNT_MAX 64

/* Offset of the sizes: 2.4 to 2.14, 2.15, and before 2.4. */
static const uint16_t tensor_rows[] = {64, 56, 72};
#define TENSOR_ROW_COUNT (sizeof tensor_rows / sizeof tensor_rows[0])

/* Offset of a list's std::vector, after the vtable and the reference counts. */
static const uint16_t list_rows[] = {16, 24};

static struct {
    struct lock lock;
    uint32_t fits; /* rows that all tensors with a device matched */
    uint32_t looks;
    uint32_t misfits;
    _Atomic bool is_refused;
    _Atomic uint32_t tensor_at; /* 0: not known yet; likewise the other two */
    _Atomic uint32_t list_at;
    _Atomic uint32_t list_tag;
} looked = {.fits = (1u << TENSOR_ROW_COUNT) - 1};

struct writer {
    uint8_t *at;
    uint8_t *end;
    bool has_numbers;
    bool is_fake; /* a tensor is on the device "meta" */
};

/* ---- Looks through the kernel --------------------------------------------------------------- */

/* Does the element count match the sizes at this offset? */
static bool is_tensor_at(const uint8_t *impl, unsigned at)
{
    uint64_t sizes[TORCH_DIMENSIONS_MAX], count = op_word(impl, at), elements = 1;
    if (count > TORCH_DIMENSIONS_MAX)
        return false;
    if (count <= TORCH_INLINE_MAX)
        memcpy(sizes, impl + at + SIZES_AT, count * 8);
    else if (!memory_read(op_word(impl, at + SIZES_AT), sizes, count * 8))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (sizes[i] >> 48 || __builtin_mul_overflow(elements, sizes[i], &elements))
            return false;
    return elements == op_word(impl, at + ELEMENTS_AT) && impl[at + TYPE_AT] < TYPE_COUNT_MAX &&
           impl[at + TYPE_AT + 1] == 0;
}

/* The lock must be held. A scalar tensor has no sizes: it matches, but proves little. */
static uint32_t look_at_tensor(const uint8_t *impl)
{
    uint32_t fits = 0;
    for (unsigned i = 0; i < TENSOR_ROW_COUNT; i++)
        if (is_tensor_at(impl, tensor_rows[i]))
            fits |= 1u << i;
    if (!(looked.fits & fits)) {
        if (++looked.misfits == TENSOR_MISFITS)
            atomic_store(&looked.is_refused, true);
        return 0;
    }
    looked.fits &= fits;
    uint32_t at = tensor_rows[__builtin_ctz(looked.fits)];
    if (looked.fits & (looked.fits - 1))
        return 0;
    if (op_word(impl, at) && ++looked.looks == TENSOR_LOOKS)
        atomic_store(&looked.tensor_at, at);
    return at;
}

/* Returns the offset of this tensor's sizes; 0: not known. */
static __attribute__((noinline)) uint32_t find_tensor(uint64_t address)
{
    uint8_t impl[TENSOR_BYTES];
    uint32_t at = 0;
    if (!op_values_are_refused() && lock_take(&looked.lock, LOOK_LOCK_NS)) {
        at = atomic_load(&looked.tensor_at); /* another thread has decided meanwhile */
        if (!at && memory_read(address, impl, sizeof impl))
            at = look_at_tensor(impl);
        lock_drop(&looked.lock);
    }
    return at;
}

static bool is_list_at(uint64_t address, unsigned at, uint32_t list_tag)
{
    struct torch_value values[LISTED_MAX];
    uint64_t words[3];
    if (!memory_read(address + at, words, sizeof words) || words[0] >= words[1] ||
        words[1] > words[2] || (words[0] | words[1] | words[2]) % 8 || (words[1] - words[0]) % 16)
        return false;
    uint64_t count = (words[1] - words[0]) / 16;
    count = count < LISTED_MAX ? count : LISTED_MAX;
    if (!memory_read(words[0], values, count * sizeof values[0]))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (values[i].tag > list_tag)
            return false;
    return true;
}

/* Before 2.11 the tag that now means list meant dictionary, and the tag of lists is now unused. */
static __attribute__((noinline)) void look_for_list(const struct torch_value *value)
{
    if ((value->tag != TORCH_LIST_OLD && value->tag != TORCH_LIST_NEW) ||
        !lock_take(&looked.lock, LOOK_LOCK_NS))
        return;
    for (unsigned i = 0; !atomic_load(&looked.list_tag) && i < 2; i++) {
        if (is_list_at(value->payload, list_rows[i], value->tag)) {
            atomic_store(&looked.list_at, list_rows[i]);
            atomic_store(&looked.list_tag, value->tag);
        }
    }
    lock_drop(&looked.lock);
}

/* ---- The bytes ------------------------------------------------------------------------------ */

static inline void op_values_put_number(struct writer *w, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *w->at++ = (uint8_t)(value | 0x80);
    *w->at++ = (uint8_t)value;
}

static inline void op_values_put_tensor(struct writer *w, uint64_t address)
{
    const uint8_t *impl = (const uint8_t *)(uintptr_t)address;
    uint32_t at = atomic_load_explicit(&looked.tensor_at, memory_order_relaxed);
    if (impl == torch_library.undefined || !impl) {
        *w->at++ = OP_VALUE_UNDEFINED;
        return;
    }
    if (unlikely(!at))
        at = find_tensor(address);
    uint64_t count = at ? op_word(impl, at) : UINT64_MAX;
    if (count > TORCH_DIMENSIONS_MAX) {
        *w->at++ = OP_VALUE_UNREAD;
        return;
    }
    const uint8_t *sizes = impl + at + SIZES_AT;
    if (count > TORCH_INLINE_MAX)
        sizes = (const uint8_t *)(uintptr_t)op_word(sizes, 0);
    w->is_fake |= impl[at + DEVICE_AT] == TORCH_DEVICE_META && impl[at + HAS_DEVICE_AT] == 1;
    *w->at++ = OP_VALUE_TENSOR;
    *w->at++ = impl[at + TYPE_AT];
    *w->at++ = (uint8_t)count;
    for (unsigned i = 0; i < count; i++)
        op_values_put_number(w, op_word(sizes, 8 * i));
}

static inline void put_scalar(struct writer *w, enum op_value kind, uint64_t payload)
{
    if (!w->has_numbers) {
        *w->at++ = OP_VALUE_SCALAR;
        return;
    }
    *w->at++ = (uint8_t)kind;
    if (kind == OP_VALUE_INT) {
        op_values_put_number(w, payload << 1 ^ (uint64_t)((int64_t)payload >> 63));
    } else if (kind == OP_VALUE_BOOL) {
        *w->at++ = payload & 1;
    } else {
        memcpy(w->at, &payload, sizeof payload);
        w->at += sizeof payload;
    }
}

static inline bool op_values_has_room(struct writer *w, const struct torch_value *value)
{
    size_t bytes = value->tag == TORCH_TENSOR ? TENSOR_BYTES_MAX : VALUE_BYTES_MAX;
    return (size_t)(w->end - w->at) > bytes; /* and for OP_VALUE_CUT */
}

/* Writes a value that is not a list. */
static inline void op_values_put_value(struct writer *w, const struct torch_value *value,
                                       uint32_t list_tag)
{
    switch (value->tag) {
    case TORCH_NONE: *w->at++ = OP_VALUE_NONE; break;
    case TORCH_TENSOR: op_values_put_tensor(w, value->payload); break;
    case TORCH_INT: put_scalar(w, OP_VALUE_INT, value->payload); break;
    case TORCH_DOUBLE: put_scalar(w, OP_VALUE_DOUBLE, value->payload); break;
    default:
        if (list_tag && value->tag == list_tag - TORCH_BOOL_BEFORE_LIST)
            put_scalar(w, OP_VALUE_BOOL, value->payload);
        else
            *w->at++ = OP_VALUE_OTHER;
        break;
    }
}

/* Returns false if there is no space. */
static bool put_list(struct writer *w, const struct torch_value *value, uint32_t list_tag)
{
    const void *list = (const void *)(uintptr_t)value->payload;
    unsigned at = atomic_load_explicit(&looked.list_at, memory_order_relaxed);
    const struct torch_value *first = (const struct torch_value *)(uintptr_t)op_word(list, at);
    uint64_t count = (op_word(list, at + 8) - (uintptr_t)first) / sizeof *first;
    *w->at++ = OP_VALUE_LIST;
    op_values_put_number(w, count);
    for (uint64_t i = 0; i < count; i++) {
        if (!op_values_has_room(w, &first[i]))
            return false;
        op_values_put_value(w, &first[i], list_tag);
    }
    return true;
}

uint32_t op_values_write(uint8_t bytes[OP_VALUES_BYTES_MAX], const void *values, uint64_t count,
                         bool has_numbers, bool *is_fake)
{
    struct writer w = {bytes, bytes + OP_VALUES_BYTES_MAX, has_numbers, false};
    const struct torch_value *value = values;
    int saved = errno;
    for (uint64_t i = 0; i < count; i++, value++) {
        uint32_t list_tag = atomic_load_explicit(&looked.list_tag, memory_order_acquire);
        if (unlikely(!list_tag))
            look_for_list(value), list_tag = atomic_load(&looked.list_tag);
        bool fits = op_values_has_room(&w, value);
        if (fits && value->tag == list_tag && list_tag)
            fits = put_list(&w, value, list_tag);
        else if (fits)
            op_values_put_value(&w, value, list_tag);
        if (!fits) {
            *w.at++ = OP_VALUE_CUT;
            break;
        }
    }
    errno = saved;
    *is_fake = w.is_fake;
    return (uint32_t)(w.at - bytes);
}

bool op_values_are_refused(void)
{
    return atomic_load_explicit(&looked.is_refused, memory_order_relaxed);
}

void op_values_reset(void)
{
    atomic_store(&looked.lock.holder, 0);
}
