/* SPDX-License-Identifier: Apache-2.0 */
#include "base/objects.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"

#define HASH_DIGITS 8 /* of the hash that auditwheel adds to file names */

struct walk {
    int (*visit)(const struct object *, void *);
    void *data;
};

/* Replaces strcmp, which may be a sanitizer's: it calls address 0 while the sanitizer is still
 * looking up the real one. */
static bool same_text(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (!*a)
            return true;
    return false;
}

/* Returns the file name of a path. */
static const char *last_part(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        name = *path == '/' ? path + 1 : name;
    return name;
}

/* glibc relocates the pointers of most dynamic sections in place, but not of read-only ones. */
static const void *dynamic_pointer(const struct object *o, ElfW(Addr) value)
{
    return (const void *)(value < o->base ? o->base + value : value);
}

static void read_dynamic(struct object *o)
{
    for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
        const void *pointer = dynamic_pointer(o, d->d_un.d_ptr);
        switch (d->d_tag) {
        case DT_SYMTAB: o->symbols = pointer; break;
        case DT_STRTAB: o->strings = pointer; break;
        case DT_STRSZ: o->string_bytes = d->d_un.d_val; break;
        case DT_GNU_HASH: o->gnu_hash = pointer; break;
        case DT_HASH: o->sysv_hash = pointer; break;
        case DT_VERSYM: o->versions = pointer; break;
        default: break;
        }
    }
}

static int walk_one(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct walk *walk = data;
    struct object o = {.path = info->dlpi_name ? info->dlpi_name : "",
                       .base = info->dlpi_addr,
                       .low = UINTPTR_MAX,
                       .headers = info->dlpi_phdr,
                       .header_count = info->dlpi_phnum};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD) {
            uintptr_t low = o.base + p->p_vaddr;
            uintptr_t high = low + p->p_memsz;
            o.low = low < o.low ? low : o.low;
            o.high = high > o.high ? high : o.high;
        } else if (p->p_type == PT_DYNAMIC) {
            o.dynamic = (const ElfW(Dyn) *)(o.base + p->p_vaddr);
        }
    }
    read_dynamic(&o);
    return walk->visit(&o, walk->data);
}

#define LOADER_WAIT_NS   100000000u /* a thread inside leaves within microseconds */
#define LOADER_LOOK_NS   20000u
#define LOADER_LOOKS_MAX (LOADER_WAIT_NS / LOADER_LOOK_NS)

/* Changed by each thread as it enters and leaves. */
static struct {
    _Atomic uint32_t inside;  /* threads that may hold the lock of the loader's list */
    _Atomic uint32_t forking; /* threads in fork(); no other thread may enter meanwhile */
} loader;

/* how often the calling thread has entered, or is in fork() */
static __thread uint32_t loader_depth;

static void look_again_later(void)
{
    const struct timespec nap = {.tv_nsec = LOADER_LOOK_NS};
    syscall(SYS_nanosleep, &nap, NULL);
}

void loader_enter(void)
{
    atomic_fetch_add(&loader.inside, 1);
    for (unsigned i = 0; loader_depth == 0 && atomic_load(&loader.forking) && i < LOADER_LOOKS_MAX;
         i++) {
        atomic_fetch_sub(&loader.inside, 1);
        look_again_later();
        atomic_fetch_add(&loader.inside, 1);
    }
    loader_depth++;
}

void loader_leave(void)
{
    loader_depth--;
    atomic_fetch_sub(&loader.inside, 1);
}

void loader_before_fork(void)
{
    loader_depth++;
    atomic_fetch_add(&loader.forking, 1);
    for (unsigned i = 0; atomic_load(&loader.inside) && i < LOADER_LOOKS_MAX; i++)
        look_again_later();
}

void loader_after_fork(bool is_child)
{
    if (is_child)
        /* the other threads that were in fork() do not exist in this process */
        atomic_store(&loader.forking, 0);
    else
        atomic_fetch_sub(&loader.forking, 1);
    loader_depth--;
}

