/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk: what it assembles is the same whether facts were known before or are learnt on the way,
 * for recordings whose work begins before its call or has none, and whose names come late.
 */
#include "unit_test.h"

#include "api/api.h"
#include "record/gpu_record.h"
#include "resolve/event_walk.h"
#include "stream_builder.h"

#define MAIN       1
#define DEVICE     2
#define WORKS_MAX  4000
#define MANY_CALLS 300000
#define PAUSED_NS  330000 /* behind all other work */

/* What was said of a piece of work, by its number, which stands in its graph's place. */
struct reported {
    unsigned takes;
    bool is_called;
    uint32_t id;
    uint64_t call_begin_ns;
};

struct listener {
    struct reported works[WORKS_MAX];
    unsigned calls, closed, left, marks, ends;
};

static int take(void *context, const struct slice *s)
{
    struct listener *l = context;
    l->calls += s->event.record->type == RECORD_CALL;
    l->closed += s->change == SPAN_CLOSED;
    l->left += s->change == SPAN_LEFT;
    l->marks += s->change == SPAN_MARKED;
    if (s->event.record->type != RECORD_KERNEL)
        return 0;
    struct reported *reported = &l->works[record_arg(s->event.record, KERNEL_GRAPH)];
    reported->takes++;
    reported->is_called = s->is_called;
    reported->id = s->is_called ? s->call.id : 0;
    reported->call_begin_ns = s->is_called ? s->call.begin_ns : 0;
    return 0;
}

static int end(void *context)
{
    ((struct listener *)context)->ends++;
    return 0;
}

static struct consumer consumer_of(struct listener *l, unsigned needs)
{
    *l = (struct listener){.calls = 0};
    return (struct consumer){.context = l, .needs = needs, .take = take, .end = end};
}

static void open_folder(struct recording *rec, const char *folder)
{
    struct recording_options options = {.keep_live = true};
    char *paths[] = {(char *)folder};
    assert_int_equal(recording_open(rec, paths, 1, &options), EXIT_OK);
}

static void add_kernel(struct stream_builder *b, uint64_t begin, uint32_t id, uint64_t number)
{
    uint64_t args[13] = {0, 1, 7, 1 + number % 3, 1, 1, 0, 0, 0, 0, 0, 0, number};
    builder_record(b, DEVICE, RECORD_KERNEL, begin, 50, id, 13, args, NULL);
}

static void begin_process(struct stream_builder *b, unsigned number)
{
    builder_init(b, number);
    builder_api(b);
    builder_thread(b, MAIN, 0, b->header.pid, "main");
    builder_thread(b, DEVICE, 0, b->header.pid + 1, GPU_THREAD_NAME);
}

/* Two launches that leave no work, which is missing of the one behind the pause only. */
static void add_pause(struct stream_builder *b, uint64_t begin)
{
    builder_record(b, MAIN, RECORD_PAUSE, begin, 0, 0, 1, &(uint64_t){1}, NULL);
    builder_correlated(b, MAIN, API_CODE_cudaLaunchKernel, begin + 10, 5, 1000000);
    builder_record(b, MAIN, RECORD_PAUSE, begin + 20, 0, 0, 1, &(uint64_t){0}, NULL);
    builder_correlated(b, MAIN, API_CODE_cudaLaunchKernel, begin + 30, 5, 1000001);
}

/* Calls, and work near them, before them, or of none. */
static unsigned make_work(const char *folder, uint64_t seed, unsigned processes)
{
    unsigned works = 0;
    for (unsigned p = 0; p < processes; p++) {
        struct stream_builder b;
        begin_process(&b, p);
        for (uint32_t i = 1; i <= 300; i++) {
            uint64_t begin = 20000 + 1000 * i + random_of(&seed) % 900;
            builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, begin, 90, i);
            for (unsigned k = random_of(&seed) % 4; k > 0; k--) {
                uint64_t at = begin + random_of(&seed) % 5000;
                at = random_of(&seed) % 10 ? at : at - random_of(&seed) % 20000;
                add_kernel(&b, at, random_of(&seed) % 10 ? i : 1000 + i, works++);
            }
            if (random_of(&seed) % 50 == 0)
                builder_flush(&b);
        }
        add_pause(&b, PAUSED_NS);
        builder_finish(&b, "%s/%u.gpuprof", folder, p);
    }
    assert_true(works < WORKS_MAX);
    return works;
}

