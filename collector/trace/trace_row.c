/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_row.h"

#include <stdio.h>
#include <string.h>

void trace_row_name(struct trace_row *row, uint32_t pid, uint32_t tid)
{
    row->ids_bytes =
        (uint32_t)snprintf(row->ids, sizeof row->ids, "%u,\"tid\":%u,\"ts\":", pid, tid);
}

/* What comes into the row ends by then. */
static uint64_t limit_of(const struct trace_row *row)
{
    return row->depth ? row->inner_ns[row->depth - 1] : ROW_OPEN_END;
}

/* One before: there is room for it, or it does not matter. */
static uint64_t before(uint64_t ns)
{
    return ns && ns != ROW_OPEN_END ? ns - 1 : ns;
}

static void push(struct trace_row *row, uint64_t end_ns, uint64_t inner_ns)
{
    if (row->depth == ROW_DEPTH_MAX) {
        memmove(row->ends_ns, row->ends_ns + 1, sizeof row->ends_ns - sizeof row->ends_ns[0]);
        memmove(row->inner_ns, row->inner_ns + 1, sizeof row->inner_ns - sizeof row->inner_ns[0]);
        row->depth--;
    }
    row->ends_ns[row->depth] = end_ns;
    row->inner_ns[row->depth++] = inner_ns;
}

/* Real calls of one thread fit by themselves; one left by longjmp is closed only when the next one
 * begins. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    if (*begin_ns < row->begin_ns)
        *begin_ns = row->begin_ns;
    while (row->depth && row->ends_ns[row->depth - 1] <= *begin_ns) {
        if (row->ends_ns[row->depth - 1] == *begin_ns)
            ++*begin_ns;
        row->depth--;
    }
    while (row->depth && *end_ns > row->ends_ns[row->depth - 1]) {
        *begin_ns = row->ends_ns[row->depth - 1] + 1;
        row->depth--;
    }
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    /* Its own end says what is inside of it, although it is shown with an earlier one. */
    uint64_t own_end_ns = *end_ns;
    if (*end_ns > limit_of(row))
        *end_ns = limit_of(row);
    if (*begin_ns > *end_ns)
        *begin_ns = *end_ns > row->begin_ns ? *end_ns : row->begin_ns;
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    push(row, own_end_ns, before(*end_ns));
    row->begin_ns = *begin_ns;
}

uint64_t trace_row_open(struct trace_row *row, uint64_t begin_ns)
{
    if (begin_ns < row->begin_ns)
        begin_ns = row->begin_ns;
    while (row->depth && row->ends_ns[row->depth - 1] <= begin_ns) {
        if (row->ends_ns[row->depth - 1] == begin_ns)
            begin_ns++;
        row->depth--;
    }
    push(row, ROW_OPEN_END, before(limit_of(row)));
    row->begin_ns = begin_ns + 1;
    return begin_ns;
}

bool trace_row_close(struct trace_row *row, uint64_t *end_ns)
{
    uint32_t at = row->depth;
    while (at > 0 && row->ends_ns[at - 1] != ROW_OPEN_END) {
        if (row->inner_ns[at - 1] + 1 >= *end_ns)
            *end_ns = row->inner_ns[at - 1] + 2;
        at--;
    }
    if (at == 0)
        return false;
    at--;
    if (*end_ns < row->begin_ns)
        *end_ns = row->begin_ns;
    if (at > 0 && *end_ns > row->inner_ns[at - 1])
        *end_ns = row->inner_ns[at - 1];
    row->ends_ns[at] = *end_ns;
    row->inner_ns[at] = before(*end_ns);
    row->depth = at + 1;
    return true;
}

void trace_row_forget(struct trace_row *row)
{
    bool passed = false;
    for (uint32_t at = row->depth; at-- > 0;) {
        if (row->ends_ns[at] != ROW_OPEN_END)
            continue;
        if (passed) {
            memmove(row->ends_ns + at, row->ends_ns + at + 1,
                    (row->depth - at - 1) * sizeof row->ends_ns[0]);
            memmove(row->inner_ns + at, row->inner_ns + at + 1,
                    (row->depth - at - 1) * sizeof row->inner_ns[0]);
            row->depth--;
            return;
        }
        passed = true;
    }
}
