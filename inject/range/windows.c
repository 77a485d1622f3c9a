/* SPDX-License-Identifier: Apache-2.0 */
#include "range/windows.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/say.h"
#include "base/ticks.h"
#include "cupti/gpu_session.h"
#include "hook/call.h"
#include "range/labels.h"
#include "range/step_count.h"
#include "record/recorded.h"
#include "record/start.h"
#include "record/wake.h"
#include "schedule.h"
#include "store/meta.h"

#define LINGER_NS 1000000000u /* how long device records stay on after a window closes */
/* held for a few stores, or while a capture turns recording on */
#define LOCK_NS        20000000u
#define DESCRIBE_NS    1000000000u
#define NAME_BYTES_MAX 256 /* of names that are compared with a pattern, and a zero */

/* Set by the constructor, then constant. */
static struct {
    bool is_set; /* at least one of these settings is set */
    bool is_scheduled;
    bool is_counted; /* gpuprof ctl may set a schedule */
    struct schedule schedule;
    struct capture capture;
    enum capture_end capture_end;
    uint64_t captures_max;
    uint64_t begin_ns;                      /* CLOCK_MONOTONIC: end of the delay */
    uint64_t duration_ns;                   /* SETTING_OFF: unlimited */
    char range[SETTING_TEXT_BYTES_MAX + 1]; /* the text to which `capture` points */
} how;

static struct lock lock; /* protects what follows */

static struct {
    enum step_source source;
    uint64_t steps;                   /* steps that have begun */
    uint64_t step_number, step_ticks; /* of the last one */

    bool is_scheduled; /* by --schedule, or by gpuprof ctl: */
    bool is_by_number; /* the schedule uses the steps' numbers, and not their count; */
    bool is_based;     /* its first step is known: */
    uint64_t base;
    struct schedule schedule;
    uint64_t active; /* steps so far that it records */
    enum schedule_action action;
    uint64_t cycle;

    bool is_captured; /* inside the program's range, */
    bool is_pushed;   /* which was pushed, */
    uint32_t tid, domain;
    uint64_t level; /* or has this id */
    uint64_t captures;

    enum window_state state;
    bool has_work; /* features must be turned on or off for it */
    bool is_late;
    bool is_over;
    bool exit_is_due;
    bool is_reported;        /* the recording has `state` */
    uint64_t number;         /* of the window */
    uint64_t before;         /* windows of earlier schedules */
    uint64_t waiting;        /* its data must become complete in the stream file, since ... */
    uint64_t waiting_ns;     /* ... this CLOCK_MONOTONIC time */
    uint64_t whole;          /* the last complete one */
    uint64_t missed;         /* windows that ended before everything was on */
    uint64_t first_ns;       /* CLOCK_MONOTONIC: when the first one opened; 0: none */
    uint64_t closed_ns;      /* ... and when the last one closed */
    uint64_t reported_steps; /* one more than the number last written */
    uint64_t described_ns;   /* CLOCK_MONOTONIC: when it was written */
} now;

/* ---- Settings ---------------------------------------------------------------------------------
 */

static void copy_setting(enum setting_index index, char *text)
{
    const char *value = getenv(setting_infos[index].variable);
    struct settings settings;
    char reason[200];
    settings_init(&settings);
    text[0] = '\0';
    if (value && settings_set(&settings, index, value, reason, sizeof reason) == 0)
        strcpy(text, value); /* not longer than SETTING_TEXT_BYTES_MAX */
}

static step_follower follow_step;

