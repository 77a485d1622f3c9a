/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy of the loader's list (inject/stack/modules.c): objects are those that a test says are
 * loaded, each a page of memory with a note in it.
 */
#include "unit_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "append_double.h"
#include "base/leader.h"
#include "base/objects.h"
#include "frame.h"
#include "stack/modules.h"

#define PLACES      16384u
#define PLACE_BYTES 4096u
#define MODULES_MAX 8192u
#define ID_BYTES    20u

struct loaded {
    char path[6000];
    uintptr_t low;
    ElfW(Phdr) headers[2]; /* notes */
};

static uint8_t *places;

/* ---- in place of the loader ---- */

static struct {
    pthread_mutex_t mutex; /* as the loader's own */
    struct loaded *objects[PLACES];
    unsigned count;
    unsigned long long adds;
    unsigned long long subs;
    bool is_busy;
} loader = {.mutex = PTHREAD_MUTEX_INITIALIZER};

int objects_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
    pthread_mutex_lock(&loader.mutex);
    struct dl_phdr_info info = {.dlpi_adds = loader.adds, .dlpi_subs = loader.subs};
    int result = visit(&info, sizeof info, data);
    pthread_mutex_unlock(&loader.mutex);
    return result;
}

int objects_each(int (*visit)(const struct object *, void *), void *data)
{
    int result = 0;
    pthread_mutex_lock(&loader.mutex);
    for (unsigned i = 0; i < loader.count && !result; i++) {
        const struct loaded *l = loader.objects[i];
        const struct object o = {.path = l->path,
                                 .base = l->low,
                                 .low = l->low,
                                 .high = l->low + PLACE_BYTES,
                                 .headers = l->headers,
                                 .header_count = 2};
        result = visit(&o, data);
    }
    pthread_mutex_unlock(&loader.mutex);
    return result;
}

bool object_is(const struct object *o, const char *stem)
{
    return strstr(o->path, stem) != NULL;
}

/* No C library's own look-up here: modules_rule_now is tested where there is a real loader. */
void *object_symbol(const struct object *o, const char *name)
{
    (void)o;
    (void)name;
    return NULL;
}

struct object object_of_map(const struct link_map *map)
{
    return (struct object){.path = map->l_name};
}

bool loader_reset(void)
{
    return !loader.is_busy;
}

bool leader_has_ended(uint32_t *thread_count)
{
    (void)thread_count;
    return false;
}

static uintptr_t place(unsigned number)
{
    return (uintptr_t)places + (uintptr_t)number * PLACE_BYTES;
}

/* Appends one; `claims` is the size that it says its value has. */
static void add_note(ElfW(Phdr) * p, uintptr_t low, const char *name, uint32_t type,
                     const uint8_t *value, uint32_t bytes, uint32_t claims)
{
    uint32_t head[3] = {(uint32_t)strlen(name) + 1, claims, type};
    uint8_t *at = (uint8_t *)low + p->p_vaddr + p->p_filesz;
    memcpy(at, head, sizeof head);
    memset(at + 12, 0, 8);
    memcpy(at + 12, name, strlen(name));
    memcpy(at + 12 + (head[0] + 3) / 4 * 4, value, bytes);
    p->p_filesz += 12 + (head[0] + 3) / 4 * 4 + (bytes + 3) / 4 * 4;
}

/* The file at a place, whose build id's bytes all are `id`; 0: it has none. */
static struct loaded *load(const char *path, unsigned where, unsigned id)
{
    struct loaded *l = calloc(1, sizeof *l);
    uint8_t value[ID_BYTES];
    memset(value, (int)id, sizeof value);
    snprintf(l->path, sizeof l->path, "%s", path);
    l->low = place(where);
    for (unsigned i = 0; i < 2; i++)
        l->headers[i] =
            (ElfW(Phdr)){.p_type = PT_NOTE, .p_flags = PF_R, .p_vaddr = (ElfW(Addr))1024 * i};
    if (id)
        add_note(&l->headers[0], l->low, "GNU", 3, value, sizeof value, sizeof value);
    pthread_mutex_lock(&loader.mutex);
    assert_true(loader.count < PLACES);
    loader.objects[loader.count++] = l;
    loader.adds++;
    pthread_mutex_unlock(&loader.mutex);
    return l;
}

static void unload(struct loaded *l)
{
    unsigned i = 0;
    pthread_mutex_lock(&loader.mutex);
    while (loader.objects[i] != l)
        i++;
    loader.count--;
    memmove(&loader.objects[i], &loader.objects[i + 1],
            (loader.count - i) * sizeof loader.objects[0]);
    loader.subs++;
    pthread_mutex_unlock(&loader.mutex);
    free(l);
}

