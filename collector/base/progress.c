/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/moment.h"
#include "base/unit_text.h"

struct progress *progress_begin(struct progress *p, const char *verb)
{
    const char *terminal = getenv("TERM");
    *p = (struct progress){.verb = verb, .begin_ns = monotonic_ns()};
    return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0 ? p : NULL;
}

char *progress_text(const struct progress *p, uint64_t ns, char *text)
{
    char rate[UNIT_TEXT_BYTES];
    uint64_t done = p->done < p->total ? p->done : p->total;
    double seconds = (double)(ns ? ns : 1) / 1e9;
    double left = done ? seconds * (double)(p->total - done) / (double)done : 0;
    bytes_text(rate, (uint64_t)((double)p->done / seconds));
    snprintf(text, PROGRESS_TEXT_BYTES, "gpuprof: %s: %.0f %% read, %s/s, %.0f s left", p->verb,
             p->total ? 100 * (double)done / (double)p->total : 0, rate, left);
    return text;
}

void progress_add(struct progress *p, uint64_t bytes)
{
    char text[PROGRESS_TEXT_BYTES];
    if (!p)
        return;
    p->done += bytes;
    uint64_t now = monotonic_ns();
    if (now - p->begin_ns < PROGRESS_AFTER_NS || now - p->shown_ns < PROGRESS_EVERY_NS)
        return;
    fprintf(stderr, "\r%s\033[K", progress_text(p, now - p->begin_ns, text));
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
