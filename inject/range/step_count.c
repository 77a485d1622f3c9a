/* SPDX-License-Identifier: Apache-2.0 */
#include "range/step_count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "base/ticks.h"
#include "glob.h"
#include "record/start.h"
#include "record/state.h"
#include "record/thread.h"

#define LOCK_NS        20000000u /* held for a few stores */
#define BATCHES_MAX    3         /* batches are steps after this many without a better mark */
#define DURATIONS_MAX  64u       /* durations of finished steps */
#define NAME_BYTES_MAX 256       /* of a label that others are compared with, and a zero */

_Atomic uint32_t steps_watched;

/* Set by the constructor, then constant. */
static struct {
    bool is_on;
    bool is_reported; /* steps are recorded in any case, for --dump-step */
    enum step_source source;
    char name[SETTING_TEXT_BYTES_MAX + 1];
    char optimizer[SETTING_TEXT_BYTES_MAX + 1]; /* the label of an optimizer of that class */
} how;

static _Atomic(step_follower *) followers[STEP_FOLLOWERS_MAX];

static struct lock lock; /* protects what follows */

static struct {
    struct step_snapshot snapshot;  /* without the median */
    char optimizer[NAME_BYTES_MAX]; /* the first optimizer's label; others' are not steps */
    uint64_t batches;
    uint64_t durations[DURATIONS_MAX];
    uint64_t duration_count;
} now;

static enum step_source source_named(const char *word)
{
    static const char *const words[] = {[STEPS_OF_PROGRAM] = "range",
                                        [STEPS_OF_PROFILER] = "profiler",
                                        [STEPS_OF_OPTIMIZER] = "optimizer",
                                        [STEPS_OF_LOADER] = "dataloader"};
    if (!*word)
        return STEPS_UNKNOWN;
    for (unsigned i = STEPS_OF_PROGRAM; i <= STEPS_OF_LOADER; i++)
        if (strcmp(word, words[i]) == 0)
            return (enum step_source)i;
    return STEPS_OF_NAME;
}

static bool is_given(enum setting_index index)
{
    const char *text = getenv(setting_infos[index].variable);
    return text && *text;
}

/* Labels need a callback of PyTorch, so they are not watched where PyTorch is not recorded, unless
 * a schedule needs them. */
static uint32_t watched(bool is_scheduled)
{
    uint32_t watch = 0;
    if (how.source == STEPS_UNKNOWN || how.source == STEPS_OF_PROGRAM)
        watch |= WATCH_STEPS;
    if (how.source == STEPS_OF_NAME)
        watch |= WATCH_RANGES;
    if (how.source != STEPS_OF_PROGRAM &&
        (is_scheduled || how.is_reported || start_setting(SETTING_PYTORCH) != PYTORCH_OFF))
        watch |= WATCH_LABELS;
    return watch;
}

void step_count_load(void)
{
    const char *name = getenv(setting_infos[SETTING_STEP_BY].variable);
    bool is_scheduled = is_given(SETTING_SCHEDULE);
    snprintf(how.name, sizeof how.name, "%s", name ? name : "");
    how.source = source_named(how.name);
    if (how.source == STEPS_OF_NAME)
        snprintf(how.optimizer, sizeof how.optimizer, "Optimizer.step#%.990s.step", how.name);
    how.is_reported = is_given(SETTING_FLIGHT) && start_setting(SETTING_DUMP_STEP);
    how.is_on =
        is_scheduled || how.is_reported || start_setting(SETTING_CONTROL) != CONTROL_SETTING_OFF;
    if (how.is_on)
        atomic_fetch_or(&steps_watched, watched(is_scheduled));
}

bool step_count_is_on(void)
{
    return how.is_on;
}

void step_count_follow(unsigned place, step_follower *follower)
{
    atomic_store(&followers[place], follower);
}

/* Takes the lock; resets the state in the child of a fork. */
static bool step_count_take(void)
{
    if (!how.is_on || !lock_take(&lock, LOCK_NS))
        return false;
    if (!atomic_exchange(&fork_page.has_steps, 1)) {
        memset(&now, 0, sizeof now);
        now.snapshot.source = how.source == STEPS_OF_NAME ? STEPS_UNKNOWN : how.source;
    }
    return true;
}

