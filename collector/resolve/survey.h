/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a walk learns (event_walk.h). Devices and stacks are learnt once and stay. Which call made
 * which work, and the ranges around calls, are learnt anew in each walk. Memory is bounded by
 * correlation.h, spool.h, SURVEY_DEVICES_MAX and stack_table.h.
 */
#ifndef GPUPROF_COLLECTOR_SURVEY_H
#define GPUPROF_COLLECTOR_SURVEY_H

#include "base/key_map.h"
#include "base/spool.h"
#include "read/recording.h"
#include "resolve/correlation.h"
#include "resolve/occupancy.h"
#include "resolve/spans.h"
#include "resolve/stack_table.h"

#define SURVEY_DEVICES_MAX  4096
#define SURVEY_PAUSES_MAX   (1u << 17)
#define SURVEY_CONTENTS_MAX (1u << 15)
#define DEVICE_NAME_BYTES   128
#define SURVEY_LATE_NS      1000000000u /* twice the default of --gpu-flush */
#define SURVEY_HANG_NS      1000000000u /* CUPTI delivers the record of ended work before this */

struct surveyed_device {
    uint32_t process;
    struct device_limits limits;
    uint64_t uuid_high; /* UUID; 0: not known */
    uint64_t uuid_low;
    char name[DEVICE_NAME_BYTES];
};

/* Recording stops there or resumes (enum pause_change). */
struct surveyed_pause {
    uint64_t process;
    uint32_t order; /* position among all pauses, in the order of time */
    bool begins;
    uint64_t at_ns;
};

/* A span (spans.h) in which a call was made, by its number. Traced operators and duplicate ranges
 * have none. */
struct span_node {
    const struct kernel_name *text;
    uint64_t begin_ns;
    uint64_t end_ns;      /* UINT64_MAX: not ended */
    uint32_t parent;      /* number of the span around it on its thread; 0: none */
    uint32_t outlived_by; /* once it has ended: the next span around it that ends later */
    uint32_t number;      /* as struct host_span, and so are row and scope */
    uint32_t row;
    uint16_t scope; /* of an operator */
    uint8_t type;   /* enum span_type */
    bool has_work;  /* of a library call, for its user, and so is has_come: its rank has arrived */
    bool has_come;
    union {
        struct { /* a range */
            const struct kernel_name *domain_text;
            uint64_t communicator;  /* from NCCL's payload; 0: none, or not a range of NCCL */
            uint64_t work_begin_ns; /* of the first and the last work added by survey_project */
            uint64_t work_end_ns;   /* UINT64_MAX and 0: none */
        };
        struct { /* a library call */
            uint32_t kind;
            struct library_message message;
        };
    };
};

struct surveyed_process {
    uint64_t worked_ns; /* begin of the last call with work */
    uint64_t untied;    /* launches without a correlation id */
};

struct survey {
    struct recording *rec;
    bool is_bare; /* spans around calls are not needed */
    struct correlation calls;
    struct key_map contents; /* survey_content */
    struct stack_table stacks;
    struct spool nodes;              /* struct span_node; number n is item n - 1 */
    bool has_ranges;                 /* some are ranges */
    struct key_map contexts;         /* (process, context) -> device + 1; (process, 0, 1): first */
    bool has_devices;                /* a process has contexts on several devices */
    struct key_map indexes;          /* (process, device) -> place in devices + 1 */
    struct surveyed_device *devices; /* owned */
    uint32_t device_count;
    struct surveyed_pause *pauses; /* owned; by process, then in the order of time */
    uint32_t pause_count;
    struct correlation_thread *threads; /* owned, by thread index */
    struct surveyed_process *processes; /* owned, by process index */
    bool *has_tensors;                  /* owned, likewise: PyTorch's allocator reported blocks */
    uint64_t origin_ns; /* first event of the program or the device; 0: there is none */
};

/* `rec` must stay. */
void survey_init(struct survey *s, struct recording *rec);
void survey_release(struct survey *s);

/* Forgets calls and spans, before a walk of `only`, or NULL: of all. */
void survey_begin(struct survey *s, const struct process *only);

/*
 * Take events in the order of time. survey_take_call: a call, with what is open around it.
 * survey_take_end: a span that ended. survey_take: any other record.
 */
void survey_take_call(struct survey *s, struct spans *spans, const struct event *e);
void survey_take_end(struct survey *s, const struct host_span *span);

/* Numbers the spans that are open on the thread. Returns the last number, or 0. */
uint32_t survey_number(struct survey *s, struct spans *spans, const struct thread *thread);
void survey_take(struct survey *s, const struct event *e);

/* A hash of the bytes that the call with that id copied to a device; 0: not known. The record
 * stands at the begin of its call, so the work follows soon; hashes are forgotten when there are
 * too many. */
static inline uint64_t survey_content(const struct survey *s, uint32_t process,
                                      uint32_t correlation)
{
    return key_map_get(&s->contents, (struct key){process, correlation, 0});
}

/* Adds a device, unless it is known already. */
void survey_add_device(struct survey *s, const struct surveyed_device *device);

/* Adds a moment at which a process stops or resumes recording. Once all are added,
 * survey_finish_pauses sorts them. */
void survey_take_pause(struct survey *s, const struct event *e, bool begins);
void survey_finish_pauses(struct survey *s);

/* The device of that number; NULL if no record describes it. */
const struct surveyed_device *survey_device(const struct survey *s, const struct process *p,
                                            uint64_t device);

/* Identifies a device across processes, by its UUID if known. `s` is of survey_device. */
struct key surveyed_device_key(const struct surveyed_device *s, const struct process *p,
                               uint64_t device);

/* The device of a context; 0: not known. */
uint64_t survey_context_device(const struct survey *s, const struct process *p, uint64_t context);

#define SPANS_OF(type) (1u << (type))

/*
 * Iterates over the spans of these types (SPANS_OF) that were open when a call began, innermost
 * first. *number starts as call->span and is advanced. The result is a view until the next call;
 * `change` allows writing to it. NULL: no more.
 */
struct span_node *survey_span(struct survey *s, const struct correlated_call *call, unsigned types,
                              uint32_t *number, bool change);

/* The innermost one of that type, in the same way. */
static inline const struct span_node *
survey_innermost(struct survey *s, const struct correlated_call *call, enum span_type type)
{
    uint32_t number = call->span;
    return number ? survey_span(s, call, SPANS_OF(type), &number, false) : NULL;
}

/* The innermost operator that does work, in the same way. */
static inline const struct span_node *survey_op(struct survey *s,
                                                const struct correlated_call *call)
{
    for (uint32_t number = call->span; number;) {
        const struct span_node *node = survey_span(s, call, SPANS_OF(SPAN_OP), &number, false);
        if (!node || op_scope_works(node->scope))
            return node;
    }
    return NULL;
}

/* When a process recorded nothing, in order. The caller frees *gaps. Returns their number. */
uint32_t survey_gaps(const struct survey *s, uint32_t process, struct correlation_gap **gaps);

/* Adds work that `call` launched to all ranges around it, on any stream. */
void survey_project(struct survey *s, const struct correlated_call *call, uint64_t begin_ns,
                    uint64_t end_ns);

/*
 * After the last look-up: adds calls without work to the losses (by process index) of the processes
 * `first` up to `end`, if they have GPU rows: launches, and if the process was killed or CUPTI did
 * not deliver everything, copies, fills and graph launches from SURVEY_LATE_NS before the last call
 * with work on. Otherwise such a call made none (a copy within the host, a graph of host
 * functions).
 */
void survey_report(struct survey *s, uint32_t first, uint32_t end, struct losses *losses);

#endif
