/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/futex.h"
#include "base/memory_read.h"
#include "base/objects.h"
#include "base/say.h"
#include "base/status.h"
#include "python/python_borrow.h"
#include "python/python_layout.h"
#include "python/python_places.h"
#include "python/python_walk.h"
#include "record/state.h"
#include "record/thread.h"
#include "store/meta.h"

#define LOOK_LOCK_NS   2000000000u
#define THREADS_MAX    4096u /* threads of the interpreter that are searched */
#define TID_OFFSET_MAX 1024u
#define LINE_BYTES     64u /* of a cache line */
#define WALKS_MAX      3u  /* attempts for a running thread, until two agree */

typedef void *(*get_thread_fn)(void);

/* The first interpreter found. Written with the lock held, before `is_here` is set. */
static struct {
    struct lock lock;
    _Atomic bool is_here;
    bool is_refused;              /* there is one, but its layout is not known */
    _Atomic uint32_t closing;     /* dlclose calls under way, one of which may unload it */
    unsigned long long adds_seen; /* the loader's count of loaded objects at the last search */
    struct status status;
    get_thread_fn get_thread;
    uintptr_t runtime;
    uint64_t loop, loop_end; /* see python_loop; 0: not needed */
    struct python_layout layout;
} python;

/* What an object defines of an interpreter. */
struct found {
    get_thread_fn get_thread;
    const uint8_t *runtime;
    size_t runtime_bytes;
    uint32_t version; /* 0: not known */
    uint64_t types[4];
    uint64_t loop; /* its evaluation function, if exported */
    size_t loop_bytes;
};

typedef const char *(*get_version_fn)(void);

/* Up to 3.10 only a text has the version; the function that returns it needs no lock. */
static uint32_t version_of(const struct object *o)
{
    size_t bytes = 0;
    unsigned major = 0, minor = 0, micro = 0;
    const unsigned long *version = object_symbol_sized(o, "Py_Version", &bytes);
    if (version && bytes == sizeof *version)
        return (uint32_t)*version;
    get_version_fn text = (get_version_fn)(uintptr_t)object_symbol(o, "Py_GetVersion");
    if (!text || sscanf(text(), "%3u.%3u.%3u", &major, &minor, &micro) != 3 || major > 3)
        return 0;
    return major << 24 | (minor & 0xff) << 16 | (micro & 0xff) << 8 | 0xf0;
}

/* One without a runtime is older than 3.7; another one may be known better. */
static int visit_object(const struct object *o, void *data)
{
    static const char *const types[] = {"PyCode_Type", "PyUnicode_Type", "PyBytes_Type",
                                        "PyFrame_Type"};
    struct found *found = data, here = {0};
    void *get_thread = object_symbol(o, "PyGILState_GetThisThreadState");
    if (!get_thread)
        return 0;
    here.get_thread = (get_thread_fn)(uintptr_t)get_thread;
    here.runtime = object_symbol_sized(o, "_PyRuntime", &here.runtime_bytes);
    here.version = version_of(o);
    here.loop = (uintptr_t)object_symbol_sized(o, "_PyEval_EvalFrameDefault", &here.loop_bytes);
    for (unsigned i = 0; i < 4; i++)
        here.types[i] = (uintptr_t)object_symbol(o, types[i]);
    *found = here;
    return here.runtime != NULL;
}

static void set_status(const char *reason, uint32_t version)
{
    char name[32] = "of an unknown version", text[STATUS_BYTES_MAX];
    if (version)
        snprintf(name, sizeof name, "%u.%u.%u", version >> 24, version >> 16 & 0xff,
                 version >> 8 & 0xff);
    if (reason) {
        snprintf(text, sizeof text, "absent: Python %s: %s", name, reason);
        note(SAY_PYTHON, "stacks have no Python frames: Python %s: %s", name, reason);
    } else {
        snprintf(text, sizeof text, "%s", name);
    }
    status_set(&python.status, text);
}

/* The lock must be held. */
static void take_found(const struct found *found)
{
    struct python_layout *l = &python.layout;
    const char *reason =
        python_layout_find(l, found->version, found->runtime, found->runtime_bytes);
    l->code_type = found->types[0];
    l->text_type = found->types[1];
    l->bytes_type = found->types[2];
    bool has_objects = !reason && l->frame_owner == LAYOUT_NONE; /* frames are objects */
    l->frame_type = has_objects ? found->types[3] : 0;
    python.loop = has_objects ? found->loop : 0;
    python.loop_end = python.loop + found->loop_bytes;
    if (!reason &&
        (!l->code_type || !l->text_type || !l->bytes_type || (has_objects && !l->frame_type)))
        reason = "its types were not found";
    if (!reason && l->runtime_finalizing + sizeof(uint64_t) > found->runtime_bytes)
        reason = "its runtime has an unexpected layout";
    if (!reason && !memory_read_start())
        reason = "process_vm_readv and /proc/self/mem are both forbidden here";
    python.get_thread = found->get_thread;
    python.runtime = (uintptr_t)found->runtime;
    set_status(reason, found->version);
    python.is_refused = reason != NULL;
    atomic_store_explicit(&python.is_here, !reason, memory_order_release);
}

