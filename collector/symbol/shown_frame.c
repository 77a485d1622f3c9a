/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/shown_frame.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"

void shown_frames_release(struct shown_frames *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->list[i].label);
        free(s->list[i].json);
    }
    free(s->list);
    number_set_release(&s->numbers);
    *s = (struct shown_frames){0};
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *shown_frame_text_of(const struct kernel_name *name)
{
    return name ? name->shown : "?";
}

/* Returns the frame's text in new memory. */
static char *make_text(const struct shown_frame *f)
{
    const char *module = f->module ? path_base(f->module->raw) : "unknown module";
    unsigned long long line = f->line;
    switch (f->kind) {
    case SHOWN_ADDRESS: return text_printf("0x%llx", line);
    case SHOWN_BORROWED: return memory_text("[borrowed: the thread that waits for this one]");
    case SHOWN_CUT: return memory_text("[cut: deeper frames are not recorded]");
    case SHOWN_STACKLESS: return memory_text("[no stack]");
    case SHOWN_RANGE: return text_printf("[range %s]", shown_frame_text_of(f->name));
    case SHOWN_PYTHON:
    case SHOWN_NATIVE:
    case SHOWN_INLINED:
        if (!f->name && !f->file && f->kind == SHOWN_PYTHON)
            return memory_text("[unknown place in Python code]");
        if (!f->name && !f->file)
            return text_printf("%s+0x%llx", module, line);
        if (f->file && line)
            return text_printf("%s (%s:%llu)", shown_frame_text_of(f->name),
                               path_base(f->file->raw), line);
        return text_printf("%s (%s)", shown_frame_text_of(f->name),
                           f->file ? path_base(f->file->raw) : module);
    default: return memory_text(shown_frame_text_of(f->name));
    }
}

/* Cuts valid UTF-8 between characters. */
static void cut_label(char *text)
{
    size_t length = strlen(text);
    if (length >= SHOWN_LABEL_BYTES) {
        length = SHOWN_LABEL_BYTES - 4;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
        memcpy(text + length, "...", 4);
    }
}

static void make_label(struct shown_frame *f)
{
    char *text = make_text(f);
    f->label = memory_from(json_line(text));
    free(text);
    cut_label(f->label);
    f->json = memory_from(json_string(f->label, strlen(f->label)));
    f->json_bytes = (uint32_t)strlen(f->json);
}

static const struct number_kind kind = NUMBER_KEY(struct shown_frame, is_stub);

uint32_t shown_frame_number(struct shown_frames *s, const struct shown_frame *frame)
{
    uint32_t before = s->count;
    uint32_t number =
        (uint32_t)NUMBER_ADD(&s->numbers, &kind, s->list, s->count, SHOWN_FRAMES_MAX, frame);
    s->left_out += !number;
    if (s->count > before)
        make_label(&s->list[before]);
    return number;
}

/* ---- whose a line is ------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Returns true if the text begins with one of the list, which NULL ends. */
static bool begins_with_one(const char *text, const char *const *list)
{
    while (*list && !begins(text, *list))
        list++;
    return *list;
}

/* Matches "python3.11", "python3.13t", "pypy3.10": standard libraries below lib. */
static bool is_version(const char *text, size_t length)
{
    size_t name = begins(text, "python") ? 6 : begins(text, "pypy") ? 4 : 0;
    return name && length > name && isdigit((unsigned char)text[name]) &&
           memchr(text, '.', length) != NULL;
}

/* Returns true if a folder of the path is for packages or a standard library. */
static bool is_in_library(const char *path)
{
    bool in_lib = false;
    for (size_t length; *path; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        if (word_is(path, length, "site-packages") || word_is(path, length, "dist-packages"))
            return true;
        bool is_egg = length > 4 && memcmp(path + length - 4, ".egg", 4) == 0;
        if (path[length] == '/' && (is_egg || (in_lib && is_version(path, length))))
            return true;
        if (length)
            in_lib = word_is(path, length, "lib") || word_is(path, length, "lib64") ||
                     word_is(path, length, "lib32");
    }
    return false;
}

bool own_python_file(const char *path)
{
    static const char *const typed[] = {"<stdin>",        "<string>",  "<console>",
                                        "<ipython-input", "<doctest ", "<python-input-",
                                        "<input>",        NULL};
    return path[0] == '<' ? begins_with_one(path, typed) : path[0] && !is_in_library(path);
}

/* Folders where systems and administrators install libraries and headers. */
static bool is_of_system(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/", "/opt/", "/nix/", NULL};
    return begins_with_one(path, folders) || is_in_library(path);
}

/* Known libraries, wherever they are: some users install them for themselves. */
static bool is_known_library(const char *name)
{
    static const char *const names[] = {
        "libc.",      "libc-",        "libm.",    "libpthread",    "libdl.",      "libstdc++",
        "libc++",     "libgcc_s",     "libgomp",  "ld-linux",      "libcuda.",    "libcudart",
        "libcudnn",   "libcublas",    "libcufft", "libcurand",     "libcusolver", "libcusparse",
        "libcupti",   "libnccl",      "libnvrtc", "libnvToolsExt", "libtorch",    "libc10",
        "libgpuprof", "libnvJitLink", NULL};
    return begins_with_one(name, names);
}

