/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw's own lookups walk all functions of a compilation unit, or all symbols of a file, each
 * time. So this reads symbols, units and functions once, and gives each to the addresses in it.
 */
#include "symbol/elf_symbols.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"

#define NAMESPACE_DEPTH 32
#define UNSIZED_BYTES   4096 /* of a symbol of unknown size, if no other one follows */

enum { UNIT, FUNCTION };

/* An address, and what contains it: the nearest symbol, and the innermost unit and function. */
struct lookup {
    uint64_t address;
    uint64_t symbol_begin;
    const char *symbol; /* NULL: none */
    unsigned rank;      /* of several symbols with one begin, the highest counts */
    struct {
        uint64_t begin, end;
        Dwarf_Die die; /* no `addr`: none */
    } in[2];
};

struct elf_symbols {
    Dwfl *dwfl;
    Dwfl_Module *module;
    char *debug_path; /* owned; libdwfl stores this pointer's address */
    Dwfl_Callbacks callbacks;
    Dwarf_Addr bias;     /* of DWARF's addresses */
    struct lookup *list; /* owned; sorted by address */
    uint32_t count;
};

/* Returns the first lookup of that address or a later one. */
static struct lookup *from_address(const struct elf_symbols *s, uint64_t address)
{
    return s->list + (address ? ARRAY_UP_TO(s->list, s->count, address, address - 1) : 0);
}

/* Gives a unit or function to all addresses in its ranges. Returns whether there are any. */
static bool take_ranges(struct elf_symbols *s, Dwarf_Die *die, unsigned kind)
{
    Dwarf_Addr base, begin, end;
    ptrdiff_t at = 0;
    bool has_any = false;
    while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0) {
        struct lookup *l = from_address(s, begin + s->bias);
        /* the linker sets dropped functions to 0 */
        for (; begin && l < s->list + s->count && l->address - s->bias < end; l++) {
            has_any = true;
            if (begin > l->in[kind].begin ||
                (begin == l->in[kind].begin && end <= l->in[kind].end)) {
                l->in[kind].begin = begin;
                l->in[kind].end = end;
                l->in[kind].die = *die;
            }
        }
    }
    return has_any;
}

/* Reads functions with code below `parent`, also in namespaces and classes. */
static void read_functions(struct elf_symbols *s, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > NAMESPACE_DEPTH || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram: take_ranges(s, &die, FUNCTION); break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type: read_functions(s, &die, depth + 1); break;
        default: break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

static void read_units(struct elf_symbols *s)
{
    Dwarf_Addr bias;
    for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(s->module, unit, &bias));) {
        Dwarf_Die full = *unit, split = {0};
        uint8_t type = 0;
        if (!take_ranges(s, unit, UNIT))
            continue;
        /* With -gsplit-dwarf, functions are in a .dwo file, if it is still where the compiler
         * wrote it. */
        if (dwarf_cu_info(unit->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
            type == DW_UT_skeleton && split.addr)
            full = split;
        read_functions(s, &full, 0);
    }
}

