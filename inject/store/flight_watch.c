/* SPDX-License-Identifier: Apache-2.0 */
#include "store/flight_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/say.h"
#include "base/ticks.h"
#include "record/state.h"
#include "record/wake.h"

/* do not ask for the same reason again within this time: what failed once fails again soon */
#define AGAIN_NS      60000000000u
#define STEPS_KEPT    64u
#define STEPS_MIN     8u /* before a step can be slow */
#define TEXT_BYTES    256
#define OUT_OF_MEMORY 2 /* value in the runtime's and the driver's enumeration */

/* A request of another thread. */
enum slot { SLOT_FREE, SLOT_FILLING, SLOT_READY };
static _Atomic uint32_t slot; /* enum slot; used by gpuprof_dump's callers and the writer */
static enum dump_reason slot_reason;
static char slot_text[TEXT_BYTES];
static _Atomic uint32_t signalled; /* set by the handler */
static _Atomic uint32_t is_on;

/* Used by the writer. */
static struct {
    struct dump due;                      /* reason 0: none */
    uint64_t asked_ns[DUMP_REASON_COUNT]; /* time of the last dump for each reason; 0: never */
    uint64_t launched_ticks; /* when the last work was launched; 0: none since it was reported */
    uint64_t collective_ns;  /* since when one has been waiting; 0: none */
    uint64_t collectives;    /* calls that have not returned */
    bool has_gpu;            /* there are device records */
    uint64_t step, step_ns;  /* the current step; 0: none */
    uint64_t step_count;
    uint64_t lasted_ns[STEPS_KEPT];
} seen;

/* ---- what others ask for --------------------------------------------------------------------- */

int flight_watch_ask(enum dump_reason reason, const char *text)
{
    uint32_t free = SLOT_FREE;
    if (!atomic_load(&is_on))
        return -1;
    if (atomic_compare_exchange_strong(&slot, &free, SLOT_FILLING)) {
        slot_reason = reason;
        strncpy(slot_text, text ? text : "", sizeof slot_text - 1);
        atomic_store(&slot, SLOT_READY);
        writer_wake();
    }
    return 0;
}

bool flight_watch_waits(void)
{
    return atomic_load(&slot) != SLOT_FREE;
}

static void on_signal(int number)
{
    (void)number;
    atomic_store(&signalled, 1);
    writer_wake();
}

static void take_signal(int number)
{
    struct sigaction old, own = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&own.sa_mask);
    if (sigaction(number, NULL, &old) < 0)
        say(SAY_FLIGHT, "--dump-signal=%d: cannot handle this signal: %s; it will cause no dump",
            number, error_text(errno));
    else if (old.sa_flags & SA_SIGINFO ||
             (old.sa_handler != SIG_DFL && old.sa_handler != on_signal))
        say(SAY_FLIGHT,
            "--dump-signal=%d: the program handles this signal itself; it will cause no dump",
            number);
    else
        sigaction(number, &own, NULL);
}

void flight_watch_start(bool begins)
{
    memset(&seen, 0, sizeof seen);
    atomic_store(&slot, SLOT_FREE);
    atomic_store(&signalled, 0);
    atomic_store(&is_on, begins);
    if (begins && gp.settings.numbers[SETTING_DUMP_SIGNAL])
        take_signal((int)gp.settings.numbers[SETTING_DUMP_SIGNAL]);
}

/* ---- what the records show ------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    return clock_scale_ns(&gp.header.scale, ticks_now());
}

static void flight_watch_own_ask(struct dump d)
{
    uint64_t now = now_ns(), last = seen.asked_ns[d.reason];
    if (last && now - last < AGAIN_NS)
        return;
    seen.asked_ns[d.reason] = now;
    seen.due = d;
}

static void see_call(const struct record *r)
{
    uint64_t on = gp.settings.numbers[SETTING_DUMP_ON];
    if (r->code >= API_FUNCTION_COUNT)
        return;
    const struct api_function *f = &api_functions[r->code];
    bool is_work = f->class == API_LAUNCH || f->class == API_GRAPH_LAUNCH || f->class == API_COPY;
    bool has_failed = api_has_failed(f->domain, r->result);
    if (f->class == API_LAUNCH || f->class == API_GRAPH_LAUNCH)
        seen.launched_ticks = r->begin;
    if (has_failed && r->result == OUT_OF_MEMORY && f->class == API_ALLOC && on & DUMP_ON_OOM)
        flight_watch_own_ask(
            (struct dump){.reason = DUMP_MEMORY, .value = OUT_OF_MEMORY, .text = f->symbol});
    else if (has_failed && (is_work || f->class == API_SYNC) && on & DUMP_ON_ERROR)
        flight_watch_own_ask((struct dump){
            .reason = DUMP_ERROR, .value = (uint64_t)(int64_t)r->result, .text = f->symbol});
}

static int compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* A step lasts until the next one begins. */
static void see_step(uint64_t number, uint64_t begin_ns)
{
    static uint64_t sorted[STEPS_KEPT];
    uint64_t lasted = begin_ns - seen.step_ns, times = gp.settings.numbers[SETTING_DUMP_STEP];
    if (seen.step_ns && begin_ns > seen.step_ns) {
        uint64_t kept = seen.step_count < STEPS_KEPT ? seen.step_count : STEPS_KEPT;
        memcpy(sorted, seen.lasted_ns, sizeof sorted);
        qsort(sorted, kept, sizeof *sorted, compare_ns);
        uint64_t median = kept ? sorted[kept / 2] : 0;
        if (times && kept >= STEPS_MIN && lasted / times > median)
            flight_watch_own_ask((struct dump){
                .reason = DUMP_STEP, .value = seen.step, .ns = lasted, .median_ns = median});
        seen.lasted_ns[seen.step_count++ % STEPS_KEPT] = lasted;
    }
    seen.step = number;
    seen.step_ns = begin_ns;
}

