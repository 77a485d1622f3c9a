/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of the event stream, and its raw form: the form in which a thread appends it to its
 * chunk of the live file, as 64-bit little-endian words.
 *
 *   word 0   type (8 bits) | flags (8) | words (16) | code (16) | argument count (8) | 0 (8)
 *   word 1   begin
 *   word 2   duration
 *   word 3   result (low 32 bits, signed) | correlation id (high 32 bits)
 *   word 4   only with RECORD_EXTENDED: stack id (low 32) | sample weight (high 32)
 *   then     the argument words
 *   then     only with RECORD_BYTES: one word with the byte count, the bytes, zeros up to a word
 *
 * `words` counts all of it, so that unknown types and trailing words can be skipped. Times in the
 * live file are clock ticks, in blocks nanoseconds on the process's frozen scale (clock_scale.h).
 */
#ifndef GPUPROF_FORMATS_RECORD_H
#define GPUPROF_FORMATS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_ARGS_MAX    16
#define RECORD_BYTES_MAX   8192   /* longest byte string */
#define ARGUMENT_SEPARATOR '\x1f' /* of the meta record argv */
#define RECORD_HEAD_WORDS  4
#define RECORD_WORDS_MAX   (RECORD_HEAD_WORDS + 1 + RECORD_ARGS_MAX + 1 + RECORD_BYTES_MAX / 8)

enum record_type {
#define EVENT(NAME, number, ...) RECORD_##NAME = (number),
#include "events.def"
    RECORD_TYPE_END
};

/* The index of each argument: KERNEL_DEVICE, ...; and the number of arguments of that type. */
#define ARG(ENUMERATOR, ...) ENUMERATOR,
#define EVENT(NAME, number, name, shows, arguments, ...)                                           \
    enum record_arguments_##NAME{arguments RECORD_##NAME##_ARGS};
#include "events.def"

enum record_flag {
    /* the work was recorded into a graph: it does not run on the device itself */
    RECORD_CAPTURED = 1,
    RECORD_NESTED = 2, /* a driver call made inside a runtime call */
    /* left by longjmp or a thread's end; the duration ends when that was noticed */
    RECORD_STALE = 4,
    RECORD_EXTENDED = 8, /* word 4 is present */
    RECORD_BYTES = 16,   /* a byte string is present */
    RECORD_OPEN = 32,    /* set by the reader: the call had not returned when the process died */
    RECORD_TRACED = 64,  /* an operator on fake tensors, which does no work */
};

enum counter_index {
#define COUNTER(NAME, ...) COUNTER_##NAME,
#include "counters.def"
#undef COUNTER
    COUNTER_COUNT
};

/* Values of the argument END_REASON. */
enum end_reason { END_EXIT = 1, END_QUICK = 2, END_KILLED = 3 };

/* Values of the argument WINDOW_STATE. */
enum window_state { WINDOW_IS_CLOSED, WINDOW_IS_OPEN, WINDOW_IS_WARMING };

/* Values of the argument DEVICE_ABSENT_REASON. */
enum device_missing_reason {
    DEVICE_ABSENT_LIBRARY = 1,   /* there is no libnvidia-ml, or it does not start */
    DEVICE_ABSENT_UNKNOWN,       /* the device is not known, or NVML does not find it */
    DEVICE_ABSENT_NOT_SUPPORTED, /* by this device, this driver, or a MIG instance */
    DEVICE_ABSENT_NO_PERMISSION,
    DEVICE_ABSENT_LOST, /* the device is gone */
    DEVICE_ABSENT_SLOW, /* readings took too much time */
    DEVICE_ABSENT_FAILED,
};

/* The code of a SAMPLE, and its flags. */
enum sample_source { SAMPLE_CPU, SAMPLE_GAP };
enum sample_flag {
    SAMPLE_IN_KERNEL = 1,  /* the thread was in a system call */
    SAMPLE_IN_GPUPROF = 2, /* ... in code of gpuprof, which has no stack */
    SAMPLE_TORN = 4,       /* its frames could not be read completely */
    SAMPLE_SILENT = 8,     /* not a sample: the thread ran for that time, and blocks the signal */
};

/* Values of the argument OS_FUNCTION_CLASS: what a call waits for. */
enum os_class {
    OS_FILE = 1,
    OS_SOCKET,
    OS_POLL, /* any of several descriptors */
    OS_SLEEP,
    OS_PROCESS, /* the end of another process */
    OS_LOCK,    /* a mutex, a lock for readers and writers */
    OS_CONDITION,
    OS_SEMAPHORE,
    OS_BARRIER,
    OS_THREAD, /* the end of another thread */
    OS_MEMORY, /* mapped, unmapped */
    OS_LOAD,   /* of a library */
    OS_DEVICE, /* ioctl */
    OS_FUTEX,
    OS_CLASS_COUNT
};

