/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/cuda_stub.h"

#include <stdio.h>
#include <string.h>

#include "symbol/shown_frame.h"

#define STUB           "__device_stub_"
#define WRAPPER        "__wrapper" STUB
#define STATIC         "libcudart_static_"
#define MANGLED        "_Z"
#define IDENTIFIER_MAX 1024
#define LENGTH_DIGITS  4 /* of an identifier, mangled */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "cudaLaunchKernel"; names with "__cuda" are nobody else's, wherever their lines are. */
static bool is_of_cuda(const char *name, const char *prefix)
{
    char next = begins(name, prefix) ? name[strlen(prefix)] : 0;
    return next >= 'A' && next <= 'Z';
}

/* Behind what the bracket at `p` encloses. */
static const char *behind_brackets(const char *p)
{
    unsigned depth = 0;
    do {
        depth += *p == '<' || *p == '(';
        depth -= *p == '>' || *p == ')';
    } while (*p++ && depth && *p);
    return p;
}

/* Of "void ns::scale<int>(float *)" that is "scale": where it begins, and its length. */
static const char *identifier_of(const char *text, size_t *length)
{
    const char *begin = text, *name = text;
    *length = 0;
    for (const char *p = text;;) {
        if (p > begin && strchr(" :<(", *p)) { /* or the end */
            name = begin;
            *length = strcspn(begin, ". :<("); /* a dot begins the mark of a clone */
        }
        if (!*p || (*p == '(' && *length))
            return name;
        if (*p == '<' || *p == '(') {
            begin = p = behind_brackets(p);
        } else if (*p == ' ' || *p == ':') {
            begin = ++p;
            *length = 0;
        } else {
            p++;
        }
    }
}

/* "_Z5scalePf" of the kernel, which is "_ZL5scalePf" on the host if it is static. */
static bool same_mangled(const char *host, const char *kernel)
{
    for (; *host && *host != '.'; host++)
        if (*host == *kernel)
            kernel++;
        else if (*host != 'L')
            return false;
    return !*kernel || *kernel == '(';
}

/* Has the mangled name this identifier in it? */
static bool has_identifier(const char *mangled, const char *name, size_t length)
{
    char wanted[IDENTIFIER_MAX + LENGTH_DIGITS + 1];
    if (!length || length > IDENTIFIER_MAX)
        return false;
    snprintf(wanted, sizeof wanted, "%zu%.*s", length, (int)length, name);
    const char *found = strstr(mangled, wanted);
    return found > mangled && !(found[-1] >= '0' && found[-1] <= '9');
}

/* Is `function` the host's side of the kernel whose stub's name goes on like that? */
static bool is_host_side(const struct kernel_name *function, const char *kernel)
{
    size_t length;
    const char *name = identifier_of(function->shown, &length);
    if (!begins(kernel, MANGLED)) /* of a template's wrapper */
        return length && strncmp(kernel, name, length) == 0 && strchr("<(", kernel[length]);
    return begins(function->raw, MANGLED) ? same_mangled(function->raw, kernel)
                                          : has_identifier(kernel, name, length);
}

static bool is_of_headers(const char *path)
{
    static const char *const headers[] = {"cuda_runtime.h", "cuda_runtime_api.h",
                                          "device_functions.h"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (strcmp(path_base(path), headers[i]) == 0)
            return true;
    return false;
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
