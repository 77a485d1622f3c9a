/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/modules.h"

#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/objects.h"
#include "base/pages.h"
#include "base/program_file.h"
#include "base/ticks.h"
#include "frame.h"
#include "record/thread.h"

/* in the process's life; a file that is loaded again at its old address counts once */
#define MODULES_MAX     8192u
#define TEXT_BYTES_MAX  4096u /* build id and path of one */
#define TEXT_PIECE      (64u << 10)
#define TEXT_PIECES_MAX 64u
#define BUILD_ID_MAX    64u
#define MODULES_LOCK_NS 2000000000u

_Static_assert(MODULES_MAX <= FRAME_MODULE_MAX, "numbers fit into frames");

struct module {
    uintptr_t low;
    uintptr_t high;
    uintptr_t bias;
    struct cfi_object cfi;
    uint8_t flags;    /* CFI_OURS, CFI_CUDA */
    const char *text; /* build id, a space, the path; never freed */
    uint32_t text_bytes;
    /* number in frames, from 1; that of the first module with the same build of the file */
    uint32_t number;
    bool is_here;
    bool was_here;
    _Atomic bool written; /* its record is in the stream */
};

/* Protected by the lock, except `written` and what never changes. */
static struct {
    struct lock lock;
    bool is_filled;
    unsigned long long adds; /* the loader's counts at the last look */
    unsigned long long subs;
    uint32_t count;
    uint32_t here_count;
    uint32_t here[MODULES_MAX]; /* those currently loaded, by address */
    struct module modules[MODULES_MAX];
    char scratch[TEXT_BYTES_MAX];
    char *text; /* where the next text goes */
    size_t text_free;
    uint32_t piece_count;
} table;

_Atomic uint32_t modules_age;
_Atomic uint32_t modules_list_age;
static _Atomic uint32_t closing; /* threads in dlclose */
/* set by each thread that looks: modules_check */
static _Atomic unsigned long long known_adds, known_subs;

struct counts {
    unsigned long long adds;
    unsigned long long subs;
};

