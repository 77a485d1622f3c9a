/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/symbols.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "base/workers.h"
#include "crc32c.h"
#include "error.h"
#include "frame.h"
#include "symbol/elf_symbols.h"

#define PATHS_MAX       6
#define DEBUG_FOLDERS   ":.debug:/usr/lib/debug" /* libdwfl's own */
#define NAMED_MAX       3                        /* modules named in one message */
#define CHILD_BYTES_MAX (32ull << 30)            /* address space of the child, which maps files */

/* A file: all modules with one path and build id, in all processes. */
struct object {
    const struct kernel_name *path;
    const struct kernel_name *build_id;
    uint32_t first; /* index of its first address */
    uint32_t count;
    enum elf_status status;
    bool ended; /* the lookup was cut off */
};

struct address {
    uint64_t offset;
    uint32_t object; /* the last member of its key */
    uint32_t first;  /* index of its first symbol */
    uint32_t count;
};

struct symbols {
    const struct stack_table *table; /* a view */
    struct recording *rec;           /* views, used by symbols_create only, like the next two */
    const char *folder;
    const char *asked;        /* the folder as the user wrote it */
    struct key_map object_of; /* (path, build id) -> place + 1 */
    uint32_t *module_objects; /* owned, by index of the module */
    struct object *objects;   /* owned */
    uint32_t object_count;
    struct address *addresses; /* owned; unique, in the end sorted by object */
    uint32_t address_count;
    struct number_set numbers; /* of the addresses, until they are sorted */
    struct symbol *symbols;    /* owned */
    uint32_t symbol_count;
    struct kernel_names names; /* demangled */
    struct kernel_names files; /* plain */
    uint64_t left_out;
    bool asks_debuginfod;
    unsigned patience_s; /* time limit for an answer */
};

/* ---- the child process --------------------------------------------------------------------------
 *
 * An answer is three texts: index of the address, whether it is inlined, and the line; the
 * function; the file. The last two are empty if not known.
 */

struct looking_up {
    const struct symbols *s;
    const struct object *o;
    const struct elf_request *request;
    FILE *answers;
};

/* Result for a file, even if the lookup of its addresses is cut off. */
struct looked_up {
    uint32_t status;
    bool has_dwarf;
    double wait_s; /* wait for the file; below 0: the time limit was reached */
};

static void symbols_answer(void *context, uint32_t address, const char *function, const char *file,
                           unsigned line, bool inlined)
{
    const struct looking_up *l = context;
    fprintf(l->answers, "%u %u %u%c%.*s%c%.*s%c", l->o->first + address, inlined, line, '\0',
            SYMBOL_TEXT_MAX, function ? function : "", '\0', SYMBOL_TEXT_MAX, file ? file : "",
            '\0');
}

/* Limits the cost of a damaged file, a pipe, or a silent server. */
static void limit_child(const struct symbols *s)
{
    struct itimerval time = {.it_value = {.tv_sec = SYMBOL_SECONDS_MAX}};
    sigset_t set;
    char patience[16];
    snprintf(patience, sizeof patience, "%u", s->patience_s);
    if (s->asks_debuginfod)
        setenv("DEBUGINFOD_TIMEOUT", patience, 1);
    else
        unsetenv("DEBUGINFOD_URLS");
    signal(SIGPROF, SIG_DFL);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    setitimer(ITIMER_PROF, &time, NULL);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory needs more */
    struct rlimit space = {CHILD_BYTES_MAX, CHILD_BYTES_MAX};
    setrlimit(RLIMIT_AS, &space);
#endif
}

static void look_up_aside(void *result, void *context)
{
    struct looking_up *l = context;
    struct looked_up *found = result;
    struct elf_symbols *elf;
    double begin_s = monotonic_seconds();
    limit_child(l->s);
    found->status = (uint32_t)elf_symbols_open(&elf, l->request, &found->has_dwarf);
    found->wait_s = monotonic_seconds() - begin_s;
    uint64_t *offsets = memory_new(l->o->count, sizeof *offsets);
    for (uint32_t i = 0; i < l->o->count; i++)
        offsets[i] = l->s->addresses[l->o->first + i].offset;
    if (found->status == ELF_USABLE)
        elf_symbols_find(elf, offsets, l->o->count, symbols_answer, l);
    if (fflush(l->answers) != 0)
        _exit(EXIT_FAILURE);
}

/* ---- the parent process ---------------------------------------------------------------------- */

