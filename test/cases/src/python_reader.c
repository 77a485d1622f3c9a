/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Python module that reads the frames of its callers the way the library does, with the library's
 * own sources, and with deliberately wrong ideas of where things are. Of the stable ABI: one build
 * serves every version of Python.
 */
#define PY_SSIZE_T_CLEAN
#ifndef FREE_THREADED /* which has no stable ABI */
#define Py_LIMITED_API 0x03080000
#endif
#include <Python.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/objects.h"
#include "base/say.h"
#include "base/status.h"
#include "python/python.h"
#include "python/python_code.h"
#include "python/python_layout.h"
#include "python/python_places.h"
#include "python/python_walk.h"
#include "record/thread.h"
#include "store/meta.h"

#define PLACES_MAX 200000

/* What the library's sources want of the rest of it. */
struct state gp;
struct fork_page fork_page;
__thread struct thread this_thread;

static char said[600];
static struct {
    char *_Atomic text; /* as in the record, terminated; last */
    uint32_t byte_count;
    uint32_t line;
} places[PLACES_MAX];
static _Atomic unsigned record_count;

/* The texts, one after another: they are appended in signal handlers, too. */
static char texts[64u << 20];
static _Atomic size_t text_bytes;

void say(enum say_cause cause, const char *format, ...)
{
    (void)cause;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
}

void note(enum say_cause cause, const char *format, ...)
{
    (void)cause;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
}

static char told[STATUS_BYTES_MAX]; /* the last META record */

void meta_append_text(struct thread *writer, const char *key, const char *value)
{
    (void)writer;
    (void)key;
    snprintf(told, sizeof told, "%s", value);
}

bool thread_append(struct thread *t, const struct record *r)
{
    (void)t;
    uint64_t number = r->args[0];
    if (r->type != RECORD_PYTHON || number >= PLACES_MAX || places[number].text)
        abort();
    size_t at = atomic_fetch_add(&text_bytes, r->byte_count + 1);
    if (at + r->byte_count >= sizeof texts)
        abort();
    char *text = texts + at;
    memcpy(text, r->bytes, r->byte_count);
    text[r->byte_count] = '\0';
    places[number].byte_count = r->byte_count;
    places[number].line = (uint32_t)r->args[1];
    places[number].text = text;
    record_count++;
    return true;
}

struct stack {
    struct python_frame frames[PYTHON_FRAMES_MAX];
    uint32_t locations[PYTHON_FRAMES_MAX];
    unsigned count;
    bool is_cut;
    bool is_borrowed;
    struct python_seen seen;
};

static void take(struct stack *s, unsigned max)
{
    s->count = python_frames(s->frames, max, &s->is_cut, &s->is_borrowed);
    for (unsigned i = 0; i < s->count; i++)
        s->locations[i] = python_location(&this_thread, &s->frames[i]);
}

static const char *function_of(const struct stack *s, unsigned i)
{
    const char *text;
    do /* another thread may have met it first, and be just about to append it */
        text = places[s->locations[i]].text;
    while (!text && s->locations[i]);
    return text ? text + strlen(text) + 1 : "";
}

/* ([(file, function, line, is_entry), ...], is_cut, is_borrowed) */
static PyObject *to_python(const struct stack *s)
{
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < s->count; i++) {
        const char *function = function_of(s, i), *text = places[s->locations[i]].text;
        PyObject *item =
            Py_BuildValue("(ssIO)", text ? text : "", function, places[s->locations[i]].line,
                          s->frames[i].entry ? Py_True : Py_False);
        if (item)
            PyList_Append(list, item);
        Py_XDECREF(item);
    }
    return Py_BuildValue("(NOO)", list, s->is_cut ? Py_True : Py_False,
                         s->is_borrowed ? Py_True : Py_False);
}

/* A thread that pauses while it reads names, and one that comes meanwhile. */
static struct {
    _Atomic bool is_due;
    sem_t paused, over;
} reading;

void __real_python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                              uint64_t instruction, struct python_place *place);
void __wrap_python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                              uint64_t instruction, struct python_place *place);
void __wrap_python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                              uint64_t instruction, struct python_place *place)
{
    if (!this_thread.is_hurried && atomic_exchange(&reading.is_due, false)) {
        sem_post(&reading.paused);
        sem_wait(&reading.over);
    }
    __real_python_code_place(v, code, head, instruction, place);
}

