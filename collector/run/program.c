/* SPDX-License-Identifier: Apache-2.0 */
#include "run/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "rank.h"
#include "settings.h"

#define LIBRARY_NAME          "libgpuprof.so"
#define OS_LIBRARY_NAME       "libgpuprof-os.so" /* beside LIBRARY_NAME: os_table.h */
#define PROGRAM_SEGMENTS_MAX  64
#define PROGRAM_DYNAMIC_MAX   512 /* entries read of its dynamic section */
#define PROGRAM_NAME_BYTES    64  /* length of the name of an interpreter or a library */
#define FOLDER_NAME_BYTES_MAX 64  /* length of the program's name in the name of the data folder */
#define PROGRAM_STRINGS_MAX   (64u << 20) /* bytes of the names of its dynamic symbols */

#if defined(__x86_64__)
#define PROGRAM_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define PROGRAM_MACHINE EM_AARCH64
#else
#error "gpuprof knows x86_64 and aarch64 only"
#endif

/* The offset in the file for an address of the program; 0: none. */
static uint64_t offset_of(const Elf64_Phdr *segments, unsigned count, uint64_t address)
{
    for (unsigned i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && address - segments[i].p_vaddr < segments[i].p_filesz)
            return segments[i].p_offset + (address - segments[i].p_vaddr);
    return 0;
}

/* Whether one of the texts begins like this. */
static bool has_text(const char *strings, size_t bytes, const char *text)
{
    for (size_t at = 0; at < bytes; at += strlen(strings + at) + 1)
        if (strncmp(strings + at, text, strlen(text)) == 0)
            return true;
    return false;
}

/* Reads the names in a dynamic section: libraries and symbols. A program exports what is linked in
 * to its libraries. */
static void read_names(int fd, const Elf64_Phdr *segments, unsigned count,
                       const Elf64_Phdr *dynamic, struct program *program)
{
    Elf64_Dyn entries[PROGRAM_DYNAMIC_MAX];
    size_t bytes = dynamic->p_filesz < sizeof entries ? dynamic->p_filesz : sizeof entries;
    ssize_t got = pread(fd, entries, bytes, (off_t)dynamic->p_offset);
    uint64_t offset = 0, room = 0;
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *entries; i++) {
        if (entries[i].d_tag == DT_STRTAB)
            offset = offset_of(segments, count, entries[i].d_un.d_ptr);
        if (entries[i].d_tag == DT_STRSZ)
            room = entries[i].d_un.d_val;
    }
    char *strings = room <= PROGRAM_STRINGS_MAX ? calloc(room + 1, 1) : NULL;
    got = strings ? pread(fd, strings, room, (off_t)offset) : 0;
    size_t length = got > 0 ? (size_t)got : 0;
    program->is_loader = has_text(strings, length, "ld-linux");
    program->needs_asan =
        has_text(strings, length, "libasan.so") || has_text(strings, length, "libclang_rt.asan");
    program->needs_cuda = has_text(strings, length, "libcuda");
    program->has_tsan = has_text(strings, length, "__tsan_init");
    free(strings);
}

/* Whether the program is static: no segment names an interpreter, and it is no loader itself
 * (`ld.so PROGRAM`). Anything unreadable or unusual counts as dynamic. */
static const char *elf_obstacle(int fd, struct program *program)
{
    Elf64_Ehdr elf;
    Elf64_Phdr segments[PROGRAM_SEGMENTS_MAX];
    const char *obstacle = "statically linked";
    if (pread(fd, &elf, sizeof elf, 0) != (ssize_t)sizeof elf ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL; /* a script, perhaps */
    if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != PROGRAM_MACHINE)
        return "built for another CPU or word size";
    ssize_t bytes = (ssize_t)(elf.e_phnum * sizeof *segments);
    if (elf.e_phentsize != sizeof *segments || elf.e_phnum > PROGRAM_SEGMENTS_MAX ||
        pread(fd, segments, (size_t)bytes, (off_t)elf.e_phoff) != bytes)
        return NULL;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        char name[PROGRAM_NAME_BYTES];
        if (segments[i].p_type == PT_DYNAMIC)
            read_names(fd, segments, elf.e_phnum, &segments[i], program);
        if (segments[i].p_type != PT_INTERP)
            continue;
        ssize_t length = pread(fd, name, sizeof name - 1, (off_t)segments[i].p_offset);
        name[length > 0 ? length : 0] = '\0';
        obstacle = strstr(name, "/ld-musl-") ? "linked with musl instead of glibc" : NULL;
    }
    return program->is_loader ? NULL : obstacle;
}