/* The code of a GIL record. */
enum gil_part { GIL_WAITED, GIL_HELD, GIL_STOPPED };

/* Values of the argument LABEL_KIND; from LABEL_OF_RESOURCE on, an NVTX resource type. */
enum label_kind {
    LABEL_OF_DOMAIN = 1,
    LABEL_OF_STRING = 2,
    LABEL_OF_CATEGORY = 3,
    LABEL_OF_THREAD = 4,
    LABEL_OF_RESOURCE = 0x10000,
};

struct counter_info {
    const char *name;
    int loss; /* 1: a nonzero counter means that something is missing */
    const char *meaning;
};

/* Is the record's code the number of a function? */
static inline bool record_has_function(unsigned type)
{
    return type == RECORD_CALL || type == RECORD_LIBRARY_BEGIN || type == RECORD_LIBRARY_END;
}

/* How a record appears in a trace. */
enum event_shows { EVENT_FACT, EVENT_SHOWN, EVENT_WORK };

extern const uint8_t event_shows[UINT8_MAX + 1]; /* by type; EVENT_FACT for unknown ones */

struct event_arg {
    uint8_t kind; /* enum arg_kind */
    const char *label;
};

struct event_info {
    uint8_t type;
    uint8_t arg_count; /* 0 for CALL: its function's description has them */
    const char *name;
    const struct event_arg *args;
};

extern const struct counter_info counter_infos[COUNTER_COUNT];

/* Returns the row of a record type, or NULL for a type that this build does not know. */
const struct event_info *event_info(unsigned type);

struct record {
    uint8_t type;
    uint8_t flags;
    uint16_t code; /* CALL, API: function index; COUNTER: counter index; otherwise 0 */
    uint8_t arg_count;
    int32_t result;
    uint32_t correlation; /* 0: none */
    uint32_t stack_id;    /* 0: none */
    uint32_t weight;      /* number of calls that this record stands for; 0 and 1 both mean one */
    uint64_t begin;
    uint64_t duration;
    uint64_t args[RECORD_ARGS_MAX];
    const uint8_t *bytes; /* borrowed, not terminated; NULL: none */
    uint32_t byte_count;
};

/* Initializes a struct record's type and arguments by enumerator: RECORD_WITH(LINK, [LINK_FURTHER]
 * = further). The others are 0. */
#define RECORD_WITH(NAME, ...)                                                                     \
    .type = RECORD_##NAME, .arg_count = RECORD_##NAME##_ARGS, .args = {__VA_ARGS__}

static inline uint64_t record_word0(unsigned type, unsigned flags, unsigned words, unsigned code,
                                    unsigned arg_count)
{
    return (uint64_t)type | (uint64_t)flags << 8 | (uint64_t)words << 16 | (uint64_t)code << 32 |
           (uint64_t)arg_count << 48;
}

static inline unsigned record_word_count(uint64_t word0)
{
    return (unsigned)(word0 >> 16) & 0xffff;
}

/* Type, argument count and code of a record in one word: records with the same key have the same
 * shape. */
static inline uint32_t record_shape_key(uint64_t word0)
{
    return (uint32_t)(word0 & 0xff) << 24 | (uint32_t)(word0 >> 32 & 0xffffff);
}

static inline unsigned record_key_arg_count(uint32_t key)
{
    return key >> 16 & 0xff;
}

/* Where the parts of a raw record are, in words from its start. */
struct record_layout {
    uint32_t words; /* size of the record */
    uint32_t arguments_at;
    uint32_t text_at; /* the word with the length of the byte string; 0: none */
    uint32_t byte_count;
};

/* Finds the parts of the raw record at `data`, reading at most `length` bytes; `word0` is its first
 * word, which is not read again. Returns 0, GPUPROF_TRUNCATED or GPUPROF_DAMAGED. */
int record_lay_out(const uint8_t *data, size_t length, uint64_t word0, struct record_layout *l);

/* Reads the raw record at `data`, reading at most `length` bytes. Returns its size in bytes
 * (r->bytes points into `data`), or GPUPROF_TRUNCATED or GPUPROF_DAMAGED. */
int record_parse(const uint8_t *data, size_t length, struct record *r);

/* Returns the size of the raw form in bytes. */
size_t record_bytes(const struct record *r);

/* Writes the raw form; returns its size in bytes, or GPUPROF_LIMIT if it does not fit. */
int record_write(const struct record *r, uint8_t *data, size_t capacity);

#endif
