/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets in the interpreter's structures, in bytes, by version. Since 3.13 CPython gives most of
 * them in the debug offsets at the start of _PyRuntime, also in free-threaded builds. For 3.8 to
 * 3.12 there is a table, which is the same for all releases of a version.
 */
#ifndef GPUPROF_INJECT_PYTHON_LAYOUT_H
#define GPUPROF_INJECT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* offset in the lock that says whether it is taken, without gil_further */
#define LAYOUT_GIL_LOCKED 16
#define LAYOUT_NONE       UINT32_MAX /* this version does not have the field */

/* The largest structure that is read at once. */
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
    uint32_t frame_instruction; /* of the instruction's address; or LAYOUT_NONE: see frame_last */
    /* up to 3.10: number of the last instruction, -1 before the first */
    uint32_t frame_last;
    uint32_t frame_owner; /* or LAYOUT_NONE: every frame is Python's, and has its own loop */
    /* or LAYOUT_NONE: a frame of owner_c or above follows an entry frame */
    uint32_t frame_is_entry;
    /* up to 3.10: a byte that is runs_value while the loop runs the frame */
    uint32_t frame_runs;
    uint32_t frame_copy; /* which copy of the code it runs, if there are copies */
    uint32_t code_file;
    uint32_t code_function;
    uint32_t code_lines;
    uint32_t code_first_line;
    uint32_t code_first_traceable; /* or LAYOUT_NONE: every frame found has started */
    uint32_t code_flags;           /* or LAYOUT_NONE: the frame's owner identifies generators */
    uint32_t code_version;         /* a number unique to the code object; or LAYOUT_NONE */
    /* in the object itself; up to 3.10 they are elsewhere, and this is 0 */
    uint32_t code_instructions;
    uint32_t code_bytecode; /* up to 3.10: the bytes object that has them; or LAYOUT_NONE */
    uint32_t code_copies;   /* array of copies, one per thread; or LAYOUT_NONE */
    uint32_t size;          /* of sized objects: code, bytes */
    uint32_t text_length;
    uint32_t text_state;
    uint32_t text_ascii; /* offset of the characters if they are ASCII */
    uint32_t text_wide;  /* and if they are not */
    uint32_t bytes_data;
    uint32_t type;         /* of every object, after the reference counts */
    uint32_t type_flags;   /* in a type object */
    uint32_t thread_bytes; /* how many bytes of each are read */
    uint32_t frame_bytes;
    uint32_t code_bytes;
    uint32_t thread_native; /* the kernel's thread id, or pthread_self's value: native_is_pthread;
                               not in the part that is read at once */
    uint32_t thread_interpreter; /* likewise */
    uint32_t runtime_gil;        /* the lock itself; or LAYOUT_NONE: each interpreter has one */
    uint32_t interpreter_gil;    /* then the lock's address; or LAYOUT_NONE: not known */
    uint32_t gil_further;        /* bytes before the rest of the lock, in free-threaded builds */
    uint8_t owner_c; /* frames with this owner or above are not Python's, but stand for C */
    bool native_is_pthread;
    bool has_stops;     /* stops all threads together: a free-threaded build */
    uint8_t last_bytes; /* bytes of code per unit of frame_last */
    uint8_t runs_value;
    uint8_t text_kind; /* lowest bit of the kind in the state */
    uint8_t lines;     /* enum python_lines */
    /* Addresses of the types that objects must have. */
    uint64_t code_type;
    uint64_t text_type;
    uint64_t bytes_type;
    uint64_t frame_type; /* 0: frames are not objects */
};

/* How a code object stores its line numbers. */
enum python_lines { LINES_VARINTS, LINES_PAIRS, LINES_PAIRS_FROM_END };

/* `version` is Py_Version; `runtime` points to the `runtime_bytes` of _PyRuntime. Returns NULL, or
 * the reason for failure. The caller fills in the types. */
const char *python_layout_find(struct python_layout *l, uint32_t version, const uint8_t *runtime,
                               size_t runtime_bytes);

/*
 * Are all offsets within the parts that are read at once? True for results of python_layout_find.
 */
bool python_layout_is_sound(const struct python_layout *l);

/* Reads a word of a structure. */
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