static const char *find_obstacle(struct program *program, const struct stat *st)
{
    if ((st->st_mode & S_ISUID) && st->st_uid != geteuid())
        return "setuid";
    if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getegid())
        return "setgid";
    if (geteuid() != 0 && getxattr(program->path, "security.capability", NULL, 0) > 0)
        return "has file capabilities";
    int fd = open(program->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL; /* executable but not readable: leave it to the kernel */
    const char *obstacle = elf_obstacle(fd, program);
    close(fd);
    return obstacle;
}

void program_look(struct program *program, const char *path)
{
    struct stat st;
    *program = (struct program){.obstacle = NULL};
    snprintf(program->path, sizeof program->path, "%s", path);
    if (stat(program->path, &st) == 0)
        program->obstacle = find_obstacle(program, &st);
}

/* Returns 0 if program->path can be executed, else an errno. */
static int try_path(struct program *program)
{
    struct stat st;
    if (stat(program->path, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode) || access(program->path, X_OK) != 0)
        return EACCES;
    program->obstacle = find_obstacle(program, &st);
    return 0;
}

int program_find(struct program *program, const char *name)
{
    bool has_folder = strchr(name, '/');
    const char *path = getenv("PATH"), *end;
    int error = ENOENT;
    if (!path)
        path = "/bin:/usr/bin"; /* the default of execvp in the C library */
    for (const char *at = has_folder ? "" : path; *name; at = end + 1) {
        end = strchrnul(at, ':');
        int n = snprintf(program->path, sizeof program->path, "%.*s%s%s", (int)(end - at), at,
                         end > at ? "/" : "", name);
        bool fits = n > 0 && (size_t)n < sizeof program->path;
        int failed = fits ? try_path(program) : ENAMETOOLONG;
        if (failed == 0 || has_folder)
            return failed;
        /* A PATH folder without access says nothing about the program. */
        if (failed == EACCES && access(program->path, F_OK) == 0)
            error = EACCES;
        if (!*end)
            break;
    }
    return error;
}

/* ---- the environment ------------------------------------------------------------------------ */

static bool program_refuse(char reason[static ENVIRONMENT_REASON_BYTES], const char *what,
                           const char *why)
{
    snprintf(reason, ENVIRONMENT_REASON_BYTES, "%s: %s", what, why);
    return false;
}

bool environment_library(char path[static ENVIRONMENT_PATH_BYTES],
                         char reason[static ENVIRONMENT_REASON_BYTES])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (!slash) {
        path[0] = '\0';
        return program_refuse(reason, "/proc/self/exe", strerror(length < 0 ? errno : ENOENT));
    }
    strcpy(slash + 1, LIBRARY_NAME);
    if (access(path, R_OK) != 0)
        return program_refuse(reason, path, strerror(errno));
    if (strpbrk(path, " :"))
        return program_refuse(
            reason, path,
            "the loader cannot preload from a folder with a space or a colon in its "
            "name; move gpuprof");
    return true;
}

bool environment_os_library(const char *library, char path[static ENVIRONMENT_PATH_BYTES],
                            char reason[static ENVIRONMENT_REASON_BYTES])
{
    size_t folder = strlen(library) - strlen(LIBRARY_NAME);
    snprintf(path, ENVIRONMENT_PATH_BYTES, "%.*s" OS_LIBRARY_NAME, (int)folder, library);
    return access(path, R_OK) == 0 || program_refuse(reason, path, strerror(errno));
}

/* The value of a setting in the environment. The library reports invalid values. */
static uint64_t setting_number(enum setting_index setting)
{
    const char *text = getenv(setting_infos[setting].variable);
    struct settings settings;
    char wrong[160];
    settings_init(&settings);
    if (text && *text)
        settings_set(&settings, setting, text, wrong, sizeof wrong);
    return settings.numbers[setting];
}

/* Puts `text` and a colon before the value of the variable. False: no memory (errno). */
static bool put_before(const char *variable, const char *text)
{
    const char *others = getenv(variable);
    char *list = text_printf("%s%s%s", text, others && *others ? ":" : "", others ? others : "");
    bool done = list && setenv(variable, list, 1) == 0;
    free(list);
    return done;
}

