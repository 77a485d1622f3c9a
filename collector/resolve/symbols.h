/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the native frames of all stacks: each distinct (module, offset) is looked up once, all
 * those of one module by a process of its own, which a timer ends, so that a damaged file costs no
 * more than its names. A file with another build id than the recorded one is not used. Memory: 24
 * bytes an address up to SYMBOL_ADDRESSES_MAX, 24 a symbol up to SYMBOLS_MAX, and their texts
 * (kernel_names.h); beside that what libdw takes for one module at a time.
 */
#ifndef GPUPROF_COLLECTOR_SYMBOLS_H
#define GPUPROF_COLLECTOR_SYMBOLS_H

#include "read/recording.h"
#include "resolve/stack_table.h"

#define SYMBOL_ADDRESSES_MAX (1u << 21)
#define SYMBOLS_MAX          (1u << 23)
#define SYMBOL_TEXT_MAX      16384 /* bytes of a name as a file has it, or of a path */
#define SYMBOL_SECONDS_MAX   60    /* of CPU time for one module */
#define SYMBOL_SECONDS_ALL   600   /* and for all, but for the last one looked up */
#define SYMBOL_WAIT_SECONDS  120   /* for one module, by the clock: files may not answer */

/*
 * debuginfod, if it is asked: for so long for the first bytes (DEBUGINFOD_TIMEOUT says otherwise),
 * for one module in all, and, in multiples of the first, in vain. Then it is not asked any more.
 */
#define DEBUGINFOD_SECONDS     30
#define DEBUGINFOD_SECONDS_MAX 1800
#define DEBUGINFOD_VAIN_MAX    4

struct symbol {
    const struct kernel_name *function; /* NULL: not known */
    const struct kernel_name *file;     /* NULL: not known */
    uint32_t line;                      /* 0: not known */
    bool inlined;                       /* into the one behind it */
};

struct symbols;

/*
 * Looks up every address of the table, which must stay. `folder` (NULL: none; SYMBOLS_OFF: nothing
 * is looked up) holds binaries, a
 * .build-id tree or a system's root, and is searched behind the recorded paths. What was not found
 * is said on stderr, of each module of `rec` once, unless `is_casual` and without a folder: then
 * nobody has asked for names. Casually debuginfod is not asked either. 0 or GPUPROF_NO_MEMORY;
 * symbols_free(*made) in both cases.
 */
int symbols_create(struct symbols **made, struct recording *rec, const struct stack_table *table,
                   const char *folder, bool is_casual);
void symbols_free(struct symbols *s);

/* What is at the frame's address (frame.h), innermost first; NULL: nothing is known. */
const struct symbol *symbols_of(const struct symbols *s, uint32_t process, uint64_t frame,
                                uint32_t *count);

#endif
