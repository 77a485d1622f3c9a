/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"

#define MESSAGE_BYTES_MAX 4096

_Static_assert((int)EXIT_USAGE == MEMORY_EXIT, "one code has both meanings");

static void message_print_line(const char *format, va_list list)
{
    char text[MESSAGE_BYTES_MAX];
    vsnprintf(text, sizeof text, format, list);
    char *clean = json_line(text); /* valid UTF-8 without terminal controls */
    fprintf(stderr, "gpuprof: %s\n", clean);
    free(clean);
}

void message(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    message_print_line(format, list);
    va_end(list);
}

enum exit_code say_error(const char *verb, int error)
{
    if (error < 0)
        message("%s: %s", verb, gpuprof_error_text(error));
    return error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

enum exit_code usage_error(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    message_print_line(format, list);
    va_end(list);
    return EXIT_USAGE;
}

const char *reading_advice(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return RECORDING_ADVICE;
    case EACCES:
    case EPERM: return "; run this as a user who may read it";
    default: return "";
    }
}

const char *writing_advice(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return "; name one in an existing folder";
    case EACCES:
    case EPERM:
    case EROFS: return "; name one in a folder that you may write to";
    case EISDIR: return "; name a file, not a folder";
    case ENOSPC:
    case EDQUOT: return "; only complete files were kept: name one on a disk with free space";
    case EFBIG: return "; only complete files were kept: raise ulimit -f";
    default: return "";
    }
}

/* ---- progress -------------------------------------------------------------------------------- */

struct progress *progress_begin(const char *verb, uint64_t total)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDERR_FILENO) || !terminal || strcmp(terminal, "dumb") == 0)
        return NULL;
    struct progress *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    *p = (struct progress){.verb = verb, .total = total, .begin_ns = monotonic_ns()};
    p->to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* workers redirect stderr */
    return p;
}

/* Prints e.g. "gpuprof: report: 25 % read, 12.0 MiB/s, 9 s left". */
static void message_show(const struct progress *p, double seconds)
{
    char rate[UNIT_TEXT_BYTES];
    uint64_t all = __atomic_load_n(&p->done, __ATOMIC_RELAXED),
             done = all < p->total ? all : p->total;
    double left = done ? seconds * (double)(p->total - done) / (double)done : 0;
    dprintf(p->to, "\rgpuprof: %s: %.0f %% read, %s/s, %.0f s left\033[K", p->verb,
            p->total ? 100 * (double)done / (double)p->total : 0,
            bytes_text(rate, (uint64_t)((double)all / seconds)), left);
}

void progress_add(struct progress *p, uint64_t bytes)
{
    if (!p)
        return;
    __atomic_add_fetch(&p->done, bytes, __ATOMIC_RELAXED);
    uint64_t now = monotonic_ns(), shown = __atomic_load_n(&p->shown_ns, __ATOMIC_RELAXED);
    if (now - p->begin_ns < PROGRESS_AFTER_NS || now - shown < PROGRESS_EVERY_NS ||
        !__atomic_compare_exchange_n(&p->shown_ns, &shown, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    message_show(p, (double)(now - p->begin_ns) / 1e9);
}

void progress_clear(struct progress *p)
{
    if (!p || !p->shown_ns)
        return;
    dprintf(p->to, "\r\033[K");
    p->shown_ns = 0;
}
