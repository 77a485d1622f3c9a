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

void chrome_reach_into(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                       uint64_t end_ns)
{
    if (w->is_of_time) {
        begin_ns = begin_ns > w->from_ns ? begin_ns : w->from_ns;
        end_ns = end_ns < w->to_ns ? end_ns : w->to_ns;
    }
    if (begin_ns <= end_ns)
        chrome_reach(w, p, begin_ns, end_ns);
}