void windows_load(void)
{
    char text[SETTING_TEXT_BYTES_MAX + 1];
    copy_setting(SETTING_SCHEDULE, text);
    how.is_scheduled = *text && schedule_parse(text, &how.schedule);
    copy_setting(SETTING_CAPTURE_RANGE, how.range);
    capture_parse(how.range, &how.capture);
    copy_setting(SETTING_CAPTURE_RANGE_END, text);
    if (!*text || !capture_end_parse(text, &how.capture_end, &how.captures_max))
        how.capture_end = CAPTURE_END_STOP;
    uint64_t delay = start_setting(SETTING_DELAY);
    how.duration_ns = start_setting(SETTING_DURATION);
    how.begin_ns = delay ? clock_ns(CLOCK_MONOTONIC) + delay : 0;
    how.is_set = how.is_scheduled || how.capture.kind || delay || how.duration_ns != SETTING_OFF;
    step_count_load();
    step_count_follow(STEP_PLACE_WINDOWS, follow_step);
    how.is_counted = step_count_is_on();
    atomic_fetch_or(&steps_watched, how.capture.kind == CAPTURE_PROFILER ? WATCH_DOORS
                                    : how.capture.kind == CAPTURE_NVTX   ? WATCH_RANGES
                                                                         : 0);
}

/* ---- Windows ----------------------------------------------------------------------------------
 */

/* Resets the state in the child of a fork. The lock must be held. */
static void windows_prepare(void)
{
    if (atomic_exchange(&fork_page.has_windows, 1))
        return;
    memset(&now, 0, sizeof now);
    now.is_scheduled = how.is_scheduled;
    now.is_based = true;
    now.schedule = how.schedule;
    if (how.is_set)
        atomic_store(recorded_word(ASKER_WINDOW), OFF_PROGRAM);
}

static bool windows_take(void)
{
    if (!(how.is_set || how.is_counted) || !lock_take(&lock, LOCK_NS))
        return false;
    windows_prepare();
    return true;
}

/* Returns the calling thread, if it can record. */
static struct thread *recorder(struct thread *t)
{
    return epoch_now() != EPOCH_NONE && thread_attach(t) ? t : NULL;
}

/* Does this process record in windows? The lock must be held. */
static bool has_windows(void)
{
    return how.is_set || now.is_scheduled;
}

static enum window_state wanted(uint64_t now_ns)
{
    now.is_over |= now.first_ns && now_ns - now.first_ns >= how.duration_ns;
    if (now.is_over || now_ns < how.begin_ns || (how.capture.kind && !now.is_captured))
        return WINDOW_IS_CLOSED;
    return !now.is_scheduled || now.action >= SCHEDULE_RECORD ? WINDOW_IS_OPEN
           : now.action == SCHEDULE_WARMUP                    ? WINDOW_IS_WARMING
                                                              : WINDOW_IS_CLOSED;
}

static struct record statement(void)
{
    return (struct record){
        RECORD_WITH(WINDOW, [WINDOW_NUMBER] = now.number, [WINDOW_STATE] = now.state,
                    [WINDOW_STEP] = now.steps && now.is_scheduled ? now.step_number + 1 : 0,
                    [WINDOW_PART] = now.state == WINDOW_IS_OPEN && now.is_late)};
}

static void report_step(struct thread *t)
{
    struct record r = {RECORD_WITH(STEP, [STEP_NUMBER] = now.step_number), .begin = now.step_ticks};
    if (t && now.steps && now.state == WINDOW_IS_OPEN)
        thread_append(t, &r);
}

/* `off`: what is not recorded from here on. The writer turns the features on and off soon after. */
static void windows_change(struct thread *t, enum window_state state, uint32_t off, bool is_soon)
{
    struct record says;
    now.state = state;
    says = statement();
    now.is_reported = t != NULL;
    if (!(is_soon ? recorded_ask_soon : recorded_ask)(t, ASKER_WINDOW, off, &says) && t) {
        says.begin = ticks_now(); /* what is not recorded stays the same */
        thread_append(t, &says);
    }
}

static void open_one(struct thread *t, uint64_t number, bool is_late, bool is_soon, uint64_t now_ns)
{
    now.number = number;
    now.is_late = is_late;
    now.first_ns = now.first_ns ? now.first_ns : now_ns;
    windows_change(t, WINDOW_IS_OPEN, 0, is_soon);
    if (is_late)
        report_step(t); /* which began earlier */
}