static PyObject *pause_reading(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    sem_init(&reading.paused, 0, 0);
    sem_init(&reading.over, 0, 0);
    atomic_store(&reading.is_due, true);
    Py_RETURN_NONE;
}

static PyObject *pause_wait(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    sem_wait(&reading.paused);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *pause_end(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    sem_post(&reading.over);
    Py_RETURN_NONE;
}

/* Without the GIL, as PyTorch calls CUDA. */
static PyObject *frames(PyObject *self, PyObject *arguments)
{
    static _Thread_local struct stack s;
    unsigned max = PYTHON_FRAMES_MAX;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "|I", &max))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    take(&s, max < PYTHON_FRAMES_MAX ? max : PYTHON_FRAMES_MAX);
    Py_END_ALLOW_THREADS;
    return to_python(&s);
}

static PyObject *frames_held(PyObject *self, PyObject *unused)
{
    static _Thread_local struct stack s;
    (void)self, (void)unused;
    take(&s, PYTHON_FRAMES_MAX);
    return to_python(&s);
}

#define SAMPLE_SIGNAL (SIGRTMIN + 7)
#define SAMPLES_MAX   20000u

/* What the handler found: the number of frames of each sample, and their places. */
static __thread struct stack last; /* of a thread: free-threaded ones come at a time */
static struct {
    unsigned count, torn, unnamed;
    uint16_t lengths[SAMPLES_MAX];
    uint32_t *locations[SAMPLES_MAX];
    uint32_t all[SAMPLES_MAX * 64];
    unsigned used;
    timer_t timer;
} samples;

static void on_sample(int number, siginfo_t *info, void *context)
{
    struct stack *s = &last;
    (void)number, (void)context;
    this_thread.is_hurried = true;
    int count = python_frames_interrupted(&s->seen, s->frames, PYTHON_FRAMES_MAX, &s->is_cut);
    s->count = count > 0 ? (unsigned)count : 0;
    s->is_borrowed = false;
    for (unsigned i = 0; i < s->count; i++)
        s->locations[i] = python_location(&this_thread, &s->frames[i]);
    this_thread.is_hurried = false;
    if (info->si_code != SI_TIMER)
        return;
    samples.torn += count < 0;
    if (count <= 0 || samples.count == SAMPLES_MAX || samples.used + s->count > SAMPLES_MAX * 64)
        return;
    for (unsigned i = 0; i < s->count; i++)
        samples.unnamed += !s->locations[i];
    samples.lengths[samples.count] = (uint16_t)s->count;
    samples.locations[samples.count++] = samples.all + samples.used;
    memcpy(samples.all + samples.used, s->locations, s->count * sizeof *s->locations);
    samples.used += s->count;
}

static void handle_samples(void)
{
    struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SAMPLE_SIGNAL, &action, NULL);
}

/* As a handler on this thread reads them. */
static PyObject *frames_interrupted(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    handle_samples();
    pthread_kill(pthread_self(), SAMPLE_SIGNAL);
    return to_python(&last);
}

/* A signal to this thread each `us`. */
static PyObject *sample_begin(PyObject *self, PyObject *us)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SAMPLE_SIGNAL};
    long ns = 1000 * PyLong_AsLong(us);
    struct itimerspec spec = {{0, ns}, {0, ns}};
    (void)self;
    handle_samples();
    samples.count = samples.torn = samples.unnamed = samples.used = 0;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &samples.timer) < 0 ||
        timer_settime(samples.timer, 0, &spec, NULL) < 0)
        abort();
    Py_RETURN_NONE;
}

/* (torn stacks, frames without a place, the others as lists of (function, line)) */
static PyObject *sample_end(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    timer_delete(samples.timer);
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < samples.count; i++) {
        PyObject *stack = PyList_New(0);
        for (unsigned k = 0; stack && k < samples.lengths[i]; k++) {
            uint32_t at = samples.locations[i][k];
            const char *text = places[at].text;
            PyObject *item =
                Py_BuildValue("(sI)", text ? text + strlen(text) + 1 : "", places[at].line);
            if (item)
                PyList_Append(stack, item);
            Py_XDECREF(item);
        }
        if (stack)
            PyList_Append(list, stack);
        Py_XDECREF(stack);
    }
    return Py_BuildValue("(IIN)", samples.torn, samples.unnamed, list);
}

/* Another thread that reads those of the one with `state`, which runs on. */
static struct {
    pthread_t thread;
    uint64_t state;
    _Atomic bool is_over;
} look;

