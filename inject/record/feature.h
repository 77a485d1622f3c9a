/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a recording: one row per feature, with its functions for the events of a recording.
 * The rows are in features.c, in the order in which they are called, so that the code that keeps
 * records need not know what is recorded. A member is NULL if the feature does not need it.
 */
#ifndef GPUPROF_INJECT_FEATURE_H
#define GPUPROF_INJECT_FEATURE_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

struct feature {
    /* Called by the constructor, if anything may be recorded here; no setting has been read yet. */
    void (*load)(void);

    /*
     * A recording is about to begin: allocates what is needed. Returns false, after a message, if
     * that fails: then nothing is recorded, and `remove` undoes what the earlier features have
     * made.
     */
    bool (*create)(void);
    void (*remove)(void);
    /* The same for what cannot fail; after `create`. */
    void (*start)(void);
    /* It has begun. Called on the thread that started it; other threads no longer wait. */
    void (*started)(void);

    /* This thread takes part from now on. */
    void (*attached)(struct thread *t);
    /* A call makes its thread take part. Called inside our own code. `may_wait`: CUDA is not active
     * on this thread. */
    void (*first_call)(bool may_wait);

    /* Called by the writer thread, whose own state is `writer`: first of all; */
    void (*writer_begin)(struct thread *writer);
    /* once a second, and whenever everything is to be stored; */
    void (*tick)(struct thread *writer);
    /* in each pass: appends the feature's META records if they have changed. */
    void (*describe)(struct thread *writer, bool is_last);
    /* In each pass. Returns true if everything is to be sealed and `look` called. */
    bool (*is_due)(uint64_t now_ns);
    void (*look)(struct thread *writer, uint64_t now_ns, bool is_last);

    /* CUDA is about to destroy a context, or all of them. Called on the thread that asks for it,
     * inside our own code or not. */
    void (*context_goes)(void);

    /* cudaProfilerStart or cudaProfilerStop is about to be called. Called on that thread. */
    void (*door)(bool opens);

    /* Called around each dlclose. */
    void (*unloading)(void);
    void (*unloaded)(void);

    /* Called in the child of a fork, before its own recording: inherited state is the parent's. */
    void (*fork_child)(void);

    /* What is to be recorded has changed (recorded_asked): applies it. Any thread, several at once,
     * inside our own code. */
    void (*turn)(void);

    /* The process's own signal is about to end it; `is_certain`: nothing can prevent that. Finished
     * device records must be in chunks within `ns`. Async-signal-safe. */
    void (*dies)(bool is_certain, uint64_t ns);

    /* The process ends: what is under way must be in chunks within `ns`. */
    void (*end)(uint64_t ns);
};

extern const struct feature features[];
extern const unsigned feature_count;

/* Calls that member of all features that have it; the arguments are in parentheses. */
#define FEATURES_DO(member, arguments)                                                             \
    do {                                                                                           \
        for (unsigned feature_ = 0; feature_ < feature_count; feature_++)                          \
            if (features[feature_].member)                                                         \
                features[feature_].member arguments;                                               \
    } while (0)

#endif
