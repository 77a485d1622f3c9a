/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw's own lookups walk all functions of a compilation unit, or all symbols of a file, each
 * time. So this sorts the units, the functions of each unit that is needed, and the symbols once,
 * and searches them.
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

#define OVERLAP_MAX     16 /* spans searched before the nearest one */
#define NAMESPACE_DEPTH 32

struct span {
    uint64_t begin;
    uint64_t end;
    uint64_t reach; /* largest end of the spans up to here */
    uint32_t unit;
    Dwarf_Die die;
};

struct spans {
    struct span *list; /* owned; sorted by begin */
    uint32_t count;
};

struct unit {
    Dwarf_Die die;  /* with the line table */
    Dwarf_Die full; /* with the functions: -gsplit-dwarf puts them into another file */
    int version;    /* of DWARF */
    struct spans functions;
    bool read;
};

struct elf_function {
    uint64_t begin;
    uint64_t end; /* == begin: unknown size */
    const char *name;
    bool global;
};

struct elf_symbols {
    Dwfl *dwfl;
    Dwfl_Module *module;
    char *debug_path; /* owned; libdwfl stores this pointer's address */
    Dwfl_Callbacks callbacks;
    uint64_t dwarf_bias;
    struct unit *units; /* owned */
    uint32_t unit_count;
    struct spans unit_spans;
    struct elf_function *functions; /* owned; sorted by begin */
    uint32_t function_count;
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return ORDER(a->begin, b->begin) ?: ORDER(b->end, a->end); /* outer spans first */
}

static void spans_sort(struct spans *s)
{
    uint64_t reach = 0;
    ARRAY_SORT(s->list, s->count, compare_spans);
    for (uint32_t i = 0; i < s->count; i++) {
        reach = s->list[i].end > reach ? s->list[i].end : reach;
        s->list[i].reach = reach;
    }
}

/* Returns the innermost span that contains the address, or NULL. */
static const struct span *spans_find(const struct spans *s, uint64_t address)
{
    uint32_t behind = ARRAY_UP_TO(s->list, s->count, begin, address);
    for (uint32_t i = 0; i < OVERLAP_MAX && behind > i; i++) {
        const struct span *span = &s->list[behind - 1 - i];
        if (address < span->end)
            return span;
        if (span->reach <= address)
            break;
    }
    return NULL;
}

/* Adds all address ranges of a unit or function. */
static void spans_add(struct spans *s, Dwarf_Die *die, uint32_t unit)
{
    Dwarf_Addr base, begin, end;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0) {
        struct span span = {.begin = begin, .end = end, .unit = unit, .die = *die};
        if (begin && begin < end) /* the linker sets dropped functions to 0 */
            (void)ARRAY_PUSH(s->list, s->count, &span);
    }
}