/* Each process by itself, as of a trace a rank. */
static void check_each_alone(const struct walk *surveyed)
{
    static struct listener l;
    struct walk walk;
    walk_init(&walk, surveyed->rec);
    assert_int_equal(walk_survey(&walk), 0);
    assert_int_equal(walk.survey.origin_ns, surveyed->survey.origin_ns);
    for (uint32_t i = surveyed->rec->count; i-- > 0;) {
        struct consumer consumer = consumer_of(&l, WALK_WORK | WALK_LOSSES);
        assert_int_equal(walk_run(&walk, surveyed->rec->processes[i], &consumer, 1), 0);
        assert_memory_equal(&walk.losses[i], &surveyed->losses[i], sizeof(struct losses));
    }
    walk_release(&walk);
}

static void test_one_walk_or_two(void **state)
{
    static struct listener one, two;
    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        const char *folder = scratch_folder();
        unsigned works = make_work(folder, 5 + round, 1 + round % 3);
        struct recording rec;
        struct walk walk, surveyed;
        open_folder(&rec, folder);
        struct consumer first = consumer_of(&one, WALK_WORK | WALK_LOSSES);
        struct consumer second = consumer_of(&two, WALK_WORK | WALK_LOSSES);
        walk_init(&walk, &rec);
        walk.survey.calls.run_max = round < 3 ? 100 : CORRELATION_RUN;
        walk.survey.calls.added = UINT32_MAX - 50; /* soon they begin at 0 again */
        assert_int_equal(walk_run(&walk, NULL, &first, 1), 0);
        walk_init(&surveyed, &rec);
        assert_int_equal(walk_survey(&surveyed), 0);
        assert_int_equal(walk_run(&surveyed, NULL, &second, 1), 0);
        assert_int_equal(one.ends + two.ends, 2);
        for (unsigned i = 0; i < works; i++) {
            assert_int_equal(one.works[i].takes, 1);
            assert_memory_equal(&one.works[i], &two.works[i], sizeof one.works[i]);
        }
        for (uint32_t i = 0; i < rec.count; i++) {
            assert_true(walk.losses[i].gpu_unpaired > 0 && walk.losses[i].gpu_missing > 0);
            assert_memory_equal(&walk.losses[i], &surveyed.losses[i], sizeof(struct losses));
            assert_int_equal(rec.processes[i]->losses.gpu_unpaired, 0); /* reading changes none */
        }
        check_each_alone(&surveyed);
        /* Once more, from the beginning. */
        second = consumer_of(&two, WALK_WORK | WALK_LOSSES);
        assert_int_equal(walk_run(&surveyed, rec.processes[0], &second, 1), 0);
        assert_memory_equal(&walk.losses[0], &surveyed.losses[0], sizeof(struct losses));
        walk_release(&walk);
        walk_release(&surveyed);
        recording_release(&rec);
        scratch_remove(folder);
    }
}

/* More calls than the table has room for, and their work long behind them. */
static void test_far(void **state)
{
    static struct listener l;
    (void)state;
    const char *folder = scratch_folder();
    struct stream_builder b;
    begin_process(&b, 0);
    for (uint32_t i = 1; i <= MANY_CALLS; i++)
        builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, 10 * i, 5, i);
    for (unsigned i = 0; i < 1000; i++)
        add_kernel(&b, 10 * MANY_CALLS + i, 1 + i * 299, i);
    builder_finish(&b, "%s/a.gpuprof", folder);
    struct recording rec;
    struct walk walk;
    open_folder(&rec, folder);
    walk_init(&walk, &rec);
    struct consumer consumer = consumer_of(&l, WALK_WORK | WALK_LOSSES);
    assert_int_equal(walk_run(&walk, NULL, &consumer, 1), 0);
    assert_true(walk.survey.calls.spool.fd >= 0);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(l.works[i].id, 1 + i * 299);
    assert_int_equal(walk.losses[0].gpu_missing, MANY_CALLS - 1000);
    walk_release(&walk);
    recording_release(&rec);
    scratch_remove(folder);
}

