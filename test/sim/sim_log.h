/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LOG_H
#define SIM_LOG_H

/*
 * The truth log of the simulated CUDA: one line for each entry into the API, written when the call
 * begins and completed in place when it ends, into a shared mapping of a file, so that it is right
 * whatever kills the process. The format is described in README.md. The driver and every runtime
 * carry this code; a runtime that found the driver uses the driver's thread states, so that one
 * thread has one sequence of calls over both layers.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum sim_limits {
    SIM_LINE_BYTES_MAX = 4096,
    SIM_STRING_BYTES_MAX = 1024,
    SIM_SYMBOL_COUNT_MAX = 2048,
    SIM_OUT_COUNT_MAX = 2,
};

/* How much an entry point has to do besides its work. */
enum sim_mode { SIM_MODE_UNKNOWN, SIM_MODE_PLAIN, SIM_MODE_WATCH };

struct sim_failure {
    const char *name;
    size_t name_bytes;
    uint64_t call_number; /* 0: every call */
    int code;
};

/* One exported name. */
struct sim_symbol {
    const char *name;
    char layer;       /* 'R' or 'D' */
    uint8_t prepared; /* index and failure are valid */
    uint16_t index;
    uint16_t version;  /* of the runtime, 0 in the driver */
    uint32_t callback; /* what CUPTI calls it, + 1; atomic, 0 until it was looked up */
    const struct sim_failure *failure;
    uint64_t call_count; /* kept only where a failure is asked for */
};

/* One argument worth logging: type is one of u (unsigned), d (signed), x (address), s (string), */
/* 3 (three dimensions), o (address of a 64-bit result, read when the call has succeeded). */
struct sim_arg {
    const char *key;
    char type;
    uint64_t value;
    uint32_t y, z;
};

struct sim_thread; /* owned by whoever owns the log */

struct sim_call {
    struct sim_thread *thread;
    const struct sim_symbol *symbol;
    char *line; /* where end, result and captured go; NULL in counts mode */
    const void *out[SIM_OUT_COUNT_MAX];
    char *out_text[SIM_OUT_COUNT_MAX];
    unsigned out_count;
    unsigned depth;
};

struct sim_tracer; /* sim_trace.h */

/* A line that is no call of CUDA: work of the device, what the simulated CUPTI did. */
struct sim_note {
    char layer;
    const char *what;
    uint64_t start_ns, end_ns;
    int result;
    const struct sim_arg *args;
    unsigned arg_count;
};

/* What a runtime takes over from the driver it has loaded. */
struct sim_log_ops {
    struct sim_thread *(*thread)(void);
    uint16_t (*symbol_index)(const char *name);
    const uint32_t *(*epoch)(void); /* zero after a fork, until thread() was called */
    bool (*chunk)(struct sim_thread *thread, bool can_unmap);
    void (*line)(const char *text, size_t bytes);
    const struct sim_tracer *const *(*tracer)(void);
    void (*note)(const struct sim_note *note);
};

extern int sim_mode;
extern const struct sim_log_ops sim_log_local;

uint64_t sim_now_ns(void);

/* Reads the environment once. */
void sim_mode_init(void);

/* From now on thread states come from OPS. */
void sim_log_attach(const struct sim_log_ops *ops);

/* Returns the error code to inject, or 0. BEGIN_NS 0 means now. */
int sim_call_begin(struct sim_call *call, struct sim_symbol *symbol, const struct sim_arg *args,
                   unsigned arg_count, uint64_t begin_ns);
void sim_call_end(struct sim_call *call, int result);

/* The call that is open on this thread went into a graph. */
void sim_call_captured(void);

/* Work of the simulated device, if SIMCUDA_LOG_GPU is set. */
bool sim_log_gpu_wanted(void);
void sim_log_note(const struct sim_note *note);

/* A page that a fork leaves zeroed in the child: the only test that sees fork, _Fork and clone. */
uint32_t *sim_fork_page(void);

/* A lock that nobody holds in the child of a fork; to be called when the library is loaded. */
void sim_fork_lock(pthread_mutex_t *lock);

#endif
