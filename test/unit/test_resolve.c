/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a hook calls (inject/hook/resolve.c): objects are those that a test says are loaded, in that
 * order, and what they define is an address inside them.
 */
#include "unit_test.h"

#include <pthread.h>
#include <sched.h>

#include "base/leader.h"
#include "base/objects.h"
#include "hook/resolve.h"
#include "record/thread.h"

#define OBJECTS_MAX  128
#define OBJECT_BYTES 4096u
#define SYMBOL_AT    64u
#define CALL_AT      100u

static const char symbol[] = "cudaMalloc", driver_symbol[] = "cuMemAlloc_v2";

struct loaded {
    const char *soname;
    const char *needs;
    bool defines;
    bool has_pointers; /* it imports nothing */
};

static struct loaded loaded[OBJECTS_MAX];
static unsigned loaded_count;
static unsigned long long unloaded_count;

__thread struct thread this_thread;

/* ---- in place of the loader ---- */

/* The first is the library under test: what is asked of it is whether it has the bindings. */
static uintptr_t low_of(unsigned i)
{
    return i == 0 ? (uintptr_t)&bindings : 0x100000u + (uintptr_t)i * OBJECT_BYTES;
}

static struct object object_of(unsigned i)
{
    return (struct object){.path = loaded[i].soname,
                           .base = i,
                           .low = low_of(i),
                           .high = low_of(i) + (i == 0 ? sizeof bindings : OBJECT_BYTES)};
}

int objects_each(int (*visit)(const struct object *, void *), void *data)
{
    int result = 0;
    for (unsigned i = 0; i < loaded_count && !result; i++) {
        const struct object o = object_of(i);
        result = visit(&o, data);
    }
    return result;
}

int objects_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
    struct dl_phdr_info info = {.dlpi_subs = unloaded_count};
    return visit(&info, sizeof info, data);
}

bool object_at(uintptr_t address, struct object *o)
{
    for (unsigned i = 0; i < loaded_count; i++) {
        *o = object_of(i);
        if (object_has(o, address))
            return true;
    }
    return false;
}

void *object_symbol(const struct object *o, const char *name)
{
    (void)name;
    return loaded[o->base].defines ? (void *)(o->low + SYMBOL_AT) : NULL;
}

void **object_import(const struct object *o, const char *name)
{
    static void *slot;
    (void)name;
    return loaded[o->base].has_pointers ? NULL : &slot;
}

bool object_needs(const struct object *o, const char *soname)
{
    return loaded[o->base].needs && strcmp(loaded[o->base].needs, soname) == 0;
}

const char *object_soname(const struct object *o)
{
    return o->path;
}

bool object_is(const struct object *o, const char *stem)
{
    return strncmp(o->path, stem, strlen(stem)) == 0;
}

bool object_is_part(const struct object *o, const char *stem)
{
    return object_is(o, stem);
}

bool leader_has_ended(uint32_t *thread_count)
{
    (void)thread_count;
    return false;
}

/* ---- */

static unsigned load(const char *soname, const char *needs, bool defines)
{
    assert_true(loaded_count < OBJECTS_MAX);
    loaded[loaded_count] = (struct loaded){soname, needs, defines, false};
    return loaded_count++;
}

static void *of(unsigned object)
{
    return (void *)(low_of(object) + SYMBOL_AT);
}

static uintptr_t caller_in(unsigned object)
{
    return low_of(object) + CALL_AT;
}

/* The library alone, and nothing known. */
static int start(void **state)
{
    (void)state;
    loaded_count = 0;
    unloaded_count++;
    resolve_refresh();
    this_thread.stand_in = 0;
    load("libgpuprof.so", NULL, true);
    return 0;
}

/* The same objects, and nothing known. */
static void forget(void)
{
    unsigned count = loaded_count;
    start(NULL);
    loaded_count = count;
}

static struct binding unbound;

static void *real_of(const char *name, unsigned caller)
{
    enum api_domain domain = name == symbol ? API_RUNTIME : API_DRIVER;
    const struct binding *b = resolve(0, domain, name, caller_in(caller), &unbound);
    return b ? b->real : NULL;
}