bool loader_reset(void)
{
    if (loader_depth == 0) /* otherwise it is called between the two steps of fork() */
        atomic_store(&loader.forking, 0);
    return atomic_exchange(&loader.inside, 0) == 0;
}

struct object object_of_map(const struct link_map *map)
{
    struct object o = {
        .path = map->l_name ? map->l_name : "", .base = map->l_addr, .dynamic = map->l_ld};
    read_dynamic(&o);
    return o;
}

typedef int (*iterate_fn)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

extern struct r_debug _r_debug __attribute__((weak)); /* the loader's list; musl has none */

/*
 * Finds the C library's own dl_iterate_phdr, even if another library defines one. A sanitizer looks
 * up the real function with dlsym, which is ours; until then its own calls address 0. This reads
 * the loader's list without a lock, but only up to libc, which was loaded before the first dlopen.
 */
static iterate_fn real_iterate(void)
{
    static _Atomic(iterate_fn) found;
    iterate_fn real = atomic_load_explicit(&found, memory_order_relaxed);
    for (struct link_map *l = !real && &_r_debug ? _r_debug.r_map : NULL; l && !real;
         l = l->l_next) {
        struct object o = object_of_map(l);
        if (object_is(&o, "libc.so"))
            real = (iterate_fn)(uintptr_t)object_symbol(&o, "dl_iterate_phdr");
    }
    real = real ? real : dl_iterate_phdr;
    atomic_store_explicit(&found, real, memory_order_relaxed);
    return real;
}

int objects_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
    iterate_fn iterate = real_iterate();
    uint64_t signals = block_signals();
    loader_enter();
    int result = iterate(visit, data);
    loader_leave();
    restore_signals(signals);
    return result;
}

int objects_each(int (*visit)(const struct object *object, void *data), void *data)
{
    struct walk walk = {visit, data};
    return objects_iterate(walk_one, &walk);
}

static int visit_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(uint64_t *)data = info->dlpi_adds;
    return 1;
}

uint64_t objects_loaded(void)
{
    uint64_t count = 0;
    objects_iterate(visit_loaded, &count);
    return count;
}

/* Is the symbol defined in this object, and not as a hidden (old) version of the name? */
static bool symbol_fits(const struct object *o, uint32_t index, const char *name)
{
    const ElfW(Sym) *s = &o->symbols[index];
    unsigned type = s->st_info & 0xf;
    if (s->st_shndx == SHN_UNDEF || s->st_name >= o->string_bytes ||
        (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE && type != STT_GNU_IFUNC) ||
        (s->st_info >> 4 != STB_GLOBAL && s->st_info >> 4 != STB_WEAK) ||
        !same_text(o->strings + s->st_name, name))
        return false;
    return !o->versions || !(o->versions[index] & 0x8000);
}

static uint32_t lookup_gnu(const struct object *o, const char *name)
{
    const uint32_t *table = o->gnu_hash;
    uint32_t bucket_count = table[0], first = table[1], bloom_count = table[2], shift = table[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)&table[4];
    const uint32_t *buckets = (const uint32_t *)&bloom[bloom_count];
    const uint32_t *chain = &buckets[bucket_count];
    uint32_t hash = 5381;
    for (const char *p = name; *p; p++)
        hash = hash * 33 + (uint8_t)*p;
    unsigned bits = 8 * sizeof(ElfW(Addr));
    if (bloom_count) {
        ElfW(Addr) word = bloom[hash / bits % bloom_count];
        if (!(word >> (hash % bits) & word >> ((hash >> shift) % bits) & 1))
            return 0;
    }
    uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
    for (; index >= first && index; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && symbol_fits(o, index, name))
            return index;
        if (entry & 1)
            break;
    }
    return 0;
}