/* Matches python, python3.13t and their libraries, but not an extension python_cuda.so. */
static bool is_python(const char *name)
{
    return begins(name, "libpython") || begins(name, "pypy") ||
           (begins(name, "python") &&
            (!name[6] || isdigit((unsigned char)name[6]) || name[6] == '-'));
}

/* A program is the user's wherever it is installed, except Python. */
bool own_module(const char *path)
{
    const char *name = path_base(path);
    bool is_library = strstr(name, ".so") != NULL;
    return !is_python(name) && path[0] != '[' &&
           !(is_library && (is_of_system(path) || is_known_library(name)));
}

enum serves_python serves_python(const char *path)
{
    static const char *const names[] = {"libc.",      "libc-",    "libm.",  "libm-",
                                        "libpthread", "ld-linux", "[vdso]", NULL};
    const char *name = path_base(path);
    return begins_with_one(name, names) ? SERVES_ALL
           : is_python(name)            ? SERVES_PYTHON
                                        : SERVES_OTHERS;
}

bool own_frame(const struct shown_frame *f)
{
    if (f->kind == SHOWN_PYTHON)
        return f->file && own_python_file(f->file->raw);
    if ((f->kind != SHOWN_NATIVE && f->kind != SHOWN_INLINED) || f->is_stub)
        return false;
    /* Excludes what system headers bring into the user's module. */
    return f->module && own_module(f->module->raw) && !(f->file && is_of_system(f->file->raw));
}

/* ---- CUDA's own functions -------------------------------------------------------------------- */

#define STUB           "__device_stub_"
#define WRAPPER        "__wrapper" STUB
#define STATIC         "libcudart_static_"
#define MANGLED        "_Z"
#define IDENTIFIER_MAX 1024
#define LENGTH_DIGITS  4 /* of an identifier's length in a mangled name */

/* Matches "cudaLaunchKernel"; only CUDA has names with "__cuda", wherever their lines are. */
static bool is_of_cuda(const char *name, const char *prefix)
{
    char next = begins(name, prefix) ? name[strlen(prefix)] : 0;
    return next >= 'A' && next <= 'Z';
}

/* Returns the opening bracket of the closing one at `at`, or the begin of the text. */
static const char *opening_of(const char *text, const char *at)
{
    unsigned depth = 0;
    for (;; at--) {
        depth += *at == '>' || *at == ')';
        depth -= *at == '<' || *at == '(';
        if (!depth || at == text)
            return at;
    }
}

/* Finds "scale" in "void ns::scale<int>(float *)": returns its begin and sets its length. */
static const char *identifier_of(const char *text, size_t *length)
{
    const char *end = strrchr(text, ')');
    end = end ? opening_of(text, end)
              : text + strcspn(text, ". "); /* a dot begins a clone's suffix */
    if (end > text && end[-1] == '>')
        end = opening_of(text, end - 1);
    const char *begin = end;
    while (begin > text && !strchr(" :.*&", begin[-1]))
        begin--;
    *length = (size_t)(end - begin);
    return begin;
}

/* Compares the kernel's "_Z5scalePf" with the host's, "_ZL5scalePf" if it is static. */
static bool same_mangled(const char *host, const char *kernel)
{
    for (; *host && *host != '.'; host++)
        if (*host == *kernel)
            kernel++;
        else if (*host != 'L')
            return false;
    return !*kernel || *kernel == '(';
}

/* Returns true if the mangled name contains the identifier. */
static bool has_identifier(const char *mangled, const char *name, size_t length)
{
    char wanted[IDENTIFIER_MAX + LENGTH_DIGITS + 1];
    if (!length || length > IDENTIFIER_MAX)
        return false;
    snprintf(wanted, sizeof wanted, "%zu%.*s", length, (int)length, name);
    const char *found = strstr(mangled, wanted);
    return found > mangled && !isdigit((unsigned char)found[-1]);
}

/* Returns true if `function` is the host's side of the kernel in the stub's name. */
static bool is_host_side(const struct kernel_name *function, const char *kernel)
{
    size_t length;
    const char *name = identifier_of(function->shown, &length);
    if (!begins(kernel, MANGLED)) /* from a template's wrapper */
        return length && strncmp(kernel, name, length) == 0 && strchr("<(", kernel[length]);
    return begins(function->raw, MANGLED) ? same_mangled(function->raw, kernel)
                                          : has_identifier(kernel, name, length);
}

static bool is_of_headers(const char *path)
{
    return word_in("cuda_runtime.h,cuda_runtime_api.h,device_functions.h", path_base(path)) !=
           UINT_MAX;
}

bool cuda_stub(const struct kernel_name *function, const struct kernel_name *file,
               const struct kernel_name *called)
{
    const char *kernel = called ? strstr(called->shown, STUB) : NULL;
    if (file && is_of_headers(file->raw))
        return true;
    if (!function || (!kernel && !strstr(function->raw, STUB) && !strstr(function->raw, "cuda")))
        return false;
    size_t length;
    const char *name = identifier_of(function->shown, &length);
    return begins(name, STUB) || begins(name, WRAPPER) || begins(name, STATIC) ||
           is_of_cuda(name, "__cuda") ||
           (kernel && is_host_side(function, kernel + strlen(STUB))) ||
           (!file && is_of_cuda(name, "cuda") && name[length] != '(');
}
