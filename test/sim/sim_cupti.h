/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

/*
 * The simulated CUPTI: what its files share. It is compiled once for each soname; SIM_CUPTI is
 * 118, 124, 130 or 135. Its times are CLOCK_MONOTONIC ns until a record is delivered.
 */

#include <pthread.h>

#include "sim_cupti_abi.h"
#include "sim_trace.h"

#define CUPTI_EXPORT __attribute__((visibility("default")))

enum {
    RECORD_BYTES_MAX = 256,
    CALLBACK_COUNT_MAX = 1024,
    DOMAIN_COUNT = 7,
    /* Whose records: 0 the process's, then those of each subscriber, from 13.3 on. */
    SCOPE_COUNT = SIM_CUPTI >= 133 ? 5 : 1,
};

/* Settings from the environment; README.md says what each is for. */
struct cupti_switches {
    int subscribe_code;
    bool is_refused; /* by the driver, which knows nothing of it */
    const char *holder;
    uint64_t flush_hang, late, disorder, zero, strange, damage, drop;
    uint64_t buffer_bytes, command_buffer, lock_ms, enable_us;
    int64_t drift_ppm;
    bool is_realtime, has_early_domain, is_newer, log, may_finalize, has_graph_defect;
    bool is_sole_clock, is_sole;
    uint8_t unsupported[SIM_CUPTI_KIND_COUNT];
};
extern struct cupti_switches cupti_switches;

/* One record on its way: the times are filled in when it is delivered. */
struct cupti_record {
    uint64_t serial;
    uint16_t bytes;
    uint16_t kind;
    uint16_t asked; /* the kind that is asked for to have it: CUDA_EVENT has none of its own */
    uint8_t scope;
    uint16_t start_at, end_at, queued_at, submitted_at; /* offsets; 0: has none */
    bool is_device;                                     /* its times are the device's */
    uint32_t context_id;
    uint64_t start_ns, end_ns, queued_ns;
    unsigned char payload[RECORD_BYTES_MAX];
};

/* Where a thread is: what it may not do depends on it. */
enum { OPEN_CALLS_MAX = 16 };

struct cupti_thread {
    struct sim_api_call *call;                  /* the innermost open one */
    struct sim_api_call *calls[OPEN_CALLS_MAX]; /* all, the outermost first */
    unsigned call_count;
    const char *callback;        /* the subscriber's callback that is running */
    const char *buffer_callback; /* the client's buffer or timestamp callback that is running */
    bool in_stream_destroy;
    bool is_inside; /* the library's own calls of the driver are nobody's */
};
extern __thread struct cupti_thread cupti_thread;