static int start(void **state)
{
    (void)state;
    append_reset();
    while (loader.count)
        unload(loader.objects[loader.count - 1]);
    if (!places)
        places = mmap(NULL, (size_t)PLACES * PLACE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(places, MAP_FAILED);
    loader.is_busy = false;
    assert_true(modules_reset());
    return 0;
}

/* ---- */

#define INSIDE 100u /* where in its object a call is */

/* The frame of a call there. */
static uint64_t frame_at(unsigned where)
{
    uint64_t frame = place(where) + INSIDE;
    assert_true(modules_frames(NULL, &frame, 1));
    return frame;
}

/* The number of the module there. */
static uint32_t module_at(unsigned where)
{
    uint64_t frame = frame_at(where);
    assert_int_equal(frame_kind(frame), FRAME_MODULE);
    assert_int_equal(frame_offset(frame), INSIDE);
    assert_non_null(append_find(RECORD_MODULE, frame_module(frame))); /* once */
    return frame_module(frame);
}

static void check_unknown(unsigned where)
{
    assert_int_equal(frame_at(where), frame_at_address(place(where) + INSIDE));
}

/* "ID PATH" of a module's record. */
static const char *text_of(uint32_t number)
{
    static char text[8192];
    const struct record *r = append_find(RECORD_MODULE, number);
    assert_non_null(r);
    assert_true(r->byte_count < sizeof text);
    memcpy(text, r->bytes, r->byte_count);
    text[r->byte_count] = '\0';
    return text;
}

#define ID_OF_1 "0101010101010101010101010101010101010101"

static void loads(void **state)
{
    (void)state;
    load("/lib/one.so", 3, 1);
    check_unknown(2);
    assert_int_equal(append_count(RECORD_MODULE), 0);
    uint32_t one = module_at(3);
    assert_string_equal(text_of(one), ID_OF_1 " /lib/one.so");
    const struct record *r = append_find(RECORD_MODULE, one);
    assert_int_equal(r->args[1], place(3));
    assert_int_equal(r->args[2], place(3));
    assert_int_equal(r->args[3], place(4));
    /* One that comes later, before it in memory, is found by the next look. */
    load("/lib/two.so", 2, 2);
    uint32_t two = module_at(2);
    assert_int_not_equal(two, one);
    assert_int_equal(module_at(3), one);
    assert_int_equal(append_count(RECORD_MODULE), 2);
    /* A return address right behind the last byte is that object's; at its begin it is not. */
    uint64_t edges[] = {place(4), place(2), frame_in_python(77)};
    assert_true(modules_frames(NULL, edges, 3));
    assert_int_equal(edges[0], frame_in_module(one, PLACE_BYTES));
    assert_int_equal(edges[1], frame_at_address(place(2)));
    assert_int_equal(edges[2], frame_in_python(77));
}

static void unloads(void **state)
{
    (void)state;
    struct loaded *one = load("/lib/one.so", 0, 1);
    load("/lib/two.so", 1, 2);
    uint32_t two = module_at(1);
    module_at(0);
    uint32_t age = atomic_load(&modules_age);
    modules_check(true);
    assert_int_equal(atomic_load(&modules_age), age);
    unload(one);
    modules_check(false);
    assert_int_equal(atomic_load(&modules_age), age); /* not looked at */
    modules_check(true);
    assert_int_equal(atomic_load(&modules_age), age + 1);
    check_unknown(0);
    assert_int_equal(module_at(1), two);
    /* As the hook of dlclose does it: all look while one is in it. */
    one = load("/lib/one.so", 0, 1);
    modules_closing();
    unload(one);
    modules_check(false);
    assert_int_equal(atomic_load(&modules_age), age + 2);
    modules_closed();
    assert_int_equal(atomic_load(&modules_age), age + 2);
    unload(load("/lib/one.so", 0, 1));
    modules_check(false);
    assert_int_equal(atomic_load(&modules_age), age + 2); /* nobody is in it any more */
}

static void places_used_again(void **state)
{
    (void)state;
    struct loaded *l = load("/lib/one.so", 5, 1);
    uint32_t one = module_at(5);
    unload(l);
    l = load("/lib/two.so", 5, 2);
    uint32_t two = module_at(5);
    assert_int_not_equal(two, one);
    unload(l);
    l = load("/lib/one.so", 5, 9); /* built anew */
    uint32_t anew = module_at(5);
    assert_true(anew != one && anew != two);
    unload(l);
    load("/lib/one.so", 5, 1);
    assert_int_equal(module_at(5), one);
    assert_int_equal(append_count(RECORD_MODULE), 3);
}

static void builds(void **state)
{
    (void)state;
    load("/lib/one.so", 5, 1);
    uint32_t one = module_at(5);
    struct loaded *l = load("/lib/one.so", 6, 1); /* twice at a time */
    assert_int_equal(module_at(6), one);
    unload(l);
    for (unsigned i = 7; i < PLACES; i++) { /* more than the table has room for */
        l = load("/lib/one.so", i, 1);
        assert_int_equal(module_at(i), one);
        unload(l);
    }
    assert_int_equal(append_count(RECORD_MODULE), 1);
    load("/lib/other.so", 6, 1); /* another file of the same id is another module */
    assert_int_not_equal(module_at(6), one);
    /* Without an id, who knows. */
    l = load("/lib/plain.so", 8, 0);
    uint32_t plain = module_at(8);
    assert_string_equal(text_of(plain), "- /lib/plain.so");
    unload(l);
    l = load("/lib/plain.so", 9, 0);
    assert_int_not_equal(module_at(9), plain);
    unload(l);
    load("/lib/plain.so", 8, 0);
    assert_int_equal(module_at(8), plain);
}

/* The text that a module with these notes has, less its path. */
static const char *id_of(struct loaded *l)
{
    static unsigned where = 100;
    static char id[200];
    l->low = place(++where);
    memcpy((void *)l->low, (const void *)place(100), PLACE_BYTES);
    const char *text = text_of(module_at(where));
    snprintf(id, sizeof id, "%.*s", (int)strcspn(text, " "), text);
    unload(l);
    return id;
}

static void build_ids(void **state)
{
    uint8_t value[64];
    (void)state;
    for (unsigned i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(0xf0 + i);
#define NEW(variable) struct loaded *variable = load("/lib/one.so", 100, 0)
    NEW(xxhash);
    add_note(&xxhash->headers[0], place(100), "GNU", 3, value, 8, 8);
    assert_string_equal(id_of(xxhash), "f0f1f2f3f4f5f6f7");
    NEW(longest);
    add_note(&longest->headers[0], place(100), "GNU", 3, value, 32, 32);
    assert_int_equal(strlen(id_of(longest)), 64);
    NEW(too_long);
    add_note(&too_long->headers[0], place(100), "GNU", 3, value, 33, 33);
    assert_string_equal(id_of(too_long), "-");
    NEW(empty);
    add_note(&empty->headers[0], place(100), "GNU", 3, value, 0, 0);
    assert_string_equal(id_of(empty), "-");
    NEW(second);
    add_note(&second->headers[0], place(100), "GNU", 1, value, 17, 17);
    add_note(&second->headers[0], place(100), "Go", 3, value, 20, 20);
    add_note(&second->headers[0], place(100), "GNU", 3, value, 2, 2);
    assert_string_equal(id_of(second), "f0f1");
    NEW(other_segment);
    add_note(&other_segment->headers[1], place(100), "GNU", 3, value, 2, 2);
    assert_string_equal(id_of(other_segment), "f0f1");
    for (unsigned claims = 3; claims; claims <<= 1) { /* more than there is */
        NEW(damaged);
        add_note(&damaged->headers[0], place(100), "GNU", 3, value, 2, claims | 256);
        assert_string_equal(id_of(damaged), "-");
    }
    NEW(cut);
    add_note(&cut->headers[0], place(100), "GNU", 3, value, 20, 20);
    cut->headers[0].p_filesz--;
    assert_string_equal(id_of(cut), "-");
    NEW(outside);
    add_note(&outside->headers[0], place(100), "GNU", 3, value, 20, 20);
    outside->headers[0].p_filesz = PLACE_BYTES + 1;
    assert_string_equal(id_of(outside), "-");
    NEW(unreadable);
    add_note(&unreadable->headers[0], place(100), "GNU", 3, value, 20, 20);
    unreadable->headers[0].p_flags = 0;
    assert_string_equal(id_of(unreadable), "-");
}

static void paths(void **state)
{
    char here[4096], program[4096], expected[9000], path[6000];
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    load("", 0, 0);
    snprintf(expected, sizeof expected, "- %s", program);
    assert_string_equal(text_of(module_at(0)), expected);
    load("lib/one.so", 1, 0); /* as it was given to dlopen */
    snprintf(expected, sizeof expected, "- %s/lib/one.so", here);
    assert_string_equal(text_of(module_at(1)), expected);
    load("linux-vdso.so.1", 2, 0);
    assert_string_equal(text_of(module_at(2)), "- linux-vdso.so.1");
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    load(path, 3, 0);
    assert_int_equal(strlen(text_of(module_at(3))), 4096);
}

static void limits(void **state)
{
    char path[64];
    (void)state;
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        snprintf(path, sizeof path, "/lib/%u.so", i);
        load(path, i, 1);
    }
    struct loaded *last = load("/lib/last.so", MODULES_MAX, 1);
    assert_int_equal(module_at(0), 1);
    assert_int_equal(module_at(MODULES_MAX - 1), MODULES_MAX);
    check_unknown(MODULES_MAX);
    /* What is known stays so. */
    unload(last);
    unload(loader.objects[17]);
    load("/lib/new.so", 17, 1);
    check_unknown(17);
    unload(loader.objects[loader.count - 1]);
    load("/lib/17.so", 17, 1);
    assert_int_equal(module_at(17), 18);
}

/* All the room for texts is used up: of the others, addresses stay. */
static void long_paths(void **state)
{
    char path[4000];
    unsigned known = 0;
    (void)state;
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(path, sizeof path, "/lib/%04u", i);
        path[9] = 'x';
        load(path, i, 1);
    }
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t frame = frame_at(i);
        known += frame_kind(frame) == FRAME_MODULE;
        assert_true(frame_kind(frame) == FRAME_MODULE ||
                    frame == frame_at_address(place(i) + INSIDE));
    }
    assert_in_range(known, 500, 1100); /* 4 MiB of 4000 bytes each */
}

