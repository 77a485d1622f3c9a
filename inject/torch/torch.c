/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/torch.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/objects.h"
#include "base/say.h"
#include "base/signals.h"
#include "record/state.h"
#include "record/thread.h"
#include "store/meta.h"
#include "torch/op_events.h"
#include "torch/op_layout.h"
#include "torch/op_values.h"
#include "torch/torch_library.h"

/* A callback of ours: registered when it is first needed, then switched. */
struct switched {
    uint64_t handle; /* 0 = not registered */
    bool is_on;
};

/* The writer's; but `is_here`. Of a parent's, its child has inherited what is registered. */
static struct {
    _Atomic bool is_here; /* PyTorch is, and has our callbacks */
    uint64_t loaded;      /* objects, when it was last looked for */
    const char *absence;  /* why it is not here, as it stands in the stream */
    struct switched mark;
    struct switched plain;
    struct switched full;
    enum torch_detail most; /* what torch_limit left */
    const char *told;       /* the last META record */
    uint64_t told_epoch;
} torch = {.most = TORCH_SHAPES, .absence = TORCH_LIBRARY_ABSENT};

static enum torch_detail wanted(void)
{
    enum torch_detail most =
        gp.settings.numbers[SETTING_PYTORCH] == PYTORCH_SHAPES ? TORCH_SHAPES : TORCH_NAMES;
    return most < torch.most ? most : torch.most;
}

static struct torch_callback callback(uintptr_t start, bool is_mark, bool has_inputs)
{
    struct torch_callback c = {
        .start = start, .end = op_end(), .probability = 1.0, .needs_inputs = has_inputs};
    for (unsigned i = 0; i < TORCH_SCOPE_COUNT; i++)
        c.scopes[i] = (i == TORCH_SCOPE_USER) == is_mark;
    return c;
}

/*
 * PyTorch takes a lock of its own, which a child must not inherit: as around the loader's, a fork()
 * waits meanwhile.
 */
static void turn(struct switched *s, bool on, uintptr_t start, bool is_mark, bool has_inputs)
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

/* What goes off goes first: no operator is recorded twice. */
static void follow(void)
{
    enum torch_detail detail = wanted();
    bool plain = detail == TORCH_NAMES, full = detail == TORCH_SHAPES;
    turn(&torch.mark, true, op_start_mark(), true, false);
    if (!plain)
        turn(&torch.plain, false, op_start_plain(), false, false);
    if (!full)
        turn(&torch.full, false, op_start_full(), false, true);
    if (plain)
        turn(&torch.plain, true, op_start_plain(), false, false);
    if (full)
        turn(&torch.full, true, op_start_full(), false, true);
}

static void find(void)
{
    torch.absence = torch_library_find();
    torch.mark = torch.plain = torch.full = (struct switched){0};
    atomic_store(&torch.is_here, !torch.absence);
}

void torch_look(struct thread *writer)
{
    int saved = errno;
    (void)writer;
    if (gp.settings.numbers[SETTING_PYTORCH] == PYTORCH_OFF)
        return;
    uint64_t loaded = objects_loaded();
    if (!atomic_load(&torch.is_here) && loaded != torch.loaded)
        find();
    torch.loaded = loaded;
    if (atomic_load(&torch.is_here))
        follow();
    errno = saved;
}

/* As it stands in the stream; a view that lasts. */
static const char *status(void)
{
    static const char *const details[] = {"labels", "names", "shapes"};
    if (gp.settings.numbers[SETTING_PYTORCH] == PYTORCH_OFF)
        return NULL;
    if (!atomic_load(&torch.is_here))
        return torch.absence;
    if (op_layout_is_refused())
        return "names only: this version's operators are laid out as none that is known";
    if (wanted() == TORCH_SHAPES && op_values_are_refused())
        return "names: this version's tensors are laid out as none that is known";
    return details[wanted()];
}

void torch_describe(struct thread *writer, bool is_last)
{
    const char *text = status();
    (void)is_last;
    if (!text || (text == torch.told && torch.told_epoch == writer->epoch))
        return;
    torch.told = text;
    torch.told_epoch = writer->epoch;
    meta_append_text(writer, "pytorch", text);
    if (strchr(text, ':') && strncmp(text, "absent", 6) != 0)
        say(SAY_TORCH, "PyTorch's operators are recorded without shapes: %s",
            strchr(text, ':') + 2);
}

enum torch_detail torch_detail_now(void)
{
    return atomic_load(&torch.is_here) ? wanted() : TORCH_LABELS;
}

void torch_limit(enum torch_detail most)
{
    torch.most = most;
    torch_look(NULL);
}

void torch_unloaded(void)
{
    if (atomic_load(&torch.is_here) && !torch_library_is_loaded())
        atomic_store(&torch.is_here, false);
}

void torch_reset(void)
{
    torch.most = TORCH_SHAPES;
    op_layout_reset();
    op_values_reset();
    op_events_reset();
}
