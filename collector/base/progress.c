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
