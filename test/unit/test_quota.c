/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroup limits the process, from folders as the kernel has them. */
#include "unit_test.h"

#include "host/quota.h"
#include "record/thread.h"
#include "store/meta.h"

static char root[256];

/* What it tells goes nowhere here. */
bool thread_append(struct thread *t, const struct record *r)
{
    (void)t, (void)r;
    return true;
}

void meta_append_text(struct thread *writer, const char *key, const char *text)
{
    (void)writer, (void)key, (void)text;
}

static void put(const char *name, const char *text)
{
    char path[1024], command[1100];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", path);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* In thousandths of a processor; 0: none is found. */
static uint64_t found(const char *groups, struct quota_counts *counts)
{
    char list[600], mounts[600];
    struct quota q;
    put("groups", groups);
    snprintf(list, sizeof list, "%s/groups", root);
    snprintf(mounts, sizeof mounts, "%s/mounts", root);
    if (!quota_find(&q, list, mounts))
        return 0;
    assert_true(quota_read(&q, counts));
    kept_file_close(&q.stat);
    return q.milli_processors;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "%s", scratch_folder());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(root);
    return 0;
}

static void version_2_has_the_nearest_group_with_a_limit(void **state)
{
    struct quota_counts c;
    (void)state;
    put("mounts/pod/cpu.max", "250000 100000\n");
    put("mounts/pod/cpu.stat", "usage_usec 9\nnr_periods 8\nnr_throttled 7\nthrottled_usec 6\n");
    put("mounts/pod/one/cpu.max", "max 100000\n");
    assert_int_equal(found("0::/pod/one\n", &c), 2500);
    assert_int_equal(c.throttled, 7);
    assert_int_equal(c.throttled_ns, 6000);
    assert_int_equal(found("0::/\n", &c), 0);
    assert_int_equal(found("0::/elsewhere\n", &c), 0);
    put("mounts/cpu.max", "50000 100000\n");
    put("mounts/cpu.stat", "nr_throttled 1\n");
    assert_int_equal(found("0::/elsewhere\n", &c), 500); /* a container's mount is its group */
    assert_int_equal(c.throttled_ns, 0);
}

static void version_1_has_its_own_folder(void **state)
{
    struct quota_counts c;
    (void)state;
    put("mounts/cpu,cpuacct/docker/cpu.cfs_quota_us", "150000\n");
    put("mounts/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    put("mounts/cpu,cpuacct/docker/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 99\n");
    put("mounts/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    const char *groups = "5:cpuset:/\n4:cpu,cpuacct:/docker\n1:name=systemd:/\n0::/\n";
    assert_int_equal(found(groups, &c), 1500);
    assert_int_equal(c.throttled, 2);
    assert_int_equal(c.throttled_ns, 99);
    assert_int_equal(found("4:cpu,cpuacct:/\n", &c), 0);
    assert_int_equal(found("4:cpuset:/docker\n4\n4:cpu\n", &c), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2_has_the_nearest_group_with_a_limit, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(version_1_has_its_own_folder, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