static void see_library(const struct record *r, uint64_t begin_ns)
{
    unsigned does = r->code < API_FUNCTION_COUNT ? api_functions[r->code].does : API_ROLE_COUNT;
    if (does != API_DOES_COLLECTIVE && does != API_DOES_P2P && does != API_DOES_P2P_RECEIVE)
        return;
    if (r->type == RECORD_LIBRARY_BEGIN) {
        seen.collectives++;
        seen.collective_ns = seen.collective_ns ? seen.collective_ns : begin_ns;
    } else if (seen.collectives && --seen.collectives == 0 && !seen.has_gpu) {
        seen.collective_ns = 0; /* what the device does for it is not known */
    }
}

void flight_watch_launched(uint64_t begin_ticks)
{
    seen.launched_ticks = begin_ticks;
}

bool flight_watch_pass_work(void)
{
    return seen.has_gpu && !seen.collective_ns;
}

void flight_watch_see(const uint8_t *record, size_t bytes)
{
    struct record r;
    if (record_parse(record, bytes, &r) < 0)
        return;
    uint64_t begin_ns = clock_scale_ns(&gp.header.scale, r.begin);
    switch (r.type) {
    case RECORD_CALL: see_call(&r); break;
    case RECORD_LIBRARY_BEGIN:
    case RECORD_LIBRARY_END: see_library(&r, begin_ns); break;
    case RECORD_STEP: see_step(r.arg_count ? r.args[STEP_NUMBER] : 0, begin_ns); break;
    case RECORD_TENSOR_OOM:
        if (gp.settings.numbers[SETTING_DUMP_ON] & DUMP_ON_OOM)
            flight_watch_own_ask(
                (struct dump){.reason = DUMP_MEMORY, .text = "PyTorch's allocator"});
        break;
    case RECORD_KERNEL:
    case RECORD_COPY:
    case RECORD_SET:
    case RECORD_GRAPH:
        seen.has_gpu = true;
        if (!seen.collectives &&
            clock_scale_ns(&gp.header.scale, r.begin + r.duration) > seen.collective_ns)
            seen.collective_ns = 0;
        break;
    default: break;
    }
}

/* Checks for what leaves no record: work that does not come. */
static void see_time(void)
{
    uint64_t now = now_ns();
    uint64_t idle_ns = gp.settings.numbers[SETTING_DUMP_IDLE];
    uint64_t collective_ns = gp.settings.numbers[SETTING_DUMP_COLLECTIVE];
    uint64_t launched_ns = clock_scale_ns(&gp.header.scale, seen.launched_ticks);
    if (idle_ns != SETTING_OFF && seen.launched_ticks && now > launched_ns + idle_ns) {
        flight_watch_own_ask((struct dump){.reason = DUMP_IDLE, .ns = now - launched_ns});
        seen.launched_ticks = 0;
    }
    if (collective_ns != SETTING_OFF && seen.collective_ns &&
        now > seen.collective_ns + collective_ns) {
        flight_watch_own_ask(
            (struct dump){.reason = DUMP_COLLECTIVE, .ns = now - seen.collective_ns});
        seen.collective_ns = 0;
    }
}

bool flight_watch_due(struct dump *d)
{
    static char text[TEXT_BYTES];
    see_time();
    *d = seen.due;
    seen.due = (struct dump){0};
    if (d->reason)
        return true;
    if (atomic_load(&slot) == SLOT_READY) {
        *d = (struct dump){.reason = slot_reason, .text = memcpy(text, slot_text, sizeof text)};
        atomic_store(&slot, SLOT_FREE);
    } else if (atomic_exchange(&signalled, 0)) {
        *d =
            (struct dump){.reason = DUMP_SIGNAL, .value = gp.settings.numbers[SETTING_DUMP_SIGNAL]};
    }
    return d->reason;
}