static void *look_main(void *data)
{
    struct stack *s = &last;
    (void)data;
    while (!atomic_load(&look.is_over)) {
        int count = python_frames_running(look.state, s->frames, PYTHON_FRAMES_MAX, &s->is_cut);
        samples.torn += count < 0;
        if (count <= 0 || samples.count == SAMPLES_MAX ||
            samples.used + (unsigned)count > SAMPLES_MAX * 64)
            continue;
        samples.lengths[samples.count] = (uint16_t)count;
        samples.locations[samples.count++] = samples.all + samples.used;
        for (unsigned i = 0; i < (unsigned)count; i++) {
            uint32_t location =
                python_location_running(&this_thread, look.state, s->frames, (unsigned)count, i);
            samples.unnamed += !location;
            samples.all[samples.used++] = location;
        }
    }
    return NULL;
}

static PyObject *look_begin(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    samples.count = samples.torn = samples.unnamed = samples.used = 0;
    look.state = (uintptr_t)PyGILState_GetThisThreadState();
    atomic_store(&look.is_over, false);
    pthread_create(&look.thread, NULL, look_main, NULL);
    Py_RETURN_NONE;
}

static PyObject *look_end(PyObject *self, PyObject *unused)
{
    atomic_store(&look.is_over, true);
    pthread_join(look.thread, NULL);
    return sample_end(self, unused);
}

/* Back into Python. */
static PyObject *call(PyObject *self, PyObject *function)
{
    (void)self;
    return PyObject_CallObject(function, NULL);
}

/* One that Python knows nothing of. */
static void *native_main(void *data)
{
    take(data, PYTHON_FRAMES_MAX);
    return NULL;
}

/* One that Python knows, as it does PyTorch's, but that has no frames. */
static void *known_main(void *data)
{
    PyGILState_STATE before = PyGILState_Ensure();
    Py_BEGIN_ALLOW_THREADS;
    for (unsigned i = 0; i < 3; i++) /* looked at before it is believed */
        take(data, PYTHON_FRAMES_MAX);
    Py_END_ALLOW_THREADS;
    PyGILState_Release(before);
    return NULL;
}

/* On such a thread, for which the caller waits without the GIL. */
static PyObject *frames_of(void *(*thread_main)(void *))
{
    static struct stack s;
    pthread_t thread;
    Py_BEGIN_ALLOW_THREADS;
    pthread_create(&thread, NULL, thread_main, &s);
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    return to_python(&s);
}

static PyObject *frames_of_native_thread(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return frames_of(native_main);
}

static PyObject *frames_of_known_thread(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return frames_of(known_main);
}

#define WATCHERS 3

static struct {
    pthread_t threads[WATCHERS];
    _Atomic bool is_over;
    _Atomic unsigned long with_frames, without, wrong;
} watch;

/* The N of the function train_N, the outermost but for the module; 0: none. */
static unsigned long number_of(const struct stack *s)
{
    unsigned long number = 0;
    sscanf(s->count > 1 ? function_of(s, s->count - 2) : "", "train_%lu", &number);
    return number;
}

/* Borrows as often as it can; each stack must go from the waiting function to the module, and none
 * may come back when a later one was seen. */
static void *watch_main(void *data)
{
    static _Thread_local struct stack s;
    unsigned long newest = 0;
    (void)data;
    while (!atomic_load(&watch.is_over)) {
        take(&s, PYTHON_FRAMES_MAX);
        bool is_right = s.count && s.is_borrowed && !s.is_cut &&
                        !strcmp(function_of(&s, 0), "_engine_run_backward") &&
                        !strcmp(function_of(&s, s.count - 1), "<module>") &&
                        number_of(&s) >= newest;
        newest = is_right ? number_of(&s) : newest;
        watch.without += !s.count;
        watch.with_frames += is_right;
        watch.wrong += s.count && !is_right;
    }
    return NULL;
}

static PyObject *watch_begin(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    for (unsigned i = 0; i < WATCHERS; i++)
        pthread_create(&watch.threads[i], NULL, watch_main, NULL);
    Py_RETURN_NONE;
}

/* (stacks as they should be, none, wrong ones) */
static PyObject *watch_end(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    atomic_store(&watch.is_over, true);
    Py_BEGIN_ALLOW_THREADS;
    for (unsigned i = 0; i < WATCHERS; i++)
        pthread_join(watch.threads[i], NULL);
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("(kkk)", atomic_load(&watch.with_frames), atomic_load(&watch.without),
                         atomic_load(&watch.wrong));
}