/* The lock must be held. Are these steps? The answer is fixed at the first one. */
static bool is_step(enum step_source source)
{
    if (now.snapshot.source)
        return now.snapshot.source == source;
    if (how.source == STEPS_OF_NAME && source != STEPS_OF_NAME && source != STEPS_OF_OPTIMIZER)
        return false;
    if (source == STEPS_OF_LOADER && ++now.batches <= BATCHES_MAX)
        return false;
    if (source == STEPS_OF_LOADER) /* batches were used as steps so far */
        now.snapshot.count = BATCHES_MAX;
    now.snapshot.source = source;
    return true;
}

/* The lock must be held. A step begins. */
static void count_step(uint64_t number)
{
    struct step_snapshot *s = &now.snapshot;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (s->begin_ns) {
        s->last_ns = now_ns - s->begin_ns;
        now.durations[now.duration_count++ % DURATIONS_MAX] = s->last_ns;
    }
    s->number = s->source == STEPS_OF_PROGRAM ? number : s->count;
    s->begin_ns = now_ns;
    s->count++;
}

bool step_begins(struct thread *t, enum step_source source, uint64_t number)
{
    bool is_recorded = false;
    if (!step_count_take())
        return false;
    bool is_one = is_step(source);
    if (is_one)
        count_step(number);
    struct step_snapshot snapshot = now.snapshot;
    lock_drop(&lock);
    if (!is_one)
        return false;
    t = epoch_now() != EPOCH_NONE && thread_attach(t) ? t : NULL;
    for (unsigned i = 0; i < STEP_FOLLOWERS_MAX; i++) {
        step_follower *follower = atomic_load(&followers[i]);
        is_recorded |= follower && follower(t, &snapshot, source == STEPS_OF_PROGRAM);
    }
    if (how.is_reported && t && !is_recorded) {
        struct record r = {RECORD_WITH(STEP, [STEP_NUMBER] = snapshot.number),
                           .begin = ticks_now()};
        thread_append(t, &r);
    }
    return is_recorded || how.is_reported;
}

static int compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

struct step_snapshot step_count_now(void)
{
    struct step_snapshot snapshot = {STEPS_UNKNOWN};
    uint64_t sorted[DURATIONS_MAX];
    if (!step_count_take())
        return snapshot;
    uint64_t count = now.duration_count < DURATIONS_MAX ? now.duration_count : DURATIONS_MAX;
    snapshot = now.snapshot;
    memcpy(sorted, now.durations, sizeof sorted);
    lock_drop(&lock);
    qsort(sorted, count, sizeof *sorted, compare_ns);
    snapshot.median_ns = count ? sorted[count / 2] : 0;
    return snapshot;
}

/* ---- Labels and ranges ------------------------------------------------------------------------
 */

static bool step_count_begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

enum step_source step_of_label(const char *text)
{
    if (how.source == STEPS_OF_NAME)
        return strcmp(text, how.optimizer) == 0 ? STEPS_OF_OPTIMIZER
               : glob_matches(how.name, text)   ? STEPS_OF_NAME
                                                : STEPS_UNKNOWN;
    if (*text == 'P' && step_count_begins_with(text, "ProfilerStep#"))
        return STEPS_OF_PROFILER;
    if (*text == 'e' && step_count_begins_with(text, "enumerate(DataLoader)#"))
        return STEPS_OF_LOADER;
    if (*text != 'O' || !step_count_begins_with(text, "Optimizer.step#"))
        return STEPS_UNKNOWN;
    bool is_first = true;
    if (step_count_take()) { /* of two optimizers, only the first counts */
        if (!now.optimizer[0])
            snprintf(now.optimizer, sizeof now.optimizer, "%s", text);
        is_first = strncmp(now.optimizer, text, sizeof now.optimizer - 1) == 0;
        lock_drop(&lock);
    }
    return is_first ? STEPS_OF_OPTIMIZER : STEPS_UNKNOWN;
}

void step_of_range(struct thread *t, const char *name)
{
    if (how.source == STEPS_OF_NAME && glob_matches(how.name, name))
        step_begins(t, STEPS_OF_NAME, 0);
}