static int visit_adds(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(unsigned long long *)data = info->dlpi_adds;
    return 1;
}

void python_look(void)
{
    int saved = errno;
    if (!gp.settings.numbers[SETTING_PYTHON])
        return;
    unsigned long long adds = 0;
    struct found found = {0};
    objects_iterate(visit_adds, &adds);
    if (lock_take(&python.lock, LOOK_LOCK_NS)) {
        if (!atomic_load(&python.is_here) && !python.is_refused && adds != python.adds_seen) {
            python.adds_seen = adds;
            objects_each(visit_object, &found);
            if (found.get_thread)
                take_found(&found);
        }
        lock_drop(&python.lock);
    }
    errno = saved;
}

void python_closing(void)
{
    atomic_fetch_add(&python.closing, 1);
}

void python_refresh(void)
{
    int saved = errno;
    struct object o;
    struct found found = {0};
    if (atomic_load(&python.is_here) &&
        !(object_at(python.runtime, &o) && visit_object(&o, &found) &&
          (uintptr_t)found.runtime == python.runtime))
        atomic_store(&python.is_here, false);
    atomic_fetch_sub(&python.closing, 1);
    errno = saved;
}

bool python_is_here(void)
{
    return atomic_load_explicit(&python.is_here, memory_order_acquire);
}

void python_describe(struct thread *writer, bool is_last)
{
    /* used by the writer: version of the text last written, and its recording */
    static uint32_t reported;
    static uint64_t reported_epoch;
    char text[STATUS_BYTES_MAX] = "absent: switched off";
    bool is_first = reported_epoch != writer->epoch;
    (void)is_last;
    if (gp.settings.numbers[SETTING_PYTHON]
            ? !status_copy(&python.status, &reported, is_first, text)
            : !is_first)
        return;
    reported_epoch = writer->epoch;
    meta_append_text(writer, "python", text);
}

/* Finds the offset from pthread_self()'s address at which the C library stores the kernel's thread
 * id, in the calling thread, where the id is known. 0: not found. */
static uint32_t find_tid_offset(void)
{
    static _Atomic uint32_t found;
    uint32_t offset = atomic_load_explicit(&found, memory_order_relaxed), word;
    uint32_t tid = offset ? 0 : thread_id();
    const uint8_t *self = (const uint8_t *)(uintptr_t)pthread_self(); /* of 2 KiB and more */
    for (uint32_t at = 8; !offset && at < TID_OFFSET_MAX; at += sizeof word) {
        memcpy(&word, self + at, sizeof word);
        if (word == tid)
            atomic_store_explicit(&found, offset = at, memory_order_relaxed);
    }
    return offset;
}

/* Returns 0 if it is not known. Up to 3.10 the interpreter knows its threads only by
 * pthread_self(). */
static uint32_t tid_of(uint64_t state)
{
    uint64_t native = 0;
    uint32_t tid = 0, offset = python.layout.native_is_pthread ? find_tid_offset() : 0;
    if (!memory_read(state + python.layout.thread_native, &native, sizeof native))
        return 0;
    if (!python.layout.native_is_pthread)
        return (uint32_t)native;
    return offset && native && memory_read(native + offset, &tid, sizeof tid) ? tid : 0;
}

/* Reads frames of the thread with that state, or borrowed ones. */
static unsigned read_frames(const struct python_view *v, uint64_t state,
                            struct python_frame *frames, unsigned max, bool is_ending, bool *is_cut,
                            bool *is_borrowed)
{
    int count = state ? python_walk(v, state, frames, max, is_cut) : 0;
    if (count == 0 && !is_ending) {
        count = (int)python_borrow(&python.layout, python.runtime, frames, max, is_cut);
        *is_borrowed = count > 0;
    }
    return count > 0 ? (unsigned)count : 0;
}

/* An interpreter that is finalizing frees the states of threads that still run. */
static bool is_finalizing(void)
{
    return *(const volatile uintptr_t *)(python.runtime + python.layout.runtime_finalizing) != 0;
}

