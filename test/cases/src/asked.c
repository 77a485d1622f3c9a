/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for less to be recorded, in pairs (record/recorded.h), without CUDA; built together with
 * inject/.
 *
 * asked: in each order of two askers, and of their taking it back, with calls of three kinds after
 * each change, and a child of fork, while both ask, that calls, too. Each phase has a number, which
 * all its calls have as an argument; it prints a line for each: process, phase, the words of the
 * three askers, and what the features were last told to leave out.
 * asked race ROUNDS: four threads ask and take back, two of them for the program, while another one
 * calls. After each round it prints what is left out, and calls with that as an argument.
 * asked overtaken: while a feature turns for one, another asks and takes it back, for the same and
 * for another asker. It prints a line for each: what is asked for, what the feature leaves out.
 * asked inner: calls that were left out, in whose middle recording goes on or another thread begins
 * a capture, with CUDA's own calls inside them, by hooks, by callbacks and by both. Each case has a
 * number, which its calls have as an argument: of the one that is left out and CUDA's inside it,
 * the number; of the program's own in its middle, 100 more; of one after it, 200 more. It prints a
 * line for each: number, whether the usual way is open again then.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti/gpu_callback.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_subscriber.h"
#include "hook/call.h"
#include "range/user_ranges.h"
#include "record/recorded.h"
#include "stress_calls.h"

enum { CALLS = 40, GOVERNED = OFF_STACKS | OFF_QUERIES | OFF_TENTH };

static const uint8_t event_kinds[] = {ARG_EVENT, ARG_STREAM};
static const uint8_t malloc_kinds[] = {ARG_ADDRESS, ARG_BYTES};
static const uint8_t none_late[API_ARGS_MAX];
static const struct call_site record_event = {.code = API_CODE_cudaEventRecord,
                                              .count = 2,
                                              .kinds = event_kinds,
                                              .late = none_late,
                                              .class = API_SYNC,
                                              .pending = API_PENDING_OF_RUNTIME,
                                              .capture = API_CAPTURE_EVENT_RECORD,
                                              .cost = COST_QUERY};
static const struct call_site allocate = {.code = API_CODE_cudaMalloc,
                                          .count = 2,
                                          .kinds = malloc_kinds,
                                          .late = none_late,
                                          .class = API_ALLOC,
                                          .pending = API_PENDING_OF_RUNTIME,
                                          .capture = API_CAPTURE_NONE,
                                          .cost = COST_ALLOC};
/* Of windows test_windows.py has the tests. */
static const enum asker all[] = {ASKER_PROGRAM, ASKER_CLIENT, ASKER_GOVERNOR, ASKER_CONTROL};
enum { ALL = sizeof all / sizeof all[0] };

static unsigned phase;
static atomic_uint turned; /* what features were told to leave out, last */

static void follow(void)
{
    atomic_store(&turned, recorded_asked());
}

/* As the governor and the other client's calls do it. */
static void ask(enum asker asker, uint32_t off)
{
    struct thread *t = &this_thread;
    struct call c;
    struct record step = {.type = RECORD_STEP_DOWN, .code = off ? 1 : 6, .arg_count = 2};
    if (asker == ASKER_PROGRAM) {
        range_pause(off);
    } else if (call_enter_own(t, &c)) {
        bool is_recording = epoch_now() != EPOCH_NONE && thread_attach(t);
        recorded_ask(is_recording ? t : NULL, asker, off, asker == ASKER_GOVERNOR ? &step : NULL);
        thread_set_limit(t); /* at once, not when the writer asks for it */
        call_leave(t);
    }
}

static void turn(enum asker asker, bool off)
{
    static const uint32_t bits[ASKER_COUNT] = {[ASKER_PROGRAM] = OFF_PROGRAM,
                                               [ASKER_CLIENT] = OFF_DEVICE,
                                               [ASKER_GOVERNOR] = GOVERNED,
                                               [ASKER_CONTROL] = OFF_PROGRAM};
    ask(asker, off ? bits[asker] : 0);
}

static void call_all(void)
{
    const uint64_t launch[] = {0x1000, 1, 1, phase, 0x100}, event[] = {phase, 0x100};
    const uint64_t bytes[] = {0, phase};
    for (unsigned i = 0; i < CALLS; i++) {
        stress_call(&stress_launch, launch);
        stress_call(&record_event, event);
        stress_call(&allocate, bytes);
    }
}

static void *on_other(void *(*body)(void *), const void *data)
{
    pthread_t id;
    pthread_create(&id, NULL, body, (void *)(uintptr_t)data);
    pthread_join(id, NULL);
    return NULL;
}

/* The next phase: its calls, and what was asked for then. */
static void act(void)
{
    phase++;
    call_all();
    printf("%d %u", (int)getpid(), phase);
    for (unsigned i = 0; i < ALL; i++)
        printf(" %u", (uint32_t)atomic_load(recorded_word(all[i])));
    printf(" %u\n", atomic_load(&turned));
}

static void fork_child(bool goes_on)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        phase += 100000;
        atomic_store(&turned, 0);
        act();
        if (goes_on)
            turn(ASKER_PROGRAM, false);
        act();
        exit(3);
    }
    waitpid(pid, NULL, 0);
}