/* Without the GIL, for that long. */
static PyObject *wait_us(PyObject *self, PyObject *us)
{
    struct timespec time = {.tv_nsec = 1000 * PyLong_AsLong(us)};
    (void)self;
    Py_BEGIN_ALLOW_THREADS;
    nanosleep(&time, NULL);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *status(PyObject *self, PyObject *unused)
{
    static struct thread writer;
    const char *text = told;
    (void)self, (void)unused;
    writer.epoch++; /* of another recording: all is told again */
    told[0] = '\0';
    python_describe(&writer, false);
    return Py_BuildValue("(ssO)", text, said, python_is_here() ? Py_True : Py_False);
}

/* The record's count so far; and all of it anew, as in the child of a fork. */
static PyObject *records(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromLong(record_count);
}

static PyObject *reset(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    python_reset();
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        places[i].text = NULL;
    }
    text_bytes = 0;
    Py_RETURN_NONE;
}

struct runtime {
    const uint8_t *runtime;
    size_t bytes;
    uint32_t version;
    struct python_layout layout;
};

static int find_runtime(const struct object *o, void *data)
{
    struct runtime *found = data;
    const unsigned long *version = object_symbol(o, "Py_Version");
    found->runtime = object_symbol_sized(o, "_PyRuntime", &found->bytes);
    found->layout.code_type = (uintptr_t)object_symbol(o, "PyCode_Type");
    found->layout.text_type = (uintptr_t)object_symbol(o, "PyUnicode_Type");
    found->layout.bytes_type = (uintptr_t)object_symbol(o, "PyBytes_Type");
    found->version = version ? (uint32_t)*version : 0;
    return found->runtime != NULL;
}

/* The true layout, into which `values` (a dict of word index to value) are put. */
static bool make_layout(PyObject *values, struct python_layout *layout)
{
    struct runtime found = {0};
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!objects_each(find_runtime, &found) ||
        python_layout_find(layout, found.version, found.runtime, found.bytes))
        return false;
    layout->code_type = found.layout.code_type;
    layout->text_type = found.layout.text_type;
    layout->bytes_type = found.layout.bytes_type;
    while (PyDict_Next(values, &at, &key, &value)) {
        size_t index = PyLong_AsSize_t(key);
        if (index < offsetof(struct python_layout, owner_c) / 4)
            ((uint32_t *)layout)[index] = (uint32_t)PyLong_AsUnsignedLongMask(value);
    }
    return python_layout_is_sound(layout);
}

/* walk({index: value}): frames by that layout, -1 if they are refused; names are decoded, too. */
static PyObject *walk(PyObject *self, PyObject *values)
{
    static struct python_frame frames_found[PYTHON_FRAMES_MAX];
    static struct python_place place;
    uint8_t head[LAYOUT_PART_BYTES_MAX];
    struct python_layout layout;
    bool is_cut;
    int count = -2;
    (void)self;
    if (!make_layout(values, &layout))
        return PyLong_FromLong(-3);
    uint64_t thread = (uintptr_t)PyGILState_GetThisThreadState();
    for (int pass = 0; pass < 2; pass++) { /* the second one believes what the first one saw */
        const struct python_view view = {.layout = &layout, .is_own = true};
        count = python_walk(&view, thread, frames_found, PYTHON_FRAMES_MAX, &is_cut);
        for (int i = 0; i < count; i++)
            if (python_code_head(&view, frames_found[i].code, head))
                python_code_place(&view, frames_found[i].code, head, frames_found[i].instruction,
                                  &place);
    }
    for (unsigned i = 0; i < KNOWN_SLOTS; i++) /* of no use to the right layout */
        atomic_store(&known_addresses[i], 0);
    return PyLong_FromLong(count);
}

/* Why there is no layout for this version and these bytes as its runtime; None: there is one. */
static PyObject *reason(PyObject *self, PyObject *arguments)
{
    struct python_layout layout;
    unsigned version;
    const char *runtime;
    Py_ssize_t bytes;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "Iy#", &version, &runtime, &bytes))
        return NULL;
    return Py_BuildValue(
        "s", python_layout_find(&layout, version, (const uint8_t *)runtime, (size_t)bytes));
}