unsigned python_frames(struct python_frame *frames, unsigned max, bool *is_cut, bool *is_borrowed)
{
    *is_cut = *is_borrowed = false;
    if (!python_is_here())
        return 0;
    int saved = errno;
    bool is_ending = is_finalizing();
    const struct python_view own = {.layout = &python.layout, .is_own = !is_ending};
    uint64_t state = (uintptr_t)python.get_thread();
    unsigned count = read_frames(&own, state, frames, max, is_ending, is_cut, is_borrowed);
    errno = saved;
    return count;
}

/* As a thread outside the interpreter sees it: it may be gone. */
static bool has_ended(void)
{
    uint64_t finalizing = 0;
    return !python_is_here() ||
           !memory_read(python.runtime + python.layout.runtime_finalizing, &finalizing,
                        sizeof finalizing) ||
           finalizing != 0;
}

void python_find_threads(const uint32_t *tids, unsigned count, uint64_t *states)
{
    const struct python_layout *l = &python.layout;
    uint64_t interpreter = 0, state = 0;
    memset(states, 0, count * sizeof *states);
    if (has_ended() ||
        !memory_read(python.runtime + l->runtime_interpreters, &interpreter, sizeof interpreter) ||
        !interpreter || !memory_read(interpreter + l->interpreter_threads, &state, sizeof state))
        return;
    for (unsigned seen = 0; state && seen < THREADS_MAX; seen++) {
        uint32_t tid = tid_of(state);
        for (unsigned i = 0; i < count; i++)
            if (tid == tids[i])
                states[i] = state;
        if (!memory_read(state + l->thread_next, &state, sizeof state))
            return;
    }
}

bool python_is_thread(uint64_t state, uint32_t tid)
{
    return state && !has_ended() && tid_of(state) == tid;
}

/* CPython's struct _gil_runtime_state: the same from 3.8 to 3.15, after gil_further. */
struct gil {
    unsigned long interval;
    uint64_t last_holder; /* stays set after a release */
    int32_t locked;       /* 1: taken */
    unsigned long switch_number;
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
};
_Static_assert(offsetof(struct gil, locked) == LAYOUT_GIL_LOCKED, "as the debug offsets have it");

/* Reads the lock of the interpreter whose address is at `from`. */
static bool find_gil(uint64_t from, struct python_gil_place *place)
{
    const struct python_layout *l = &python.layout;
    uint64_t interpreter = 0, address = python.runtime + l->runtime_gil;
    if (l->runtime_gil == LAYOUT_NONE && l->interpreter_gil == LAYOUT_NONE)
        return false;
    if (l->runtime_gil == LAYOUT_NONE &&
        (!memory_read(from, &interpreter, sizeof interpreter) ||
         !memory_read(interpreter + l->interpreter_gil, &address, sizeof address)))
        return false;
    address += address ? l->gil_further : 0;
    *place = (struct python_gil_place){.low = address,
                                       .high = address + sizeof(struct gil),
                                       .dropped = address + offsetof(struct gil, cond),
                                       .taken = address + offsetof(struct gil, switch_cond)};
    return address != 0;
}

bool python_gil_find(struct python_gil_place *place)
{
    return !has_ended() && find_gil(python.runtime + python.layout.runtime_interpreters, place);
}

bool python_gil_look(uint64_t state, struct python_gil *gil)
{
    struct gil now;
    *gil = (struct python_gil){0};
    memory_window_renew();
    if (!state || !python_is_here() ||
        !find_gil(state + python.layout.thread_interpreter, &gil->place) ||
        !memory_read(gil->place.low, &now, offsetof(struct gil, cond)))
        return false;
    gil->holder = now.locked == 1 ? now.last_holder : 0;
    /* The last holder may have ended, and its state may be freed. */
    uint32_t tid = now.last_holder ? tid_of(now.last_holder) : 0;
    gil->holder_tid = gil->holder || (tid && thread_exists(tid)) ? tid : 0;
    return true;
}

bool python_has_stops(void)
{
    return python_is_here() && python.layout.has_stops;
}

/* The part of a thread's state before the frame belongs to the thread, and nobody waits on another
 * address in it. */
bool python_was_stopped(uint64_t address)
{
    uint64_t state = python_has_stops() ? (uintptr_t)python.get_thread() : 0;
    return state && address - state < python.layout.thread_frame;
}

unsigned python_frames_of(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut,
                          bool *is_borrowed)
{
    *is_cut = *is_borrowed = false;
    const struct python_view checked = {.layout = &python.layout};
    return has_ended() ? 0 : read_frames(&checked, state, frames, max, false, is_cut, is_borrowed);
}