static int stop(void *context, const struct slice *s)
{
    (void)s;
    return ++*(unsigned *)context == 5 ? WALK_STOP : 0;
}

/* Each gets all slices, and with them what any of them needs; one may end it for all. */
static void test_consumers(void **state)
{
    static struct listener ranges, plain;
    unsigned count = 0;
    (void)state;
    const char *folder = scratch_folder();
    struct stream_builder b;
    begin_process(&b, 0);
    for (uint64_t i = 0; i < 4; i++) {
        const uint64_t args[6] = {0};
        builder_record(&b, MAIN, RECORD_PUSH, 100 * i, 0, 0, 6, args, "outer");
        builder_correlated(&b, MAIN, API_CODE_cudaFree, 100 * i + 10, 5, 0);
        if (i < 3)
            builder_record(&b, MAIN, RECORD_POP, 100 * i + 20, 0, 0, 1, args, NULL);
        builder_record(&b, MAIN, RECORD_MARK, 100 * i + 30, 0, 0, 6, args, "mark");
    }
    builder_finish(&b, "%s/a.gpuprof", folder);
    struct recording rec;
    struct walk walk;
    open_folder(&rec, folder);
    walk_init(&walk, &rec);
    struct consumer alone = consumer_of(&plain, 0);
    assert_int_equal(walk_run(&walk, NULL, &alone, 1), 0);
    assert_int_equal(plain.calls, 4);
    assert_int_equal(plain.closed + plain.left + plain.marks, 0);
    const struct consumer both[] = {consumer_of(&plain, 0), consumer_of(&ranges, WALK_SPANS)};
    assert_int_equal(walk_run(&walk, NULL, both, 2), 0);
    assert_int_equal(plain.calls, 4);
    assert_int_equal(plain.left, 1);
    assert_int_equal(ranges.calls, 4);
    assert_int_equal(ranges.closed, 3);
    assert_int_equal(ranges.left, 1);
    assert_int_equal(ranges.marks, 4);
    const struct consumer stopped[] = {consumer_of(&plain, 0), {.context = &count, .take = stop}};
    assert_int_equal(walk_run(&walk, NULL, stopped, 2), WALK_STOP);
    assert_int_equal(count, 5);
    assert_int_equal(plain.ends, 0);
    walk_release(&walk);
    recording_release(&rec);
    scratch_remove(folder);
}

static int take_call(void *context, const struct slice *s)
{
    assert_int_equal(s->event.record->type, RECORD_CALL);
    return take(context, s);
}

static int take_work(void *context, const struct slice *s)
{
    assert_int_equal(s->event.record->type, RECORD_KERNEL);
    return take(context, s);
}

static int take_other(void *context, const struct slice *s)
{
    assert_true(s->event.record->type != RECORD_CALL && s->event.record->type != RECORD_KERNEL);
    return take(context, s);
}

/* Who has functions of their own for calls and work hears the same by these, or that alone. */
static void check_kinds(struct walk *w)
{
    static struct listener all, calls, works;
    struct consumer consumers[] = {consumer_of(&all, WALK_WORK | WALK_SPANS),
                                   consumer_of(&calls, WALK_WORK | WALK_SPANS),
                                   consumer_of(&works, WALK_WORK | WALK_SPANS)};
    consumers[0].take = take_other;
    consumers[0].take_call = take_call;
    consumers[0].take_work = take_work;
    consumers[1].take = NULL;
    consumers[1].take_call = take_call;
    consumers[2].take = NULL;
    consumers[2].take_work = take_work;
    assert_int_equal(walk_run(w, NULL, consumers, 3), 0);
    assert_int_equal(all.calls, 2);
    assert_int_equal(all.works[0].takes + all.works[1].takes, 2);
    assert_int_equal(all.marks, 1);
    assert_int_equal(calls.calls, 2);
    assert_int_equal(calls.works[0].takes + calls.works[1].takes + calls.marks, 0);
    assert_int_equal(works.works[0].takes + works.works[1].takes, 2);
    assert_int_equal(works.calls + works.marks, 0);
}

