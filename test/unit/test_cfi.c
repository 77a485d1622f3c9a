/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: hand-made tables, those of real objects, and damaged ones. A copy of a
 * segment lies between pages that cannot be read, so that a read outside of it is a crash.
 */
#include "unit_test.h"

#include <link.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "stack/cfi.h"

#define SPAN_STEP    10u /* functions of which one is looked at piece by piece */
#define SPANS_MAX    16u
#define CODE         0x100000     /* of the hand-made functions, from the segment's begin */
#define ROUNDS       3000         /* of damage to each object */
#define BYTES_MAX    (256u << 20) /* of a segment that is copied */
#define LOOKUPS      8
#define FUZZ_SECONDS "GPUPROF_TEST_FUZZ_SECONDS" /* makes the damage last longer */

/* ---- a segment between guards ---- */

struct segment {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *bytes;
    size_t size;
    struct cfi_object object;
};

/* Its end is a page's end; a second one could have its begin at a page's begin. */
static void segment_init(struct segment *s, size_t size, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
    s->map_bytes = room + 2 * page;
    s->map = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s->map, MAP_FAILED);
    assert_int_equal(mprotect(s->map, page, PROT_NONE), 0);
    assert_int_equal(mprotect(s->map + page + room, page, PROT_NONE), 0);
    s->bytes = s->map + page + (at_end ? room - size : 0);
    s->size = size;
    s->object.low = (uintptr_t)s->bytes;
    s->object.high = (uintptr_t)s->bytes + size;
    s->object.index = (uintptr_t)s->bytes;
}

static void segment_release(struct segment *s)
{
    munmap(s->map, s->map_bytes);
}

/* ---- hand-made tables ---- */

/* One function of 64 bytes with that program; the common part says CFA = sp + 8, return at -8. */
struct table {
    uint8_t bytes[8192];
    size_t size;
};

