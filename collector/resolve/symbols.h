/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up names of the native frames of all stacks: each distinct (module, offset) once. A child
 * process with a time limit reads each module, so a damaged file costs no more than its names. A
 * file with another build id than the recorded one is not used. Memory: 40 bytes an address up to
 * SYMBOL_ADDRESSES_MAX, 24 a symbol up to SYMBOLS_MAX, and their texts (kernel_names.h), plus
 * libdw's for one module at a time.
 */
#ifndef GPUPROF_COLLECTOR_SYMBOLS_H
#define GPUPROF_COLLECTOR_SYMBOLS_H

#include "read/recording.h"
#include "resolve/stack_table.h"
#include "symbol/shown_frame.h"

#define SYMBOL_ADDRESSES_MAX (1u << 21)
#define SYMBOLS_MAX          (1u << 23)
#define SYMBOL_TEXT_MAX      16384 /* bytes of a name in a file, or of a path */
#define SYMBOL_SECONDS_MAX   60    /* of CPU time for one module */
#define SYMBOL_WAIT_SECONDS  120 /* wall-clock time for one module: a file system may not answer */

/* Time limits for debuginfod: for the first bytes (DEBUGINFOD_TIMEOUT overrides it), after which it
 * is not used any more; and for one module in all. */
#define DEBUGINFOD_SECONDS     30
#define DEBUGINFOD_SECONDS_MAX 1800

struct symbol {
    const struct kernel_name *function; /* NULL: not known */
    const struct kernel_name *file;     /* NULL: not known */
    uint32_t line;                      /* 0: not known */
    bool inlined;                       /* inlined into the next one */
};

struct symbols;

/*
 * Looks up the addresses of the table, which must stay, or only those of the frames in `wanted`, by
 * index of the frame (NULL: all). `folder` (NULL: none; SYMBOLS_OFF: no
 * lookup) holds binaries, a .build-id tree or a system's root, and is searched after the recorded
 * paths. Prints on stderr what was not found, once for each module of `rec`, unless `is_casual` and
 * without a folder: then the user did not ask for names. `is_casual` does not use debuginfod.
 * The caller frees the result.
 */
struct symbols *symbols_create(struct recording *rec, const struct stack_table *table,
                               const bool *wanted, const char *folder, bool is_casual);
void symbols_free(struct symbols *s);

/* The symbols at the frame's address (frame.h), innermost first; NULL, and *count 1: not known. */
const struct symbol *symbols_of(const struct symbols *s, uint32_t process, uint64_t frame,
                                uint32_t *count);

/* The frame as people see it; of several functions there, the one of the symbol `found` (NULL: not
 * known). `called` is the function that it called, or NULL. */
struct shown_frame symbols_shown(const struct symbols *s, uint32_t process, uint64_t frame,
                                 const struct symbol *found, const struct kernel_name *called);

#endif
