/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Python's C interface that we call, as it has been since 3.7, found in the process.
 * Only for who has the GIL; but is_initialized and add_pending_call, by any thread.
 */
#ifndef GPUPROF_INJECT_PYTHON_API_H
#define GPUPROF_INJECT_PYTHON_API_H

#include <stdbool.h>
#include <stddef.h>

struct python_object;
typedef struct python_object *object_ptr;

#define METHOD_VARARGS  0x01 /* arguments are a tuple, as the second parameter */
#define METHOD_FASTCALL 0x80 /* arguments are a C array */

/* It must stay where it is for as long as its function object may live. */
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
    object_ptr (*modules)(void); /* sys.modules; a view, as what is got from a dict is */
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
    long long (*value)(object_ptr number); /* -1 with an error if it is none */
    int (*list_append)(object_ptr list, object_ptr item);
    object_ptr (*tuple_item)(object_ptr tuple, ptrdiff_t index); /* a view */
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

/*
 * What ends our own code may be the program's: a KeyboardInterrupt, which its signal handler raises
 * wherever Python is. That goes on to the program; an error of ours does not.
 */
static inline bool python_is_interrupted(const struct python_api *api)
{
    return api->error() && !api->error_is(*api->exception);
}

/* NULL: there is no Python that exports it, or not yet. By the writer. */
const struct python_api *python_api_find(void);

#endif