static void put(struct table *t, const void *bytes, size_t size)
{
    assert_true(t->size + size <= sizeof t->bytes);
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static void put_byte(struct table *t, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    put(t, &value, 1);
}

static void put_word(struct table *t, int64_t word)
{
    int32_t value = (int32_t)word;
    put(t, &value, 4);
}

enum { INDEX_BYTES = 20, COMMON_BYTES = 24, FUNCTION_BYTES = 64 };

static void make_table(struct table *t, const char *letters, const uint8_t *program, size_t size)
{
    *t = (struct table){0};
    put(t, (const uint8_t[]){1, 0x1b, 0x03, 0x3b}, 4);
    put_word(t, INDEX_BYTES - 4);
    put_word(t, 1);
    put_word(t, CODE);
    put_word(t, INDEX_BYTES + COMMON_BYTES);
    size_t at = t->size;
    put_word(t, COMMON_BYTES - 4);
    put_word(t, 0);
    put_byte(t, 1);
    put(t, letters, strlen(letters) + 1);
    put(t, (const uint8_t[]){1, 0x78, CFI_RETURN_ADDRESS, 1, 0x1b}, 5);
    put(t, (const uint8_t[]){0x0c, CFI_STACK_POINTER, 8, 0x80 | CFI_RETURN_ADDRESS, 1}, 5);
    while (t->size < at + COMMON_BYTES)
        put_byte(t, 0);
    at = t->size;
    put_word(t, (int64_t)(4 + 4 + 4 + 1 + size));
    put_word(t, (int64_t)(at + 4 - INDEX_BYTES));
    put_word(t, CODE - (int64_t)(at + 8));
    put_word(t, FUNCTION_BYTES);
    put_byte(t, 0);
    put(t, program, size);
}

/* The rule `offset` bytes into the function. */
static bool find_at(const struct table *t, unsigned offset, struct cfi_rule *rule)
{
    struct segment s;
    bool found[2];
    for (int at_end = 0; at_end < 2; at_end++) {
        segment_init(&s, t->size, at_end);
        memcpy(s.bytes, t->bytes, t->size);
        memset(rule, 0xee, sizeof *rule);
        found[at_end] = cfi_find(&s.object, s.object.low + CODE + offset, rule);
        segment_release(&s);
    }
    assert_int_equal(found[0], found[1]);
    return found[0];
}

static bool find_in(const uint8_t *program, size_t size, unsigned offset, struct cfi_rule *rule)
{
    struct table t;
    make_table(&t, "zR", program, size);
    return find_at(&t, offset, rule);
}

#define FIND(offset, rule, ...)                                                                    \
    find_in((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), offset, rule)

static void check_rule(const struct cfi_rule *rule, unsigned flags, int cfa, int return_offset)
{
    assert_int_equal(rule->flags, flags);
    assert_int_equal(rule->cfa_offset, cfa);
    assert_int_equal(rule->return_place, CFI_IN_FRAME);
    assert_int_equal(rule->return_offset, return_offset);
}

static void rows_of_a_function(void **state)
{
    struct cfi_rule rule;
    (void)state;
    /* push fp; mov fp = sp; ...; pop fp; ret */
#define PUSHED                                                                                     \
    0x41, 0x0e, 16, 0x80 | CFI_FRAME_POINTER, 2, 0x43, 0x0d, CFI_FRAME_POINTER, 0x02, 40, 0x0c,    \
        CFI_STACK_POINTER, 8, 0xc0 | CFI_FRAME_POINTER
    assert_true(FIND(0, &rule, PUSHED));
    check_rule(&rule, CFI_FROM_STACK, 8, -8);
    assert_int_equal(rule.pointer_place, CFI_SAME);
    assert_true(FIND(1, &rule, PUSHED));
    check_rule(&rule, CFI_FROM_STACK, 16, -8);
    assert_int_equal(rule.pointer_place, CFI_IN_FRAME);
    assert_int_equal(rule.pointer_offset, -16);
    assert_true(FIND(4, &rule, PUSHED));
    check_rule(&rule, 0, 16, -8);
    assert_true(FIND(43, &rule, PUSHED));
    check_rule(&rule, 0, 16, -8);
    assert_true(FIND(44, &rule, PUSHED));
    check_rule(&rule, CFI_FROM_STACK, 8, -8);
    assert_int_equal(rule.pointer_place, CFI_SAME);
    assert_true(FIND(FUNCTION_BYTES - 1, &rule, PUSHED));
    assert_false(FIND(FUNCTION_BYTES, &rule, PUSHED)); /* behind the function */
    assert_int_equal(rule.flags, CFI_NONE);
    /* What is remembered comes back. */
    assert_true(FIND(2, &rule, 0x0a, 0x41, 0x0e, 64, 0x41, 0x0b));
    check_rule(&rule, CFI_FROM_STACK, 8, -8);
}

/* It is known to be there, and there is no rule. */
#define STRANGE(found)                                                                             \
    do {                                                                                           \
        assert_false(found);                                                                       \
        assert_int_equal(rule.flags, CFI_NONE | CFI_STRANGE);                                      \
    } while (0)

static void rows_that_are_expressions(void **state)
{
    struct cfi_rule rule;
    (void)state;
    /* An aligned stack: CFA = *(fp - 8); fp is at fp + 0. */
    assert_true(FIND(0, &rule, 0x0f, 3, 0x70 + CFI_FRAME_POINTER, 0x78, 0x06, 0x10,
                     CFI_FRAME_POINTER, 2, 0x70 + CFI_FRAME_POINTER, 0));
    check_rule(&rule, CFI_LOADED, -8, -8);
    assert_int_equal(rule.pointer_place, CFI_AT_BASE);
    /* The same with 16 more. */
    assert_true(FIND(0, &rule, 0x0f, 5, 0x70 + CFI_STACK_POINTER, 8, 0x06, 0x23, 16));
    check_rule(&rule, CFI_LOADED | CFI_FROM_STACK, 8, -8);
    assert_int_equal(rule.cfa_further, 16);
    /* Any other expression, register or operation: not followed. */
    STRANGE(FIND(0, &rule, 0x0f, 2, 0x70 + CFI_STACK_POINTER, 8));
    STRANGE(FIND(0, &rule, 0x0f, 4, 0x70 + CFI_STACK_POINTER, 8, 0x06, 0x06));
    STRANGE(FIND(0, &rule, 0x0c, 3, 8));
    STRANGE(FIND(0, &rule, 0x3f));
    STRANGE(FIND(0, &rule, 0x0b));                              /* nothing remembered */
    STRANGE(FIND(0, &rule, 0x10, CFI_RETURN_ADDRESS, 1, 0x9c)); /* return: expression */
    STRANGE(FIND(0, &rule, 0x0c, CFI_STACK_POINTER, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f));
    /* Of a frame pointer that went to another register, the return address is of use all the same.
     */
    assert_true(FIND(0, &rule, 0x09, CFI_FRAME_POINTER, 3));
    check_rule(&rule, CFI_FROM_STACK, 8, -8);
    assert_int_equal(rule.pointer_place, CFI_UNDEFINED);
    /* The outermost one. */
    assert_true(FIND(0, &rule, 0x07, CFI_RETURN_ADDRESS));
    assert_int_equal(rule.return_place, CFI_UNDEFINED);
}

static void signal_frames(void **state)
{
    struct table t;
    struct cfi_rule rule;
    (void)state;
    make_table(&t, "zRS", (const uint8_t[]){0, 0x16, 7, 1, 0x77}, 5); /* a strange one */
    assert_true(find_at(&t, 3, &rule));
    assert_int_equal(rule.flags, CFI_SIGNAL);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Programs and numbers that go on and on. */
static void endless_ones(void **state)
{
    struct table t;
    struct cfi_rule rule;
    uint8_t program[5000];
    struct segment s;
    (void)state;
    memset(program, 0, sizeof program);
    make_table(&t, "zR", program, sizeof program);
    assert_false(find_at(&t, 0, &rule)); /* more steps than any compiler's */
    make_table(&t, "zR", program, 100);
    assert_true(find_at(&t, 0, &rule));
    /* One number of 200 MB, in an entry that says that it is as long. */
    make_table(&t, "zR", (const uint8_t[]){0x0e}, 1);
    segment_init(&s, 200u << 20, true);
    memset(s.bytes, 0x80, s.size);
    memcpy(s.bytes, t.bytes, t.size);
    uint32_t length = (uint32_t)(s.size - INDEX_BYTES - COMMON_BYTES - 4);
    memcpy(s.bytes + INDEX_BYTES + COMMON_BYTES, &length, 4);
    double begin = seconds_now();
    for (int i = 0; i < 10; i++)
        assert_false(cfi_find(&s.object, s.object.low + CODE, &rule));
    assert_true(seconds_now() - begin < 0.1); /* of which each byte would take 1 ns or so */
    segment_release(&s);
}

/* Cut at each byte, and with each byte set to what is likely to hurt. */
static void damaged_hand_made(void **state)
{
    static const uint8_t worst[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
    struct table t, damaged;
    struct cfi_rule rule;
    unsigned found = 0;
    (void)state;
    make_table(&t, "zR", (const uint8_t[]){PUSHED}, sizeof((const uint8_t[]){PUSHED}));
    for (size_t size = 1; size < t.size; size++) {
        damaged = t;
        damaged.size = size;
        assert_false(find_at(&damaged, 5, &rule));
    }
    for (size_t i = 0; i < t.size; i++) {
        for (size_t k = 0; k < sizeof worst; k++) {
            damaged = t;
            damaged.bytes[i] = worst[k];
            found += find_at(&damaged, 5, &rule);
        }
    }
    assert_true(found > 10 && found < t.size * sizeof worst);
}

/* ---- real objects ---- */

/* The segment of an object that has the index; false if there is none. */
static bool find_segment(const struct dl_phdr_info *info, struct cfi_object *o)
{
    *o = (struct cfi_object){0};
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            o->index = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && p->p_flags & PF_R && o->index - low < p->p_filesz) {
            o->low = low;
            o->high = low + p->p_filesz;
        }
    }
    return o->index && o->high && o->high - o->low < BYTES_MAX;
}

/* The begins of functions, as a table of (function, entry) relative to the index says. */
static uint32_t function_count(const struct cfi_object *o)
{
    uint32_t count;
    memcpy(&count, (const uint8_t *)o->index + 8, sizeof count);
    return count;
}

static uintptr_t function_at(const struct cfi_object *o, uint32_t i)
{
    int32_t offset;
    memcpy(&offset, (const uint8_t *)o->index + 12 + 8 * (size_t)i, sizeof offset);
    return o->index + (uintptr_t)(intptr_t)offset;
}

/* The code for which a rule holds, one piece after another from a function's begin on. */
static void check_span(const struct cfi_object *o, uintptr_t at, unsigned *spans)
{
    struct cfi_rule rule, other;
    for (unsigned i = 0; i < SPANS_MAX && cfi_find(o, at, &rule) && rule.high; i++) {
        assert_true(rule.low <= at && at < rule.high);
        uintptr_t places[] = {rule.low, at + (rule.high - at) / 2, rule.high - 1};
        for (unsigned k = 0; k < 3; k++) {
            assert_true(cfi_find(o, places[k], &other));
            assert_memory_equal(&other, &rule, sizeof rule);
        }
        assert_true(!cfi_find(o, rule.high, &other) || !other.high || other.low == rule.high);
        at = rule.high;
        (*spans)++;
    }
}

static int check_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct cfi_object o;
    unsigned *checked = data, found = 0, spans = 0;
    (void)size;
    if (!find_segment(info, &o))
        return 0;
    uint32_t count = function_count(&o);
    for (uint32_t i = 0; i < count; i++) {
        struct cfi_rule rule;
        if (!cfi_find(&o, function_at(&o, i), &rule))
            continue;
        found++;
        assert_true(rule.flags <= (CFI_FROM_STACK | CFI_LOADED | CFI_SIGNAL));
        if (i % SPAN_STEP == 0)
            check_span(&o, function_at(&o, i), &spans);
    }
    assert_true(spans > count / SPAN_STEP || !count);
    /* All but what is written by hand, as the procedure linkage table. */
    assert_true(found + 30 + count / 50 >= count);
    *checked += found;
    return 0;
}

