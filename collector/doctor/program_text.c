/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/program_text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/program.h"

#define PROGRAM_BYTES_MAX (1ull << 30) /* of a file that is searched through */
#define VERSION_LINES_MAX 64           /* of torch/version.py */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void program_python_version(const char *name, unsigned *minor, bool *is_free_threaded)
{
    const char *number = strncmp(name, "lib", 3) == 0 ? name + 3 : name;
    if (strncmp(number, "python3.", 8) != 0 || !isdigit((unsigned char)number[8]))
        return;
    char *end;
    *minor = (unsigned)strtoul(number + 8, &end, 10);
    *is_free_threaded = *end == 't';
}

/* Are all of these in the file? */
static bool file_has(const char *path, const char *const *texts)
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
        found = data != MAP_FAILED;
        for (; found && *texts; texts++)
            found = memmem(data, bytes, *texts, strlen(*texts)) != NULL;
        if (data != MAP_FAILED)
            munmap(data, bytes);
    }
    close(fd);
    return found;
}

bool program_uses_cuda(const char *path)
{
    static const char *const driver[] = {"libcuda", NULL}; /* libcudart, too */
    return strncmp(last_part(path), "python", 6) == 0 || file_has(path, driver);
}

/* The one way from a static runtime to the driver; a linked one leaves it to libcudart. */
bool program_has_runtime(const char *path)
{
    static const char *const runtime[] = {"libcuda.so.1", "cuGetProcAddress", NULL};
    struct program program;
    program_look(&program, path);
    return !program.needs_cuda && strncmp(last_part(path), "python", 6) != 0 &&
           file_has(path, runtime);
}

/* ---- Python --------------------------------------------------------------------------------- */

bool script_python(const char *script, char path[static PATH_MAX])
{
    char line[PATH_MAX + 64] = "", *rest = NULL;
    struct program program = {.obstacle = NULL};
    FILE *file = fopen(script, "re");
    bool is_script = file && fgets(line, sizeof line, file) && strncmp(line, "#!", 2) == 0;
    if (file)
        fclose(file);
    char *word = is_script ? strtok_r(line + 2, " \t\n", &rest) : NULL;
    if (word && strcmp(last_part(word), "env") == 0)
        word = strtok_r(NULL, " \t\n", &rest);
    if (!word || strncmp(last_part(word), "python", 6) != 0 || program_find(&program, word) != 0)
        return false;
    snprintf(path, PATH_MAX, "%s", program.path);
    return true;
}

/* __version__ = '2.5.1+cu124'. */
static bool read_version(const char *folder, struct python_packages *packages)
{
    char path[PATH_MAX + 32], line[256];
    snprintf(path, sizeof path, "%s/torch/version.py", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    for (int i = 0; i < VERSION_LINES_MAX && fgets(line, sizeof line, file); i++) {
        char *quote = strncmp(line, "__version__", 11) == 0 ? strpbrk(line, "'\"") : NULL;
        if (!quote || packages->torch[0])
            continue;
        quote[1 + strcspn(quote + 1, "'\"\n")] = '\0';
        snprintf(packages->torch, sizeof packages->torch, "%.63s", quote + 1);
        snprintf(packages->folder, sizeof packages->folder, "%s", folder);
    }
    fclose(file);
    return packages->torch[0] != '\0';
}

/* Where wheels have the CUDA runtime. */
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

static void look_in(const char *folder, struct python_packages *packages,
                    struct cupti_places *places)
{
    if (!packages->torch[0] && folder[0] && read_version(folder, packages))
        add_runtimes(folder, places);
}

/* Below the folder in which bin/python lies. */
static void look_below(const char *python, unsigned minor, struct python_packages *packages,
                       struct cupti_places *places)
{
    static const char *const forms[] = {"%.*s/lib/python3.%u/site-packages",
                                        "%.*s/local/lib/python3.%u/dist-packages",
                                        "%.*s/lib/python3/dist-packages"};
    const char *slash = strrchr(python, '/');
    const char *prefix = slash ? memrchr(python, '/', (size_t)(slash - python)) : NULL;
    for (size_t i = 0; prefix && i < sizeof forms / sizeof forms[0]; i++) {
        char folder[PATH_MAX];
        int length =
            snprintf(folder, sizeof folder, forms[i], (int)(prefix - python), python, minor);
        if (length > 0 && (size_t)length < sizeof folder)
            look_in(folder, packages, places);
    }
}

void python_packages_find(struct python_packages *packages, struct cupti_places *places,
                          const char *path, unsigned minor)
{
    char resolved[PATH_MAX], folder[PATH_MAX];
    const char *list = getenv("PYTHONPATH"), *home = getenv("HOME");
    *packages = (struct python_packages){.torch = ""};
    while (list && *list) {
        size_t length = strcspn(list, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)(length < PATH_MAX ? length : 0), list);
        look_in(folder, packages, places);
        list += length + (list[length] == ':');
    }
    look_below(path, minor, packages, places);
    if (home) {
        snprintf(folder, sizeof folder, "%s/.local/lib/python3.%u/site-packages", home, minor);
        look_in(folder, packages, places);
    }
    if (realpath(path, resolved))
        look_below(resolved, minor, packages, places);
}