/* Reads the .dwo file of a skeleton unit if it is still where the compiler wrote it. */
static struct unit make_unit(Dwarf_Die *die)
{
    struct unit unit = {.die = *die, .full = *die};
    Dwarf_Half version = 0;
    Dwarf_Die split = {0};
    uint8_t type = 0;
    if (dwarf_cu_info(die->cu, &version, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && split.addr)
        unit.full = split;
    unit.version = version;
    return unit;
}

static void read_units(struct elf_symbols *s)
{
    Dwarf_Addr bias = 0;
    if (!dwfl_module_getdwarf(s->module, &bias))
        return;
    s->dwarf_bias = bias;
    for (Dwarf_Die *die = NULL; (die = dwfl_module_nextcu(s->module, die, &bias));) {
        struct unit unit = make_unit(die);
        if (ARRAY_PUSH(s->units, s->unit_count, &unit) < 0)
            break;
        spans_add(&s->unit_spans, die, s->unit_count - 1);
    }
    spans_sort(&s->unit_spans);
}

/* Reads functions with code below `parent`, also in namespaces and classes. */
static void read_functions(struct unit *unit, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > NAMESPACE_DEPTH || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram: spans_add(&unit->functions, &die, 0); break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type: read_functions(unit, &die, depth + 1); break;
        default: break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

static int compare_functions(const void *left, const void *right)
{
    const struct elf_function *a = left, *b = right;
    /* searching finds the last of equal ones */
    return ORDER(a->begin, b->begin) ?: (a->end > a->begin) - (b->end > b->begin) ?:
           a->global - b->global ?: strcmp(b->name, a->name);
}

static void read_symbols(struct elf_symbols *s)
{
    int count = dwfl_module_getsymtab(s->module);
    for (int i = 0; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name =
            dwfl_module_getsym_info(s->module, i, &symbol, &address, NULL, NULL, NULL);
        unsigned type = GELF_ST_TYPE(symbol.st_info);
        if (!name || !*name || symbol.st_shndx == SHN_UNDEF ||
            (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        struct elf_function f = {.begin = address,
                                 .end = address + symbol.st_size,
                                 .name = name,
                                 .global = GELF_ST_BIND(symbol.st_info) != STB_LOCAL};
        (void)ARRAY_PUSH(s->functions, s->function_count, &f);
    }
    ARRAY_SORT(s->functions, s->function_count, compare_functions);
}

/* Returns the function's name from the symbol table, or NULL. */
static const char *symbol_name(const struct elf_symbols *s, uint64_t address)
{
    uint32_t behind = ARRAY_UP_TO(s->functions, s->function_count, begin, address);
    for (uint32_t i = 0; i < OVERLAP_MAX && behind > i; i++) {
        const struct elf_function *f = &s->functions[behind - 1 - i];
        if (address < f->end || f->begin == f->end)
            return f->name;
    }
    return NULL;
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

int elf_symbols_open(struct elf_symbols **symbols, const struct elf_request *request)
{
    struct elf_symbols *s = calloc(1, sizeof *s);
    if (!s)
        return ELF_UNREADABLE;
    elf_version(EV_CURRENT);
    s->debug_path = strdup(request->debug_path);
    s->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                                    .find_debuginfo = dwfl_standard_find_debuginfo,
                                    .debuginfo_path = &s->debug_path};
    s->dwfl = s->debug_path ? dwfl_begin(&s->callbacks) : NULL;
    int status = s->dwfl ? report_file(s, request) : ELF_UNREADABLE;
    if (s->dwfl && status != ELF_USABLE) {
        int found = report_build_id(s, request);
        status = found == ELF_USABLE ? found : status;
    }
    if (status == ELF_USABLE && dwfl_report_end(s->dwfl, NULL, NULL) == 0) {
        read_units(s);
        read_symbols(s);
        *symbols = s;
        return ELF_USABLE;
    }
    elf_symbols_free(s);
    return status == ELF_USABLE ? ELF_UNREADABLE : status;
}

void elf_symbols_free(struct elf_symbols *s)
{
    for (uint32_t i = 0; i < s->unit_count; i++)
        free(s->units[i].functions.list);
    free(s->units);
    free(s->unit_spans.list);
    free(s->functions);
    if (s->dwfl)
        dwfl_end(s->dwfl);
    free(s->debug_path);
    free(s);
}

bool elf_symbols_has_dwarf(const struct elf_symbols *s)
{
    return s->unit_count > 0;
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
static const char *call_file(struct unit *unit, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t count;
    unsigned number = die_number(inlined, DW_AT_call_file);
    bool has_file = number || (unit->version >= 5 && dwarf_hasattr(inlined, DW_AT_call_file));
    if (!has_file || dwarf_getsrcfiles(&unit->full, &files, &count) != 0 || number >= count)
        return NULL;
    return dwarf_filesrc(files, number, NULL, NULL);
}

/* Looks up the address by DWARF. Returns false if DWARF does not cover it. */
static bool find_in_unit(struct unit *unit, uint64_t address, const char *symbol,
                         elf_symbol_fn *notify, void *context)
{
    Dwarf_Die chain[ELF_INLINE_DEPTH_MAX];
    int number = 0;
    if (!unit->read) {
        unit->read = true;
        read_functions(unit, &unit->full, 0);
        spans_sort(&unit->functions);
    }
    const struct span *span = spans_find(&unit->functions, address);
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (line && dwarf_lineno(line, &number) != 0)
        number = 0;
    if (!span) {
        if (line)
            notify(context, symbol, file, (unsigned)number, false);
        return line;
    }
    for (unsigned count = inlined_chain(&span->die, address, chain); count > 0; count--) {
        Dwarf_Die *die = &chain[count - 1];
        const char *name = die_name(die, count > 1 ? NULL : symbol);
        notify(context, name, file, number > 0 ? (unsigned)number : 0, count > 1);
        file = call_file(unit, die);
        number = (int)die_number(die, DW_AT_call_line);
    }
    return true;
}

void elf_symbols_find(struct elf_symbols *s, uint64_t address, elf_symbol_fn *notify, void *context)
{
    const char *symbol = symbol_name(s, address);
    uint64_t inside = address - s->dwarf_bias;
    const struct span *span = spans_find(&s->unit_spans, inside);
    if (span && find_in_unit(&s->units[span->unit], inside, symbol, notify, context))
        return;
    if (symbol)
        notify(context, symbol, NULL, 0, false);
}
