/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the named program and of what it will load. */
#include "base/file_at.h"
#include "doctor/checks.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "known_versions.h"

#define PROGRAM_BYTES_MAX (1ull << 30) /* size of a file that is searched */
#define VERSION_LINES_MAX 64           /* lines of torch/version.py */

void program_python_version(const char *name, unsigned *minor)
{
    const char *number = strncmp(name, "lib", 3) == 0 ? name + 3 : name;
    if (strncmp(number, "python3.", 8) != 0 || !isdigit((unsigned char)number[8]))
        return;
    *minor = (unsigned)strtoul(number + 8, NULL, 10);
}

/* Whether the file contains both texts. */
static bool file_has(const char *path, const char *one, const char *other)
{
    struct stat st;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        (uint64_t)st.st_size <= PROGRAM_BYTES_MAX) {
        size_t bytes = (size_t)st.st_size;
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        found = data != MAP_FAILED && memmem(data, bytes, one, strlen(one)) &&
                memmem(data, bytes, other, strlen(other));
        if (data != MAP_FAILED)
            munmap(data, bytes);
    }
    close(fd);
    return found;
}

static bool is_python(const char *path)
{
    return strncmp(basename(path), "python", 6) == 0;
}

bool program_uses_cuda(const char *path)
{
    return is_python(path) || file_has(path, "libcuda", ""); /* also matches libcudart */
}

/* Whether a CUDA runtime is linked in, which looks up the driver's functions itself. Only a static
 * runtime does so; a shared one leaves it to libcudart. */
static bool has_runtime(const char *path)
{
    struct program program;
    program_look(&program, path);
    return !program.needs_cuda && !is_python(path) &&
           file_has(path, "libcuda.so.1", "cuGetProcAddress");
}

/* ---- Python --------------------------------------------------------------------------------- */

/* Finds the Python in the first line of a script; false: none. */
static bool find_script_python(struct program *program, const char *script)
{
    char line[PATH_MAX + 64] = "", *rest = NULL;
    bool is_script = file_first_line(script, line, sizeof line) && strncmp(line, "#!", 2) == 0;
    char *word = is_script ? strtok_r(line + 2, " \t\n", &rest) : NULL;
    if (word && strcmp(basename(word), "env") == 0)
        word = strtok_r(NULL, " \t\n", &rest);
    return word && is_python(word) && program_find(program, word) == 0;
}

/* Reads __version__ = '2.5.1+cu124'. */
static bool read_version(const char *folder, struct target *p)
{
    char path[PATH_MAX + 32], line[256];
    snprintf(path, sizeof path, "%s/torch/version.py", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    for (int i = 0; i < VERSION_LINES_MAX && fgets(line, sizeof line, file); i++) {
        char *quote = strncmp(line, "__version__", 11) == 0 ? strpbrk(line, "'\"") : NULL;
        if (!quote || p->torch[0])
            continue;
        quote[1 + strcspn(quote + 1, "'\"\n")] = '\0';
        snprintf(p->torch, sizeof p->torch, "%.63s", quote + 1);
        snprintf(p->torch_folder, sizeof p->torch_folder, "%s", folder);
    }
    fclose(file);
    return p->torch[0] != '\0';
}

/* Adds the CUDA runtimes of wheels. */
static void add_runtimes(const char *folder, struct cupti_places *places)
{
    static const char *const below[] = {"nvidia/cuda_runtime/lib", "nvidia/cu13/lib", "torch/lib"};
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/%s", folder, below[i]);
        DIR *names = opendir(path);
        for (struct dirent *entry; names && (entry = readdir(names));) {
            char *file;
            if (strncmp(entry->d_name, "libcudart", 9) == 0 &&
                asprintf(&file, "%s/%s", path, entry->d_name) >= 0) {
                cupti_places_add(places, file, entry->d_name);
                free(file);
            }
        }
        if (names)
            closedir(names);
    }
}

__attribute__((format(printf, 2, 3))) static void look_in(struct target *p, const char *form, ...)
{
    char folder[PATH_MAX];
    va_list list;
    va_start(list, form);
    int length = vsnprintf(folder, sizeof folder, form, list);
    va_end(list);
    if (!p->torch[0] && length > 0 && (size_t)length < sizeof folder && read_version(folder, p))
        add_runtimes(folder, &p->start.places);
}

