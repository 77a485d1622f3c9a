/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Python's C API that we call, unchanged since 3.7, found in the process. The caller
 * must hold the GIL, except for is_initialized and add_pending_call, which any thread may call. */
#ifndef GPUPROF_INJECT_PYTHON_API_H
#define GPUPROF_INJECT_PYTHON_API_H

#include <stdbool.h>
#include <stddef.h>

struct python_object;
typedef struct python_object *object_ptr;

#define METHOD_VARARGS  0x01 /* arguments are a tuple in the second parameter */
#define METHOD_FASTCALL 0x80 /* arguments are a C array */

/* Must stay in place while its function object may exist. */
struct python_method {
    const char *name;
    union {
        object_ptr (*fast)(object_ptr self, const object_ptr *args, ptrdiff_t count);
        object_ptr (*tuple)(object_ptr self, object_ptr args);
    } function;
    int flags;
    const char *text;
};

struct python_api {
    int (*is_initialized)(void);
    int (*add_pending_call)(int (*function)(void *), void *data);
    object_ptr (*modules)(void); /* sys.modules; borrowed, like what is read from a dict */
    object_ptr (*module_dict)(object_ptr module);
    object_ptr (*import)(const char *name);
    object_ptr (*new_dict)(void);
    int (*dict_set)(object_ptr dict, const char *key, object_ptr value);
    object_ptr (*dict_get)(object_ptr dict, const char *key);
    object_ptr (*new_function)(struct python_method *method, object_ptr self, object_ptr module);
    object_ptr (*run)(const char *text, int start, object_ptr globals, object_ptr locals,
                      void *flags);
    object_ptr (*dict_find)(object_ptr dict, object_ptr key);
    object_ptr (*number)(const void *address);
    void *(*address)(object_ptr number);
    long long (*value)(object_ptr number); /* -1 with an error if it is not a number */
    int (*list_append)(object_ptr list, object_ptr item);
    object_ptr (*tuple_item)(object_ptr tuple, ptrdiff_t index); /* borrowed */
    object_ptr (*call)(object_ptr function, ...);
    const char *(*utf8)(object_ptr text);
    object_ptr (*error)(void);
    int (*error_is)(object_ptr type);
    void (*clear_error)(void);
    object_ptr *exception;
    void (*keep)(object_ptr object);
    void (*release)(object_ptr object);
    object_ptr none;
};

/* Did an exception of the program end our code? It may be a KeyboardInterrupt, which the signal
 * handler raises anywhere in Python. That is passed on to the program; errors of ours are not. */
static inline bool python_is_interrupted(const struct python_api *api)
{
    return api->error() && !api->error_is(*api->exception);
}

/* Returns NULL if no Python exports it, or not yet. Called by the writer. */
const struct python_api *python_api_find(void);

#endif