bool python_list_lacks(uint64_t list, uint64_t item)
{
    uint64_t words[2], items[64]; /* number of items and their address */
    if (has_ended() || !memory_read(list + python.layout.size, words, sizeof words))
        return false;
    uint64_t count = words[0] < 64 ? words[0] : 64;
    if (count && !memory_read(words[1], items, count * sizeof *items))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (items[i] == item)
            return false;
    return words[0] <= 64;
}

bool python_loop(uint64_t *low, uint64_t *high)
{
    *low = python.loop;
    *high = python.loop_end;
    return python.loop != 0;
}

void python_frames_ahead(const struct python_seen *seen)
{
    for (unsigned i = 0; i < seen->place_count; i++) {
        uint64_t key = seen->places[i];
        enum known_kind kind = key & KNOWN_MASK;
        const char *place = (const char *)(uintptr_t)(key - kind);
        __builtin_prefetch(place);
        __builtin_prefetch(place + LINE_BYTES);
        if (kind == KNOWN_CODE)
            __builtin_prefetch(place + 2 * LINE_BYTES);
        if (kind >= KNOWN_CODE)
            __builtin_prefetch((const void *)&known_addresses[known_slot(key)]);
    }
}

int python_frames_interrupted(struct python_seen *seen, struct python_frame *frames, unsigned max,
                              bool *is_cut)
{
    const struct python_view view = {
        .layout = &python.layout, .is_running = true, .interrupted = seen};
    int saved = errno, count = 0;
    *is_cut = false;
    seen->place_count = 0;
    seen->file = 0;
    memset(seen->pages, 0, sizeof seen->pages);
    if (!python_is_here() || atomic_load(&python.closing) || is_finalizing())
        return 0;
    uint64_t state = (uintptr_t)python.get_thread();
    if (state)
        count = python_walk(&view, state, frames, max, is_cut);
    if (count > 0)
        python_places_ahead(frames, (unsigned)count);
    errno = saved;
    return count;
}

/* Does the thread with that state still have these frames? It may be at another instruction. */
static bool has_frames(uint64_t state, const struct python_frame *frames, unsigned count)
{
    const struct python_view checked = {.layout = &python.layout, .is_running = true};
    struct python_frame now[PYTHON_FRAMES_MAX];
    bool is_cut;
    memory_window_renew();
    if (has_ended() || !python_walk_confirm(&checked, frames, count) ||
        python_walk(&checked, state, now, count ? count : 1, &is_cut) != (int)count)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (now[i].frame != frames[i].frame || now[i].code != frames[i].code ||
            now[i].check != frames[i].check || (i && now[i].instruction != frames[i].instruction))
            return false;
    return true;
}

int python_frames_running(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut)
{
    const struct python_view checked = {.layout = &python.layout, .is_running = true};
    int saved = errno, count = -1;
    bool is_whole = false;
    *is_cut = false;
    if (!state || has_ended())
        return 0;
    for (unsigned walks = 0; walks < WALKS_MAX && !is_whole; walks++) {
        if (walks)
            memory_window_renew();
        count = python_walk(&checked, state, frames, max, is_cut);
        is_whole = count >= 0 && has_frames(state, frames, (unsigned)count);
    }
    errno = saved;
    return is_whole ? count : -1;
}

/* A frame of a thread that may be running. */
struct running {
    uint64_t state;
    const struct python_frame *frames;
    unsigned count;
};

static bool is_held(const void *context)
{
    const struct running *r = context;
    return has_frames(r->state, r->frames, r->count);
}

uint32_t python_location_running(struct thread *t, uint64_t state,
                                 const struct python_frame *frames, unsigned count, unsigned which)
{
    const struct running r = {state, frames, count};
    int saved = errno;
    uint32_t number = python_place_number(t, &python.layout, &frames[which], is_held, &r);
    errno = saved;
    return number;
}

uint32_t python_location(struct thread *t, const struct python_frame *frame)
{
    int saved = errno;
    uint32_t number = python_place_number(t, &python.layout, frame, NULL, NULL);
    errno = saved;
    return number;
}

uint32_t python_location_now(const struct python_frame *frame, struct python_place *text,
                             python_keep_fn keep)
{
    return python_place_now(&python.layout, frame, text, keep);
}

void python_reset(void)
{
    atomic_store(&python.lock.holder, 0);
    atomic_store(&python.closing, 0);
    python_places_reset();
    python_borrow_reset();
}