static void rules(void **state)
{
    struct cfi_rule rule;
    (void)state;
    load("/lib/libcuda.so", 0, 1);
    load("/lib/one.so", 1, 1);
    assert_true(modules_rule(place(0), &rule));
    assert_int_equal(rule.flags, CFI_NONE | CFI_CUDA);
    assert_true(modules_rule(place(1), &rule));
    assert_int_equal(rule.flags, CFI_NONE);
    assert_true(modules_rule(place(2), &rule));
    assert_int_equal(rule.flags, CFI_NONE);
}

static void refused(void **state)
{
    uint64_t frame = place(0) + INSIDE;
    (void)state;
    load("/lib/one.so", 0, 1);
    append_refuse(true);
    assert_false(modules_frames(NULL, &frame, 1));
    assert_int_equal(append_counter(COUNTER_DROPPED), 0); /* no event was */
    append_refuse(false);
    assert_int_equal(module_at(0), 1);
}

/* A child's file has no modules yet; and its loader may be locked for ever. */
static void forked(void **state)
{
    (void)state;
    load("/lib/one.so", 0, 1);
    struct loaded *two = load("/lib/two.so", 1, 2);
    module_at(1);
    unload(two);
    modules_closing();
    append_reset();
    assert_true(modules_reset());
    assert_int_equal(module_at(0), 1);
    assert_int_equal(append_count(RECORD_MODULE), 1);
    uint32_t age = atomic_load(&modules_age);
    unload(load("/lib/two.so", 1, 2));
    modules_check(false);
    assert_int_equal(atomic_load(&modules_age), age); /* whoever was in dlclose is not here */
    loader.is_busy = true;
    assert_false(modules_reset());
}

