/* SPDX-License-Identifier: Apache-2.0 */
#include "control/governor.h"

#include <string.h>

#include "base/ticks.h"
#include "cost/cost_sums.h"
#include "cupti/gpu.h"
#include "cupti/gpu_state.h"
#include "record/recorded.h"
#include "record/thread.h"
#include "stack/stack.h"
#include "torch/torch.h"

#define FIRST_PART    10          /* of --seal: when threads are first asked to time calls */
#define WINDOW_NS_MIN 100000000u  /* length of a window while the recording is young ... */
#define WINDOW_NS_MAX 1000000000u /* ... and later */
#define WINDOW_PART   10          /* a window is this part of the recording's age */
/* the sums are stored each time this part of its age has passed */
#define STORE_PART   8
#define STORE_NS_MAX 60000000000u

/* Used by the writer; reset in each recording. */
static struct {
    struct ladder ladder;
    uint64_t begin_ns;
    uint64_t window_ns; /* start of the window */
    uint64_t stored_ns;
    uint32_t off; /* what was turned off: enum off_bits */
    bool has_asked;
} governor;

void governor_start(struct thread *writer)
{
    (void)writer;
    cost_sums_start();
    memset(&governor, 0, sizeof governor);
    governor.begin_ns = governor.window_ns = governor.stored_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Asks threads to time their next calls, and to check which calls they must pass by. */
static void governor_ask(void)
{
    uint64_t before = atomic_load(&fork_page.recording), after;
    do
        after = (before & ~ATTENTION_COSTS) | ((before + ATTENTION_COST) & ATTENTION_COSTS);
    while (!atomic_compare_exchange_weak(&fork_page.recording, &before, after));
    governor.has_asked = true;
}

static bool has_budget(void)
{
    return gp.settings.numbers[SETTING_OVERHEAD_MAX] != SETTING_OFF;
}

/* Returns 1/`part` of the recording's age, between two limits. */
static uint64_t part_ns(uint64_t now_ns, unsigned part, uint64_t low_ns, uint64_t high_ns)
{
    uint64_t ns = (now_ns - governor.begin_ns) / part;
    return ns < low_ns ? low_ns : ns > high_ns ? high_ns : ns;
}

bool governor_is_due(uint64_t now_ns)
{
    uint64_t seal_ns = gp.settings.numbers[SETTING_SEAL];
    if (!governor.has_asked && now_ns - governor.begin_ns >= seal_ns / FIRST_PART)
        governor_ask();
    uint64_t window_ns =
        has_budget() ? part_ns(now_ns, WINDOW_PART, WINDOW_NS_MIN, WINDOW_NS_MAX) : seal_ns;
    return now_ns - governor.window_ns >= window_ns;
}

/* The steps that would change something now. */
static uint32_t possible_steps(void)
{
    const uint64_t libraries = gp.settings.numbers[SETTING_LIBRARIES];
    return (stacks_are_on() ? 1u << LADDER_STACKS : 0) | 1u << LADDER_QUERIES |
           (gpu_has_callbacks() ? 1u << LADDER_CALLBACKS : 0) | 1u << LADDER_TENTH |
           1u << LADDER_HUNDREDTH | (gpu_is_active() ? 1u << LADDER_CUPTI : 0) |
           (torch_detail_now() >= TORCH_STACKS ? 1u << LADDER_OP_STACKS : 0) |
           (torch_detail_now() >= TORCH_SHAPES ? 1u << LADDER_SHAPES : 0) |
           (torch_detail_now() >= TORCH_NAMES ? 1u << LADDER_OPERATORS : 0) |
           (libraries == LIBRARIES_ON ? 1u << LADDER_ARGUMENTS : 0) |
           (libraries != LIBRARIES_OFF ? 1u << LADDER_LIBRARIES : 0);
}

static const uint32_t off_by_step[LADDER_CODE_COUNT] = {
    [LADDER_STACKS] = OFF_STACKS,       [LADDER_QUERIES] = OFF_QUERIES,
    [LADDER_CALLBACKS] = OFF_CALLBACKS, [LADDER_TENTH] = OFF_TENTH,
    [LADDER_HUNDREDTH] = OFF_HUNDREDTH, [LADDER_CUPTI] = OFF_CUPTI,
    [LADDER_SHAPES] = OFF_SHAPES,       [LADDER_OPERATORS] = OFF_OPERATORS,
    [LADDER_OP_STACKS] = OFF_OP_STACKS, [LADDER_ARGUMENTS] = OFF_ARGUMENTS,
    [LADDER_LIBRARIES] = OFF_LIBRARIES,
};

static void governor_take_step(struct thread *writer, unsigned step, const struct ladder_window *w)
{
    const char *text = ladder_step_text(step);
    struct record r = {
        RECORD_WITH(STEP_DOWN, [STEP_DOWN_SHARE] = w->share, [STEP_DOWN_BUDGET] = w->budget),
        .code = (uint16_t)step, .begin = ticks_now(), .bytes = (const uint8_t *)text,
        .byte_count = (uint32_t)strlen(text)};
    if (step == LADDER_BOTTOM) {
        thread_append(writer, &r);
        return;
    }
    governor.off |= off_by_step[step];
    recorded_ask(writer, ASKER_GOVERNOR, governor.off, &r);
}

/* Called at the end of a complete window. */
static void govern(struct thread *writer, struct ladder_window *w)
{
    w->possible = possible_steps();
    int step = ladder_look(&governor.ladder, w);
    if (step == LADDER_NONE)
        return;
    governor_take_step(writer, (unsigned)step, w);
}

void governor_look(struct thread *writer, uint64_t now_ns, bool is_last)
{
    struct ladder_window window = {.budget = gp.settings.numbers[SETTING_OVERHEAD_MAX]};
    bool is_whole = !is_last && governor_is_due(now_ns);
    if (!is_whole && !is_last)
        return; /* another feature asked for this look; the window goes on */
    cost_sums_look(&window);
    if (is_whole && has_budget())
        govern(writer, &window);
    governor_ask();
    governor.window_ns = now_ns;
    if (is_last ||
        now_ns - governor.stored_ns >= part_ns(now_ns, STORE_PART, WINDOW_NS_MIN, STORE_NS_MAX)) {
        governor.stored_ns = now_ns;
        cost_sums_append(writer);
    }
}