/* A plain call, one that launches a graph, work, of which one begins before its call, and what is
 * none of these. */
static void test_skips(void **state)
{
    static const struct {
        unsigned skips, calls, works, marks;
    } cases[] = {{0, 2, 2, 1},
                 {WALK_SKIPS_PLAIN_CALLS, 1, 2, 1},
                 {WALK_SKIPS_CALLS, 0, 2, 1},
                 {WALK_SKIPS_WORK, 2, 0, 1},
                 {WALK_SKIPS_OTHERS, 2, 2, 0}};
    static struct listener listeners[sizeof cases / sizeof cases[0]];
    struct consumer consumers[sizeof cases / sizeof cases[0]];
    const uint64_t args[6] = {0};
    (void)state;
    const char *folder = scratch_folder();
    struct stream_builder b;
    begin_process(&b, 0);
    add_kernel(&b, 50, 3, 1); /* before its call, and before all others */
    builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, 100, 5, 2);
    add_kernel(&b, 200, 2, 0);
    builder_correlated(&b, MAIN, API_CODE_cudaGraphLaunch, 300, 5, 3);
    builder_record(&b, MAIN, RECORD_MARK, 400, 0, 0, 6, args, "mark");
    builder_finish(&b, "%s/a.gpuprof", folder);
    struct recording rec;
    struct walk walk;
    open_folder(&rec, folder);
    walk_init(&walk, &rec);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        consumers[i] = consumer_of(&listeners[i], WALK_WORK | WALK_SPANS);
        consumers[i].skips = cases[i].skips;
    }
    assert_int_equal(walk_run(&walk, NULL, consumers, sizeof cases / sizeof cases[0]), 0);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct listener *l = &listeners[i];
        assert_int_equal(l->calls, cases[i].calls);
        assert_int_equal(l->works[0].takes + l->works[1].takes, cases[i].works);
        assert_int_equal(l->works[1].id, cases[i].works ? 3 : 0);
        assert_int_equal(l->marks, cases[i].marks);
        assert_int_equal(l->ends, 1);
    }
    assert_true(walk.first_ns[0] && walk.first_ns[0] < walk.last_ns[0]);
    walk_release(&walk);
    walk_init(&walk, &rec);
    check_kinds(&walk);
    walk_release(&walk);
    recording_release(&rec);
    scratch_remove(folder);
}

#define OPS_MAX 16

/* What was said of operators, by object; and in which each piece of work was, from within. */
struct op_listener {
    struct {
        enum span_change last;
        uint64_t begin_ns, end_ns, inner_ns;
        uint32_t number;
        bool is_moved;
        char name[32];
    } ops[OPS_MAX];
    uint32_t in[4][OPS_MAX];
};

static int take_op(void *context, const struct slice *s)
{
    struct op_listener *l = context;
    if (!slice_change(s, SPAN_OP))
        return 0;
    uint64_t i = s->span->object;
    assert_true(i < OPS_MAX);
    l->ops[i].last = s->change;
    l->ops[i].begin_ns = s->span->begin_ns;
    l->ops[i].end_ns = s->span->end_ns;
    l->ops[i].inner_ns = s->span->inner_ns;
    l->ops[i].is_moved = s->span->is_moved;
    l->ops[i].number = s->span->number;
    const struct kernel_name *name = s->span->text;
    snprintf(l->ops[i].name, sizeof l->ops[i].name, "%s", name ? name->shown : "");
    return 0;
}

static int tie_op(void *context, const struct slice *s)
{
    struct op_listener *l = context;
    const struct span_node *node;
    uint32_t number = s->call.span;
    int error = 0;
    if (s->event.record->type != RECORD_KERNEL || !s->is_called)
        return 0;
    uint32_t *in = l->in[record_arg(s->event.record, KERNEL_GRAPH)];
    while ((node = survey_span(&s->walk->survey, &s->call, SPANS_OF(SPAN_OP), &number, false)))
        *in++ = node->number;
    return error;
}

static void op(struct stream_builder *b, unsigned thread, unsigned type, uint64_t begin,
               uint64_t object, unsigned code, unsigned flags)
{
    struct record r = {.type = (uint8_t)type,
                       .code = (uint16_t)code,
                       .flags = (uint8_t)flags,
                       .begin = begin,
                       .arg_count = type == RECORD_OP_BEGIN ? 2 : 1,
                       .args = {object, 1 + object % 2}};
    builder_add(b, thread, &r);
}

