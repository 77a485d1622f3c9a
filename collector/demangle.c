/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mangled name of a few hundred bytes can stand for gigabytes (f(pair<A,A>, pair<B,B>, ...), each
 * naming the one before), and the C++ library's demangler has no bound of its own. So its memory is
 * bounded from outside, by the process's address space limit while it runs; the collector has only
 * one thread. After DEMANGLE_FAILURES_MAX names that ran into the limit no more are tried.
 */
#include "demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEMANGLE_MEMORY_MAX (32ull << 20)

/* Of the C++ ABI library: <cxxabi.h> is no C header. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ADDRESS_SPACE_LIMIT 0 /* the sanitizers' own memory is mapped in terabytes */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ADDRESS_SPACE_LIMIT 0
#endif
#endif
#ifndef ADDRESS_SPACE_LIMIT
#define ADDRESS_SPACE_LIMIT 1
#endif

/* Without a limit from outside: few enough references that the name cannot grow much. */
static int grows_little(const char *mangled)
{
    unsigned references = 0;
    for (const char *p = mangled; *p; p++)
        references += *p == 'S' || *p == 'T';
    return references < 16;
}

static unsigned long long address_space_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static char *demangle_limited(const char *mangled)
{
    struct rlimit old;
    unsigned long long now = ADDRESS_SPACE_LIMIT ? address_space_bytes() : 0;
    int limited = now != 0 && getrlimit(RLIMIT_AS, &old) == 0;
    if (limited && old.rlim_cur > now + DEMANGLE_MEMORY_MAX) {
        struct rlimit low = {.rlim_cur = now + DEMANGLE_MEMORY_MAX, .rlim_max = old.rlim_max};
        limited = setrlimit(RLIMIT_AS, &low) == 0;
    }
    if (!limited && !grows_little(mangled))
        return NULL;
    int status = 0;
    char *shown = __cxa_demangle(mangled, NULL, NULL, &status);
    if (limited)
        setrlimit(RLIMIT_AS, &old);
    return shown;
}

char *demangle(const char *mangled, size_t bytes_max, unsigned *failures)
{
    if (mangled[0] != '_' || mangled[1] != 'Z' || *failures >= DEMANGLE_FAILURES_MAX)
        return NULL;
    char *shown = demangle_limited(mangled);
    size_t length = shown ? strlen(shown) : 0;
    if (length > bytes_max) {
        ++*failures;
        free(shown);
        return NULL;
    }
    if (!shown)
        ++*failures; /* or no C++ name, which is as rare */
    return shown;
}
