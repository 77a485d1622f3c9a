/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording consists of: a row for each feature, with what it does at the turns of a
 * recording. The rows stand in features.c, in the order in which things happen, so that what keeps
 * records need not know what is recorded. A feature leaves out what it has no part in.
 */
#ifndef GPUPROF_INJECT_FEATURE_H
#define GPUPROF_INJECT_FEATURE_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

struct feature {
    /* By the constructor, if anything may ever be recorded here; no setting is read yet. */
    void (*load)(void);

    /*
     * A recording is about to begin: makes what it needs. False: that cannot be had (said), and
     * nothing is recorded; then `remove` takes away again what the features before it had made.
     */
    bool (*create)(void);
    void (*remove)(void);
    /* The same, of what cannot fail; after `create`. */
    void (*start)(void);
    /* It has begun; on the thread that began it, which others do not wait for any more. */
    void (*started)(void);

    /* This thread takes part from now on. */
    void (*attached)(struct thread *t);
    /*
     * A call that makes its thread take part, from inside our own code. `may_wait`: CUDA is not at
     * work on this thread.
     */
    void (*first_call)(bool may_wait);

    /* By the writer thread, `writer` is its own: first of all; */
    void (*writer_begin)(struct thread *writer);
    /* once a second, and whenever all is to be stored; */
    void (*tick)(struct thread *writer);
    /* in each pass: appends what there is to be said of it, if that has changed. */
    void (*describe)(struct thread *writer, bool is_last);
    /* In each pass. True: all is to be sealed, and then `look` called. */
    bool (*is_due)(uint64_t now_ns);
    void (*look)(struct thread *writer, uint64_t now_ns, bool is_last);

    /* CUDA is about to destroy a context, perhaps all, with what is in it: on the thread that asks
     * for it, which may be inside our own code or not. */
    void (*context_goes)(void);

    /* cudaProfilerStart or ...Stop is about to be called: on the thread that does. */
    void (*door)(bool opens);

    /* Around each dlclose. */
    void (*unloading)(void);
    void (*unloaded)(void);

    /* In the child of a fork, before its own recording: what was inherited is the parent's. */
    void (*fork_child)(void);

    /*
     * Something is to be recorded no more, or again (recorded_asked): follows, whatever it did
     * before. By any thread, by several at a time, from inside our own code.
     */
    void (*turn)(void);

    /*
     * The process is about to be ended by a signal of its own; `is_certain`: nothing can keep it
     * alive. What the device has finished is to be in chunks within `ns`. Async-signal-safe.
     */
    void (*dies)(bool is_certain, uint64_t ns);

    /* The process ends: what is under way is to be in chunks, within `ns`. */
    void (*end)(uint64_t ns);
};

extern const struct feature features[];
extern const unsigned feature_count;

/* Calls that member of all that have it; the arguments are in parentheses. */
#define FEATURES_DO(member, arguments)                                                             \
    do {                                                                                           \
        for (unsigned feature_ = 0; feature_ < feature_count; feature_++)                          \
            if (features[feature_].member)                                                         \
                features[feature_].member arguments;                                               \
    } while (0)

#endif
