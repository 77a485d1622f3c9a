/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/torch.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/futex.h"
#include "base/objects.h"
#include "base/say.h"
#include "base/signals.h"
#include "range/step_count.h"
#include "record/recorded.h"
#include "record/state.h"
#include "record/thread.h"
#include "store/meta.h"
#include "torch/nn_modules.h"
#include "torch/op_events.h"
#include "torch/op_layout.h"
#include "torch/op_values.h"
#include "torch/torch_library.h"

#define TURN_LOCK_NS                                                                               \
    100000000u /* for the lock held while PyTorch changes its list of callbacks                    \
                */

/* One of our callbacks: registered when first needed, then enabled and disabled. */
struct switched {
    uint64_t handle; /* 0: not registered */
    bool is_on;
};

/* The child of a fork inherits registered callbacks. */
static struct {
    /* for threads that enable callbacks: the writer, or one that changes the level of detail */
    struct lock lock;
    _Atomic bool is_here; /* PyTorch is loaded */
    struct switched mark;
    struct switched plain;
    struct switched full;
    struct switched stacks;
    /* objects loaded when PyTorch was last searched for; used, like the rest, by the writer */
    uint64_t loaded;
    const char *missing_reason; /* why PyTorch is absent, as written to the stream */
    const char *reported;       /* text of the last META record */
    uint64_t reported_epoch;
} torch = {.missing_reason = TORCH_LIBRARY_ABSENT};

/* While a window warms up, everything is already on. */
static enum torch_detail detail_of(uint32_t off)
{
    uint64_t wanted = gp.settings.numbers[SETTING_PYTORCH];
    bool is_watched = steps_watch(WATCH_LABELS); /* labels may mark steps */
    bool wants_shapes = wanted & (PYTORCH_SHAPES | PYTORCH_STACKS);
    if ((off & OFF_PROGRAM) == OFF_PROGRAM || wanted == PYTORCH_OFF)
        return is_watched ? TORCH_LABELS : TORCH_NOTHING;
    return off & OFF_OPERATORS                                 ? TORCH_LABELS
           : off & OFF_SHAPES || !wants_shapes                 ? TORCH_NAMES
           : off & OFF_OP_STACKS || !(wanted & PYTORCH_STACKS) ? TORCH_SHAPES
                                                               : TORCH_STACKS;
}

static struct torch_callback callback(uintptr_t start, bool is_mark, bool has_inputs)
{
    struct torch_callback c = {
        .start = start, .end = op_end(), .probability = 1.0, .needs_inputs = has_inputs};
    for (unsigned i = 0; i < TORCH_SCOPE_COUNT; i++)
        c.scopes[i] = (i == TORCH_SCOPE_USER) == is_mark;
    return c;
}

/* PyTorch takes a lock that a forked child must not inherit. As with the loader's lock, fork()
 * waits meanwhile. */
static void torch_own_turn(struct switched *s, bool on, uintptr_t start, bool is_mark,
                           bool has_inputs)
{
    if (s->is_on == on)
        return;
    uint64_t signals = block_signals();
    loader_enter();
    if (!s->handle)
        s->handle = torch_library.add(callback(start, is_mark, has_inputs));
    else
        (on ? torch_library.reenable : torch_library.disable)(s->handle);
    loader_leave();
    restore_signals(signals);
    s->is_on = on;
}

/* Disables before it enables, so that no operator is recorded twice. */
static void torch_follow(enum torch_detail detail)
{
    torch_own_turn(&torch.mark, detail != TORCH_NOTHING, op_start_mark(), true, false);
    for (unsigned on = 0; on < 2; on++) {
        if ((detail == TORCH_NAMES) == on)
            torch_own_turn(&torch.plain, on, op_start_plain(), false, false);
        if ((detail == TORCH_SHAPES) == on)
            torch_own_turn(&torch.full, on, op_start_full(), false, true);
        if ((detail == TORCH_STACKS) == on)
            torch_own_turn(&torch.stacks, on, op_start_stacks(), false, true);
    }
}

/* A thread that comes late applies the latest setting. If it cannot wait, the writer applies it. */
void torch_turn(void)
{
    int saved = errno;
    if (atomic_load(&torch.is_here) && epoch_now() != EPOCH_NONE &&
        lock_take(&torch.lock, TURN_LOCK_NS)) {
        torch_follow(detail_of(recorded_asked()));
        lock_drop(&torch.lock);
    }
    errno = saved;
}

static void torch_find(void)
{
    torch.missing_reason = torch_library_find();
    torch.mark = torch.plain = torch.full = torch.stacks = (struct switched){0};
    atomic_store(&torch.is_here, !torch.missing_reason);
}

void torch_look(struct thread *writer)
{
    int saved = errno;
    (void)writer;
    if (gp.settings.numbers[SETTING_PYTORCH] == PYTORCH_OFF && !steps_watch(WATCH_LABELS))
        return;
    uint64_t loaded = objects_loaded();
    if (!atomic_load(&torch.is_here) && loaded != torch.loaded)
        torch_find();
    torch.loaded = loaded;
    torch_turn();
    if (atomic_load(&torch.is_here) && gp.settings.numbers[SETTING_PYTORCH] & PYTORCH_MODULES)
        nn_modules_look();
    errno = saved;
}

enum torch_detail torch_detail_now(void)
{
    return atomic_load(&torch.is_here) ? detail_of(recorded_asked() & ~(uint32_t)OFF_PROGRAM)
                                       : TORCH_NOTHING;
}

/* The text for the stream; static. */
static const char *status(void)
{
    static const char *const details[] = {"", "labels", "names", "shapes", "stacks"};
    if (gp.settings.numbers[SETTING_PYTORCH] == PYTORCH_OFF)
        return NULL;
    if (!atomic_load(&torch.is_here))
        return torch.missing_reason;
    if (op_layout_is_refused())
        return "names only: this version's operators have an unknown memory layout";
    if (torch_detail_now() >= TORCH_SHAPES && op_values_are_refused())
        return "names: this version's tensors have an unknown memory layout";
    return details[torch_detail_now()];
}

void torch_describe(struct thread *writer, bool is_last)
{
    const char *text = status();
    (void)is_last;
    if (gp.settings.numbers[SETTING_PYTORCH] & PYTORCH_MODULES)
        nn_modules_describe(writer);
    if (!text || (text == torch.reported && torch.reported_epoch == writer->epoch))
        return;
    torch.reported = text;
    torch.reported_epoch = writer->epoch;
    meta_append_text(writer, "pytorch", text);
    if (strchr(text, ':') && strncmp(text, "absent", 6) != 0)
        note(SAY_TORCH, "PyTorch operators are recorded without shapes: %s", strchr(text, ':') + 2);
}

void torch_unloaded(void)
{
    if (atomic_load(&torch.is_here) && !torch_library_is_loaded())
        atomic_store(&torch.is_here, false);
}

void torch_reset(void)
{
    atomic_store(&torch.lock.holder, 0);
    op_layout_reset();
    op_values_reset();
    op_events_reset();
}
