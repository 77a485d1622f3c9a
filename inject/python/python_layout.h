/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are in the interpreter's structures: byte offsets, by version. CPython 3.13 and 3.14
 * say most of it themselves, in the debug offsets that _PyRuntime begins with; for 3.11 and 3.12
 * there is a table, the same for all their releases.
 */
#ifndef GPUPROF_INJECT_PYTHON_LAYOUT_H
#define GPUPROF_INJECT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_NONE UINT32_MAX /* this version has no such thing */

/* The largest structure that is read as one. */
#define LAYOUT_PART_BYTES_MAX 256u

struct python_layout {
    uint32_t runtime_finalizing;
    uint32_t runtime_interpreters;
    uint32_t interpreter_threads;
    uint32_t thread_next;
    uint32_t thread_frame; /* of the innermost frame, or of a cframe that has it */
    uint32_t cframe_frame; /* or LAYOUT_NONE */
    uint32_t cframe_previous;
    uint32_t cframe_bytes;
    uint32_t frame_code;
    uint32_t frame_previous;
    uint32_t frame_instruction;
    uint32_t frame_owner;
    uint32_t frame_is_entry; /* or LAYOUT_NONE: a frame of owner_c or above is behind an entry */
    uint32_t code_file;
    uint32_t code_function;
    uint32_t code_lines;
    uint32_t code_first_line;
    uint32_t code_first_traceable;
    uint32_t code_version; /* a number that no other code object has; or LAYOUT_NONE */
    uint32_t code_instructions;
    uint32_t size; /* of objects that have one: code, bytes */
    uint32_t text_length;
    uint32_t text_state;
    uint32_t text_ascii; /* where the characters are, if they are ASCII */
    uint32_t text_wide;  /* and if not */
    uint32_t bytes_data;
    uint32_t thread_bytes; /* how much of each is read */
    uint32_t frame_bytes;
    uint32_t code_bytes;
    uint32_t thread_native;      /* the kernel's number of it; in no part that is read as one */
    uint32_t thread_interpreter; /* likewise */
    uint32_t runtime_gil;        /* the lock itself; or LAYOUT_NONE: each interpreter has one */
    uint32_t interpreter_gil;    /* then: its address */
    uint8_t owner_c; /* from this owner on it is no frame of Python's, but stands for C */
    /* Addresses of the types that the objects must have. */
    uint64_t code_type;
    uint64_t text_type;
    uint64_t bytes_type;
};

#define LAYOUT_TYPE 8u /* of the type in every object */

/*
 * `version` is Py_Version; `runtime` the `runtime_bytes` of _PyRuntime. NULL, or why there is none.
 * The types are the caller's to fill in.
 */
const char *python_layout_find(struct python_layout *l, uint32_t version, const uint8_t *runtime,
                               size_t runtime_bytes);

/* Does all that it says lie within what is read as one? What python_layout_find found does. */
bool python_layout_is_sound(const struct python_layout *l);

/* A word of a structure. */
static inline uint64_t python_word(const uint8_t *structure, uint32_t offset)
{
    uint64_t word;
    __builtin_memcpy(&word, structure + offset, sizeof word);
    return word;
}

static inline uint32_t python_half(const uint8_t *structure, uint32_t offset)
{
    uint32_t half;
    __builtin_memcpy(&half, structure + offset, sizeof half);
    return half;
}

#endif
