/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls of libraries are calls of: a function and how much there is to do, each combination
 * once for all calls that are alike (a *kind*, numbered from 1 on), and the communicators that
 * they name. Memory: 150 bytes a kind, of which there are KINDS_FREE and one more for each
 * KIND_BYTES of the files, KINDS_MAX at most, beyond which a function's calls are one kind; 150
 * bytes a communicator up to COMMUNICATORS_MAX.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_KINDS_H
#define GPUPROF_COLLECTOR_LIBRARY_KINDS_H

#include "base/key_map.h"
#include "base/number_set.h"
#include "flops/library_flops.h"
#include "model/timeline.h"
#include "symbol/kernel_names.h"

#define KINDS_FREE        4096
#define KIND_BYTES        64
#define KINDS_MAX         (1u << 18)
#define COMMUNICATORS_MAX (1u << 16)

struct library_kind {
    const struct function *function;
    struct library_shape shape;
    bool is_others;                 /* all of the function's for which there was no room */
    bool is_group;                  /* shape.batch calls at once */
    const struct kernel_name *text; /* NULL: library_kind_text was not asked for it yet */
};

/* Of all ranks that have the same id, one number: its place + 1. */
struct communicator {
    uint64_t id;
    uint32_t ranks; /* 0: not known */
};

/* What a call has beside its kind. */
struct library_message {
    uint32_t communicator; /* its number; 0: none, or it is not known */
    uint64_t sequence;     /* in it, on all ranks alike; 0: not known */
};

struct library_form;

struct library_kinds {
    struct kernel_names *texts; /* a view */
    struct library_kind *list;  /* owned; number n is list[n - 1] */
    uint32_t count;
    uint32_t count_max;
    struct number_set numbers;
    struct library_form **forms; /* owned, by function index */
    uint32_t form_count;
    struct communicator *communicators; /* owned */
    uint32_t communicator_count;
    uint32_t communicator_capacity;
    struct key_map communicator_ids; /* id, ranks -> number */
    struct key_map handles;          /* (process, handle) -> number | rank << 32 */
    struct kernel_handles *plans;    /* owned, by process index: texts of LIBRARY_PLAN records */
    uint32_t process_count;
    struct function **functions; /* owned, and so are they: of kinds that were added */
    uint32_t function_count;
    uint32_t function_capacity;
};

/* For files of so many bytes and processes; `texts` must stay. 0 or GPUPROF_NO_MEMORY;
 * library_kinds_release in both cases. */
int library_kinds_init(struct library_kinds *k, struct kernel_names *texts, uint64_t bytes,
                       uint32_t process_count);
void library_kinds_release(struct library_kinds *k);

/* A LIBRARY_PLAN or COMMUNICATOR record. 0 or GPUPROF_NO_MEMORY. */
int library_kinds_learn(struct library_kinds *k, const struct event *e);

/* The kind of the call that this LIBRARY_BEGIN record begins, and its message. A number, or
 * GPUPROF_NO_MEMORY. */
int64_t library_kind_of(struct library_kinds *k, const struct event *e,
                        struct library_message *message);

/* The kind of `calls` calls that `function` (of a group) does at once, with so many bytes. */
int64_t library_kind_of_group(struct library_kinds *k, const struct function *function,
                              uint64_t calls, uint64_t bytes);

/* One of another recording, with a copy of its function. Its number, or GPUPROF_NO_MEMORY. */
int64_t library_kinds_add(struct library_kinds *k, const struct library_kind *kind);

static inline const struct library_kind *library_kind(const struct library_kinds *k,
                                                      uint32_t number)
{
    return &k->list[number - 1];
}

/* What it computes; of one with a plan only when that is known. */
struct library_work library_kind_work(const struct library_kinds *k, uint32_t number);

/* "cublasGemmEx 4096x4096x4096 bf16"; NULL: no room for another text, or GPUPROF_NO_MEMORY in
 * *error, which is 0 before. To be asked for when plans are known. */
const struct kernel_name *library_kind_text(struct library_kinds *k, uint32_t number, int *error);

#endif
