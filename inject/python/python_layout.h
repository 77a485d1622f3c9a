/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are in the interpreter's structures: byte offsets, by version. From 3.13 on CPython
 * says most of it itself, in the debug offsets that _PyRuntime begins with, free-threaded builds
 * too; for 3.8 to 3.12 there is a table, the same for all their releases.
 */
#ifndef GPUPROF_INJECT_PYTHON_LAYOUT_H
#define GPUPROF_INJECT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_GIL_LOCKED 16 /* where the lock says whether it is taken, without gil_further */
#define LAYOUT_NONE       UINT32_MAX /* this version has no such thing */

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
    uint32_t frame_instruction; /* its address; or LAYOUT_NONE: frame_last says which */
    uint32_t frame_last;        /* up to 3.10: number of the last one, -1 before the first */
    uint32_t frame_owner;       /* or LAYOUT_NONE: each is Python's, and has a loop of its own */
    uint32_t frame_is_entry;    /* or LAYOUT_NONE: a frame of owner_c or above is behind an entry */
    uint32_t frame_runs;        /* up to 3.10: a byte that is runs_value while its loop runs it */
    uint32_t frame_copy;        /* which of the code's copies it runs, if there are any */
    uint32_t code_file;
    uint32_t code_function;
    uint32_t code_lines;
    uint32_t code_first_line;
    uint32_t code_first_traceable; /* or LAYOUT_NONE: a frame that is there has begun */
    uint32_t code_flags;           /* likewise; else generators are told by their frames' owner */
    uint32_t code_version;         /* a number that no other code object has; or LAYOUT_NONE */
    uint32_t code_instructions;    /* of the object itself; up to 3.10 where they are not, but 0 */
    uint32_t code_bytecode;        /* up to 3.10: the bytes that has them; or LAYOUT_NONE */
    uint32_t code_copies;          /* array of them, one for a thread; or LAYOUT_NONE */
    uint32_t size;                 /* of objects that have one: code, bytes */
    uint32_t text_length;
    uint32_t text_state;
    uint32_t text_ascii; /* where the characters are, if they are ASCII */
    uint32_t text_wide;  /* and if not */
    uint32_t bytes_data;
    uint32_t type;         /* of each object, behind the counts of references */
    uint32_t type_flags;   /* of a type */
    uint32_t thread_bytes; /* how much of each is read */
    uint32_t frame_bytes;
    uint32_t code_bytes;
    uint32_t thread_native;      /* the kernel's number of it, or pthread_self's: native_is_pthread;
                                    in no part that is read as one */
    uint32_t thread_interpreter; /* likewise */
    uint32_t runtime_gil;        /* the lock itself; or LAYOUT_NONE: each interpreter has one */
    uint32_t interpreter_gil;    /* then: its address; or LAYOUT_NONE: it is not known */
    uint32_t gil_further;        /* bytes before all else of it, in free-threaded builds */
    uint8_t owner_c; /* from this owner on it is no frame of Python's, but stands for C */
    bool native_is_pthread;
    bool has_stops;     /* of all its threads together: a free-threaded build */
    uint8_t last_bytes; /* how much of the code one of frame_last stands for */
    uint8_t runs_value;
    uint8_t text_kind; /* lowest bit of it in the state */
    uint8_t lines;     /* enum python_lines */
    /* Addresses of the types that the objects must have. */
    uint64_t code_type;
    uint64_t text_type;
    uint64_t bytes_type;
    uint64_t frame_type; /* 0: a frame is no object */
};

/* How a code object says where its lines are. */
enum python_lines { LINES_VARINTS, LINES_PAIRS, LINES_PAIRS_FROM_END };

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