/* ---- threads ---- */

#define THREADS 8
#define TAKES   4000u
#define KEPT    200u /* objects that stay */

static _Atomic bool is_over;

static void *look(void *data)
{
    uint64_t random = 1 + (uintptr_t)data, wrong = 0;
    for (unsigned i = 0; i < TAKES; i++) {
        uint64_t frames[8];
        struct cfi_rule rule;
        unsigned where = (unsigned)(random_of(&random) % KEPT);
        for (unsigned k = 0; k < 8; k++)
            frames[k] = place((where + k) % KEPT) + INSIDE;
        wrong += !modules_rule(frames[0], &rule) || !modules_frames(NULL, frames, 8);
        for (unsigned k = 0; k < 8; k++) /* the list was in that order at the first look */
            wrong += frames[k] != frame_in_module((where + k) % KEPT + 1, INSIDE);
    }
    return (void *)(uintptr_t)wrong;
}

static void *load_and_unload(void *data)
{
    char path[64];
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        snprintf(path, sizeof path, "/lib/plugin%u.so", i % 50);
        struct loaded *l = load(path, KEPT + i % 3, 1 + i % 7);
        modules_check(true);
        modules_closing();
        unload(l);
        modules_closed();
    }
    return data;
}

static void in_parallel(void **state)
{
    pthread_t threads[THREADS], loading;
    char path[64];
    (void)state;
    for (unsigned i = 0; i < KEPT; i++) {
        snprintf(path, sizeof path, "/lib/%u.so", i);
        load(path, i, 1);
    }
    frame_at(0);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&loading, NULL, load_and_unload, NULL), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    atomic_store(&is_over, true);
    pthread_join(loading, NULL);
}

/* test_modules [TEST] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loads, start),
        cmocka_unit_test_setup(unloads, start),
        cmocka_unit_test_setup(places_used_again, start),
        cmocka_unit_test_setup(builds, start),
        cmocka_unit_test_setup(build_ids, start),
        cmocka_unit_test_setup(paths, start),
        cmocka_unit_test_setup(limits, start),
        cmocka_unit_test_setup(rules, start),
        cmocka_unit_test_setup(refused, start),
        cmocka_unit_test_setup(forked, start),
        cmocka_unit_test_setup(in_parallel, start),
        cmocka_unit_test_setup(long_paths, start), /* the last: that room is used for good */
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
