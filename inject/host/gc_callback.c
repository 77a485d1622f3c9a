/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gc_callback.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/say.h"
#include "base/ticks.h"
#include "hook/call.h"
#include "host/gap.h"
#include "python/python.h"
#include "python/python_api.h"
#include "record/recorded.h"
#include "record/thread.h"

#define ASKED_MAX 10u /* seconds until a note says that the main thread has not come */

enum progress { NOT_ASKED, ASKED, SET, LOST };

/* The child of a fork inherits all of it, as it does Python. */
static struct {
    _Atomic uint32_t progress; /* enum progress; the writer sets ASKED, Python's answer the rest */
    uint32_t asked;            /* seconds waited; used by the writer */
    const struct python_api *api;
    uint64_t list, function; /* gc.callbacks and our function in it; written before it is SET */
    /* The collection under way; changed by the thread that holds the GIL, or in a free-threaded
     * build, by the one that collects. */
    _Atomic(struct thread *) begun_by;
    _Atomic uint64_t begin; /* in ticks */
} state;

static uint64_t count_in(object_ptr info, const char *key)
{
    object_ptr number = state.api->dict_get(info, key);
    long long value = number ? state.api->value(number) : 0;
    return value > 0 ? (uint64_t)value : 0;
}

/* Other threads wait for the GIL: nothing here waits. */
static void gc_callback_append(struct thread *t, uint64_t begin, object_ptr info)
{
    struct call own;
    struct record r = {
        RECORD_WITH(GC, [GC_COLLECTED] = count_in(info, "collected"),
                    [GC_UNCOLLECTABLE] = count_in(info, "uncollectable"), [GC_SOURCE] = 0),
        .code = (uint16_t)count_in(info, "generation"), .begin = begin,
        .duration = ticks_now() - begin};
    if (epoch_now() == EPOCH_NONE || recorded_off() & OFF_CALLS || !call_enter_quietly(t, &own))
        return;
    bool before = thread_hurry(t, true);
    if (thread_takes_part(t) || thread_attach(t))
        thread_append(t, &r);
    thread_hurry(t, before);
    call_leave(t);
}

/* callback(phase, info) */
static object_ptr on_collection(object_ptr self, object_ptr arguments)
{
    const struct python_api *api = state.api;
    struct thread *t = &this_thread;
    object_ptr phase = api->tuple_item(arguments, 0), info = api->tuple_item(arguments, 1);
    const char *text = phase && info ? api->utf8(phase) : NULL;
    (void)self;
    if (text && strcmp(text, "start") == 0) {
        atomic_store(&state.begin, ticks_now());
        atomic_store(&state.begun_by, t);
    } else if (text && strcmp(text, "stop") == 0 && atomic_exchange(&state.begun_by, NULL) == t) {
        gc_callback_append(t, atomic_load(&state.begin), info);
    }
    api->clear_error(); /* our errors; Python saves the program's around callbacks */
    api->keep(api->none);
    return api->none;
}

static struct python_method method = {
    "gpuprof", {.tuple = on_collection}, METHOD_VARARGS, "records collections"};

/* Called by Python's main thread, between two of its instructions. */
static int add_callback(void *data)
{
    const struct python_api *api = state.api;
    if (atomic_load(&state.progress) == SET)
        return 0; /* it was asked twice, around a fork */
    object_ptr module = api->import("gc");
    object_ptr list = module ? api->dict_get(api->module_dict(module), "callbacks") : NULL;
    object_ptr function = list ? api->new_function(&method, NULL, NULL) : NULL;
    (void)data;
    bool is_set = function && api->list_append(list, function) == 0;
    if (is_set) {
        api->keep(list); /* the list keeps the function alive, so that the addresses stay theirs */
        api->keep(function);
        state.list = (uintptr_t)list;
        state.function = (uintptr_t)function;
    }
    if (function)
        api->release(function);
    if (module)
        api->release(module);
    int status = python_is_interrupted(api) ? -1 : 0;
    if (status == 0)
        api->clear_error();
    atomic_store(&state.progress, is_set ? SET : NOT_ASKED);
    return status;
}

/* Does a setting ask where the host's time went? */
static bool gc_callback_is_wanted(void)
{
    return gp.settings.numbers[SETTING_PYTHON] &&
           (gp.settings.numbers[SETTING_SAMPLE] != SETTING_OFF ||
            gp.settings.numbers[SETTING_OS] != SETTING_OFF || gap_is_wanted());
}

static void gc_callback_ask(void)
{
    if (!state.api)
        state.api = python_api_find();
    if (!state.api || !state.api->is_initialized())
        return;
    atomic_store(&state.progress, ASKED);
    state.asked = 0;
    /* Python's list of pending calls is full */
    if (state.api->add_pending_call(add_callback, NULL) != 0)
        atomic_store(&state.progress, NOT_ASKED);
}

void gc_look(struct thread *writer)
{
    int saved = errno;
    (void)writer;
    if (!gc_callback_is_wanted())
        return;
    switch ((enum progress)atomic_load(&state.progress)) {
    case NOT_ASKED: gc_callback_ask(); break;
    case ASKED:
        if (++state.asked == ASKED_MAX)
            note(SAY_GC, "garbage collections are not recorded yet: Python's main thread ran no "
                         "Python code in which to register a callback");
        break;
    case SET:
        if (python_list_lacks(state.list, state.function)) {
            note(SAY_GC,
                 "garbage collections are recorded only until the program cleared gc.callbacks");
            atomic_store(&state.progress, LOST);
        }
        break;
    case LOST: break;
    }
    errno = saved;
}

void gc_forget(void)
{
    uint32_t asked = ASKED; /* the pending call may be lost after a fork; making two does no harm */
    atomic_store(&state.begun_by, NULL);
    atomic_compare_exchange_strong(&state.progress, &asked, NOT_ASKED);
}