/* Then a window can open at once. */
static bool nothing_turns(void)
{
    return gp.settings.numbers[SETTING_GPU] == GPU_SETTING_OFF &&
           gp.settings.numbers[SETTING_PYTORCH] == PYTORCH_OFF;
}

/* Applies the wanted state as far as this thread may. A program's thread does not wait for features
 * that a schedule turns on, only for those that it requested itself; the writer does the rest. */
static void windows_follow(struct thread *t, bool is_writer)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    enum window_state want = wanted(now_ns);
    uint64_t number = now.is_scheduled   ? now.before + now.cycle
                      : how.capture.kind ? now.captures
                                         : 1;
    bool may_turn = is_writer || !now.is_scheduled || epoch_now() == EPOCH_NONE || nothing_turns();
    if (now.state == WINDOW_IS_OPEN && (want != WINDOW_IS_OPEN || number != now.number)) {
        windows_change(t, want == WINDOW_IS_OPEN ? WINDOW_IS_CLOSED : want, OFF_CALLS, true);
        now.closed_ns = now_ns;
    }
    if (want == WINDOW_IS_OPEN && now.state != WINDOW_IS_OPEN && (now.has_work || may_turn)) {
        bool is_late = !now.has_work && now.is_scheduled && now.steps && is_writer;
        bool is_soon = now.has_work;
        now.has_work = true;
        open_one(t, number, is_late, is_soon, now_ns);
    } else if (want == WINDOW_IS_WARMING && now.state != WINDOW_IS_WARMING &&
               (now.has_work || may_turn)) {
        bool is_soon = now.has_work;
        now.has_work = true;
        windows_change(t, WINDOW_IS_WARMING, OFF_CALLS, is_soon);
    } else if (want != WINDOW_IS_CLOSED && want != now.state) {
        writer_wake();
    } else if (want == WINDOW_IS_CLOSED && is_writer && now.has_work &&
               now_ns - now.closed_ns >= LINGER_NS && !gpu_session_is_precious()) {
        now.has_work = false;
        windows_change(t, WINDOW_IS_CLOSED, OFF_PROGRAM, false);
    } else if (want == WINDOW_IS_CLOSED && now.state == WINDOW_IS_WARMING) {
        windows_change(t, WINDOW_IS_CLOSED, OFF_CALLS, true);
        now.closed_ns = now_ns;
    }
}

/* ---- Steps ------------------------------------------------------------------------------------
 */

/*
 * Applies the schedule to the newest step; there is none before the first. The lock must be held.
 */
static void apply_schedule(void)
{
    uint64_t at = now.is_by_number ? now.step_number : now.steps - 1;
    bool was_due = now.action >= SCHEDULE_RECORD && now.number != now.before + now.cycle;
    uint64_t cycle = now.cycle;
    if (!now.is_based) {
        now.is_based = true;
        now.base = at;
    }
    now.action = SCHEDULE_NONE;
    now.cycle = 0;
    if (at >= now.base)
        now.action = schedule_action(&now.schedule, at - now.base, &now.cycle);
    now.missed += was_due && cycle != now.cycle;
    now.active += now.action >= SCHEDULE_RECORD;
}

/* Called when a step begins; see step_count.h. */
static bool follow_step(struct thread *t, const struct step_snapshot *step, bool may_wait)
{
    (void)may_wait;
    if (!windows_take())
        return false;
    now.steps = step->count;
    now.source = step->source;
    now.step_number = step->number;
    if (now.is_scheduled) {
        apply_schedule();
        windows_follow(t, false);
        now.step_ticks = ticks_now();
        report_step(
            t); /* if no window is open any more, the WINDOW record has ended the last step */
    }
    bool is_scheduled = now.is_scheduled;
    lock_drop(&lock);
    return is_scheduled;
}

/* Returns where its first window warms up, in steps after the schedule's first one. */
static uint64_t windows_first_of(const struct schedule *s)
{
    return s->skip_first + (s->skip_first_wait ? 0 : s->wait);
}

