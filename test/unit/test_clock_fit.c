/* SPDX-License-Identifier: Apache-2.0 */
/* How far a fit of two clocks is off is known here, and it says no less. */
#include "unit_test.h"

#include <math.h>

#include "clocks/clock_fit.h"

#define US          1e3
#define S           1e9
#define SAMPLES_MAX 3000
#define SEEDS       40

/* One clock against another, which is right, and when they were compared. */
struct scene {
    double drift;
    double wave_ns, period_ns; /* a rate that changes with the temperature */
    double step_ns, step_at;   /* it was set */
    double length_ns;          /* what is asked for: from 0 on */
    double bursts[6], burst_ns;
    unsigned burst_count, count; /* so many in each ... */
    double late;                 /* ... of which this share ends late */
};

static uint64_t state;

static double uniform(double low, double high)
{
    return low + (high - low) * ((double)(random_of(&state) >> 11) * 0x1p-53);
}

static double off_at(const struct scene *s, double ns)
{
    return s->drift * ns + s->wave_ns * sin(6.2831853 * ns / s->period_ns) +
           (ns >= s->step_at ? s->step_ns : 0);
}

/* Ends are some microseconds apart, but for those. */
static double late(const struct scene *s)
{
    return uniform(0, 1) < s->late ? uniform(20, 20000) * US : uniform(0, 4 * US);
}

static uint32_t make(const struct scene *s, struct clock_sample *samples)
{
    uint32_t count = 0;
    for (unsigned b = 0; b < s->burst_count; b++)
        for (unsigned i = 0; i < s->count; i++) {
            double ns = s->bursts[b] + s->burst_ns * (i + uniform(0, 1)) / s->count;
            double own = ns + off_at(s, ns) + late(s);
            samples[count++] = (struct clock_sample){own, ns + late(s) - own};
        }
    return count;
}

static void fit(const struct scene *s, struct clock_fit *f)
{
    static struct clock_sample samples[SAMPLES_MAX];
    uint32_t count = make(s, samples);
    clock_fit_make(f, samples, count, 0, s->length_ns);
}

/* At most, in all of the time that was asked for. */
static double error_of(const struct scene *s, const struct clock_fit *f)
{
    double most = 0;
    for (double ns = 0; ns <= s->length_ns; ns += s->length_ns / 500) {
        double off = off_at(s, ns);
        most = fmax(most, fabs(clock_fit_gap(f, ns + off) + off));
    }
    return most;
}

/* Each time with other numbers; the fit must not be off by more than it says, nor say more than
 * `said_ns`. */
static void check(struct scene scene, double said_ns)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct scene s = scene;
        struct clock_fit f;
        state = seed * 0x9e3779b97f4a7c15u;
        s.drift = uniform(-1e-4, 1e-4);
        s.period_ns *= uniform(1, 2);
        fit(&s, &f);
        assert_true(clock_fit_is_sane(&f));
        assert_true(error_of(&s, &f) <= f.uncertainty_ns);
        assert_true(f.uncertainty_ns <= said_ns);
    }
}

static const struct scene usual = {.period_ns = S,
                                   .length_ns = 60 * S,
                                   .burst_ns = 59 * S,
                                   .burst_count = 1,
                                   .count = 600,
                                   .late = 0.1};

static void seen_all_the_time(void **context)
{
    (void)context;
    check(usual, 20 * US);
}

static void few(void **context)
{
    struct scene s = usual;
    (void)context;
    s.count = 12;
    s.late = 0.02;
    s.length_ns = 10 * S;
    s.burst_ns = 9 * S;
    check(s, 150 * US);
}

/* Of so few three lie on a line by chance now and then: what is off it is not off by much. */
static void very_few(void **context)
{
    struct scene s = usual;
    (void)context;
    s.late = 0;
    s.length_ns = 10 * S;
    s.burst_ns = 9 * S;
    for (s.count = 5; s.count <= 12; s.count++)
        check(s, 200 * US);
}

/* A third of them late, and more: by less than ends are usually apart, or not. */
static void too_many_late(void **context)
{
    (void)context;
    for (unsigned i = 0; i < 2; i++) {
        struct clock_sample samples[] = {{0, 0}, {1 * S, 100}, {2 * S, 0}, {3 * S, 0}, {4 * S, 0}};
        struct clock_fit f;
        samples[1].gap_ns = i ? 900 * US : 12 * US;
        samples[3].gap_ns = i ? 700 * US : 15 * US;
        clock_fit_make(&f, samples, 5, 0, 4 * S);
        assert_int_equal(clock_fit_is_sane(&f), !i);
        assert_true(i || f.uncertainty_ns > 12 * US);
    }
}

/* What follows is what nobody has seen. */
static void seen_at_the_begin(void **context)
{
    struct scene s = usual;
    (void)context;
    s.wave_ns = 60 * US;
    s.period_ns = 60 * S;
    s.length_ns = 120 * S;
    s.burst_ns = 10 * S;
    check(s, 2000 * US);
}

static void seen_now_and_then(void **context)
{
    struct scene s = usual;
    (void)context;
    s.wave_ns = 30 * US;
    s.period_ns = 90 * S;
    s.length_ns = 120 * S;
    s.burst_ns = 2 * S;
    s.burst_count = 4;
    s.count = 100;
    memcpy(s.bursts, (double[]){2 * S, 20 * S, 75 * S, 110 * S}, 4 * sizeof *s.bursts);
    check(s, 1000 * US);
}

/* A step that no slope tells from a clock that is steered. */
static void a_small_step(void **context)
{
    struct scene s = usual;
    (void)context;
    s.step_ns = 300 * US;
    for (s.step_at = 5 * S; s.step_at < 56 * S; s.step_at += 7.3 * S)
        check(s, 1000 * US);
}

/* Also where it is before or behind most of what was seen. */
static void a_large_step(void **context)
{
    (void)context;
    for (double at = 4 * S; at < 57 * S; at += 4.7 * S)
        for (double step = 5e6; step < 1e12; step *= 100) {
            struct scene s = usual;
            struct clock_fit f;
            state = 77;
            s.step_at = at;
            s.step_ns = -step;
            fit(&s, &f);
            assert_false(clock_fit_is_sane(&f));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seen_all_the_time), cmocka_unit_test(few),
        cmocka_unit_test(very_few),          cmocka_unit_test(too_many_late),
        cmocka_unit_test(seen_at_the_begin), cmocka_unit_test(seen_now_and_then),
        cmocka_unit_test(a_small_step),      cmocka_unit_test(a_large_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
