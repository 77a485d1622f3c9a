/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a walk learns (event_walk.h). Facts, which stay: the devices, and what the stacks of calls
 * are. What each walk learns anew: which call made which work, and in which ranges calls were made.
 * Memory is bounded by correlation.h and spool.h, SURVEY_DEVICES_MAX and stack_table.h.
 */
#ifndef GPUPROF_COLLECTOR_SURVEY_H
#define GPUPROF_COLLECTOR_SURVEY_H

#include "base/key_map.h"
#include "base/spool.h"
#include "read/recording.h"
#include "resolve/announced.h"
#include "resolve/correlation.h"
#include "resolve/library_calls.h"
#include "resolve/occupancy.h"
#include "resolve/op_stack.h"
#include "resolve/range_stack.h"
#include "resolve/stack_table.h"

#define SURVEY_DEVICES_MAX  4096
#define SURVEY_USED_MAX     64
#define SURVEY_PAUSES_MAX   (1u << 17)
#define SURVEY_CONTENTS_MAX (1u << 15)
#define DEVICE_NAME_BYTES   128
#define SURVEY_HANG_NS      1000000000u /* by then CUPTI's record of work that has ended is there */

struct surveyed_device {
    uint32_t process;
    struct device_limits limits;
    uint64_t uuid_high; /* its UUID, 0: not known */
    uint64_t uuid_low;
    char name[DEVICE_NAME_BYTES];
};

/* Nothing is recorded from there on, or something again: enum pause_change. */
struct surveyed_pause {
    uint32_t process;
    uint32_t order; /* among all, in the order of time */
    bool begins;
    uint64_t at_ns;
};

/* A range as the survey has seen it, from its number on. */
struct range_node {
    const struct kernel_name *text;
    const struct kernel_name *domain_text; /* as struct range */
    uint64_t begin_ns;
    uint64_t end_ns;        /* UINT64_MAX: it did not end */
    uint64_t communicator;  /* that NCCL names; 0: none, or it is none of NCCL's */
    uint64_t work_begin_ns; /* of the first and the last work that survey_project was told of */
    uint64_t work_end_ns;   /* UINT64_MAX and 0: none */
    uint32_t parent;        /* number of the one around it on its thread; 0 = none */
    uint32_t sequence;      /* as struct range */
    uint32_t outlived_by;   /* the next one around it that ends later; once it has ended */
};

/* An operator or label that calls were made in, likewise. */
struct op_node {
    uint64_t end_ns;                /* UINT64_MAX: it did not end */
    const struct kernel_name *text; /* as struct op; and what follows, but for the parent */
    uint64_t name;
    uint32_t parent; /* number of the one around it when it began; 0 = none */
    uint32_t number;
    uint32_t row;
    uint16_t scope;
    bool is_label;
};

/* A call of a library that calls of CUDA were made in, likewise. */
struct library_node {
    uint32_t kind : 30;    /* library_calls.h */
    uint32_t has_work : 1; /* for its user, as of op_node; and so is that its rank has come */
    uint32_t has_come : 1;
    uint32_t parent; /* number of the one around it; 0 = none */
    struct library_message message;
};

struct survey {
    struct recording *rec;
    bool is_bare; /* nobody asks what is around calls */
    struct correlation calls;
    struct announced announced;
    struct key_map contents; /* survey_content */
    struct stack_table stacks;
    struct spool nodes;              /* struct range_node; number n is item n - 1 */
    struct spool ops;                /* struct op_node; likewise */
    struct spool libraries;          /* struct library_node; likewise */
    struct key_map contexts;         /* (process, context) -> device + 1 */
    struct key_map indexes;          /* (process, device) -> place in devices + 1 */
    struct surveyed_device *devices; /* owned */
    uint32_t device_count;
    uint64_t used; /* devices below SURVEY_USED_MAX that have work or memory, described or not */
    struct surveyed_pause *pauses; /* owned; by process, then in the order of time */
    uint32_t pause_count;
    bool *has_tensors;        /* owned, by process index: PyTorch's allocator told of blocks */
    bool *is_hung;            /* owned, by thread index: it waits for the device, at the end */
    uint64_t *last_launch_ns; /* owned, likewise: when its last launch began */
    uint64_t *untied;         /* owned, likewise: launches that have no correlation id */
    uint64_t origin_ns; /* of the first event of the program or the device; 0: there is none */
};