bool windows_schedule(struct thread *t, const struct schedule *s, uint64_t first)
{
    if (!windows_take())
        return true;
    bool was_set = has_windows(), is_late = false;
    /* windows are numbered on from earlier schedules */
    now.before = now.number ? now.number : now.before;
    now.action = SCHEDULE_NONE;
    now.cycle = 0;
    now.is_scheduled = s || how.is_scheduled;
    now.is_by_number = s;
    now.is_based = !s || first != STEP_NEXT;
    now.base = s && now.is_based ? first : 0;
    now.schedule = s ? *s : how.schedule;
    if (s && now.is_based && now.steps)
        is_late = now.step_number >= first + windows_first_of(s);
    if (!was_set && has_windows() && t)
        windows_change(t, WINDOW_IS_CLOSED, OFF_CALLS, true);
    else if (!was_set && has_windows())
        recorded_ask(NULL, ASKER_WINDOW, OFF_PROGRAM, NULL);
    if (!has_windows()) {
        now.number = 0; /* later records are in no window */
        windows_change(t, WINDOW_IS_OPEN, 0, false);
    }
    now.has_work |= !was_set && t;
    now.closed_ns = clock_ns(CLOCK_MONOTONIC);
    if (has_windows())
        windows_follow(t, t != NULL);
    lock_drop(&lock);
    return is_late;
}

/* ---- Ranges -----------------------------------------------------------------------------------
 */

/* Copies the range's name, cut to fit; "" if it has none. */
static void range_name(const struct range_event *e, char *name)
{
    const char *text = e->text;
    uint32_t bytes = e->byte_count;
    if (e->message && !label_string_text(e->message, &text, &bytes))
        bytes = 0;
    bytes = !text ? 0 : bytes < NAME_BYTES_MAX ? bytes : NAME_BYTES_MAX - 1;
    memcpy(name, text ? text : "", bytes);
    name[bytes] = '\0';
}

static bool is_captured(const struct range_event *e, const char *name)
{
    const struct capture *c = &how.capture;
    if (c->kind != CAPTURE_NVTX || strlen(name) != c->name_bytes ||
        memcmp(name, c->name, c->name_bytes) != 0)
        return false;
    if (!c->domain)
        return e->domain == 0;
    return strcmp(c->domain, "*") == 0 ||
           e->domain == label_domain(c->domain, (uint32_t)strlen(c->domain));
}

/* The lock must be held. */
static void capture_begins(struct thread *t)
{
    now.is_captured = true;
    now.captures++;
    windows_follow(t, false);
}

static void capture_ends(struct thread *t)
{
    now.is_captured = how.capture_end == CAPTURE_END_NONE;
    now.exit_is_due = how.capture_end == CAPTURE_END_EXIT;
    now.is_over |= how.capture_end == CAPTURE_END_STOP || how.capture_end == CAPTURE_END_EXIT ||
                   (how.captures_max && now.captures >= how.captures_max);
    windows_follow(t, false);
    if (now.exit_is_due)
        writer_wake();
}

void windows_range_begins(struct thread *t, const struct range_event *e, bool is_pushed,
                          uint64_t level)
{
    char name[NAME_BYTES_MAX];
    range_name(e, name);
    step_of_range(t, name);
    if (!is_captured(e, name) || !windows_take())
        return;
    if (!now.is_captured && !now.is_over) {
        now.is_pushed = is_pushed;
        now.tid = thread_id();
        now.domain = e->domain;
        now.level = level;
        capture_begins(recorder(t));
    }
    lock_drop(&lock);
}

void windows_range_ended(struct thread *t, uint32_t domain, bool is_pushed, uint64_t level)
{
    if (how.capture.kind != CAPTURE_NVTX || !windows_take())
        return;
    if (now.is_captured && now.is_pushed == is_pushed && now.level == level &&
        (!is_pushed || (now.domain == domain && now.tid == thread_id())))
        capture_ends(recorder(t));
    lock_drop(&lock);
}

