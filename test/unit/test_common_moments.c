/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts are taken, and moments told, as by one who counts and sorts anew each time. */
#include "unit_test.h"

#include <stdlib.h>

#include "resolve/collective_ends.h"

#define HOSTS_MAX 12
#define ENDS_MOST 400

static struct collective_end list[ENDS_MOST];
static struct collective_ends ends = {.list = list};
static uint32_t host_count;
static bool is_known[HOSTS_MAX], is_taken[HOSTS_MAX];

/* Some hosts are in each collective, in order. */
static void make(uint64_t *state)
{
    host_count = 2 + (uint32_t)(random_of(state) % (HOSTS_MAX - 1));
    uint64_t share = 1 + random_of(state) % 8, collectives = random_of(state) % 32;
    ends.count = 0;
    for (uint64_t c = 0; c < collectives; c++) {
        uint32_t first = ends.count;
        for (uint32_t host = 0; host < host_count; host++)
            if (random_of(state) % 10 < share)
                list[ends.count++] = (struct collective_end){
                    .number = c, .host = host, .first = first, .end_ns = random_of(state) >> 1};
    }
    memset(is_known, 0, sizeof is_known);
    memset(is_taken, 0, sizeof is_taken);
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static bool moment_of(uint32_t end, uint64_t *moment_ns)
{
    uint64_t times[HOSTS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < ends.count; i++)
        if (list[i].first == list[end].first && is_known[list[i].host])
            times[count++] = list[i].end_ns;
    qsort(times, count, sizeof *times, compare);
    if (count)
        *moment_ns = times[(count - 1) / 2] + (times[count / 2] - times[(count - 1) / 2]) / 2;
    return count > 0;
}

static uint32_t take(uint32_t *hosts)
{
    uint32_t counts[HOSTS_MAX] = {0}, most = 0, count = 0;
    uint64_t moment_ns;
    for (uint32_t i = 0; i < ends.count; i++)
        if (!is_taken[list[i].host] && moment_of(i, &moment_ns))
            counts[list[i].host]++;
    for (uint32_t i = 0; i < host_count; i++)
        most = counts[i] > most ? counts[i] : most;
    for (uint32_t i = 0; i < host_count; i++)
        if (counts[i] >= COLLECTIVES_MIN && counts[i] >= most / WEAKEST) {
            is_taken[i] = true;
            hosts[count++] = i;
        }
    return count;
}

static void add(struct common_moments *m, uint32_t host)
{
    is_known[host] = true;
    for (uint32_t i = 0; i < ends.count; i++)
        if (list[i].host == host)
            common_moments_add(m, i, list[i].end_ns);
    for (uint32_t i = 0; i < ends.count; i++) {
        uint64_t moment_ns = 0, expected_ns = 0;
        assert_int_equal(common_moments_get(m, i, &moment_ns), moment_of(i, &expected_ns));
        assert_int_equal(moment_ns, expected_ns);
    }
}

static void as_if_counted_anew(void **context)
{
    uint64_t state = 12;
    uint32_t rounds = 0, roots = 0;
    (void)context;
    for (unsigned run = 0; run < 400; run++) {
        struct common_moments m;
        make(&state);
        assert_int_equal(common_moments_init(&m, &ends, host_count), 0);
        for (uint32_t root = 0; root < host_count; root++) {
            assert_int_equal(m.is_taken[root], is_taken[root]);
            if (is_taken[root])
                continue;
            is_taken[root] = m.is_taken[root] = true;
            add(&m, root);
            const uint32_t *hosts = NULL;
            uint32_t expected[HOSTS_MAX], count;
            roots++;
            for (; (count = take(expected)) > 0; rounds++) {
                assert_int_equal(common_moments_take(&m, &hosts), count);
                for (uint32_t i = 0; i < count; i++)
                    assert_int_equal(hosts[i], expected[i]);
                for (uint32_t i = 0; i < count; i++)
                    add(&m, expected[i]);
            }
            assert_int_equal(common_moments_take(&m, &hosts), 0);
        }
        common_moments_release(&m);
    }
    assert_true(rounds > 400 && roots > 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_if_counted_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
