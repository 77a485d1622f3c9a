/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common_moments.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

/* ---- medians --------------------------------------------------------------------------------- */

/* Of a collective the lower half of its times, complemented, is a heap in the even places from its
 * first end on, and the upper half one in the odd places: the least is at the top of each. */

static void heap_add(uint64_t *heap, uint32_t count, uint64_t value)
{
    uint32_t at = count;
    for (; at && value < heap[2 * ((at - 1) / 2)]; at = (at - 1) / 2)
        heap[2 * at] = heap[2 * ((at - 1) / 2)];
    heap[2 * at] = value;
}

/* Takes the top in exchange for something that is larger. */
static uint64_t heap_exchange(uint64_t *heap, uint32_t count, uint64_t value)
{
    uint64_t top = heap[0];
    uint32_t at = 0;
    for (uint32_t below; (below = 2 * at + 1) < count; at = below) {
        below += below + 1 < count && heap[2 * (below + 1)] < heap[2 * below];
        if (value <= heap[2 * below])
            break;
        heap[2 * at] = heap[2 * below];
    }
    heap[2 * at] = value;
    return top;
}

static void add_time(uint64_t *times, uint32_t count, uint64_t time)
{
    uint64_t *lower = times, *upper = times + 1;
    if (count % 2 == 0) {
        if (count && time > upper[0])
            time = heap_exchange(upper, count / 2, time);
        heap_add(lower, count / 2, ~time);
    } else {
        if (time < ~lower[0])
            time = ~heap_exchange(lower, count / 2 + 1, ~time);
        heap_add(upper, count / 2, time);
    }
}

bool common_moments_get(const struct common_moments *m, uint32_t end, uint64_t *moment_ns)
{
    uint32_t first = m->ends->list[end].first;
    if (!m->seen[first])
        return false;
    uint64_t low = ~m->times[first];
    uint64_t high = m->seen[first] % 2 ? low : m->times[first + 1];
    *moment_ns = low + (high - low) / 2;
    return true;
}

/* ---- hosts that wait ------------------------------------------------------------------------- */

/* One more of its ends counts: it changes places with the last of those that have as many. */
static void count_end(struct common_moments *m, uint32_t host)
{
    uint32_t count = ++m->counts[host];
    if (count > m->most)
        m->starts[m->most = count] = m->waiting_count;
    uint32_t to = --m->starts[count], from = m->places[host], other = m->waiting[to];
    m->waiting[from] = other;
    m->places[other] = from;
    m->waiting[to] = host;
    m->places[host] = to;
}

void common_moments_add(struct common_moments *m, uint32_t end, uint64_t time_ns)
{
    const struct collective_end *list = m->ends->list;
    uint32_t first = list[end].first;
    add_time(&m->times[first], m->seen[first], time_ns);
    if (m->seen[first]++)
        return;
    for (uint32_t i = first; i < m->ends->count && list[i].first == first; i++)
        if (!m->is_taken[list[i].host])
            count_end(m, list[i].host);
}

static int compare_hosts(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return ORDER(a, b);
}

uint32_t common_moments_take(struct common_moments *m, const uint32_t **hosts)
{
    if (m->most < COLLECTIVES_MIN)
        return 0;
    uint32_t share = m->most / WEAKEST;
    uint32_t left = m->starts[share > COLLECTIVES_MIN ? share : COLLECTIVES_MIN];
    uint32_t count = m->waiting_count - left;
    *hosts = &m->waiting[left];
    qsort(&m->waiting[left], count, sizeof *m->waiting, compare_hosts);
    for (uint32_t i = left; i < m->waiting_count; i++)
        m->is_taken[m->waiting[i]] = true;
    m->waiting_count = left;
    m->most = left ? m->counts[m->waiting[left - 1]] : 0;
    return count;
}

/* It stays where it is: what it has is not enough to be in anybody's way. */
bool common_moments_take_one(struct common_moments *m, uint32_t host)
{
    bool was_taken = m->is_taken[host];
    m->is_taken[host] = true;
    return !was_taken;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int common_moments_init(struct common_moments *m, const struct collective_ends *ends,
                        uint32_t host_count)
{
    *m = (struct common_moments){.ends = ends, .waiting_count = host_count};
    m->by_host = calloc(ends->count + 1u, sizeof *m->by_host);
    m->first = calloc(host_count + 2u, sizeof *m->first);
    m->seen = calloc(ends->count + 1u, sizeof *m->seen);
    m->times = calloc(ends->count + 1u, sizeof *m->times);
    m->counts = calloc(host_count + 1u, sizeof *m->counts);
    m->waiting = calloc(host_count + 1u, sizeof *m->waiting);
    m->places = calloc(host_count + 1u, sizeof *m->places);
    m->is_taken = calloc(host_count + 1u, sizeof *m->is_taken);
    if (!m->by_host || !m->first || !m->seen || !m->times || !m->counts || !m->waiting ||
        !m->places || !m->is_taken)
        return GPUPROF_NO_MEMORY;
    uint32_t most = 0;
    for (uint32_t i = 0; i < ends->count; i++)
        m->first[ends->list[i].host + 2]++;
    for (uint32_t i = 0; i < host_count; i++) {
        most = m->first[i + 2] > most ? m->first[i + 2] : most;
        m->first[i + 2] += m->first[i + 1];
        m->waiting[i] = m->places[i] = i;
    }
    for (uint32_t i = 0; i < ends->count; i++)
        m->by_host[m->first[ends->list[i].host + 1]++] = i;
    m->starts = calloc(most + 1u, sizeof *m->starts);
    return m->starts ? 0 : GPUPROF_NO_MEMORY;
}

void common_moments_release(struct common_moments *m)
{
    free(m->by_host);
    free(m->first);
    free(m->seen);
    free(m->times);
    free(m->counts);
    free(m->waiting);
    free(m->places);
    free(m->is_taken);
    free(m->starts);
    *m = (struct common_moments){0};
}
