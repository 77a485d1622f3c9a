/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/chrome.h"

void chrome_reach(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                  uint64_t end_ns)
{
    struct process_span *span = chrome_span(w, p);
    if (begin_ns < span->begin_ns)
        span->begin_ns = begin_ns;
    if (end_ns > span->end_ns)
        span->end_ns = end_ns;
    if (end_ns > w->last_ns)
        w->last_ns = end_ns;
}
