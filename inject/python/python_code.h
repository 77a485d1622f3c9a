/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads code objects of the interpreter as raw memory: what distinguishes one from another, and the
 * file, function and line of an instruction. Everything is read through a view, which checks what
 * it has not seen before. Nothing here calls the interpreter.
 */
#ifndef GPUPROF_INJECT_PYTHON_CODE_H
#define GPUPROF_INJECT_PYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_read.h"
#include "python/python_facts.h"
#include "python/python_layout.h"

/*
 * What a walk in a signal handler has used: pages that were found readable, each checked once, or
 * again if two others replaced it; and [low, high), the thread's stack, which the handler knows to
 * be readable. The places are for reading ahead in the next walk.
 */
#define PYTHON_PAGES  64u /* power of two */
#define PYTHON_PLACES 96u
struct python_seen {
    uint64_t low, high;
    uint64_t pages[PYTHON_PAGES];
    uint64_t file, file_hash; /* hash of the last file name; 0: none yet */
    unsigned place_count;
    uint64_t places[PYTHON_PLACES];
};

/* How to read memory. By default each read is a checked copy, which is right for memory that
 * another thread may free at any moment. */
struct python_view {
    const struct python_layout *layout;
    /* The objects belong to the calling thread, and what was recently seen may be read in place: it
     * was reached through objects that stay alive until this thread resumes. */
    bool is_own;
    /* Their thread may be in the interpreter's loop, and not in C: looks for half-written frames.
     * After the frames of one loop, those of the loop around it must follow. */
    bool is_running;
    /*
     * Not NULL: the objects belong to the calling thread, but a signal has interrupted it anywhere.
     * Having seen an object before does not prove that it still exists: each page is checked before
     * it is read in place, and the types of all objects are checked. Only a pointer that the
     * interpreter has half written can mislead; it holds the GIL then, so nobody unmaps the page
     * meanwhile. Only the texts and the table of a living code object, which owns them, are read
     * like the thread's own.
     */
    struct python_seen *interrupted;
    /* Where checked reads are noted, for threads and frames, and for code; NULL: nowhere. */
    struct python_facts *frame_facts, *code_facts;
};

/* Returns `bytes` at `address`: in place if it was seen to be a `kind`, else a checked copy in
 * `copy`. NULL: unreadable. */
const uint8_t *python_view(const struct python_view *v, enum known_kind kind, uint64_t address,
                           uint8_t *copy, uint32_t bytes);

/* Returns the head of the code object at `code`, like python_view; NULL: it is not one. */
const uint8_t *python_code_head(const struct python_view *v, uint64_t code, uint8_t *copy);

/* Returns a number that distinguishes this code object from one that is later at its address. 0:
 * unreadable. `head` comes from python_code_head. */
uint64_t python_code_check(const struct python_view *v, const uint8_t *head);

#define PYTHON_FILE_BYTES_MAX     4096
#define PYTHON_FUNCTION_BYTES_MAX 1024

/* Texts are UTF-8, cut at the lengths above, without zeros and not terminated. */
struct python_place {
    uint32_t file_bytes;
    uint32_t function_bytes;
    uint32_t line; /* 0: not known */
    char file[PYTHON_FILE_BYTES_MAX];
    char function[PYTHON_FUNCTION_BYTES_MAX];
    char end; /* so that both fit as one text with a zero in between */
};

/* Reads the place. A text that cannot be read becomes "?". Uses checked reads; `head` as above. */
void python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                       uint64_t instruction, struct python_place *place);

#endif