/* Searches below the parent of the folder bin of Python. */
static void look_below(struct target *p, const char *python)
{
    const char *slash = strrchr(python, '/');
    const char *end = slash ? memrchr(python, '/', (size_t)(slash - python)) : NULL;
    int length = end ? (int)(end - python) : 0;
    if (!end)
        return;
    look_in(p, "%.*s/lib/python3.%u/site-packages", length, python, p->start.python_minor);
    look_in(p, "%.*s/local/lib/python3.%u/dist-packages", length, python, p->start.python_minor);
    look_in(p, "%.*s/lib/python3/dist-packages", length, python);
}

/* The path is resolved last, to find a virtual environment first. */
void program_packages_find(struct target *p)
{
    char resolved[PATH_MAX];
    struct program script;
    const char *list = getenv("PYTHONPATH"), *home = getenv("HOME");
    const char *python = is_python(p->program.path)                     ? p->program.path
                         : find_script_python(&script, p->program.path) ? script.path
                                                                        : p->start.path;
    if (!p->start.python_minor)
        return;
    while (list && *list) {
        size_t length = strcspn(list, ":");
        look_in(p, "%.*s", (int)length, list);
        list += length + (list[length] == ':');
    }
    look_below(p, python);
    if (home)
        look_in(p, "%s/.local/lib/python3.%u/site-packages", home, p->start.python_minor);
    if (realpath(python, resolved))
        look_below(p, resolved);
}

/* ---- checks --------------------------------------------------------------------------------- */

bool check_program(const struct target *p, struct check_result *f)
{
    if (!p->argv)
        return false;
    if (p->find_error)
        return broken(f, "name the program's path", "%s: %s", p->argv[0], strerror(p->find_error));
    if (p->program.obstacle)
        return broken(
            f, "link it dynamically with glibc, and start it without setuid or file capabilities",
            "%s: %s; nothing can be recorded", p->program.path, p->program.obstacle);
    return fine(f, "%s", p->program.path);
}

/* Whether there is a program to examine. */
static bool has_program(const struct target *p)
{
    return p->argv && !p->find_error && !p->program.obstacle && !p->library_reason[0];
}

bool check_preload(const struct target *p, struct check_result *f)
{
    *f = p->start.preload;
    return has_program(p);
}

/* The file that will use CUDA, as far as known. */
static const char *program_path(const struct target *p)
{
    return p->start.is_loaded ? p->start.path : p->program.path;
}

bool check_runtime(const struct target *p, struct check_result *f)
{
    if (!has_program(p) || !has_runtime(program_path(p)))
        return false;
    if (p->gpu.cupti.text[0] && p->gpu.cupti.state == CHECK_OK && p->settings.numbers[SETTING_GPU])
        return fine(f,
                    "the CUDA runtime is statically linked: its calls are recorded through CUPTI");
    return limited(
        f, "link with -cudart=shared, or make CUPTI work",
        "the CUDA runtime is statically linked: without CUPTI only its driver calls are recorded");
}

bool check_sanitizer(const struct target *p, struct check_result *f)
{
    if (!has_program(p) || (!p->program.needs_asan && !p->program.has_tsan))
        return false;
    return fine(f, "the program uses %s; gpuprof sets its options to run with it",
                p->program.needs_asan ? "AddressSanitizer" : "ThreadSanitizer");
}

bool check_python(const struct target *p, struct check_result *f)
{
    unsigned minor = p->start.python_minor;
    if (!has_program(p) || !minor)
        return false;
    if (minor < KNOWN_PYTHON_FIRST || minor > KNOWN_PYTHON_LAST)
        return limited(
            f, "use a supported version to get Python frames",
            "stacks will have no Python frames: Python 3.%u is not supported (" KNOWN_PYTHON_TEXT
            " are)",
            minor);
    return fine(f, "Python 3.%u: stacks will have Python frames", minor);
}

bool check_torch(const struct target *p, struct check_result *f)
{
    unsigned major = 0, minor = 0;
    const char *version = p->torch;
    if (!has_program(p) || !version[0])
        return false;
    if (sscanf(version, "%u.%u", &major, &minor) != 2 || major != 2 || minor < KNOWN_TORCH_FIRST ||
        minor > KNOWN_TORCH_LAST)
        return limited(f, "use a supported version for --pytorch=shapes",
                       "PyTorch %s (%s) is not supported (" KNOWN_TORCH_TEXT
                       " are): operators will have names at most",
                       version, p->torch_folder);
    return fine(f, "PyTorch %s (%s): 'gpuprof run --pytorch' records its operators", version,
                p->torch_folder);
}