static uint32_t lookup_sysv(const struct object *o, const char *name)
{
    const uint32_t *table = o->sysv_hash;
    uint32_t bucket_count = table[0], chain_count = table[1];
    uint32_t hash = 0;
    for (const char *p = name; *p; p++) {
        hash = (hash << 4) + (uint8_t)*p;
        uint32_t high = hash & 0xf0000000u;
        hash = (hash ^ high >> 24) & ~high;
    }
    uint32_t index = bucket_count ? table[2 + hash % bucket_count] : 0;
    while (index && index < chain_count) {
        if (symbol_fits(o, index, name))
            return index;
        index = table[2 + bucket_count + index];
    }
    return 0;
}

typedef void *(*choose_fn)(uint64_t hardware);

void *object_symbol_sized(const struct object *o, const char *name, size_t *bytes)
{
    if (!o->symbols || !o->strings)
        return NULL;
    uint32_t index = o->gnu_hash ? lookup_gnu(o, name) : o->sysv_hash ? lookup_sysv(o, name) : 0;
    const ElfW(Sym) *s = &o->symbols[index];
    *bytes = index ? s->st_size : 0;
    if (index && (s->st_info & 0xf) == STT_GNU_IFUNC) /* its address tells which one it is */
        return ((choose_fn)(o->base + s->st_value))(getauxval(AT_HWCAP));
    return index ? (void *)(o->base + s->st_value) : NULL;
}

void *object_symbol(const struct object *o, const char *name)
{
    size_t bytes;
    return object_symbol_sized(o, name, &bytes);
}

static bool visit_imports(const struct object *o, const ElfW(Rela) * relocations, size_t count,
                          bool (*visit)(void **slot, const char *name, void *data), void *data)
{
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *s = &o->symbols[relocations[i].r_info >> 32];
        if (s->st_shndx == SHN_UNDEF && s->st_name && s->st_name < o->string_bytes &&
            visit((void **)(o->base + relocations[i].r_offset), o->strings + s->st_name, data))
            return true;
    }
    return false;
}

bool object_each_import(const struct object *o,
                        bool (*visit)(void **slot, const char *name, void *data), void *data)
{
    const void *lazy = NULL, *others = NULL;
    size_t lazy_bytes = 0, other_bytes = 0;
    for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_JMPREL: lazy = dynamic_pointer(o, d->d_un.d_ptr); break;
        case DT_PLTRELSZ: lazy_bytes = d->d_un.d_val; break;
        case DT_RELA: others = dynamic_pointer(o, d->d_un.d_ptr); break;
        case DT_RELASZ: other_bytes = d->d_un.d_val; break;
        default: break;
        }
    }
    if (!o->symbols || !o->strings)
        return false;
    return (lazy && visit_imports(o, lazy, lazy_bytes / sizeof(ElfW(Rela)), visit, data)) ||
           (others && visit_imports(o, others, other_bytes / sizeof(ElfW(Rela)), visit, data));
}

struct import {
    const char *name;
    void **slot;
};

static bool is_import(void **slot, const char *name, void *data)
{
    struct import *import = data;
    if (!same_text(name, import->name))
        return false;
    import->slot = slot;
    return true;
}

void **object_import(const struct object *o, const char *name)
{
    struct import import = {.name = name};
    object_each_import(o, is_import, &import);
    return import.slot;
}

