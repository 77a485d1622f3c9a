/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file and its debugging information, asked where addresses come from: by DWARF with the
 * inlined functions in their places, by its symbol table where there is no DWARF. For a process of
 * its own (symbols.c), because what a damaged file makes of memory and time is libdw's affair.
 */
#ifndef GPUPROF_COLLECTOR_ELF_SYMBOLS_H
#define GPUPROF_COLLECTOR_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_BYTES_MAX   (16ull << 30)
#define ELF_INLINE_DEPTH_MAX 64

enum elf_status {
    ELF_USABLE,
    ELF_MISSING,    /* no such file anywhere */
    ELF_OTHER,      /* it has another build id */
    ELF_UNREADABLE, /* it is no ELF file, too large, or damaged */
};

struct elf_request {
    const char *const *paths; /* where the file may be, the likeliest first */
    unsigned path_count;
    const uint8_t *build_id; /* NULL: not known, and not compared */
    size_t build_id_bytes;
    const char *debug_path; /* folders of debug files, as libdwfl has them: "a:b" */
};

struct elf_symbols;

/* An enum elf_status; *symbols is set, and owned by the caller, with ELF_USABLE only. */
int elf_symbols_open(struct elf_symbols **symbols, const struct elf_request *request);
void elf_symbols_free(struct elf_symbols *s);

/* Is there debugging information, its own or from a file beside it? */
bool elf_symbols_has_dwarf(const struct elf_symbols *s);

/* A function as the file names it (mangled), NULL: not known, like the file; line 0 = not known. */
typedef void elf_symbol_fn(void *context, const char *function, const char *file, unsigned line,
                           bool inlined);

/* Tells what is at `address`, innermost first: nothing if nothing is known. */
void elf_symbols_find(struct elf_symbols *s, uint64_t address, elf_symbol_fn *tell, void *context);

#endif
