/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What idle time of the devices is charged to: a row for each process, device, thread, cause and
 * place. Memory: 144 bytes a row and 8 to 16 for its number, up to IDLE_ROWS_MAX rows; what comes
 * then has no place of its own, and takes a row for each device and cause at most.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_ROWS_H
#define GPUPROF_COLLECTOR_IDLE_ROWS_H

#include "base/key_map.h"

#define IDLE_ROWS_MAX (1u << 16)
#define IDLE_NONE     UINT32_MAX /* no thread, no function */

/* The words of these are in idle_cause_words. */
enum idle_cause {
    IDLE_LAUNCH,
    IDLE_HOST,
    IDLE_WAITING,   /* as host, but the thread was off the processor by its own will */
    IDLE_PREEMPTED, /* ... or could have run, and others did */
    IDLE_SYNC,
    IDLE_COPY,
    IDLE_LOADER,
    IDLE_ALLOCATION,
    IDLE_COMMUNICATION,
    IDLE_CAPTURE,
    IDLE_START_UP,
    IDLE_NOTHING,
    IDLE_UNKNOWN,
    IDLE_CAUSES
};

extern const char *const idle_cause_words[IDLE_CAUSES];

/* What `word` is, which goes where there is no stack with a line. */
enum idle_word {
    IDLE_WORD_NONE,
    IDLE_WORD_OP,     /* the number of an operator's name */
    IDLE_WORD_NAME,   /* a view of a struct kernel_name: an operator's, a label's, a range's */
    IDLE_WORD_OURS,   /* a view of a text of our own, which is all there is to say */
    IDLE_WORD_DEVICE, /* what was waited for: index of the process, a device above 32 bits */
    IDLE_WORD_TOLD,   /* a view of a struct idle_told */
    IDLE_WORD_HOLDER, /* who held what was waited for: a tid; 0: not known */
};

/* Where time is that the thread made no call in. */
enum idle_side {
    IDLE_AT,      /* in the call or what it was made in, or nobody can tell */
    IDLE_TOWARDS, /* before the call, in its operator or range */
    IDLE_BEFORE,  /* before that, too */
    IDLE_AFTER,   /* behind the call, which waited */
    IDLE_SIDES
};

#define IDLE_LATE UINT16_MAX /* an epoch: no start-up in any case */

struct idle_place {
    uint64_t word;
    uint32_t stack;    /* number of a STACK record; 0: none */
    uint32_t function; /* struct function index, or IDLE_NONE */
    uint32_t kind;     /* enum idle_word */
    uint8_t is_open;   /* 1: of a call that never returned, whose time is a row of its own */
    uint8_t side;      /* enum idle_side */
    uint16_t epoch;    /* as idle_epoch has it; behind idle_finish 0 */
    /* Where it is before a call: what the thread had come from, likewise. */
    uint64_t from_word;
    uint32_t from_stack;
    uint32_t from_function; /* one more; 0: nothing is known of that */
    uint64_t from_kind;     /* so wide, since places are compared as bytes */
};

_Static_assert(sizeof(struct idle_place) == 48, "no byte of a place is left out");

/* Is it the same call in the same place? */
static inline bool idle_place_same(const struct idle_place *a, const struct idle_place *b)
{
    return a->word == b->word && a->stack == b->stack && a->function == b->function &&
           a->kind == b->kind;
}

/* What was said of a place where its stack is known: texts for people, clean. Views. */
struct idle_told {
    const char *text;
    const char *where;           /* as idle_where_text has it */
    const struct thread *thread; /* NULL: not known, or of none */
    uint32_t work_share;         /* as idle_row_work_share has it */
};

struct idle_row {
    struct idle_place place;
    uint32_t process; /* index */
    uint32_t device;  /* place in struct idle's devices */
    uint32_t thread;  /* index, or IDLE_NONE */
    uint32_t cause;   /* enum idle_cause */
    uint32_t did;     /* what the thread did (idle_host.c), enum thread_did; 0: a row of all that it
                         did; up to here: what a row is */
    uint64_t ns;
    uint64_t count;         /* gaps of which it has something */
    uint64_t longest_ns;    /* that it has of one gap, */
    uint64_t longest_at_ns; /* and where that begins */
    uint64_t gap;           /* number of the last gap, ... */
    uint64_t gap_ns;        /* ... of which it has so much, ... */
    uint64_t gap_at_ns;     /* ... from here on */
    uint64_t first_gap;     /* number of the first gap, of which it has */
    uint64_t first_ns;
};

/* The longest gap since the owner set it to 0, and the row that has the most of it. */
struct idle_rest {
    uint64_t ns;
    uint32_t row;
};

struct idle_rows {
    struct idle_row *list; /* owned */
    uint32_t count;
    uint32_t last; /* that something was added to */
    struct number_set numbers;
    uint64_t gap;           /* number of the gap that is being charged, from 1 on */
    uint64_t host_ns;       /* so far: in which the program's own code ran, or could have */
    struct idle_rest *rest; /* that is kept up to date; NULL: none */
};

void idle_rows_release(struct idle_rows *r);

/* Adds `ns` from `at_ns` on to the row that is what `what` is. 0 or GPUPROF_NO_MEMORY. */
int idle_rows_add(struct idle_rows *r, const struct idle_row *what, uint64_t at_ns, uint64_t ns);

/* The same of `count` gaps, whose longest is known. */
int idle_rows_add_sum(struct idle_rows *r, const struct idle_row *sum);

/* The same of a row with later gaps, whose numbers are of the same owner: the first may be one that
 * the row here has the begin of. */
int idle_rows_join(struct idle_rows *r, const struct idle_row *later);

/* The place of what is the device's own: work is queued, and has not begun; and of what no work
 * ends. */
extern const char idle_on_device[], idle_behind_all[];

static inline struct idle_place idle_text(const char *ours)
{
    return (struct idle_place){
        .word = (uintptr_t)ours, .function = IDLE_NONE, .kind = IDLE_WORD_OURS};
}

#endif
