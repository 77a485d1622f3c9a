/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of library calls: a function and how much there is to do. Each combination is stored once,
 * numbered from 1 on, with the communicators that calls name. Memory: 250 bytes a kind, at most
 * KINDS_FREE and one more for each KIND_BYTES of the files, up to KINDS_MAX; beyond that, all calls
 * of a function are one kind. 150 bytes a communicator, up to COMMUNICATORS_MAX.
 *
 * NCCL does the calls of a group when the outermost group ends. Work launched there belongs to the
 * earlier calls on the thread that launched nothing themselves: to the only one, or to a kind of
 * its own. If these are collectives of one communicator on one stream, the first kernel is that of
 * the first of them.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_CALLS_H
#define GPUPROF_COLLECTOR_LIBRARY_CALLS_H

#include "api/api.h"
#include "base/key_map.h"
#include "flops/library_flops.h"
#include "read/recording.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

#define KINDS_FREE        4096
#define KIND_BYTES        64
#define KINDS_MAX         (1u << 18)
#define COMMUNICATORS_MAX (1u << 16)

struct library_kind {
    const struct function *function;
    uint64_t shape[SHAPE_NUMBERS];
    bool is_others;                 /* all further calls of the function, beyond the maximum */
    bool is_group;                  /* a group of shape[SHAPE_BATCH] calls */
    const struct kernel_name *text; /* NULL: library_kind_text did not make it yet */
};

/* One entry for all ranks with the same id; its number is its place + 1. */
struct communicator {
    uint64_t id;
    uint32_t ranks; /* 0: not known */
};

/* What a call, or all calls of a group, has beside its kind. */
struct library_message {
    uint32_t communicator; /* number of the communicator; 0: none, several, or not known */
    bool is_collective;    /* a later kernel is that of the collective with this sequence */
    bool is_rooted;        /* one of them has a root */
    uint64_t sequence;     /* number of the first collective, equal on all ranks; 0: not known */
};

struct library_form;

struct library_kinds {
    struct kernel_names *texts; /* a view */
    struct library_kind *list;  /* owned; number n is list[n - 1] */
    uint32_t count;
    uint32_t count_max;
    struct number_set numbers;
    struct library_form *forms; /* owned, by function index */
    uint32_t form_count;
    struct communicator *communicators; /* owned */
    uint32_t communicator_count;
    struct key_map communicator_ids; /* id, ranks -> number */
    struct key_map handles;          /* (process, handle) -> number | rank << 32 */
    struct kernel_handles *plans;    /* owned, by process index: texts of LIBRARY_PLAN records */
    uint32_t process_count;
};

/* For files of `bytes` bytes in all; `texts` must stay. */
void library_kinds_init(struct library_kinds *k, struct kernel_names *texts, uint64_t bytes,
                        uint32_t process_count);
void library_kinds_release(struct library_kinds *k);

/* Takes a LIBRARY_PLAN or COMMUNICATOR record. */
void library_kinds_learn(struct library_kinds *k, const struct event *e);

static inline const struct library_kind *library_kind(const struct library_kinds *k,
                                                      uint32_t number)
{
    return &k->list[number - 1];
}

/* The work of a call of that kind; with a plan, only once the plan is known. */
struct library_work library_kind_work(const struct library_kinds *k, uint32_t number);

/* "cublasGemmEx 4096x4096x4096 bf16"; call it once plans are known. NULL: too many texts. */
const struct kernel_name *library_kind_text(struct library_kinds *k, uint32_t number);

/* NCCL calls of a group that are not done yet. */
struct library_group {
    uint32_t calls;
    uint32_t kind;                  /* of the first of these */
    uint32_t depth;                 /* nesting of groups */
    struct library_message message; /* of all */
    uint64_t stream;                /* of the first */
    uint64_t bytes;                 /* of all */
};

/* Reads the kind, message and stream of the call that a LIBRARY_BEGIN record begins. Returns the
 * kind's number. */
uint32_t library_kind_of(struct library_kinds *k, const struct event *e,
                         struct library_message *message, uint64_t *stream);

/* Adds an ended NCCL call to the group that is open on its thread. `has_work`: something was
 * launched in it. */
void library_group_add(struct library_group *group, const struct library_kinds *k, uint32_t kind,
                       const struct library_message *message, uint64_t stream, bool has_work);

/* The number of the kind of the group's calls, which `function` ends. */
uint32_t library_group_kind(struct library_kinds *k, const struct library_group *group,
                            const struct function *function);

#endif