void windows_door(bool opens)
{
    struct thread *t = &this_thread;
    struct call c;
    if (!steps_watch(WATCH_DOORS) || !call_enter_own(t, &c))
        return;
    if (windows_take()) { /* they do not nest; the runtime's function calls the driver's */
        if (opens && !now.is_captured && !now.is_over)
            capture_begins(recorder(t));
        else if (!opens && now.is_captured)
            capture_ends(recorder(t));
        lock_drop(&lock);
    }
    call_leave(t);
}

/* ---- Turns of a recording ---------------------------------------------------------------------
 */

void windows_start(void)
{
    if ((how.is_set || how.is_counted) && windows_take()) {
        now.is_reported = false;
        lock_drop(&lock);
    }
}

/* Device records arrive after the window's end; what they add is sealed again. */
static void describe_windows(struct thread *writer, uint64_t now_ns, bool is_last)
{
    char number[24];
    uint64_t late_ns = LINGER_NS + gp.settings.numbers[SETTING_SEAL] + DESCRIBE_NS / 5;
    uint64_t before = now.whole;
    if (now.waiting && now_ns - now.waiting_ns >= late_ns) {
        now.whole = now.waiting;
        now.waiting = 0;
    }
    uint64_t last = now.state == WINDOW_IS_OPEN && now.number ? now.number - 1 : now.number;
    if (!now.waiting && last > now.whole) {
        now.waiting = last;
        now.waiting_ns = now_ns;
    }
    now.whole = is_last ? now.number : now.whole;
    if (now.whole == before)
        return;
    snprintf(number, sizeof number, "%llu", (unsigned long long)now.whole);
    meta_append_text(writer, "windows", number);
}

uint64_t windows_whole(void)
{
    uint64_t whole = 0;
    if (windows_take()) {
        whole = now.whole;
        lock_drop(&lock);
    }
    return whole;
}

static void describe_steps(struct thread *writer)
{
    static const char *const words[] = {"nothing",   "gpuprof_step", "profiler",
                                        "optimizer", "dataloader",   "name"};
    char text[200], missed[64] = "";
    if (!now.is_scheduled || (now.reported_steps == now.steps + 1))
        return;
    now.reported_steps = now.steps + 1;
    if (now.missed)
        snprintf(missed, sizeof missed, ", %llu window%s missed", (unsigned long long)now.missed,
                 now.missed == 1 ? "" : "s");
    snprintf(text, sizeof text, "%llu step%s seen (by %s), %llu of them scheduled%s",
             (unsigned long long)now.steps, now.steps == 1 ? "" : "s", words[now.source],
             (unsigned long long)now.active, missed);
    meta_append_text(writer, "schedule_steps", text);
}

void windows_describe(struct thread *writer, bool is_last)
{
    if (!(how.is_set || how.is_counted) || !windows_take())
        return;
    if (!has_windows()) {
        lock_drop(&lock);
        return;
    }
    if (!now.is_reported) { /* changes from before the recording began */
        struct record r = statement();
        r.begin = ticks_now();
        thread_append(writer, &r);
        report_step(writer);
        now.is_reported = true;
        now.reported_steps = 0;
    }
    if (!is_last)
        windows_follow(writer, true);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (is_last || now_ns - now.described_ns >= DESCRIBE_NS) {
        describe_steps(writer);
        describe_windows(writer, now_ns, is_last);
        now.described_ns = now_ns;
    }
    bool exit_is_due = now.exit_is_due;
    now.exit_is_due = false;
    lock_drop(&lock);
    if (exit_is_due)
        kill(getpid(), SIGTERM);
}

void windows_end(uint64_t ns)
{
    (void)ns;
    const char *who = how.is_scheduled ? "--schedule" : "gpuprof ctl schedule";
    if ((how.is_scheduled || how.is_counted) && windows_take()) {
        if (!now.steps && now.is_scheduled)
            say(SAY_WINDOWS,
                "%s: 0 steps seen, so only allocations were recorded; call gpuprof_step(), or name "
                "what marks a step with --step-by",
                who);
        else if (now.missed)
            note(SAY_WINDOWS,
                 "%s: some windows ended before recording was fully on; set a longer warmup", who);
        lock_drop(&lock);
    }
}