/* sim_cupti_main.c */
extern const struct sim_traced *cupti_driver; /* NULL until attached */
__attribute__((noreturn, format(printf, 1, 2))) void cupti_misuse(const char *format, ...);
/* Attaches to the driver and initialises it; 0 or what this version answers without one. */
CUptiResult cupti_ready(const char *function);
/* For what works without a driver. */
bool cupti_is_dead(void);
bool cupti_in_child(void);
CUptiResult cupti_error(CUptiResult result);
uint32_t cupti_thread_id(unsigned scope);
CUptiResult cupti_thread_id_type(unsigned scope, int type);
/* A line in the truth log, layer P, if it is asked for. */
void cupti_note(const char *what, CUptiResult result, const struct sim_arg *args, unsigned count);
#define CUPTI_NOTE(result, ...)                                                                    \
    do {                                                                                           \
        const struct sim_arg note_args_[] = {{"", 0, 0, 0, 0}, ##__VA_ARGS__};                     \
        cupti_note(__func__, result, note_args_ + 1,                                               \
                   sizeof note_args_ / sizeof note_args_[0] - 1);                                  \
    } while (0)
#define NOTE_U(key, number)                                                                        \
    {                                                                                              \
        key, 'u', (uint64_t)(number), 0, 0                                                         \
    }
#define NOTE_S(key, string)                                                                        \
    {                                                                                              \
        key, 's', (uint64_t)(uintptr_t)(string), 0, 0                                              \
    }

/* sim_cupti_failure.c: counts this call; the error that was asked for, or SUCCESS. */
CUptiResult cupti_failure(const char *function);

/* sim_cupti_lock.c: the one lock, held while the client's buffer callbacks run. */
void cupti_lock(const char *function);
void cupti_unlock(void);
void cupti_callback_begin(const char *name);
void cupti_callback_end(void);
/* Starts the worker, which delivers full buffers and watches over callbacks that do not return. */
void cupti_worker_start(void);
void cupti_worker_wake(void);
void cupti_worker_period(uint32_t period_ms);

/* sim_cupti_walk.c */
unsigned cupti_record_bytes(uint32_t kind);

/* sim_cupti_scope.c: by whose functions activity is asked for; the two are never mixed. */
CUptiResult scope_global(void);
/* The scope of a subscriber that v2 functions are called for. */
CUptiResult scope_of(CUpti_SubscriberHandle subscriber, unsigned *scope, const char *function);
bool scope_is_shared(void);

/* sim_cupti_clock.c: under the lock. */
void clock_register(unsigned scope, CUpti_TimestampCallbackFunc callback);
void clock_anchor(void);
void clock_context_created(uint32_t context_id);
void clock_apply(struct cupti_record *record);
CUptiResult clock_now(unsigned scope, uint64_t *timestamp);

/* sim_cupti_buffer.c: under the lock. */
void buffer_register(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete);
void buffer_register_v2(unsigned scope, CUpti_BuffersCallbackRequestFunc_v2 request,
                        CUpti_BuffersCallbackCompleteFunc_v2 complete);
void buffer_unregister(unsigned scope);
void buffer_add(const struct cupti_record *record);
enum buffer_flush { FLUSH_FULL, FLUSH_COMPLETE, FLUSH_FORCED };
void buffer_flush(enum buffer_flush how);
bool buffer_is_held(const uint8_t *buffer);
size_t buffer_dropped(unsigned scope);
size_t buffer_discard_all(void);

/* sim_cupti_attribute.c */
bool attribute_zeroed(void);
bool attribute_per_thread(void);
bool attribute_graphs_whole(void);
void attribute_freeze(void);

/* sim_cupti_activity.c */
bool activity_wanted(unsigned scope, uint32_t kind);
bool activity_wanted_by_any(uint32_t kind);
void activity_forget(unsigned scope);
bool activity_is_on(void); /* any kind, or calls of any function */
bool activity_wants_call(unsigned scope, int domain, uint32_t cbid);
void activity_latency_set(unsigned scope, bool on);
bool activity_latency(unsigned scope);
bool activity_event_times(void);
/* A graph is one record instead of one for each of its nodes. */
bool activity_graphs_whole(void);
/* How often kinds were enabled while none was. */
unsigned activity_sessions(void);

/* sim_cupti_external.c: the ids of other profilers' ranges that this thread is in. */
enum { EXTERNAL_KIND_COUNT = 6 };
/* The newest of that kind; false if there is none. */
bool external_newest(unsigned scope, unsigned kind, uint64_t *id);

/* sim_cupti_record.c */
/* Before the record of a call: what ties it to each kind of other profilers' ranges. */
void record_external(unsigned scope, const struct sim_api_call *call);
void record_api(unsigned scope, const struct sim_api_call *call, int domain, uint32_t cbid,
                int result);
void record_work(const struct sim_trace_work *work);
void record_resource(const struct sim_trace_resource *resource);
void record_sync(const struct sim_trace_sync *sync);
void record_memory(const struct sim_trace_memory *memory);
void record_log(const struct cupti_record *record, char layer, uint64_t buffer_serial);

/* sim_cupti_names.c: texts that are valid until cuptiFinalize. */
const char *name_keep(const char *name);
void name_forbid(void);
/* Domain << 16 | id, or 0. */
uint32_t callback_find(const struct sim_symbol *symbol);
uint32_t callback_count(int domain);

/* sim_cupti_callback.c */
void callback_enter(struct sim_api_call *call);
void callback_leave(struct sim_api_call *call, int result);
void callback_resource(const struct sim_trace_resource *resource);
void callback_sync(const struct sim_trace_sync *sync);
void callback_unsubscribe_all(void);
/* The number of that subscriber, from 1 on; 0 if there is none of that handle. */
unsigned callback_subscriber(CUpti_SubscriberHandle given);
unsigned callback_subscriber_count(void);
/* 0 sole, 1 shared, 2 nobody has said yet: the first one's choice holds. */
unsigned callback_sharing(void);

#endif
