/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code object of the interpreter's, read as raw memory: what tells it from another one, and what
 * file, function and line an instruction of its belongs to. Everything is read by way of a view,
 * which checks what it has not seen before. Nothing here calls the interpreter.
 */
#ifndef GPUPROF_INJECT_PYTHON_CODE_H
#define GPUPROF_INJECT_PYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_read.h"
#include "python/python_facts.h"
#include "python/python_layout.h"

/*
 * What a walk from a signal handler looked at: pages that were found readable, of which each is
 * asked for once, or again when two others had its places; and [low, high), which the handler has
 * found readable before, as its thread's own stack. Places are for the next walk to read ahead.
 */
#define PYTHON_PAGES  64u /* power of two */
#define PYTHON_PLACES 96u
struct python_seen {
    uint64_t low, high;
    uint64_t pages[PYTHON_PAGES];
    uint64_t file, file_hash; /* the last file's name; 0: none yet */
    unsigned place_count;
    uint64_t places[PYTHON_PLACES];
};

/*
 * How memory is looked at. By default each read is a checked copy, right for what another thread
 * may free at any moment.
 */
struct python_view {
    const struct python_layout *layout;
    /*
     * The objects are the calling thread's own, and what was seen lately may be read as it is: it
     * was led to by what stays alive until this thread goes on.
     */
    bool is_own;
    /*
     * Their thread may be in the interpreter's loop, not in C: what is only half written is looked
     * for. Where the frames of a loop end those of the one around it must go on.
     */
    bool is_running;
    /*
     * Not NULL: the objects are the calling thread's own, but a signal has interrupted it anywhere.
     * That something was seen before does not prove that it is there: each page is asked for before
     * it is read in place, and the types of all objects are looked at. A pointer that misleads is
     * one that the interpreter has half written; it holds the GIL then, so that nobody unmaps the
     * page meanwhile. Only the texts and the table of a code object that lives, which keeps them,
     * are read like the thread's own.
     */
    struct python_seen *interrupted;
    /* Where what was read is kept, with checked reads; or NULL: of threads and frames, of code. */
    struct python_facts *frame_facts, *code_facts;
};

/*
 * `bytes` at `address`: in place if it was seen to be a `kind`, else a checked copy in `copy`. NULL
 * if it cannot be read.
 */
const uint8_t *python_view(const struct python_view *v, enum sight kind, uint64_t address,
                           uint8_t *copy, uint32_t bytes);

/* The head of the code object at `code`, like python_view; NULL if it is none. */
const uint8_t *python_code_head(const struct python_view *v, uint64_t code, uint8_t *copy);

/*
 * What tells this code object from one that may lie at its address later. 0: not readable. `head`
 * is python_code_head's.
 */
uint64_t python_code_check(const struct python_view *v, const uint8_t *head);

#define PYTHON_FILE_BYTES_MAX     4096
#define PYTHON_FUNCTION_BYTES_MAX 1024

/* Texts are UTF-8, cut at the lengths above, without zeros and not terminated. */
struct python_place {
    uint32_t file_bytes;
    uint32_t function_bytes;
    uint32_t line; /* 0 = not known */
    char file[PYTHON_FILE_BYTES_MAX];
    char function[PYTHON_FUNCTION_BYTES_MAX];
    char end; /* so that both have room as one text, with a zero between */
};

/* A text that cannot be read is "?". By checked reads; `head` as above. */
void python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                       uint64_t instruction, struct python_place *place);

#endif