/* Is this memory that the loader makes read-only after relocation (RELRO)? */
static bool is_sealed(const struct object *o, uintptr_t address)
{
    for (unsigned i = 0; i < o->header_count; i++) {
        const ElfW(Phdr) *p = &o->headers[i];
        if (p->p_type == PT_GNU_RELRO && address - (o->base + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

bool object_divert(const struct object *o, void **slot, void *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    bool seals = is_sealed(o, (uintptr_t)slot);
    void *its_page = (void *)((uintptr_t)slot & ~(page - 1));
    if (seals && mprotect(its_page, page, PROT_READ | PROT_WRITE) < 0)
        return false;
    __atomic_store_n(slot, to, __ATOMIC_RELAXED);
    return !seals || mprotect(its_page, page, PROT_READ) == 0;
}

struct at {
    uintptr_t address;
    struct object *object;
};

static int visit_at(const struct object *o, void *data)
{
    struct at *at = data;
    if (at->address < o->low || at->address >= o->high)
        return 0;
    *at->object = *o;
    return 1;
}

bool object_at(uintptr_t address, struct object *object)
{
    struct at at = {address, object};
    return objects_each(visit_at, &at) != 0;
}

bool object_needs(const struct object *o, const char *soname)
{
    for (const ElfW(Dyn) *d = o->dynamic; d && o->strings && d->d_tag != DT_NULL; d++) {
        if (d->d_tag != DT_NEEDED || d->d_un.d_val >= o->string_bytes)
            continue;
        /* The library may have no soname and be linked by its path. */
        if (same_text(last_part(o->strings + d->d_un.d_val), soname))
            return true;
    }
    return false;
}

const char *object_soname(const struct object *o)
{
    for (const ElfW(Dyn) *d = o->dynamic; d && o->strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_SONAME && d->d_un.d_val < o->string_bytes)
            return o->strings + d->d_un.d_val;
    return last_part(o->path);
}

/* Length of the part of `text` that auditwheel puts between a library's name and ".so":
 * "-d0da41ae". */
static size_t hash_bytes(const char *text)
{
    if (text[0] != '-')
        return 0;
    for (unsigned i = 1; i <= HASH_DIGITS; i++)
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
            return 0;
    return 1 + HASH_DIGITS;
}

/* Skips the common prefix of both names, up to the dot of the stem. */
static const char *behind_common(const char *soname, const char **stem)
{
    for (; **stem && **stem != '.' && *soname == **stem; soname++, ++*stem)
        ;
    return soname;
}

bool object_is_part(const struct object *o, const char *stem)
{
    const char *end = stem, *soname = behind_common(object_soname(o), &end);
    return object_is(o, stem) || (*end == '.' && *soname == '_');
}

bool object_is(const struct object *o, const char *stem)
{
    const char *soname = behind_common(object_soname(o), &stem);
    if (*stem == '.')
        soname += hash_bytes(soname);
    for (; *stem; soname++, stem++)
        if (*soname != *stem)
            return false;
    return *soname == '\0' || *soname == '.';
}

static int visit_valgrind(const struct object *o, void *data)
{
    const char *name = object_soname(o), *stem = data;
    while (*stem && *name == *stem)
        name++, stem++;
    return *stem == '\0';
}

bool objects_are_watched(void)
{
    enum { UNKNOWN, NO, YES };
    static _Atomic uint32_t found; /* set by any thread, always to the same value */
    static char stem[] = "vgpreload_";
    uint32_t now = atomic_load_explicit(&found, memory_order_relaxed);
    if (now == UNKNOWN) {
        now = objects_each(visit_valgrind, stem) ? YES : NO;
        atomic_store_explicit(&found, now, memory_order_relaxed);
    }
    return now == YES;
}

struct next {
    const char *const *names;
    _Atomic(void *) *found;
    unsigned count;
    bool is_looked_at; /* the objects that follow */
};

static int visit_next(const struct object *o, void *data)
{
    struct next *next = data;
    bool is_ours = object_is_ours(o);
    unsigned left = 0;
    next->is_looked_at |= is_ours;
    for (unsigned i = 0; i < next->count; i++) {
        if (next->is_looked_at && !is_ours && !atomic_load(&next->found[i]))
            atomic_store(&next->found[i], object_symbol(o, next->names[i]));
        left += !atomic_load(&next->found[i]);
    }
    return !left;
}

void objects_next(const char *const *names, _Atomic(void *) *found, unsigned count)
{
    struct next next = {.names = names, .found = found, .count = count};
    if (objects_each(visit_next, &next))
        return;
    next.is_looked_at = true;
    objects_each(visit_next, &next);
}