static void take_symbol(struct symbols *s, const struct object *o, char *const texts[3])
{
    unsigned place, inlined, line;
    if (sscanf(texts[0], "%u %u %u", &place, &inlined, &line) != 3 ||
        place - o->first >= o->count || s->symbol_count == SYMBOLS_MAX) {
        s->left_out++;
        return;
    }
    struct address *address = &s->addresses[place];
    struct symbol symbol = {.inlined = inlined != 0, .line = line};
    if (*texts[1])
        symbol.function = kernel_name_intern(&s->names, texts[1], strlen(texts[1]));
    if (*texts[2])
        symbol.file = kernel_name_intern(&s->files, texts[2], strlen(texts[2]));
    ARRAY_PUSH(s->symbols, s->symbol_count, &symbol);
    if (!address->count++)
        address->first = s->symbol_count - 1;
}

/* Stops asking a debuginfod that did not answer in time. */
static void check_wait(struct symbols *s, double wait_s, bool has_dwarf)
{
    if (!s->asks_debuginfod || has_dwarf || wait_s < s->patience_s)
        return;
    s->asks_debuginfod = false;
    message("debuginfod did not answer for %.0f s, so gpuprof stopped asking; "
            "DEBUGINFOD_TIMEOUT=SECONDS sets how long to wait",
            wait_s);
}

/* Reads the complete answers. */
static void take_answers(struct symbols *s, const struct object *o, FILE *from)
{
    char *texts[3] = {NULL};
    size_t rooms[3] = {0};
    for (unsigned i = 0; getdelim(&texts[i], &rooms[i], '\0', from) > 0; i = (i + 1) % 3)
        if (i == 2 && !feof(from))
            take_symbol(s, o, texts);
    for (unsigned i = 0; i < 3; i++)
        free(texts[i]);
}

/* Looks up one file in a child process. */
static void symbols_look_up(struct symbols *s, struct object *o, const struct elf_request *request)
{
    int fd = memfd_create("symbols", MFD_CLOEXEC);
    struct looking_up l = {.s = s, .o = o, .request = request};
    struct looked_up found = {.status = o->status, .wait_s = -1};
    double seconds = s->asks_debuginfod ? DEBUGINFOD_SECONDS_MAX : SYMBOL_WAIT_SECONDS;
    l.answers = fd < 0 ? NULL : fdopen(fd, "w+");
    o->ended = !l.answers || !aside_run(look_up_aside, &found, sizeof found, &l, seconds);
    o->status = found.status <= ELF_UNREADABLE ? found.status : ELF_UNREADABLE;
    if (found.wait_s >= 0)
        check_wait(s, found.wait_s, found.has_dwarf);
    if (!l.answers)
        return;
    rewind(l.answers);
    take_answers(s, o, l.answers);
    fclose(l.answers);
}

/* "FOLDER/.build-id/ab/cdef.debug" */
static char *build_id_path(const char *folder, const char *id, const char *ending)
{
    return folder && id ? text_printf("%s/.build-id/%.2s/%s%s", folder, id, id + 2, ending) : NULL;
}

/* Lists the possible paths of the file. Returns their number. */
static unsigned list_paths(const struct symbols *s, const struct object *o, char **paths)
{
    const char *path = o->path->raw, *id = o->build_id ? o->build_id->raw : NULL;
    bool is_absolute = path[0] == '/', is_below = is_absolute && s->folder;
    char *const all[PATHS_MAX] = {
        is_absolute ? memory_text(path) : NULL,
        is_below ? text_printf("%s/%s", s->folder, path + 1) : NULL,
        is_below ? text_printf("%s/%s", s->folder, strrchr(path, '/') + 1) : NULL,
        build_id_path(s->folder, id, ""),
        build_id_path(s->folder, id, ".debug"),
        build_id_path("/usr/lib/debug", id, ".debug"),
    };
    unsigned count = 0;
    for (unsigned i = 0; i < PATHS_MAX; i++)
        if (all[i])
            paths[count++] = all[i];
    return count;
}

/* Notes the files that affect the result: these, and those that libdwfl tries beside the path. */
static void note_files(struct recording *rec, const char *path, char *const *paths, unsigned count)
{
    int folder = (int)(strrchr(path, '/') - path);
    char *const beside[] = {text_printf("%s.debug", path), text_printf("%.*s/.debug", folder, path),
                            text_printf("/usr/lib/debug%.*s", folder, path)};
    for (unsigned i = 0; i < count; i++)
        recording_note_file(rec, paths[i]);
    for (unsigned i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        recording_note_file(rec, beside[i]);
        free(beside[i]);
    }
}