static void order(void **state)
{
    (void)state;
    unsigned quota = load("libquota.so", NULL, false);
    load("libc.so.6", NULL, false);
    unsigned stubs = load("libstubs.so", NULL, true);
    unsigned other = load("libother.so", NULL, true);
    unsigned linked = load("plugin.so", "libother.so", false);
    unsigned plugin = load("second.so", NULL, false);
    const char *const names[] = {symbol, driver_symbol};
    for (unsigned i = 0; i < 2; i++) {
        this_thread.stand_in = 0;
        assert_ptr_equal(real_of(names[i], plugin), of(stubs));
        assert_int_equal(this_thread.stand_in, of(stubs));
        assert_ptr_equal(real_of(names[i], linked), of(other));
        assert_ptr_equal(real_of(names[i], stubs), of(stubs)); /* its own code calls by name */
        assert_null(resolve_known(0, caller_in(plugin)));
        assert_true(resolve_is_cuda(caller_in(stubs))); /* the last that was called so */
        assert_false(resolve_is_cuda(caller_in(other)));
    }
    this_thread.stand_in = 0;
    assert_false(resolve_is_cuda(caller_in(stubs)));
    unsigned runtime = load("libcudart.so.12", NULL, true);
    unsigned driver = load("libcuda.so.1", NULL, true);
    for (unsigned caller = stubs; caller <= plugin; caller++) {
        assert_ptr_equal(real_of(symbol, caller), of(runtime));
        assert_ptr_equal(resolve_known(0, caller_in(caller))->real, of(runtime));
    }
    forget();
    for (unsigned caller = stubs; caller <= plugin; caller++)
        assert_ptr_equal(real_of(driver_symbol, caller), of(driver));
    forget();
    loaded[quota].defines = true;
    for (unsigned i = 0; i < 2; i++)
        for (unsigned caller = stubs; caller <= plugin; caller++)
            assert_ptr_equal(real_of(names[i], caller), of(quota));
    assert_true(resolve_is_cuda(caller_in(quota)));
    assert_int_equal(this_thread.stand_in, 0);
}

/* A program that is linked with stubs; what they call by our hook is no call of theirs. */
static void linked_stubs(void **state)
{
    (void)state;
    unsigned stubs = load("libstubs.so", NULL, true);
    load("libc.so.6", "libstubs.so", false);
    unsigned driver = load("libcuda.so.1", NULL, true);
    unsigned plugin = load("plugin.so", NULL, false);
    assert_ptr_equal(real_of(driver_symbol, plugin), of(stubs));
    assert_ptr_equal(real_of(driver_symbol, stubs), of(driver));
    assert_ptr_equal(real_of(driver_symbol, 0), of(driver)); /* it jumped */
    assert_true(resolve_is_cuda(caller_in(stubs)) && resolve_is_cuda(caller_in(0)));
}

static void asked(void **state)
{
    (void)state;
    const struct hook hook = {.symbol = symbol, .domain = API_RUNTIME};
    const struct hook driver_hook = {.symbol = driver_symbol, .domain = API_DRIVER};
    unsigned quota = load("libquota.so", NULL, false);
    load("libc.so.6", NULL, false);
    unsigned stubs = load("libstubs.so", NULL, true);
    unsigned old = load("libcudart.so.11.0", NULL, true);
    unsigned new = load("libcudart.so.13", NULL, true);
    unsigned driver = load("libcuda.so.1", NULL, true);
    unsigned plugin = load("plugin.so", NULL, false);
    assert_true(resolve_asked(&hook, caller_in(stubs), of(new)));
    assert_ptr_equal(real_of(symbol, stubs), of(new));
    assert_int_equal(resolve_known(0, caller_in(stubs))->major, 13);
    assert_ptr_equal(real_of(symbol, plugin), of(old));
    assert_false(resolve_asked(&hook, caller_in(plugin), of(stubs)));
    forget();
    loaded[quota].defines = true; /* and a plugin that asks the driver itself is not its client */
    assert_true(resolve_asked(&driver_hook, caller_in(plugin), of(driver)));
    assert_ptr_equal(real_of(driver_symbol, plugin), of(driver));
    assert_ptr_equal(real_of(driver_symbol, new), of(quota));
    assert_false(resolve_asked(&driver_hook, caller_in(quota), of(driver)));
    assert_false(resolve_asked(&driver_hook, caller_in(stubs), of(driver)));
}

