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
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/call.h"
#include "range/user_ranges.h"
#include "record/recorded.h"
#include "stress_calls.h"

enum { CALLS = 40, GOVERNED = OFF_STACKS | OFF_QUERIES | OFF_TENTH };

static const uint8_t event_kinds[] = {ARG_EVENT, ARG_STREAM};
static const uint8_t malloc_kinds[] = {ARG_ADDRESS, ARG_BYTES};
static const uint8_t none_late[API_ARGS_MAX];
static const struct call_site record_event = {
    API_CODE_cudaEventRecord, 2,         event_kinds, none_late, API_SYNC, API_PENDING_OF_RUNTIME,
    API_CAPTURE_EVENT_RECORD, COST_QUERY};
static const struct call_site allocate = {API_CODE_cudaMalloc, 2,         malloc_kinds,
                                          none_late,           API_ALLOC, API_PENDING_OF_RUNTIME,
                                          API_CAPTURE_NONE,    COST_ALLOC};
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
    static const uint32_t bits[ASKER_COUNT] = {OFF_PROGRAM, OFF_DEVICE, GOVERNED};
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

/* The next phase: its calls, and what was asked for then. */
static void act(void)
{
    phase++;
    call_all();
    printf("%d %u", (int)getpid(), phase);
    for (unsigned i = 0; i < ASKER_COUNT; i++)
        printf(" %u", (uint32_t)atomic_load(recorded_word((enum asker)i)));
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

int main(int argc, char **argv)
{
    stress_turned = follow;
    if (argc > 2) {
        rounds = (unsigned)strtoul(argv[2], NULL, 10);
        race();
        return 3;
    }
    for (unsigned first = 0; first < ASKER_COUNT; first++)
        for (unsigned second = 0; second < ASKER_COUNT; second++)
            for (unsigned is_first_back = 0; first != second && is_first_back < 2; is_first_back++)
                pair((enum asker)first, (enum asker)second, is_first_back);
    return 3;
}