static void look_up_object(struct symbols *s, struct object *o, const char *debug_path)
{
    uint8_t build_id[BUILD_ID_MAX];
    char *paths[PATHS_MAX];
    struct elf_request request = {.paths = (const char *const *)paths, .debug_path = debug_path};
    request.path_count = list_paths(s, o, paths);
    if (o->build_id) {
        request.build_id = build_id;
        request.build_id_bytes = o->build_id->raw_bytes / 2;
        for (size_t i = 0; i < request.build_id_bytes; i++)
            sscanf(o->build_id->raw + 2 * i, "%2hhx", &build_id[i]);
    }
    bool possible = o->build_id && s->asks_debuginfod;
    for (unsigned i = 0; i < request.path_count && !possible; i++)
        possible = access(request.paths[i], R_OK) == 0;
    if (o->path->raw[0] == '/')
        note_files(s->rec, o->path->raw, paths, request.path_count);
    if (possible)
        symbols_look_up(s, o, &request);
    for (unsigned i = 0; i < request.path_count; i++)
        free(paths[i]);
}

/* Whether this was reported before, for other stacks of the same recording. */
static bool is_said(struct key_map *said, const struct object *o)
{
    struct key key = {crc32c(0, o->path->raw, o->path->raw_bytes), o->status, o->ended};
    bool is_known = key_map_get(said, key);
    (void)key_map_set(said, key, 1);
    return is_known;
}

/* Prints one line for all modules with that status. */
static void say_status(const struct symbols *s, struct key_map *said, enum elf_status status,
                       bool ended, const char *what)
{
    char names[512];
    size_t length = 0;
    unsigned count = 0;
    for (uint32_t i = 0; i < s->object_count; i++) {
        const struct object *o = &s->objects[i];
        if (!o->count || o->ended != ended || (!ended && o->status != status) || is_said(said, o))
            continue;
        char *name = json_line(path_base(o->path->raw));
        if (count++ < NAMED_MAX && length < sizeof names)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%.120s",
                                       count > 1 ? ", " : "", name ? name : "?");
        free(name);
    }
    if (count)
        message("symbols of %u module%s: %s%s: %s", count, count == 1 ? "" : "s", names,
                count > NAMED_MAX ? ", ..." : "", what);
}

static void symbols_say(const struct symbols *s, struct key_map *said)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    char missing[PATH_MAX + 128];
    snprintf(missing, sizeof missing, "no such file here%s%s%s; shown as module+offset%s",
             s->asked ? " or in " : "", s->asked ? s->asked : "",
             urls && *urls ? " or from debuginfod" : "",
             s->asked ? "" : " (name a folder that has it with --symbols DIR)");
    say_status(s, said, ELF_MISSING, false, missing);
    say_status(s, said, ELF_OTHER, false,
               "not used: the file here has another build id than the recorded one");
    say_status(s, said, ELF_UNREADABLE, false, "the file cannot be read as an ELF file");
    say_status(s, said, ELF_USABLE, true,
               "the look-up was stopped; only what it had found is used");
    if (s->left_out || s->names.dropped || s->files.dropped)
        message("symbols: too many to keep: %llu are left out",
                (unsigned long long)(s->left_out + s->names.dropped + s->files.dropped));
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns the index + 1 of the module's object; 0: none. */
static uint32_t add_object(struct symbols *s, const struct stack_module *m)
{
    struct key key = {(uintptr_t)m->path, (uintptr_t)m->build_id, 0};
    struct object made = {.path = m->path, .build_id = m->build_id, .status = ELF_MISSING};
    uint32_t object = 0;
    if (m->path)
        object = KEY_MAP_ITEM(&s->object_of, key, s->objects, s->object_count, UINT32_MAX, &made);
    return object;
}

/* The index + 1 of the object of the frame's module; 0: none. */
static uint32_t object_of(const struct symbols *s, uint32_t process, uint64_t frame)
{
    const struct stack_module *m = stack_table_module(s->table, process, frame_module(frame));
    return m ? s->module_objects[m - s->table->modules] : 0;
}

/* A return address follows its call, so look up the byte before. */
static uint64_t offset_of(uint64_t frame)
{
    uint64_t offset = frame_offset(frame);
    return offset ? offset - 1 : 0;
}

static int compare_addresses(const void *left, const void *right)
{
    const struct address *a = left, *b = right;
    return ORDER(a->object, b->object) ?: ORDER(a->offset, b->offset);
}

static const struct number_kind address_kind = NUMBER_KEY(struct address, object);

static void add_address(struct symbols *s, uint32_t process, uint64_t frame)
{
    uint32_t object = object_of(s, process, frame);
    struct address made = {.object = object - 1, .offset = offset_of(frame)};
    if (object)
        s->left_out += !NUMBER_ADD(&s->numbers, &address_kind, s->addresses, s->address_count,
                                   SYMBOL_ADDRESSES_MAX, &made);
}

