/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mangled name of a few hundred bytes can stand for gigabytes and occupy a demangler for years:
 * in f(pair<A, A>, pair<B, B>, ...) each argument names the previous one twice. Neither the C++
 * library's demangler nor libiberty's (for Rust) bounds that. So names with too many back
 * references are demangled in a child process with a time limit.
 */

#include "symbol/kernel_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"

#define HARMLESS_REFERENCES 16   /* at most 2^8 or 3^5 times as long */
#define HARMLESS_BYTES      4096 /* older libiberty does not bound its recursion */
#define CHILD_SECONDS       0.2  /* names of tens of kilobytes take some milliseconds */

struct question {
    const char *mangled;
    size_t bytes_max;
};

/* From the C++ ABI library, as <cxxabi.h> is no C header. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* From libiberty, whose header declares many C library names again. */
char *rust_demangle(const char *mangled, int options);

/* Returns true for few back references (C++: S_, S1_, T_; Rust: B_, B1_), no pack expansion (Dp,
 * sp) and no lifetime list with a count from the name (FG1_, DG1_). */
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

/* Rust's older mangling looks like a C++ name with a hash at its end. */
static char *demangle_here(const char *mangled)
{
    int status = 0;
    char *shown = rust_demangle(mangled, 0);
    return shown || mangled[1] == 'R' ? shown : __cxa_demangle(mangled, NULL, NULL, &status);
}

/* Runs in the child: writes the demangled name, or its begin; "" if it cannot be demangled. */
static void put_demangled(void *result, void *context)
{
    const struct question *question = context;
    char *shown = demangle_here(question->mangled);
    if (shown)
        strncpy(result, shown, question->bytes_max + 1);
}

/* Like demangle; *harmful if the child timed out or the name is too long. */
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
