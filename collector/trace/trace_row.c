/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/chrome.h"

struct row_ids row_ids_of(uint32_t pid, uint32_t tid)
{
    struct row_ids ids;
    ids.bytes = (uint32_t)snprintf(ids.text, sizeof ids.text, "%u,\"tid\":%u,\"ts\":", pid, tid);
    return ids;
}

/* Returns the latest end for a slice added to the row now. */
static uint64_t limit_of(const struct trace_row *row)
{
    return row->depth ? row->open[row->depth - 1].inner_ns : ROW_OPEN_END;
}

/* Returns 1 ns earlier, so that inner slices end before outer ones. */
static uint64_t before_ns(uint64_t ns)
{
    return ns && ns != ROW_OPEN_END ? ns - 1 : ns;
}

static void drop(struct trace_row *row, uint32_t index)
{
    memmove(row->open + index, row->open + index + 1, (--row->depth - index) * sizeof *row->open);
}

static void push(struct trace_row *row, struct open_slice slice)
{
    if (row->depth == ROW_DEPTH_MAX)
        drop(row, 0);
    row->open[row->depth++] = slice;
}

/* Closes slices that ended by then. Returns a begin that differs from their ends. */
static uint64_t pop_until(struct trace_row *row, uint64_t begin_ns)
{
    if (begin_ns < row->begin_ns)
        begin_ns = row->begin_ns;
    for (; row->depth && row->open[row->depth - 1].end_ns <= begin_ns; row->depth--)
        begin_ns += row->open[row->depth - 1].end_ns == begin_ns;
    return begin_ns;
}

/* Real calls of a thread always fit; one left by longjmp closes only when the next one begins. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    *begin_ns = pop_until(row, *begin_ns);
    for (; row->depth && *end_ns > row->open[row->depth - 1].end_ns; row->depth--)
        *begin_ns = row->open[row->depth - 1].end_ns + 1;
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    /* The original end decides what is inside, even if an earlier one is shown. */
    uint64_t own_end_ns = *end_ns;
    if (*end_ns > limit_of(row))
        *end_ns = limit_of(row);
    if (*begin_ns > *end_ns)
        *begin_ns = *end_ns > row->begin_ns ? *end_ns : row->begin_ns;
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    push(row, (struct open_slice){own_end_ns, before_ns(*end_ns), 0, 0});
    row->begin_ns = *begin_ns;
}

bool trace_row_holds(const struct trace_row *row, uint64_t begin_ns, uint64_t end_ns)
{
    uint32_t at = row->depth;
    while (at && row->open[at - 1].end_ns <= begin_ns)
        at--;
    return begin_ns + 1 >= row->begin_ns && (!at || end_ns <= row->open[at - 1].end_ns);
}

void trace_row_open(struct trace_row *row, uint64_t begin_ns)
{
    uint64_t shown_ns = pop_until(row, begin_ns);
    push(row, (struct open_slice){ROW_OPEN_END, before_ns(limit_of(row)), begin_ns, shown_ns});
    row->begin_ns = shown_ns + 1;
}

/* Returns the place + 1 of the open slice that began then; 0: none. */
static uint32_t find_open(const struct trace_row *row, uint64_t begin_ns)
{
    uint32_t at = row->depth;
    while (at > 0 &&
           (row->open[at - 1].end_ns != ROW_OPEN_END || row->open[at - 1].since_ns != begin_ns))
        at--;
    return at;
}

bool trace_row_close(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    uint32_t at = find_open(row, *begin_ns);
    uint64_t shown_ns = *end_ns;
    if (at == 0)
        return false;
    for (uint32_t i = at; i < row->depth; i++) {
        if (row->open[i].end_ns == ROW_OPEN_END) {
            drop(row, at - 1);
            return false;
        }
        if (row->open[i].inner_ns + 1 >= shown_ns)
            shown_ns = row->open[i].inner_ns + 2;
    }
    if (shown_ns < row->begin_ns)
        shown_ns = row->begin_ns;
    if (at > 1 && shown_ns > row->open[at - 2].inner_ns)
        shown_ns = row->open[at - 2].inner_ns;
    *begin_ns = row->open[at - 1].begin_ns;
    *end_ns = shown_ns > *begin_ns ? shown_ns : *begin_ns;
    row->open[at - 1] = (struct open_slice){shown_ns, before_ns(shown_ns), 0, 0};
    row->depth = at;
    return true;
}

void trace_row_forget(struct trace_row *row, uint64_t begin_ns)
{
    uint32_t at = find_open(row, begin_ns);
    if (at > 0)
        drop(row, at - 1);
}