static void collect(struct symbols *s, const bool *wanted)
{
    const struct stack_table *t = s->table;
    s->module_objects = memory_new(t->module_count + 1u, sizeof *s->module_objects);
    for (uint32_t i = 0; i < t->module_count; i++)
        s->module_objects[i] = add_object(s, &t->modules[i]);
    for (uint32_t i = 0; i < t->frame_count; i++)
        if (frame_kind(t->frames[i].word) == FRAME_MODULE && (!wanted || wanted[i]))
            add_address(s, t->frames[i].process, t->frames[i].word);
    ARRAY_SORT(s->addresses, s->address_count, compare_addresses);
    number_set_release(&s->numbers);
    for (uint32_t i = 0; i < s->address_count; i++) {
        struct object *o = &s->objects[s->addresses[i].object];
        if (!o->count++)
            o->first = i;
    }
}

static void symbols_resolve(struct symbols *s)
{
    char *debug_path = s->folder
                           ? text_printf(DEBUG_FOLDERS ":%s:%s/usr/lib/debug", s->folder, s->folder)
                           : memory_text(DEBUG_FOLDERS);
    for (uint32_t i = 0; i < s->object_count; i++)
        if (s->objects[i].count)
            look_up_object(s, &s->objects[i], debug_path);
    free(debug_path);
}

/* Reads from the environment whether to ask debuginfod, and the time limit. */
static void prepare_debuginfod(struct symbols *s)
{
    const char *urls = getenv("DEBUGINFOD_URLS"), *timeout = getenv("DEBUGINFOD_TIMEOUT");
    long seconds = timeout ? strtol(timeout, NULL, 10) : 0;
    s->asks_debuginfod = urls && *urls;
    s->patience_s =
        seconds > 0 && seconds < DEBUGINFOD_SECONDS_MAX ? (unsigned)seconds : DEBUGINFOD_SECONDS;
}

struct symbols *symbols_create(struct recording *rec, const struct stack_table *table,
                               const bool *wanted, const char *folder, bool is_casual)
{
    struct symbols *s = memory_new(1, sizeof *s);
    s->rec = rec;
    s->table = table;
    s->files.plain = true;
    if (folder && strcmp(folder, SYMBOLS_OFF) == 0)
        return s;
    /* libdwfl looks for debug files in absolute folders only. */
    char *absolute = folder ? realpath(folder, NULL) : NULL;
    s->asked = folder;
    s->folder = absolute ? absolute : folder;
    if (!is_casual)
        prepare_debuginfod(s);
    collect(s, wanted);
    symbols_resolve(s);
    if (!is_casual || folder)
        symbols_say(s, &rec->said);
    free(absolute);
    return s;
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    key_map_release(&s->object_of);
    kernel_names_release(&s->names);
    kernel_names_release(&s->files);
    number_set_release(&s->numbers);
    free(s->module_objects);
    free(s->objects);
    free(s->addresses);
    free(s->symbols);
    free(s);
}

const struct symbol *symbols_of(const struct symbols *s, uint32_t process, uint64_t frame,
                                uint32_t *count)
{
    bool is_known = s->module_objects && frame_kind(frame) == FRAME_MODULE;
    uint32_t object = is_known ? object_of(s, process, frame) : 0;
    const struct object *o = object ? &s->objects[object - 1] : NULL;
    const struct address *a = o && o->count ? &s->addresses[o->first] : NULL;
    uint32_t behind = a ? ARRAY_UP_TO(a, o->count, offset, offset_of(frame)) : 0;
    *count = 1;
    if (!behind || a[behind - 1].offset != offset_of(frame) || !a[behind - 1].count)
        return NULL;
    *count = a[behind - 1].count;
    return &s->symbols[a[behind - 1].first];
}

struct shown_frame symbols_shown(const struct symbols *s, uint32_t process, uint64_t frame,
                                 const struct symbol *found, const struct kernel_name *called)
{
    if (frame_kind(frame) == FRAME_PYTHON) {
        const struct stack_place *place = stack_table_place(s->table, process, frame_python(frame));
        return (struct shown_frame){.kind = SHOWN_PYTHON,
                                    .name = place ? place->function : NULL,
                                    .file = place ? place->file : NULL,
                                    .line = place ? place->line : 0};
    }
    if (frame_kind(frame) != FRAME_MODULE)
        return (struct shown_frame){.kind = SHOWN_ADDRESS, .line = frame_address(frame)};
    const struct stack_module *m = stack_table_module(s->table, process, frame_module(frame));
    struct shown_frame shown = {.kind = found && found->inlined ? SHOWN_INLINED : SHOWN_NATIVE,
                                .name = found ? found->function : NULL,
                                .file = found ? found->file : NULL,
                                .module = m ? m->path : NULL};
    shown.is_stub = cuda_stub(shown.name, shown.file, called);
    shown.line = shown.name || shown.file ? found->line : frame_offset(frame);
    return shown;
}