/* Crossing, on another thread, traced, begun anew without an end, and open at the end. */
static void make_ops(const char *folder)
{
    struct stream_builder b;
    const uint64_t names[] = {1, 2};
    begin_process(&b, 0);
    op(&b, MAIN, RECORD_OP_BEGIN, 1000, 1, 0, 0);
    op(&b, MAIN, RECORD_OP_BEGIN, 1100, 2, 0, 0);
    builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, 1200, 10, 1);
    op(&b, MAIN, RECORD_OP_END, 1300, 1, 0, 0);
    builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, 1400, 10, 2);
    op(&b, MAIN, RECORD_OP_BEGIN, 1420, 3, OP_SCOPE_LABEL, 0);
    op(&b, MAIN, RECORD_OP_END, 1450, 3, 0, 0);
    op(&b, 3, RECORD_OP_END, 1500, 2, 0, 0);
    op(&b, 3, RECORD_OP_END, 1600, 4, 0, 0); /* it never began */
    op(&b, MAIN, RECORD_OP_BEGIN, 1700, 5, 0, 0);
    op(&b, MAIN, RECORD_OP_BEGIN, 1710, 6, 0, RECORD_TRACED);
    op(&b, MAIN, RECORD_OP_BEGIN, 1720, 7, OP_SCOPE_LABEL, 0);
    builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, 1800, 10, 3);
    op(&b, 3, RECORD_OP_BEGIN, 1900, 7, 0, 0); /* the end of the label is missing */
    builder_record(&b, MAIN, RECORD_OP_NAME, 2000, 0, 0, 1, &names[0], "even");
    builder_record(&b, MAIN, RECORD_OP_NAME, 2001, 0, 0, 1, &names[1], "odd");
    for (unsigned i = 1; i <= 3; i++)
        add_kernel(&b, 3000 + 100 * i, i, i);
    builder_finish(&b, "%s/a.gpuprof", folder);
}

static void check_ops(const struct op_listener *l, bool has_names)
{
    static const enum span_change last[8] = {SPAN_SAME, SPAN_CLOSED, SPAN_CLOSED, SPAN_CLOSED,
                                             SPAN_SAME, SPAN_LEFT,   SPAN_LEFT,   SPAN_LEFT};
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(l->ops[i].last, last[i]);
        if (has_names && last[i] != SPAN_SAME)
            assert_string_equal(l->ops[i].name, i % 2 ? "odd" : "even");
    }
    assert_int_equal(l->ops[1].end_ns - l->ops[1].begin_ns, 300);
    assert_int_equal(l->ops[1].inner_ns, 0);
    assert_int_equal(l->ops[2].end_ns - l->ops[2].begin_ns, 400);
    assert_int_equal(l->ops[2].inner_ns, 30);
    assert_true(l->ops[2].is_moved && !l->ops[1].is_moved);
    assert_int_equal(l->ops[5].end_ns - l->ops[5].begin_ns, 3350 - 1700); /* of the last kernel */
    const uint32_t first = l->ops[1].number;
    assert_int_equal(l->ops[7].number, first + 6);
    const uint32_t in[4][4] = {{0}, {first + 1, first}, {first + 1}, {first + 5, first + 3}};
    for (unsigned i = 0; i < 4; i++)
        assert_memory_equal(l->in[i], in[i], sizeof in[i]);
}

