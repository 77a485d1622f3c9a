/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of PyTorch's C++ ABI that we use, in C: its global callbacks around operators
 * (at::RecordFunctionCallback), unchanged since 2.1, and the tags of its values. For what has
 * changed see op_layout.c and op_values.c.
 */
#ifndef GPUPROF_INJECT_TORCH_ABI_H
#define GPUPROF_INJECT_TORCH_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* at::RecordScope. */
enum torch_scope { TORCH_SCOPE_USER = 7, TORCH_SCOPE_COUNT = 10 };

/* at::RecordFunctionCallback, 40 bytes, passed by value. The zeros after it are for versions with
 * more scopes or another flag. */
struct torch_callback {
    uintptr_t start;
    uintptr_t end;
    double probability;
    bool scopes[TORCH_SCOPE_COUNT];
    bool needs_inputs;
    bool needs_outputs;
    bool needs_ids;
    uint8_t zeros[27];
};

_Static_assert(offsetof(struct torch_callback, scopes) == 24 &&
                   offsetof(struct torch_callback, needs_inputs) == 34,
               "as at::RecordFunctionCallback");

typedef uint64_t (*torch_add_fn)(struct torch_callback callback);
typedef void (*torch_switch_fn)(uint64_t handle);
typedef const char *(*torch_name_fn)(const void *function);
typedef size_t (*torch_count_fn)(const void *function);
typedef uint64_t (*torch_thread_fn)(void);

/* at::ObserverContext, which the start passes to its end; PyTorch calls its destructor. */
struct torch_context {
    void (*const *functions)(struct torch_context *);
};

/* c10::IValue. */
struct torch_value {
    uint64_t payload;
    uint32_t tag;
};

/* c10::IValue::Tag. The tags after Int have moved by one in 2.11 (op_values.c). */
enum torch_tag {
    TORCH_NONE = 0,
    TORCH_TENSOR = 1,
    TORCH_DOUBLE = 3,
    TORCH_INT = 5,
    TORCH_LIST_OLD = 13,
    TORCH_LIST_NEW = 14,
    TORCH_BOOL_BEFORE_LIST = 4, /* the tag Bool is this much smaller than GenericList */
    TORCH_TAGS_MAX = 64,
};

/* c10::DeviceType of tensors with sizes but no data: the device "meta", also of FakeTensor. */
#define TORCH_DEVICE_META 14

#define TORCH_DIMENSIONS_MAX 64 /* limit of c10::TensorIterator */
#define TORCH_INLINE_MAX     5  /* up to this many sizes are stored in the tensor itself */

#endif