/* `rec` must stay. 0 or GPUPROF_NO_MEMORY; survey_release in both cases. */
int survey_init(struct survey *s, struct recording *rec);
void survey_release(struct survey *s);

/* Forgets calls, ranges, operators and calls of libraries, before a walk through process `only`, or
 * with NULL through all. */
void survey_begin(struct survey *s, const struct process *only);

/*
 * A call, with the ranges, operators and calls of libraries that are open then; what became of a
 * range, where `parent` is the number of the one around it; any other record. In the order of time.
 * 0 or an error.
 */
int survey_take_call(struct survey *s, struct ranges *ranges, struct ops *ops,
                     struct library_calls *libraries, const struct event *e);
int survey_take_range(struct survey *s, enum range_change change, struct range *range,
                      uint32_t parent);
int survey_take_op_end(struct survey *s, const struct op *op);
int survey_take(struct survey *s, const struct event *e);

/* A hash of what the call with that id copied to a device; 0: not known. A record stands where its
 * call begins, so the work of that call comes soon behind it; what is kept is forgotten when there
 * is too much of it. */
static inline uint64_t survey_content(const struct survey *s, uint32_t process,
                                      uint32_t correlation)
{
    return key_map_get(&s->contents, (struct key){process, correlation, 0});
}

/* A device of that number has work or memory. */
static inline void survey_use_device(struct survey *s, uint64_t device)
{
    s->used |= device < SURVEY_USED_MAX ? UINT64_C(1) << device : 0;
}

/* What is known of a device, unless something is already. 0 or GPUPROF_NO_MEMORY. */
int survey_add_device(struct survey *s, const struct surveyed_device *device);

/* Its process stops recording there, or goes on. */
int survey_take_pause(struct survey *s, const struct event *e, bool begins);

/* To be called once, after the last and before the first question. */
void survey_finish_pauses(struct survey *s);

/* The limits of a device, NULL if no record describes it. */
const struct surveyed_device *survey_device(const struct survey *s, const struct process *p,
                                            uint64_t device);

/* What tells devices apart, whichever processes they are of: their UUID where it is known. `s` is
 * what survey_device says of it. */
struct key surveyed_device_key(const struct surveyed_device *s, const struct process *p,
                               uint64_t device);

/* The device of a context, 0 if it is not known. */
uint64_t survey_context_device(const struct survey *s, const struct process *p, uint64_t context);

/*
 * Goes through the ranges that were open when a call began, the innermost first: *number, at first
 * that of the call, is made that of what is next to look at. A view until the next call; with
 * `change` it is written to. NULL: there is none, or an error in *error, which is 0 before the
 * first.
 */
struct range_node *survey_range_around(struct survey *s, const struct correlated_call *call,
                                       uint32_t *number, bool change, int *error);

/* The range of that number (not 0); a view until the next call. NULL: an error in *error. */
const struct range_node *survey_range(struct survey *s, uint32_t number, int *error);

/* Where one is on the way from the innermost operator of a call outwards. */
struct op_place {
    uint32_t number; /* of the next one to look at, at first the call's; 0: none */
    uint32_t passed; /* looked at so far */
};

/* survey_op where place->number is not 0. */
const struct op_node *survey_op_there(struct survey *s, const struct correlated_call *call,
                                      struct op_place *place, int *error);

/*
 * Goes through the operators and labels that were open when a call began, the innermost first; what
 * was returned is a view until the next call. NULL: there is none, or an error in *error, which is
 * 0 before the first. So many are looked at on one way, OPS_CHAIN_MAX: what crosses may make it as
 * long as the file, and each work of the device goes it.
 */
static inline const struct op_node *survey_op(struct survey *s, const struct correlated_call *call,
                                              struct op_place *place, int *error)
{
    return place->number ? survey_op_there(s, call, place, error) : NULL;
}

/* The call of a library of that number (not 0); a view until the next call. NULL: an error in
 * *error. */
struct library_node *survey_library(struct survey *s, uint32_t number, int *error);

/*
 * The device did work that `call` launched: it counts for all ranges that the call was in, whatever
 * the stream. 0 or an error.
 */
int survey_project(struct survey *s, const struct correlated_call *call, uint64_t begin_ns,
                   uint64_t end_ns);

/* After the last look-up: what of a process's launches is not tied to work, into its losses. 0 or
 * an error. */
int survey_tell(struct survey *s, const struct process *p, struct losses *losses);

#endif