/* As a container does: the calls named in the variable are not permitted from now on. */
static void forbid(void)
{
    const char *what = getenv("FORBID");
    unsigned also = what && strcmp(what, "both") == 0 ? SYS_pread64 : SYS_process_vm_readv;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (what && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0))
        abort();
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct cost {
    unsigned rounds;
    double least_ns;
    struct stack stack;
};

static void *cost_main(void *data)
{
    struct cost *c = data;
    c->least_ns = 1e18;
    for (unsigned round = 0; round < c->rounds; round++) {
        double begin = now_ns();
        for (int i = 0; i < 1000; i++)
            take(&c->stack, PYTHON_FRAMES_MAX);
        double mean = (now_ns() - begin) / 1000;
        c->least_ns = mean < c->least_ns ? mean : c->least_ns;
    }
    return NULL;
}

/* ns for the frames and their numbers, the least of `rounds` means of 1000; and how many frames. */
static PyObject *cost(PyObject *self, PyObject *rounds)
{
    static struct cost c;
    (void)self;
    c.rounds = (unsigned)PyLong_AsLong(rounds);
    cost_main(&c);
    return Py_BuildValue("(dI)", c.least_ns, c.stack.count);
}

/* The same on a thread that borrows them, while the caller waits. */
static PyObject *cost_borrowed(PyObject *self, PyObject *rounds)
{
    static struct cost c;
    pthread_t thread;
    (void)self;
    c.rounds = (unsigned)PyLong_AsLong(rounds);
    Py_BEGIN_ALLOW_THREADS;
    pthread_create(&thread, NULL, cost_main, &c);
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("(dI)", c.least_ns, c.stack.count);
}

/* The same as a handler does it. */
static PyObject *cost_interrupted(PyObject *self, PyObject *rounds)
{
    static struct stack s;
    double least = 1e18;
    (void)self;
    for (long round = PyLong_AsLong(rounds); round > 0; round--) {
        double begin = now_ns();
        for (int i = 0; i < 1000; i++) {
            int count = python_frames_interrupted(&s.seen, s.frames, PYTHON_FRAMES_MAX, &s.is_cut);
            for (int k = 0; k < count; k++)
                s.locations[k] = python_location(&this_thread, &s.frames[k]);
            s.count = (unsigned)count;
        }
        double mean = (now_ns() - begin) / 1000;
        least = mean < least ? mean : least;
    }
    return Py_BuildValue("(dI)", least, s.count);
}

static PyMethodDef methods[] = {
    {"frames", frames, METH_VARARGS, NULL},
    {"pause_reading", pause_reading, METH_NOARGS, NULL},
    {"pause_wait", pause_wait, METH_NOARGS, NULL},
    {"pause_end", pause_end, METH_NOARGS, NULL},
    {"frames_held", frames_held, METH_NOARGS, NULL},
    {"frames_interrupted", frames_interrupted, METH_NOARGS, NULL},
    {"sample_begin", sample_begin, METH_O, NULL},
    {"sample_end", sample_end, METH_NOARGS, NULL},
    {"look_begin", look_begin, METH_NOARGS, NULL},
    {"look_end", look_end, METH_NOARGS, NULL},
    {"cost_interrupted", cost_interrupted, METH_O, NULL},
    {"frames_of_native_thread", frames_of_native_thread, METH_NOARGS, NULL},
    {"frames_of_known_thread", frames_of_known_thread, METH_NOARGS, NULL},
    {"watch_begin", watch_begin, METH_NOARGS, NULL},
    {"watch_end", watch_end, METH_NOARGS, NULL},
    {"wait_us", wait_us, METH_O, NULL},
    {"call", call, METH_O, NULL},
    {"status", status, METH_NOARGS, NULL},
    {"records", records, METH_NOARGS, NULL},
    {"reset", reset, METH_NOARGS, NULL},
    {"walk", walk, METH_O, NULL},
    {"reason", reason, METH_VARARGS, NULL},
    {"cost", cost, METH_O, NULL},
    {"cost_borrowed", cost_borrowed, METH_O, NULL},
    {0},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "python_reader", .m_methods = methods, .m_size = -1};

PyMODINIT_FUNC PyInit_python_reader(void)
{
    forbid();
    gp.settings.numbers[SETTING_PYTHON] = 1;
    python_look();
    PyObject *made = PyModule_Create(&module);
#ifdef FREE_THREADED
    PyUnstable_Module_SetGIL(made, Py_MOD_GIL_NOT_USED);
#endif
    return made;
}