static void test_ops(void **state)
{
    static struct op_listener one, two;
    (void)state;
    const char *folder = scratch_folder();
    make_ops(folder);
    struct recording rec;
    struct walk walk, surveyed;
    open_folder(&rec, folder);
    const struct consumer first = {
        .context = &one, .needs = WALK_SPANS | WALK_WORK, .take = take_op, .take_work = tie_op};
    const struct consumer second = {
        .context = &two, .needs = WALK_SPANS | WALK_WORK, .take = take_op, .take_work = tie_op};
    walk_init(&walk, &rec);
    assert_int_equal(walk_run(&walk, NULL, &first, 1), 0);
    check_ops(&one, false); /* the names stand behind */
    walk_init(&surveyed, &rec);
    assert_int_equal(walk_survey(&surveyed), 0);
    assert_int_equal(walk_run(&surveyed, NULL, &second, 1), 0);
    check_ops(&two, true);
    assert_int_equal(walk_run(&surveyed, rec.processes[0], &second, 1), 0); /* and once more */
    check_ops(&two, true);
    assert_memory_equal(&walk.losses[0], &surveyed.losses[0], sizeof(struct losses));
    assert_int_equal(walk.losses[0].unmatched_ops, 2);
    assert_int_equal(walk.losses[0].traced_ops, 1);
    walk_release(&walk);
    walk_release(&surveyed);
    recording_release(&rec);
    scratch_remove(folder);
}

static int count_ops(void *context, const struct slice *s)
{
    ((unsigned *)context)[s->change]++;
    return 0;
}

static void test_deep_ops(void **state)
{
    unsigned changes[SPAN_MARKED + 1] = {0};
    (void)state;
    const char *folder = scratch_folder();
    struct stream_builder b;
    begin_process(&b, 0);
    for (uint64_t i = 1; i <= SPANS_DEPTH_MAX + 88; i++)
        op(&b, MAIN, RECORD_OP_BEGIN, 10 * i, i, 0, 0);
    for (uint64_t i = SPANS_DEPTH_MAX + 88; i > 0; i--)
        op(&b, MAIN, RECORD_OP_END, 40000 - 10 * i, i, 0, 0);
    builder_finish(&b, "%s/a.gpuprof", folder);
    struct recording rec;
    struct walk walk;
    open_folder(&rec, folder);
    const struct consumer consumer = {.context = changes, .needs = WALK_SPANS, .take = count_ops};
    walk_init(&walk, &rec);
    assert_int_equal(walk_run(&walk, NULL, &consumer, 1), 0);
    assert_int_equal(changes[SPAN_OPENED], SPANS_DEPTH_MAX);
    assert_int_equal(changes[SPAN_CLOSED], SPANS_DEPTH_MAX);
    assert_int_equal(walk.losses[0].deep_ops, 88);
    assert_int_equal(walk.losses[0].unmatched_ops, 88);
    walk_release(&walk);
    recording_release(&rec);
    scratch_remove(folder);
}

static int check_name(void *context, const struct slice *s)
{
    char name[32];
    if (s->event.record->type != RECORD_CALL)
        return 0;
    snprintf(name, sizeof name, "name%u", (unsigned)s->event.record->args[3]);
    assert_string_equal(walk_handle(s, 0x1000)->shown, name);
    ++*(unsigned *)context;
    return 0;
}

/* A handle means the name that was recorded last before the call. */
static void test_names(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    struct stream_builder b;
    builder_init(&b, 0);
    builder_api(&b);
    for (uint64_t i = 0; i < 50; i++) {
        char name[32];
        uint64_t args[5] = {0x1000, 0, 0, i, 0};
        snprintf(name, sizeof name, "name%u", (unsigned)i);
        /* The name stands in another thread's block, with the call's own time. */
        builder_name(&b, 2, 100 * i, 0x1000, name);
        builder_call(&b, 1, API_CODE_cudaLaunchKernel, 100 * i, 5, 0, 5, args);
    }
    builder_finish(&b, "%s/a.gpuprof", folder);
    struct recording rec;
    open_folder(&rec, folder);
    struct walk walk;
    walk_init(&walk, &rec);
    unsigned calls = 0;
    const struct consumer consumer = {.context = &calls, .take = check_name};
    assert_int_equal(walk_run(&walk, NULL, &consumer, 1), 0);
    assert_int_equal(calls, 50);
    assert_int_equal(walk_run(&walk, NULL, &consumer, 1), 0); /* they are forgotten in between */
    assert_int_equal(calls, 100);
    walk_release(&walk);
    recording_release(&rec);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_walk_or_two), cmocka_unit_test(test_far),
        cmocka_unit_test(test_consumers),       cmocka_unit_test(test_skips),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_ops),
        cmocka_unit_test(test_deep_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
