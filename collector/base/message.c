/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/moment.h"
#include "base/unit_text.h"
#include "error.h"

#define MESSAGE_BYTES_MAX 4096
#define LIMIT_ADVICE      "; raise ulimit -f"

static void print_line(const char *format, va_list list)
{
    char text[MESSAGE_BYTES_MAX];
    vsnprintf(text, sizeof text, format, list);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    char *clean = json_line(text); /* valid UTF-8, and nothing that terminals obey */
    fprintf(stderr, "gpuprof: %s\n", clean ? clean : "out of memory");
    free(clean);
}

void message(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_line(format, list);
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
    print_line(format, list);
    va_end(list);
    return EXIT_USAGE;
}

const char *reading_advice(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return RECORDING_ADVICE;
    case EACCES:
    case EPERM: return "; run this as a user who may read it, or ask its owner";
    default: return "";
    }
}

const char *writing_advice(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return "; name a file in a folder that there is";
    case EACCES:
    case EPERM:
    case EROFS: return "; name a file in a folder that you may write to";
    case EISDIR: return "; name a file, not a folder";
    case ENOSPC:
    case EDQUOT: return "; nothing is kept: name a file where there is room";
    case EFBIG: return "; nothing is kept: raise ulimit -f, or name a file where there is room";
    default: return "";
    }
}

const char *folder_advice(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return "; name a folder in one that there is";
    case EACCES:
    case EPERM:
    case EROFS: return "; name a folder that you may write to";
    case ENOSPC:
    case EDQUOT:
        return "; only the files that are whole are kept: name a folder where there is room";
    case EFBIG:
        return "; only the files that are whole are kept: raise ulimit -f, or name a folder where "
               "there is room";
    default: return "";
    }
}

const char *stdout_advice(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT: return "; send it to where there is room";
    case EFBIG: return LIMIT_ADVICE;
    default: return "";
    }
}

const char *aside_advice(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT: return "; nothing is kept: TMPDIR=DIR names another folder, with more room";
    case EFBIG: return LIMIT_ADVICE;
    default: return "; TMPDIR=DIR names another folder";
    }
}

/* ---- progress -------------------------------------------------------------------------------- */

struct progress *progress_begin(struct progress *p, const char *verb)
{
    const char *terminal = getenv("TERM");
    *p = (struct progress){.verb = verb, .begin_ns = monotonic_ns()};
    return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0 ? p : NULL;
}

/* "gpuprof: report: 25 % read, 12.0 MiB/s, 9 s left" */
static void show(const struct progress *p, double seconds)
{
    char rate[UNIT_TEXT_BYTES];
    uint64_t done = p->done < p->total ? p->done : p->total;
    double left = done ? seconds * (double)(p->total - done) / (double)done : 0;
    fprintf(stderr, "\rgpuprof: %s: %.0f %% read, %s/s, %.0f s left\033[K", p->verb,
            p->total ? 100 * (double)done / (double)p->total : 0,
            bytes_text(rate, (uint64_t)((double)p->done / seconds)), left);
}

void progress_add(struct progress *p, uint64_t bytes)
{
    if (!p)
        return;
    p->done += bytes;
    uint64_t now = monotonic_ns();
    if (now - p->begin_ns < PROGRESS_AFTER_NS || now - p->shown_ns < PROGRESS_EVERY_NS)
        return;
    show(p, (double)(now - p->begin_ns) / 1e9);
    p->shown_ns = now;
    p->is_shown = true;
}

void progress_clear(struct progress *p)
{
    if (p && p->is_shown)
        fputs("\r\033[K", stderr);
    if (p)
        p->is_shown = false;
}