static void real_objects(void **state)
{
    unsigned checked = 0;
    (void)state;
    dl_iterate_phdr(check_object, &checked);
    assert_true(checked > 1000);
}

struct damage {
    uint64_t random;
    unsigned lookups;
    unsigned found;
};

/* As memcpy, but it may read what a sanitizer has put between an object's variables. */
__attribute__((no_sanitize("address"))) static void copy(uint8_t *to, uintptr_t from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = ((const volatile uint8_t *)from)[i];
}

static void damage_object(const struct cfi_object *o, struct damage *d, double end)
{
    struct segment s;
    uint32_t count = function_count(o);
    segment_init(&s, o->high - o->low, random_of(&d->random) % 2);
    copy(s.bytes, o->low, s.size);
    s.object.index = s.object.low + (o->index - o->low);
    size_t head = 12 + 8 * (size_t)count, first = s.object.index - s.object.low;
    for (unsigned i = 0; i < ROUNDS || seconds_now() < end; i++) {
        uint8_t kept[LOOKUPS];
        size_t places[LOOKUPS];
        uintptr_t address = function_at(o, (uint32_t)(random_of(&d->random) % count)) - o->low;
        unsigned hurt = 1 + (unsigned)(random_of(&d->random) % LOOKUPS);
        int32_t entry;
        memcpy(&entry, (const uint8_t *)o->index + 16 + 8 * (random_of(&d->random) % count), 4);
        for (unsigned k = 0; k < hurt; k++) {
            uint64_t at = random_of(&d->random);
            /* In the head, in the table, or near one of the entries. */
            size_t place = at % 16 == 0  ? first + at / 16 % 12
                           : at % 4 == 0 ? first + at / 16 % head
                                         : first + (size_t)entry + at / 16 % 64;
            places[k] = place < s.size ? place : at % s.size;
            kept[k] = s.bytes[places[k]];
            s.bytes[places[k]] = (uint8_t)(at >> 40);
        }
        struct cfi_rule rule;
        for (unsigned k = 0; k < LOOKUPS; k++, d->lookups++)
            d->found +=
                cfi_find(&s.object, s.object.low + address + random_of(&d->random) % 64, &rule);
        /* And the function whose entry was hurt. */
        uintptr_t hurt_at = s.object.index + (uintptr_t)(intptr_t)entry;
        uint32_t back;
        int32_t begin;
        if (hurt_at + 12 < s.object.high) {
            memcpy(&back, (const void *)(hurt_at + 4), 4);
            memcpy(&begin, (const void *)(hurt_at + 8), 4);
            d->found += cfi_find(&s.object, hurt_at + 8 + (uintptr_t)(intptr_t)begin, &rule);
        }
        while (hurt-- > 0)
            s.bytes[places[hurt]] = kept[hurt];
    }
    segment_release(&s);
}

static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
    struct cfi_object **next = data;
    (void)size;
    if (find_segment(info, *next) && function_count(*next))
        ++*next;
    return 0;
}

static void damaged_real_objects(void **state)
{
    struct cfi_object objects[64] = {{0}}, *end = objects;
    struct damage d = {.random = 0x5eed};
    const char *seconds = getenv(FUZZ_SECONDS);
    (void)state;
    dl_iterate_phdr(collect, &end);
    double each = seconds ? atof(seconds) / (double)(end - objects) : 0;
    for (struct cfi_object *o = objects; o < end; o++)
        damage_object(o, &d, seconds_now() + each);
    print_message("# %u looked up, %u found\n", d.lookups, d.found);
    assert_true(d.found > d.lookups / 100 && d.found < d.lookups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_function),   cmocka_unit_test(rows_that_are_expressions),
        cmocka_unit_test(signal_frames),        cmocka_unit_test(endless_ones),
        cmocka_unit_test(damaged_hand_made),    cmocka_unit_test(real_objects),
        cmocka_unit_test(damaged_real_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