static bool preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD"); /* has it inside another gpuprof run */
    return (others && strstr(others, library)) || put_before("LD_PRELOAD", library);
}

/*
 * ASan's runtime ends a program if another library comes first, unless told not to check. (Before
 * ours in LD_PRELOAD, each child process would get it, too, and report leaks.) gpuprof's library
 * sets the same, but a program may have default options.
 *
 * ThreadSanitizer ends a forked child that starts a thread if its parent had several, and gpuprof's
 * is one. If clang linked it in, none of our libraries can change that.
 *
 * Our options come first, so that the user's options win.
 */
bool environment_prepare(const struct program *program,
                         char reason[static ENVIRONMENT_REASON_BYTES])
{
    char library[ENVIRONMENT_PATH_BYTES], os_library[ENVIRONMENT_PATH_BYTES];
    bool has_os = setting_number(SETTING_OS) != SETTING_OFF;
    if (!environment_library(library, reason) ||
        (has_os && !environment_os_library(library, os_library, reason)))
        return false;
    bool done = true;
    if (setting_number(SETTING_NVTX)) /* another tool's library stays */
        done &= setenv("NVTX_INJECTION64_PATH", library, 0) == 0;
    if (setting_number(SETTING_GPU))
        done &= setenv("CUDA_INJECTION64_PATH", library, 0) == 0;
    if (has_os) /* after libgpuprof.so or, inside another gpuprof run, before it */
        done &= preload(os_library);
    done &= preload(library);
    if (program->needs_asan)
        done &= put_before("ASAN_OPTIONS", "verify_asan_link_order=0");
    if (program->has_tsan)
        done &= put_before("TSAN_OPTIONS", "die_after_fork=0");
    return done || program_refuse(reason, "the environment", strerror(errno));
}

/* ---- the data folder ------------------------------------------------------------------------ */

const char *environment_rank(void)
{
    const char *rank = "";
    for (const char *const *name = rank_variables; *name; name++) {
        const char *text = getenv(*name);
        if (!text || !*text)
            continue;
        if (strcmp(text, "0") != 0)
            return text;
        rank = text;
    }
    return rank;
}

enum exit_code environment_absolute(const char *path, char *out, size_t capacity)
{
    char folder[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(folder, sizeof folder))
        return usage_error("run: the current folder: %s", strerror(errno));
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    const char *slash = path[0] == '/' || strcmp(folder, "/") == 0 ? "" : "/";
    int n = snprintf(out, capacity, "%s%s%s", folder, slash, path);
    if (n < 0 || (size_t)n >= capacity)
        return usage_error("run: %.40s...: longer than %zu bytes", path, capacity - 1);
    return EXIT_OK;
}

enum exit_code environment_name_folder(const char *program, char *out, size_t capacity)
{
    char name[FOLDER_NAME_BYTES_MAX + 1];
    char path[FOLDER_NAME_BYTES_MAX + 64];
    char when[32];
    struct tm broken_down;
    time_t now = time(NULL);
    snprintf(name, sizeof name, "%s", basename(program));
    for (char *p = name; *p; p++)
        *p = (unsigned char)*p <= ' ' || *p == 0x7f ? '_' : *p;
    localtime_r(&now, &broken_down);
    strftime(when, sizeof when, "%Y%m%d-%H%M%S", &broken_down);
    int length = snprintf(path, sizeof path, "gpuprof.%s.%s", name, when);
    /* The ranks of a job that start in the same second share a folder. */
    for (unsigned i = 2; access(path, F_OK) == 0 && !*environment_rank(); i++)
        snprintf(path + length, sizeof path - (size_t)length, "-%u", i);
    return environment_absolute(path, out, capacity);
}

/* The library creates the folder and its parents, so the nearest that exists must be writable. */
enum exit_code environment_check_folder(const char *out, const char *shown)
{
    char path[SETTING_TEXT_BYTES_MAX + 3];
    size_t length = strlen(out);
    while (true) {
        snprintf(path, sizeof path, "%.*s/.", (int)length, out);
        if (access(path, W_OK | X_OK) == 0)
            return EXIT_OK;
        if (errno != ENOENT || !length)
            return usage_error("run: %s: %s; name a folder that you may write to: -o DIR", shown,
                               strerror(errno));
        while (length && out[--length] != '/')
            ;
    }
}