static int visit_counts(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(struct counts *)data = (struct counts){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

static struct counts read_counts(void)
{
    struct counts counts = {0};
    objects_iterate(visit_counts, &counts);
    return counts;
}

static struct counts modules_own_check(void)
{
    struct counts now = read_counts();
    if (atomic_exchange(&known_subs, now.subs) != now.subs)
        atomic_fetch_add(&modules_age, 1);
    if (atomic_exchange(&known_adds, now.adds) != now.adds)
        atomic_fetch_add(&modules_list_age, 1);
    return now;
}

void modules_closing(void)
{
    atomic_fetch_add(&closing, 1);
}

void modules_closed(void)
{
    modules_own_check();
    atomic_fetch_sub(&closing, 1);
}

void modules_check(bool anyway)
{
    if (anyway || unlikely(atomic_load_explicit(&closing, memory_order_relaxed)))
        modules_own_check();
}

/* The note's name and type identify it; sizes are rounded up to 4. */
static size_t read_build_id(const struct object *o, const ElfW(Phdr) * p, char *text)
{
    const uint8_t *at = (const uint8_t *)(o->base + p->p_vaddr);
    const uint8_t *end = at + p->p_filesz;
    while ((size_t)(end - at) >= 12) {
        uint32_t head[3];
        memcpy(head, at, sizeof head);
        size_t name = (size_t)((head[0] + 3u) & ~3u), bytes = (size_t)((head[1] + 3u) & ~3u);
        if (head[0] > 64 || head[1] > 65536 || 12 + name + bytes > (size_t)(end - at))
            return 0;
        if (head[2] == 3 && head[0] == 4 && memcmp(at + 12, "GNU", 4) == 0 && head[1] &&
            head[1] <= BUILD_ID_MAX / 2) {
            for (uint32_t i = 0; i < head[1]; i++) {
                text[2 * i] = "0123456789abcdef"[at[12 + name + i] >> 4];
                text[2 * i + 1] = "0123456789abcdef"[at[12 + name + i] & 15];
            }
            return (size_t)2 * head[1];
        }
        at += 12 + name + bytes;
    }
    return 0;
}

/* The loader has no name for the program itself, and for others the name that it was given. */
static size_t write_path(const struct object *o, char *text, size_t bytes)
{
    size_t length = 0;
    if (!o->path[0])
        return program_file(text, bytes);
    if (o->path[0] != '/' && strchr(o->path, '/') && getcwd(text, bytes)) {
        length = strlen(text);
        if (length + 1 < bytes)
            text[length++] = '/';
    }
    size_t path = strlen(o->path);
    path = path < bytes - length ? path : bytes - length;
    memcpy(text + length, o->path, path);
    return length + path;
}

static size_t write_text(const struct object *o, char *text)
{
    size_t length = 0;
    for (unsigned i = 0; i < o->header_count && !length; i++) {
        const ElfW(Phdr) *p = &o->headers[i];
        bool inside = o->base + p->p_vaddr >= o->low &&
                      o->base + p->p_vaddr + p->p_filesz <= o->high && p->p_flags & PF_R;
        if (p->p_type == PT_NOTE && inside)
            length = read_build_id(o, p, text);
    }
    if (!length)
        text[length++] = '-';
    text[length++] = ' ';
    return length + write_path(o, text + length, TEXT_BYTES_MAX - length);
}

/* Finds the segment with the index of the call frame information. */
static struct cfi_object find_segment(uintptr_t index, uintptr_t base, const ElfW(Phdr) * headers,
                                      unsigned count)
{
    struct cfi_object cfi = {.index = index};
    for (unsigned i = 0; i < count && cfi.index; i++) {
        const ElfW(Phdr) *p = &headers[i];
        uintptr_t low = base + p->p_vaddr;
        if (p->p_type == PT_LOAD && p->p_flags & PF_R && cfi.index - low < p->p_filesz) {
            cfi.low = low;
            cfi.high = low + p->p_filesz;
        }
    }
    if (!cfi.high)
        cfi.index = 0;
    return cfi;
}

static struct cfi_object find_cfi(const struct object *o)
{
    uintptr_t index = 0;
    for (unsigned i = 0; i < o->header_count; i++)
        if (o->headers[i].p_type == PT_GNU_EH_FRAME)
            index = o->base + o->headers[i].p_vaddr;
    return find_segment(index, o->base, o->headers, o->header_count);
}

static const char *keep_text(const char *text, size_t bytes)
{
    if (bytes > table.text_free) {
        char *piece = table.piece_count < TEXT_PIECES_MAX ? pages_map(TEXT_PIECE) : NULL;
        if (!piece)
            return NULL;
        table.piece_count++;
        table.text = piece;
        table.text_free = TEXT_PIECE;
    }
    char *kept = table.text;
    memcpy(kept, text, bytes);
    table.text += bytes;
    table.text_free -= bytes;
    return kept;
}

static uint8_t flags_of(const struct object *o)
{
    uintptr_t ours = (uintptr_t)&modules_check;
    if ((ours >= o->low && ours < o->high) || object_is(o, "libgpuprof-os.so"))
        return CFI_OURS;
    return object_is(o, "libcuda.so") || object_is(o, "libcudart.so") || object_is(o, "libcupti.so")
               ? CFI_CUDA
               : 0;
}

static void note_here(uint32_t index)
{
    uint32_t i = table.here_count++;
    table.modules[index].is_here = true;
    for (; i > 0 && table.modules[table.here[i - 1]].low > table.modules[index].low; i--)
        table.here[i] = table.here[i - 1];
    table.here[i] = index;
}

/* Finds the module at that address which is this file; if `text` is NULL, the one that was there at
 * the last look. */
static struct module *find_again(const struct object *o, const char *text, size_t bytes)
{
    for (struct module *m = table.modules; m < table.modules + table.count; m++)
        if (m->low == o->low && m->high == o->high && m->bias == o->base &&
            (text ? m->text_bytes == bytes && memcmp(m->text, text, bytes) == 0 : m->was_here))
            return m;
    return NULL;
}

/* Finds the same build of a file at another address: its frames mean the same. NULL: none, or not
 * known. */
static const struct module *find_same(const char *text, size_t bytes)
{
    for (const struct module *m = table.modules; m < table.modules + table.count && *text != '-';
         m++)
        if (m->text_bytes == bytes && memcmp(m->text, text, bytes) == 0)
            return m;
    return NULL;
}

/* Finds a free entry; NULL: none. A module whose number is in no frame can be replaced. */
static struct module *find_room(bool is_same)
{
    for (uint32_t i = 0; is_same && i < table.count; i++) {
        const struct module *m = &table.modules[i];
        if (!m->is_here && !m->was_here && m->number != i + 1)
            return &table.modules[i];
    }
    return table.count < MODULES_MAX ? &table.modules[table.count] : NULL;
}

/* `data`: were objects only added since the last look? Then known ones are still there. */
static int visit_module(const struct object *o, void *data)
{
    char *text = table.scratch; /* not on the stack, which may be small */
    const bool *only_added = data;
    size_t bytes = 0;
    struct module *m = *only_added ? find_again(o, NULL, 0) : NULL;
    if (o->low >= o->high)
        return 0;
    if (!m) {
        bytes = write_text(o, text);
        m = find_again(o, text, bytes);
    }
    if (m) {
        note_here((uint32_t)(m - table.modules));
        return 0;
    }
    const struct module *same = find_same(text, bytes);
    m = find_room(same != NULL);
    const char *kept = !m ? NULL : same ? same->text : keep_text(text, bytes);
    if (!kept)
        return 0; /* its frames will only be addresses */
    uint32_t index = (uint32_t)(m - table.modules);
    m->low = o->low;
    m->high = o->high;
    m->bias = o->base;
    m->cfi = find_cfi(o);
    m->flags = flags_of(o);
    m->text = kept;
    m->text_bytes = (uint32_t)bytes;
    m->number = same ? same->number : index + 1;
    atomic_store(&m->written, false);
    table.count += index == table.count;
    note_here(index);
    return 0;
}

/* Makes a new copy if the list has changed. The lock must be held. */
static void refresh(void)
{
    struct counts now = modules_own_check();
    bool only_added = table.is_filled && now.subs == table.subs;
    if (only_added && now.adds == table.adds)
        return;
    /* the counts from before: changes during the look are seen at the next one */
    table.adds = now.adds;
    table.subs = now.subs;
    for (uint32_t i = 0; i < table.count; i++) {
        table.modules[i].was_here = table.modules[i].is_here;
        table.modules[i].is_here = false;
    }
    table.here_count = 0;
    objects_each(visit_module, &only_added);
    table.is_filled = true;
}

static struct module *modules_find(uintptr_t address)
{
    uint32_t low = 0, high = table.here_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table.modules[table.here[middle]].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct module *m = low ? &table.modules[table.here[low - 1]] : NULL;
    return m && address < m->high ? m : NULL;
}

bool modules_rule(uintptr_t address, struct cfi_rule *rule)
{
    if (!lock_take(&table.lock, MODULES_LOCK_NS))
        return false;
    refresh(); /* what is read below must be in objects loaded now */
    const struct module *m = modules_find(address);
    *rule = (struct cfi_rule){.flags = CFI_NONE};
    if (m) {
        cfi_find(&m->cfi, address, rule);
        rule->flags |= m->flags;
    }
    lock_drop(&table.lock);
    return true;
}

/* glibc's struct dl_find_object, which older headers lack. */
struct found_object {
    unsigned long long flags;
    const uint8_t *begin;
    const uint8_t *end;
    const struct link_map *map;
    const void *index;
    uint64_t rest[8];
};

typedef int (*find_object_fn)(void *address, struct found_object *found);

static find_object_fn find_object;
static const struct link_map *own_map;

static int visit_finder(const struct object *o, void *data)
{
    void *found = object_is(o, "libc.so") ? object_symbol(o, "_dl_find_object") : NULL;
    *(find_object_fn *)data = (find_object_fn)(uintptr_t)found;
    return found != NULL;
}

void modules_find_now(void)
{
    struct found_object own;
    if (objects_each(visit_finder, &find_object) &&
        find_object((void *)(uintptr_t)&modules_check, &own) == 0)
        own_map = own.map;
}

bool modules_rule_now(uintptr_t address, struct cfi_rule *rule, bool is_once)
{
    struct found_object found;
    *rule = (struct cfi_rule){.flags = CFI_NONE};
    if (!find_object)
        return false;
    if (find_object((void *)address, &found) != 0)
        return true;
    const ElfW(Ehdr) *head = (const void *)found.begin;
    if (found.index && memcmp(head, ELFMAG, SELFMAG) == 0) {
        struct cfi_object cfi =
            find_segment((uintptr_t)found.index, found.map->l_addr,
                         (const void *)(found.begin + head->e_phoff), head->e_phnum);
        cfi_find(&cfi, address, rule);
    }
    if (found.map == own_map) {
        rule->flags |= CFI_OURS;
    } else if (!is_once) {
        struct object o = object_of_map(found.map);
        rule->flags |= flags_of(&o);
    }
    return true;
}

static bool write_module(struct thread *t, uint32_t number)
{
    struct module *m = &table.modules[number - 1];
    if (atomic_load_explicit(&m->written, memory_order_acquire))
        return true;
    struct record r = {RECORD_WITH(MODULE, [MODULE_MODULE] = number, [MODULE_BIAS] = m->bias,
                                   [MODULE_BEGIN] = m->low, [MODULE_END] = m->high),
                       .begin = ticks_now(), .bytes = (const uint8_t *)m->text,
                       .byte_count = m->text_bytes};
    if (!thread_append(t, &r)) {
        counter_add(COUNTER_DROPPED, (uint64_t)-1); /* not an event; it is tried again */
        return false;
    }
    /* Set afterwards: a thread that sees it may use the number. If two threads write it at once,
     * they write the same. */
    atomic_store_explicit(&m->written, true, memory_order_release);
    return true;
}

bool modules_frames(struct thread *t, uint64_t *frames, unsigned count)
{
    if (!lock_take(&table.lock, MODULES_LOCK_NS))
        return false;
    refresh();
    for (unsigned i = 0; i < count; i++) {
        uint64_t address = frames[i];
        if (frame_kind(address) == FRAME_PYTHON)
            continue;
        const struct module *m = modules_find(address - 1);
        frames[i] = m ? frame_in_module(m->number, address - m->bias) : frame_at_address(address);
    }
    lock_drop(&table.lock);
    /* Without the lock: appending may wait for space. */
    for (unsigned i = 0; i < count; i++)
        if (frame_kind(frames[i]) == FRAME_MODULE && !write_module(t, frame_module(frames[i])))
            return false;
    return true;
}

bool modules_reset(void)
{
    bool is_free = loader_reset();
    atomic_store(&closing, 0);
    atomic_store(&table.lock.holder, 0);
    table.is_filled = false;
    table.count = 0;
    table.here_count = 0;
    return is_free;
}
