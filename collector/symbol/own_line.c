/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/own_line.h"

#include <stddef.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, size_t length, const char *with)
{
    size_t end = strlen(with);
    return length >= end && memcmp(text + length - end, with, end) == 0;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* "python3.11", "python3.13t", "pypy3.10": of a folder below lib, it is the standard library. */
static bool is_version(const char *text, size_t length)
{
    size_t name = begins(text, "python") ? 6 : begins(text, "pypy") ? 4 : 0;
    return name && length > name && is_digit(text[name]) && memchr(text, '.', length) != NULL;
}

/* "python311.zip" */
static bool is_zipped_library(const char *text, size_t length)
{
    return begins(text, "python") && length > 6 && is_digit(text[6]) && ends(text, length, ".zip");
}

/* Is any folder on the way one of packages, or the one of a standard library? */
static bool is_in_library(const char *path)
{
    bool in_lib = false;
    for (size_t length; *path; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        if (is_word(path, length, "site-packages") || is_word(path, length, "dist-packages") ||
            is_zipped_library(path, length))
            return true;
        bool is_folder = path[length] == '/';
        if (is_folder && (ends(path, length, ".egg") || (in_lib && is_version(path, length))))
            return true;
        if (length)
            in_lib = is_word(path, length, "lib") || is_word(path, length, "lib64") ||
                     is_word(path, length, "lib32");
    }
    return false;
}

bool own_python_file(const char *path)
{
    static const char *const typed[] = {"<stdin>",        "<string>",  "<console>",
                                        "<ipython-input", "<doctest ", "<python-input-",
                                        "<input>"};
    if (path[0] != '<')
        return path[0] && !is_in_library(path);
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++)
        if (begins(path, typed[i]))
            return true;
    return false;
}

/* Where systems, and those who install for all users, have libraries and their headers. */
static bool is_of_system(const char *path)
{
    return begins(path, "/lib/") || begins(path, "/lib64/") || begins(path, "/usr/") ||
           begins(path, "/opt/") || begins(path, "/nix/") || is_in_library(path);
}

/* Wherever they lie: some people install them for themselves alone. */
static bool is_known_library(const char *name)
{
    static const char *const names[] = {
        "libc.",      "libc-",        "libm.",    "libpthread",    "libdl.",      "libstdc++",
        "libc++",     "libgcc_s",     "libgomp",  "ld-linux",      "libcuda.",    "libcudart",
        "libcudnn",   "libcublas",    "libcufft", "libcurand",     "libcusolver", "libcusparse",
        "libcupti",   "libnccl",      "libnvrtc", "libnvToolsExt", "libtorch",    "libc10",
        "libgpuprof", "libnvJitLink",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begins(name, names[i]))
            return true;
    return false;
}

/* python, python3.13t and their libraries; an extension python_cuda.so is its user's. */
static bool is_python(const char *name)
{
    return begins(name, "libpython") || begins(name, "pypy") ||
           (begins(name, "python") && (!name[6] || is_digit(name[6]) || name[6] == '-'));
}

/* A program is its user's wherever it is installed, unless it is Python itself. */
bool own_module(const char *path)
{
    const char *name = path_base(path);
    bool is_library = strstr(name, ".so") != NULL;
    return !is_python(name) && path[0] != '[' &&
           !(is_library && (is_of_system(path) || is_known_library(name)));
}

bool own_frame(const struct shown_frame *f)
{
    if (f->kind == SHOWN_PYTHON)
        return f->file && own_python_file(f->file->raw);
    if ((f->kind != SHOWN_NATIVE && f->kind != SHOWN_INLINED) || f->is_stub)
        return false;
    /* What headers of the system bring in is in the user's module, and is none of theirs. */
    return f->module && own_module(f->module->raw) && !(f->file && is_of_system(f->file->raw));
}
