/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up addresses in one ELF file and its debugging information: with inlined functions by
 * DWARF, else by the symbol table. Runs in a separate process (symbols.c), because libdw's memory
 * and time on damaged files are not bounded.
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
    ELF_MISSING,    /* no such file */
    ELF_OTHER,      /* the build id differs */
    ELF_UNREADABLE, /* not an ELF file, too large, or damaged */
};

struct elf_request {
    const char *const *paths; /* where the file may be, likeliest first */
    unsigned path_count;
    const uint8_t *build_id; /* NULL: unknown, not compared */
    size_t build_id_bytes;
    const char *debug_path; /* folders of debug files in libdwfl's form: "a:b" */
};

struct elf_symbols;

/* Opens the file, for as long as the process lives. Returns an enum elf_status; *has_dwarf: the
 * file, or one beside it, has debugging information. */
int elf_symbols_open(struct elf_symbols **symbols, const struct elf_request *request,
                     bool *has_dwarf);

/* Receives a function at an address as the file names it (mangled). NULL, or line 0: unknown. */
typedef void elf_symbol_fn(void *context, uint32_t address, const char *function, const char *file,
                           unsigned line, bool inlined);

/* Once: calls `notify` for each function at each of the rising addresses, in their order, innermost
 * first; not at all if unknown. */
void elf_symbols_find(struct elf_symbols *s, const uint64_t *addresses, uint32_t count,
                      elf_symbol_fn *notify, void *context);

#endif
