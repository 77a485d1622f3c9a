/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mangled name of a few hundred bytes can stand for gigabytes and keep a demangler busy for
 * years: f(pair<A, A>, pair<B, B>, ...) where each argument names the one before twice. Neither the
 * C++ library's demangler nor libiberty's, for Rust, bounds that. So a name with more back
 * references than can do harm is demangled in a child process, which a timer ends.
 */
#include "symbol/demangle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"

#define HARMLESS_REFERENCES 16   /* 2^8 or 3^5 times as long at the worst */
#define HARMLESS_BYTES      4096 /* older versions of libiberty do not bound how deep they go */
#define CHILD_SECONDS       0.2  /* names of tens of kilobytes take some milliseconds */

struct question {
    const char *mangled;
    size_t bytes_max;
};

/* Of the C++ ABI library: <cxxabi.h> is no C header. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Of libiberty, whose header declares many names of the C library anew. */
char *rust_demangle(const char *mangled, int options);

/*
 * Few references to what the name said before (C++: S_, S1_, T_; Rust: B_, B1_), no expansion of a
 * pack (Dp, sp) and no list of lifetimes whose length is a number in the name (FG1_, DG1_).
 */
static bool is_harmless(const char *mangled)
{
    bool rust = mangled[1] == 'R';
    unsigned references = 0;
    const char *p = mangled;
    for (; *p; p++) {
        bool numbered = p[1] == '_' || (p[1] >= '0' && p[1] <= '9') || (p[1] >= 'A' && p[1] <= 'Z');
        references += rust ? *p == 'B' : (*p == 'S' || *p == 'T') && numbered;
        if (rust ? (p[0] == 'D' || p[0] == 'F') && p[1] == 'G' && p[2] != '_'
                 : (p[0] == 'D' || p[0] == 's') && p[1] == 'p')
            return false;
    }
    return references <= HARMLESS_REFERENCES && p - mangled <= HARMLESS_BYTES;
}

/* The older mangling of Rust has the form of a C++ name with a hash at its end. */
static char *demangle_here(const char *mangled)
{
    int status = 0;
    char *shown = rust_demangle(mangled, 0);
    return shown || mangled[1] == 'R' ? shown : __cxa_demangle(mangled, NULL, NULL, &status);
}

/* What the name stands for, or its begin; "" if it is no such name. */
static void put_demangled(void *result, void *context)
{
    const struct question *question = context;
    char *shown = demangle_here(question->mangled);
    if (shown)
        strncpy(result, shown, question->bytes_max + 1);
}

/* As demangle; *harmful if the child was cut off or the name is too long. */
static char *demangle_aside(const char *mangled, size_t bytes_max, bool *harmful)
{
    struct question question = {mangled, bytes_max};
    char *text = calloc(bytes_max + 2, 1);
    if (!text)
        return NULL;
    *harmful = !aside_run(put_demangled, text, bytes_max + 2, &question, CHILD_SECONDS) ||
               strlen(text) > bytes_max;
    if (!*harmful && *text)
        return text;
    free(text);
    return NULL;
}

char *demangle(const char *mangled, size_t bytes_max, unsigned *failures)
{
    if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R'))
        return NULL;
    bool harmful = false;
    char *shown = NULL;
    if (is_harmless(mangled)) {
        shown = demangle_here(mangled);
        if (shown && strlen(shown) > bytes_max) {
            free(shown);
            shown = NULL;
        }
    } else if (*failures < DEMANGLE_FAILURES_MAX) {
        shown = demangle_aside(mangled, bytes_max, &harmful);
    }
    *failures += harmful;
    return shown;
}