/* Who has a hook from others, as ctypes gives it on, calls what these asked for, if that is one. */
static void asked_by_others(void **state)
{
    (void)state;
    const struct hook hook = {.symbol = symbol, .domain = API_RUNTIME};
    load("libc.so.6", NULL, false);
    unsigned old = load("libcudart.so.11.0", NULL, true);
    unsigned new = load("libcudart.so.13", NULL, true);
    unsigned helper = load("helper.so", NULL, false);
    unsigned second = load("second.so", NULL, false);
    unsigned linked = load("linked.so", "libcudart.so.11.0", false);
    unsigned imports = load("imports.so", NULL, false);
    unsigned caller = load("caller.so", NULL, false), later = load("later.so", NULL, false);
    loaded[linked].has_pointers = loaded[caller].has_pointers = loaded[later].has_pointers = true;
    assert_true(resolve_asked(&hook, caller_in(helper), of(new)));
    assert_false(resolve_asked(&hook, caller_in(helper), of(old))); /* a hook goes to one only */
    assert_ptr_equal(real_of(symbol, caller), of(new));
    assert_int_equal(resolve_known(0, caller_in(caller))->major, 13);
    assert_ptr_equal(real_of(symbol, linked), of(old));
    assert_ptr_equal(real_of(symbol, imports), of(old));
    assert_true(resolve_asked(&hook, caller_in(second), of(old)));
    assert_ptr_equal(real_of(symbol, later), of(old));
}

#define SLOTS  150u /* times the plugins: more than there is room for */
#define ROUNDS 2000

/* Calls from one of two plugins, which are linked with different runtimes. */
static void *call_often(void *plugin)
{
    struct binding mine;
    unsigned long wrong = 0;
    uintptr_t caller = (uintptr_t)plugin;
    void *real = resolve_slow(0, API_RUNTIME, symbol, caller, &mine)->real;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct binding *b = resolve(0, API_RUNTIME, symbol, caller, &mine);
        sched_yield(); /* another's turn, between the look-up and the call */
        wrong += b->real != real;
    }
    return (void *)wrong;
}

static void full(void **state)
{
    (void)state;
    load("libc.so.6", NULL, false);
    unsigned old = load("libcudart.so.11.0", NULL, true);
    unsigned new = load("libcudart.so.13", NULL, true);
    while (loaded_count < OBJECTS_MAX)
        load("plugin.so", loaded_count % 2 ? "libcudart.so.13" : "libcudart.so.11.0", false);
    for (unsigned plugin = new + 1; plugin < OBJECTS_MAX - 2; plugin++)
        for (unsigned slot = 0; slot < SLOTS; slot++)
            resolve(slot, API_RUNTIME, symbol, caller_in(plugin), &unbound);
    const struct hook hook = {.symbol = symbol, .domain = API_RUNTIME};
    assert_null(resolve_known(0, caller_in(OBJECTS_MAX - 1)));
    /* Who asked for the one is not to be given a hook that may go to the other. */
    assert_false(resolve_asked(&hook, caller_in(OBJECTS_MAX - 1), of(old)));
    assert_ptr_equal(real_of(symbol, OBJECTS_MAX - 1), of(new));
    assert_int_equal(unbound.major, 13);
    assert_ptr_equal(real_of(symbol, OBJECTS_MAX - 2), of(old));
    assert_int_equal(unbound.major, 11);
    assert_int_equal(this_thread.stand_in, 0);
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, call_often, (void *)caller_in(OBJECTS_MAX - 1 - i % 2));
    for (unsigned i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_int_equal((unsigned long)wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(order, start), cmocka_unit_test_setup(linked_stubs, start),
        cmocka_unit_test_setup(asked, start), cmocka_unit_test_setup(asked_by_others, start),
        cmocka_unit_test_setup(full, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
