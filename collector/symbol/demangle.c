/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mangled name of a few hundred bytes can stand for gigabytes and keep a demangler busy for
 * years: f(pair<A, A>, pair<B, B>, ...) where each argument names the one before twice. Neither the
 * C++ library's demangler nor libiberty's, for Rust, bounds that. So a name with more back
 * references than can do harm is demangled in a child process, which a timer ends.
 */
#include "symbol/demangle.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define HARMLESS_REFERENCES 16     /* 2^8 or 3^5 times as long at the worst */
#define HARMLESS_BYTES      4096   /* older versions of libiberty do not bound how deep they go */
#define CHILD_TIME_US       200000 /* names of tens of kilobytes take some milliseconds */

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

/* Writes what the name stands for; nothing if it is no such name. */
_Noreturn static void child_demangle(const char *mangled, int to)
{
    struct itimerval limit = {.it_value = {.tv_usec = CHILD_TIME_US}};
    sigset_t none;
    signal(SIGALRM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
    char *shown = demangle_here(mangled);
    size_t left = shown ? strlen(shown) : 0;
    for (ssize_t put; left && (put = write(to, shown, left)) > 0; left -= (size_t)put)
        shown += put;
    _exit(left ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* The child's answer up to bytes_max + 1 bytes, terminated; their number. */
static size_t read_answer(int from, char *text, size_t bytes_max)
{
    size_t length = 0;
    while (length <= bytes_max) {
        ssize_t got = read(from, text + length, bytes_max + 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    return length;
}

/* As demangle; *harmful if the child was cut off or the name is too long. */
static char *demangle_aside(const char *mangled, size_t bytes_max, bool *harmful)
{
    int ends[2];
    char *text = malloc(bytes_max + 2);
    if (!text || pipe(ends) < 0) {
        free(text);
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        child_demangle(mangled, ends[1]);
    }
    close(ends[1]);
    size_t length = child > 0 ? read_answer(ends[0], text, bytes_max) : 0;
    close(ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    *harmful = child > 0 && (status != 0 || length > bytes_max);
    if (*harmful || length == 0) {
        free(text);
        return NULL;
    }
    return text;
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