static void pair(enum asker first, enum asker second, bool is_first_back)
{
    act();
    turn(first, true);
    act();
    turn(second, true);
    act();
    turn(second, true); /* again */
    act();
    fork_child(is_first_back);
    turn(is_first_back ? first : second, false);
    act();
    turn(is_first_back ? second : first, false);
    act();
}

static const enum asker askers[] = {ASKER_PROGRAM, ASKER_PROGRAM, ASKER_CLIENT, ASKER_GOVERNOR};
enum { THREADS = sizeof askers / sizeof askers[0], TURNS = 3 };
static pthread_barrier_t barrier;
static unsigned rounds;

static void follow_slowly(void)
{
    static _Thread_local unsigned count;
    uint32_t off = recorded_asked();
    usleep(count++ % 3 * 20); /* others ask meanwhile */
    atomic_store(&turned, off);
}

static void *toggle(void *data)
{
    unsigned index = (unsigned)(uintptr_t)data;
    for (unsigned round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        for (unsigned i = 0; i < TURNS; i++)
            turn(askers[index], (i + index + (round >> index)) & 1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void race(void)
{
    pthread_t threads[THREADS];
    stress_turned = follow_slowly;
    call_all();
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, toggle, (void *)(uintptr_t)i);
    for (unsigned round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        call_all();
        pthread_barrier_wait(&barrier);
        phase = recorded_asked();
        printf("%u %u %u %u\n", phase, recorded_off(), atomic_load(&turned),
               !!(atomic_load(&fork_page.recording) & EPOCH_PAUSED));
        call_all();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static enum asker overtaking;

static void *ask_more(void *data)
{
    (void)data;
    turn(overtaking, true);
    return NULL;
}

static void *take_back(void *data)
{
    (void)data;
    turn(overtaking, false);
    return NULL;
}

static void follow_overtaken(void)
{
    stress_turned = follow;
    on_other(ask_more, NULL);
    uint32_t off = recorded_asked();
    on_other(take_back, NULL);
    atomic_store(&turned, off);
}

static void overtaken(void)
{
    call_all();
    for (unsigned i = 0; i < ALL; i++)
        for (unsigned is_on = 0; is_on < 2; is_on++) {
            overtaking = all[i];
            stress_turned = follow_overtaken;
            turn(ASKER_GOVERNOR, is_on);
            printf("%u %u\n", recorded_asked(), atomic_load(&turned));
        }
}

/* ---- calls inside calls that are left out ---------------------------------------------------- */

enum { BY_HOOKS = 1, BY_CALLBACKS = 2 };
enum { CBID = 7, STREAM = 0x100 };

static const struct call_site cuda_event_record = {.code = API_CODE_cuEventRecord,
                                                   .count = 2,
                                                   .kinds = event_kinds,
                                                   .late = none_late,
                                                   .class = API_SYNC,
                                                   .pending = API_PENDING_OF_DRIVER,
                                                   .capture = API_CAPTURE_EVENT_RECORD,
                                                   .cost = COST_QUERY};
static const uint8_t stream_kinds[] = {ARG_STREAM};
static const struct call_site begin_capture = {.code = API_CODE_cudaStreamBeginCapture,
                                               .count = 1,
                                               .kinds = stream_kinds,
                                               .late = none_late,
                                               .class = API_SYNC,
                                               .pending = API_PENDING_OF_RUNTIME,
                                               .capture = API_CAPTURE_BEGIN,
                                               .cost = COST_SYNC};
static const struct call_site end_capture = {.code = API_CODE_cudaStreamEndCapture,
                                             .count = 1,
                                             .kinds = stream_kinds,
                                             .late = none_late,
                                             .class = API_SYNC,
                                             .pending = API_PENDING_OF_RUNTIME,
                                             .capture = API_CAPTURE_END,
                                             .cost = COST_SYNC};

/* In place of hooks.c: the functions of which callbacks tell here. */
const struct call_site *const call_sites[API_FUNCTION_COUNT] = {
    [API_CODE_cudaEventRecord] = &record_event, [API_CODE_cuEventRecord] = &cuda_event_record};

/* No other client is here. */
void gpu_subscriber_tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata)
{
    (void)domain, (void)cbid, (void)cbdata;
}

static uintptr_t of_program(void)
{
    static char here; /* in no code that CUDA has: our own counts as CUDA's, see resolve_is_cuda */
    static char *heap;
    heap = heap ? heap : malloc(sizeof here);
    return (uintptr_t)heap;
}

struct hooked {
    struct call call;
    bool is_short;
};

/* As a wrapper does it. */
static void begin(struct hooked *h, const struct call_site *site, uint64_t number, uintptr_t caller)
{
    const uint64_t words[] = {number, STREAM};
    h->is_short = call_open(&h->call, site, words);
    if (!h->is_short)
        call_begin(&h->call, site, words, caller);
}

static void end(struct hooked *h, const struct call_site *site, uint64_t number)
{
    const uint64_t words[] = {number, STREAM};
    if (h->is_short)
        call_close(&h->call, site, 0, words);
    else
        call_end(&h->call, site, 0, words);
}

static void tell(CUpti_CallbackDomain domain, CUpti_ApiCallbackSite site, const uint64_t *params)
{
    int result = 0;
    CUpti_CallbackData data = {.callbackSite = site,
                               .functionParams = params,
                               .functionReturnValue = &result,
                               .correlationId = (uint32_t)params[0]};
    gpu_callback(NULL, domain, CBID, &data);
}

/* A call as `ways` see it, and what happens in its middle. */
static __attribute__((noinline)) void call_around(unsigned ways, bool is_cudas, uint64_t number,
                                                  void (*middle)(unsigned ways))
{
    const struct call_site *site = is_cudas ? &cuda_event_record : &record_event;
    CUpti_CallbackDomain domain =
        is_cudas ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    volatile uint64_t params[] = {number, STREAM};
    struct hooked hooked;
    if (ways & BY_HOOKS)
        begin(&hooked, site, number, is_cudas ? (uintptr_t)call_around : of_program());
    if (ways & BY_CALLBACKS)
        tell(domain, CUPTI_API_ENTER, (const uint64_t *)params);
    if (middle)
        middle(ways);
    if (ways & BY_CALLBACKS)
        tell(domain, CUPTI_API_EXIT, (const uint64_t *)params);
    if (ways & BY_HOOKS)
        end(&hooked, site, number);
}

static void *capture(void *site)
{
    const uint64_t words[] = {STREAM + 1};
    stress_call(site, words);
    return NULL;
}

static void go_on(unsigned ways)
{
    turn(ASKER_PROGRAM, false);
    call_around(ways, true, phase, NULL);
}

static void go_on_and_call(unsigned ways)
{
    go_on(ways);
    if (ways & BY_HOOKS) /* what only callbacks show is the runtime's own */
        call_around(ways, false, 100 + phase, NULL);
    call_around(ways, true, phase, NULL);
}

static void begin_a_capture(unsigned ways)
{
    on_other(capture, &begin_capture);
    call_around(ways, true, phase, NULL);
}

static void inner_is_left_out(unsigned ways)
{
    call_around(ways, true, phase, go_on);
}

static sigjmp_buf back;

static void jump(unsigned ways)
{
    (void)ways;
    siglongjmp(back, 1);
}

static void jump_inside(unsigned ways)
{
    call_around(ways, true, phase, jump);
}

static void *end_there(void *hooked)
{
    end(hooked, &record_event, phase);
    turn(ASKER_PROGRAM, false);
    call_around(BY_HOOKS, false, 100 + phase, NULL);
    return NULL;
}

/* A coroutine's call: it ends on another thread. */
static void end_elsewhere(void)
{
    struct hooked *h = malloc(sizeof *h);
    begin(h, &record_event, phase, of_program());
    on_other(end_there, h);
    free(h);
}

static void inner(void)
{
    static void (*const middles[])(unsigned) = {
        go_on, go_on_and_call, begin_a_capture, inner_is_left_out, jump, jump_inside};
    enum { MIDDLES = sizeof middles / sizeof middles[0] };
    gpu.callbacks.codes[CUPTI_CB_DOMAIN_RUNTIME_API][CBID] = API_CODE_cudaEventRecord + 1;
    gpu.callbacks.codes[CUPTI_CB_DOMAIN_DRIVER_API][CBID] = API_CODE_cuEventRecord + 1;
    gpu.is_called_back[API_CODE_cudaEventRecord] = gpu.is_called_back[API_CODE_cuEventRecord] =
        true;
    atomic_store(&gpu.cuda_pid, (uint32_t)getpid());
    atomic_store(&gpu.phase, GPU_WATCHING);
    call_around(BY_HOOKS, false, 200, NULL); /* the recording begins */
    for (unsigned ways = BY_HOOKS; ways <= (BY_HOOKS | BY_CALLBACKS); ways++)
        for (unsigned i = 0; i <= MIDDLES; i++) {
            phase++;
            turn(ASKER_PROGRAM, true);
            if (i == MIDDLES)
                end_elsewhere();
            else if (!sigsetjmp(back, 1))
                call_around(ways, false, phase, middles[i]);
            if (i < MIDDLES && middles[i] == begin_a_capture)
                on_other(capture, &end_capture);
            turn(ASKER_PROGRAM, false);
            call_around(ways, false, 200 + phase, NULL);
            call_around(BY_HOOKS, false, 200 + phase, NULL);
            printf("%u %d\n", phase, this_thread.limit != 0);
        }
}

int main(int argc, char **argv)
{
    stress_turned = follow;
    if (argc == 2) {
        (strcmp(argv[1], "inner") == 0 ? inner : overtaken)();
        return 3;
    }
    if (argc > 2) {
        rounds = (unsigned)strtoul(argv[2], NULL, 10);
        race();
        return 3;
    }
    for (unsigned first = 0; first < ALL; first++)
        for (unsigned second = 0; second < ALL; second++)
            for (unsigned is_first_back = 0; first != second && is_first_back < 2; is_first_back++)
                pair(all[first], all[second], is_first_back);
    return 3;
}