static void read_symbols(struct elf_symbols *s)
{
    int count = dwfl_module_getsymtab(s->module);
    for (int i = 0; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr begin;
        const char *name = dwfl_module_getsym_info(s->module, i, &symbol, &begin, NULL, NULL, NULL);
        unsigned type = GELF_ST_TYPE(symbol.st_info);
        if (!name || !*name || symbol.st_shndx == SHN_UNDEF ||
            (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        uint64_t bytes = symbol.st_size ? symbol.st_size : UNSIZED_BYTES;
        unsigned rank = 2 * !!symbol.st_size + (GELF_ST_BIND(symbol.st_info) != STB_LOCAL);
        struct lookup *l = from_address(s, begin);
        for (; l < s->list + s->count && l->address - begin < bytes; l++)
            if (!l->symbol || (ORDER(begin, l->symbol_begin) ?: ORDER(rank, l->rank)
                                                           ?: strcmp(l->symbol, name)) > 0) {
                l->symbol = name;
                l->symbol_begin = begin;
                l->rank = rank;
            }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Opens a regular file, or returns -1. A recording names it: opening has no side effects. */
static int open_regular(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
                    (uint64_t)status.st_size > ELF_FILE_BYTES_MAX)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Returns ELF_USABLE, ELF_OTHER or ELF_UNREADABLE. */
static int check_file(int fd, const struct elf_request *request)
{
    const void *build_id;
    int status = ELF_UNREADABLE;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        ssize_t bytes = dwelf_elf_gnu_build_id(elf, &build_id);
        bool same = !request->build_id || (bytes == (ssize_t)request->build_id_bytes &&
                                           memcmp(build_id, request->build_id, (size_t)bytes) == 0);
        status = same ? ELF_USABLE : ELF_OTHER;
    }
    elf_end(elf);
    return status;
}

/* Uses the first file that matches the recorded one. */
static int report_file(struct elf_symbols *s, const struct elf_request *request)
{
    int status = ELF_MISSING;
    for (unsigned i = 0; i < request->path_count; i++) {
        int fd = open_regular(request->paths[i]);
        if (fd < 0)
            continue;
        int found = check_file(fd, request);
        if (found == ELF_USABLE &&
            (s->module = dwfl_report_elf(s->dwfl, "", request->paths[i], fd, 0, true)))
            return ELF_USABLE; /* libdwfl closes the file */
        close(fd);
        if (found != ELF_USABLE && status != ELF_OTHER)
            status = found;
    }
    return status;
}

/* Searches by build id: libdwfl looks into debug folders and asks debuginfod. */
static int report_build_id(struct elf_symbols *s, const struct elf_request *request)
{
    GElf_Addr bias;
    if (!request->build_id || !getenv("DEBUGINFOD_URLS"))
        return ELF_MISSING;
    s->module = dwfl_report_module(s->dwfl, "module", 0, UINT64_MAX >> 16);
    if (!s->module ||
        dwfl_module_report_build_id(s->module, request->build_id, request->build_id_bytes, 0) != 0)
        return ELF_MISSING;
    return dwfl_module_getelf(s->module, &bias) ? ELF_USABLE : ELF_MISSING;
}

int elf_symbols_open(struct elf_symbols **symbols, const struct elf_request *request,
                     bool *has_dwarf)
{
    struct elf_symbols *s = *symbols = memory_new(1, sizeof *s);
    elf_version(EV_CURRENT);
    s->debug_path = memory_text(request->debug_path);
    s->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                                    .find_debuginfo = dwfl_standard_find_debuginfo,
                                    .debuginfo_path = &s->debug_path};
    s->dwfl = dwfl_begin(&s->callbacks);
    int status = s->dwfl ? report_file(s, request) : ELF_UNREADABLE;
    if (s->dwfl && status != ELF_USABLE && report_build_id(s, request) == ELF_USABLE)
        status = ELF_USABLE;
    if (status == ELF_USABLE && dwfl_report_end(s->dwfl, NULL, NULL) != 0)
        status = ELF_UNREADABLE;
    *has_dwarf = status == ELF_USABLE && dwfl_module_getdwarf(s->module, &s->bias);
    return status;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Fills in the function and those inlined at the address, outermost first; returns the count. */
static unsigned inlined_chain(const Dwarf_Die *function, uint64_t address, Dwarf_Die *chain)
{
    unsigned count = 1;
    Dwarf_Die at = *function;
    chain[0] = at;
    for (unsigned depth = 0; depth < 2 * ELF_INLINE_DEPTH_MAX; depth++) {
        Dwarf_Die child;
        bool found = false;
        if (dwarf_child(&at, &child) != 0)
            break;
        do {
            int tag = dwarf_tag(&child);
            bool scope = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
                         tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
            found = scope && dwarf_haspc(&child, address) > 0;
        } while (!found && dwarf_siblingof(&child, &child) == 0);
        if (!found || count == ELF_INLINE_DEPTH_MAX)
            break;
        at = child;
        if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
            chain[count++] = child;
    }
    return count;
}

/* `symbol` (or NULL): only the symbol table has the linkage name of a lambda. */
static const char *die_name(Dwarf_Die *die, const char *symbol)
{
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        return dwarf_formstring(&attribute);
    const char *name = dwarf_diename(die);
    return symbol && (!name || strncmp(symbol, "_Z", 2) == 0) ? symbol : name;
}

static unsigned die_number(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0)
        return 0;
    return value <= INT32_MAX ? (unsigned)value : 0;
}

/* Returns the file of the inlined call. Files count from 0 since DWARF 5, from 1 before. */
static const char *call_file(Dwarf_Die *inlined)
{
    Dwarf_Die unit;
    Dwarf_Half version = 0;
    Dwarf_Files *files;
    size_t count;
    unsigned number = die_number(inlined, DW_AT_call_file);
    dwarf_cu_info(inlined->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
    bool has_file = number || (version >= 5 && dwarf_hasattr(inlined, DW_AT_call_file));
    if (!has_file || !dwarf_diecu(inlined, &unit, NULL, NULL) ||
        dwarf_getsrcfiles(&unit, &files, &count) != 0 || number >= count)
        return NULL;
    return dwarf_filesrc(files, number, NULL, NULL);
}

static void report(const struct elf_symbols *s, struct lookup *l, elf_symbol_fn *notify,
                   void *context)
{
    Dwarf_Die chain[ELF_INLINE_DEPTH_MAX], *unit = &l->in[UNIT].die;
    uint32_t index = (uint32_t)(l - s->list);
    uint64_t inside = l->address - s->bias;
    int number = 0;
    Dwarf_Line *line = unit->addr ? dwarf_getsrc_die(unit, inside) : NULL;
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (line && dwarf_lineno(line, &number) != 0)
        number = 0;
    unsigned count =
        l->in[FUNCTION].die.addr ? inlined_chain(&l->in[FUNCTION].die, inside, chain) : 0;
    if (!count && (line || l->symbol))
        notify(context, index, l->symbol, file, (unsigned)number, false);
    for (; count > 0; count--) {
        Dwarf_Die *die = &chain[count - 1];
        const char *name = die_name(die, count > 1 ? NULL : l->symbol);
        notify(context, index, name, file, number > 0 ? (unsigned)number : 0, count > 1);
        file = call_file(die);
        number = (int)die_number(die, DW_AT_call_line);
    }
}

void elf_symbols_find(struct elf_symbols *s, const uint64_t *addresses, uint32_t count,
                      elf_symbol_fn *notify, void *context)
{
    s->list = memory_new(count, sizeof *s->list);
    s->count = count;
    for (uint32_t i = 0; i < count; i++)
        s->list[i].address = addresses[i];
    read_symbols(s);
    read_units(s);
    for (uint32_t i = 0; i < count; i++)
        report(s, &s->list[i], notify, context);
}
